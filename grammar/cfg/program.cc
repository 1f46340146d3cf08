// Four passes, none of which recurses:
//
// 1. Which expressions have a text at all, which have the empty one? Least fixpoints, by counting
//    for each expression how many operands still miss (Dowling and Gallier 1984).
// 2. What is regular? Expressions without recursion through regexes become one regex, bottom up in
//    the order in which their operands become regular, as long as they stay small: a rule for a
//    string or a number written character by character is then one lexeme whose tokens are found
//    at once. Lazy regexes stay apart, since their end depends on themselves alone.
// 3. The shortest text of each expression, by Knuth's generalisation of Dijkstra's algorithm
//    (Knuth 1977).
// 4. Nodes, built from the end of each routine to its start.
#include "grammar/cfg/program.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "src/base/sorted.h"
#include "src/base/stop_scope.h"

namespace pawl {
namespace {

using Kind = GrammarIr::Kind;
using ExprId = GrammarIr::ExprId;
using Op = CfgProgram::Op;

constexpr uint32_t kMaxFoldedWeight = 400;     // character sets and literals in one terminal
constexpr uint64_t kMaxFoldWork = 20'000'000;  // steps of the arena for all of them
using Cost = CfgProgram::Cost;
constexpr Cost kInfinite = CfgProgram::kInfinite;

Cost Add(Cost a, Cost b) { return std::min(kInfinite, a + b); }
Cost Times(Cost a, uint32_t b) {
  return b != 0 && a > kInfinite / b ? kInfinite : std::min(kInfinite, a * b);
}
Cost OfBytes(uint64_t bytes) {
  return Times(CfgProgram::kByteCost, static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX)));
}

// Expressions and rules as one set of things that depend on each other: thing i < expr_count is an
// expression, the others are rules.
class Dependencies {
 public:
  explicit Dependencies(const GrammarIr& ir) : ir_(ir), offset_(ir.expr_count()) {
    const uint32_t things = offset_ + ir.rule_count();
    begin_.assign(things + 1, 0);
    ForEach([this](uint32_t, uint32_t on) { ++begin_[on + 1]; });
    for (uint32_t i = 0; i < things; ++i) begin_[i + 1] += begin_[i];
    users_.resize(begin_.back());
    std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
    ForEach([&](uint32_t user, uint32_t on) { users_[next[on]++] = user; });
  }

  uint32_t things() const { return static_cast<uint32_t>(begin_.size() - 1); }
  bool is_rule(uint32_t thing) const { return thing >= offset_; }
  uint32_t of_rule(uint32_t rule) const { return offset_ + rule; }
  // With repetition when a user depends on a thing twice.
  std::span<const uint32_t> users(uint32_t thing) const {
    return std::span<const uint32_t>(users_).subspan(begin_[thing],
                                                     begin_[thing + 1] - begin_[thing]);
  }

 private:
  template <typename F>
  void ForEach(const F& f) const {
    for (ExprId id = 0; id < offset_; ++id) {
      const GrammarIr::Expr& expr = ir_.expr(id);
      if (expr.kind == Kind::kCall) f(id, offset_ + expr.index);
      for (const ExprId operand : expr.operands) f(id, operand);
    }
    for (uint32_t rule = 0; rule < ir_.rule_count(); ++rule) f(offset_ + rule, ir_.rule(rule).body);
  }

  const GrammarIr& ir_;
  uint32_t offset_;
  std::vector<uint32_t> begin_, users_;
};

class Builder {
 public:
  Builder(GrammarIr& ir, const Vocabulary& vocabulary, CfgUse use)
      : ir_(ir), vocabulary_(vocabulary), captures_(use == CfgUse::kCaptures), depends_(ir) {}

  // That the root has a text in a vocabulary that has the tokens.
  Status Check() {
    const CfgProgram::Tokens some{.ranges = {{0, 0}}, .any = 0};
    program_.token_sets.assign(ir_.token_set_count(), some);
    return FindProductive();
  }

  Result<CfgProgram> Build() {
    if (ir_.root() == GrammarIr::kNoRule)
      return Error{ErrorCode::kInvalid, "the grammar has no root", ""};
    if (Status status = ResolveTokens(); !status.ok()) return status.error();
    if (Status status = FindProductive(); !status.ok()) return status.error();
    nullable_ = Fixpoint(leaf_nullable_, false);
    Fold();
    if (Status status = MakeTerminals(); !status.ok()) return status.error();
    FindShortest();
    MakeNodes();
    return std::move(program_);
  }

