// A small model copies a JSON Schema that it is shown, keyword by keyword. A template that looks
// like the record tells it the same in a form that it has to repeat anyway (docs/evaluation.md has
// the figures). NuExtract is trained on such templates.
//
// Examples are written by the grammar: at each place the candidates are tried on a state, so that
// order, white space and spelling are those of the record that the model is to write.
#include "src/engine/schema_view.h"

#include <algorithm>
#include <utility>

#include "src/base/file.h"

namespace pawl {
namespace {

using json::Type;
using json::Value;

constexpr size_t kMostTemplateBytes = size_t{16} << 10;
constexpr int kMostTemplateDepth = 12;
constexpr int kMostReferences = 16;
constexpr size_t kMostFieldsBytes = size_t{2} << 10;
constexpr size_t kMostNoteBytes = 60;

// The place of a schema with references followed, and null among the choices left out.
const Value* Followed(const Value& root, const Value* at) {
  for (int hops = 0; hops < kMostReferences && at != nullptr; ++hops) {
    if (const Value* reference = at->Find("$ref")) {
      const std::string& text = reference->text;
      if (text == "#") {
        at = &root;
        continue;
      }
      if (!text.starts_with("#/")) return nullptr;
      const Value* target = &root;
      for (const std::string& token : json::PointerTokens(std::string_view(text).substr(1))) {
        target = target->type == Type::kArray ? json::ItemAt(*target, token) : target->Find(token);
        if (target == nullptr) return nullptr;
      }
      at = target;
      continue;
    }
    const Value* only = nullptr;
    int choices = 0;
    for (const char* name : {"anyOf", "oneOf", "allOf"}) {
      const Value* branches = at->Find(name);
      if (branches == nullptr) continue;
      for (const Value& branch : branches->items) {
        const Value* type = branch.Find("type");
        if (type != nullptr && type->type == Type::kString && type->text == "null") continue;
        if (only == nullptr) only = &branch;
        ++choices;
      }
    }
    if (choices == 0 || at->Find("properties") != nullptr) return at;
    // Of several choices the first one stands for all.
    at = only;
  }
  return at;
}

std::string TypeOf(const Value& schema) {
  const Value* type = schema.Find("type");
  if (type == nullptr) {
    if (schema.Find("properties") != nullptr) return "object";
    return schema.Find("items") != nullptr ? "array" : "";
  }
  if (type->type == Type::kString) return type->text;
  for (const Value& one : type->items) {
    if (one.text != "null") return one.text;
  }
  return "null";
}

// The members of an enumeration but null.
std::string ChoicesOf(const Value& list) {
  std::string out;
  for (const Value& item : list.items) {
    if (item.type == Type::kNull) continue;
    const std::string text = item.type == Type::kString ? item.text : json::Dump(item);
    out += (out.empty() ? "" : "|") + text;
  }
  return out;
}

class TemplateWriter {
 public:
  explicit TemplateWriter(const Value& root) : root_(root) {}

  bool Write(const Value& given, int depth, std::string& out) {
    const Value* schema = Followed(root_, &given);
    if (depth > kMostTemplateDepth || out.size() > kMostTemplateBytes) return false;
    if (schema == nullptr || schema->type != Type::kObject) return Text("any", out);
    if (const Value* constant = schema->Find("const")) {
      out += json::Dump(*constant);
      return true;
    }
    if (const Value* list = schema->Find("enum")) return Text(ChoicesOf(*list), out);
    const std::string type = TypeOf(*schema);
    if (type == "object") return Object(*schema, depth, out);
    if (type == "array") {
      out += '[';
      const Value* items = schema->Find("items");
      if (items != nullptr && !Write(*items, depth + 1, out)) return false;
      out += ']';
      return true;
    }
    const Value* format = schema->Find("format");
    const bool named = type == "string" && format != nullptr;
    return Text(named ? format->text : type.empty() ? "any" : type, out);
  }

 private:
  static bool Text(const std::string& text, std::string& out) {
    out += json::Quote(text);
    return true;
  }

