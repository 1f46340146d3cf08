// ValueClasses: all values of JSON, told apart by the truth of some formulas.
//
// A hundred constants of one discriminator have 2^100 outcomes on paper and 101 in fact: each value
// is one of them, or none. Where formulas ask no more of a value than its kind and whether it
// stands in a list, those outcomes can be written down, each with a formula for the values that
// have it.
#ifndef PAWL_SCHEMAS_FORMULA_VALUE_CLASSES_H_
#define PAWL_SCHEMAS_FORMULA_VALUE_CLASSES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schemas/formula/atoms.h"

namespace pawl::schema {

class ValueClasses {
 public:
  // nullopt where a kind has conditions beyond lists, and too many of them to combine.
  static std::optional<ValueClasses> Of(SchemaTable& table, std::span<const FormulaId> formulas);
  // The formula asks for kinds and lists of strings and numbers only.
  static bool IsListed(SchemaTable& table, FormulaId formula);

  // Every value is in exactly one class. Those of listed values come first.
  size_t size() const { return classes_.size(); }
  // True of the values of the class alone.
  FormulaId Formula(size_t i) const { return classes_[i].formula; }
  // The truth of each of the formulas for these values.
  std::vector<bool> Truth(size_t i) const;

 private:
  struct Class {
    FormulaId formula;
    size_t base;                  // index into bases_
    std::vector<uint32_t> flips;  // the formulas whose truth is another than there
  };
  class Builder;
  std::vector<std::vector<bool>> bases_;
  std::vector<Class> classes_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_FORMULA_VALUE_CLASSES_H_
