// What was seen at a place of the records is counted: types, keys in the order of their first
// record, different strings as far as they are few, and which formats all strings have. The schema
// says what all of that has in common.
#include "src/engine/schema_infer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/engine/spans.h"

namespace pawl {
namespace {

constexpr size_t kMostChoices = 12;      // values of an enum that is proposed
constexpr size_t kLongestChoice = 40;    // bytes
constexpr int64_t kTimesEachChoice = 3;  // an enum's value comes so often, on average
constexpr int64_t kLeastCopied = 3;      // strings that tell that a field is copied

// A text is of a form when each '0' stands for a digit and all else for itself.
bool HasForm(std::string_view text, std::string_view form) {
  if (text.size() != form.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == '0' ? !digit : text[i] != form[i]) return false;
  }
  return true;
}

bool IsDateText(std::string_view text) {
  return HasForm(text, "0000-00-00") && text.substr(5, 2) >= "01" && text.substr(5, 2) <= "12" &&
         text.substr(8) >= "01" && text.substr(8) <= "31";
}

bool IsZone(std::string_view zone) {
  return zone == "Z" || zone == "z" || HasForm(zone, "+00:00") || HasForm(zone, "-00:00");
}

// The time of day with seconds, perhaps with a fraction, and a zone.
bool IsTimeText(std::string_view text) {
  if (text.size() < 9 || !HasForm(text.substr(0, 8), "00:00:00")) return false;
  size_t at = 8;
  if (text[at] == '.') {
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9';) ++at;
  }
  return IsZone(text.substr(at));
}

bool IsEmailText(std::string_view text) {
  const size_t at = text.find('@');
  return at != std::string_view::npos && at > 0 && text.find('@', at + 1) == text.npos &&
         text.find('.', at) != text.npos && text.find_first_of(" \t\r\n<>(),") == text.npos &&
         text.back() != '.' && text[at + 1] != '.';
}

bool IsUriText(std::string_view text) {
  return (text.starts_with("https://") || text.starts_with("http://")) && text.size() > 8 &&
         text.find_first_of(" \t\r\n<>\"") == text.npos;
}

struct TextForm {
  const char* name;
  bool (*fits)(std::string_view text);
};
constexpr std::array<TextForm, 5> kForms = {{
    {"date", &IsDateText},
    {"date-time",
     [](std::string_view text) {
       return text.size() > 11 && IsDateText(text.substr(0, 10)) &&
              (text[10] == 'T' || text[10] == 't') && IsTimeText(text.substr(11));
     }},
    {"time", &IsTimeText},
    {"email", &IsEmailText},
    {"uri", &IsUriText},
}};

json::Value JsonText(std::string text) {
  json::Value out;
  out.type = json::Type::kString;
  out.text = std::move(text);
  return out;
}

json::Value ListOf(std::vector<json::Value> items) {
  json::Value out;
  out.type = json::Type::kArray;
  out.items = std::move(items);
  return out;
}

json::Value ObjectOf(std::vector<json::Member> members) {
  json::Value out;
  out.type = json::Type::kObject;
  out.members = std::move(members);
  return out;
}

}  // namespace

struct SchemaInference::Shape {
  int64_t objects = 0, lists = 0, strings = 0, numbers = 0, booleans = 0, nulls = 0;
  bool whole = true;  // all numbers
  struct Key {
    std::string name;
    int64_t times = 0;
    std::unique_ptr<Shape> value = std::make_unique<Shape>();
  };
  std::vector<Key> keys;
  std::unique_ptr<Shape> items;
  std::set<std::string> choices;  // at most kMostChoices + 1
  std::array<bool, kForms.size()> forms = {true, true, true, true, true};
  int64_t with_text = 0, copied = 0;  // strings whose text is known; those that stand in it

