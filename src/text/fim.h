// Fill in the middle: how the known code models want a prefix and a suffix, and prompts in which a
// client has put the markers itself.
//
//   const FimTemplate* form = FindFimTemplate(tokenizer);
//   Result<std::vector<TokenId>> prompt =
//       FimTokens(*form, tokenizer, {.prefix = "a(", .suffix = ")"});
#ifndef PAWL_SRC_TEXT_FIM_H_
#define PAWL_SRC_TEXT_FIM_H_

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/text/tokenizer.h"

namespace pawl {

struct FimTemplate {
  const char* model;   // "qwen", "starcoder", ...
  const char* prefix;  // the marker before the prefix
  const char* suffix;  // before the suffix
  const char* middle;  // before what the model writes; empty: nothing stands there
  bool suffix_first;   // suffix, then prefix
  // Before a repository's name and before a file's; empty: there are none.
  const char* repository = "";
  const char* file = "";
};

// The template whose markers are tokens of the tokenizer; nullptr: none.
const FimTemplate* FindFimTemplate(const Tokenizer& tokenizer);
// The prompt in the template's form; its markers are to be encoded as special tokens.
std::string FimPrompt(const FimTemplate& form, std::string_view prefix, std::string_view suffix);

struct FimInput {
  std::string_view prefix, suffix;
  std::span<const std::pair<std::string, std::string>> files = {};  // name, text: read before
  bool bos = false;  // begin with the tokenizer's begin-of-sequence token
  int max_tokens = std::numeric_limits<int>::max();  // the model's context
};
// The prompt as tokens. What stands in the texts never becomes a marker. Errors: as
// Tokenizer::EncodeWithin, for texts that are too long for `max_tokens`.
Result<std::vector<TokenId>> FimTokens(const FimTemplate& form, const Tokenizer& tokenizer,
                                       const FimInput& input);

struct FimParts {
  std::string prefix;
  std::string suffix;
  const FimTemplate* form = nullptr;
};
// The parts of a prompt that a client wrote in one of the known forms; nullopt: it has no such
// markers.
std::optional<FimParts> ParseFimPrompt(std::string_view prompt);

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_FIM_H_
