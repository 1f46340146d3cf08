// The usual case is a conjunction (a schema's bounds, or the bounds of several allOf branches): the
// constraints merge into one and its automaton knows exactly what is still possible. Otherwise
// (anyOf of ranges, not, enums) the automata run side by side as far as the mantissa goes. That
// only tells mantissas apart; what may follow one is asked of the first text that led there
// (NumberSearch). Behind the 'e' a state is the mantissa's and the exponent so far.
#include "schemas/scalar/number_program.h"

#include <algorithm>
#include <climits>

#include "schemas/limits.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {
namespace {

constexpr std::string_view kBeginnings = "0123456789-";

// The value fulfils the constraint.
bool Fulfils(const Decimal& value, const NumberConstraint& c) {
  if (c.minimum && (c.exclusive_minimum ? value <= *c.minimum : value < *c.minimum)) return false;
  if (c.maximum && (c.exclusive_maximum ? value >= *c.maximum : value > *c.maximum)) return false;
  if (c.multiple_of && !value.IsMultipleOf(*c.multiple_of)) return false;
  return !c.integer || value.IsInteger();
}

// The conjunction of two constraints; nullopt when their multiples are too big to combine.
std::optional<NumberConstraint> Merge(NumberConstraint a, const NumberConstraint& b) {
  const auto tighten = [](auto& bound, bool& exclusive, const auto& other, bool other_exclusive,
                          const auto& tighter) {
    if (!other || (bound && tighter(*bound, *other))) return;
    exclusive = other_exclusive || (exclusive && bound == other);
    bound = other;
  };
  tighten(a.minimum, a.exclusive_minimum, b.minimum, b.exclusive_minimum, std::greater<>());
  tighten(a.maximum, a.exclusive_maximum, b.maximum, b.exclusive_maximum, std::less<>());
  if (b.multiple_of) {
    if (a.multiple_of) {
      auto lcm = Decimal::Lcm(*a.multiple_of, *b.multiple_of);
      if (!lcm.ok()) return std::nullopt;
      a.multiple_of = *lcm;
    } else {
      a.multiple_of = b.multiple_of;
    }
  }
  a.integer |= b.integer;
  a.integer_text |= b.integer_text;
  return a;
}

}  // namespace

struct NumberProgram::Exponent {
  StateId mantissa = 0;
  bool sign = false, negative = false, digits = false;  // what of it was read
  int64_t value = 0;                                    // of the digits
};

Result<NumberProgram::Part> NumberProgram::Part::Create(const NumberConstraint& constraint,
                                                        bool allow_exponents) {
  Part part;
  auto automaton = NumberAutomaton::Create(constraint, allow_exponents);
  if (!automaton.ok()) return automaton.error();
  part.automaton = *std::move(automaton);
  return part;
}

Result<NumberProgram::Part> NumberProgram::Part::Create(const std::vector<Decimal>& values,
                                                        bool allow_exponents, bool canonical) {
  Part part;
  if (allow_exponents && !canonical) {
    part.exponents = std::make_unique<ExponentSet>(values);
    return part;
  }
  auto set = NumberSet::Create(values, canonical);
  if (!set.ok()) return set.error();
  part.set = *std::move(set);
  return part;
}

