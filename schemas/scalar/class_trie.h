// ClassTrie: the tokens of a vocabulary as strings of character classes (CharClass).
//
// As pieces of a string, "horse", "where" and thousands of others are the same five lower-case
// letters to nearly every pattern. Told apart by classes alone, the tokens make a trie of some ten
// thousand nodes where their bytes take hundreds of thousands; a pattern that restricts a string
// but leaves it wide is walked on that.
//
// Plain tokens are those that stay inside a string and hold nothing but characters with a class;
// the last one may be incomplete. Tokens with a quote, an escape or a character that IsSetApart are
// intricate: few, and left to the trie of bytes. All others no string has.
#ifndef PAWL_SCHEMAS_SCALAR_CLASS_TRIE_H_
#define PAWL_SCHEMAS_SCALAR_CLASS_TRIE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/masks/token_trie.h"
#include "pawl/vocabulary.h"

namespace pawl::schema {

// Classes of characters that most regular expressions treat alike. Patterns speak of letters,
// digits and single punctuation marks. The tokens of a vocabulary, told apart only that far, are
// some thousand kinds, which is what makes wide masks cheap.

// What a JSON string may hold as itself: all but quotes, backslashes and control characters, which
// have no class.
using CharClass = uint8_t;
inline constexpr CharClass kLowerClass = 0, kUpperClass = 1, kDigitClass = 2;
inline constexpr CharClass kBeyondClass = 3;  // any code point beyond ASCII that is not SetApart
inline constexpr CharClass kFirstSingle = 4;  // from here on one ASCII character each
inline constexpr int kCharClasses = 36;

// Stands for itself in a JSON string.
inline bool IsPlainAscii(uint8_t byte) {
  return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

// REQUIRES: IsPlainAscii(byte).
inline CharClass ClassOfAscii(uint8_t byte) {
  if (byte >= 'a' && byte <= 'z') return kLowerClass;
  if (byte >= 'A' && byte <= 'Z') return kUpperClass;
  if (byte >= '0' && byte <= '9') return kDigitClass;
  const int skipped =
      (byte > '"') + (byte > '9') * 10 + (byte > 'Z') * 26 + (byte > '\\') + (byte > 'z') * 26;
  return static_cast<CharClass>(kFirstSingle + byte - 0x20 - skipped);
}

// Beyond ASCII, but not alike: white space and line ends in the sense of \s and '.'.
inline bool IsSetApart(char32_t c) {
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000 || c == 0xFEFF;
}
// For code points lo..hi. Of the runs of such code points none is longer than that.
inline constexpr char32_t kLongestApart = 11;
inline bool AllSetApart(char32_t lo, char32_t hi) {
  if (hi - lo >= kLongestApart) return false;
  for (char32_t c = lo; c <= hi; ++c) {
    if (!IsSetApart(c)) return false;
  }
  return true;
}
inline bool AnySetApart(char32_t lo, char32_t hi) {
  for (const char32_t c : {0x85, 0xA0, 0x1680, 0x2000, 0x2028, 0x202F, 0x205F, 0x3000, 0xFEFF}) {
    if (c <= hi && (c >= lo || (c == 0x2000 && lo <= 0x200A) || (c == 0x2028 && lo == 0x2029)))
      return true;
  }
  return false;
}

// Immutable; get it as TableOf<ClassTrie>(vocabulary).
class ClassTrie {
 public:
  explicit ClassTrie(const Vocabulary& vocabulary);

  // Depth first, as in TokenTrie; the root is node 0, with depth 0.
  struct Node {
    uint32_t end;
    uint32_t place;    // the first token of the subtree, in order(); those that end here come first
    uint64_t below;    // classes of the nodes below, as bits
    uint32_t spelled;  // the one node of the trie of bytes that all these tokens go through
    uint16_t depth;    // characters
    CharClass like;
  };
  static constexpr uint32_t kManySpellings = UINT32_MAX - 1;  // no node; the root has TokenTrie's
  std::span<const Node> nodes() const { return nodes_; }
  uint16_t max_depth() const { return max_depth_; }
  // Places of the tokens that end at the node, and of all in its subtree.
  uint32_t EndsHere(uint32_t node) const { return ends_here_[node]; }
  uint32_t Place(uint32_t node) const {
    return node < nodes_.size() ? nodes_[node].place : static_cast<uint32_t>(order_.size());
  }
  // The plain tokens, those of a node by their bytes.
  std::span<const TokenId> order() const { return order_; }
  // Sets the bits of the tokens at first ... last - 1 of the order.
  void SetBits(uint32_t first, uint32_t last, uint32_t* words) const {
    ranges_.SetBits(order_, first, last, words);
  }

  // The nodes of the trie of bytes that lead to the intricate tokens, up to the quote.
  struct Step {
    uint32_t node;
    uint32_t after;  // the first step behind the node's subtree
  };
  std::span<const Step> intricate() const { return intricate_; }
  // The marked nodes of a trie of bytes. REQUIRES: the nodes above a marked one are marked.
  static std::vector<Step> StepsOf(const std::vector<bool>& marked, const TokenTrie& trie);

 private:
  struct Builder;
  void MakeCuts(int words);

  std::vector<Node> nodes_;
  std::vector<uint32_t> ends_here_;
  std::vector<TokenId> order_;
  uint16_t max_depth_ = 0;
  std::vector<Step> intricate_;
  TokenRanges ranges_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_CLASS_TRIE_H_