 private:
  Status FindProductive() {
    MakeMachines();
    productive_ = Fixpoint(leaf_productive_, true);
    if (productive_[depends_.of_rule(ir_.root())]) return {};
    return Error{ErrorCode::kUnsatisfiable,
                 "no text fits: \"" + ir_.rule(ir_.root()).name + "\" can never end",
                 ir_.rule(ir_.root()).place};
  }

  Status ResolveTokens() {
    std::unordered_map<std::string_view, TokenId> names;
    for (uint32_t i = 0; i < ir_.token_set_count(); ++i) {
      const TokenSet& set = ir_.token_set(i);
      if (!set.names.empty() && names.empty()) {
        for (TokenId id = 0; id < vocabulary_.size(); ++id) {
          if (vocabulary_.is_special(id)) names.emplace(vocabulary_.bytes(id), id);
        }
      }
      CfgProgram::Tokens tokens{.ranges = set.ranges};
      for (const std::string& name : set.names) {
        const auto found = names.find(name);
        if (found == names.end()) {
          return Error{ErrorCode::kInvalid, "the vocabulary has no special token \"" + name + "\"",
                       set.place};
        }
        tokens.ranges.emplace_back(found->second, found->second);
      }
      for (const auto& [first, last] : tokens.ranges) {
        if (first < 0 || first > last || last >= vocabulary_.size()) {
          return Error{ErrorCode::kInvalid,
                       (first == last ? "token id " + std::to_string(first) + " is"
                                      : "token ids " + std::to_string(first) + " to " +
                                            std::to_string(last) + " are") +
                           " not among the " + std::to_string(vocabulary_.size()) +
                           " of the vocabulary",
                       set.place};
        }
      }
      std::sort(tokens.ranges.begin(), tokens.ranges.end());
      std::vector<std::pair<TokenId, TokenId>> apart;
      for (const auto& range : tokens.ranges) {
        if (!apart.empty() && range.first <= apart.back().second + 1) {
          apart.back().second = std::max(apart.back().second, range.second);
        } else {
          apart.push_back(range);
        }
      }
      tokens.ranges = set.complement ? Others(apart) : std::move(apart);
      // A special token or one with bytes; other ids are padding that no model means.
      for (TokenId id = 0; id < vocabulary_.size() && tokens.any == kNoToken; ++id) {
        const bool meant = vocabulary_.is_special(id) || !vocabulary_.bytes(id).empty();
        if (meant && tokens.Has(id)) tokens.any = id;
      }
      program_.names_ends |= std::ranges::any_of(vocabulary_.end_tokens(),
                                                 [&tokens](TokenId id) { return tokens.Has(id); });
      program_.token_sets.push_back(std::move(tokens));
    }
    return {};
  }

  // Every token outside the ranges but those that end the output: "any other" goes on.
  std::vector<std::pair<TokenId, TokenId>> Others(
      const std::vector<std::pair<TokenId, TokenId>>& ranges) const {
    std::vector<std::pair<TokenId, TokenId>> others;
    size_t range = 0;
    for (TokenId id = 0; id < vocabulary_.size(); ++id) {
      while (range < ranges.size() && ranges[range].second < id) ++range;
      if ((range < ranges.size() && ranges[range].first <= id) || vocabulary_.is_end(id)) continue;
      if (!others.empty() && others.back().second + 1 == id) {
        others.back().second = id;
      } else {
        others.emplace_back(id, id);
      }
    }
    return others;
  }