  void Add(const json::Value& value, const std::string& pointer,
           const std::set<std::string>* spans) {
    switch (value.type) {
      case json::Type::kNull:
        ++nulls;
        break;
      case json::Type::kFalse:
      case json::Type::kTrue:
        ++booleans;
        break;
      case json::Type::kNumber:
        ++numbers;
        whole = whole && value.text.find_first_of(".eE") == std::string::npos;
        break;
      case json::Type::kString:
        AddString(value.text, spans == nullptr ? -1 : spans->contains(pointer) ? 1 : 0);
        break;
      case json::Type::kArray:
        ++lists;
        if (items == nullptr && !value.items.empty()) items = std::make_unique<Shape>();
        for (size_t i = 0; i < value.items.size(); ++i) {
          items->Add(value.items[i], json::PointerJoin(pointer, std::to_string(i)), spans);
        }
        break;
      case json::Type::kObject:
        ++objects;
        for (const json::Member& member : value.members) {
          auto key = std::ranges::find(keys, member.first, &Key::name);
          if (key == keys.end()) key = keys.insert(keys.end(), Key{.name = member.first});
          ++key->times;
          key->value->Add(member.second, json::PointerJoin(pointer, member.first), spans);
        }
        break;
    }
  }

  // `copy`: 1: stands in its text, 0: it does not, -1: the text is not known.
  void AddString(const std::string& text, int copy) {
    ++strings;
    with_text += copy >= 0 ? 1 : 0;
    copied += copy == 1 ? 1 : 0;
    if (choices.size() <= kMostChoices) {
      choices.insert(text.size() <= kLongestChoice ? text : text.substr(0, kLongestChoice + 1));
    }
    for (size_t i = 0; i < kForms.size(); ++i) forms[i] = forms[i] && kForms[i].fits(text);
  }

  bool IsChoice() const {
    const auto different = static_cast<int64_t>(choices.size());
    return strings > 0 && objects + lists + numbers + booleans == 0 &&
           choices.size() <= kMostChoices && strings >= kTimesEachChoice * different &&
           std::ranges::all_of(choices, [](const std::string& one) {
             return !one.empty() && one.size() <= kLongestChoice;
           });
  }

  json::Value Schema() const {
    std::vector<json::Member> out;
    if (IsChoice()) {
      std::vector<json::Value> values;
      for (const std::string& one : choices) values.push_back(JsonText(one));
      if (nulls > 0) values.emplace_back();
      out.emplace_back("enum", ListOf(std::move(values)));
      return ObjectOf(std::move(out));
    }
    std::vector<json::Value> types;
    const auto add = [&](int64_t count, const char* name) {
      if (count > 0) types.push_back(JsonText(name));
    };
    add(objects, "object");
    add(lists, "array");
    add(strings, "string");
    add(numbers, whole ? "integer" : "number");
    add(booleans, "boolean");
    add(nulls, "null");
    if (types.size() == 1) out.emplace_back("type", types[0]);
    if (types.size() > 1) out.emplace_back("type", ListOf(std::move(types)));
    if (strings > 0) AddStringKeywords(out);
    if (items != nullptr) out.emplace_back("items", items->Schema());
    if (objects > 0) AddObjectKeywords(out);
    return ObjectOf(std::move(out));
  }

  void AddStringKeywords(std::vector<json::Member>& out) const {
    for (size_t i = 0; i < kForms.size(); ++i) {
      if (!forms[i]) continue;
      out.emplace_back("format", JsonText(kForms[i].name));
      return;
    }
    if (copied < kLeastCopied || copied < with_text) return;
    out.emplace_back("x-pawl-source", JsonText("span"));
  }

  void AddObjectKeywords(std::vector<json::Member>& out) const {
    std::vector<json::Member> properties;
    std::vector<json::Value> required;
    for (const Key& key : keys) {
      properties.emplace_back(key.name, key.value->Schema());
      if (key.times == objects) required.push_back(JsonText(key.name));
    }
    out.emplace_back("properties", ObjectOf(std::move(properties)));
    if (!required.empty()) out.emplace_back("required", ListOf(std::move(required)));
    json::Value no;
    no.type = json::Type::kFalse;
    out.emplace_back("additionalProperties", no);
  }
};

SchemaInference::SchemaInference() : root_(std::make_unique<Shape>()) {}
SchemaInference::~SchemaInference() = default;
SchemaInference::SchemaInference(SchemaInference&&) noexcept = default;
SchemaInference& SchemaInference::operator=(SchemaInference&&) noexcept = default;

void SchemaInference::Add(const json::Value& record, std::string_view text) {
  std::set<std::string> spans;
  if (!text.empty()) {
    for (Span& span : FindSpans(record, text)) spans.insert(std::move(span.pointer));
  }
  root_->Add(record, "", text.empty() ? nullptr : &spans);
}

