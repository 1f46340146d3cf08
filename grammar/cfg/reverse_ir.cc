// Every expression says the same backwards, but a sequence turns its operands round and a leaf its
// texts. A lazy regex becomes the regex that it means: texts of which no proper beginning is one.
//
// Lookahead has no term backwards, so such a regex is listed: a rule for each state of its
// automaton, with the texts that lead to that state, read from their ends; right-linear, and each
// rule says the state that comes before. The rule of the whole is remembered, and turned back it is
// the regex again.
#include "grammar/cfg/reverse_ir.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "grammar/derived_machines.h"
#include "grammar/regex/regex_dfa.h"

namespace pawl {
namespace {

using Kind = GrammarIr::Kind;
using ExprId = GrammarIr::ExprId;
using RuleId = GrammarIr::RuleId;

// What the root reaches: expressions with those below them first.
struct ReachedRules {
  std::vector<ExprId> exprs;
  std::vector<RuleId> rules;
};

ReachedRules Reach(const GrammarIr& ir) {
  std::vector<bool> exprs(ir.expr_count()), rules(ir.rule_count());
  std::vector<ExprId> open;
  ReachedRules out;
  const auto rule = [&](RuleId id) {
    if (rules[id]) return;
    rules[id] = true;
    out.rules.push_back(id);
    open.push_back(ir.rule(id).body);
  };
  rule(ir.root());
  while (!open.empty()) {
    const ExprId id = open.back();
    open.pop_back();
    if (exprs[id]) continue;
    exprs[id] = true;
    out.exprs.push_back(id);
    if (ir.expr(id).kind == Kind::kCall) rule(ir.expr(id).index);
    open.insert(open.end(), ir.expr(id).operands.begin(), ir.expr(id).operands.end());
  }
  // Operands have smaller ids than what has them.
  std::sort(out.exprs.begin(), out.exprs.end());
  std::sort(out.rules.begin(), out.rules.end());
  return out;
}

}  // namespace

Error CannotCut() {
  return Error{ErrorCode::kUnsupported,
               "cuts into a JSON Schema or free text that has too many states to be listed "
               "(recursion, or keys that the schema does not name)",
               ""};
}

std::shared_ptr<Machine> ReverseMachine(const std::shared_ptr<Machine>& machine) {
  if (const auto* from = dynamic_cast<const MachineFrom*>(machine.get());
      from != nullptr && !from->ends_anywhere()) {
    if (auto* reversed = dynamic_cast<ReversedMachine*>(from->machine().get()))
      return reversed->Before(machine->Start());
  }
  if (auto* reversed = dynamic_cast<ReversedMachine*>(machine.get()))
    return reversed->Before(reversed->Start());
  return std::make_shared<ReversedMachine>(machine);
}

// The texts of a regex from their ends, a rule for each state of its automaton.
ExprId IrReverser::StatesOf(GrammarIr& out, ReId regex) {
  RegexDfa dfa(out.shared_arena(), regex);
  const uint32_t start = dfa.Start();
  std::vector<uint32_t> states;                // in the order of their rules
  std::unordered_map<uint32_t, RuleId> rules;  // by state
  std::unordered_map<uint32_t, std::vector<ExprId>> ways;
  const auto rule_of = [&](uint32_t state) {
    const auto [known, inserted] = rules.emplace(state, 0);
    if (inserted) {
      known->second = out.AddRule("state_" + std::to_string(states.size()));
      states.push_back(state);
    }
    return known->second;
  };
  if (start == RegexDfa::kDead) return GrammarIr::kNever;
  rule_of(start);
  ways[start].push_back(GrammarIr::kEmpty);
  std::vector<ExprId> ends;
  const auto boundaries = dfa.boundaries();
  for (size_t i = 0; i < states.size(); ++i) {
    if (states.size() > max_regex_states_ || dfa.overflow()) {
      overflow_ = true;
      return GrammarIr::kNever;
    }
    const uint32_t from = states[i];
    if (dfa.Accepting(from)) ends.push_back(out.Call(rules.at(from)));
    std::map<uint32_t, std::vector<CodepointRange>> to;
    for (size_t k = 0; k < boundaries.size(); ++k) {
      const uint32_t next = dfa.Next(from, dfa.interval_class()[k]);
      if (next == RegexDfa::kDead) continue;
      const char32_t last = k + 1 < boundaries.size() ? boundaries[k + 1] - 1 : 0x10FFFF;
      to[next].push_back({boundaries[k], last});
    }
    for (const auto& [next, ranges] : to) {
      const ReId set = out.arena().Set(CodepointSet::FromRanges(ranges));
      const ExprId before = out.Call(rules.at(from));
      rule_of(next);
      ways[next].push_back(out.Sequence({out.Regex(set), before}));
    }
  }
  for (const uint32_t state : states) out.Define(rules.at(state), out.Choice(ways[state]));
  const RuleId whole = out.AddRule("regex");
  out.Define(whole, out.Choice(ends));
  listed_.emplace(whole, regex);
  return out.Call(whole);
}

Result<GrammarIr> IrReverser::Reverse(const GrammarIr& ir) {
  const std::unordered_map<RuleId, ReId> known = std::move(listed_);
  listed_.clear();
  GrammarIr out(ir.shared_arena());
  RegexArena& arena = out.arena();
  const ReachedRules reached = Reach(ir);
  std::vector<RuleId> rules(ir.rule_count());
  std::vector<ExprId> exprs(ir.expr_count());
  for (const RuleId id : reached.rules) {
    if (ir.rule(id).attributes.max_tokens) {
      return Error{
          ErrorCode::kUnsupported,
          "rule \"" + ir.rule(id).name + "\" has a limit on tokens, which a part of a text has not",
          ir.rule(id).place};
    }
    rules[id] = out.AddRule(ir.rule(id).name, ir.rule(id).place);
    out.SetAttributes(rules[id], ir.rule(id).attributes);
  }
  for (const ExprId id : reached.exprs) {
    const GrammarIr::Expr& expr = ir.expr(id);
    std::vector<ExprId> operands;
    for (const ExprId operand : expr.operands) operands.push_back(exprs[operand]);
    switch (expr.kind) {
      case Kind::kEmpty:
        exprs[id] = GrammarIr::kEmpty;
        break;
      case Kind::kNever:
        exprs[id] = GrammarIr::kNever;
        break;
      case Kind::kRegex: {
        ReId regex = arena.Close(expr.index);
        if (expr.lazy) {
          const ReId longer = arena.Concat({regex, RegexArena::kAnyChar, RegexArena::kAnything});
          regex = arena.And(regex, arena.Not(longer));
        }
        const std::optional<ReId> reversed = arena.Reverse(regex);
        exprs[id] = reversed ? out.Regex(*reversed) : StatesOf(out, regex);
        break;
      }
      case Kind::kAutomaton: {
        auto machine = ReverseMachine(ir.automaton(expr.index).machine);
        if (machine == nullptr) return CannotCut();
        // A part of it has no notation.
        const bool part = dynamic_cast<const AutomatonView*>(machine.get()) != nullptr;
        exprs[id] = out.Terminal(
            {std::move(machine), part ? std::string() : ir.automaton(expr.index).description});
        break;
      }
      case Kind::kTokens:
        exprs[id] = out.Tokens(ir.token_set(expr.index));
        break;
      case Kind::kCall:
        if (const auto regex = known.find(expr.index); regex != known.end()) {
          exprs[id] = out.Regex(regex->second);
        } else {
          exprs[id] = out.Call(rules[expr.index]);
        }
        break;
      case Kind::kSequence:
        std::reverse(operands.begin(), operands.end());
        exprs[id] = out.Sequence(operands);
        break;
      case Kind::kChoice:
        exprs[id] = out.Choice(operands);
        break;
      case Kind::kRepeat:
        exprs[id] = out.Repeat(operands[0], expr.min, expr.max);
        break;
    }
  }
  for (const RuleId id : reached.rules) {
    if (ir.rule(id).defined) out.Define(rules[id], exprs[ir.rule(id).body]);
  }
  out.SetRoot(rules[ir.root()]);
  if (overflow_ || arena.overflow()) {
    return Error{
        ErrorCode::kLimit,
        "a regex with lookahead has more than " + std::to_string(max_regex_states_) + " states",
        ""};
  }
  return out;
}

}  // namespace pawl
