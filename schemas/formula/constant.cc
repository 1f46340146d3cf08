// Strings and numbers of one enum go into one set each; an array or an object becomes a container
// whose every place is again a constant. The canonical text tells such values apart: members
// sorted, numbers by value.
#include "schemas/formula/constant.h"

#include <algorithm>

#include "schemas/number/number_set.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

// Constants nest, so long ones would be kept over and over. `left`: characters, roughly.
bool IsShort(const json::Value& value, size_t& left) {
  const size_t size = value.text.size() + 2;
  if (size > left) return false;
  left -= size;
  for (const json::Value& item : value.items) {
    if (!IsShort(item, left)) return false;
  }
  for (const auto& [name, member] : value.members) {
    if (name.size() > left) return false;
    left -= name.size();
    if (!IsShort(member, left)) return false;
  }
  return true;
}

std::string ShortText(const json::Value& value) {
  size_t left = 256;
  return IsShort(value, left) ? CanonicalText(value) : "";
}

}  // namespace

Result<FormulaId> ConstantFormula(SchemaTable& table, const json::Value& value) {
  return EnumFormula(table, {&value});
}

Result<FormulaId> EnumFormula(SchemaTable& table, const std::vector<const json::Value*>& values) {
  FormulaArena& formulas = table.formulas;
  std::vector<FormulaId> alternatives;
  KindSet plain = 0;
  std::vector<std::u32string> strings;
  std::vector<Decimal> numbers;
  for (const json::Value* value : values) {
    StopScope::Step();
    switch (value->type) {
      case json::Type::kNull:
      case json::Type::kFalse:
      case json::Type::kTrue:
        plain |= KindBit(KindOf(*value));
        break;
      case json::Type::kString:
        strings.push_back(DecodeCodepoints(value->text));
        break;
      case json::Type::kNumber: {
        auto decimal = Decimal::Parse(value->text);
        if (!decimal.ok()) return decimal.error();
        numbers.push_back(*std::move(decimal));
        break;
      }
      case json::Type::kArray: {
        ArrayAtom atom;
        for (const json::Value& item : value->items) {
          auto formula = ConstantFormula(table, item);
          if (!formula.ok()) return formula.error();
          atom.prefix.push_back(*formula);
        }
        atom.constant = ShortText(*value);
        atom.items = kFalseFormula;
        atom.min_items = atom.max_items = value->items.size();
        alternatives.push_back(
            formulas.And(formulas.Kinds(KindBit(kArrayValue)), table.AddArray(std::move(atom))));
        break;
      }
      case json::Type::kObject: {
        ObjectAtom atom;
        for (const auto& [name, member] : value->members) {
          auto formula = ConstantFormula(table, member);
          if (!formula.ok()) return formula.error();
          atom.properties.emplace_back(name, *formula);
          atom.required.push_back(name);
        }
        atom.constant = ShortText(*value);
        atom.additional = kFalseFormula;
        alternatives.push_back(
            formulas.And(formulas.Kinds(KindBit(kObjectValue)), table.AddObject(std::move(atom))));
        break;
      }
    }
  }
  if (plain != 0) alternatives.push_back(formulas.Kinds(plain));
  if (!strings.empty()) {
    alternatives.push_back(
        formulas.And(formulas.Kinds(KindBit(kStringValue)), table.AddList(std::move(strings))));
  }
  if (!numbers.empty()) {
    // Limits are found here, where the caller can name the keyword.
    if (auto set = NumberSet::Create(numbers); !set.ok()) return set.error();
    alternatives.push_back(
        formulas.And(formulas.Kinds(KindBit(kNumberValue)), table.AddList(std::move(numbers))));
  }
  return formulas.Or(alternatives);
}

std::string CanonicalText(const json::Value& value) {
  switch (value.type) {
    case json::Type::kNumber: {
      auto decimal = Decimal::Parse(value.text);
      return decimal.ok() ? decimal->ToString() : value.text;
    }
    case json::Type::kArray: {
      std::string out;
      for (const json::Value& item : value.items) AddToList(out, CanonicalText(item));
      return "[" + out + "]";
    }
    case json::Type::kObject: {
      std::vector<std::string> members;
      for (const auto& [name, member] : value.members)
        members.push_back(json::Quote(name) + ":" + CanonicalText(member));
      std::sort(members.begin(), members.end());
      std::string out;
      for (const std::string& member : members) AddToList(out, member);
      return "{" + out + "}";
    }
    default:
      return json::Dump(value);
  }
}

}  // namespace pawl::schema
