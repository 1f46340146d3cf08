// The walk of a lexeme's machine over the trie notes every node before whose byte the lexeme may
// have ended; they are kept sorted by that byte. For a continuation, only the nodes with a byte
// that it can begin with are looked at, and there the continuation's own lexemes go on in the same
// way: below a node with a large subtree (such as a space, below which half the vocabulary lies) by
// what is known of each lexeme there, below small ones step by step.
#include "grammar/cfg/cfg_masks.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "grammar/byte_class.h"

namespace pawl {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;  // all that is kept; forgotten beyond that
// Nodes that are rather walked than kept.
constexpr uint32_t kSmallSubtree = SubtreeClasses::kLarge;
constexpr uint32_t kNone = UINT32_MAX;
constexpr int kMaxDepth = 40;         // of lexemes within one token
constexpr uint32_t kWorthAsking = 4;  // nodes of a subtree from which asking pays

// How a walk steps: over any machine's keys, or over the tables of the machine of all regexes.
struct AnyMachine {
  using Key = Machine::Key;
  Machine& machine;
  Key Begin(Machine::Key key) const { return key; }
  Key Step(Key key, uint8_t byte) const { return machine.Step(key, byte); }
  bool Accepting(Key key) const { return machine.Accepting(key); }
  bool TakesAll(Key, uint64_t, bool, bool) const { return false; }
};
struct RegexTables {
  using Key = uint32_t;
  RegexMachine& machine;
  Key Begin(Machine::Key key) const { return Machine::LexemeOf(key); }
  Key Step(Key key, uint8_t byte) const { return machine.StepByTable(key, byte); }
  bool Accepting(Key key) const { return machine.AcceptsByTable(key); }
  // Whatever characters of these classes (byte_class.h) a token goes on with, it may end inside the
  // lexeme. `last`: the lexeme must be able to end with the token.
  bool TakesAll(Key key, uint64_t classes, bool lazy, bool last) const {
    if (lazy || last) {
      // What ends within a character does not end the lexeme; what a lazy lexeme does after the
      // character that has begun is not asked.
      if (machine.InCharacter(key) || Accepting(key) != last) return false;
      if (last && (lazy || (classes >> kBeyondAsciiClass & 1) != 0)) return false;
    }
    return machine.LoopsOn(key, classes);
  }
};

}  // namespace

CfgMasks::CfgMasks(CfgMachine& machine, const Vocabulary& vocabulary)
    : machine_(machine),
      vocabulary_(vocabulary),
      trie_(vocabulary.trie()),
      automata_(vocabulary),
      classes_(vocabulary.Derived<SubtreeClasses>()) {
  group_of_class_.assign(classes_.count(), kNone);
  stack_.resize(static_cast<size_t>(trie_.max_depth()) + 1);
}

void CfgMasks::Or(const TokenBits& tokens, uint32_t* words) {
  for (const TokenId id : tokens.list) words[id >> 5] |= 1u << (id & 31);
  for (size_t i = 0; i < tokens.words.size(); ++i) words[i] |= tokens.words[i];
}

CfgMasks::TokenBits CfgMasks::Pack(const std::vector<uint32_t>& words) const {
  size_t count = 0;
  TokenBits tokens;
  for (const uint32_t word : words) {
    if (word != 0) count += static_cast<size_t>(std::popcount(word));
    if (count > words.size() / 2) {
      tokens.words = words;
      return tokens;
    }
  }
  tokens.list.reserve(count);
  for (size_t i = 0; i < words.size(); ++i) {
    for (uint32_t word = words[i]; word != 0; word &= word - 1)
      tokens.list.push_back(static_cast<TokenId>(i * 32 + std::countr_zero(word)));
  }
  return tokens;
}

CfgMasks::TokenBits CfgMasks::Pack(const std::vector<TokenId>& list) const {
  TokenBits tokens;
  if (list.size() <= static_cast<size_t>(vocabulary_.mask_words()) / 2) {
    tokens.list = list;
    return tokens;
  }
  tokens.words.assign(static_cast<size_t>(vocabulary_.mask_words()), 0);
  for (const TokenId id : list) tokens.words[id >> 5] |= 1u << (id & 31);
  return tokens;
}

