// Lark grammars in the dialect of llguidance, to the GrammarIr.
//
//   LanguageOptions options;
//   options.json_schema = ...;                         // for %json { ... }
//   Result<GrammarIr> ir = ReadLark(R"(
//       start: "call " NAME "(" [args] ")"
//       args: NUMBER ("," NUMBER)*
//       NAME: /[a-z]+/
//       %import common.NUMBER
//       %ignore / +/
//   )", options);
//
// The whole text is the rule `start`; LanguageOptions::root is not asked. docs/lark.md describes
// the dialect, and where it differs from llguidance's.
//
// Errors have the place "line:column" (columns count code points):
//   kInvalid      no such grammar: syntax, names that are not defined or defined twice
//   kUnsupported  Lark or llguidance has it, this reader does not
//   kLimit        too large, too deep, or too many instances of a parametric rule
// Thread safety: none needed, nothing is shared.
#ifndef PAWL_GRAMMAR_LANGUAGES_LARK_H_
#define PAWL_GRAMMAR_LANGUAGES_LARK_H_

#include <span>
#include <string>
#include <string_view>

#include "grammar/cfg/grammar_ir.h"
#include "grammar/languages/language_options.h"
#include "pawl/result.h"

namespace pawl {

Result<GrammarIr> ReadLark(std::string_view text, const LanguageOptions& options);

// Several grammars that refer to each other as @name; the first is the whole text's. Errors in
// others have the place "@name line:column".
struct LarkGrammar {
  std::string name;
  std::string text;
  bool is_json_schema = false;
};
Result<GrammarIr> ReadLark(std::span<const LarkGrammar> grammars, const LanguageOptions& options);

// The same as JSON: {"grammars": [{"name": "...", "lark_grammar": "..."}, {"json_schema": ...}]}.
Result<GrammarIr> ReadLlguidance(std::string_view json_text, const LanguageOptions& options);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_LARK_H_
