// Every expression says the same backwards, but a sequence turns its operands round and a leaf its
// texts. A lazy regex becomes the regex that it means: texts of which no proper beginning is one.
//
// Lookahead has no term backwards, so such a regex is listed: a rule for each state of its
// automaton, with the texts that lead to that state, read from their ends; right-linear, and each
// rule says the state that comes before. The rule of the whole is remembered, and turned back it is
// the regex again.
#include "grammar/cfg/reverse_ir.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "grammar/cfg/open_rules.h"
#include "grammar/derived_machines.h"
#include "grammar/regex/regex_dfa.h"

namespace pawl {
namespace {

using Kind = GrammarIr::Kind;
using ExprId = GrammarIr::ExprId;
using RuleId = GrammarIr::RuleId;

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
  OpenRules<uint32_t> states(out, "state_");
  std::unordered_map<uint32_t, std::vector<ExprId>> ways;
  if (start == RegexDfa::kDead) return GrammarIr::kNever;
  states.Call(start);
  ways[start].push_back(GrammarIr::kEmpty);
  std::vector<ExprId> ends;
  for (size_t i = 0; i < states.size(); ++i) {
    if (states.size() > max_regex_states_ || dfa.overflow()) {
      overflow_ = true;
      return GrammarIr::kNever;
    }
    const uint32_t from = states.key(i);
    if (dfa.Accepting(from)) ends.push_back(states.Call(from));
    for (const auto& [next, set] : dfa.Steps(from)) {
      states.Call(next);
      ways[next].push_back(out.Sequence({out.Regex(out.arena().Set(set)), states.Call(from)}));
    }
  }
  for (size_t i = 0; i < states.size(); ++i) states.Define(i, out.Choice(ways[states.key(i)]));
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
  const GrammarIr::Reached reached = ir.Reach();
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
      default:
        if (expr.kind == Kind::kSequence) std::reverse(operands.begin(), operands.end());
        exprs[id] = out.Like(expr, operands);
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
