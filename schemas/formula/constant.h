// The formula "equal to this JSON value", as const and enum mean it: numbers by value, objects in
// any order.
#ifndef PAWL_SCHEMAS_FORMULA_CONSTANT_H_
#define PAWL_SCHEMAS_FORMULA_CONSTANT_H_

#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "schemas/formula/atoms.h"
#include "src/base/json.h"

namespace pawl::schema {

// Kinds of values and types of JSON are in one order.
inline Kind KindOf(const json::Value& value) { return static_cast<Kind>(value.type); }
static_assert(kTrueValue == static_cast<Kind>(json::Type::kTrue) &&
              kObjectValue == static_cast<Kind>(json::Type::kObject));

// Errors: kLimit for numbers beyond Decimal's limits.
Result<FormulaId> ConstantFormula(SchemaTable& table, const json::Value& value);
// One of `values`; strings share one literal set.
Result<FormulaId> EnumFormula(SchemaTable& table, const std::vector<const json::Value*>& values);

// JSON text that is equal for exactly the values JSON Schema calls equal: members sorted, numbers
// normalised.
std::string CanonicalText(const json::Value& value);

// One more item (or member) of a text between brackets.
inline void AddToList(std::string& text, std::string_view item) {
  if (!text.empty()) text += ',';
  text += item;
}

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_FORMULA_CONSTANT_H_