  // Which leaves have a text, and which the empty one.
  void MakeMachines() {
    std::vector<ReId> regexes;
    std::vector<ExprId> of;
    for (ExprId id = 0; id < ir_.expr_count(); ++id) {
      if (ir_.expr(id).kind != Kind::kRegex) continue;
      regexes.push_back(ir_.expr(id).index);
      of.push_back(id);
    }
    leaf_productive_.assign(ir_.expr_count(), false);
    leaf_nullable_.assign(ir_.expr_count(), false);
    leaf_productive_[GrammarIr::kEmpty] = leaf_nullable_[GrammarIr::kEmpty] = true;
    RegexMachine probe(ir_.shared_arena(), regexes);
    for (size_t i = 0; i < regexes.size(); ++i) {
      leaf_productive_[of[i]] = probe.StartOf(i) != Machine::kDead;
      leaf_nullable_[of[i]] = ir_.arena().Nullable(ir_.arena().Close(regexes[i]));
    }
    for (ExprId id = 0; id < ir_.expr_count(); ++id) {
      const GrammarIr::Expr& expr = ir_.expr(id);
      if (expr.kind == Kind::kTokens) {
        leaf_productive_[id] = !program_.token_sets[expr.index].ranges.empty();
      } else if (expr.kind == Kind::kAutomaton) {
        Machine* machine = ir_.automaton(expr.index).machine.get();
        if (machine == nullptr) {  // of a grammar that is only checked
          leaf_productive_[id] = true;
          continue;
        }
        const Machine::Key start = machine->Start();
        leaf_productive_[id] = start != Machine::kDead;
        leaf_nullable_[id] = start != Machine::kDead && machine->Accepting(start);
      }
    }
  }

  // The least set of things with the property: a sequence has it when all operands do, a choice
  // when one does, a repetition when it may run no times or its operand does. Whether a repetition
  // that must run counts as empty depends on its operand alone.
  std::vector<bool> Fixpoint(const std::vector<bool>& leaves, bool productive) {
    std::vector<bool> has(depends_.things());
    std::vector<uint32_t> missing(depends_.things(), 1);
    std::vector<uint32_t> queue;
    const auto set = [&](uint32_t thing) {
      if (has[thing]) return;
      if (!productive && !productive_[thing]) return;
      has[thing] = true;
      queue.push_back(thing);
    };
    for (ExprId id = 0; id < ir_.expr_count(); ++id) {
      const GrammarIr::Expr& expr = ir_.expr(id);
      if (expr.kind == Kind::kSequence) missing[id] = static_cast<uint32_t>(expr.operands.size());
      if (leaves[id] || (expr.kind == Kind::kRepeat && expr.min == 0)) set(id);
    }
    for (size_t i = 0; i < queue.size(); ++i) {
      StopScope::Step();
      for (const uint32_t user : depends_.users(queue[i])) {
        if (missing[user] > 0 && --missing[user] == 0) set(user);
      }
    }
    return has;
  }

  void Fold() {
    folded_.assign(depends_.things(), kNotFolded);
    weight_.assign(depends_.things(), 0);
    RegexArena& arena = ir_.arena();
    std::vector<uint32_t> missing(depends_.things(), 1);
    std::vector<uint32_t> queue;
    const uint64_t work_end = arena.work() + kMaxFoldWork;
    const auto set = [&](uint32_t thing, ReId id, uint32_t weight) {
      if (weight > kMaxFoldedWeight) return;
      folded_[thing] = id;
      weight_[thing] = weight;
      queue.push_back(thing);
    };
    for (ExprId id = 0; id < ir_.expr_count(); ++id) {
      const GrammarIr::Expr& expr = ir_.expr(id);
      if (expr.kind == Kind::kSequence || expr.kind == Kind::kChoice)
        missing[id] = static_cast<uint32_t>(expr.operands.size());
      if (expr.kind == Kind::kEmpty) {
        set(id, RegexArena::kEpsilon, 0);
      } else if (expr.kind == Kind::kRegex && !expr.lazy) {
        set(id, productive_[id] ? arena.Close(expr.index) : RegexArena::kNothing, 1);
      } else if (!productive_[id]) {
        set(id, RegexArena::kNothing, 0);
      }
    }
    for (uint32_t rule = 0; rule < ir_.rule_count(); ++rule) {
      const uint32_t thing = depends_.of_rule(rule);
      if (!productive_[thing]) set(thing, RegexArena::kNothing, 0);
    }
    if (captures_) return;
    for (size_t i = 0; i < queue.size() && arena.work() < work_end; ++i) {
      StopScope::Step();
      for (const uint32_t user : depends_.users(queue[i])) {
        if (folded_[user] != kNotFolded || --missing[user] > 0) continue;
        if (depends_.is_rule(user)) {
          const GrammarIr::Rule& rule = ir_.rule(user - depends_.of_rule(0));
          if (rule.attributes.max_tokens || rule.attributes.temperature) continue;
          set(user, folded_[rule.body], weight_[rule.body]);
        } else {
          FoldExpr(user, set);
        }
        if (arena.overflow()) return;
      }
    }
  }

