// AddedTokens: the "added_tokens" of a tokenizer.json, which are found in the text before anything
// else is done to it. Immutable after Build; thread-safe.
#ifndef PAWL_SRC_TEXT_ADDED_TOKENS_H_
#define PAWL_SRC_TEXT_ADDED_TOKENS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/vocabulary.h"
#include "src/text/tokenizer.h"

namespace pawl {

struct AddedToken {
  TokenId id = kNoToken;
  std::string content;  // as the file writes it
  std::string
      form;  // what is looked for and what it decodes to: the content, normalized if `normalized`
  bool special = false;
  bool normalized = false;   // looked for after normalizing, else before
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // takes the white space after it along
};

class AddedTokenMatcher {
 public:
  struct Part {
    std::string_view text;
    TokenId token = kNoToken;  // kNoToken: ordinary text
  };

  // `form`: what is looked for.
  void Add(const AddedToken& token, std::string_view form);
  void Add(const AddedToken& token) { Add(token, token.form); }
  bool empty() const { return tokens_.empty(); }

  // Cuts `text` at its leftmost, longest added tokens. Without `parse_special` special tokens are
  // left as text, and so is all that they cover.
  void Split(std::string_view text, bool parse_special, std::vector<Part>& out) const {
    Split(text, {.special = parse_special}, out);
  }

  struct Filter {
    bool special = true;                    // special tokens are looked for
    bool ordinary = true;                   // those that are not are, too
    std::span<const TokenId> control = {};  // counted as special
    std::span<const TextRange> data = {};   // nothing is found that touches these
  };
  // Cuts the text at the tokens that pass.
  void Split(std::string_view text, const Filter& filter, std::vector<Part>& out) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, int32_t>> next;  // sorted by byte
    int32_t token = -1;                                   // index into tokens_
  };
  int32_t Child(int32_t node, unsigned char byte) const;
  // The longest token at the front of `text` that passes: its index and length; -1 when there is
  // none.
  static bool IsSpecial(const AddedToken& token, const Filter& filter);
  std::pair<int32_t, size_t> Longest(std::string_view text, const Filter& filter) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_{1};
};

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_ADDED_TOKENS_H_
