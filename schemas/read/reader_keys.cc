// Keys::kAll: every key of `properties` is written, and null stands for a key that is not there.
//
// An object atom gets each optional key as a required one whose value may be null as well. The text
// then says of each key whether it is there. What is written is made into a record by leaving such
// keys out (grammar/record_filter.h), and the record has to be valid for the schema as it was
// given. That holds where nothing but the object's own keys judges which keys are there. So the
// form is kept closed: with `properties` stand only `required`, `additionalProperties` and
// `unevaluatedProperties`, and around it schemas that do nothing but choose or refer. Under all
// other keywords (allOf, not, if, dependencies, bounds on the number of keys, ...) the keys stay as
// the schema has them, and so do those of everything inside, because these keywords may look into
// it. Branches of oneOf could fit together once keys are left out, so they count as closed only
// where a key with different constants tells them apart.
//
// Nulls::kDrop without kAll takes null from what such keys may be, under the same conditions. The
// filter of records asks the grammar of that schema, so with kAll each null of an optional key
// goes.
#include <algorithm>
#include <array>
#include <set>

#include "schemas/limits.h"
#include "schemas/read/reader_internal.h"

namespace pawl::schema {
namespace {

using json::Type;

bool IsScalarType(const json::Value& type) {
  if (type.type == Type::kArray)
    return !type.items.empty() && std::ranges::all_of(type.items, IsScalarType);
  return type.type == Type::kString && type.text != "object" && type.text != "array";
}

bool IsScalar(const json::Value& value) {
  return value.type != Type::kArray && value.type != Type::kObject;
}

// A schema that no object or array fits, as far as its own keywords say so.
bool IsScalarSchema(const json::Value& schema) {
  if (schema.type == Type::kFalse) return true;
  if (const json::Value* type = schema.Find("type")) {
    if (IsScalarType(*type)) return true;
  }
  if (const json::Value* constant = schema.Find("const")) return IsScalar(*constant);
  const json::Value* list = schema.Find("enum");
  return list != nullptr && std::ranges::all_of(list->items, IsScalar);
}

// The texts that the property may be; empty where there is no list of constants.
std::set<std::string> ConstantsOf(const json::Value& property) {
  std::set<std::string> out;
  if (const json::Value* constant = property.Find("const")) {
    if (constant->type == Type::kString) out.insert(constant->text);
  } else if (const json::Value* list = property.Find("enum")) {
    for (const json::Value& item : list->items) {
      if (item.type != Type::kString) return {};
      out.insert(item.text);
    }
  }
  return out;
}

bool Lists(const json::Value* names, const std::string& name) {
  return names != nullptr && std::ranges::any_of(names->items, [&](const json::Value& item) {
           return item.type == Type::kString && item.text == name;
         });
}

bool IsOneOf(std::string_view name, std::span<const std::string_view> list) {
  return std::ranges::find(list, name) != list.end();
}

constexpr std::array<std::string_view, 6> kChoosers = {"anyOf", "oneOf",       "allOf",
                                                       "$ref",  "$dynamicRef", "$recursiveRef"};
constexpr std::array<std::string_view, 4> kOfObjects = {
    "properties", "required", "additionalProperties", "unevaluatedProperties"};
constexpr std::array<std::string_view, 3> kOfArrays = {"items", "prefixItems", "additionalItems"};
constexpr std::array<std::string_view, 12> kJudges = {"not",
                                                      "if",
                                                      "then",
                                                      "else",
                                                      "dependentRequired",
                                                      "dependencies",
                                                      "contains",
                                                      "propertyNames",
                                                      "minProperties",
                                                      "maxProperties",
                                                      "dependentSchemas",
                                                      "unevaluatedItems"};

}  // namespace

// What a branch is, references followed.
const json::Value* Reader::BranchOf(const Value& branch) const {
  constexpr int kMostHops = 16;
  const Value* at = &branch;
  for (int hops = 0; hops < kMostHops; ++hops) {
    const Value* reference = at->Find("$ref");
    if (reference == nullptr) return at;
    auto target = const_cast<Reader*>(this)->Referred("$ref", *reference, here_);
    if (!target.ok()) return nullptr;
    at = target->value;
  }
  return nullptr;
}

// Whether a required key tells the branches apart that are objects.
bool Reader::IsTagged(const Value& branches) const {
  std::vector<const Value*> objects;
  for (const Value& branch : branches.items) {
    const Value* one = BranchOf(branch);
    if (one == nullptr) return false;
    if (!IsScalarSchema(*one)) objects.push_back(one);
  }
  if (objects.size() < 2) return true;
  const Value* properties = objects[0]->Find("properties");
  if (properties == nullptr) return false;
  return std::ranges::any_of(properties->members, [&](const json::Member& tag) {
    std::set<std::string> seen;
    return std::ranges::all_of(objects, [&](const Value* object) {
      const Value* of = object->Find("properties");
      const Value* property = of == nullptr ? nullptr : of->Find(tag.first);
      if (property == nullptr || !Lists(object->Find("required"), tag.first)) return false;
      const std::set<std::string> constants = ConstantsOf(*property);
      return !constants.empty() && std::ranges::all_of(constants, [&](const std::string& text) {
        return seen.insert(text).second;
      });
    });
  });
}

bool Reader::JudgesKeys(const Value& schema, const Path& path) {
  int choosers = 0;
  bool object = false, array = false, constants = false;
  std::string_view judge;
  for (const auto& [name, value] : schema.members) {
    if (Ignored(name)) continue;
    object = object || IsOneOf(name, kOfObjects);
    array = array || IsOneOf(name, kOfArrays);
    constants = constants || name == "enum" || name == "const";
    if (IsOneOf(name, kJudges)) judge = name;
    // Keys of a pattern may be named as well.
    if (name == "patternProperties" && schema.Find("properties") != nullptr) judge = name;
    if (!IsOneOf(name, kChoosers)) continue;
    ++choosers;
    if (name == "allOf" && value.items.size() != 1) judge = name;
    if (name != "anyOf" && name != "oneOf") continue;
    const auto objects = std::ranges::count_if(value.items, [&](const Value& branch) {
      const Value* one = BranchOf(branch);
      return one == nullptr || !IsScalarSchema(*one);
    });
    has_object_unions_ = has_object_unions_ || objects > 1;
    if (name == "oneOf" && !IsTagged(value)) judge = name;
  }
  if (judge.empty() && (choosers > 1 || (choosers > 0 && (object || array))))
    judge = "what it refers to or chooses from";
  if (judge.empty() && constants && (choosers > 0 || object || array)) judge = "enum or const";
  if (judge.empty()) return false;
  if (choosers > 0 || schema.Find("properties") != nullptr) {
    notes_.push_back(path.ToString() + ": keys: those that may be left out stay optional next to " +
                     std::string(judge));
  }
  return true;
}

void Reader::AskForKeys(const Path& path, ObjectAtom& atom) {
  const auto required = [&](const std::string& key) {
    return std::ranges::find(atom.required, key) != atom.required.end();
  };
  std::vector<std::string> asked;
  for (const auto& [key, formula] : atom.properties) {
    // A key that must not be there is not asked for.
    if (formula != kFalseFormula && !required(key)) asked.push_back(key);
  }
  if (asked.size() > limits::kAskedKeys && options_.keys == JsonSchemaOptions::Keys::kAll) {
    notes_.push_back(path.ToString() + ": keys: " + std::to_string(asked.size()) +
                     " keys may be left out, more than " + std::to_string(limits::kAskedKeys) +
                     ", so they stay optional");
    return;
  }
  if (asked.empty()) return;
  const FormulaId null = formulas_.Kinds(KindBit(kNullValue));
  const bool all = options_.keys == JsonSchemaOptions::Keys::kAll;
  const std::set<std::string_view> names(asked.begin(), asked.end());
  for (auto& [key, formula] : atom.properties) {
    if (!names.contains(key)) continue;
    formula = all ? formulas_.Or(formula, null) : formulas_.And(formula, formulas_.Not(null));
  }
  if (!all) return;
  atom.required.insert(atom.required.end(), asked.begin(), asked.end());
}

}  // namespace pawl::schema
