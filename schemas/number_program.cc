// The usual case is a conjunction (a schema's bounds, or the bounds of several allOf branches): the
// constraints merge into one and its automaton knows exactly what is still possible. Otherwise
// (anyOf of ranges, not, enums) the product of the automata is searched breadth first; it reads
// plain digits only, because with exponents its states would be unbounded.
#include "schemas/number_program.h"

#include <algorithm>
#include <deque>

namespace pawl::schema {
namespace {

// States that one question may visit: a product state takes a few hundred bytes. Where one question
// was too long, the next will be too. And the steps of all questions together: a mask asks
// thousands.
constexpr int64_t kFuel = 10'000, kFuelAfterAll = 16, kStepsOfAll = 120'000;
constexpr char kAlphabet[] = "0123456789.-";

// The value fulfils the constraint.
bool Fulfils(const Decimal& value, const NumberConstraint& c) {
  if (c.minimum && (c.exclusive_minimum ? value <= *c.minimum : value < *c.minimum)) return false;
  if (c.maximum && (c.exclusive_maximum ? value >= *c.maximum : value > *c.maximum)) return false;
  if (c.multiple_of && !value.IsMultipleOf(*c.multiple_of)) return false;
  return !c.integer || value.IsInteger();
}

// The conjunction of two constraints; nullopt when their multiples are too big to combine.
std::optional<NumberConstraint> Merge(NumberConstraint a, const NumberConstraint& b) {
  if (b.minimum) {
    if (!a.minimum || *b.minimum > *a.minimum) {
      a.minimum = b.minimum;
      a.exclusive_minimum = b.exclusive_minimum;
    } else if (*b.minimum == *a.minimum) {
      a.exclusive_minimum |= b.exclusive_minimum;
    }
  }
  if (b.maximum) {
    if (!a.maximum || *b.maximum < *a.maximum) {
      a.maximum = b.maximum;
      a.exclusive_maximum = b.exclusive_maximum;
    } else if (*b.maximum == *a.maximum) {
      a.exclusive_maximum |= b.exclusive_maximum;
    }
  }
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

Result<std::unique_ptr<NumberProgram>> NumberProgram::Create(
    const SchemaTable& table, std::vector<AtomId> atoms, const std::vector<AtomId>& must,
    bool conjunction, std::function<bool(StateId)> accept, bool allow_exponents, bool canonical) {
  std::unique_ptr<NumberProgram> program(new NumberProgram());
  program->accept_ = std::move(accept);
  NumberAtom common;
  bool finite = false;
  program->merged_ = conjunction;
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
      program->merged_ = false;
    }
  }
  if (finite) {
    std::erase_if(common.values,
                  [&](const Decimal& value) { return !Fulfils(value, common.constraint); });
    // "1.0" is no integer to draft 4; the set knows values only, so the spelling is left to the
    // product.
    if (common.constraint.integer_text) program->merged_ = false;
  }
  // With exponents an automaton has to remember whole mantissas; a product of such is searched in
  // vain.
  allow_exponents = allow_exponents && program->merged_;
  program->exponents_ = allow_exponents;
  Part first;
  if (finite && allow_exponents && !canonical) {
    first.exponents = std::make_unique<ExponentSet>(common.values);
  } else if (finite) {
    auto set = NumberSet::Create(common.values, canonical);
    if (!set.ok()) return set.error();
    first.set = *std::move(set);
  } else {
    // Only what every number has to fulfil is narrowed: under a `not` it would let more in.
    common.constraint.integer_text |= canonical && common.constraint.integer;
    auto automaton = Part::Create(common, allow_exponents);
    if (!automaton.ok()) return automaton.error();
    first = *std::move(automaton);
  }
  program->parts_.push_back(std::move(first));
  if (!program->merged_) {
    // One automaton tells the values of all sets apart: an enum of objects asks of one number which
    // of a thousand constants it is.
    for (const AtomId atom : atoms) {
      const NumberAtom& number = table.number(atom);
      program->listed_.insert(program->listed_.end(), number.values.begin(), number.values.end());
    }
    std::sort(program->listed_.begin(), program->listed_.end());
    program->listed_.erase(std::unique(program->listed_.begin(), program->listed_.end()),
                           program->listed_.end());
    if (!program->listed_.empty()) {
      auto set = NumberSet::Create(program->listed_);
      if (!set.ok()) return set.error();
      program->parts_.emplace_back().set = *std::move(set);
    }
    for (const AtomId atom : atoms) {
      const NumberAtom& number = table.number(atom);
      if (!number.values.empty()) {
        program->deciders_.push_back({atom, 1, &number.values});
        continue;
      }
      auto part = Part::Create(number, allow_exponents);
      if (!part.ok()) return part.error();
      program->deciders_.push_back({atom, static_cast<uint32_t>(program->parts_.size()), nullptr});
      program->parts_.push_back(*std::move(part));
    }
  }
  program->states_.emplace_back();  // dead
  program->states_[0].live = 0;
  std::vector<uint32_t> start;
  for (const Part& part : program->parts_) start.push_back(part.Start());
  program->Intern(std::move(start));
  return program;
}

Result<NumberProgram::Part> NumberProgram::Part::Create(const NumberAtom& atom,
                                                        bool allow_exponents) {
  Part part;
  if (!atom.values.empty()) {
    auto set = NumberSet::Create(atom.values);
    if (!set.ok()) return set.error();
    part.set = *std::move(set);
    return part;
  }
  auto automaton = NumberAutomaton::Create(atom.constraint, allow_exponents);
  if (!automaton.ok()) return automaton.error();
  part.automaton = *std::move(automaton);
  return part;
}

NumberProgram::StateId NumberProgram::Intern(std::vector<uint32_t> key) {
  uint64_t hash = 0;
  for (const uint32_t word : key) hash = (hash ^ word) * 0x9E3779B97F4A7C15u, hash ^= hash >> 31;
  const auto [first, last] = index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (states_[it->second].key == key) return it->second;
  }
  const StateId id = static_cast<StateId>(states_.size());
  states_.push_back({std::move(key), -1, 0});
  index_.emplace(hash, id);
  return id;
}