void CfgMasks::Fill(StateId state, uint32_t* words) {
  if (bytes_ > kMaxBytes) {
    inside_.clear();
    threads_.clear();
    fresh_.clear();
    bytes_ = 0;
  }
  const std::vector<uint32_t> empty(static_cast<size_t>(vocabulary_.mask_words()), 0);
  // Copies, since states grow while threads are followed.
  const std::vector<Thread> threads(machine_.threads(state).begin(), machine_.threads(state).end());
  for (const Thread& thread : threads) {
    const auto key = std::tuple(thread.source, thread.tokens == 1, thread.key, thread.then);
    auto known = threads_.find(key);
    if (known == threads_.end()) {
      std::vector<uint32_t> mask = empty;
      FillThread(TokenTrie::kRoot, thread, mask.data(), 0);
      known = threads_.emplace(key, Pack(mask)).first;
      bytes_ += BytesOf(known->second);
    }
    Or(known->second, words);
  }
  const ContId fresh = machine_.fresh(state);
  if (fresh == Continuations::kNone) return;
  auto known = fresh_.find(fresh);
  if (known == fresh_.end()) {
    std::vector<uint32_t> mask = empty;
    const auto begins = machine_.continuations().Expand(fresh).terminals;
    for (const auto& begin : begins)
      FillThread(TokenTrie::kRoot, machine_.ThreadOf(begin), mask.data(), 0);
    known = fresh_.emplace(fresh, Pack(mask)).first;
    bytes_ += BytesOf(known->second);
  }
  Or(known->second, words);
}

// `state` is the one after `node`.
void CfgMasks::FillBelow(uint32_t node, StateId state, uint32_t* words, int depth) {
  const TokenTrie::Node& at = trie_.nodes()[node];
  if (machine_.OutlivesToken(state)) trie_.SetBits(at, words);
  if (at.end == node + 1) return;
  if (at.end - node <= kSmallSubtree || depth >= kMaxDepth) {
    Walk(node, state, words);
    return;
  }
  const std::vector<Thread> threads(machine_.threads(state).begin(), machine_.threads(state).end());
  for (const Thread& thread : threads) FillThread(node, thread, words, depth);
  const ContId fresh = machine_.fresh(state);
  if (fresh == Continuations::kNone) return;
  const auto begins = machine_.continuations().Expand(fresh).terminals;
  const std::bitset<256>& bytes = classes_.ChildrenOf(node).bytes;
  for (const auto& begin : begins) {
    if ((machine_.FirstBytes(begin) & bytes).none()) continue;
    FillThread(node, machine_.ThreadOf(begin), words, depth);
  }
}

void CfgMasks::Walk(uint32_t node, StateId state, uint32_t* words) {
  const auto nodes = trie_.nodes();
  stack_[nodes[node].depth] = state;
  for (uint32_t i = node + 1; i < nodes[node].end;) {
    const StateId next = machine_.StepState(stack_[nodes[i].depth - 1u], nodes[i].byte);
    if (next == CfgMachine::kDeadState) {
      i = nodes[i].end;
      continue;
    }
    stack_[nodes[i].depth] = next;
    if (machine_.OutlivesToken(next)) trie_.SetBits(nodes[i], words);
    if (TakesAll(i, next)) {
      SetBelow(i, words);
      i = nodes[i].end;
    } else {
      ++i;
    }
  }
}

bool CfgMasks::TakesAll(uint32_t node, StateId state) {
  if (trie_.nodes()[node].end - node <= kWorthAsking) return false;
  return std::ranges::any_of(machine_.threads(state), [&](const Thread& thread) {
    return thread.source / 2 == 0 && RegexTables{machine_.regexes()}.TakesAll(
                                         Machine::LexemeOf(thread.key), classes_.Below(node),
                                         (thread.source & 1) != 0, thread.tokens == 1);
  });
}

void CfgMasks::SetBelow(uint32_t node, uint32_t* words) {
  const uint32_t end = trie_.nodes()[node].end;
  for (uint32_t t = trie_.FirstToken(node + 1); t < trie_.FirstToken(end); ++t) {
    const TokenId id = trie_.order()[t];
    words[id >> 5] |= 1u << (id & 31);
  }
}