  bool Object(const Value& schema, int depth, std::string& out) {
    out += '{';
    if (const Value* properties = schema.Find("properties")) {
      bool first = true;
      for (const auto& [key, member] : properties->members) {
        if (member.type == Type::kFalse) continue;
        out += (first ? "" : ", ") + json::Quote(key) + ": ";
        first = false;
        if (!Write(member, depth + 1, out)) return false;
      }
    }
    out += '}';
    return true;
  }

  const Value& root_;
};

// What follows a key in the short form: nothing for texts, else the type, choices or members.
class FieldsWriter {
 public:
  explicit FieldsWriter(const Value& root) : root_(root) {}

  bool Write(const Value& given, int depth, std::string& out) {
    const Value* schema = Followed(root_, &given);
    if (depth > kMostTemplateDepth || out.size() > kMostFieldsBytes) return false;
    if (schema == nullptr || schema->type != Type::kObject) return true;
    const std::string type = TypeOf(*schema);
    if (const Value* constant = schema->Find("const")) {
      out += ":" + (constant->type == Type::kString ? constant->text : json::Dump(*constant));
    } else if (const Value* list = schema->Find("enum")) {
      out += ":" + ChoicesOf(*list);
    } else if (type == "object") {
      out += '{';
      if (!Members(*schema, depth, out)) return false;
      out += '}';
    } else if (type == "array") {
      out += '[';
      const Value* items = schema->Find("items");
      if (items != nullptr && !Write(*items, depth + 1, out)) return false;
      out += ']';
    } else if (type != "string") {
      if (!type.empty()) out += ":" + type;
    } else if (const Value* format = schema->Find("format")) {
      out += ":" + format->text;
    } else if (schema->Find("pattern") != nullptr) {
      out += ":pattern";
    }
    const Value* note = given.Find("description");
    if (note == nullptr) note = schema->Find("description");
    if (note != nullptr && !note->text.empty() && note->text.size() <= kMostNoteBytes)
      out += "(" + note->text + ")";
    return true;
  }

  bool Members(const Value& schema, int depth, std::string& out) {
    const Value* properties = schema.Find("properties");
    if (properties == nullptr) return true;
    bool first = true;
    for (const auto& [key, member] : properties->members) {
      if (member.type == Type::kFalse) continue;
      out += (first ? "" : ";") + key;
      first = false;
      if (!Write(member, depth + 1, out)) return false;
    }
    return true;
  }

 private:
  const Value& root_;
};

// ---- Templates as schemas ----

Value TextValue(std::string text) {
  Value value;
  value.type = Type::kString;
  value.text = std::move(text);
  return value;
}

Value ObjectValue(std::vector<std::pair<std::string, Value>> members) {
  Value value;
  value.type = Type::kObject;
  for (auto& [key, member] : members) value.members.emplace_back(key, std::move(member));
  return value;
}

Result<Value> SchemaFor(const Value& given, const std::string& pointer, int depth) {
  const auto wrong = [&](std::string message) {
    return Error{ErrorCode::kInvalid, std::move(message), pointer};
  };
  if (depth > kMostTemplateDepth) return wrong("is nested too deep");
  if (given.type == Type::kObject) {
    if (given.members.empty()) return wrong("names no field");
    Value properties;
    properties.type = Type::kObject;
    for (const auto& [key, member] : given.members) {
      Result<Value> one = SchemaFor(member, json::PointerJoin(pointer, key), depth + 1);
      if (!one.ok()) return one;
      properties.members.emplace_back(key, *std::move(one));
    }
    return ObjectValue({{"type", TextValue("object")}, {"properties", std::move(properties)}});
  }
  if (given.type == Type::kArray) {
    // One item: a list of it. Several texts: a choice. A list of one list of texts: several
    // choices.
    if (given.items.empty()) return wrong("must say what is in the list");
    const bool several = given.items.size() > 1;
    if (!several) {
      Result<Value> item = SchemaFor(given.items[0], pointer + "/0", depth + 1);
      if (!item.ok()) return item;
      return ObjectValue({{"type", TextValue("array")}, {"items", *std::move(item)}});
    }
    for (const Value& item : given.items) {
      if (item.type != Type::kString) return wrong("a choice must be of texts");
    }
    return ObjectValue({{"type", TextValue("string")}, {"enum", given}});
  }
  if (given.type != Type::kString) return wrong("must be an object, a list or the name of a type");
  const std::string& name = given.text;
  if (name == "verbatim-string") {
    return ObjectValue({{"type", TextValue("string")}, {"x-pawl-source", TextValue("span")}});
  }
  if (name == "string" || name.empty()) return ObjectValue({{"type", TextValue("string")}});
  if (name == "integer" || name == "number" || name == "boolean")
    return ObjectValue({{"type", TextValue(name)}});
  if (name == "date" || name == "time" || name == "date-time" || name == "email" || name == "uri")
    return ObjectValue({{"type", TextValue("string")}, {"format", TextValue(name)}});
  return wrong("unknown type " + json::Quote(name) +
               "; known: string, verbatim-string, integer, number, boolean, date, time, date-time, "
               "email, uri");
}

// ---- Examples ----

// Writes a record along a grammar, and finds the place that the grammar refuses.
class RecordWriter {
 public:
  // `values`: of the record, which its steps are bounded by.
  RecordWriter(State at, std::string_view item, std::string_view key, size_t values)
      : at_(std::move(at)),
        item_(item),
        key_(key),
        steps_(kLeastSteps + kStepsOfAValue * static_cast<int64_t>(values)) {}

