// PrintGrammar: a GrammarIr as the text of a grammar language.
//
//   Result<GrammarIr> ir = ReadGbnf(text, {});
//   Result<std::string> ebnf = PrintGrammar(*ir, GrammarLanguage::kEbnf);
//
// What is printed means what the IR means: reading it again gives a grammar of the same texts.
// Rules keep their order (the root first) and their names as far as the language allows; the root
// is "root" in EBNF and GBNF, "start" in Lark. Rules that the root does not reach are left out.
// Regexes with and, not or lookahead become one rule for each state of their automaton, since these
// languages have no such operators.
//
// Errors name the rule: kUnsupported for what the language cannot say (a JSON Schema in EBNF,
// captures in GBNF, tokens by name in EBNF), kLimit for more than 64 MiB of text or an automaton of
// more than 2000 states.
//
// Thread safety: none; the arena of the IR grows.
#ifndef PAWL_GRAMMAR_LANGUAGES_PRINT_H_
#define PAWL_GRAMMAR_LANGUAGES_PRINT_H_

#include <cstdint>
#include <string>

#include "grammar/cfg/grammar_ir.h"
#include "pawl/compiler.h"
#include "pawl/result.h"

namespace pawl {

// REQUIRES: ir has a root.
Result<std::string> PrintGrammar(GrammarIr& ir, GrammarLanguage language);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_PRINT_H_
