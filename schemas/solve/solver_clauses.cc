// Many conditions that look at a few keys each ("if a then b", a hundred times, or 3-SAT written as
// a schema) multiply out to more cubes than anybody can look at, and settling one key after the
// other helps only where few keys settle all. So the conditions are handed to a solver for
// propositional logic (formula/clauses.h). A key that may still come has a variable for each class
// of its values (value_classes.h) and one for being absent, exactly one of which is true. An atom
// is false where what was chosen for a key breaks its demand, or leaves out a key that it requires.
// Where nothing but the chosen keys can break it, it is true otherwise.
//
// When the clauses contradict each other, no object fulfils the conditions: a proof. Else the
// choices settle their keys, and what is left of the formula is solved as before. When that fails
// the same choices are ruled out, and others are looked for, a few times.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "schemas/formula/clauses.h"
#include "schemas/limits.h"
#include "schemas/solve/solver.h"
#include "src/base/sorted.h"

namespace pawl::schema {

class Solver::ClausePlan {
 public:
  ClausePlan(Solver& solver, const Frame& frame, FormulaId formula)
      : solver_(solver),
        frames_(solver.frames_),
        table_(solver.table_),
        formulas_(solver.table_.formulas),
        frame_(frame),
        formula_(formula),
        layout_(solver.frames_.layout(frame.layout)),
        atoms_(formulas_.Atoms(formula)),
        must_(formulas_.MustAtoms(formula)) {}

  // Adds all clauses; false where there are too many of something, or too few keys.
  bool Prepare(size_t least_keys);
  // nullopt where neither a value nor a proof was found.
  std::optional<Found> Solve(int64_t& steps);

 private:
  using Literal = Clauses::Literal;
  struct Option {
    Literal literal;
    FormulaId value;  // kFalseFormula: the key is absent
    std::vector<AtomId> broken;
  };
  struct Key {
    size_t rank;
    std::vector<Option> options;
  };

  bool IsMust(AtomId atom) const { return std::ranges::binary_search(must_, atom); }
  bool Requires(AtomId atom, size_t rank) const {
    return std::ranges::binary_search(frames_.Required(layout_, atom), layout_.name_ids[rank]);
  }
  Literal LiteralOfAtom(AtomId atom) const {
    const auto at = std::ranges::lower_bound(atoms_, atom) - atoms_.begin();
    return atom_literals_[static_cast<size_t>(at)];
  }
  // It speaks of the keys that it names, and of no others.
  bool Plain(const ObjectAtom& object) const {
    return object.patterns.empty() && object.additional == kTrueFormula &&
           object.property_names == kTrueFormula;
  }
  std::set<size_t> RanksToSettle();
  // The atoms that say something of the key, with what they demand.
  std::vector<std::pair<AtomId, FormulaId>> DemandsOn(size_t rank);
  bool AddKey(size_t rank);
  void AddOption(Key& key, FormulaId value, std::vector<AtomId> broken);
  // Nothing but what was chosen for the keys can make the atom false.
  bool Decided(AtomId atom) const;
  // Variables for the parts of a formula.
  Literal LiteralOf(FormulaId f);
  void Define(Literal literal, FormulaArena::Op op, const std::vector<Literal>& kids);
  // What the clauses have chosen; `others`: that something else be chosen.
  Found Try(std::vector<Literal>& others);