  template <typename Set>
  void FoldExpr(ExprId id, const Set& set) {
    RegexArena& arena = ir_.arena();
    const GrammarIr::Expr& expr = ir_.expr(id);
    std::vector<ReId> parts;
    uint32_t weight = 0;
    bool leaves = true;
    for (const ExprId operand : expr.operands) {
      parts.push_back(folded_[operand]);
      weight = std::min(weight + weight_[operand], 2 * kMaxFoldedWeight);
      leaves = leaves && ir_.expr(operand).kind == Kind::kRegex;
    }
    // A list of plain words stays one terminal however long it is.
    if (expr.kind == Kind::kChoice && leaves) weight = std::min(weight, kMaxFoldedWeight / 4);
    if (weight > kMaxFoldedWeight) return;
    RegexArena::WorkBudget budget(arena, kMaxFoldWork / 4);
    ReId result = RegexArena::kNothing;
    switch (expr.kind) {
      case Kind::kCall:
        result = folded_[depends_.of_rule(expr.index)];
        weight = weight_[depends_.of_rule(expr.index)];
        break;
      case Kind::kSequence:
        result = arena.Concat(parts);
        break;
      case Kind::kChoice:
        result = arena.Or(parts);
        break;
      case Kind::kRepeat:
        result = arena.Repeat(
            parts[0], expr.min,
            expr.max == GrammarIr::kUnbounded ? std::nullopt : std::optional(expr.max));
        break;
      default:
        return;
    }
    if (!budget.exhausted() && !arena.overflow()) set(id, result, weight);
  }

  bool IsFolded(ExprId id) const { return folded_[id] != kNotFolded; }

  // Terminals of everything folded that a node may want: made when they are asked for.
  Status MakeTerminals() {
    // What is reached from the root without entering what is folded.
    std::vector<bool> seen(depends_.things());
    std::vector<uint32_t> queue = {depends_.of_rule(ir_.root())};
    seen[queue[0]] = true;
    std::vector<ReId> regexes;
    for (size_t i = 0; i < queue.size(); ++i) {
      StopScope::Step();
      const uint32_t thing = queue[i];
      const auto visit = [&](uint32_t other) {
        if (productive_[other] && !seen[other]) {
          seen[other] = true;
          queue.push_back(other);
        }
      };
      if (depends_.is_rule(thing)) {
        reached_.push_back(thing - depends_.of_rule(0));
        visit(ir_.rule(reached_.back()).body);
        continue;
      }
      const GrammarIr::Expr& expr = ir_.expr(thing);
      if (IsFolded(thing)) {
        if (folded_[thing] != RegexArena::kEpsilon)
          AddTerminal(thing, {.source = 0}, folded_[thing], regexes);
      } else if (expr.kind == Kind::kRegex) {
        AddTerminal(thing, {.source = 0, .lazy = true}, ir_.arena().Close(expr.index), regexes);
      } else if (expr.kind == Kind::kAutomaton) {
        const auto source = static_cast<uint32_t>(automata_.size() + 1);
        automata_.push_back(ir_.automaton(expr.index).machine);
        terminal_of_.emplace(thing, static_cast<uint32_t>(program_.terminals.size()));
        program_.terminals.push_back({.source = source});
      } else {
        if (expr.kind == Kind::kCall) visit(depends_.of_rule(expr.index));
        for (const ExprId operand : expr.operands) visit(operand);
      }
    }
    auto machine = std::make_shared<RegexMachine>(ir_.shared_arena(), regexes);
    program_.machines.push_back(machine);
    for (auto& automaton : automata_) program_.machines.push_back(automaton);
    size_t number = 0;
    for (CfgProgram::Terminal& terminal : program_.terminals) {
      StopScope::Steps(256);
      Machine& of = *program_.machines[terminal.source];
      terminal.start = terminal.source == 0 ? machine->StartOf(number++) : of.Start();
      for (int byte = 0; byte < 256; ++byte) {
        terminal.first[byte] = of.Step(terminal.start, static_cast<uint8_t>(byte));
        terminal.first_bytes[byte] = terminal.first[byte] != Machine::kDead;
      }
      // An automaton that cannot tell how it ends is still one that may.
      if (terminal.source == 0) {
        const ReId term = regexes[number - 1];
        terminal.shortest = OfBytes(std::max(1u, ir_.arena().MinLength(term)));
      } else {
        const auto text = of.CompletionBytes(terminal.start);
        terminal.shortest =
            text ? static_cast<uint32_t>(std::max<size_t>(1, text->size())) : kInfinite / 2;
      }
    }
    if (machine->overflow() || ir_.arena().overflow())
      return Error{ErrorCode::kLimit, "the grammar's terminals are too large", ""};
    return {};
  }

