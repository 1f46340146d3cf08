// The walk of a lexeme's machine over the trie notes every node before whose byte the lexeme may
// have ended; they are kept sorted by that byte. For a continuation, only the nodes with a byte
// that it can begin with are looked at, and there the continuation's own lexemes go on in the same
// strategy: below a node with a large subtree (such as a space, below which half the vocabulary
// lies) by what is known of each lexeme there, below small ones step by step.
#include "grammar/cfg/cfg_masks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/byte_class.h"
#include "grammar/masks/token_trie.h"
#include "grammar/regex/regex_machine.h"
#include "grammar/vocabulary_tables.h"
#include "src/base/stop_scope.h"

namespace pawl {

// PrepareWatch: how far CfgMasks::Prepare goes, and where to.

// Told of the nodes that walks over the trie look at and of the states in which tokens end. Stops
// the walk when the steps are spent, of which each kind of work costs as many as it takes times
// 5 ns; new states of the regexes too, of which there may be a million. No clock: the same is
// prepared every time.
class PrepareWatch {
 public:
  // A lexeme that has begun: the state of the regexes, and whether it ends where it first matches.
  struct Place {
    uint32_t lexeme;
    bool lazy;
    uint32_t index() const { return lexeme * 2 + (lazy ? 1 : 0); }
  };

  PrepareWatch(const RegexMachine& regexes, uint64_t steps)
      : regexes_(regexes),
        left_(static_cast<int64_t>(std::min<uint64_t>(steps, INT64_MAX))),
        cost_(Cost()) {}

  // A walk begins, within lexemes that are lazy or not.
  void Begin(bool lazy) {
    lazy_ = lazy;
    ++walk_;
    reached_.clear();
  }
  bool Stops() {
    const uint64_t cost = Cost();
    Spend(kNodeSteps + cost - std::exchange(cost_, cost));
    return left_ < 0;
  }
  void Spend(uint64_t steps) { left_ -= static_cast<int64_t>(steps); }
  // So many tokens end in this state.
  void Ends(uint32_t lexeme, size_t tokens) {
    const Place place{lexeme, lazy_};
    const uint32_t index = place.index();
    if (ends_.size() <= index) ends_.resize(std::max<size_t>(index + 1, 2 * ends_.size()));
    ends_[index].tokens += tokens;
    if (std::exchange(ends_[index].walk, walk_) != walk_) reached_.push_back(place);
  }

  // Where tokens of the last walk end, each once.
  const std::vector<Place>& reached() const { return reached_; }
  // The tokens of all walks so far that end there.
  uint64_t TokensTo(Place place) const { return ends_[place.index()].tokens; }

 private:
  struct End {
    uint64_t tokens = 0;
    uint32_t walk = 0;
  };
  static constexpr uint64_t kNodeSteps = 3;
  static constexpr uint64_t kDeriveSteps = 10;  // of a step of the arena
  static constexpr uint64_t kStateSteps = 100;

  uint64_t Cost() const {
    return regexes_.arena()->work() * kDeriveSteps + regexes_.state_count() * kStateSteps;
  }

