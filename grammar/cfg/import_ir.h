// ImportIr: a grammar as a part of another one.
//
//   const GrammarIr::RuleId root = ImportIr(ir, *ReadEbnf(text, {}));
//   ir.Sequence({ir.Literal("<code>"), ir.Call(root), ir.Literal("</code>")});
#ifndef PAWL_GRAMMAR_CFG_IMPORT_IR_H_
#define PAWL_GRAMMAR_CFG_IMPORT_IR_H_

#include "grammar/cfg/grammar_ir.h"

namespace pawl {

// Adds the rules of `from` to `into`; its root's id there, which nothing calls yet.
GrammarIr::RuleId ImportIr(GrammarIr& into, const GrammarIr& from);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_IMPORT_IR_H_
