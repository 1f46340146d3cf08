// What every grammar language is given in addition to its text.
#ifndef PAWL_GRAMMAR_LANGUAGES_LANGUAGE_OPTIONS_H_
#define PAWL_GRAMMAR_LANGUAGES_LANGUAGE_OPTIONS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "grammar/cfg/grammar_ir.h"
#include "pawl/result.h"

namespace pawl {

struct LanguageOptions {
  // Compiles a JSON Schema that stands in a grammar; empty: such grammars are refused.
  std::function<Result<GrammarIr::Automaton>(std::string_view json_schema_text)> json_schema;
  size_t max_bytes = size_t{4} << 20;
  int max_nesting = 250;
  // Lark as XGrammar reads it: ignored text may follow the last terminal too; the text of stop= is
  // written; a text of anything up to a fixed string may also go on without it to the end.
  bool lark_as_xgrammar = false;
  // The rule that the whole text is, where the language leaves that open.
  std::string root = "root";
};

// A remark for errors in a text that was read as the wrong language.

// For the end of an error's message: that the grammar looks like EBNF or GBNF where it was read as
// Lark, or the reverse; empty where it does not.
std::string_view LanguageHint(std::string_view text, bool read_as_lark);

// The text without a byte order mark at its front.
std::string_view WithoutByteOrderMark(std::string_view text);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_LANGUAGE_OPTIONS_H_