  void AddTerminal(ExprId expr, CfgProgram::Terminal terminal, ReId regex,
                   std::vector<ReId>& regexes) {
    const uint64_t key = uint64_t{regex} << 1 | (terminal.lazy ? 1 : 0);
    const auto [known, inserted] =
        regex_terminals_.emplace(key, static_cast<uint32_t>(program_.terminals.size()));
    if (inserted) {
      program_.terminals.push_back(terminal);
      regexes.push_back(regex);
    }
    terminal_of_.emplace(expr, known->second);
  }

  void FindShortest() {
    shortest_.assign(depends_.things(), kInfinite);
    using Priced = std::pair<Cost, uint32_t>;  // of a thing
    std::priority_queue<Priced, std::vector<Priced>, std::greater<>> queue;
    std::vector<bool> done(depends_.things());
    std::vector<uint32_t> missing(depends_.things(), 1);
    std::vector<Cost> sum(depends_.things(), 0);
    for (ExprId id = 0; id < ir_.expr_count(); ++id) {
      const GrammarIr::Expr& expr = ir_.expr(id);
      if (expr.kind == Kind::kSequence) missing[id] = static_cast<uint32_t>(expr.operands.size());
      if (id == GrammarIr::kEmpty || (expr.kind == Kind::kRepeat && expr.min == 0) ||
          (expr.operands.empty() && nullable_[id] && expr.kind != Kind::kCall) ||
          (IsFolded(id) && folded_[id] == RegexArena::kEpsilon)) {
        queue.push({0, id});
      } else if (const auto terminal = terminal_of_.find(id); terminal != terminal_of_.end()) {
        queue.push({nullable_[id] ? 0 : program_.terminals[terminal->second].shortest, id});
      } else if (expr.kind == Kind::kTokens && productive_[id]) {
        queue.push({CfgProgram::kTokenCost, id});
      } else if (IsFolded(id) && productive_[id]) {
        queue.push({OfBytes(ir_.arena().MinLength(folded_[id])), id});
      }
    }
    while (!queue.empty()) {
      StopScope::Step();
      const auto [length, thing] = queue.top();
      queue.pop();
      if (done[thing]) continue;
      done[thing] = true;
      shortest_[thing] = length;
      for (const uint32_t user : depends_.users(thing)) {
        if (done[user] || !productive_[user]) continue;
        Cost total = length;
        if (depends_.is_rule(user)) {
          total = Add(length, 1);
        } else {
          const GrammarIr::Expr& expr = ir_.expr(user);
          if (expr.kind == Kind::kRepeat) total = Times(length, expr.min);
          if (expr.kind == Kind::kSequence) {
            sum[user] = Add(sum[user], length);
            if (--missing[user] > 0) continue;
            total = sum[user];
          }
        }
        if (total < kInfinite) queue.push({total, user});
      }
    }
  }

  uint32_t AddNode(CfgProgram::Node node) {
    program_.nodes.push_back(node);
    program_.origins.emplace_back();
    program_.rules.push_back(owner_);
    return static_cast<uint32_t>(program_.nodes.size() - 1);
  }

  uint32_t Split(std::vector<uint32_t> options) {
    if (captures_) {
      std::vector<uint32_t> distinct;
      for (const uint32_t option : options) {
        if (std::ranges::find(distinct, option) == distinct.end()) distinct.push_back(option);
      }
      options = std::move(distinct);
    } else {
      SortUnique(options);
    }
    if (options.size() == 1) return options[0];
    CfgProgram::Node node{.op = Op::kSplit,
                          .index = static_cast<uint32_t>(program_.splits.size()),
                          .count = static_cast<uint32_t>(options.size())};
    for (const uint32_t option : options)
      node.shortest = std::min(node.shortest, program_.nodes[option].shortest);
    program_.splits.insert(program_.splits.end(), options.begin(), options.end());
    return AddNode(node);
  }

