// Where a schema allows a string and something else, a text that is JSON of an allowed type is that
// value, and all others are strings: so is what models mean by it, and what other servers read.
#include "src/engine/argument_value.h"

#include <algorithm>
#include <vector>

namespace pawl {
namespace {

constexpr int kMostSteps = 32;  // references and unions inside of each other

constexpr TypeSet kNoTypes = {false, false, false, false, false};

TypeSet TypeNamed(std::string_view name) {
  TypeSet types = kNoTypes;
  if (name == "string") {
    types.string = true;
  } else if (name == "object") {
    types.object = true;
  } else if (name == "array") {
    types.array = true;
  } else if (name == "null") {
    types.null = true;
  } else {
    types.other = true;
  }
  return types;
}

TypeSet TypeOfValue(const json::Value& value) {
  switch (value.type) {
    case json::Type::kString:
      return TypeNamed("string");
    case json::Type::kObject:
      return TypeNamed("object");
    case json::Type::kArray:
      return TypeNamed("array");
    case json::Type::kNull:
      return TypeNamed("null");
    default:
      return TypeNamed("number");
  }
}

TypeSet Union(TypeSet a, const TypeSet& b) {
  a.string |= b.string;
  a.object |= b.object;
  a.array |= b.array;
  a.null |= b.null;
  a.other |= b.other;
  return a;
}

TypeSet Both(TypeSet a, const TypeSet& b) {
  a.string &= b.string;
  a.object &= b.object;
  a.array &= b.array;
  a.null &= b.null;
  a.other &= b.other;
  return a;
}

bool Overlap(const TypeSet& a, const TypeSet& b) {
  const TypeSet both = Both(a, b);
  return both.string || both.object || both.array || both.null || both.other;
}

// What references within the document lead to; nullptr: anything.
const json::Value* Target(const json::Value& root, const json::Value* schema) {
  for (int i = 0; i < kMostSteps && schema != nullptr; ++i) {
    const json::Value* reference = schema->Find("$ref");
    if (reference == nullptr) return schema;
    if (!reference->text.starts_with('#')) return nullptr;
    schema = &root;
    for (const std::string& token : json::PointerTokens(reference->text.substr(1))) {
      schema =
          schema->type == json::Type::kArray ? json::ItemAt(*schema, token) : schema->Find(token);
      if (schema == nullptr) return nullptr;
    }
  }
  return nullptr;
}

// The branch of unions around that has this keyword, or the schema itself.
const json::Value* With(const json::Value& root, const json::Value* schema, const char* keyword,
                        int steps = 0) {
  schema = Target(root, schema);
  if (schema == nullptr || steps > kMostSteps || schema->Find(keyword) != nullptr) return schema;
  for (const char* many : {"anyOf", "oneOf", "allOf"}) {
    const json::Value* list = schema->Find(many);
    if (list == nullptr) continue;
    for (const json::Value& branch : list->items) {
      const json::Value* found = With(root, &branch, keyword, steps + 1);
      if (found != nullptr && found->Find(keyword) != nullptr) return found;
    }
  }
  return schema;
}

TypeSet TypesWithin(const json::Value& root, const json::Value* schema, int steps) {
  schema = Target(root, schema);
  if (schema == nullptr || steps > kMostSteps) return {};
  TypeSet types;
  if (const json::Value* type = schema->Find("type")) {
    if (type->type == json::Type::kString) types = TypeNamed(type->text);
    if (type->type == json::Type::kArray) {
      types = kNoTypes;
      for (const json::Value& one : type->items) types = Union(types, TypeNamed(one.text));
    }
  }
  if (const json::Value* value = schema->Find("const")) types = Both(types, TypeOfValue(*value));
  if (const json::Value* list = schema->Find("enum")) {
    TypeSet any = kNoTypes;
    for (const json::Value& value : list->items) any = Union(any, TypeOfValue(value));
    types = Both(types, any);
  }
  for (const char* many : {"anyOf", "oneOf"}) {
    const json::Value* list = schema->Find(many);
    if (list == nullptr) continue;
    TypeSet any = kNoTypes;
    for (const json::Value& one : list->items) any = Union(any, TypesWithin(root, &one, steps + 1));
    types = Both(types, any);
  }
  if (const json::Value* list = schema->Find("allOf")) {
    for (const json::Value& one : list->items)
      types = Both(types, TypesWithin(root, &one, steps + 1));
  }
  return types;
}

// White space around a value that must be one of a list is not the value's.
std::string_view WithoutSpaces(const json::Value& root, const json::Value* schema,
                               std::string_view text) {
  std::vector<const json::Value*> values;
  const json::Value* list = With(root, schema, "enum");
  const json::Value* one = With(root, schema, "const");
  if (list != nullptr && list->Find("enum") != nullptr) {
    for (const json::Value& item : list->Find("enum")->items) values.push_back(&item);
  }
  if (one != nullptr && one->Find("const") != nullptr) values.push_back(one->Find("const"));
  const auto is = [&](std::string_view wanted) {
    return std::ranges::any_of(values, [&](const json::Value* value) {
      return value->type == json::Type::kString && value->text == wanted;
    });
  };
  const size_t begin = text.find_first_not_of(" \n\r\t");
  if (values.empty() || is(text) || begin == std::string_view::npos) return text;
  const std::string_view inner = text.substr(begin, text.find_last_not_of(" \n\r\t") + 1 - begin);
  return is(inner) ? inner : text;
}

}  // namespace

TypeSet TypesOf(const json::Value& root, const json::Value* schema) {
  return TypesWithin(root, schema, 0);
}

const json::Value* ParameterSchema(const json::Value& root, const json::Value* object,
                                   std::string_view key) {
  const json::Value* with = With(root, object, "properties");
  if (with != nullptr) {
    if (const json::Value* all = with->Find("properties")) {
      if (const json::Value* found = all->Find(key)) return found;
    }
  }
  with = With(root, object, "additionalProperties");
  return with == nullptr ? nullptr : with->Find("additionalProperties");
}

const json::Value* ItemSchema(const json::Value& root, const json::Value* array) {
  const json::Value* with = With(root, array, "items");
  return with == nullptr ? nullptr : with->Find("items");
}

std::string ParameterJson(const json::Value& root, const json::Value* schema,
                          std::string_view text) {
  const TypeSet types = TypesOf(root, schema);
  const bool only_string =
      types.string && !types.object && !types.array && !types.null && !types.other;
  if (only_string) return json::Quote(WithoutSpaces(root, schema, text));
  const Result<json::Value> parsed = json::Parse(text);
  if (!parsed.ok()) return json::Quote(types.string ? WithoutSpaces(root, schema, text) : text);
  if (types.string && !Overlap(types, TypeOfValue(*parsed))) return json::Quote(text);
  return json::Dump(*parsed);
}

}  // namespace pawl