  bool Write(const Value& value, const std::string& pointer) {
    if (--steps_ < 0) return false;
    if (value.type == Type::kObject) return Object(value, pointer);
    if (value.type == Type::kArray) return Array(value, pointer);
    return Take(json::Dump(value), pointer);
  }
  bool whole() const { return at_.accepting(); }
  const std::string& text() const { return text_; }
  // Of a record that could not be written: what was written of it, and where it ended.
  size_t furthest() const { return furthest_; }
  const std::string& refused() const { return refused_; }

 private:
  bool Take(std::string_view bytes, const std::string& pointer) {
    std::optional<State> next = at_.Advance(bytes);
    if (!next) {
      if (refused_.empty() || text_.size() > furthest_) {
        furthest_ = text_.size();
        refused_ = pointer;
      }
      return false;
    }
    at_ = *std::move(next);
    text_ += bytes;
    return true;
  }

  bool Array(const Value& value, const std::string& pointer) {
    if (!Take("[", pointer)) return false;
    for (size_t i = 0; i < value.items.size(); ++i) {
      const std::string at = pointer + "/" + std::to_string(i);
      if (i > 0 && !Take(item_, at)) return false;
      if (!Write(value.items[i], at)) return false;
    }
    return Take("]", pointer);
  }

  bool Object(const Value& value, const std::string& pointer) {
    if (!Take("{", pointer)) return false;
    std::vector<const json::Member*> left;
    for (const json::Member& member : value.members) left.push_back(&member);
    return Members(left, true, pointer);
  }

  // The members that are left, in an order that the grammar takes.
  bool Members(std::vector<const json::Member*>& left, bool first, const std::string& pointer) {
    if (--steps_ < 0) return false;
    const State at = at_;
    const size_t length = text_.size();
    const auto back = [&] {
      at_ = at;
      text_.resize(length);
    };
    if (left.empty() && Take("}", pointer)) return true;
    for (size_t i = 0; i < left.size(); ++i) {
      const json::Member* const member = left[i];
      const std::string inside = json::PointerJoin(pointer, member->first);
      if (Take((first ? "" : std::string(item_)) + json::Quote(member->first) + std::string(key_),
               inside) &&
          Write(member->second, inside)) {
        left.erase(left.begin() + static_cast<ptrdiff_t>(i));
        if (Members(left, false, pointer)) return true;
        left.insert(left.begin() + static_cast<ptrdiff_t>(i), member);
      }
      back();
    }
    return false;
  }

