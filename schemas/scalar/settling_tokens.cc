// The tokens make a trie by the classes of characters that the program tells apart, which has fewer
// nodes than that of their bytes. For a state of a regex one walk over that trie finds the nodes
// that settle the regex: what is settled stays settled, so each stands for its whole subtree, a
// range of tokens.
//
// A mask takes the ranges of all regexes. A range that ends the search by itself (a second
// alternative of a oneOf is fulfilled, say) is taken out of the mask. The others matter together:
// ranges of subtrees lie in one another or apart, so in the order of their beginnings a stack has
// those that a token is in, and the search is asked about each distinct stack.
#include "schemas/scalar/settling_tokens.h"

#include <algorithm>

#include "schemas/limits.h"
#include "schemas/scalar/json_string.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {

struct SettlingTokens::Builder {
  struct Draft {
    uint16_t cls;
    std::vector<uint32_t> children;
    std::vector<TokenId> tokens;
  };
  struct At {
    uint32_t draft = 0;
    char32_t code = 0;  // bits of the character begun
  };

  Builder(const StringProgram& string_program, const TokenTrie& byte_trie,
          const StringTokens& string_tokens)
      : program(string_program), trie(byte_trie), tokens(string_tokens), leads(byte_trie.size()) {
    drafts.push_back({0, {}, {}});
  }

  uint32_t Child(uint32_t draft, int cls) {
    const uint64_t key = uint64_t{draft} << 16 | static_cast<uint64_t>(cls);
    const auto [it, fresh] = children.try_emplace(key, static_cast<uint32_t>(drafts.size()));
    if (fresh) {
      drafts[draft].children.push_back(it->second);
      drafts.push_back({static_cast<uint16_t>(cls), {}, {}});
    }
    return it->second;
  }

  void Run() {
    const auto nodes = trie.nodes();
    std::vector<At> stack(static_cast<size_t>(trie.max_depth()) + 1);
    std::vector<uint32_t> path(stack.size());  // of depth 1, 2, ...
    for (uint32_t i = 0; i < nodes.size();) {
      StopScope::Step();
      const TokenTrie::Node& node = nodes[i];
      path[node.depth - 1u] = i;
      const auto lead = [&](uint32_t end) {
        for (size_t d = 0; d < node.depth; ++d) leads[path[d]] = true;
        for (uint32_t n = i; n < end; ++n) leads[n] = true;
      };
      At at = stack[node.depth - 1u];
      if (node.byte == '"' || node.byte == '\\') {
        lead(node.byte == '"' ? i + 1 : node.end);
        i = node.end;
        continue;
      }
      if (node.byte < 0x20 || tokens.IsOutside(i)) {
        i = node.end;
        continue;
      }
      if (node.byte < 0x80) {
        at.code = node.byte;
      } else if (node.byte >= 0xC0) {
        const int missing = node.byte >= 0xF0 ? 3 : node.byte >= 0xE0 ? 2 : 1;
        at.code = node.byte & (0x3Fu >> missing);
      } else {
        at.code = at.code << 6 | (node.byte & 0x3Fu);
      }
      if (tokens.AtBoundary(i)) {
        at.draft = Child(at.draft, program.ClassOf(at.code));
        trie.ForTokens(node, [&](TokenId t) { drafts[at.draft].tokens.push_back(t); });
      } else if (node.token != kNoToken) {
        lead(i + 1);
      }
      stack[node.depth] = at;
      ++i;
    }
  }

  const StringProgram& program;
  const TokenTrie& trie;
  const StringTokens& tokens;
  std::vector<Draft> drafts;
  std::unordered_map<uint64_t, uint32_t> children;
  std::vector<bool> leads;
};

SettlingTokens::SettlingTokens(StringProgram& program, const TokenTrie& trie,
                               const StringTokens& tokens)
    : program_(program), tokens_(tokens) {
  Builder builder(program, trie, tokens);
  builder.Run();
  struct Open {
    uint32_t draft, node;
    size_t next;  // child to look at
  };
  std::vector<Open> open;
  const auto enter = [&](uint32_t draft) {
    const Builder::Draft& d = builder.drafts[draft];
    nodes_.push_back(
        {0, static_cast<uint32_t>(order_.size()), static_cast<uint16_t>(open.size()), d.cls});
    max_depth_ = std::max(max_depth_, nodes_.back().depth);
    order_.insert(order_.end(), d.tokens.begin(), d.tokens.end());
    open.push_back({draft, static_cast<uint32_t>(nodes_.size() - 1), 0});
  };
  enter(0);
  while (!open.empty()) {
    Open& top = open.back();
    const std::vector<uint32_t>& children = builder.drafts[top.draft].children;
    if (top.next < children.size()) {
      enter(children[top.next++]);
      continue;
    }
    nodes_[top.node].end = static_cast<uint32_t>(nodes_.size());
    open.pop_back();
  }
  others_ = ClassTrie::StepsOf(builder.leads, trie);
  for (const TokenId token : order_) {
    const auto word = static_cast<size_t>(token) >> 5;
    if (word >= all_.size()) all_.resize(word + 1);
    all_[word] |= 1u << (token & 31);
  }
}