Result<std::unique_ptr<NumberProgram>> NumberProgram::Create(
    const SchemaTable& table, std::vector<AtomId> atoms, const std::vector<AtomId>& must,
    bool conjunction, std::function<bool(const TruthOf&)> accept, bool allow_exponents,
    bool canonical, int max_digits) {
  std::unique_ptr<NumberProgram> program(new NumberProgram());
  const bool lists = std::ranges::any_of(
      atoms, [&table](AtomId atom) { return !table.number(atom).values.empty(); });
  if (!lists) program->max_digits_ = std::min(max_digits, limits::kCountedDigits);
  NumberAtom common;
  bool finite = false, merged = conjunction;
  for (const AtomId atom : must) {
    const NumberAtom& number = table.number(atom);
    if (!number.values.empty()) {
      std::vector<Decimal> both;
      if (finite) {
        std::set_intersection(common.values.begin(), common.values.end(), number.values.begin(),
                              number.values.end(), std::back_inserter(both));
      }
      common.values = finite ? std::move(both) : number.values;
      finite = true;
    } else if (auto both = Merge(common.constraint, number.constraint)) {
      common.constraint = *std::move(both);
    } else {
      merged = false;
    }
  }
  if (finite) {
    std::erase_if(common.values,
                  [&](const Decimal& value) { return !Fulfils(value, common.constraint); });
    // "1.0" is no integer to draft 4; a set knows values only, so the spelling is asked in
    // addition.
    if (common.constraint.integer_text) merged = false;
  }
  if (canonical && common.constraint.integer) common.constraint.integer_text = true;
  common.constraint.no_minus_zero = canonical;
  std::vector<Part>& parts = program->parts_;
  const auto add = [&parts](Result<Part> part) -> std::optional<Error> {
    if (!part.ok()) return part.error();
    parts.push_back(*std::move(part));
    return std::nullopt;
  };
  program->only_listed_ = !merged && finite && canonical;
  program->exponents_ = allow_exponents;
  if (merged || program->only_listed_) {
    if (auto error = add(finite ? Part::Create(common.values, allow_exponents, canonical)
                                : Part::Create(common.constraint, allow_exponents))) {
      return *std::move(error);
    }
  } else {
    program->exponents_ &= !common.constraint.integer_text;
    NumberConstraint syntax;
    syntax.no_minus_zero = canonical;
    if (auto error = add(Part::Create(syntax, false))) return *std::move(error);
    std::vector<Decimal> listed;
    for (const AtomId atom : atoms) {
      const NumberAtom& number = table.number(atom);
      listed.insert(listed.end(), number.values.begin(), number.values.end());
      if (!number.values.empty()) continue;
      if (auto error = add(Part::Create(number.constraint, program->exponents_)))
        return *std::move(error);
    }
    // One automaton tells the values of all sets apart: an enum of objects asks of one number which
    // of a thousand constants it is.
    if (!listed.empty()) {
      SortUnique(listed);
      if (auto error = add(Part::Create(listed, program->exponents_, false)))
        return *std::move(error);
    }
  }
  if (program->only_listed_) {
    for (Decimal& value : common.values) {
      std::string text = NumberSet::Plain(value);
      program->listed_.emplace_back(std::move(text), std::move(value));
    }
    std::ranges::sort(program->listed_, {},
                      [](const auto& one) { return std::string_view(one.first); });
  }
  if (!merged) {
    program->classes_ = std::make_unique<NumberClasses>(table, atoms, canonical);
    program->search_ = std::make_unique<NumberSearch>(
        *program->classes_,
        [classes = program->classes_.get(), accept = std::move(accept),
         canonical](const NumberClasses::Class& c) {
          // Narrowed next to the truth, not instead: under a `not` that would let more in.
          return accept([&](AtomId atom) { return classes->Holds(c, atom); }) &&
                 (!canonical || c.plain ||
                  accept([&](AtomId atom) { return classes->HoldsAsWritten(c, atom); }));
        },
        common.constraint.integer_text, canonical);
  }
  program->states_.emplace_back();  // dead
  program->states_[0].live = 0;
  std::vector<uint32_t> start;
  for (const Part& part : parts) start.push_back(part.Start());
  if (program->max_digits_ > 0) start.push_back(0);
  program->Intern(std::move(start), 0, 0);
  return program;
}

NumberProgram::StateId NumberProgram::Intern(std::vector<uint32_t> key, StateId from, char via) {
  uint64_t hash = 0;
  for (const uint32_t word : key) hash = HashMix(hash, word);
  const StateId known = index_.Find(hash, [&](StateId id) { return states_[id].key == key; });
  if (known != HashIndex::kNone) return known;
  const StateId id = static_cast<StateId>(states_.size());
  states_.emplace_back();
  Info& info = states_[id];
  info.key = std::move(key);
  info.from = from;
  info.via = via;
  // Where it is used: one condition alone knows what it needs.
  if (combines() && via != 0 && info.key[0] != kExponentKey) {
    info.mantissa = states_[from].mantissa;
    info.mantissa.Push(via);
  }
  index_.Insert(hash, id);
  return id;
}

std::string NumberProgram::TextOf(StateId state) const {
  std::string out;
  for (; states_[state].via != 0; state = states_[state].from) out.push_back(states_[state].via);
  std::reverse(out.begin(), out.end());
  return out;
}

NumberProgram::Exponent NumberProgram::ExponentOf(StateId state) const {
  const std::vector<uint32_t>& key = states_[state].key;
  return {key[1], (key[2] & 1) != 0, (key[2] & 2) != 0, (key[2] & 4) != 0, int64_t{key[3]}};
}

int64_t NumberProgram::ExponentLimit(StateId mantissa) const {
  if (!exponents_) return 0;
  for (size_t i = 1; i < parts_.size(); ++i) {
    if (parts_[i].automaton && parts_[i].automaton->LimitsExponent(states_[mantissa].key[i]))
      return limits::kTextExponent;
  }
  return limits::kFarExponent;
}

