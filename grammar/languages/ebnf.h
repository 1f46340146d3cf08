// EBNF as XGrammar reads it (ReadEbnf), and GBNF as llama.cpp reads it (ReadGbnf).
//
// ReadEbnf: grammars in the EBNF of XGrammar.
//
//   Result<GrammarIr> ir = ReadEbnf(R"(
//     root ::= expr ("=" expr)*
//     expr ::= term ([-+*/] term)*
//     term ::= [0-9]+ | "(" expr ")"
//   )", {});
//
// The language is that of the grammar as mathematics has it (grammar_ir.h). docs/grammars.md
// describes the notation.
//
// Errors have the place "line:column" (columns count characters): kInvalid "expected X, found Y",
// rules that are defined twice or never; kUnsupported for rule options without a meaning here;
// kLimit for a limit of the options.
//
// Thread safety: no shared state.
#ifndef PAWL_GRAMMAR_LANGUAGES_EBNF_H_
#define PAWL_GRAMMAR_LANGUAGES_EBNF_H_

#include <string_view>

#include "grammar/cfg/grammar_ir.h"
#include "grammar/languages/language_options.h"
#include "pawl/result.h"

namespace pawl {

Result<GrammarIr> ReadEbnf(std::string_view text, const LanguageOptions& options);

// ReadGbnf: grammars in the GBNF of llama.cpp.
//
//   Result<GrammarIr> ir = ReadGbnf("root ::= (\"- \" item)+\nitem ::= [^\\n]+ \"\\n\"\n", {});
//
// The language is that of the grammar as mathematics has it (grammar_ir.h): left recursion is as
// good as right. docs/grammars.md describes the notation.
//
// Errors as for ReadEbnf. Thread safety: no shared state.

Result<GrammarIr> ReadGbnf(std::string_view text, const LanguageOptions& options);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_EBNF_H_