bool SettlingTokens::Knows(const StringProgram& program, const uint32_t* words) {
  return program.OnlyRegexesLeft(words) && program.regexes() <= limits::kSettlingRegexes;
}

const std::vector<SettlingTokens::Event>& SettlingTokens::EventsFrom(uint16_t regex,
                                                                     uint32_t state) {
  const uint64_t key = uint64_t{regex} << 32 | state;
  if (const auto it = known_.find(key); it != known_.end()) return it->second;
  std::vector<Event> events;
  std::vector<uint32_t> stack(size_t{max_depth_} + 1);
  stack[0] = state;
  uint64_t visited = 0;
  for (uint32_t i = 1; i < nodes_.size(); ++visited) {
    StopScope::Step();
    const Node& node = nodes_[i];
    const uint32_t next = program_.StepRegex(regex, stack[node.depth - 1u], node.cls);
    const int settled = program_.SettledRegex(regex, next);
    if (settled >= 0) {
      if (const uint32_t last = Place(node.end); last > node.place)
        events.push_back({node.place, last, regex, settled == 1});
      i = node.end;
      continue;
    }
    stack[node.depth] = next;
    ++i;
  }
  program_.spending().nodes += visited;
  events_ += events.size();
  return known_.emplace(key, std::move(events)).first->second;
}

bool SettlingTokens::Ends(StringSearch& search, const uint32_t* words,
                          std::span<const Event> settled) {
  std::vector<uint32_t> after(words, words + program_.width());
  for (const Event& event : settled) program_.SettleRegex(after.data(), event.regex, event.truth);
  if (program_.QuietKey(after.data())) return !search.Live(program_.KeepKey(after.data()));
  return search.Hopeless(after.data());
}

void SettlingTokens::Clear(const Event& event, uint32_t* mask) const {
  for (uint32_t place = event.first; place < event.last; ++place) {
    const TokenId token = order_[place];
    mask[static_cast<size_t>(token) >> 5] &= ~(1u << (token & 31));
  }
}

bool SettlingTokens::Fill(StringSearch& search, const uint32_t* words, uint32_t* mask) {
  if (crowded_) return false;
  std::vector<uint32_t> allowed = all_;
  std::vector<Event> open;
  for (uint16_t regex = 0; regex < program_.regexes(); ++regex) {
    const uint32_t state = program_.RegexState(words, regex);
    if (program_.SettledRegex(regex, state) >= 0) continue;
    crowded_ = open.size() > limits::kSettlingEvents;
    if (events_ > limits::kSettlingEvents || crowded_) {
      known_.clear();
      events_ = 0;
    }
    if (crowded_) return false;
    int ends[2] = {-1, -1};  // by truth, unknown
    for (const Event& event : EventsFrom(regex, state)) {
      StopScope::Step();
      int& alone = ends[event.truth ? 1 : 0];
      if (alone < 0) alone = Ends(search, words, {&event, 1}) ? 1 : 0;
      if (alone == 1) {
        Clear(event, allowed.data());
      } else {
        open.push_back(event);
      }
    }
  }
  std::ranges::sort(open, [](const Event& a, const Event& b) {
    return a.first != b.first ? a.first < b.first : a.last > b.last;
  });
  std::map<std::vector<std::pair<uint16_t, bool>>, bool> known;
  std::vector<Event> stack;
  for (const Event& event : open) {
    StopScope::Step();
    while (!stack.empty() && stack.back().last <= event.first) stack.pop_back();
    stack.push_back(event);
    if (stack.size() == 1) continue;
    std::vector<std::pair<uint16_t, bool>> signature;
    for (const Event& one : stack) signature.emplace_back(one.regex, one.truth);
    std::ranges::sort(signature);
    const auto [it, fresh] = known.try_emplace(std::move(signature), false);
    if (fresh) it->second = Ends(search, words, stack);
    if (it->second) Clear(event, allowed.data());
  }
  for (size_t word = 0; word < allowed.size(); ++word) mask[word] |= allowed[word];
  return true;
}

}  // namespace pawl::schema