  Solver& solver_;
  Frames& frames_;
  SchemaTable& table_;
  FormulaArena& formulas_;
  const Frame& frame_;
  const FormulaId formula_;
  const ObjectLayout& layout_;
  const std::vector<AtomId> atoms_;
  const std::vector<AtomId> must_;
  Clauses clauses_;
  std::vector<Literal> atom_literals_;  // of atoms_
  std::vector<Key> keys_;
  std::set<size_t> ranks_;           // of keys_
  std::vector<AtomId> wide_;         // that speak of any key
  std::set<AtomId> open_, decided_;  // open: a key's value does not say enough
  std::unordered_map<AtomId, std::vector<Literal>> breaking_;  // what makes an atom false
  std::unordered_map<FormulaId, Literal> parts_;
};

std::set<size_t> Solver::ClausePlan::RanksToSettle() {
  std::set<size_t> ranks;
  for (const AtomId atom : atoms_) {
    if (IsMust(atom)) continue;
    for (const NameId name : frames_.Required(layout_, atom))
      ranks.insert(static_cast<size_t>(layout_.rank_of.at(name)));
    for (const auto& [name, demand] : table_.object(atom).properties) {
      if (demand == kTrueFormula || !solver_.AsksForLists(demand)) continue;
      ranks.insert(static_cast<size_t>(layout_.rank_of.at(frames_.InternName(name))));
    }
    if (ranks.size() > limits::kClauseNames) break;
  }
  std::erase_if(ranks, [&](size_t rank) { return !solver_.MayCome(frame_, rank); });
  return ranks;
}

std::vector<std::pair<AtomId, FormulaId>> Solver::ClausePlan::DemandsOn(size_t rank) {
  std::vector<std::pair<AtomId, FormulaId>> demands;
  for (const auto& [atom, demand] : layout_.by_rank[rank]) {
    if (std::ranges::binary_search(atoms_, atom) && Plain(table_.object(atom)))
      demands.emplace_back(atom, demand);
  }
  for (const AtomId atom : wide_) {
    demands.emplace_back(
        atom, frames_.PropertyDemand(layout_, atom, *layout_.program, layout_.name_states[rank],
                                     static_cast<int>(rank)));
  }
  std::erase_if(demands, [](const auto& entry) { return entry.second == kTrueFormula; });
  return demands;
}

void Solver::ClausePlan::AddOption(Key& key, FormulaId value, std::vector<AtomId> broken) {
  if (std::ranges::any_of(broken, [this](AtomId atom) { return IsMust(atom); })) return;
  const Literal literal = clauses_.NewVariable(value == kFalseFormula);
  for (const AtomId atom : broken) {
    clauses_.Add({Clauses::Not(literal), Clauses::Not(LiteralOfAtom(atom))});
    breaking_[atom].push_back(literal);
  }
  key.options.push_back({literal, value, std::move(broken)});
}

bool Solver::ClausePlan::AddKey(size_t rank) {
  std::vector<AtomId> barred;
  std::vector<FormulaId> demands;
  std::vector<std::pair<AtomId, FormulaId>> users;
  for (const auto& [atom, demand] : DemandsOn(rank)) {
    if (demand == kFalseFormula) {
      barred.push_back(atom);
    } else if (solver_.AsksForLists(demand)) {
      demands.push_back(demand);
      users.emplace_back(atom, demand);
    } else {
      open_.insert(atom);
    }
  }
  SortUnique(demands);
  const std::shared_ptr<const ValueClasses> classes = solver_.ClassesOf(demands);
  if (!classes || classes->size() > limits::kClauseOptions) return false;
  Key key{rank, {}};
  std::vector<AtomId> without;
  for (const AtomId atom : atoms_) {
    if (Requires(atom, rank)) without.push_back(atom);
  }
  AddOption(key, kFalseFormula, std::move(without));
  for (size_t i = 0; i < classes->size(); ++i) {
    const std::vector<bool> holds = classes->Truth(i);
    std::vector<AtomId> broken = barred;
    for (const auto& [atom, demand] : users) {
      const auto at = std::ranges::lower_bound(demands, demand) - demands.begin();
      if (!holds[static_cast<size_t>(at)]) broken.push_back(atom);
    }
    AddOption(key, classes->Formula(i), std::move(broken));
  }
  std::vector<Literal> one;
  for (const Option& option : key.options) {
    for (const Literal other : one)
      clauses_.Add({Clauses::Not(other), Clauses::Not(option.literal)});
    one.push_back(option.literal);
  }
  clauses_.Add(std::move(one));
  keys_.push_back(std::move(key));
  return true;
}

bool Solver::ClausePlan::Decided(AtomId atom) const {
  const ObjectAtom& object = table_.object(atom);
  if (!Plain(object) || open_.contains(atom) || object.max_properties != kUnbounded ||
      object.min_properties > frame_.count)
    return false;
  // A key that has come, or cannot, makes no atom false that is not.
  const auto settled = [&](size_t rank) {
    return ranks_.contains(rank) || !solver_.MayCome(frame_, rank);
  };
  return std::ranges::all_of(object.properties, [&](const auto& property) {
    return property.second == kTrueFormula ||
           settled(static_cast<size_t>(layout_.rank_of.at(frames_.InternName(property.first))));
  });
}

Solver::ClausePlan::Literal Solver::ClausePlan::LiteralOf(FormulaId f) {
  using Op = FormulaArena::Op;
  const Op op = formulas_.op(f);
  if (op == Op::kAtom) return LiteralOfAtom(formulas_.value(f));
  if (op == Op::kNot) return Clauses::Not(LiteralOf(formulas_.kids(f)[0]));
  if (const auto it = parts_.find(f); it != parts_.end()) return it->second;
  std::vector<Literal> kids;
  for (const FormulaId kid : formulas_.kids(f)) kids.push_back(LiteralOf(kid));
  const Literal literal = clauses_.NewVariable();
  parts_.emplace(f, literal);
  Define(literal, op, kids);
  return literal;
}

void Solver::ClausePlan::Define(Literal literal, FormulaArena::Op op,
                                const std::vector<Literal>& kids) {
  using Op = FormulaArena::Op;
  if (op == Op::kExactlyOne) {
    std::vector<Literal> some = kids;
    some.push_back(Clauses::Not(literal));
    clauses_.Add(some);
    for (size_t i = 0; i < kids.size(); ++i) {
      for (size_t j = 0; j < i; ++j)
        clauses_.Add({Clauses::Not(literal), Clauses::Not(kids[i]), Clauses::Not(kids[j])});
      // One that is alone makes it true.
      std::vector<Literal> alone = kids;
      alone[i] = Clauses::Not(kids[i]);
      alone.push_back(literal);
      clauses_.Add(std::move(alone));
    }
    return;
  }
  // And, of the negations, is not Or.
  const bool negate = op == Op::kAnd;
  const Literal either = negate ? Clauses::Not(literal) : literal;
  std::vector<Literal> some = {Clauses::Not(either)};
  for (const Literal kid : kids) {
    some.push_back(negate ? Clauses::Not(kid) : kid);
    clauses_.Add({either, Clauses::Not(some.back())});
  }
  clauses_.Add(std::move(some));
}

bool Solver::ClausePlan::Prepare(size_t least_keys) {
  if (formulas_.parts(formula_) > limits::kClauseParts) return false;
  for (const AtomId atom : atoms_) {
    atom_literals_.push_back(clauses_.NewVariable(true));
    if (IsMust(atom)) clauses_.Add({atom_literals_.back()});
    if (!Plain(table_.object(atom))) wide_.push_back(atom);
  }
  ranks_ = RanksToSettle();
  if (ranks_.size() < least_keys || ranks_.size() > limits::kClauseKeys) return false;
  if (!std::ranges::all_of(ranks_, [this](size_t rank) { return AddKey(rank); })) return false;
  for (const AtomId atom : atoms_) {
    if (IsMust(atom) || !Decided(atom)) continue;
    decided_.insert(atom);
    std::vector<Literal> holds = breaking_[atom];
    holds.push_back(LiteralOfAtom(atom));
    clauses_.Add(std::move(holds));
  }
  for (const FormulaId kid : formulas_.kids(formula_)) {
    if (formulas_.op(kid) == FormulaArena::Op::kExactlyOne &&
        formulas_.kids(kid).size() > limits::kClauseOptions)
      return false;
    std::vector<Literal> clause;
    if (formulas_.op(kid) == FormulaArena::Op::kOr) {
      for (const FormulaId part : formulas_.kids(kid)) clause.push_back(LiteralOf(part));
    } else {
      clause.push_back(LiteralOf(kid));
    }
    clauses_.Add(std::move(clause));
  }
  return true;
}

Found Solver::ClausePlan::Try(std::vector<Literal>& others) {
  SettledKeys settled;
  std::vector<std::pair<AtomId, bool>> truth;
  std::set<AtomId> broken;
  for (const Key& key : keys_) {
    const int rank = static_cast<int>(key.rank);
    for (const Option& option : key.options) {
      if (!clauses_.True(option.literal)) continue;
      others.push_back(Clauses::Not(option.literal));
      broken.insert(option.broken.begin(), option.broken.end());
      if (option.value == kFalseFormula) {
        settled.absent.insert(rank);
      } else {
        settled.members.emplace(rank, option.value);
      }
    }
  }
  for (const AtomId atom : atoms_) {
    if (broken.contains(atom)) {
      truth.emplace_back(atom, false);
    } else if (decided_.contains(atom)) {
      truth.emplace_back(atom, true);
    }
  }
  const FormulaId rest = formulas_.Assign(formula_, truth);
  return rest == kFalseFormula ? kNothing : solver_.SolveFormula(frame_, rest, settled);
}

std::optional<Found> Solver::ClausePlan::Solve(int64_t& steps) {
  bool proof = true;
  for (int tries = 0; tries < limits::kClauseTries; ++tries) {
    const Clauses::Answer answer = clauses_.Solve(steps);
    if (answer == Clauses::Answer::kNo && proof) return kNothing;
    if (answer != Clauses::Answer::kYes || !solver_.Spend()) return std::nullopt;
    std::vector<Literal> others;
    Found found = Try(others);
    if (found.answer == Answer::kYes) return found;
    proof = proof && found.answer == Answer::kNo;
    clauses_.Add(std::move(others));
  }
  return std::nullopt;
}

bool Solver::HasManyClauses(const Frame& frame, FormulaId formula) const {
  using Op = FormulaArena::Op;
  const FormulaArena& formulas = table_.formulas;
  if (frame.kind != kObjectValue || formulas.op(formula) != Op::kAnd ||
      formulas.kids(formula).size() < limits::kManyClauses)
    return false;
  const auto is_literal = [&](FormulaId kid) {
    const Op op = formulas.op(kid);
    return op == Op::kAtom || (op == Op::kNot && formulas.op(formulas.kids(kid)[0]) == Op::kAtom);
  };
  size_t count = 0;
  for (const FormulaId kid : formulas.kids(formula)) count += is_literal(kid) ? 0 : 1;
  return count >= limits::kManyClauses;
}

FormulaId Solver::WithoutPast(const Frame& frame, FormulaId formula) {
  const ObjectLayout& layout = frames_.layout(frame.layout);
  const std::vector<AtomId> must = table_.formulas.MustAtoms(formula);
  const auto may_come = [&](NameId name) {
    return MayCome(frame, static_cast<size_t>(layout.rank_of.at(name)));
  };
  std::vector<std::pair<AtomId, bool>> truth;
  for (const AtomId atom : std::vector<AtomId>(table_.formulas.Atoms(formula))) {
    const ObjectAtom& object = table_.object(atom);
    bool late = false, past = true;
    for (const NameId name : frames_.Required(layout, atom)) {
      past = past && frames_.Seen(frame, name);
      late = late || (!frames_.Seen(frame, name) && !may_come(name));
    }
    if (late) {
      truth.emplace_back(atom, false);
      continue;
    }
    past = past && object.patterns.empty() && object.additional == kTrueFormula &&
           object.property_names == kTrueFormula && object.max_properties == kUnbounded &&
           object.min_properties <= frame.count && !std::ranges::binary_search(must, atom) &&
           std::ranges::none_of(object.properties, [&](const auto& property) {
             return property.second != kTrueFormula && may_come(frames_.InternName(property.first));
           });
    if (past) truth.emplace_back(atom, true);
  }
  return table_.formulas.Assign(formula, truth);
}

std::optional<Found> Solver::SolveClauses(const Frame& frame, FormulaId formula,
                                          size_t least_keys) {
  if (clause_total_ <= 0) return std::nullopt;
  ClausePlan plan(*this, frame, formula);
  if (!plan.Prepare(least_keys)) return std::nullopt;
  const int64_t given = std::min(limits::kClauseSteps, clause_total_);
  int64_t steps = given;
  std::optional<Found> found = plan.Solve(steps);
  clause_total_ -= given - steps;
  clause_steps_ += static_cast<uint64_t>(given - steps);
  return found;
}

}  // namespace pawl::schema
