// The usual case is a conjunction (a schema's bounds, or the bounds of several allOf branches): the
// constraints merge into one and its automaton knows exactly what is still possible. Otherwise (anyOf of ranges, not,
// enums) the product of the automata is searched breadth first; it reads plain digits only, because with exponents its states
// would be unbounded.
#include "schemas/number_program.h"

#include <algorithm>
#include <deque>

namespace pawl::schema {
namespace {

// States that one question may visit. A product state takes a few hundred bytes.
constexpr int64_t kFuel = 50'000;
constexpr char kAlphabet[] = "0123456789.-";

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

Result<std::unique_ptr<NumberProgram>> NumberProgram::Create(const SchemaTable& table, std::vector<AtomId> atoms,
                                                             const std::vector<AtomId>& must, bool conjunction,
                                                             std::function<bool(StateId)> accept,
                                                             bool allow_exponents) {
  std::unique_ptr<NumberProgram> program(new NumberProgram());
  program->atoms_ = std::move(atoms);
  program->accept_ = std::move(accept);
  NumberConstraint common;
  program->merged_ = conjunction;
  for (const AtomId atom : must) {
    if (auto both = Merge(common, table.number(atom))) {
      common = *std::move(both);
    } else {
      program->merged_ = false;
    }
  }
  // With exponents an automaton has to remember whole mantissas; a product of such is searched in vain.
  allow_exponents = allow_exponents && program->merged_;
  auto first = NumberAutomaton::Create(common, allow_exponents);
  if (!first.ok()) return first.error();
  program->automata_.push_back(std::move(*first));
  if (!program->merged_) {
    for (const AtomId atom : program->atoms_) {
      auto automaton = NumberAutomaton::Create(table.number(atom), allow_exponents);
      if (!automaton.ok()) return automaton.error();
      program->automata_.push_back(std::move(*automaton));
    }
  }
  program->states_.emplace_back();  // dead
  program->states_[0].live = 0;
  std::vector<uint32_t> start;
  for (const auto& automaton : program->automata_) start.push_back(automaton->Start());
  program->Intern(std::move(start));
  return program;
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
  std::vector<uint32_t> key = states_[state].key;
  for (size_t i = 0; i < key.size(); ++i) {
    key[i] = automata_[i]->Step(key[i], c);
    if (key[i] == NumberAutomaton::kDead) return 0;
  }
  return Intern(std::move(key));
}

NumberProgram::StateId NumberProgram::Step(StateId state, char c) {
  const StateId next = RawStep(state, c);
  return next != 0 && Live(next) ? next : 0;
}

bool NumberProgram::Truth(StateId state, AtomId atom) const {
  const auto it = std::lower_bound(atoms_.begin(), atoms_.end(), atom);
  const size_t i = static_cast<size_t>(it - atoms_.begin());
  // Merged: only asked of accepted numbers, which fulfil everything.
  if (merged_) return automata_[0]->Accepting(states_[state].key[0]);
  return automata_[i + 1]->Accepting(states_[state].key[i + 1]);
}

bool NumberProgram::Accepts(StateId state) {
  if (state == 0 || !automata_[0]->Complete(states_[state].key[0])) return false;
  if (merged_) return automata_[0]->Accepting(states_[state].key[0]);
  return accept_(state);
}

bool NumberProgram::Live(StateId state) {
  if (states_[state].live < 0) {
    if (merged_) {
      states_[state].live = automata_[0]->CanAccept(states_[state].key[0]) ? 1 : 0;
    } else {
      Decide(state);
    }
  }
  return states_[state].live == 1;
}

void NumberProgram::Decide(StateId start) {
  if (!automata_[0]->CanAccept(states_[start].key[0])) {
    states_[start].live = 0;
    return;
  }
  struct Visit {
    StateId from;
    char via;
  };
  std::unordered_map<StateId, Visit> visited = {{start, {start, 0}}};
  std::deque<StateId> queue = {start};
  int64_t fuel = kFuel;
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
      if (next != 0 && !automata_[0]->CanAccept(states_[next].key[0])) states_[next].live = 0;
      if (next == 0 || states_[next].live == 0 || visited.contains(next)) continue;
      visited.emplace(next, Visit{state, *c});
      queue.push_back(next);
    }
    if (--fuel <= 0) {
      states_[start].live = 1;
      return;
    }
  }
  for (const auto& [state, visit] : visited) states_[state].live = 0;
}

std::optional<std::string> NumberProgram::Shortest(StateId state) {
  if (!Live(state)) return std::nullopt;
  if (merged_) return automata_[0]->ShortestAccepting(states_[state].key[0]);
  std::string out;
  while (!Accepts(state)) {
    if (!Live(state) || states_[state].via == 0) return std::nullopt;
    out.push_back(states_[state].via);
    state = RawStep(state, states_[state].via);
  }
  return out;
}

}  // namespace pawl::schema
