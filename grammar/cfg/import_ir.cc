// Operands stand before what has them, so one pass over the expressions is enough: each is made
// again from operands that are there already. References between rules go through a table of the
// rules' new ids, which is made first.
#include "grammar/cfg/import_ir.h"

#include <vector>

namespace pawl {

GrammarIr::RuleId ImportIr(GrammarIr& into, const GrammarIr& from) {
  using Kind = GrammarIr::Kind;
  std::vector<GrammarIr::RuleId> rules;
  for (GrammarIr::RuleId id = 0; id < from.rule_count(); ++id)
    rules.push_back(into.AddRule(from.rule(id).name));
  std::vector<GrammarIr::ExprId> exprs;  // operands stand before what has them
  for (GrammarIr::ExprId id = 0; id < from.expr_count(); ++id) {
    const GrammarIr::Expr& expr = from.expr(id);
    std::vector<GrammarIr::ExprId> operands;
    for (const GrammarIr::ExprId operand : expr.operands) operands.push_back(exprs[operand]);
    switch (expr.kind) {
      case Kind::kRegex:
        exprs.push_back(into.Regex(into.arena().Import(from.arena(), expr.index), expr.lazy));
        break;
      case Kind::kAutomaton:
        exprs.push_back(into.Terminal(from.automaton(expr.index)));
        break;
      case Kind::kTokens:
        exprs.push_back(into.Tokens(from.token_set(expr.index)));
        break;
      case Kind::kCall:
        exprs.push_back(into.Call(rules[expr.index]));
        break;
      default:
        exprs.push_back(into.Like(expr, operands));
    }
  }
  for (GrammarIr::RuleId id = 0; id < from.rule_count(); ++id) {
    if (from.rule(id).defined) into.Define(rules[id], exprs[from.rule(id).body]);
    GrammarIr::Attributes attributes = from.rule(id).attributes;
    if (attributes.marker) {
      attributes.marker->text = into.arena().Import(from.arena(), attributes.marker->text);
      attributes.marker->marker = into.arena().Import(from.arena(), attributes.marker->marker);
    }
    into.SetAttributes(rules[id], std::move(attributes));
  }
  return from.root() == GrammarIr::kNoRule ? into.AddRule("nothing") : rules[from.root()];
}

}  // namespace pawl