NumberProgram::StateId NumberProgram::RawStep(StateId state, char c) {
  // An empty constraint reads exponents whether they are wanted or not.
  if (!exponents_ && (c == 'e' || c == 'E')) return 0;
  ++steps_;
  std::vector<uint32_t> key = states_[state].key;
  for (size_t i = 0; i < key.size(); ++i) {
    key[i] = parts_[i].Step(key[i], c);
    // The text must be a number for every automaton, and can be for the first part.
    if (key[i] == 0 && (i == 0 || !parts_[i].set)) return 0;
  }
  return Intern(std::move(key));
}

NumberProgram::StateId NumberProgram::Step(StateId state, char c) {
  const StateId next = RawStep(state, c);
  return next != 0 && Live(next) ? next : 0;
}

bool NumberProgram::Truth(StateId state, AtomId atom) const {
  // Merged: only asked of accepted numbers, which fulfil everything.
  if (merged_) return parts_[0].Accepting(states_[state].key[0]);
  const auto decider =
      std::lower_bound(deciders_.begin(), deciders_.end(), atom,
                       [](const Decider& d, AtomId wanted) { return d.atom < wanted; });
  const uint32_t at = states_[state].key[decider->part];
  const Part& part = parts_[decider->part];
  if (decider->values == nullptr || !part.Accepting(at)) return part.Accepting(at);
  return std::binary_search(decider->values->begin(), decider->values->end(),
                            listed_[part.set->Index(at)]);
}

bool NumberProgram::Accepts(StateId state) {
  if (state == 0 || !parts_[0].Complete(states_[state].key[0])) return false;
  if (merged_) return parts_[0].Accepting(states_[state].key[0]);
  return accept_(state);
}

bool NumberProgram::Live(StateId state) {
  if (states_[state].live < 0) {
    if (merged_) {
      states_[state].live = parts_[0].CanAccept(states_[state].key[0]) ? 1 : 0;
    } else {
      Decide(state);
    }
  }
  return states_[state].live == 1;
}

// What completes the number for the first part may do so for all.
bool NumberProgram::Guess(StateId start) {
  if (!parts_[0].CanAccept(states_[start].key[0])) return false;
  std::vector<StateId> way = {start};
  const std::string text = parts_[0].ShortestAccepting(states_[start].key[0]);
  for (const char c : text) {
    const StateId next = RawStep(way.back(), c);
    if (next == 0) return false;
    way.push_back(next);
  }
  if (!Accepts(way.back())) return false;
  states_[way.back()].live = 1;
  for (size_t i = text.size(); i-- > 0;) {
    states_[way[i]].live = 1;
    states_[way[i]].via = text[i];
  }
  return true;
}

bool NumberProgram::FindNear(StateId start) {
  if (Accepts(start) || Guess(start)) return true;
  for (const char* c = kAlphabet; *c != 0; ++c) {
    const StateId next = RawStep(start, *c);
    if (next == 0 || !(Accepts(next) || Guess(next))) continue;
    states_[start].via = *c;
    return true;
  }
  return false;
}

void NumberProgram::Decide(StateId start) {
  if (!parts_[0].CanAccept(states_[start].key[0])) {
    states_[start].live = 0;
    return;
  }
  if (steps_ > kStepsOfAll || FindNear(start)) {
    states_[start].live = 1;
    return;
  }
  struct Visit {
    StateId from;
    char via;
  };
  std::unordered_map<StateId, Visit> visited = {{start, {start, 0}}};
  std::deque<StateId> queue = {start};
  int64_t fuel = exhausted_ ? kFuelAfterAll : kFuel;
  while (!queue.empty()) {
    const StateId state = queue.front();
    queue.pop_front();
    if (states_[state].live == 1 || Accepts(state)) {
      states_[state].live = 1;
      for (StateId s = state; s != start; s = visited.at(s).from) {
        const Visit visit = visited.at(s);
        states_[visit.from].live = 1;
        states_[visit.from].via = visit.via;
      }
      return;
    }
    for (const char* c = kAlphabet; *c != 0; ++c) {
      const StateId next = RawStep(state, *c);
      if (next != 0 && !parts_[0].CanAccept(states_[next].key[0])) states_[next].live = 0;
      if (next == 0 || states_[next].live == 0 || visited.contains(next)) continue;
      visited.emplace(next, Visit{state, *c});
      queue.push_back(next);
    }
    if (--fuel <= 0) {
      exhausted_ = true;
      states_[start].live = 1;
      return;
    }
  }
  for (const auto& [state, visit] : visited) states_[state].live = 0;
}

std::optional<std::string> NumberProgram::Shortest(StateId state) {
  if (!Live(state)) return std::nullopt;
  if (merged_) return parts_[0].ShortestAccepting(states_[state].key[0]);
  std::string out;
  while (!Accepts(state)) {
    if (!Live(state)) return std::nullopt;
    if (states_[state].via == 0 && !FindNear(state)) return std::nullopt;
    out.push_back(states_[state].via);
    state = RawStep(state, states_[state].via);
  }
  return out;
}

}  // namespace pawl::schema
