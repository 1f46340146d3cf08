// Expressions are made bottom up and simplified as they are made: what is empty or can never match
// disappears at once, sequences and choices are flat, and equal expressions have one id. So later
// stages meet few shapes.
#include "grammar/cfg/grammar_ir.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/utf8.h"

namespace pawl {

GrammarIr::GrammarIr(std::shared_ptr<RegexArena> arena) : arena_(std::move(arena)) {
  exprs_.resize(2);
  exprs_[kEmpty].kind = Kind::kEmpty;
  exprs_[kNever].kind = Kind::kNever;
}

GrammarIr::ExprId GrammarIr::Intern(Expr expr) {
  uint64_t hash = static_cast<uint64_t>(expr.kind) * 2 + (expr.lazy ? 1 : 0);
  hash = HashMix(hash, expr.index);
  hash = HashMix(hash, uint64_t{expr.min} << 32 | expr.max);
  for (const ExprId operand : expr.operands) hash = HashMix(hash, operand);
  return index_.Intern(hash, exprs_, std::move(expr));
}

GrammarIr::ExprId GrammarIr::Regex(ReId id, bool lazy) {
  if (id == RegexArena::kNothing) return kNever;
  if (id == RegexArena::kEpsilon || (lazy && arena_->Nullable(id))) return kEmpty;
  return Intern({.kind = Kind::kRegex, .lazy = lazy, .index = id});
}

GrammarIr::ExprId GrammarIr::Literal(std::string_view text) {
  return Regex(arena_->Literal(DecodeCodepoints(text)));
}

GrammarIr::ExprId GrammarIr::Terminal(Automaton automaton) {
  automata_.push_back(std::move(automaton));
  return Intern({.kind = Kind::kAutomaton, .index = static_cast<uint32_t>(automata_.size() - 1)});
}

GrammarIr::ExprId GrammarIr::Tokens(TokenSet set) {
  const auto known = std::find(token_sets_.begin(), token_sets_.end(), set);
  const auto index = static_cast<uint32_t>(known - token_sets_.begin());
  if (known == token_sets_.end()) token_sets_.push_back(std::move(set));
  return Intern({.kind = Kind::kTokens, .index = index});
}

GrammarIr::ExprId GrammarIr::Call(RuleId rule) {
  return Intern({.kind = Kind::kCall, .index = rule});
}

void GrammarIr::AddFlat(Expr& expr, ExprId operand) const {
  const Expr& added = exprs_[operand];
  if (added.kind == expr.kind) {
    expr.operands.insert(expr.operands.end(), added.operands.begin(), added.operands.end());
  } else {
    expr.operands.push_back(operand);
  }
}

GrammarIr::ExprId GrammarIr::Sequence(std::span<const ExprId> operands) {
  Expr expr{.kind = Kind::kSequence};
  for (const ExprId operand : operands) {
    if (operand == kNever) return kNever;
    if (operand != kEmpty) AddFlat(expr, operand);
  }
  if (expr.operands.empty()) return kEmpty;
  if (expr.operands.size() == 1) return expr.operands[0];
  return Intern(std::move(expr));
}

GrammarIr::ExprId GrammarIr::Choice(std::span<const ExprId> operands) {
  Expr expr{.kind = Kind::kChoice};
  for (const ExprId operand : operands) {
    if (operand != kNever) AddFlat(expr, operand);
  }
  // The first of equal alternatives stays, so that grammars are printed in their own order.
  std::vector<ExprId> distinct;
  std::vector<ExprId> sorted = expr.operands;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    std::vector<bool> seen(exprs_.size());
    for (const ExprId operand : expr.operands) {
      if (!seen[operand]) distinct.push_back(operand);
      seen[operand] = true;
    }
    expr.operands = std::move(distinct);
  }
  if (expr.operands.empty()) return kNever;
  if (expr.operands.size() == 1) return expr.operands[0];
  return Intern(std::move(expr));
}

GrammarIr::ExprId GrammarIr::Repeat(ExprId operand, uint32_t min, uint32_t max) {
  if (max < min) return kNever;
  if (max == 0 || operand == kEmpty) return kEmpty;
  if (operand == kNever) return min == 0 ? kEmpty : kNever;
  if (min == 1 && max == 1) return operand;
  return Intern({.kind = Kind::kRepeat, .min = min, .max = max, .operands = {operand}});
}

GrammarIr::ExprId GrammarIr::Like(const Expr& like, const std::vector<ExprId>& operands) {
  if (like.kind == Kind::kSequence) return Sequence(operands);
  if (like.kind == Kind::kChoice) return Choice(operands);
  if (like.kind == Kind::kRepeat) return Repeat(operands[0], like.min, like.max);
  return like.kind == Kind::kEmpty ? kEmpty : kNever;
}

GrammarIr::Reached GrammarIr::Reach() const {
  std::vector<bool> exprs(exprs_.size()), rules(rules_.size());
  std::vector<ExprId> open;
  Reached out;
  const auto reach = [&](RuleId id) {
    if (rules[id]) return;
    rules[id] = true;
    out.rules.push_back(id);
    open.push_back(rules_[id].body);
  };
  reach(root_);
  while (!open.empty()) {
    const ExprId id = open.back();
    open.pop_back();
    if (exprs[id]) continue;
    exprs[id] = true;
    out.exprs.push_back(id);
    if (exprs_[id].kind == Kind::kCall) reach(exprs_[id].index);
    open.insert(open.end(), exprs_[id].operands.begin(), exprs_[id].operands.end());
  }
  std::sort(out.exprs.begin(), out.exprs.end());
  std::sort(out.rules.begin(), out.rules.end());
  return out;
}

GrammarIr::RuleId GrammarIr::AddRule(std::string name, std::string place) {
  Rule rule;
  rule.name = std::move(name);
  rule.place = std::move(place);
  rules_.push_back(std::move(rule));
  return static_cast<RuleId>(rules_.size() - 1);
}

void GrammarIr::Define(RuleId rule, ExprId body) {
  rules_[rule].body = body;
  rules_[rule].defined = true;
}

void GrammarIr::SetAttributes(RuleId rule, Attributes attributes) {
  rules_[rule].attributes = std::move(attributes);
}

// Operands stand before what has them, so one pass over the expressions is enough: each is made
// again from operands that are there already. References between rules go through a table of the
// rules' new ids, which is made first.

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