  // The routine of a rule, or of the body of repetitions (numbered behind the rules).
  uint32_t RoutineOf(uint32_t thing) {
    const auto [known, inserted] =
        routine_of_.emplace(thing, static_cast<uint32_t>(program_.routines.size()));
    if (inserted) {
      program_.routines.push_back({.nullable = nullable_[thing], .shortest = shortest_[thing]});
      pending_.push_back(thing);
      owner_of_.emplace(thing, depends_.is_rule(thing) ? thing - depends_.of_rule(0) : owner_);
    }
    return known->second;
  }

  void MakeNodes() {
    AddNode({.op = Op::kReturn, .shortest = 0});
    AddNode({.op = Op::kAccept, .shortest = 0});
    program_.root = RoutineOf(depends_.of_rule(ir_.root()));
    while (!pending_.empty()) {
      StopScope::Step();
      const uint32_t thing = pending_.back();
      pending_.pop_back();
      const ExprId body =
          depends_.is_rule(thing) ? ir_.rule(thing - depends_.of_rule(0)).body : thing;
      rule_ = depends_.is_rule(thing) ? thing - depends_.of_rule(0) : GrammarIr::kNoRule;
      owner_ = owner_of_.at(thing);
      const auto first_node = static_cast<uint32_t>(program_.nodes.size());
      const bool rule = depends_.is_rule(thing);
      const auto* attributes = rule ? &ir_.rule(rule_).attributes : nullptr;
      const bool captures = captures_ && rule && attributes->captures();
      const bool marked = captures || (!captures_ && rule && attributes->temperature);
      uint32_t start = NodesOf(body, marked ? Mark(1, CfgProgram::kReturnNode) : 0, rule);
      if (captures) start = Mark(0, start);
      program_.routines[routine_of_.at(thing)].start = start;
      if (!captures_ && rule && attributes->temperature) {
        program_.temperatures.resize(program_.nodes.size(), -1.0f);
        for (size_t node = first_node; node < program_.nodes.size(); ++node)
          program_.temperatures[node] = static_cast<float>(*attributes->temperature);
      }
    }
    if (!program_.temperatures.empty()) program_.temperatures.resize(program_.nodes.size(), -1.0f);
  }

  uint32_t Mark(uint32_t end, uint32_t next) {
    return AddNode({.op = Op::kMark,
                    .index = rule_,
                    .count = end,
                    .next = next,
                    .shortest = program_.nodes[next].shortest});
  }

  // The node from which `expr` leads to `next`, remembered as such.
  uint32_t NodesOf(ExprId id, uint32_t next, bool top = false, int depth = 0) {
    const uint32_t node = MakeNodesOf(id, next, top, depth);
    CfgProgram::Origin& origin = program_.origins[node];
    if (node != next && origin.expr == GrammarIr::kNever) origin = {id, next};
    return node;
  }

  // Nested sequences and choices are flat in the IR;
  // deeper nesting is cut by making a routine of an operand, so the recursion is bounded.
  uint32_t MakeNodesOf(ExprId id, uint32_t next, bool top, int depth) {
    const GrammarIr::Expr& expr = ir_.expr(id);
    if (id == GrammarIr::kEmpty || (IsFolded(id) && folded_[id] == RegexArena::kEpsilon))
      return next;
    const Cost after = program_.nodes[next].shortest;
    if (const auto terminal = terminal_of_.find(id); terminal != terminal_of_.end()) {
      uint32_t index = terminal->second;
      if (top && rule_ != GrammarIr::kNoRule && ir_.rule(rule_).attributes.max_tokens) {
        CfgProgram::Terminal limited = program_.terminals[index];
        limited.max_tokens = std::max(1u, *ir_.rule(rule_).attributes.max_tokens);
        limited.relaxed = ir_.rule(rule_).attributes.relaxed;
        program_.counts_tokens = true;
        index = static_cast<uint32_t>(program_.terminals.size());
        program_.terminals.push_back(limited);
      }
      const uint32_t node = AddNode({.op = Op::kTerminal,
                                     .index = index,
                                     .next = next,
                                     .shortest = Add(program_.terminals[index].shortest, after)});
      return nullable_[id] ? Split({node, next}) : node;
    }
    if (expr.kind != Kind::kCall && depth > kMaxNesting) {
      const uint32_t node = AddNode({.op = Op::kCall,
                                     .index = RoutineOf(id),
                                     .next = next,
                                     .shortest = Add(shortest_[id], after)});
      return node;
    }
    switch (expr.kind) {
      case Kind::kTokens:
        return AddNode({.op = Op::kTokens,
                        .index = expr.index,
                        .next = next,
                        .shortest = Add(CfgProgram::kTokenCost, after)});
      case Kind::kCall: {
        const uint32_t rule = depends_.of_rule(expr.index);
        return AddNode({.op = Op::kCall,
                        .index = RoutineOf(rule),
                        .next = next,
                        .shortest = Add(shortest_[rule], after)});
      }
      case Kind::kSequence:
        for (size_t i = expr.operands.size(); i-- > 0;)
          next = NodesOf(ir_.expr(id).operands[i], next, false, depth + 1);
        return next;
      case Kind::kChoice: {
        std::vector<uint32_t> options;
        for (size_t i = 0; i < expr.operands.size(); ++i) {
          const ExprId operand = ir_.expr(id).operands[i];
          if (productive_[operand]) options.push_back(NodesOf(operand, next, top, depth + 1));
        }
        return Split(std::move(options));
      }
      case Kind::kRepeat:
        return RepeatNodes(id, next, depth);
      default:
        return next;
    }
  }