std::string SchemaInference::Schema() const { return PrettyJson(root_->Schema()); }

namespace {

void PrettyInto(const json::Value& value, size_t level, std::string& out) {
  const bool object = value.type == json::Type::kObject;
  const bool flat = std::ranges::all_of(
      value.items, [](const json::Value& one) { return one.items.empty() && one.members.empty(); });
  if (value.size() == 0 || (!object && (value.type != json::Type::kArray || flat))) {
    out += json::Dump(value);
    return;
  }
  const std::string indent = "\n" + std::string(2 * level + 2, ' ');
  out += object ? '{' : '[';
  for (size_t i = 0; i < value.size(); ++i) {
    out += (i > 0 ? "," : "") + indent;
    if (object) out += json::Quote(value.members[i].first) + ": ";
    PrettyInto(object ? value.members[i].second : value.items[i], level + 1, out);
  }
  out += "\n" + std::string(2 * level, ' ') + (object ? '}' : ']');
}

bool NamesType(const json::Value& schema, std::string_view name) {
  const json::Value* const type = schema.Find("type");
  if (type == nullptr) return false;
  return type->text == name || std::ranges::any_of(type->items, [name](const json::Value& one) {
           return one.text == name;
         });
}

void RemarkOn(const json::Value& schema, const std::string& pointer,
              std::vector<std::string>& out) {
  const auto has = [&](const char* keyword) { return schema.Find(keyword) != nullptr; };
  const auto say = [&](const char* what) { out.push_back("#" + pointer + ": " + what); };
  if (schema.type != json::Type::kObject) return;
  const bool fixed = has("enum") || has("const");
  if (has("properties") && !has("additionalProperties") && !has("unevaluatedProperties")) {
    say("more keys are allowed, so generate may invent some; extract closes the object");
  }
  if (NamesType(schema, "string") && !fixed && !has("maxLength") && !has("format") &&
      !has("pattern") && !has("x-pawl-source")) {
    say("the string has no end of its own (maxLength); extract ends it at the length of the text");
  }
  if (NamesType(schema, "array") && !has("maxItems")) {
    say("the list has no end of its own (maxItems); the budget ends it");
  }
  if (has("oneOf")) {
    say("oneOf asks of each value that no second branch holds; anyOf is cheaper where they differ");
  }
  if (has("uniqueItems")) say("uniqueItems compares each item with all before it");
  if (has("not")) say("not needs the complement of a schema");
  if (has("contains") || has("dependentSchemas") || has("if")) {
    say("contains, if and dependentSchemas are decided when the value ends");
  }
  if (NamesType(schema, "number") && !fixed && !has("multipleOf") && !has("x-pawl-source")) {
    say("the number may have as many digits as --max-digits and --max-decimals allow");
  }
}

void RemarksInto(const json::Value& schema, const std::string& pointer,
                 std::vector<std::string>& out) {
  RemarkOn(schema, pointer, out);
  for (const char* name : {"properties", "patternProperties", "$defs", "definitions"}) {
    const json::Value* const schemas = schema.Find(name);
    if (schemas == nullptr) continue;
    const std::string at = json::PointerJoin(pointer, name);
    for (const json::Member& one : schemas->members) {
      RemarksInto(one.second, json::PointerJoin(at, one.first), out);
    }
  }
  for (const char* name : {"items", "additionalProperties", "not", "if", "then", "else", "contains",
                           "prefixItems", "anyOf", "oneOf", "allOf"}) {
    const json::Value* const inner = schema.Find(name);
    if (inner == nullptr) continue;
    const std::string at = json::PointerJoin(pointer, name);
    if (inner->type == json::Type::kObject) RemarksInto(*inner, at, out);
    for (size_t i = 0; i < inner->items.size(); ++i) {
      RemarksInto(inner->items[i], json::PointerJoin(at, std::to_string(i)), out);
    }
  }
}

}  // namespace

std::vector<std::string> SchemaRemarks(const json::Value& schema) {
  std::vector<std::string> out;
  RemarksInto(schema, "", out);
  return out;
}

std::string PrettyJson(const json::Value& value) {
  std::string out;
  PrettyInto(value, 0, out);
  return out;
}

}  // namespace pawl
