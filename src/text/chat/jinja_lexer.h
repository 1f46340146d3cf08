// The tokens of a chat template. Internal to src/text/chat.
#ifndef PAWL_SRC_TEXT_CHAT_JINJA_LEXER_H_
#define PAWL_SRC_TEXT_CHAT_JINJA_LEXER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl::jinja {

struct Token {
  enum class Kind {
    kText,         // outside of tags
    kOutputBegin,  // {{
    kOutputEnd,    // }}
    kTagBegin,     // {%
    kTagEnd,       // %}
    kName,
    kString,  // `text` is unescaped
    kInteger,
    kFloat,
    kOperator,  // `text` is the operator
    kEnd,       // of the template
  };
  Kind kind;
  std::string text;
  size_t offset;  // into the normalized source

  bool Is(std::string_view op) const { return kind == Kind::kOperator && text == op; }
  bool IsName(std::string_view name) const { return kind == Kind::kName && text == name; }
};

// Line ends become \n, and the last of them is left out, as transformers has it.
std::string NormalizedSource(std::string_view source);

// "line:column" of a byte, both from 1, columns in code points.
std::string PlaceOf(std::string_view source, size_t offset);

// The tokens of a normalized source, kEnd last. Errors: kInvalid with the place.
Result<std::vector<Token>> Tokenize(std::string_view source);

// How messages call a token: "'%}'", "a name", ...
std::string Describe(const Token& token);

}  // namespace pawl::jinja

#endif  // PAWL_SRC_TEXT_CHAT_JINJA_LEXER_H_