const ExponentRanges& NumberProgram::RangesOf(StateId mantissa) {
  const auto known = ranges_.find(mantissa);
  if (known != ranges_.end()) return known->second;
  const Mantissa read = states_[mantissa].mantissa;  // states may be made meanwhile
  ExponentRanges ranges = search_->Exponents(read, ExponentLimit(mantissa));
  return ranges_.emplace(mantissa, std::move(ranges)).first->second;
}

NumberProgram::StateId NumberProgram::StepExponent(StateId state, char c) {
  Exponent e;
  if (!InExponent(state)) {
    e.mantissa = state;
  } else {
    e = ExponentOf(state);
    if (c == '+' || c == '-') {
      if (e.sign || e.digits) return 0;
      e.sign = true;
      e.negative = c == '-';
    } else if (c >= '0' && c <= '9') {
      e.sign = e.digits = true;
      e.value = std::min(e.value * 10 + (c - '0'), RangesOf(e.mantissa).reach() + 1);
    } else {
      return 0;
    }
  }
  const uint32_t flags = (e.sign ? 1u : 0u) | (e.negative ? 2u : 0u) | (e.digits ? 4u : 0u);
  return Intern({kExponentKey, e.mantissa, flags, static_cast<uint32_t>(e.value)}, state, c);
}

NumberProgram::StateId NumberProgram::RawStep(StateId state, char c) {
  StopScope::Step();
  if (state == 0) return 0;
  // An empty constraint reads exponents whether they are wanted or not.
  if (!exponents_ && (c == 'e' || c == 'E')) return 0;
  if (combines() && !only_listed_) {
    if (InExponent(state)) return StepExponent(state, c);
    if (c == 'e' || c == 'E') {
      return parts_[0].automaton->Complete(states_[state].key[0]) ? StepExponent(state, c) : 0;
    }
  }
  std::vector<uint32_t> key = states_[state].key;
  if (max_digits_ > 0 && c >= '0' && c <= '9') {
    // More than enough are all alike.
    const uint32_t digits = key.back() & 0xFFFF, zeros = key.back() >> 16;
    const auto most = static_cast<uint32_t>(max_digits_);
    key.back() = digits > 0 || c != '0' ? std::min(digits + 1, most) | zeros << 16
                                        : std::min(zeros + 1, most + 1) << 16;
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    key[i] = parts_[i].Step(key[i], c);
    // The text must be a number for every automaton, and may be none of the listed ones.
    if (key[i] == 0 && (i == 0 || parts_[i].automaton)) return 0;
  }
  return Intern(std::move(key), state, c);
}

int NumberProgram::DigitsLeft(StateId state) const {
  if (max_digits_ == 0) return INT_MAX;
  if (state == 0 || InExponent(state)) return 0;
  const uint32_t digits = states_[state].key.back();
  // The zero before the point is none of the number's digits, those behind it may be as many.
  return max_digits_ - static_cast<int>(std::max(digits & 0xFFFF, std::max(digits >> 16, 1u) - 1));
}

bool NumberProgram::Equivalent(StateId a, StateId b) const {
  if (a == b) return true;
  const std::vector<uint32_t>&x = states_[a].key, &y = states_[b].key;
  return max_digits_ > 0 && x.size() == y.size() && x[0] != kExponentKey &&
         std::equal(x.begin(), x.end() - 1, y.begin());
}

NumberProgram::StateId NumberProgram::Step(StateId state, char c) {
  if (max_digits_ > 0 && state != 0 && !InExponent(state) && c != 'e' && c != 'E' && Enough(state))
    return 0;
  const StateId next = RawStep(state, c);
  return next != 0 && Live(next) ? next : 0;
}

NumberClasses::Class NumberProgram::ClassOf(StateId state) {
  if (!states_[state].known_class) {
    if (InExponent(state)) {
      const Exponent e = ExponentOf(state);
      const Decimal mantissa = states_[e.mantissa].mantissa.value();
      states_[state].known_class =
          classes_->Of(mantissa.Shifted(e.negative ? -e.value : e.value), false);
    } else {
      const Mantissa& mantissa = states_[state].mantissa;
      states_[state].known_class = classes_->Of(mantissa.value(), !mantissa.point);
    }
  }
  return *states_[state].known_class;
}

bool NumberProgram::Truth(StateId state, AtomId atom) {
  // Merged: an accepted number fulfils everything.
  return !combines() || classes_->Holds(ClassOf(state), atom);
}

