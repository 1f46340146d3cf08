// Or(a, b) is the atom "a or b", And(not a, not b) is not that atom, and exactly one of several
// sets is the set of what is in one of them alone. Regexes are merged when they are many: of a few
// the product is as small, and other formulas may share them.
#include "schemas/formula/merging.h"

#include <algorithm>
#include <string>
#include <utility>

#include "schemas/limits.h"

namespace pawl::schema {
Merging::Sort Merging::SortOf(FormulaId formula) const {
  const FormulaArena& formulas = table_.formulas;
  if (formulas.op(formula) != FormulaArena::Op::kAtom) return Sort::kNone;
  const AtomId atom = formulas.value(formula);
  const bool number = table_.kind(atom) == kNumberValue;
  if (table_.IsList(atom)) return number ? Sort::kNumbers : Sort::kLiterals;
  return !number && table_.string(atom).type == StringAtom::Type::kRegex ? Sort::kRegex
                                                                         : Sort::kNone;
}

FormulaId Merging::Of(FormulaId formula) {
  using Op = FormulaArena::Op;
  FormulaArena& formulas = table_.formulas;
  const Op op = formulas.op(formula);
  if (op != Op::kAnd && op != Op::kOr && op != Op::kExactlyOne && op != Op::kNot) return formula;
  if (const auto it = known_.find(formula); it != known_.end()) return it->second;
  const auto span = formulas.kids(formula);
  std::vector<FormulaId> kids(span.begin(), span.end());  // a copy: the arena grows below
  bool changed = false;
  for (FormulaId& kid : kids) {
    const FormulaId merged = Of(kid);
    changed = changed || merged != kid;
    kid = merged;
  }
  if (!changed && (op == Op::kNot || !Mergeable(kids))) {
    known_.emplace(formula, formula);
    return formula;
  }
  const FormulaId merged = op == Op::kNot ? formulas.Not(kids[0]) : MergeKids(op, std::move(kids));
  known_.emplace(formula, merged);
  return merged;
}

bool Merging::Mergeable(const std::vector<FormulaId>& kids) const {
  size_t sets = 0, regexes = 0;
  for (const FormulaId kid : kids) {
    const bool denied = table_.formulas.op(kid) == FormulaArena::Op::kNot;
    const Sort sort = SortOf(denied ? table_.formulas.kids(kid)[0] : kid);
    sets += sort == Sort::kLiterals || sort == Sort::kNumbers ? 1 : 0;
    regexes += sort == Sort::kRegex ? 1 : 0;
  }
  return sets > 1 || regexes >= limits::kMergedRegexes;
}

FormulaId Merging::MergeKids(FormulaArena::Op op, std::vector<FormulaId> kids) {
  using Op = FormulaArena::Op;
  FormulaArena& formulas = table_.formulas;
  std::vector<FormulaId> apart;
  const auto search = [&](FormulaId atom) {
    return table_.regexes->BeginsWithLoop(table_.string(formulas.value(atom)).regex);
  };
  const bool negated = op == Op::kAnd;  // looks at what is denied
  for (const Sort sort : {Sort::kRegex, Sort::kLiterals, Sort::kNumbers}) {
    std::vector<FormulaId> atoms, rest;
    for (const FormulaId kid : kids) {
      const bool denied = formulas.op(kid) == Op::kNot;
      const FormulaId inner = denied ? formulas.kids(kid)[0] : kid;
      if (denied == negated && SortOf(inner) == sort) {
        atoms.push_back(inner);
      } else {
        rest.push_back(kid);
      }
    }
    const bool regexes = sort == Sort::kRegex;
    if (atoms.size() < (regexes ? limits::kMergedRegexes : 2) || (regexes && op == Op::kExactlyOne))
      continue;
    if (regexes && atoms.size() < limits::kMergedSearches &&
        std::any_of(atoms.begin(), atoms.end(), search))
      continue;
    if (op == Op::kExactlyOne) {
      const Split split = sort == Sort::kLiterals ? SplitByCount<std::u32string>(atoms)
                                                  : SplitByCount<Decimal>(atoms);
      rest.push_back(split.once);
      apart.push_back(formulas.Not(split.often));
    } else {
      const FormulaId all = Union(sort, atoms);
      if (all == kFalseFormula) continue;  // too much work
      rest.push_back(negated ? formulas.Not(all) : all);
    }
    kids = std::move(rest);
  }
  if (op == Op::kAnd) {
    kids = Subtract<std::u32string>(std::move(kids), Sort::kLiterals);
    kids = Subtract<Decimal>(std::move(kids), Sort::kNumbers);
  }
  const FormulaId merged = op == Op::kAnd  ? formulas.And(kids)
                           : op == Op::kOr ? formulas.Or(kids)
                                           : formulas.ExactlyOne(kids);
  if (apart.empty()) return merged;
  apart.push_back(merged);
  return formulas.And(apart);
}

// A set that must hold the value, and others that must or must not, are one set: what a choice
// between constants asks of a discriminator is then the same question each time.
template <typename Value>
std::vector<FormulaId> Merging::Subtract(std::vector<FormulaId> kids, Sort sort) {
  const FormulaArena& formulas = table_.formulas;
  const auto first = std::ranges::find(kids, sort, [&](FormulaId kid) { return SortOf(kid); });
  if (first == kids.end()) return kids;
  const auto list_of = [&](FormulaId atom) -> const std::vector<Value>& {
    return table_.List<Value>(formulas.value(atom));
  };
  if (list_of(*first).size() > limits::kNarrowedValues) return kids;
  std::vector<Value> values = list_of(*first);
  std::vector<FormulaId> rest;
  for (auto it = kids.begin(); it != kids.end(); ++it) {
    if (it == first) continue;
    const bool denied = formulas.op(*it) == FormulaArena::Op::kNot;
    const FormulaId inner = denied ? formulas.kids(*it)[0] : *it;
    if (SortOf(inner) != sort) {
      rest.push_back(*it);
      continue;
    }
    std::erase_if(values, [&](const Value& value) {
      return std::ranges::binary_search(list_of(inner), value) == denied;
    });
  }
  rest.push_back(table_.AddList(std::move(values)));
  return rest;
}

template <typename Value>
std::vector<Value> Merging::AllValues(const std::vector<FormulaId>& atoms) const {
  std::vector<Value> all;
  for (const FormulaId atom : atoms) {
    const std::vector<Value>& values = table_.List<Value>(table_.formulas.value(atom));
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

FormulaId Merging::Union(Sort sort, const std::vector<FormulaId>& atoms) {
  if (sort == Sort::kRegex) {
    std::vector<ReId> alternatives;
    for (const FormulaId atom : atoms)
      alternatives.push_back(table_.string(table_.formulas.value(atom)).regex);
    RegexArena::WorkBudget budget(*table_.regexes, limits::kUnionSteps);
    const ReId regex = table_.regexes->Or(alternatives);
    if (budget.exhausted()) return kFalseFormula;
    return table_.AddRegex(regex);
  }
  if (sort == Sort::kLiterals) return table_.AddList(AllValues<std::u32string>(atoms));
  return table_.AddList(AllValues<Decimal>(atoms));
}

template <typename Value>
Merging::Split Merging::SplitByCount(const std::vector<FormulaId>& atoms) {
  std::vector<Value> all = AllValues<Value>(atoms), once, often;
  // Values of one set are distinct, so equal ones come from different sets.
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size();) {
    size_t end = i + 1;
    while (end < all.size() && all[end] == all[i]) ++end;
    (end - i == 1 ? once : often).push_back(std::move(all[i]));
    i = end;
  }
  const FormulaId first = table_.AddList(std::move(once));
  return {first, table_.AddList(std::move(often))};
}

}  // namespace pawl::schema
