// Kind by kind. Where a formula is a matter of lists, all values that stand in none of them have
// the same outcome, and a listed one differs from it only in the formulas that speak of its lists.
// So a thousand constants cost a thousand small differences instead of a thousand long vectors.
// Other conditions (a pattern, a bound) are combined in full while they are few.
#include "schemas/formula/value_classes.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "schemas/limits.h"
#include "src/base/sorted.h"

namespace pawl::schema {
bool ValueClasses::IsListed(SchemaTable& table, FormulaId formula) {
  for (int kind = 0; kind < kKinds; ++kind) {
    const FormulaId part = table.formulas.ForKind(formula, static_cast<Kind>(kind));
    for (const AtomId atom : table.formulas.Atoms(part)) {
      if (!table.IsList(atom)) return false;
    }
  }
  return true;
}

class ValueClasses::Builder {
 public:
  Builder(SchemaTable& table, std::span<const FormulaId> formulas)
      : table_(table), arena_(table.formulas), formulas_(formulas) {}

  bool AddKind(Kind kind) {
    std::vector<FormulaId> parts;
    std::vector<uint32_t> open;
    bool listed = true;
    for (const FormulaId formula : formulas_) {
      parts.push_back(arena_.ForKind(formula, kind));
      if (arena_.IsConstant(parts.back())) continue;
      open.push_back(static_cast<uint32_t>(parts.size() - 1));
      for (const AtomId atom : arena_.Atoms(parts.back())) listed = listed && table_.IsList(atom);
    }
    const FormulaId any = arena_.Kinds(KindBit(kind));
    if (open.empty()) {
      std::vector<bool> base;
      for (const FormulaId part : parts) base.push_back(part == kTrueFormula);
      AddRest(std::move(base), any);
      return true;
    }
    if (!listed) return Combine(parts, open, any);
    if (kind == kStringValue) {
      AddLists<std::u32string>(parts, open, any);
    } else {
      AddLists<Decimal>(parts, open, any);
    }
    return true;
  }

  ValueClasses Finish() {
    for (auto& [base, values] : rests_)
      out_.classes_.push_back({arena_.Or(values), BaseOf(base), {}});
    return std::move(out_);
  }

 private:
  // Kinds of which the same is true are one class.
  void AddRest(std::vector<bool> base, FormulaId values) {
    if (values != kFalseFormula) rests_[std::move(base)].push_back(values);
  }

  size_t BaseOf(const std::vector<bool>& base) {
    const auto [it, fresh] = base_index_.try_emplace(base, out_.bases_.size());
    if (fresh) out_.bases_.push_back(base);
    return it->second;
  }

  template <typename Value>
  void AddLists(const std::vector<FormulaId>& parts, const std::vector<uint32_t>& open,
                FormulaId any) {
    std::unordered_map<AtomId, std::vector<uint32_t>> users;  // of an atom: places in parts
    for (const uint32_t i : open) {
      for (const AtomId atom : arena_.Atoms(parts[i])) users[atom].push_back(i);
    }
    std::map<Value, std::vector<AtomId>> lists_with;
    for (const auto& [atom, places] : users) {
      for (const Value& value : table_.List<Value>(atom)) lists_with[value].push_back(atom);
    }
    std::vector<bool> base;
    for (const FormulaId part : parts)
      base.push_back(arena_.Evaluate(part, [](AtomId) { return false; }));
    // Values of which the same is true are one class.
    std::map<std::vector<uint32_t>, std::vector<Value>> by_flips;
    std::vector<Value> told_apart;
    for (const auto& [value, atoms] : lists_with) {
      std::vector<uint32_t> affected, flips;
      for (const AtomId atom : atoms)
        affected.insert(affected.end(), users[atom].begin(), users[atom].end());
      SortUnique(affected);
      for (const uint32_t i : affected) {
        const bool truth = arena_.Evaluate(parts[i], [&atoms = atoms](AtomId atom) {
          return std::find(atoms.begin(), atoms.end(), atom) != atoms.end();
        });
        if (truth != base[i]) flips.push_back(i);
      }
      if (flips.empty()) continue;
      by_flips[std::move(flips)].push_back(value);
      told_apart.push_back(value);
    }
    const size_t base_index = BaseOf(base);
    for (auto& [flips, values] : by_flips)
      out_.classes_.push_back(
          {arena_.And(any, table_.AddList(std::move(values))), base_index, flips});
    FormulaId rest = any;
    if (!told_apart.empty())
      rest = arena_.And(any, arena_.Not(table_.AddList(std::move(told_apart))));
    AddRest(std::move(base), rest);
  }

  bool Combine(const std::vector<FormulaId>& parts, const std::vector<uint32_t>& open,
               FormulaId any) {
    std::vector<FormulaId> distinct;
    for (const uint32_t i : open) distinct.push_back(parts[i]);
    SortUnique(distinct);
    if (distinct.size() > limits::kCombinedConditions) return false;
    for (size_t signs = 0; signs < size_t{1} << distinct.size(); ++signs) {
      std::vector<FormulaId> values = {any};
      for (size_t d = 0; d < distinct.size(); ++d)
        values.push_back((signs >> d & 1) != 0 ? distinct[d] : arena_.Not(distinct[d]));
      std::vector<bool> base;
      for (const FormulaId part : parts) {
        const auto at = std::lower_bound(distinct.begin(), distinct.end(), part);
        const bool found = at != distinct.end() && *at == part;
        base.push_back(found ? (signs >> (at - distinct.begin()) & 1) != 0 : part == kTrueFormula);
      }
      AddRest(std::move(base), arena_.And(values));
    }
    return true;
  }

  SchemaTable& table_;
  FormulaArena& arena_;
  std::span<const FormulaId> formulas_;
  ValueClasses out_;
  std::map<std::vector<bool>, std::vector<FormulaId>> rests_;
  std::map<std::vector<bool>, size_t> base_index_;
};

std::optional<ValueClasses> ValueClasses::Of(SchemaTable& table,
                                             std::span<const FormulaId> formulas) {
  Builder builder(table, formulas);
  // The kinds that most often ask for more come first.
  for (const Kind kind : {kObjectValue, kArrayValue, kStringValue, kNumberValue, kNullValue,
                          kFalseValue, kTrueValue}) {
    if (!builder.AddKind(kind)) return std::nullopt;
  }
  return builder.Finish();
}

std::vector<bool> ValueClasses::Truth(size_t i) const {
  const Class& one = classes_[i];
  std::vector<bool> out = bases_[one.base];
  for (const uint32_t flip : one.flips) out[flip] = !out[flip];
  return out;
}

}  // namespace pawl::schema