bool NumberProgram::Accepts(StateId state) {
  if (state == 0) return false;
  if (combines() && InExponent(state)) {
    const Exponent e = ExponentOf(state);
    const int64_t exponent = e.negative ? -e.value : e.value;
    return e.digits && RangesOf(e.mantissa).Nearest(exponent, exponent).has_value();
  }
  const uint32_t at = states_[state].key[0];
  if (!combines()) return parts_[0].Accepting(at);
  // The syntax accepts every number but "-0" in canonical spelling.
  return parts_[0].Accepting(at) && search_->Accepts(ClassOf(state));
}

bool NumberProgram::Live(StateId state) {
  if (states_[state].live < 0) {
    const bool live = combines() ? AnyDigitsFit(state) || Completes(state, nullptr)
                                 : parts_[0].CanAccept(states_[state].key[0]);
    states_[state].live = live ? 1 : 0;
  }
  return states_[state].live == 1;
}

bool NumberProgram::TakesAnyDigits(StateId state) {
  return max_digits_ == 0 && AnyDigitsFit(state);
}

bool NumberProgram::AnyDigitsFit(StateId state) {
  if (state == 0) return false;
  if (!combines()) {
    return parts_[0].automaton != nullptr &&
           parts_[0].automaton->TakesAnyDigits(states_[state].key[0]);
  }
  if (states_[state].any_digits < 0) {
    const bool asked = !only_listed_ && !InExponent(state);
    const bool any = asked && search_->TakesAnyDigits(states_[state].mantissa);
    states_[state].any_digits = any ? 1 : 0;
  }
  return states_[state].any_digits == 1;
}

bool NumberProgram::CompletesListed(const std::string& begun, std::string* text) {
  bool any = false;
  for (auto it =
           std::ranges::lower_bound(listed_, begun, {}, [](const auto& one) { return one.first; });
       it != listed_.end() && it->first.starts_with(begun); ++it) {
    const bool plain = it->first.find('.') == std::string::npos;
    if (!search_->Accepts(classes_->Of(it->second, plain))) continue;
    if (text == nullptr) return true;
    if (!any || it->first.size() - begun.size() < text->size())
      *text = it->first.substr(begun.size());
    any = true;
  }
  return any;
}

bool NumberProgram::Completes(StateId state, std::string* text) {
  if (InExponent(state)) {
    const Exponent e = ExponentOf(state);
    const ExponentRanges& ranges = RangesOf(e.mantissa);
    auto rest = ranges.Completion(e.negative, e.digits, e.value);
    if (!e.sign) {
      auto negative = ranges.Completion(true, false, 0);
      if (negative) negative->insert(0, 1, '-');
      if (!rest || (negative && negative->size() < rest->size())) rest = std::move(negative);
    }
    if (rest && text != nullptr) *text = *rest;
    return rest.has_value();
  }
  if (only_listed_) return CompletesListed(TextOf(state), text);
  const Mantissa mantissa = states_[state].mantissa;
  if (!mantissa.begun) {
    bool any = false;
    for (const char c : kBeginnings) {
      const StateId next = RawStep(state, c);
      if (next == 0 || !Live(next)) continue;
      if (text == nullptr) return true;
      const auto rest = Shortest(next);
      if (!rest || (any && rest->size() + 1 >= text->size())) continue;
      *text = c + *rest;
      any = true;
    }
    return any;
  }
  const NumberSearch::Answer answer = search_->Completes(mantissa, ExponentLimit(state), text);
  // What is not known counts as possible, but there is no text to show.
  return text == nullptr ? answer != NumberSearch::Answer::kNo
                         : answer == NumberSearch::Answer::kYes;
}

std::optional<std::string> NumberProgram::Shortest(StateId state) {
  if (!Live(state)) return std::nullopt;
  std::string out;
  if (!combines()) {
    out = parts_[0].ShortestAccepting(states_[state].key[0]);
  } else if (Accepts(state)) {
    return out;
  } else if (!Completes(state, &out)) {
    return std::nullopt;
  }
  // With enough digits the first number on the way is the end of it.
  for (size_t i = 0; max_digits_ > 0 && i < out.size(); ++i) {
    if (!InExponent(state) && Enough(state)) {
      out.resize(i);
      break;
    }
    state = RawStep(state, out[i]);
  }
  return out;
}

bool NumberProgram::Endless(StateId state) {
  if (state == 0 || InExponent(state) || only_listed_ ||
      DigitsLeft(state) < limits::kCountlessDigits)
    return false;
  const Mantissa mantissa = states_[state].mantissa;
  return search_->Endless(mantissa);
}

}  // namespace pawl::schema