// The tokens below `node` that a lexeme allows which stands at the thread's key after the node.
void CfgMasks::FillThread(uint32_t node, const Thread& thread, uint32_t* words, int depth) {
  const bool own_machine = thread.source >= 2;  // not a regex
  if (own_machine && node == TokenTrie::kRoot && thread.tokens > 1) {
    const std::bitset<256> first = machine_.continuations().Expand(thread.then).first_bytes;
    if (const auto leaving =
            automata_.Fill(machine_.machine_of(thread), thread.key, first, words)) {
      const StateId begin = machine_.StateOf(thread.then);
      for (const uint32_t at : *leaving) {
        const StateId after = machine_.StepState(begin, trie_.nodes()[at].byte);
        if (after != CfgMachine::kDeadState) FillBelow(at, after, words, depth + 1);
      }
      return;
    }
  }
  const Inside& inside = InsideOf(node, thread);
  Or(inside.tokens, words);
  if (inside.leaving.empty()) return;
  const Groups groups =
      GroupsOf(inside.leaving, machine_.continuations().Expand(thread.then).first_bytes);
  if (groups.nodes.empty()) return;
  const StateId begin = machine_.StateOf(thread.then);
  for (size_t i = 0; i + 1 < groups.begin.size(); ++i) {
    const uint32_t at = groups.begin[i];
    const StateId after = machine_.StepState(begin, trie_.nodes()[groups.nodes[at]].byte);
    if (after == CfgMachine::kDeadState) continue;
    FillGroup(std::span(groups.nodes).subspan(at, groups.begin[i + 1] - at), after, words,
              depth + 1);
  }
}

// A counting sort by class.
CfgMasks::Groups CfgMasks::GroupsOf(const std::vector<uint32_t>& nodes,
                                    const std::bitset<256>& bytes) {
  std::vector<uint32_t> some, group;  // the nodes wanted, and the group of each
  std::vector<uint32_t> classes;
  Groups groups;
  for (const uint32_t node : nodes) {
    if (!bytes[trie_.nodes()[node].byte]) continue;
    uint32_t& known = group_of_class_[classes_.ClassOf(node)];
    if (known == kNone) {
      known = static_cast<uint32_t>(classes.size());
      classes.push_back(classes_.ClassOf(node));
      groups.begin.push_back(0);
    }
    some.push_back(node);
    group.push_back(known);
    ++groups.begin[known];
  }
  for (const uint32_t cls : classes) group_of_class_[cls] = kNone;
  uint32_t begin = 0;
  for (uint32_t& count : groups.begin) begin += std::exchange(count, begin);
  groups.nodes.resize(some.size());
  for (size_t i = 0; i < some.size(); ++i) groups.nodes[groups.begin[group[i]]++] = some[i];
  // Each has moved on to where the next begins.
  groups.begin.insert(groups.begin.begin(), 0);
  return groups;
}

// `state` is the one after each node of the group; what is below is the same for all.
void CfgMasks::FillGroup(std::span<const uint32_t> group, StateId state, uint32_t* words,
                         int depth) {
  const auto nodes = trie_.nodes();
  const uint32_t node = group[0], size = nodes[node].end - node;
  if (size > kSmallSubtree && depth < kMaxDepth) {
    for (const uint32_t member : group) FillBelow(member, state, words, depth);
    return;
  }
  // By the distance from the group's node: where tokens end, and below what all of them do.
  reached_.clear();
  all_below_.clear();
  if (machine_.OutlivesToken(state)) reached_.push_back(0);
  if (TakesAll(node, state)) {
    all_below_.push_back(0);
  } else {
    stack_[nodes[node].depth] = state;
    for (uint32_t i = node + 1; i < nodes[node].end;) {
      const StateId next = machine_.StepState(stack_[nodes[i].depth - 1u], nodes[i].byte);
      if (next == CfgMachine::kDeadState) {
        i = nodes[i].end;
        continue;
      }
      stack_[nodes[i].depth] = next;
      if (nodes[i].token != kNoToken && machine_.OutlivesToken(next)) reached_.push_back(i - node);
      if (TakesAll(i, next)) {
        all_below_.push_back(i - node);
        i = nodes[i].end;
      } else {
        ++i;
      }
    }
  }
  for (const uint32_t member : group) {
    for (const uint32_t offset : reached_) trie_.SetBits(nodes[member + offset], words);
    for (const uint32_t offset : all_below_) SetBelow(member + offset, words);
  }
}

