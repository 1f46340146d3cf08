// A state of CfgMachine is all that may come after a text: lexemes that have begun, and
// continuations, which are entries (node, then) with a node for the rest of one routine. That is a
// grammar already, and here it is written as one: a rule for each continuation that the state
// refers to, whose alternatives are the rest of a routine and then the rule of `then`. The rest of
// a routine is told by the nodes' origins. So the left quotient costs one run over the text,
// whatever the grammar, and has about as many rules as the text leaves open.
//
// The right quotient is the left quotient of the grammar read backwards (IrReverser). For several
// gaps "any text" comes between the texts: Endings makes the grammar of all endings, in which every
// routine has a second rule that may begin at any of its nodes. Read backwards those are all
// beginnings. So a gap takes: backwards; the last text, any text, the text before, ...; forwards;
// the prefix.
#include "grammar/cfg/quotient.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/cfg/cfg_machine.h"
#include "grammar/cfg/grammar_ir.h"
#include "grammar/explicit_automaton.h"
#include "grammar/regex/regex_dfa.h"
#include "src/base/utf8.h"

namespace pawl {

// Every expression says the same backwards, but a sequence turns its operands round and a leaf its
// texts. A lazy regex becomes the regex that it means: texts of which no proper beginning is one.
//
// Lookahead has no term backwards, so such a regex is listed: a rule for each state of its
// automaton, with the texts that lead to that state, read from their ends; right-linear, and each
// rule says the state that comes before. The rule of the whole is remembered, and turned back it is
// the regex again.

namespace {

using Kind = GrammarIr::Kind;
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
GrammarIr::ExprId IrReverser::StatesOf(GrammarIr& out, ReId regex) {
  RegexDfa dfa(out.shared_arena(), regex);
  const uint32_t start = dfa.Start();
  OpenRules<uint32_t> states(out, "state_");
  std::unordered_map<uint32_t, std::vector<GrammarIr::ExprId>> ways;
  if (start == RegexDfa::kDead) return GrammarIr::kNever;
  states.Call(start);
  ways[start].push_back(GrammarIr::kEmpty);
  std::vector<GrammarIr::ExprId> ends;
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
  std::vector<GrammarIr::ExprId> exprs(ir.expr_count());
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
  for (const GrammarIr::ExprId id : reached.exprs) {
    const GrammarIr::Expr& expr = ir.expr(id);
    std::vector<GrammarIr::ExprId> operands;
    for (const GrammarIr::ExprId operand : expr.operands) operands.push_back(exprs[operand]);
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

namespace {

using RuleId = GrammarIr::RuleId;
using Op = CfgProgram::Op;

// The rest of a routine from a node on, as expressions of the IR that the program was made of.
class Rests {
 public:
  Rests(GrammarIr& ir, const CfgProgram& program) : ir_(ir), program_(program) {}

  // Adds them to `out`; whether the text ends there instead of the routine.
  bool Append(uint32_t node, uint32_t count, std::vector<GrammarIr::ExprId>& out) {
    while (node != CfgProgram::kReturnNode && node != CfgProgram::kAcceptNode) {
      const CfgProgram::Origin& origin = program_.origins[node];
      const CfgProgram::Node& at = program_.nodes[node];
      if (origin.expr == GrammarIr::kNever) {  // reads nothing
        node = at.next;
        continue;
      }
      if (origin.loop) {
        out.push_back(ir_.Repeat(Operand(origin.expr), 0, GrammarIr::kUnbounded));
      } else if (at.op == Op::kRepeat) {
        out.push_back(
            ir_.Repeat(Operand(origin.expr), at.min > count ? at.min - count : 0,
                       at.max == GrammarIr::kUnbounded ? GrammarIr::kUnbounded : at.max - count));
      } else {
        out.push_back(origin.expr);
      }
      node = origin.next;
      count = 0;
    }
    return node == CfgProgram::kAcceptNode;
  }

  // The operand of a repetition.
  GrammarIr::ExprId Operand(GrammarIr::ExprId repeat) const { return ir_.expr(repeat).operands[0]; }

 private:
  GrammarIr& ir_;
  const CfgProgram& program_;
};

// The IR of what may follow a state.
class StateWriter {
 public:
  StateWriter(GrammarIr& ir, CfgMachine& machine)
      : ir_(ir), machine_(machine), rests_(ir, machine.program()), rules_(ir, "rest_") {}

  Status Write(CfgMachine::StateId state) {
    std::vector<GrammarIr::ExprId> ways;
    if (machine_.fresh(state) != Continuations::kNone)
      ways.push_back(rules_.Call(machine_.fresh(state)));
    for (const CfgMachine::Thread& thread : machine_.threads(state)) {
      if (thread.tokens != CfgMachine::kNoLimit) {
        return Error{ErrorCode::kUnsupported,
                     "the text ends inside of a rule with a limit on tokens", ""};
      }
      const bool lazy = (thread.source & 1) != 0;
      const GrammarIr::ExprId rest =
          thread.source / 2 == 0 ? ir_.Regex(machine_.regexes().TermOf(thread.key), lazy)
                                 : ir_.Terminal({std::make_shared<MachineFrom>(
                                                     machine_.program().machines[thread.source / 2],
                                                     thread.key, false),
                                                 ""});
      ways.push_back(ir_.Sequence({rest, rules_.Call(thread.then)}));
    }
    const RuleId root = ir_.AddRule("rest");
    ir_.Define(root, ir_.Choice(ways));
    for (size_t i = 0; i < rules_.size(); ++i) {
      std::vector<GrammarIr::ExprId> options;
      const auto entries = machine_.continuations().entries(rules_.key(i));
      for (const Continuations::Entry& entry : entries) {
        std::vector<GrammarIr::ExprId> parts;
        if (!rests_.Append(entry.node, entry.count, parts))
          parts.push_back(rules_.Call(entry.then));
        options.push_back(ir_.Sequence(parts));
      }
      rules_.Define(i, ir_.Choice(options));
    }
    ir_.SetRoot(root);
    return {};
  }

 private:
  GrammarIr& ir_;
  CfgMachine& machine_;
  Rests rests_;
  OpenRules<ContId> rules_;
};

// The endings of a regex's texts. Without and, not and lookahead every part of a term has a text,
// and the endings are told part by part; else they are what its automaton's states have.
class RegexEndings {
 public:
  RegexEndings(std::shared_ptr<RegexArena> arena, uint32_t max_states)
      : arena_(std::move(arena)), max_states_(max_states) {}

  std::optional<ReId> Of(ReId root) {
    RegexArena& arena = *arena_;
    if (arena.HasBoolean(root)) return ByStates(root);
    std::vector<ReId> open = {root};
    while (!open.empty()) {
      const ReId id = open.back();
      const RegexArena::View view = arena.Inspect(id);
      bool ready = !known_.contains(id);
      if (ready) {
        for (const ReId operand : view.operands) {
          if (known_.contains(operand)) continue;
          open.push_back(operand);
          ready = false;
        }
        if (!ready) continue;
        known_.emplace(id, Make(id, view));
      }
      open.pop_back();
    }
    return known_.at(root);
  }

 private:
  ReId Make(ReId id, const RegexArena::View& view) {
    using Form = RegexArena::View::Op;
    RegexArena& arena = *arena_;
    std::vector<ReId> ways = {RegexArena::kEpsilon, id};
    switch (view.op) {
      case Form::kNothing:
        return RegexArena::kNothing;
      case Form::kConcat: {
        ReId rest = RegexArena::kEpsilon;
        for (size_t i = view.operands.size(); i-- > 0;) {
          ways.push_back(arena.Concat(known_.at(view.operands[i]), rest));
          rest = arena.Concat(view.operands[i], rest);
        }
        break;
      }
      case Form::kOr:
        for (const ReId operand : view.operands) ways.push_back(known_.at(operand));
        break;
      case Form::kRepeat: {
        const auto max =
            view.max == RegexArena::kInfinite ? std::nullopt : std::optional(view.max - 1);
        ways.push_back(
            arena.Concat(known_.at(view.operands[0]), arena.Repeat(view.operands[0], 0, max)));
        break;
      }
      default:
        break;
    }
    return arena.Or(ways);
  }

  std::optional<ReId> ByStates(ReId root) {
    RegexDfa dfa(arena_, root);
    std::vector<uint32_t> states = {dfa.Start()};
    std::unordered_map<uint32_t, bool> seen = {{states[0], true}};
    std::vector<ReId> ways = {RegexArena::kEpsilon};
    for (size_t i = 0; i < states.size(); ++i) {
      if (states.size() > max_states_ || dfa.overflow()) return std::nullopt;
      if (states[i] == RegexDfa::kDead) continue;
      ways.push_back(dfa.Term(states[i]));
      for (int cls = 0; cls < dfa.classes(); ++cls) {
        const uint32_t next = dfa.Next(states[i], cls);
        if (next != RegexDfa::kDead && seen.emplace(next, true).second) states.push_back(next);
      }
    }
    return arena_->Or(ways);
  }

  std::shared_ptr<RegexArena> arena_;
  uint32_t max_states_;
  std::unordered_map<ReId, ReId> known_;
};

class EndingsWriter {
 public:
  EndingsWriter(GrammarIr& ir, const CfgProgram& program, uint32_t max_states)
      : ir_(ir),
        program_(program),
        rests_(ir, program),
        regexes_(ir.shared_arena(), max_states),
        max_states_(max_states),
        rules_(ir, "ending_") {}

  Status Write() {
    const GrammarIr::ExprId whole = rules_.Call(program_.root);
    for (size_t i = 0; i < rules_.size(); ++i) {
      if (Status status = Routine(i); !status.ok()) return status;
    }
    const RuleId root = ir_.AddRule("endings");
    ir_.Define(root, whole);
    ir_.SetRoot(root);
    return {};
  }

 private:
  // The routine of a rule from any of its nodes on.
  Status Routine(size_t rule) {
    std::vector<uint32_t> nodes = {program_.routines[rules_.key(rule)].start};
    std::unordered_map<uint32_t, bool> seen = {{nodes[0], true}};
    const auto visit = [&](uint32_t node) {
      if (seen.emplace(node, true).second) nodes.push_back(node);
    };
    std::vector<GrammarIr::ExprId> ways = {GrammarIr::kEmpty};
    for (size_t i = 0; i < nodes.size(); ++i) {
      const CfgProgram::Node& node = program_.nodes[nodes[i]];
      std::optional<GrammarIr::ExprId> part;
      switch (node.op) {
        case Op::kReturn:
        case Op::kAccept:
          continue;
        case Op::kSplit:
          for (uint32_t k = 0; k < node.count; ++k) visit(program_.splits[node.index + k]);
          continue;
        case Op::kMark:
          visit(node.next);
          continue;
        case Op::kTokens:
          part = ir_.Optional(TokensOf(nodes[i]));
          break;
        case Op::kTerminal: {
          const Result<GrammarIr::ExprId> ending = Terminal(program_.terminals[node.index]);
          if (!ending.ok()) return ending.error();
          part = *ending;
          break;
        }
        case Op::kCall:
          part = rules_.Call(node.index);
          break;
        case Op::kRepeat: {
          const GrammarIr::ExprId operand = rests_.Operand(program_.origins[nodes[i]].expr);
          const uint32_t most =
              node.max == GrammarIr::kUnbounded ? GrammarIr::kUnbounded : node.max - 1;
          part = ir_.Sequence({rules_.Call(node.index), ir_.Repeat(operand, 0, most)});
          break;
        }
      }
      visit(node.next);
      std::vector<GrammarIr::ExprId> parts = {*part};
      rests_.Append(node.next, 0, parts);
      ways.push_back(ir_.Sequence(parts));
    }
    rules_.Define(rule, ir_.Choice(ways));
    return {};
  }

  // The token set of a node: as its origin has it, since names are in the IR.
  GrammarIr::ExprId TokensOf(uint32_t node) const { return program_.origins[node].expr; }

  Result<GrammarIr::ExprId> Terminal(const CfgProgram::Terminal& terminal) {
    if (terminal.source == 0) {
      auto& machine = static_cast<RegexMachine&>(*program_.machines[0]);
      const std::optional<ReId> endings = regexes_.Of(machine.TermOf(terminal.start));
      if (!endings) {
        return Error{ErrorCode::kLimit,
                     "a regex with and, not or lookahead has more than " +
                         std::to_string(max_states_) + " states",
                     ""};
      }
      return ir_.Regex(*endings);
    }
    // Read forwards, endings are beginnings: that is, all that a machine has not refused.
    auto forwards = ReverseMachine(program_.machines[terminal.source]);
    if (forwards == nullptr) return CannotCut();
    const Machine::Key start = forwards->Start();
    return ir_.Terminal(
        {ReverseMachine(std::make_shared<MachineFrom>(std::move(forwards), start, true)), ""});
  }

  GrammarIr& ir_;
  const CfgProgram& program_;
  Rests rests_;
  RegexEndings regexes_;
  uint32_t max_states_;
  OpenRules<uint32_t> rules_;
};

Status CheckText(std::string_view text, const QuotientLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return Error{ErrorCode::kLimit, "is longer than " + std::to_string(limits.max_bytes) + " bytes",
                 ""};
  }
  const size_t bad = FindInvalidUtf8(text);
  if (bad == std::string::npos) return {};
  return Error{ErrorCode::kInvalid, "is not UTF-8", "byte " + std::to_string(bad)};
}

std::string Reversed(std::string_view text) {
  std::u32string points = DecodeCodepoints(text);
  std::reverse(points.begin(), points.end());
  return EncodeCodepoints(points);
}

// Whether a machine that reads backwards had to give up: then what did not fit may well fit.
Status CheckMachines(const CfgProgram& program) {
  for (const std::shared_ptr<Machine>& machine : program.machines) {
    const Machine* at = machine.get();
    if (const auto* from = dynamic_cast<const MachineFrom*>(at)) at = from->machine().get();
    const auto* reversed = dynamic_cast<const ReversedMachine*>(at);
    if (reversed != nullptr && reversed->failed()) return CannotCut();
  }
  return {};
}

Error At(const std::string& place, Error error) {
  error.place = error.place.empty() ? place : place + ", " + error.place;
  return error;
}

}  // namespace

Result<GrammarIr> LeftQuotient(GrammarIr ir, std::string_view text, const Vocabulary& vocabulary,
                               const QuotientLimits& limits) {
  if (Status status = CheckText(text, limits); !status.ok()) return status.error();
  auto machine = CfgMachine::Create(ir, vocabulary);
  if (!machine.ok()) return machine.error();
  if (text.empty()) return ir;
  CfgMachine::StateId state = Machine::FrameOf((*machine)->Start());
  size_t work = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const CfgMachine::StateId next = (*machine)->StepState(state, static_cast<uint8_t>(text[i]));
    if (next == CfgMachine::kDeadState) {
      if (Status status = CheckMachines((*machine)->program()); !status.ok()) return status.error();
      return Error{ErrorCode::kUnsatisfiable, "does not fit", "byte " + std::to_string(i)};
    }
    state = next;
    work += (*machine)->threads(state).size();
    if (work + (*machine)->continuations().size() > limits.max_states) {
      return Error{ErrorCode::kLimit, "fits in too many ways", "byte " + std::to_string(i)};
    }
  }
  if (Status status = CheckMachines((*machine)->program()); !status.ok()) return status.error();
  if (Status status = StateWriter(ir, **machine).Write(state); !status.ok()) return status.error();
  return ir;
}

Result<GrammarIr> Endings(GrammarIr ir, const Vocabulary& vocabulary,
                          const QuotientLimits& limits) {
  auto program = CompileCfg(ir, vocabulary);
  if (!program.ok()) return program.error();
  EndingsWriter writer(ir, *program, limits.max_regex_states);
  if (Status status = writer.Write(); !status.ok()) return status.error();
  return ir;
}

Result<GrammarIr> FillGap(GrammarIr ir, std::string_view prefix, std::span<const std::string> after,
                          const Vocabulary& vocabulary, const QuotientLimits& limits) {
  const bool right = after.size() > 1 || !after[0].empty();
  if (right) {
    IrReverser reverser(limits.max_regex_states);
    Result<GrammarIr> backwards = reverser.Reverse(ir);
    if (!backwards.ok()) return backwards.error();
    // Each gap makes the next text's work larger, by about the square of their number.
    uint64_t work_left = limits.max_gap_work + uint64_t{16} * backwards->expr_count();
    for (size_t i = after.size(); i-- > 0;) {
      const std::string place = after.size() == 1 ? "suffix" : "after " + std::to_string(i + 1);
      if (Status status = CheckText(after[i], limits); !status.ok())
        return At(place, status.error());
      backwards = LeftQuotient(*std::move(backwards), Reversed(after[i]), vocabulary, limits);
      if (!backwards.ok()) {
        Error error = backwards.error();
        if (error.code == ErrorCode::kUnsatisfiable) error.place = "";
        return At(place, error);
      }
      if (i == 0) continue;
      backwards = Endings(*std::move(backwards), vocabulary, limits);
      if (!backwards.ok()) return At(place, backwards.error());
      if (backwards->expr_count() > work_left)
        return At(place, {ErrorCode::kLimit, "the gaps from here on fit in too many ways", ""});
      work_left -= backwards->expr_count();
    }
    Result<GrammarIr> forwards = reverser.Reverse(*backwards);
    if (!forwards.ok()) return At(after.size() == 1 ? "suffix" : "after", forwards.error());
    ir = *std::move(forwards);
  }
  Result<GrammarIr> gap = LeftQuotient(std::move(ir), prefix, vocabulary, limits);
  if (!gap.ok()) return At("prefix", gap.error());
  return gap;
}

}  // namespace pawl
