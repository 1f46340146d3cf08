// The suffix automaton (Blumer et al., "The smallest automaton recognizing the subwords of a text",
// 1985), built token by token: one state for each set of places where a piece can end, at most
// twice as many as tokens, and at most three times as many edges.
//
// Memory. Nearly every state has one edge, and that one is the token after its first occurrence,
// which the text itself spells; so a state keeps only that edge's target. The others are in one
// array with an open hash table over it, chained by state so that they can be listed.
//
// Counts. How often each token came after a piece would have to be added up along all suffix links
// at every token. Only the longest context that was known and the few next to it are counted, as in
// compression by partial matching (Moffat's update exclusion, 1990): those are the ones that
// predict.
#include "src/decode/draft/suffix_automaton.h"

#include <algorithm>
#include <utility>

namespace pawl {
namespace {

constexpr int kCounted = 4;  // contexts for each token

// Vectors that double take twice what they hold just after they grew.
template <typename T>
void PushSlowly(std::vector<T>& vector, const T& value) {
  if (vector.size() == vector.capacity()) {
    vector.reserve(vector.capacity() < 64 ? 64 : vector.capacity() + vector.capacity() / 4);
  }
  vector.push_back(value);
}

}  // namespace

SuffixAutomaton::SuffixAutomaton() {
  states_.resize(1);
  edges_.resize(1);
  table_.assign(16, 0);
}

uint64_t SuffixAutomaton::Hash(uint32_t state, TokenId token) {
  uint64_t h = (uint64_t{state} << 32 | static_cast<uint32_t>(token)) * 0x9e3779b97f4a7c15u;
  h ^= h >> 32;
  return h * 0xd6e8feb86659fd93u >> 20;
}

uint32_t SuffixAutomaton::FindExtra(uint32_t state, TokenId token) const {
  if (states_[state].edges == 0) return 0;
  for (size_t i = Hash(state, token) % table_.size();; i = i + 1 == table_.size() ? 0 : i + 1) {
    const uint32_t e = table_[i];
    if (e == 0 || (edges_[e].state == state && edges_[e].token == token)) return e;
  }
}

uint32_t* SuffixAutomaton::Find(uint32_t state, TokenId token, uint32_t** count) {
  State& s = states_[state];
  if (s.next != 0 && text_[s.after] == token) {
    *count = &s.count;
    return &s.next;
  }
  const uint32_t e = FindExtra(state, token);
  if (e == 0) return nullptr;
  *count = &edges_[e].count;
  return &edges_[e].target;
}

uint32_t SuffixAutomaton::Target(uint32_t state, TokenId token) const {
  const State& s = states_[state];
  if (s.next != 0 && text_[s.after] == token) return s.next;
  const uint32_t e = FindExtra(state, token);
  return e == 0 ? 0 : edges_[e].target;
}

void SuffixAutomaton::GrowTable() {
  std::vector<uint32_t> table(table_.size() + table_.size() / 2, 0);
  for (uint32_t e = 1; e < edges_.size(); ++e) {
    size_t i = Hash(edges_[e].state, edges_[e].token) % table.size();
    while (table[i] != 0) i = i + 1 == table.size() ? 0 : i + 1;
    table[i] = e;
  }
  table_.swap(table);
}

void SuffixAutomaton::AddExtra(uint32_t state, TokenId token, uint32_t target, uint32_t count) {
  if (edges_.size() * 4 >= table_.size() * 3) GrowTable();
  const auto e = static_cast<uint32_t>(edges_.size());
  PushSlowly(edges_, {state, token, target, count, states_[state].edges});
  states_[state].edges = e;
  size_t i = Hash(state, token) % table_.size();
  while (table_[i] != 0) i = i + 1 == table_.size() ? 0 : i + 1;
  table_[i] = e;
}

// `at`: where the token stands.
void SuffixAutomaton::Add(uint32_t state, TokenId token, uint32_t at, uint32_t target,
                          uint32_t count) {
  State& s = states_[state];
  if (s.next != 0 || s.after != at) return AddExtra(state, token, target, count);
  s.next = target;
  s.count = count;
}

uint32_t SuffixAutomaton::Clone(uint32_t state, uint32_t length) {
  const auto clone = static_cast<uint32_t>(states_.size());
  State copy = states_[state];
  copy.length = length;
  const uint32_t edges = std::exchange(copy.edges, 0);
  PushSlowly(states_, copy);
  for (uint32_t e = edges; e != 0; e = edges_[e].sibling) {
    const Edge edge = edges_[e];
    AddExtra(clone, edge.token, edge.target, edge.count);
  }
  states_[state].link = clone;
  return clone;
}

void SuffixAutomaton::Append(TokenId token) {
  try {
    Extend(token);
  } catch (...) {
    Clear();  // what is half linked must not be walked
    throw;
  }
}

void SuffixAutomaton::Clear() noexcept {
  text_.clear();
  states_.resize(1);
  states_[kRoot] = {};
  edges_.resize(1);
  std::fill(table_.begin(), table_.end(), 0);
  last_ = kRoot;
}

void SuffixAutomaton::Extend(TokenId token) {
  const auto at = static_cast<uint32_t>(text_.size());
  PushSlowly(text_, token);
  const auto made = static_cast<uint32_t>(states_.size());
  State fresh;
  fresh.length = states_[last_].length + 1;
  fresh.after = at + 1;
  PushSlowly(states_, fresh);

  uint32_t p = last_;
  last_ = made;
  uint32_t* target = nullptr;
  uint32_t* count = nullptr;
  for (;;) {
    target = Find(p, token, &count);
    if (target != nullptr) break;
    Add(p, token, at, made, 1);
    if (p == kRoot) return;  // the link is the root
    p = states_[p].link;
  }
  const uint32_t q = *target;
  ++*count;
  for (uint32_t shorter = p, i = 1; i < kCounted && shorter != kRoot; ++i) {
    shorter = states_[shorter].link;
    if (Find(shorter, token, &count) != nullptr) ++*count;
  }
  if (states_[q].length == states_[p].length + 1) {
    states_[made].link = q;
    return;
  }
  const uint32_t clone = Clone(q, states_[p].length + 1);
  states_[made].link = clone;
  for (;;) {
    target = Find(p, token, &count);
    if (target == nullptr || *target != q) break;
    *target = clone;
    if (p == kRoot) break;
    p = states_[p].link;
  }
}

SuffixAutomaton::Match SuffixAutomaton::Longest() const { return Shorter({last_, 0}); }

SuffixAutomaton::Match SuffixAutomaton::Next(Match at, TokenId token) const {
  for (;;) {
    const uint32_t target = Target(at.state, token);
    if (target != 0) return {target, at.length + 1};
    if (at.state == kRoot) return {};
    at = Shorter(at);
  }
}

int64_t SuffixAutomaton::bytes() const {
  return static_cast<int64_t>(text_.capacity() * sizeof(TokenId) +
                              states_.capacity() * sizeof(State) +
                              edges_.capacity() * sizeof(Edge) + table_.capacity() * 4);
}

std::string SuffixAutomaton::Check() const {
  const size_t n = text_.size();
  if (states_.size() > std::max<size_t>(2, 2 * n)) return "too many states";
  size_t edges = 0;
  for (uint32_t s = 0; s < states_.size(); ++s) {
    const State& state = states_[s];
    const std::string name = "state " + std::to_string(s);
    if (s != kRoot && states_[state.link].length >= state.length) return name + ": the link";
    if (state.after < state.length || state.after > n) return name + ": the first occurrence";
    if (state.next != 0 && state.after == n) return name + ": an edge beyond the text";
    std::vector<TokenId> seen;
    ForEachNext(s, [&](TokenId token, uint32_t count) {
      seen.push_back(token);
      if (count == 0 || count > n) seen.push_back(token);
      return true;
    });
    edges += seen.size();
    std::sort(seen.begin(), seen.end());
    if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) return name + ": its edges";
    for (const TokenId token : seen) {
      const uint32_t target = Target(s, token);
      const State& next = states_[target];
      if (target == 0) return name + ": an edge that is not found";
      // The longest piece and the token are a piece of the target: not longer than its longest,
      // longer than its link's.
      if (next.length < state.length + 1 || states_[next.link].length >= state.length + 1) {
        return name + ": the length of an edge's target";
      }
      // The first occurrences end in the same tokens.
      for (uint32_t i = 0; i < std::min<uint32_t>(state.length, 8); ++i) {
        if (text_[state.after - 1 - i] != text_[next.after - 2 - i]) {
          return name + ": the text before an edge";
        }
      }
      if (text_[next.after - 1] != token) return name + ": the token of an edge";
      // What an end can be followed by, the longer piece's followers are among.
      if (s != kRoot && Target(state.link, token) == 0) return name + ": the link lacks an edge";
    }
  }
  if (n > 0 && edges > 3 * n) return "too many edges";
  uint32_t at = kRoot;
  for (const TokenId token : text_) {
    at = Target(at, token);
    if (at == 0) return "the text is not read";
  }
  if (at != last_) return "the whole text is another state";
  return "";
}

}  // namespace pawl
