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
  if (table_.kind(atom) == kNumberValue)
    return table_.number(atom).values.empty() ? Sort::kNone : Sort::kNumbers;
  switch (table_.string(atom).type) {
    case StringAtom::Type::kRegex:
      return Sort::kRegex;
    case StringAtom::Type::kLiterals:
      return Sort::kLiterals;
    case StringAtom::Type::kLength:
      break;
  }
  return Sort::kNone;
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
      const Split split = SplitByCount(sort, atoms);
      rest.push_back(split.once);
      apart.push_back(formulas.Not(split.often));
    } else {
      const FormulaId all = Union(sort, atoms);
      if (all == kFalseFormula) continue;  // too much work
      rest.push_back(negated ? formulas.Not(all) : all);
    }
    kids = std::move(rest);
  }
  if (op == Op::kAnd) kids = Subtract(std::move(kids));
  const FormulaId merged = op == Op::kAnd  ? formulas.And(kids)
                           : op == Op::kOr ? formulas.Or(kids)
                                           : formulas.ExactlyOne(kids);
  if (apart.empty()) return merged;
  apart.push_back(merged);
  return formulas.And(apart);
}

// A set that must hold the value, and others that must or must not, are one set: what a choice
// between constants asks of a discriminator is then the same question each time.
std::vector<FormulaId> Merging::Subtract(std::vector<FormulaId> kids) {
  const FormulaArena& formulas = table_.formulas;
  for (const Sort sort : {Sort::kLiterals, Sort::kNumbers}) {
    const auto first =
        std::find_if(kids.begin(), kids.end(), [&](FormulaId kid) { return SortOf(kid) == sort; });
    if (first == kids.end()) continue;
    std::vector<FormulaId> rest;
    const auto narrow = [&](auto values, const auto& values_of) {
      for (auto it = kids.begin(); it != kids.end(); ++it) {
        if (it == first) continue;
        const bool denied = formulas.op(*it) == FormulaArena::Op::kNot;
        const FormulaId inner = denied ? formulas.kids(*it)[0] : *it;
        if (SortOf(inner) != sort) {
          rest.push_back(*it);
          continue;
        }
        const auto& others = values_of(inner);
        std::erase_if(values, [&](const auto& value) {
          return std::binary_search(others.begin(), others.end(), value) == denied;
        });
      }
      return values;
    };
    const auto literals_of = [&](FormulaId atom) -> const std::vector<std::u32string>& {
      return table_.string(table_.formulas.value(atom)).literals;
    };
    const auto numbers_of = [&](FormulaId atom) -> const std::vector<Decimal>& {
      return table_.number(table_.formulas.value(atom)).values;
    };
    FormulaId left = kFalseFormula;
    if (sort == Sort::kLiterals) {
      if (literals_of(*first).size() > limits::kNarrowedValues) continue;
      auto literals = narrow(literals_of(*first), literals_of);
      if (!literals.empty())
        left = table_.AddString(
            {.type = StringAtom::Type::kLiterals, .literals = std::move(literals)});
    } else {
      if (numbers_of(*first).size() > limits::kNarrowedValues) continue;
      left = table_.AddNumberSet(narrow(numbers_of(*first), numbers_of));
    }
    rest.push_back(left);
    kids = std::move(rest);
  }
  return kids;
}

FormulaId Merging::Union(Sort sort, const std::vector<FormulaId>& atoms) {
  if (sort == Sort::kRegex) {
    std::vector<ReId> alternatives;
    for (const FormulaId atom : atoms)
      alternatives.push_back(table_.string(table_.formulas.value(atom)).regex);
    RegexArena::WorkBudget budget(*table_.regexes, limits::kUnionSteps);
    const ReId regex = table_.regexes->Or(alternatives);
    if (budget.exhausted()) return kFalseFormula;
    return table_.AddString({.type = StringAtom::Type::kRegex, .regex = regex, .literals = {}});
  }
  if (sort == Sort::kLiterals) {
    StringAtom out{.type = StringAtom::Type::kLiterals, .literals = {}};
    for (const FormulaId atom : atoms) {
      const auto& literals = table_.string(table_.formulas.value(atom)).literals;
      out.literals.insert(out.literals.end(), literals.begin(), literals.end());
    }
    return table_.AddString(std::move(out));
  }
  std::vector<Decimal> values;
  for (const FormulaId atom : atoms) {
    const auto& more = table_.number(table_.formulas.value(atom)).values;
    values.insert(values.end(), more.begin(), more.end());
  }
  return table_.AddNumberSet(std::move(values));
}

Merging::Split Merging::SplitByCount(Sort sort, const std::vector<FormulaId>& atoms) {
  // Values of one set are distinct, so equal ones come from different sets.
  const auto split = [](auto all, auto& once, auto& often) {
    std::sort(all.begin(), all.end());
    for (size_t i = 0; i < all.size();) {
      size_t end = i + 1;
      while (end < all.size() && all[end] == all[i]) ++end;
      (end - i == 1 ? once : often).push_back(std::move(all[i]));
      i = end;
    }
  };
  if (sort == Sort::kLiterals) {
    std::vector<std::u32string> all;
    for (const FormulaId atom : atoms) {
      const auto& literals = table_.string(table_.formulas.value(atom)).literals;
      all.insert(all.end(), literals.begin(), literals.end());
    }
    StringAtom once{.type = StringAtom::Type::kLiterals, .literals = {}}, often = once;
    split(std::move(all), once.literals, often.literals);
    const auto formula_of = [&](StringAtom set) {
      return set.literals.empty() ? kFalseFormula : table_.AddString(std::move(set));
    };
    const FormulaId first = formula_of(std::move(once));
    return {first, formula_of(std::move(often))};
  }
  std::vector<Decimal> all, once, often;
  for (const FormulaId atom : atoms) {
    const auto& values = table_.number(table_.formulas.value(atom)).values;
    all.insert(all.end(), values.begin(), values.end());
  }
  split(std::move(all), once, often);
  const FormulaId first = table_.AddNumberSet(std::move(once));
  return {first, table_.AddNumberSet(std::move(often))};
}

}  // namespace pawl::schema
