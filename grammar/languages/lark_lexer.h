// The words of a Lark grammar. Internal to grammar/languages.
#ifndef PAWL_GRAMMAR_LANGUAGES_LARK_LEXER_H_
#define PAWL_GRAMMAR_LANGUAGES_LARK_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl::lark {

enum class Word : uint8_t {
  kRule,      // a lower-case name; ! and ? in front of it are part of it
  kTerminal,  // an upper-case name
  kString,    // "..." with its flag
  kRegex,     // /.../ with its flags
  kNumber,
  kSpecialToken,  // <...>
  kGrammarRef,    // @name
  kKeyword,       // %name
  kJson,          // the JSON behind %json, %regex, %llguidance
  kSign,          // : :: = , . .. -> ( ) { } [ ] ~ | & _ + * ?
  kNewline,       // one or more
  kEnd
};

struct Token {
  Word word = Word::kEnd;
  uint32_t begin = 0, end = 0;  // bytes of the text
};

// From bytes to "line:column". Columns count code points; both start at 1.
class SourceMap {
 public:
  explicit SourceMap(std::string_view text);
  std::string Place(size_t at) const;

 private:
  size_t CodepointsBefore(size_t at) const;

  std::string_view text_;
  std::vector<size_t> lines_;   // where each begins
  std::vector<size_t> counts_;  // code points before every so many bytes
};

// The whole text, with a kEnd behind it. Errors have the place "line:column".
Result<std::vector<Token>> Tokenize(std::string_view text, const SourceMap& map);

// "'->'", "the name 'foo'", "the end of the line": for messages.
std::string Describe(const Token& token, std::string_view text);

}  // namespace pawl::lark

#endif  // PAWL_GRAMMAR_LANGUAGES_LARK_LEXER_H_
