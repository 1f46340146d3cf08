// SuffixAutomaton: every piece of a text of tokens, found in the time that reading it takes, with
// what came after it and how often.
//
//   pawl::SuffixAutomaton text;
//   for (TokenId token : tokens) text.Append(token);
//   pawl::SuffixAutomaton::Match at = text.Longest();      // the end of the text, seen before
//   text.ForEachNext(at.state, [&](TokenId token, uint32_t count) { ... return true; });
//   at = text.Next(at, token);
#ifndef PAWL_SRC_DECODE_DRAFT_SUFFIX_AUTOMATON_H_
#define PAWL_SRC_DECODE_DRAFT_SUFFIX_AUTOMATON_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pawl/vocabulary.h"

namespace pawl {

// One thread at a time; const methods from any number while no thread appends. At most 2^30 tokens.
class SuffixAutomaton {
 public:
  static constexpr uint32_t kRoot = 0;  // the empty piece
  // A piece of the text: the last `length` tokens that led to `state`.
  struct Match {
    uint32_t state = kRoot;
    uint32_t length = 0;
  };

  SuffixAutomaton();
  // Any number but INT32_MIN. When memory runs out the text is empty afterwards: no Match of before
  // may be used.
  void Append(TokenId token);
  // The longest end of the text that also stands somewhere before.
  Match Longest() const;
  // The longest end of what was matched and `token` that the text has.
  Match Next(Match at, TokenId token) const;
  // Its longest end that stands in other places too: the next shorter context.
  Match Shorter(Match at) const {
    const uint32_t link = states_[at.state].link;
    return {link, states_[link].length};
  }
  // What came after the pieces of a state, with counts, until `visit` returns false. The count is
  // of the times that this was the longest context known, or among the few next to it.
  template <typename Visit>
  void ForEachNext(uint32_t state, const Visit& visit) const {
    const State& s = states_[state];
    if (s.next != 0 && !visit(text_[s.after], s.count)) return;
    for (uint32_t e = s.edges; e != 0; e = edges_[e].sibling) {
      if (!visit(edges_[e].token, edges_[e].count)) return;
    }
  }

  size_t size() const { return text_.size(); }
  std::span<const TokenId> tokens() const { return text_; }
  int64_t bytes() const;
  // What does not add up, or "". O(size * log). For tests.
  std::string Check() const;

 private:
  struct State {
    uint32_t length = 0;  // of its longest piece
    uint32_t link = 0;    // the state of the longest end that is another state's
    uint32_t after = 0;   // the token after its first occurrence: text_[after]
    uint32_t next = 0;    // the state after that token; 0: not known yet
    uint32_t count = 0;   // of that token
    uint32_t edges = 0;   // all other tokens
  };
  struct Edge {
    uint32_t state = 0;
    TokenId token = 0;
    uint32_t target = 0, count = 0;
    uint32_t sibling = 0;
  };

  void Extend(TokenId token);
  void Clear() noexcept;
  // The target and the count of the edge, nullptr without one.
  uint32_t* Find(uint32_t state, TokenId token, uint32_t** count);
  uint32_t Target(uint32_t state, TokenId token) const;
  uint32_t FindExtra(uint32_t state, TokenId token) const;
  void Add(uint32_t state, TokenId token, uint32_t at, uint32_t target, uint32_t count);
  void AddExtra(uint32_t state, TokenId token, uint32_t target, uint32_t count);
  uint32_t Clone(uint32_t state, uint32_t length);
  static uint64_t Hash(uint32_t state, TokenId token);
  void GrowTable();

  std::vector<TokenId> text_;
  std::vector<State> states_;
  std::vector<Edge> edges_;      // [0] is none
  std::vector<uint32_t> table_;  // open addressing over edges_; 0: free
  uint32_t last_ = 0;            // the state of the whole text
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_SUFFIX_AUTOMATON_H_