  uint32_t RepeatNodes(ExprId id, uint32_t next, int depth) {
    const GrammarIr::Expr& expr = ir_.expr(id);
    const ExprId operand = expr.operands[0];
    if (!productive_[operand]) return next;  // no times
    // Empty rounds make up for any minimum, so what counts are the others.
    const uint32_t min = nullable_[operand] ? 0 : expr.min;
    const uint32_t max = expr.max;
    if (max == 1) return Split({NodesOf(operand, next, false, depth + 1), next});
    if (max == GrammarIr::kUnbounded && min <= 1) {
      // A loop within the routine: a split that is filled in when its body is there.
      const uint32_t loop = AddNode({.op = Op::kSplit,
                                     .index = static_cast<uint32_t>(program_.splits.size()),
                                     .count = 2,
                                     .shortest = program_.nodes[next].shortest});
      program_.origins[loop] = {id, next, true};
      // The exit stands first, so that a shortest path does not go round.
      program_.splits.insert(program_.splits.end(), {next, next});
      const uint32_t slot = program_.nodes[loop].index + (captures_ ? 0 : 1);
      const uint32_t body = NodesOf(operand, loop, false, depth + 1);
      program_.splits[slot] = body;
      return min == 1 ? body : loop;
    }
    return AddNode(
        {.op = Op::kRepeat,
         .index = RoutineOf(operand),
         .min = min,
         .max = max,
         .next = next,
         .shortest = Add(Times(shortest_[operand], min), program_.nodes[next].shortest)});
  }

  static constexpr ReId kNotFolded = UINT32_MAX;
  static constexpr int kMaxNesting = 200;

  GrammarIr& ir_;
  const Vocabulary& vocabulary_;
  const bool captures_;
  const Dependencies depends_;
  CfgProgram program_;
  std::vector<bool> leaf_productive_, leaf_nullable_;
  std::vector<bool> productive_, nullable_;  // by thing
  std::vector<ReId> folded_;
  std::vector<uint32_t> weight_;
  std::vector<Cost> shortest_;
  std::vector<uint32_t> reached_;
  std::vector<std::shared_ptr<Machine>> automata_;
  std::unordered_map<uint64_t, uint32_t> regex_terminals_;
  std::unordered_map<ExprId, uint32_t> terminal_of_;
  std::unordered_map<uint32_t, uint32_t> routine_of_;
  std::unordered_map<uint32_t, GrammarIr::RuleId> owner_of_;  // by thing with a routine
  std::vector<uint32_t> pending_;
  uint32_t rule_ = GrammarIr::kNoRule;
  GrammarIr::RuleId owner_ = GrammarIr::kNoRule;  // in whose text nodes are made
};

}  // namespace

bool CfgProgram::Tokens::Has(TokenId token) const {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), std::pair(token, INT32_MAX));
  return after != ranges.begin() && std::prev(after)->second >= token;
}

Status CheckCfg(GrammarIr& ir) {
  const auto vocabulary = Vocabulary::Create({.tokens = {"a"}, .special = {}, .end_tokens = {}});
  if (!vocabulary.ok()) return vocabulary.error();
  return Builder(ir, **vocabulary, CfgUse::kMasks).Check();
}

Result<CfgProgram> CompileCfg(GrammarIr& ir, const Vocabulary& vocabulary, CfgUse use) {
  return Builder(ir, vocabulary, use).Build();
}

}  // namespace pawl
