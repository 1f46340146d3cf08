// A branching on the value of one key is a decision diagram, not a product. Two hundred cases of
// "if country is X, then ..." multiply out to 2^200 cubes, but a country is one of 200 names or
// none of them, and with each of these every `if` is settled: what is left is short. So where many
// conditions look at one key, the values of the key are told apart first (value_classes.h), each is
// tried, and so is the object without that key. Together these are all objects there are: where
// none of them can be completed, nothing can.
#include <algorithm>

#include "schemas/limits.h"
#include "schemas/solve/solver.h"
#include "src/base/sorted.h"

namespace pawl::schema {
bool Solver::AsksForLists(FormulaId formula) {
  const auto [it, fresh] = lists_.try_emplace(formula, false);
  if (fresh) it->second = ValueClasses::IsListed(table_, formula);
  return it->second;
}

bool Solver::MayCome(const Frame& frame, size_t rank) const {
  const ObjectLayout& layout = frames_.layout(frame.layout);
  if (frames_.Seen(frame, layout.name_ids[rank])) return false;
  return options_.order != JsonSchemaOptions::Order::kSchema ||
         static_cast<int64_t>(rank) > frame.last_rank;
}

std::optional<size_t> Solver::KeyToSettle(const Frame& frame, FormulaId formula,
                                          const SettledKeys& settled, size_t least) {
  if (frame.kind != kObjectValue || settled.size() >= limits::kSettledKeys) return std::nullopt;
  const std::vector<AtomId>& atoms = table_.formulas.Atoms(formula);
  if (atoms.size() < least) return std::nullopt;
  const std::vector<AtomId> must = table_.formulas.MustAtoms(formula);
  std::vector<AtomId> open;
  std::ranges::set_difference(atoms, must, std::back_inserter(open));
  if (open.size() < least) return std::nullopt;
  const ObjectLayout& layout = frames_.layout(frame.layout);
  std::optional<size_t> best;
  size_t most = least - 1;
  for (size_t rank = 0; rank < layout.names.size(); ++rank) {
    if (layout.by_rank[rank].size() <= most || settled.Knows(rank) || !MayCome(frame, rank))
      continue;
    size_t count = 0;
    for (const auto& [atom, demand] : layout.by_rank[rank]) {
      if (demand != kTrueFormula && std::ranges::binary_search(open, atom) && AsksForLists(demand))
        ++count;
    }
    if (count <= most) continue;
    most = count;
    best = rank;
  }
  return best;
}

// Whether nothing that can still come makes the atom fail, where it has to come out so once the key
// `rank` is settled; its own demand on that key is met.
bool Solver::CannotFail(const Frame& frame, AtomId atom, const SettledKeys& settled, size_t rank) {
  const ObjectLayout& layout = frames_.layout(frame.layout);
  const ObjectAtom& object = table_.object(atom);
  if (object.additional != kTrueFormula || object.property_names != kTrueFormula ||
      !object.patterns.empty() || object.max_properties != kUnbounded)
    return false;
  if (object.min_properties > frame.count + settled.members.size()) return false;
  for (const NameId name : frames_.Required(layout, atom)) {
    if (!frames_.Seen(frame, name) && !settled.members.contains(layout.rank_of.at(name)))
      return false;
  }
  for (const auto& [name, demand] : object.properties) {
    if (demand == kTrueFormula) continue;
    const int at = layout.rank_of.at(frames_.InternName(name));
    if (static_cast<size_t>(at) == rank || settled.absent.contains(at)) continue;
    if (const auto member = settled.members.find(at); member != settled.members.end()) {
      const FormulaId against = table_.formulas.And(member->second, table_.formulas.Not(demand));
      if (Value(against).answer == Answer::kNo) continue;
    } else if (!MayCome(frame, static_cast<size_t>(at))) {
      continue;  // it has come, and the atom was not the worse for it
    }
    return false;
  }
  return true;
}

Found Solver::SettleKey(const Frame& frame, FormulaId formula, const SettledKeys& settled,
                        size_t rank) {
  const ObjectLayout& layout = frames_.layout(frame.layout);
  const int key = static_cast<int>(rank);
  const std::vector<AtomId> atoms = table_.formulas.Atoms(formula);
  Found best;
  int tried = 0;
  const auto attempt = [&](std::vector<std::pair<AtomId, bool>> truth, const SettledKeys& next) {
    if (!Spend()) {
      best.Improve({Answer::kUnknown, std::nullopt});
      return;
    }
    const FormulaId rest = table_.formulas.Assign(formula, truth);
    if (rest != kFalseFormula) best.Improve(SolveFormula(frame, rest, next));
  };
  const auto enough = [&] {
    return best.answer == Answer::kYes && (!want_text_ || ++tried > limits::kShorterTries);
  };

  SettledKeys next = settled;
  next.absent.insert(key);
  std::vector<std::pair<AtomId, bool>> truth;
  for (const AtomId atom : atoms) {
    if (std::ranges::binary_search(frames_.Required(layout, atom), layout.name_ids[rank])) {
      truth.emplace_back(atom, false);
    } else if (CannotFail(frame, atom, next, rank)) {
      truth.emplace_back(atom, true);
    }
  }
  attempt(std::move(truth), next);
  if (enough()) return best;

  // Demands on the key that are told apart; what else an atom asks of the key goes on to count.
  std::vector<FormulaId> demands;
  std::vector<std::pair<AtomId, FormulaId>> users;
  std::vector<std::pair<AtomId, bool>> barred;
  for (const AtomId atom : atoms) {
    const FormulaId demand =
        frames_.PropertyDemand(layout, atom, *layout.program, layout.name_states[rank], key);
    if (demand == kFalseFormula) {
      barred.emplace_back(atom, false);
    } else if (demand != kTrueFormula && AsksForLists(demand)) {
      demands.push_back(demand);
      users.emplace_back(atom, demand);
    }
  }
  SortUnique(demands);
  const std::shared_ptr<const ValueClasses> classes = ClassesOf(demands);
  if (!classes) {
    best.Improve({Answer::kUnknown, std::nullopt});
    return best;
  }
  for (size_t i = classes->size(); i-- > 0 && !enough();) {
    const std::vector<bool> holds = classes->Truth(i);
    next = settled;
    next.members.emplace(key, classes->Formula(i));
    truth = barred;
    for (const auto& [atom, demand] : users) {
      const auto at = std::ranges::lower_bound(demands, demand) - demands.begin();
      const bool met = holds[static_cast<size_t>(at)];
      if (!met || CannotFail(frame, atom, next, rank)) truth.emplace_back(atom, met);
    }
    std::ranges::sort(truth);
    attempt(std::move(truth), next);
  }
  return best;
}

std::shared_ptr<const ValueClasses> Solver::ClassesOf(const std::vector<FormulaId>& formulas) {
  if (classes_.size() > limits::kKeptClasses) classes_.clear();
  const auto [it, fresh] = classes_.try_emplace(formulas);
  if (fresh) {
    if (auto classes = ValueClasses::Of(table_, formulas))
      it->second = std::make_shared<const ValueClasses>(*std::move(classes));
  }
  return it->second;
}

}  // namespace pawl::schema
