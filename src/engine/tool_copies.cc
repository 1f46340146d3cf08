// Words are compared without case, and a word of the request may be longer ("bikes" for "bike").
#include "src/engine/tool_copies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/base/json.h"

namespace pawl {
namespace {

using json::Value;

// In lower case, with one space in front of each word and none else. Bytes beyond ASCII are
// letters.
std::string WordsOf(std::string_view text) {
  std::string out;
  bool between = true;
  for (char c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & 0x80) != 0;
    if (word && between) out += ' ';
    if (word) out += c;
    between = !word;
  }
  return out;
}

bool Names(const std::string& words, std::string_view name) {
  const std::string wanted = WordsOf(name);
  return !wanted.empty() && words.find(wanted) != std::string::npos;
}

bool IsRequired(const Value& schema, const std::string& name) {
  const Value* const required = schema.Find("required");
  return required != nullptr &&
         std::ranges::any_of(required->items, [&](const Value& one) { return one.text == name; });
}

enum class Wanted { kYes, kNo, kUnknown };

Wanted WantedBy(const std::string& words, const std::string& name, const Value& property) {
  const auto known = [](bool yes) { return yes ? Wanted::kYes : Wanted::kNo; };
  if (const Value* const values = property.Find("enum")) {
    const bool texts = std::ranges::all_of(
        values->items, [](const Value& one) { return one.type == json::Type::kString; });
    if (!texts) return Wanted::kUnknown;
    return known(std::ranges::any_of(values->items,
                                     [&](const Value& one) { return Names(words, one.text); }));
  }
  const Value* const type = property.Find("type");
  if (type == nullptr || type->type != json::Type::kString) return Wanted::kUnknown;
  if (type->text == "boolean") return known(Names(words, name));
  // A number that is there may be another key's.
  const bool number = type->text == "number" || type->text == "integer";
  const bool has_number = std::ranges::any_of(words, [](char c) { return c >= '0' && c <= '9'; });
  return number && !has_number ? Wanted::kNo : Wanted::kUnknown;
}

// Of the values of an `enum` those that the request names; all where it names none.
Value WithNamed(Value property, const std::string& words) {
  for (json::Member& member : property.members) {
    if (member.first != "enum") continue;
    std::vector<Value> named;
    for (const Value& one : member.second.items) {
      if (one.type == json::Type::kString && Names(words, one.text)) named.push_back(one);
    }
    if (!named.empty()) member.second.items = std::move(named);
  }
  return property;
}

Value TextValue(std::string text) { return {json::Type::kString, std::move(text), {}, {}}; }

Value OrNull(Value schema) {
  Value null{json::Type::kObject, "", {}, {}};
  null.members.emplace_back("type", TextValue("null"));
  Value both{json::Type::kArray, "", {}, {}};
  both.items.push_back(std::move(schema));
  both.items.push_back(std::move(null));
  Value out{json::Type::kObject, "", {}, {}};
  out.members.emplace_back("anyOf", std::move(both));
  return out;
}

}  // namespace

std::optional<std::string> SchemaAsRequested(std::string_view parameters,
                                             std::string_view request) {
  Result<Value> schema = json::Parse(parameters);
  if (!schema.ok() || schema->type != json::Type::kObject) return std::nullopt;
  const Value* const properties = schema->Find("properties");
  if (properties == nullptr || properties->type != json::Type::kObject) return std::nullopt;
  const std::string words = WordsOf(request);
  std::vector<json::Member> kept;
  Value required{json::Type::kArray, "", {}, {}};
  for (const auto& [name, property] : properties->members) {
    const bool needed = IsRequired(*schema, name);
    const Wanted wanted = needed ? Wanted::kYes : WantedBy(words, name, property);
    if (wanted == Wanted::kNo) continue;
    if (wanted == Wanted::kYes) required.items.push_back(TextValue(name));
    kept.emplace_back(name, OrNull(WithNamed(property, words)));
  }
  std::erase_if(schema->members,
                [](const json::Member& member) { return member.first == "required"; });
  for (json::Member& member : schema->members) {
    if (member.first == "properties") member.second.members = std::move(kept);
  }
  schema->members.emplace_back("required", std::move(required));
  return json::Dump(*schema);
}

}  // namespace pawl