const CfgMasks::Inside& CfgMasks::InsideOf(uint32_t node, const Thread& thread) {
  const InsideKey key{node, thread.source, thread.tokens == 1, thread.key};
  if (const auto known = inside_.find(key); known != inside_.end()) return *known->second;
  std::unique_ptr<Inside> inside = MakeInside(node, thread);
  bytes_ += BytesOf(inside->tokens) + inside->leaving.size() * 4;
  return *(inside_[key] = std::move(inside));
}

template <typename Steps>
void CfgMasks::WalkLexeme(const Steps& steps, uint32_t node, const Thread& thread,
                          std::vector<TokenId>& tokens, std::vector<uint32_t>& leaving) {
  const auto nodes = trie_.nodes();
  const bool lazy = (thread.source & 1) != 0, last = thread.tokens == 1;
  const bool root = node == TokenTrie::kRoot;
  const uint32_t top = root ? 0 : nodes[node].depth;  // bytes that came before the lexeme's
  std::vector<typename Steps::Key> stack(static_cast<size_t>(trie_.max_depth()) + 1);
  stack[top] = steps.Begin(thread.key);
  // Nodes before which the lexeme may end, around the one where the walk is, with the number of
  // tokens before them. They are of use where some token through them stays not inside.
  struct Place {
    uint32_t node;
    size_t tokens;
  };
  std::vector<Place> open;
  const auto close = [&](uint32_t up_to) {
    for (; !open.empty() && nodes[open.back().node].end <= up_to; open.pop_back()) {
      const uint32_t at = open.back().node;
      const size_t all = trie_.FirstToken(nodes[at].end) - trie_.FirstToken(at);
      if (tokens.size() - open.back().tokens < all) leaving.push_back(at);
    }
  };
  const auto walk = [&](uint32_t i, const uint32_t end) {
    while (i < end) {
      close(i);
      const TokenTrie::Node& at = nodes[i];
      const typename Steps::Key before = stack[at.depth - 1u];
      const typename Steps::Key after = steps.Step(before, at.byte);
      // Where the lexeme may end already at the top, the state itself says so.
      if (at.depth > top + 1u && steps.Accepting(before)) {
        open.push_back({i, tokens.size()});
        if (lazy) {
          i = at.end;
          continue;
        }
      }
      if (after == 0) {
        i = at.end;
        continue;
      }
      stack[at.depth] = after;
      if (at.token != kNoToken && (!last || steps.Accepting(after))) {
        for (TokenId t = at.token; t != kNoToken; t = trie_.NextSame(t)) tokens.push_back(t);
      }
      ++i;
      // Where all tokens below stay inside, leaving the lexeme there is of no use.
      if (at.end - i < kWorthAsking) continue;
      if (!steps.TakesAll(after, classes_.Below(i - 1), lazy, last)) continue;
      const auto all = trie_.order().subspan(trie_.FirstToken(i),
                                             trie_.FirstToken(at.end) - trie_.FirstToken(i));
      tokens.insert(tokens.end(), all.begin(), all.end());
      i = at.end;
    }
  };
  if (root) {
    walk(0, trie_.size());
  } else if (nodes[node].end - node > SubtreeClasses::kLarge) {
    for (const SubtreeClasses::Child& child : classes_.ChildrenOf(node).list) {
      if (steps.Step(stack[top], child.byte) != 0) walk(child.node, nodes[child.node].end);
    }
  } else {
    walk(node + 1, nodes[node].end);
  }
  close(root ? trie_.size() : nodes[node].end);
}

std::unique_ptr<CfgMasks::Inside> CfgMasks::MakeInside(uint32_t node, const Thread& thread) {
  std::vector<TokenId>& tokens = tokens_;
  tokens.clear();
  auto inside = std::make_unique<Inside>();
  if (thread.source / 2 == 0) {
    WalkLexeme(RegexTables{machine_.regexes()}, node, thread, tokens, inside->leaving);
  } else {
    WalkLexeme(AnyMachine{machine_.machine_of(thread)}, node, thread, tokens, inside->leaving);
  }
  inside->tokens = Pack(tokens);
  return inside;
}

}  // namespace pawl
