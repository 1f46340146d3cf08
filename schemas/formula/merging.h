// Merging: many conditions of one sort on a string or a number, made one.
//
// A union of a thousand patterns is one pattern, a choice between two thousand constants one set of
// them. Kept apart each would be an automaton of its own, run next to all others; merged they cost
// what one of their size does.
#ifndef PAWL_SCHEMAS_FORMULA_MERGING_H_
#define PAWL_SCHEMAS_FORMULA_MERGING_H_

#include <unordered_map>
#include <vector>

#include "schemas/formula/atoms.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

// Not thread-safe.
class Merging {
 public:
  explicit Merging(SchemaTable& table) : table_(table) {}

  // A formula that is true of the same values, with fewer atoms where there were many. REQUIRES:
  // `formula` is one of FormulaArena::ForKind for strings or numbers. Asked once for each formula.
  FormulaId Of(FormulaId formula);
  size_t MemoryBytes() const { return HeapBytes(known_); }

 private:
  enum class Sort : uint8_t { kNone, kRegex, kLiterals, kNumbers };
  Sort SortOf(FormulaId formula) const;
  // There may be something to do: most formulas hold one condition of a sort.
  bool Mergeable(const std::vector<FormulaId>& kids) const;
  FormulaId MergeKids(FormulaArena::Op op, std::vector<FormulaId> kids);
  template <typename Value>
  std::vector<FormulaId> Subtract(std::vector<FormulaId> kids, Sort sort);
  template <typename Value>
  std::vector<Value> AllValues(const std::vector<FormulaId>& atoms) const;
  // The union of atoms of one sort; kFalseFormula when there are none.
  FormulaId Union(Sort sort, const std::vector<FormulaId>& atoms);
  // Of sets: those in one set only, and those in several.
  struct Split {
    FormulaId once, often;
  };
  template <typename Value>
  Split SplitByCount(const std::vector<FormulaId>& atoms);

  SchemaTable& table_;
  std::unordered_map<FormulaId, FormulaId> known_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_FORMULA_MERGING_H_