  State at_;
  const std::string_view item_, key_;
  std::string text_, refused_;
  size_t furthest_ = 0;
  static constexpr int64_t kLeastSteps = 20'000, kStepsOfAValue = 16;
  int64_t steps_;
};

// The record with null for each key of the schema that it does not have.
Value Filled(const Value& root, const Value& schema, Value record, int depth) {
  const Value* at = Followed(root, &schema);
  if (at == nullptr || depth > kMostTemplateDepth) return record;
  if (record.type == Type::kArray) {
    const Value* items = at->Find("items");
    if (items == nullptr) return record;
    for (Value& item : record.items) item = Filled(root, *items, std::move(item), depth + 1);
    return record;
  }
  const Value* properties = at->Find("properties");
  if (record.type != Type::kObject || properties == nullptr) return record;
  for (const auto& [key, property] : properties->members) {
    const auto member = std::ranges::find_if(
        record.members,
        [&, &wanted = key](const json::Member& one) { return one.first == wanted; });
    if (member == record.members.end()) {
      record.members.emplace_back(key, Value());
    } else {
      member->second = Filled(root, property, std::move(member->second), depth + 1);
    }
  }
  return record;
}

size_t ValuesOf(const Value& value) {
  size_t out = 1;
  for (const Value& item : value.items) out += ValuesOf(item);
  for (const json::Member& member : value.members) out += ValuesOf(member.second);
  return out;
}

// Whether the record has this place, "#/a/0".
bool Has(const Value& record, const std::string& place) {
  const Value* at = &record;
  for (const std::string& token : json::PointerTokens(std::string_view(place).substr(1))) {
    at = at->type == Type::kArray ? json::ItemAt(*at, token) : at->Find(token);
    if (at == nullptr) return false;
  }
  return true;
}

Value WithoutNulls(Value record) {
  for (Value& item : record.items) item = WithoutNulls(std::move(item));
  std::erase_if(record.members,
                [](const json::Member& member) { return member.second.type == Type::kNull; });
  for (json::Member& member : record.members)
    member.second = WithoutNulls(std::move(member.second));
  return record;
}

// Of the object, or of the objects of a list, that the schema describes.
const Value* PropertiesOf(const Value& schema) {
  const Value* at = Followed(schema, &schema);
  if (at != nullptr && TypeOf(*at) == "array") {
    const Value* items = at->Find("items");
    at = items == nullptr ? nullptr : Followed(schema, items);
  }
  return at == nullptr ? nullptr : at->Find("properties");
}

}  // namespace

std::optional<SchemaView> SchemaViewNamed(std::string_view name) {
  for (const SchemaView view : {SchemaView::kAuto, SchemaView::kTemplate, SchemaView::kKeys,
                                SchemaView::kSchema, SchemaView::kNone}) {
    if (name == NameOf(view)) return view;
  }
  return std::nullopt;
}

const char* NameOf(SchemaView view) {
  switch (view) {
    case SchemaView::kTemplate:
      return "template";
    case SchemaView::kKeys:
      return "keys";
    case SchemaView::kSchema:
      return "schema";
    case SchemaView::kNone:
      return "none";
    case SchemaView::kDefault:
    case SchemaView::kAuto:
      break;
  }
  return "auto";
}

const char* NameOf(ClosedBy why) {
  switch (why) {
    case ClosedBy::kNothing:
      return "";
    case ClosedBy::kBudget:
      return "budget";
    case ClosedBy::kSteps:
      return "steps";
    case ClosedBy::kRepetition:
      break;
  }
  return "repetition";
}

std::optional<std::string> SchemaTemplate(const Value& schema) {
  if (SchemaKeys(schema).empty()) return std::nullopt;
  std::string out;
  if (!TemplateWriter(schema).Write(schema, 0, out)) return std::nullopt;
  return out;
}

std::string SchemaFields(const Value& schema) {
  FieldsWriter writer(schema);
  const Value* root = Followed(schema, &schema);
  if (root == nullptr || root->type != Type::kObject) return "";
  std::string out;
  const bool whole =
      TypeOf(*root) == "object" ? writer.Members(*root, 0, out) : writer.Write(*root, 0, out);
  return whole ? out : "";
}

std::vector<std::string> SchemaKeys(const Value& schema) {
  std::vector<std::string> keys;
  if (const Value* properties = PropertiesOf(schema)) {
    for (const auto& [key, member] : properties->members) keys.push_back(key);
  }
  return keys;
}

bool IsFlatSchema(const Value& schema) {
  const Value* properties = PropertiesOf(schema);
  if (properties == nullptr) return false;
  return std::ranges::all_of(properties->members, [&](const json::Member& member) {
    const Value* at = Followed(schema, &member.second);
    if (at == nullptr) return false;
    if (TypeOf(*at) == "array") {
      const Value* items = at->Find("items");
      at = items == nullptr ? at : Followed(schema, items);
    }
    return at != nullptr && TypeOf(*at) != "object" && at->Find("properties") == nullptr;
  });
}

bool IsListSchema(const Value& schema) {
  const Value* at = Followed(schema, &schema);
  return at != nullptr && at->type == Type::kObject && TypeOf(*at) == "array";
}

Result<std::string> SchemaOfTemplate(const Value& given) {
  Result<Value> schema = SchemaFor(given, "#", 0);
  if (!schema.ok()) return schema.error();
  return json::Dump(*schema);
}

Result<std::string> WriteRecord(const Grammar& grammar, const Value& schema, const Value& record) {
  constexpr std::pair<std::string_view, std::string_view> kSeparators[] = {
      {", ", ": "}, {",", ":"}, {",", ": "}, {", ", ":"}};
  const Value forms[] = {record, Filled(schema, schema, record, 0), WithoutNulls(record)};
  const size_t values = ValuesOf(forms[1]);
  std::string refused = "#";
  size_t furthest = 0;
  for (const Value& form : forms) {
    for (const auto& [item, key] : kSeparators) {
      RecordWriter writer(grammar.Start(), item, key, values);
      if (writer.Write(form, "#") && writer.whole()) return writer.text();
      if (writer.furthest() <= furthest || !Has(record, writer.refused())) continue;
      furthest = writer.furthest();
      refused = writer.refused();
    }
  }
  return Error{ErrorCode::kInvalid, "does not fit the schema", refused};
}

Status WriteExamples(const Grammar& grammar, std::string_view schema,
                     std::vector<ExtractExample>& examples) {
  if (examples.empty()) return {};
  const Result<Value> tree = json::Parse(schema);
  if (!tree.ok()) return tree.error();
  for (size_t i = 0; i < examples.size(); ++i) {
    const std::string place = "examples: " + std::to_string(i + 1);
    const Result<Value> record = json::Parse(examples[i].record);
    if (!record.ok()) return InFile(place, record.error());
    Result<std::string> written = WriteRecord(grammar, *tree, *record);
    if (!written.ok()) return InFile(place, written.error());
    examples[i].record = *std::move(written);
  }
  return {};
}

Result<std::vector<ExtractExample>> ReadExamples(std::string_view lines,
                                                 std::vector<int>* line_numbers) {
  std::vector<ExtractExample> out;
  int number = 0;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const std::string place = "line " + std::to_string(++number);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Result<Value> value = json::Parse(line);
    if (!value.ok()) return InFile(place, value.error());
    const Value* text = value->Find("text");
    const Value* record = value->Find("record");
    if (text == nullptr || text->type != Type::kString || record == nullptr) {
      return Error{ErrorCode::kInvalid, "must be an object with a string \"text\" and a \"record\"",
                   place};
    }
    out.push_back({text->text, json::Dump(*record)});
    if (line_numbers != nullptr) line_numbers->push_back(number);
  }
  if (out.empty()) return Error{ErrorCode::kInvalid, "has no examples", ""};
  return out;
}

Result<std::vector<ExtractExample>> ExamplesFromJson(std::string_view list) {
  const Result<Value> tree = json::Parse(list);
  if (!tree.ok()) return tree.error();
  if (tree->type != Type::kArray) return Error{ErrorCode::kInvalid, "must be a list", "#"};
  std::vector<ExtractExample> out;
  for (const Value& one : tree->items) {
    const Value* text = one.Find("text");
    const Value* record = one.Find("record");
    if (text == nullptr || text->type != Type::kString || record == nullptr) {
      return Error{ErrorCode::kInvalid, "must be an object with a string \"text\" and a \"record\"",
                   "#/" + std::to_string(out.size())};
    }
    out.push_back({text->text, json::Dump(*record)});
  }
  return out;
}

}  // namespace pawl
