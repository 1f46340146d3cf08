// A Grammar is a machine, and a machine comes from a GrammarIr, or is a regex or a schema, of which
// a GrammarIr of one lexeme is made. Spans of a text become a regex first. What is derived from it
// shares the arena of its regexes and its schemas' machines, which grow; so it also shares the
// lock.
#include "pawl/combine.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "grammar/cfg/cfg_machine.h"
#include "grammar/cfg/intersect.h"
#include "grammar/cfg/quotient.h"
#include "grammar/explicit_automaton.h"
#include "grammar/grammar_access.h"
#include "grammar/languages/span_machine.h"
#include "grammar/regex/regex_machine.h"

namespace pawl {
namespace {

bool IsRegular(Machine* machine) {
  return dynamic_cast<RegexMachine*>(machine) != nullptr ||
         dynamic_cast<SpanMachine*>(machine) != nullptr;
}

// nullptr where it is none.
Result<RegexMachine*> RegexOf(Machine* machine) {
  if (auto* spans = dynamic_cast<SpanMachine*>(machine)) return spans->AsRegex();
  return dynamic_cast<RegexMachine*>(machine);
}

Result<GrammarIr> IrOf(const std::shared_ptr<Machine>& machine) {
  if (const auto* cfg = dynamic_cast<const CfgMachine*>(machine.get())) return cfg->ir();
  const Result<RegexMachine*> regular = RegexOf(machine.get());
  if (!regular.ok()) return regular.error();
  RegexMachine* const regex = *regular;
  GrammarIr ir = regex != nullptr ? GrammarIr(regex->arena()) : GrammarIr();
  const GrammarIr::RuleId root = ir.AddRule("root");
  ir.Define(root, regex != nullptr ? ir.Regex(regex->TermOf(regex->Start()))
                                   : ir.Terminal({machine, ""}));
  ir.SetRoot(root);
  return ir;
}

// The machine of a grammar that was made once, made in the same way again.
template <typename Make>
MachineMaker Again(const Make& make) {
  return [make]() -> LockedMachine {
    const Result<Grammar> made = make();
    if (!made.ok()) return {};
    const GrammarAccess access = GrammarAccess::Of(*made);
    return {access.machine, access.lock};
  };
}

// `ask` with the access to a grammar whose machine may be asked, under its lock.
template <typename Ask>
auto WithMachineOf(const Grammar& grammar, const Ask& ask) {
  for (;;) {
    const GrammarAccess access = GrammarAccess::Of(grammar);
    const MachineUse use(*access.lock);
    if (!use.broken()) return ask(access);
  }
}

Result<Grammar> Finish(const GrammarAccess& access, Result<GrammarIr> ir, MachineMaker again) {
  if (!ir.ok()) return ir.error();
  auto machine = CfgMachine::Create(*ir, *access.vocabulary);
  if (!machine.ok()) {
    Error error = machine.error();
    if (error.code == ErrorCode::kUnsatisfiable) error = {error.code, "no output fits", ""};
    return error;
  }
  return access.Make(*std::move(machine), std::move(again));
}

Result<Grammar> OfRegex(const GrammarAccess& access, const std::shared_ptr<RegexArena>& arena,
                        ReId regex, MachineMaker again) {
  auto machine = std::make_shared<RegexMachine>(arena, regex);
  if (arena->overflow()) return Error{ErrorCode::kLimit, "the regex is too large", ""};
  if (machine->Start() == Machine::kDead)
    return Error{ErrorCode::kUnsatisfiable, "no output fits", ""};
  return access.Make(std::move(machine), std::move(again));
}

// What `make` makes of the grammars. Where some of them wait for their texts, so does the result.
template <typename Make>
Result<Grammar> KeepWaiting(const std::vector<Grammar>& of, const Make& make) {
  Result<Grammar> made = make(of);
  if (!made.ok() || std::ranges::none_of(of, &GrammarAccess::HasBinder)) return made;
  const auto waits = [](const Grammar& one) { return !one.unbound().empty(); };
  const auto first = std::ranges::find_if(of, waits);
  GrammarAccess::SetBinder(
      *made,
      [of, make, some = first != of.end(), waits](std::string_view text) -> Result<Grammar> {
        std::vector<Grammar> bound;
        for (const Grammar& one : of) {
          // Where none waits, one of them tells that it has a text.
          const bool asked = some ? waits(one) : GrammarAccess::HasBinder(one);
          Result<Grammar> with = asked ? one.Bind(text) : one;
          if (!with.ok()) return with;
          bound.push_back(*std::move(with));
        }
        return KeepWaiting(bound, make);
      },
      first == of.end() ? "" : first->unbound());
  return made;
}

Result<Grammar> InfillOf(const Grammar& grammar, const Infilling& infilling) {
  if (infilling.after.empty())
    return Error{ErrorCode::kInvalid, "has no text after the gap, not even an empty one", "after"};
  return WithMachineOf(grammar, [&](const GrammarAccess& access) -> Result<Grammar> {
    const Result<GrammarIr> ir = IrOf(access.machine);
    if (!ir.ok()) return ir.error();
    return Finish(access, FillGap(*ir, infilling.prefix, infilling.after, *access.vocabulary),
                  Again([grammar, infilling] { return InfillOf(grammar, infilling); }));
  });
}

Result<Grammar> EndingsOf(const Grammar& grammar, std::string_view prefix) {
  return WithMachineOf(grammar, [&](const GrammarAccess& access) -> Result<Grammar> {
    const Vocabulary& vocabulary = *access.vocabulary;
    // Refuses limits on tokens, which endings cannot have.
    IrReverser reverser(QuotientLimits().max_regex_states);
    const Result<GrammarIr> ir = IrOf(access.machine);
    if (!ir.ok()) return ir.error();
    if (Result<GrammarIr> backwards = reverser.Reverse(*ir); !backwards.ok()) {
      return backwards.error();
    }
    Result<GrammarIr> rest = LeftQuotient(*ir, prefix, vocabulary);
    if (!rest.ok()) {
      const Error& error = rest.error();
      return Error{error.code, error.message,
                   error.place.empty() ? "prefix" : "prefix, " + error.place};
    }
    return Finish(
        access, Endings(*std::move(rest), vocabulary),
        Again([grammar, text = std::string(prefix)] { return EndingsOf(grammar, text); }));
  });
}

Result<Grammar> RequireWordsOf(const Grammar& grammar, std::span<const std::string> words) {
  const auto automaton = OccurrenceAutomaton(words);
  if (!automaton.ok()) return automaton.error();
  return WithMachineOf(grammar, [&](const GrammarAccess& access) -> Result<Grammar> {
    const Result<GrammarIr> ir = IrOf(access.machine);
    if (!ir.ok()) return ir.error();
    return Finish(access, Intersect(*ir, **automaton, *access.vocabulary),
                  Again([grammar, list = std::vector<std::string>(words.begin(), words.end())] {
                    return RequireWordsOf(grammar, list);
                  }));
  });
}

Result<Grammar> IntersectRegexes(const Grammar& a, const Grammar& b) {
  for (;;) {
    const GrammarAccess left = GrammarAccess::Of(a), right = GrammarAccess::Of(b);
    auto* first = left.lock.get();
    auto* second = right.lock.get();
    if (std::less<>()(second, first)) std::swap(first, second);
    const MachineUse use(*first);
    std::optional<MachineUse> other_use;
    if (first != second) other_use.emplace(*second);
    if (first->broken() || second->broken()) continue;
    const Result<RegexMachine*> left_form = RegexOf(left.machine.get());
    if (!left_form.ok()) return left_form.error();
    const Result<RegexMachine*> right_form = RegexOf(right.machine.get());
    if (!right_form.ok()) return right_form.error();
    RegexMachine& left_regex = **left_form;
    RegexMachine& right_regex = **right_form;
    RegexArena& arena = *left_regex.arena();
    const ReId other = right_regex.TermOf(right_regex.Start());
    const ReId own = left_regex.arena() == right_regex.arena()
                         ? other
                         : arena.Import(*right_regex.arena(), other);
    return OfRegex(left, left_regex.arena(), arena.And(left_regex.TermOf(left_regex.Start()), own),
                   Again([a, b] { return IntersectRegexes(a, b); }));
  }
}

Result<Grammar> IntersectOf(const Grammar& a, const Grammar& b) {
  const auto is_regex = [](const Grammar& of) {
    return IsRegular(GrammarAccess::Of(of).machine.get());
  };
  const auto is_cfg = [](const Grammar& of) {
    return dynamic_cast<CfgMachine*>(GrammarAccess::Of(of).machine.get()) != nullptr;
  };
  if (is_regex(a)) return is_regex(b) ? IntersectRegexes(a, b) : IntersectOf(b, a);
  if (is_cfg(b)) {
    if (!is_cfg(a)) return IntersectOf(b, a);
    return Error{ErrorCode::kUnsupported,
                 "one of the two must be a regex, choices, a substring or a schema: whether two "
                 "grammars have a text in common cannot be decided",
                 ""};
  }
  const auto listed = WithMachineOf(b, [](const GrammarAccess& right) {
    return ExplicitAutomaton::Explore(*right.machine, right.machine->Start());
  });
  if (!listed.ok()) {
    return Error{ErrorCode::kUnsupported,
                 "the states of one of the two must be listed, but it " + listed.error().message,
                 ""};
  }
  return WithMachineOf(a, [&](const GrammarAccess& left) -> Result<Grammar> {
    const Result<GrammarIr> ir = IrOf(left.machine);
    if (!ir.ok()) return ir.error();
    return Finish(left, Intersect(*ir, **listed, *left.vocabulary),
                  Again([a, b] { return IntersectOf(a, b); }));
  });
}

}  // namespace

Result<Grammar> Infill(const Grammar& grammar, const Infilling& infilling) {
  return KeepWaiting({grammar}, [infilling](const std::vector<Grammar>& of) {
    return InfillOf(of.front(), infilling);
  });
}

Result<Grammar> Endings(const Grammar& grammar, std::string_view prefix) {
  return KeepWaiting({grammar}, [text = std::string(prefix)](const std::vector<Grammar>& of) {
    return EndingsOf(of.front(), text);
  });
}

Result<Grammar> RequireWords(const Grammar& grammar, std::span<const std::string> words) {
  return KeepWaiting(
      {grammar}, [list = std::vector<std::string>(words.begin(), words.end())](
                     const std::vector<Grammar>& of) { return RequireWordsOf(of.front(), list); });
}

Result<Grammar> Intersect(const Grammar& a, const Grammar& b) {
  return KeepWaiting(
      {a, b}, [](const std::vector<Grammar>& of) { return IntersectOf(of.front(), of.back()); });
}

Result<Grammar> Complement(const Grammar& grammar) {
  return WithMachineOf(grammar, [&](const GrammarAccess& access) -> Result<Grammar> {
    const Result<RegexMachine*> regular = RegexOf(access.machine.get());
    if (!regular.ok()) return regular.error();
    RegexMachine* const regex = *regular;
    if (regex == nullptr) {
      return Error{ErrorCode::kUnsupported,
                   "only regexes, choices and substrings have a complement here", ""};
    }
    return OfRegex(access, regex->arena(), regex->arena()->Not(regex->TermOf(regex->Start())),
                   Again([grammar] { return Complement(grammar); }));
  });
}

}  // namespace pawl