  const RegexMachine& regexes_;
  int64_t left_;
  uint64_t cost_;  // of the regexes so far
  bool lazy_ = false;
  uint32_t walk_ = 0;
  std::vector<End> ends_;  // by Place::index
  std::vector<Place> reached_;
};

// Hash-consing from the leaves up: in depth-first order children stand behind their parent, so one
// pass from the back sees them first. The bytes below a node are collected in the same way.

namespace {

// What has been read of a character: bytes still to come, and the range of the next one (RFC 3629).
struct Utf8State {
  int8_t missing = 0;  // -1: malformed
  uint8_t lo = 0x80, hi = 0xBF;
};

Utf8State Next(Utf8State state, uint8_t byte) {
  constexpr Utf8State kMalformed{-1, 0, 0};
  if (state.missing < 0) return state;
  if (state.missing > 0) {
    if (byte < state.lo || byte > state.hi) return kMalformed;
    return {static_cast<int8_t>(state.missing - 1), 0x80, 0xBF};
  }
  if (byte < 0x80) return {};
  if (byte < 0xC2 || byte > 0xF4) return kMalformed;
  if (byte < 0xE0) return {1, 0x80, 0xBF};
  if (byte < 0xF0) {
    return {2, static_cast<uint8_t>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  }
  return {3, static_cast<uint8_t>(byte == 0xF0 ? 0x90 : 0x80),
          static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
}

}  // namespace

SubtreeClasses::SubtreeClasses(const Vocabulary& vocabulary) : trie_(TrieOf(vocabulary)) {
  FindClasses();
  FindBytes();
  FindRanges(vocabulary.mask_words());
}

void SubtreeClasses::FindRanges(int words) {
  constexpr uint32_t kDistance = 2048;  // tokens between cuts
  std::vector<uint32_t> cuts;
  const auto all = static_cast<uint32_t>(trie_.order().size());
  for (uint32_t place = kDistance; place < all; place += kDistance) cuts.push_back(place);
  if (all > 0) cuts.push_back(all);
  ranges_ = TokenRanges(trie_.order(), std::move(cuts), words);
}

void SubtreeClasses::FindBytes() {
  const auto nodes = trie_.nodes();
  std::vector<Utf8State> read(static_cast<size_t>(trie_.max_depth()) + 1);
  std::vector<uint64_t> own(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const uint8_t byte = nodes[i].byte;
    const Utf8State after = Next(read[nodes[i].depth - 1u], byte);
    read[nodes[i].depth] = after;
    const int cls = after.missing < 0 ? kMalformedClass
                    : byte >= 0x80    ? kBeyondAsciiClass
                                      : kAsciiClass[byte];
    own[i] = uint64_t{1} << cls;
  }
  below_.assign(nodes.size(), 0);
  for (auto node = static_cast<uint32_t>(nodes.size()); node-- > 0;) {
    Children* children = nodes[node].end - node > kLarge ? &children_[node] : nullptr;
    for (uint32_t child = node + 1; child < nodes[node].end; child = nodes[child].end) {
      below_[node] |= own[child] | below_[child];
      if (children == nullptr) continue;
      children->bytes.set(nodes[child].byte);
      children->list.push_back({child, nodes[child].byte});
    }
  }
}

void SubtreeClasses::FindClasses() {
  const auto nodes = trie_.nodes();
  class_of_.resize(nodes.size());
  std::unordered_multimap<uint64_t, uint32_t> known;  // by hash: a node of each class
  known.reserve(nodes.size() / 4);
  const auto same = [&](uint32_t a, uint32_t b) {
    if (nodes[a].byte != nodes[b].byte || nodes[a].end - a != nodes[b].end - b ||
        (nodes[a].token == kNoToken) != (nodes[b].token == kNoToken)) {
      return false;
    }
    uint32_t i = a + 1, j = b + 1;
    for (; i < nodes[a].end; i = nodes[i].end, j = nodes[j].end) {
      if (j >= nodes[b].end || class_of_[i] != class_of_[j]) return false;
    }
    return true;
  };
  for (auto node = static_cast<uint32_t>(nodes.size()); node-- > 0;) {
    uint64_t hash = nodes[node].byte * 2u + (nodes[node].token == kNoToken ? 0 : 1);
    for (uint32_t child = node + 1; child < nodes[node].end; child = nodes[child].end) {
      hash = (hash ^ class_of_[child]) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    class_of_[node] = UINT32_MAX;
    const auto [begin, end] = known.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (same(node, it->second)) class_of_[node] = class_of_[it->second];
    }
    if (class_of_[node] == UINT32_MAX) {
      class_of_[node] = count_++;
      known.emplace(hash, node);
    }
  }
}

namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;  // all that is kept; forgotten beyond that
// Nodes that are rather walked than kept.
constexpr uint32_t kSmallSubtree = SubtreeClasses::kLarge;
constexpr uint32_t kNone = UINT32_MAX;
constexpr int kMaxDepth = 40;         // of lexemes within one token
constexpr size_t kFewWords = 4;       // words of a mask are kept one by one up to one in so many
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

// A walk that nothing stops (PrepareWatch is one that may).
struct NoWatch {
  bool Stops() const { return false; }
  template <typename Key>
  void Ends(Key, size_t) {}
};

}  // namespace

CfgMasks::CfgMasks(CfgMachine& machine, const Vocabulary& vocabulary)
    : machine_(machine),
      vocabulary_(vocabulary),
      trie_(TrieOf(vocabulary)),
      automata_(vocabulary),
      classes_(TableOf<SubtreeClasses>(vocabulary)) {
  words_.assign(static_cast<size_t>(vocabulary.mask_words()), 0);
  group_of_class_.assign(classes_.count(), kNone);
  for (const CfgProgram::Terminal& terminal : machine.program().terminals)
    begins_ |= terminal.first_bytes;
  stack_.resize(static_cast<size_t>(trie_.max_depth()) + 1);
}

void CfgMasks::Or(const TokenBits& tokens, uint32_t* words) {
  for (const TokenBits::Word& word : tokens.some) words[word.index] |= word.bits;
  for (size_t i = 0; i < tokens.all.size(); ++i) words[i] |= tokens.all[i];
}

CfgMasks::TokenBits CfgMasks::PackTouched() {
  TokenBits tokens;
  if (std::exchange(touched_many_, false) || touched_.size() > words_.size() / kFewWords) {
    tokens.all.assign(words_.size(), 0);
    tokens.all.swap(words_);
  } else {
    tokens.some.reserve(touched_.size());
    for (const uint32_t index : touched_)
      tokens.some.push_back({index, std::exchange(words_[index], 0)});
  }
  touched_.clear();
  return tokens;
}

CfgMasks::TokenBits CfgMasks::Pack(std::vector<uint32_t> words) {
  TokenBits tokens;
  const auto count = words.size() - static_cast<size_t>(std::count(words.begin(), words.end(), 0u));
  if (count > words.size() / kFewWords) {
    tokens.all = std::move(words);
    return tokens;
  }
  tokens.some.reserve(count);
  for (uint32_t i = 0; i < words.size(); ++i) {
    if (words[i] != 0) tokens.some.push_back({i, words[i]});
  }
  return tokens;
}

std::optional<MaskStrategy> CfgMasks::Fill(Machine::Key key_of_state, uint32_t* words) {
  if (CfgMachine::IsClosing(key_of_state)) {
    uint32_t node = TokenTrie::kRoot;
    for (const char byte : machine_.closing().BytesAt(CfgMachine::PlaceOf(key_of_state))) {
      node = trie_.Child(node, static_cast<uint8_t>(byte));
      if (node == TokenTrie::kNone) break;
      trie_.SetBits(trie_.nodes()[node], words);
    }
    return MaskStrategy::kTrieWalk;
  }
  const StateId state = Machine::FrameOf(key_of_state);
  const size_t count = machine_.threads(state).size();
  for (size_t i = 0; i < count; ++i) {
    const Thread thread = machine_.threads(state)[i];  // states grow while threads are followed
    Or(PartOf(thread).tokens, words);
  }
  const ContId fresh = machine_.fresh(state);
  if (fresh != Continuations::kNone) Or(PartOfFresh(fresh).tokens, words);
  return MaskStrategy::kTrieWalk;
}

bool CfgMasks::WithinLimit(StateId state) {
  const uint64_t most = machine_.limits().mask_steps;
  uint64_t steps = 0;
  const size_t count = machine_.threads(state).size();
  for (size_t i = 0; i < count && steps <= most; ++i) {
    const Thread thread = machine_.threads(state)[i];
    steps += std::min(PartOf(thread).steps, most + 1);
  }
  const ContId fresh = machine_.fresh(state);
  if (fresh != Continuations::kNone && steps <= most)
    steps += std::min(PartOfFresh(fresh).steps, most + 1);
  return steps <= most;
}

const CfgMasks::Part& CfgMasks::PartOf(const Thread& thread) {
  const auto key = std::tuple(thread.source, thread.tokens == 1, thread.key, thread.then);
  if (const auto known = threads_.find(key); known != threads_.end()) return known->second;
  BeginCount(thread.then);
  std::vector<uint32_t> mask(words_.size(), 0);
  FillThread(TokenTrie::kRoot, thread, mask.data(), 0);
  return threads_.emplace(key, EndCount(std::move(mask))).first->second;
}

const CfgMasks::Part& CfgMasks::PartOfFresh(ContId fresh) {
  if (const auto known = fresh_.find(fresh); known != fresh_.end()) return known->second;
  BeginCount(fresh);
  std::vector<uint32_t> mask(words_.size(), 0);
  for (const auto& begin : Expand(fresh).terminals)
    FillThread(TokenTrie::kRoot, machine_.ThreadOf(begin), mask.data(), 0);
  return fresh_.emplace(fresh, EndCount(std::move(mask))).first->second;
}

void CfgMasks::BeginCount(ContId then) {
  if (bytes_ > kMaxBytes) {
    inside_.clear();
    threads_.clear();
    fresh_.clear();
    bytes_ = 0;
  }
  counts_ = machine_.continuations().Crowded(then);
  over_ = false;
  spent_ = 0;
  if (counts_ && ++count_ == 0) {
    marked_states_.clear();
    marked_conts_.clear();
    count_ = 1;
  }
}

CfgMasks::Part CfgMasks::EndCount(std::vector<uint32_t> mask) {
  Part part{Pack(std::move(mask)), over_ ? kTooMany : spent_};
  counts_ = false;
  over_ = false;
  bytes_ += BytesOf(part.tokens);
  return part;
}

void CfgMasks::Spend(uint64_t steps) {
  spent_ += steps;
  over_ |= spent_ > machine_.limits().mask_steps;
}

bool CfgMasks::Mark(std::vector<uint32_t>& marks, uint32_t at) {
  if (marks.size() <= at) marks.resize(std::max<size_t>(at + 1, 2 * marks.size()), 0);
  return std::exchange(marks[at], count_) != count_;
}

CfgMasks::StateId CfgMasks::Step(StateId state, uint8_t byte) {
  ++work_;
  StopScope::Step();
  if (!counts_) return machine_.StepState(state, byte);
  const ContId fresh = machine_.fresh(state);
  if (fresh != Continuations::kNone) Expand(fresh);
  if (over_) return CfgMachine::kDeadState;
  const StateId next = machine_.StepState(state, byte);
  if (next != CfgMachine::kDeadState && Mark(marked_states_, next)) {
    Spend(1 + machine_.threads(next).size() +
          machine_.continuations().entries(machine_.fresh(next)).size());
  }
  return next;
}

const Continuations::Expansion& CfgMasks::Expand(ContId then) {
  static const Continuations::Expansion kNothing;
  if (!counts_) return machine_.continuations().Expand(then);
  if (over_) return kNothing;
  const uint64_t left = machine_.limits().mask_steps - spent_;
  if (!Mark(marked_conts_, then)) return machine_.continuations().Expand(then);
  const auto* const expansion = machine_.continuations().ExpandWithin(then, left);
  over_ = expansion == nullptr;
  if (over_) return kNothing;
  Spend(expansion->steps);
  return *expansion;
}

// `state` is the one after `node`.
void CfgMasks::FillBelow(uint32_t node, StateId state, uint32_t* words, int depth) {
  const TokenTrie::Node& at = trie_.nodes()[node];
  if (machine_.OutlivesToken(state)) trie_.SetBits(at, words);
  if (at.end == node + 1) return;
  if (TakesAll(node, state)) {
    classes_.SetBelow(node, words);
    return;
  }
  if (at.end - node <= kSmallSubtree || depth >= kMaxDepth) {
    WalkState(node, state, words);
    return;
  }
  const size_t count = machine_.threads(state).size();
  for (size_t i = 0; i < count && !over_; ++i) {
    const Thread thread = machine_.threads(state)[i];
    FillThread(node, thread, words, depth);
  }
  const ContId fresh = machine_.fresh(state);
  if (fresh == Continuations::kNone) return;
  const std::bitset<256>& bytes = classes_.ChildrenOf(node).bytes;
  for (const auto& begin : Expand(fresh).terminals) {
    if ((machine_.FirstBytes(begin) & bytes).none()) continue;
    FillThread(node, machine_.ThreadOf(begin), words, depth);
  }
}

void CfgMasks::WalkState(uint32_t node, StateId state, uint32_t* words) {
  const auto nodes = trie_.nodes();
  Walk(trie_, node, state, stack_, [&](StateId before, uint32_t i) {
    const StateId next = Step(before, nodes[i].byte);
    if (next == CfgMachine::kDeadState) return next;
    if (machine_.OutlivesToken(next)) trie_.SetBits(nodes[i], words);
    if (!TakesAll(i, next)) return next;
    classes_.SetBelow(i, words);
    return CfgMachine::kDeadState;
  });
}

bool CfgMasks::TakesAll(uint32_t node, StateId state) {
  if (trie_.nodes()[node].end - node <= kWorthAsking) return false;
  return std::ranges::any_of(machine_.threads(state), [&](const Thread& thread) {
    return thread.source / 2 == 0 && RegexTables{machine_.regexes()}.TakesAll(
                                         Machine::LexemeOf(thread.key), classes_.Below(node),
                                         (thread.source & 1) != 0, thread.tokens == 1);
  });
}

// The tokens below `node` that a lexeme allows which stands at the thread's key after the node.
void CfgMasks::FillThread(uint32_t node, const Thread& thread, uint32_t* words, int depth) {
  const bool own_machine = thread.source >= 2;  // not a regex
  if (own_machine && node == TokenTrie::kRoot && thread.tokens > 1) {
    const std::bitset<256> first = Expand(thread.then).first_bytes;
    if (const auto leaving =
            automata_.Fill(machine_.machine_of(thread), thread.key, first, words)) {
      const StateId begin = machine_.StateOf(thread.then);
      for (const uint32_t at : *leaving) {
        const StateId after = Step(begin, trie_.nodes()[at].byte);
        if (after != CfgMachine::kDeadState) FillBelow(at, after, words, depth + 1);
      }
      return;
    }
  }
  const Inside& inside = InsideOf(node, thread);
  Or(inside.tokens, words);
  if (inside.leaving.nodes.empty()) return;
  const Groups& groups = inside.leaving;
  const std::bitset<256>& first = Expand(thread.then).first_bytes;
  const StateId begin = machine_.StateOf(thread.then);
  for (size_t b = 0; b + 1 < groups.bytes.size(); ++b) {
    if (!first[groups.bytes[b].byte]) continue;
    const StateId after = Step(begin, groups.bytes[b].byte);
    if (after == CfgMachine::kDeadState) continue;
    for (uint32_t i = groups.bytes[b].first; i < groups.bytes[b + 1].first; ++i) {
      FillGroup(
          std::span(groups.nodes).subspan(groups.begin[i], groups.begin[i + 1] - groups.begin[i]),
          after, words, depth + 1);
    }
  }
}

// Counting sorts, of the nodes by class and of the classes by byte.
CfgMasks::Groups CfgMasks::GroupsOf(const std::vector<uint32_t>& nodes) {
  Groups groups;
  if (nodes.empty()) return groups;
  struct Group {
    uint32_t cls, count = 0, place = 0;
    uint8_t byte = 0;
  };
  std::vector<Group> found;
  group_of_node_.clear();
  std::array<uint32_t, 257> of_byte = {};
  for (const uint32_t node : nodes) {
    const uint32_t cls = classes_.ClassOf(node);
    uint32_t& known = group_of_class_[cls];
    if (known == kNone) {
      known = static_cast<uint32_t>(found.size());
      found.push_back({.cls = cls, .byte = trie_.nodes()[node].byte});
      ++of_byte[found.back().byte + 1u];
    }
    ++found[known].count;
    group_of_node_.push_back(known);
  }
  for (size_t b = 0; b < 256; ++b) {
    if (of_byte[b + 1] != 0) groups.bytes.push_back({static_cast<uint8_t>(b), of_byte[b]});
    of_byte[b + 1] += of_byte[b];
  }
  const auto count = static_cast<uint32_t>(found.size());
  groups.bytes.push_back({0, count});
  groups.begin.assign(count + 1, 0);
  for (Group& group : found) {
    group.place = of_byte[group.byte]++;
    groups.begin[group.place + 1] = group.count;
  }
  for (uint32_t i = 0; i < count; ++i) groups.begin[i + 1] += groups.begin[i];
  for (Group& group : found) group.place = groups.begin[group.place];
  groups.nodes.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    groups.nodes[found[group_of_node_[i]].place++] = nodes[i];
  for (const Group& group : found) group_of_class_[group.cls] = kNone;
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
    Walk(trie_, node, state, stack_, [&](StateId before, uint32_t i) {
      const StateId next = Step(before, nodes[i].byte);
      if (next == CfgMachine::kDeadState) return next;
      if (nodes[i].token != kNoToken && machine_.OutlivesToken(next)) reached_.push_back(i - node);
      if (!TakesAll(i, next)) return next;
      all_below_.push_back(i - node);
      return CfgMachine::kDeadState;
    });
  }
  for (const uint32_t member : group) {
    for (const uint32_t offset : reached_) trie_.SetBits(nodes[member + offset], words);
    for (const uint32_t offset : all_below_) classes_.SetBelow(member + offset, words);
  }
}

template <typename Steps, typename Watch>
bool CfgMasks::WalkLexeme(const Steps& steps, uint32_t node, const Thread& thread,
                          std::vector<uint32_t>& leaving, Watch& watch) {
  const auto nodes = trie_.nodes();
  const bool lazy = (thread.source & 1) != 0, last = thread.tokens == 1;
  const bool root = node == TokenTrie::kRoot;
  const uint32_t top = root ? 0 : nodes[node].depth;  // bytes that came before the lexeme's
  using StepKey = typename Steps::Key;
  std::vector<StepKey> stack = WalkStack<StepKey>(trie_);
  stack[top] = steps.Begin(thread.key);
  // Nodes before which the lexeme may end, around the one where the walk is, with the number of
  // tokens before them. They are of use where some token through them stays not inside.
  struct Place {
    uint32_t node;
    size_t tokens;
  };
  std::vector<Place> open;
  size_t tokens = 0;
  const auto set = [&](TokenId id) {
    const auto index = static_cast<uint32_t>(id) >> 5;
    if (words_[index] == 0) touched_.push_back(index);
    words_[index] |= 1u << (id & 31);
    ++tokens;
  };
  const auto close = [&](uint32_t up_to) {
    for (; !open.empty() && nodes[open.back().node].end <= up_to; open.pop_back()) {
      const uint32_t at = open.back().node;
      const size_t all = trie_.FirstToken(nodes[at].end) - trie_.FirstToken(at);
      if (tokens - open.back().tokens < all) leaving.push_back(at);
    }
  };
  const auto step = [&](StepKey before, uint32_t i) -> StepKey {
    if (watch.Stops()) return 0;
    close(i);
    const TokenTrie::Node& at = nodes[i];
    const StepKey after = steps.Step(before, at.byte);
    // Where the lexeme may end already at the top, the state itself says so.
    if (at.depth > top + 1u && steps.Accepting(before)) {
      if (begins_[at.byte]) open.push_back({i, tokens});
      if (lazy) return 0;
    }
    if (after == 0) return 0;
    if (at.token != kNoToken && (!last || steps.Accepting(after))) {
      trie_.ForTokens(at, set);
      watch.Ends(after, 1);
    }
    // Where all tokens below stay inside, leaving the lexeme there is of no use.
    const uint32_t below = i + 1;
    if (at.end - below < kWorthAsking) return after;
    if (!steps.TakesAll(after, classes_.Below(i), lazy, last)) return after;
    const uint32_t first = trie_.FirstToken(below), all = trie_.FirstToken(at.end) - first;
    watch.Ends(after, all);
    if (all < TokenRanges::kMany) {
      for (const TokenId id : trie_.order().subspan(first, all)) set(id);
    } else {
      classes_.SetBelow(i, words_.data());
      touched_many_ = true;
      tokens += all;
    }
    return 0;
  };
  if (!root && nodes[node].end - node > SubtreeClasses::kLarge) {
    for (const SubtreeClasses::Child& child : classes_.ChildrenOf(node).list) {
      if (steps.Step(stack[top], child.byte) != 0)
        WalkSpan(trie_, child.node, nodes[child.node].end, stack, step);
    }
  } else {
    Walk(trie_, node, stack[top], stack, step);
  }
  close(root ? trie_.size() : nodes[node].end);
  return !watch.Stops();
}

const CfgMasks::Inside& CfgMasks::InsideOf(uint32_t node, const Thread& thread) {
  const InsideKey key{node, thread.source, thread.tokens == 1, thread.key};
  if (const auto known = inside_.find(key); known != inside_.end()) return *known->second;
  leaving_.clear();
  NoWatch watch;
  if (thread.source / 2 == 0) {
    WalkLexeme(RegexTables{machine_.regexes()}, node, thread, leaving_, watch);
  } else {
    WalkLexeme(AnyMachine{machine_.machine_of(thread)}, node, thread, leaving_, watch);
  }
  TokenBits tokens = PackTouched();
  return Keep(key, std::move(tokens), GroupsOf(leaving_));
}

const CfgMasks::Inside& CfgMasks::Keep(const InsideKey& key, TokenBits tokens, Groups leaving) {
  bytes_ += BytesOf(tokens) + BytesOf(leaving);
  auto& kept = inside_[key];
  kept = std::make_unique<Inside>(Inside{std::move(tokens), std::move(leaving)});
  return *kept;
}

void CfgMasks::Prepare(uint64_t steps) {
  const std::span<const CfgProgram::Terminal> terminals = machine_.program().terminals;
  const auto regex = [](const CfgProgram::Terminal& terminal) {
    return terminal.source == 0 && terminal.max_tokens == 0;
  };
  if (steps == 0 || std::ranges::none_of(terminals, regex)) return;
  RegexMachine& regexes = machine_.regexes();
  PrepareWatch watch(regexes, steps);
  // The starts in the grammar's order, then first what the most tokens lead to.
  struct Next {
    uint64_t tokens;
    uint32_t order;
    PrepareWatch::Place place;
    bool operator<(const Next& other) const {
      return tokens != other.tokens ? tokens < other.tokens : order > other.order;
    }
  };
  std::priority_queue<Next> open;
  uint32_t order = 0;
  for (const CfgProgram::Terminal& terminal : terminals) {
    if (regex(terminal))
      open.push({UINT64_MAX, order++, {Machine::LexemeOf(terminal.start), terminal.lazy}});
  }
  while (!open.empty()) {
    const auto [lexeme, lazy] = open.top().place;
    open.pop();
    const Thread thread{lazy ? 1u : 0u, CfgMachine::kNoLimit, Machine::MakeKey(1, lexeme),
                        Continuations::kNone};
    const InsideKey key{TokenTrie::kRoot, thread.source, false, thread.key};
    if (inside_.contains(key)) continue;
    leaving_.clear();
    watch.Begin(lazy);
    const bool whole = WalkLexeme(RegexTables{regexes}, TokenTrie::kRoot, thread, leaving_, watch);
    TokenBits tokens = PackTouched();
    if (!whole) return;
    // Packed and sorted.
    watch.Spend(tokens.some.size() + tokens.all.size() + leaving_.size());
    Keep(key, std::move(tokens), GroupsOf(leaving_));
    for (const PrepareWatch::Place& place : watch.reached()) {
      // Not where the lexeme has ended for good.
      const Machine::Key after = Machine::MakeKey(1, place.lexeme);
      if (lazy ? regexes.Accepting(after) : regexes.Ends(after)) continue;
      open.push({watch.TokensTo(place), order++, place});
    }
  }
}

}  // namespace pawl
