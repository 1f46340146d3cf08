// Fill in the middle: how the known code models want a prefix and a suffix, and prompts in which a
// client has put the markers itself.
#ifndef PAWL_PLUGINS_MONITORS_FIM_H_
#define PAWL_PLUGINS_MONITORS_FIM_H_

#include <optional>
#include <string>
#include <string_view>

#include "src/text/tokenizer.h"

namespace pawl::monitors {

struct FimTemplate {
  const char* model;   // "qwen", "starcoder", ...
  const char* prefix;  // the marker before the prefix
  const char* suffix;  // before the suffix
  const char* middle;  // before what the model writes; empty: nothing stands there
  bool suffix_first;   // suffix, then prefix
};

// The template whose markers are tokens of the tokenizer; nullptr: none.
const FimTemplate* FindFimTemplate(const Tokenizer& tokenizer);
// The prompt in the template's form; its markers are to be encoded as special tokens.
std::string FimPrompt(const FimTemplate& form, std::string_view prefix, std::string_view suffix);

struct FimParts {
  std::string prefix;
  std::string suffix;
  const FimTemplate* form = nullptr;
};
// The parts of a prompt that a client wrote in one of the known forms; nullopt: it has no such
// markers.
std::optional<FimParts> ParseFimPrompt(std::string_view prompt);

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_FIM_H_
