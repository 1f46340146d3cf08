// ReadGbnf: grammars in the GBNF of llama.cpp.
//
//   Result<GrammarIr> ir = ReadGbnf("root ::= (\"- \" item)+\nitem ::= [^\\n]+ \"\\n\"\n", {});
//
// The language is that of the grammar as mathematics has it (grammar_ir.h): left recursion is as
// good as right. docs/grammars.md describes the notation.
//
// Errors as for ReadEbnf (ebnf.h). Thread safety: no shared state.
#ifndef PAWL_GRAMMAR_LANGUAGES_GBNF_H_
#define PAWL_GRAMMAR_LANGUAGES_GBNF_H_

#include <string_view>

#include "grammar/cfg/grammar_ir.h"
#include "grammar/languages/language_options.h"
#include "pawl/result.h"

namespace pawl {

Result<GrammarIr> ReadGbnf(std::string_view text, const LanguageOptions& options);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_GBNF_H_
