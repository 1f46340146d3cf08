// SettlingTokens: which tokens settle a condition on a string, condition by condition.
//
// Under many patterns the product of all has a state for nearly every text, so a mask cannot be
// found by states that are remembered. Each pattern by itself has few. For each of them, and each
// of its states, the tokens that settle the pattern (whatever follows, it is fulfilled, or cannot
// be) are found once. A mask is then all tokens but those that settle too much.
#ifndef PAWL_SCHEMAS_SCALAR_SETTLING_TOKENS_H_
#define PAWL_SCHEMAS_SCALAR_SETTLING_TOKENS_H_

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/masks/token_trie.h"
#include "schemas/scalar/class_trie.h"
#include "schemas/scalar/string_search.h"
#include "schemas/scalar/string_tokens.h"

namespace pawl::schema {

// Of one search and one vocabulary. Not thread-safe.
class SettlingTokens {
 public:
  SettlingTokens(StringProgram& program, const TokenTrie& trie, const StringTokens& tokens);

  bool Is(const StringTokens& tokens) const { return &tokens == &tokens_; }
  // From the state with these words nothing but regexes settles anything, and they are not too
  // many. REQUIRES of Fill.
  static bool Knows(const StringProgram& program, const uint32_t* words);
  // Sets the bits of the tokens of whole characters after which `search` is not hopeless. False
  // where too many tokens settle something, for good: the mask is as it was.
  bool Fill(StringSearch& search, const uint32_t* words, uint32_t* mask);
  // The nodes of the trie of bytes that lead to all others: with quotes, escapes, parts of
  // characters.
  std::span<const ClassTrie::Step> others() const { return others_; }

  // States of conditions from which tokens were read so far.
  size_t known() const { return known_.size(); }
  size_t MemoryBytes() const {
    return HeapBytes(nodes_, order_, others_, all_) + known_.size() * 100 + events_ * sizeof(Event);
  }

 private:
  // Depth first, by the program's classes of characters; the root is node 0. Tokens that end at a
  // node come before those of its children.
  struct Node {
    uint32_t end;
    uint32_t place;  // of the first token of the subtree, in order_
    uint16_t depth;
    uint16_t cls;
  };
  // The tokens first ... last - 1 settle the condition.
  struct Event {
    uint32_t first, last;
    uint16_t regex;
    bool truth;
  };
  struct Builder;

  uint32_t Place(uint32_t node) const {
    return node < nodes_.size() ? nodes_[node].place : static_cast<uint32_t>(order_.size());
  }
  const std::vector<Event>& EventsFrom(uint16_t regex, uint32_t state);
  // Whether the search is over once all of these are settled as well.
  bool Ends(StringSearch& search, const uint32_t* words, std::span<const Event> settled);
  void Clear(const Event& event, uint32_t* mask) const;

  StringProgram& program_;
  const StringTokens& tokens_;
  std::vector<Node> nodes_;
  uint16_t max_depth_ = 0;
  std::vector<TokenId> order_;
  std::vector<ClassTrie::Step> others_;
  std::vector<uint32_t> all_;                               // the mask of order_
  std::unordered_map<uint64_t, std::vector<Event>> known_;  // by regex and state
  size_t events_ = 0;                                       // of known_
  bool crowded_ = false;                                    // there were too many
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_SETTLING_TOKENS_H_
