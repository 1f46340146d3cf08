// StringTokens: what the tokens of a vocabulary are as pieces of a JSON string, whatever the
// schema.
//
// Most masks are wide because a string may go on with nearly any token. Which tokens stay inside a
// string, how many code points they bring, and what is left of them behind a closing quote depends
// on the vocabulary alone; so it is found once, and a schema has only to say where it differs
// (string_walk.h).
#ifndef PAWL_SCHEMAS_SCALAR_STRING_TOKENS_H_
#define PAWL_SCHEMAS_SCALAR_STRING_TOKENS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/masks/token_trie.h"
#include "pawl/vocabulary.h"
#include "schemas/scalar/class_trie.h"
#include "schemas/scalar/json_string.h"
#include "src/base/sync.h"

namespace pawl::schema {

// The tokens below one node of the trie, read from there on as the inside of a free string.
class StringIndex {
 public:
  static constexpr uint16_t kOutside = 0xFFFF;
  // A token that holds the closing quote.
  struct Crossing {
    uint32_t order;  // its place in TokenTrie::order()
    uint32_t quote;  // the trie node of the quote
    TokenId token;
    uint32_t rest;    // what follows the quote: place in StringTokens::rests(), 0 for nothing
    uint16_t length;  // code points before the quote
    bool escaped;     // an escape before the quote
    bool intricate;   // what follows the quote may be a whole key of the same object
  };

  // Code points that the token at this place of the order begins; kOutside when it does not stay
  // inside the string. REQUIRES: first() <= order < last().
  uint16_t length(uint32_t order) const { return lengths_[order - first_]; }
  uint32_t first() const { return first_; }
  uint32_t last() const { return first_ + static_cast<uint32_t>(lengths_.size()); }
  // The words of a mask that hold the tokens that stay inside: (index, bits).
  std::span<const std::pair<uint32_t, uint32_t>> inside() const { return inside_; }
  // By order.
  std::span<const Crossing> crossings() const { return crossings_; }
  // The crossings with an escape, and the intricate ones: their places in crossings(), and the text
  // that they add to the string where that can be said.
  struct Special {
    uint32_t place;
    std::optional<std::string> text;
  };
  std::span<const Special> special() const { return special_; }
  // Those of the tokens first ... last - 1 of the order, as places in crossings().
  std::pair<uint32_t, uint32_t> CrossingsOf(uint32_t first, uint32_t last) const;

 private:
  friend class StringTokens;
  uint32_t first_ = 0;
  std::vector<uint16_t> lengths_;
  std::vector<std::pair<uint32_t, uint32_t>> inside_;
  std::vector<Crossing> crossings_;
  std::vector<Special> special_;
};

// Thread-safe. One for each spelling; get it as TableOf<SpelledStringTokens<...>>(vocabulary).
class StringTokens {
 public:
  StringTokens(const Vocabulary& vocabulary, StringSpelling spelling);

  // `node`: TokenTrie::kRoot, or one that an opening quote leads to after white space and brackets
  // alone. nullptr for others.
  const StringIndex* Below(uint32_t node) const;
  // Of a node of the trie, read from the root as the inside of a string: whether it ends a code
  // point, and whether no string has it inside.
  bool AtBoundary(uint32_t node) const { return places_[node] == Place::kBoundary; }
  bool IsOutside(uint32_t node) const { return places_[node] == Place::kOutside; }
  // Longest length() of all.
  uint16_t longest() const { return longest_; }
  const ClassTrie& classes() const { return classes_; }
  // Words of the mask of the tokens with length() <= most below the root.
  std::span<const uint32_t> AtMost(uint64_t most) const;
  // The distinct texts behind a closing quote as a trie, whose tokens are their places from 1 on.
  const TokenTrie& rests() const { return *rests_; }
  size_t rest_count() const { return rest_texts_.size(); }

 private:
  StringIndex Read(uint32_t node);
  void FindOpenings();

  const Vocabulary& vocabulary_;
  const StringSpelling spelling_;
  const ClassTrie& classes_;
  std::unordered_map<uint32_t, StringIndex> below_;
  std::vector<std::string> rest_texts_ = {""};
  std::unordered_map<std::string, uint32_t> rest_ids_ = {{"", 0}};
  std::unique_ptr<TokenTrie> rests_;
  enum class Place : uint8_t { kOutside, kPart, kBoundary };
  std::vector<Place> places_;  // by node
  uint16_t longest_ = 0;
  std::vector<TokenId> by_length_;  // that stay inside, shortest first
  std::vector<uint32_t> up_to_;     // by length: how many are shorter
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<std::vector<uint32_t>>> at_most_;
};

template <bool kCanonical, bool kAscii>
struct SpelledStringTokens : StringTokens {
  explicit SpelledStringTokens(const Vocabulary& vocabulary)
      : StringTokens(vocabulary, {kCanonical, kAscii}) {}
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_STRING_TOKENS_H_
