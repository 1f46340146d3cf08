// A string is written as it is, up to the closing mark, which therefore cannot occur in it; every
// other value is JSON. Where a style writes the type of a value, each type is an alternative with
// its own mark, so mark and value agree.
#include <algorithm>
#include <map>

#include "grammar/regex/ecma_parser.h"
#include "grammar/regex/formats.h"
#include "grammar/tags/structural_tag_reader.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

using ExprId = GrammarIr::ExprId;

constexpr std::string_view kAnnotations[] = {"title",    "description", "default",  "examples",
                                             "$comment", "deprecated",  "readOnly", "writeOnly",
                                             "$schema",  "$id",         "$defs",    "definitions"};
constexpr std::string_view kTypes[] = {"string", "number", "boolean", "null", "object", "array"};

Error Refused(std::string message, const std::string& at) {
  return Error{ErrorCode::kUnsupported, std::move(message), at};
}

bool Has(const json::Value& schema, std::string_view key) { return schema.Find(key) != nullptr; }

json::Value Make(json::Type type, std::string text = "") {
  json::Value value;
  value.type = type;
  value.text = std::move(text);
  return value;
}

// The schema of any value.
const json::Value& AnyValue() {
  static const json::Value any = Make(json::Type::kTrue);
  return any;
}

// The template of Gemma sorts the keys of arguments without regard to case.
std::vector<const json::Member*> MembersInOrder(const json::Value& object,
                                                const ArgumentStyle& style) {
  std::vector<const json::Member*> members;
  for (const json::Member& member : object.members) members.push_back(&member);
  if (style.marks != ArgumentStyle::Marks::kGemma) return members;
  const auto lower = [](const json::Member* member) {
    std::string key = member->first;
    for (char& c : key) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return key;
  };
  std::ranges::stable_sort(members, {}, lower);
  return members;
}

const char* PythonWord(json::Type type) {
  return type == json::Type::kNull ? "None" : type == json::Type::kTrue ? "True" : "False";
}

bool UsesReferences(const json::Value& schema) {
  std::vector<const json::Value*> stack = {&schema};
  while (!stack.empty()) {
    const json::Value* at = stack.back();
    stack.pop_back();
    for (const json::Value& item : at->items) stack.push_back(&item);
    for (const json::Member& member : at->members) {
      if (member.first == "$ref") return true;
      stack.push_back(&member.second);
    }
  }
  return false;
}

}  // namespace

std::string XmlStyleReader::MarkOf(std::string_view type) const {
  switch (style_.marks) {
    case ArgumentStyle::Marks::kNone:
    case ArgumentStyle::Marks::kMinimaxM3:
    case ArgumentStyle::Marks::kCdata:
    case ArgumentStyle::Marks::kGemma:
    case ArgumentStyle::Marks::kPython:
      return "";
    case ArgumentStyle::Marks::kIsString:
      return type == "string" ? "true" : "false";
    case ArgumentStyle::Marks::kCohere:
      return type == "string"   ? "raw"
             : type == "object" ? "dict"
             : type == "array"  ? "list"
                                : "json";
    case ArgumentStyle::Marks::kKimi:
      break;
  }
  return std::string(type == "integer" ? "number" : type);
}

ExprId XmlStyleReader::Spaces() {
  RegexArena& arena = reader_.ir_.arena();
  CodepointSet set = CodepointSet::Of(U' ', U' ');
  const ReId space = arena.Or(
      std::vector<ReId>{arena.Set(set), arena.Char(U'\t'), arena.Char(U'\n'), arena.Char(U'\r')});
  return reader_.ir_.Regex(arena.Repeat(
      space, 0,
      options_.whitespace == JsonSchemaOptions::Whitespace::kAny
          ? std::nullopt
          : std::optional<uint32_t>(static_cast<uint32_t>(std::max(0, options_.max_whitespace)))));
}

ExprId XmlStyleReader::Padded(ExprId value) {
  if (style_.marks == ArgumentStyle::Marks::kMinimaxM3 || joins()) return value;
  return reader_.ir_.Sequence({Spaces(), value, Spaces()});
}

Status XmlStyleReader::OnlyKeywords(const json::Value& schema, const std::string& at,
                                    std::initializer_list<std::string_view> known) const {
  for (const json::Member& member : schema.members) {
    if (std::ranges::find(known, member.first) != known.end() ||
        std::ranges::find(kAnnotations, member.first) != std::end(kAnnotations)) {
      continue;
    }
    return Refused("this keyword is not enforced where values are written as parameters",
                   json::PointerJoin(at, member.first));
  }
  return {};
}

Result<std::pair<const json::Value*, std::string>> XmlStyleReader::Resolve(
    const json::Value& schema, const std::string& at) {
  const json::Value* value = &schema;
  std::string place = at;
  for (int i = 0; i < kDeepestXml; ++i) {
    if (value->type != json::Type::kObject && !value->is_bool())
      return Error{ErrorCode::kInvalid, "a schema is an object, true or false", place};
    const json::Value* reference = value->Find("$ref");
    if (reference == nullptr) return std::pair(value, place);
    const std::string at_reference = json::PointerJoin(place, "$ref");
    if (Status status = OnlyKeywords(*value, place, {"$ref"}); !status.ok()) return status.error();
    if (reference->type != json::Type::kString || !reference->text.starts_with("#"))
      return Refused("only references within the schema (\"#/...\") are followed here",
                     at_reference);
    const std::string_view path = std::string_view(reference->text).substr(1);
    if (!path.empty() && path[0] != '/')
      return Refused("only JSON Pointers are followed here", at_reference);
    value = &root_;
    place = place_;
    for (const std::string& token : json::PointerTokens(path)) {
      const bool array = value->type == json::Type::kArray;
      const json::Value* next = array ? json::ItemAt(*value, token) : value->Find(token);
      if (next == nullptr)
        return Error{ErrorCode::kInvalid, "the reference leads nowhere", at_reference};
      value = next;
      place = json::PointerJoin(place, token);
    }
  }
  return Error{ErrorCode::kInvalid, "the references go in a circle", at};
}

ExprId XmlStyleReader::Parameter(ExprId key, const std::vector<Form>& forms) {
  GrammarIr& ir = reader_.ir_;
  std::vector<ExprId> begin = {reader_.TextOf(style_.before)};
  if (style_.marks == ArgumentStyle::Marks::kCohere) {
    if (key != GrammarIr::kEmpty) {
      begin.push_back(reader_.TextOf(" name=\""));
      begin.push_back(key);
      begin.push_back(reader_.TextOf("\""));
    }
  } else {
    begin.push_back(key);
  }
  begin.push_back(reader_.TextOf(style_.after_key));
  if (!style_.value_open.empty()) {
    begin.push_back(Spaces());
    begin.push_back(reader_.TextOf(style_.value_open));
  }
  std::vector<ExprId> choices;
  for (const Form& form : forms) {
    std::string mark;
    if (!form.mark.empty())
      mark = form.mark + (style_.marks == ArgumentStyle::Marks::kKimi ? "\"<|sep|>" : "\">");
    choices.push_back(ir.Sequence({reader_.TextOf(mark), form.value}));
  }
  begin.push_back(ir.Choice(choices));
  begin.push_back(reader_.TextOf(style_.end));
  if (style_.marks == ArgumentStyle::Marks::kMinimaxM3) {
    begin.push_back(reader_.TextOf("</"));
    begin.push_back(key);
    begin.push_back(reader_.TextOf(">"));
  }
  return ir.Sequence(begin);
}

Result<ExprId> XmlStyleReader::Object(const json::Value& given, const std::string& given_at,
                                      int depth) {
  if (depth > kDeepestXml)
    return Error{ErrorCode::kLimit, "parameters are nested too deeply", given_at};
  GrammarIr& ir = reader_.ir_;
  auto resolved = Resolve(given, given_at);
  if (!resolved.ok()) return resolved.error();
  const json::Value& schema = *resolved->first;
  const std::string& at = resolved->second;
  if (schema.type == json::Type::kFalse)
    return Error{ErrorCode::kUnsatisfiable, "no value fits", at};
  if (Status status =
          OnlyKeywords(schema, at, {"type", "properties", "required", "additionalProperties"});
      !status.ok()) {
    return status.error();
  }
  if (const json::Value* type = schema.Find("type");
      type != nullptr && (type->type != json::Type::kString || type->text != "object")) {
    return Refused("only an object is written as parameters", json::PointerJoin(at, "type"));
  }
  std::vector<std::string> required;
  if (const json::Value* list = schema.Find("required")) {
    for (size_t i = 0; i < list->items.size(); ++i) {
      const json::Value* properties = schema.Find("properties");
      if (list->items[i].type != json::Type::kString || properties == nullptr ||
          properties->Find(list->items[i].text) == nullptr) {
        return Refused("only a key of \"properties\" can be required here",
                       json::PointerJoin(json::PointerJoin(at, "required"), std::to_string(i)));
      }
      required.push_back(list->items[i].text);
    }
  }
  std::vector<Property> properties;
  RegexArena& arena = ir.arena();
  std::vector<ReId> names;
  if (const json::Value* list = schema.Find("properties")) {
    const std::string list_at = json::PointerJoin(at, "properties");
    if (list->type != json::Type::kObject)
      return Error{ErrorCode::kInvalid, "must be an object", list_at};
    for (const json::Member* in_order : MembersInOrder(*list, style_)) {
      const json::Member& member = *in_order;
      const std::string member_at = json::PointerJoin(list_at, member.first);
      const bool needed = std::ranges::find(required, member.first) != required.end();
      names.push_back(arena.Literal(DecodeCodepoints(member.first)));
      if (std::string wrong = WrongKey(member.first); !wrong.empty()) {
        return Refused(std::move(wrong), member_at);
      }
      if (member.second.type == json::Type::kFalse && !needed) continue;
      auto forms = Forms(member.second, member_at, depth + 1);
      if (!forms.ok()) return forms.error();
      std::string key;
      for (const char c : member.first) {
        const bool escape = style_.marks == ArgumentStyle::Marks::kKimi;
        if (escape && c == '&') {
          key += "&amp;";
        } else if (escape && c == '"') {
          key += "&quot;";
        } else {
          key.push_back(c);
        }
      }
      properties.push_back({Parameter(ir.Literal(key), *forms), needed});
    }
  }
  ExprId other = GrammarIr::kNever;
  const json::Value* more = schema.Find("additionalProperties");
  // As JsonSchemaOptions::additional_properties says: an object of which nothing is said is open.
  const bool fixed = style_.marks == ArgumentStyle::Marks::kMinimaxM3;
  const bool open = !fixed && (options_.additional_properties || !Has(schema, "properties"));
  if (fixed && more != nullptr && more->type != json::Type::kFalse) {
    return Refused("an element is named after a key of \"properties\"; there are no others here",
                   json::PointerJoin(at, "additionalProperties"));
  }
  if (more != nullptr ? more->type != json::Type::kFalse : open) {
    auto forms = Forms(more == nullptr ? AnyValue() : *more,
                       json::PointerJoin(at, "additionalProperties"), depth + 1);
    if (!forms.ok()) return forms.error();
    auto name = ParseEcma(arena, "[A-Za-z_][A-Za-z0-9_]*", {.search = false});
    if (!name.ok()) return name.error();
    const ReId key = arena.And(*name, arena.Not(arena.Or(names)));
    other = Parameter(ir.Regex(key), *forms);
  }
  if (joins()) {
    if (options_.order == JsonSchemaOptions::Order::kSchema) return Joined(properties, other);
    return Refused("arguments with commas between them come in one order only", at);
  }
  if (options_.order == JsonSchemaOptions::Order::kSchema) return InOrder(properties, other);
  if (properties.size() > kMostInAnyOrder) {
    return Refused(
        "more than " + std::to_string(kMostInAnyOrder) + " parameters cannot come in any order",
        json::PointerJoin(at, "properties"));
  }
  return InAnyOrder(properties, other);
}

ExprId XmlStyleReader::InOrder(const std::vector<Property>& properties, ExprId other) {
  GrammarIr& ir = reader_.ir_;
  std::vector<ExprId> parts;
  for (const Property& property : properties) {
    const ExprId expr = ir.Sequence({Spaces(), property.expr});
    parts.push_back(property.required ? expr : ir.Optional(expr));
  }
  if (other != GrammarIr::kNever)
    parts.push_back(ir.Repeat(ir.Sequence({Spaces(), other}), 0, GrammarIr::kUnbounded));
  parts.push_back(Spaces());
  return ir.Sequence(parts);
}

// A rule for each set of properties that may still come.
ExprId XmlStyleReader::InAnyOrder(const std::vector<Property>& properties, ExprId other) {
  GrammarIr& ir = reader_.ir_;
  const uint32_t sets = 1u << properties.size();
  std::vector<GrammarIr::RuleId> rules;
  for (uint32_t left = 0; left < sets; ++left)
    rules.push_back(ir.AddRule("parameters_" + std::to_string(left)));
  for (uint32_t left = 0; left < sets; ++left) {
    std::vector<ExprId> choices;
    bool complete = true;
    for (size_t i = 0; i < properties.size(); ++i) {
      if ((left >> i & 1) == 0) continue;
      complete = complete && !properties[i].required;
      choices.push_back(
          ir.Sequence({Spaces(), properties[i].expr, ir.Call(rules[left & ~(1u << i)])}));
    }
    if (other != GrammarIr::kNever)
      choices.push_back(ir.Sequence({Spaces(), other, ir.Call(rules[left])}));
    if (complete) choices.push_back(Spaces());
    ir.Define(rules[left], ir.Choice(choices));
  }
  return ir.Call(rules[sets - 1]);
}

Result<ExprId> XmlStyleReader::List(const json::Value& schema, const std::string& at, int depth) {
  GrammarIr& ir = reader_.ir_;
  if (Status status = OnlyKeywords(schema, at, {"type", "items", "minItems", "maxItems"});
      !status.ok()) {
    return status.error();
  }
  const json::Value* items = schema.Find("items");
  auto forms =
      Forms(items == nullptr ? AnyValue() : *items, json::PointerJoin(at, "items"), depth + 1);
  if (!forms.ok()) return forms.error();
  const JsonReader in(schema, at);
  const std::optional<uint32_t> least = StructuralTagReader::Count(in["minItems"]);
  const std::optional<uint32_t> most = StructuralTagReader::Count(in["maxItems"]);
  if (!in.ok()) return in.error();
  if (joins()) {
    std::vector<ExprId> values;
    for (const Form& form : *forms) values.push_back(form.value);
    return JoinedItems(ir.Choice(values), least.value_or(0), most);
  }
  const bool named = style_.marks == ArgumentStyle::Marks::kMinimaxM3;
  const ExprId name = named ? ir.Literal("item") : GrammarIr::kEmpty;
  const ExprId item = ir.Sequence({Spaces(), Parameter(name, *forms)});
  return ir.Sequence(
      {ir.Repeat(item, least.value_or(0), most.value_or(GrammarIr::kUnbounded)), Spaces()});
}

Result<ExprId> XmlStyleReader::Raw(const json::Value& schema, const std::string& at,
                                   std::string_view stop_mark) {
  RegexArena& arena = reader_.ir_.arena();
  std::vector<ReId> all;
  const json::Value* pattern = schema.Find("pattern");
  if (pattern != nullptr) {
    const std::string place = json::PointerJoin(at, "pattern");
    if (pattern->type != json::Type::kString)
      return Error{ErrorCode::kInvalid, "must be a string", place};
    auto regex = ParseEcma(arena, pattern->text);
    if (!regex.ok()) return ErrorInside(regex.error(), place);
    all.push_back(*regex);
  }
  if (const json::Value* format = schema.Find("format");
      format != nullptr && options_.assert_formats && IsKnownFormat(format->text)) {
    auto regex = FormatRegex(arena, format->text);
    if (!regex.ok()) return ErrorInside(regex.error(), json::PointerJoin(at, "format"));
    all.push_back(*regex);
  }
  if (Has(schema, "minLength") || Has(schema, "maxLength")) {
    const JsonReader in(schema, at);
    const std::optional<uint32_t> least = StructuralTagReader::Count(in["minLength"]);
    const std::optional<uint32_t> most = StructuralTagReader::Count(in["maxLength"]);
    if (!in.ok()) return in.error();
    all.push_back(arena.Repeat(RegexArena::kAnyChar, least.value_or(0), most));
  }
  std::vector<std::string> stops = {std::string(stop_mark)};
  for (std::string_view rest = options_.excluded_texts; !rest.empty();) {
    stops.emplace_back(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), stops.back().size() + 1));
  }
  if (all.empty()) return reader_.FreeTextOf({.stops = stops});
  for (const std::string& stop : stops) {
    all.push_back(arena.Not(arena.Concat(
        {RegexArena::kAnything, arena.Literal(DecodeCodepoints(stop)), RegexArena::kAnything})));
  }
  const ExprId expr = reader_.ir_.Regex(arena.And(all));
  return stop_mark == kCdataClose ? expr : Padded(expr);
}

Result<ExprId> XmlStyleReader::Json(const json::Value& schema, const std::string& at,
                                    const std::vector<std::string>& types) {
  json::Value copy = Make(json::Type::kObject);
  if (schema.type == json::Type::kObject) {
    for (const json::Member& member : schema.members) {
      if (member.first != "type" && member.first != "$schema") copy.members.push_back(member);
    }
  }
  json::Value list = Make(json::Type::kArray);
  for (const std::string& type : types) list.items.push_back(Make(json::Type::kString, type));
  copy.members.emplace_back("type", types.size() == 1 ? list.items[0] : list);
  if (UsesReferences(schema)) {
    for (const char* definitions : {"$defs", "definitions"}) {
      const json::Value* found = root_.Find(definitions);
      if (found != nullptr && copy.Find(definitions) == nullptr)
        copy.members.emplace_back(definitions, *found);
    }
  }
  if (const json::Value* dialect = root_.Find("$schema"))
    copy.members.emplace_back("$schema", *dialect);
  auto value = reader_.JsonSchema(copy, at, options_);
  if (!value.ok()) return value.error();
  return Padded(*value);
}

Result<std::vector<XmlStyleReader::Form>> XmlStyleReader::Forms(const json::Value& given,
                                                                const std::string& given_at,
                                                                int depth) {
  if (depth > kDeepestXml)
    return Error{ErrorCode::kLimit, "parameters are nested too deeply", given_at};
  auto resolved = Resolve(given, given_at);
  if (!resolved.ok()) return resolved.error();
  const json::Value& schema = *resolved->first;
  const std::string& at = resolved->second;
  if (schema.type == json::Type::kFalse)
    return Error{ErrorCode::kUnsatisfiable, "no value fits", at};
  for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
    const json::Value* list = schema.Find(keyword);
    if (list == nullptr) continue;
    const std::string list_at = json::PointerJoin(at, keyword);
    if (Status status = OnlyKeywords(schema, at, {keyword}); !status.ok()) return status.error();
    if (list->items.empty())
      return Error{ErrorCode::kInvalid, "must be an array that is not empty", list_at};
    if (keyword[0] == 'a' && keyword[1] == 'l' && list->items.size() > 1)
      return Refused("only one schema may stand in \"allOf\" here", list_at);
    std::vector<Form> forms;
    std::vector<std::string> types;
    for (size_t i = 0; i < list->items.size(); ++i) {
      const std::string item_at = json::PointerJoin(list_at, std::to_string(i));
      auto branch = Forms(list->items[i], item_at, depth + 1);
      if (!branch.ok()) return branch.error();
      forms.insert(forms.end(), branch->begin(), branch->end());
      if (keyword[0] == 'a' || list->items.size() == 1) continue;
      auto target = Resolve(list->items[i], item_at);
      if (!target.ok()) return target.error();
      const json::Value* type = target->first->Find("type");
      if (type == nullptr || type->type != json::Type::kString ||
          std::ranges::find(types, type->text == "integer" ? "number" : type->text) !=
              types.end()) {
        return Refused("the schemas in \"oneOf\" must have different types here", list_at);
      }
      types.push_back(type->text == "integer" ? "number" : type->text);
    }
    return forms;
  }
  if (const json::Value* list = schema.Find("enum")) {
    if (Status status = OnlyKeywords(schema, at, {"enum", "type"}); !status.ok())
      return status.error();
    std::vector<const json::Value*> values;
    for (const json::Value& item : list->items) values.push_back(&item);
    return FormsOfValues(values, schema, at);
  }
  if (const json::Value* value = schema.Find("const")) {
    if (Status status = OnlyKeywords(schema, at, {"const", "type"}); !status.ok())
      return status.error();
    return FormsOfValues({value}, schema, at);
  }
  return FormsOfTypes(schema, at, depth);
}

Result<std::vector<XmlStyleReader::Form>> XmlStyleReader::FormsOfValues(
    const std::vector<const json::Value*>& values, const json::Value& schema,
    const std::string& at) {
  GrammarIr& ir = reader_.ir_;
  std::vector<Form> forms;
  for (const json::Value* value : values) {
    const std::string type = value->is_bool() ? "boolean" : json::TypeName(value->type);
    if (value->type == json::Type::kString) {
      const json::Value* wanted = schema.Find("type");
      const bool fits =
          wanted == nullptr || wanted->text == "string" ||
          std::ranges::any_of(wanted->items, [](const auto& t) { return t.text == "string"; });
      const std::optional<ExprId> literal = StringLiteral(value->text);
      if (fits && literal) forms.push_back({MarkOf(type), *literal});
      continue;
    }
    json::Value one = Make(json::Type::kObject);
    one.members.emplace_back("const", *value);
    if (const json::Value* wanted = schema.Find("type")) one.members.emplace_back("type", *wanted);
    auto expr = reader_.JsonSchema(one, at, options_);
    if (!expr.ok()) {
      if (expr.error().code == ErrorCode::kUnsatisfiable) continue;
      return expr.error();
    }
    forms.push_back({MarkOf(type), Padded(*expr)});
    const bool python = style_.marks == ArgumentStyle::Marks::kPython;
    if (python && (value->is_bool() || value->type == json::Type::kNull)) {
      forms.push_back({"", ir.Literal(PythonWord(value->type))});
    }
  }
  if (forms.empty()) return Error{ErrorCode::kUnsatisfiable, "no value fits", at};
  return forms;
}

Result<std::vector<XmlStyleReader::Form>> XmlStyleReader::FormsOfTypes(const json::Value& schema,
                                                                       const std::string& at,
                                                                       int depth) {
  std::vector<std::string> types;
  const json::Value* wanted = schema.Find("type");
  if (wanted == nullptr) {
    types.assign(std::begin(kTypes), std::end(kTypes));
  } else if (wanted->type == json::Type::kString) {
    types = {wanted->text};
  } else {
    for (const json::Value& item : wanted->items) types.push_back(item.text);
  }
  const auto string = std::ranges::find(types, "string");
  std::vector<Form> forms;
  if (wanted == nullptr && style_.marks == ArgumentStyle::Marks::kGemma &&
      OnlyKeywords(schema, at, {}).ok()) {
    return std::vector<Form>{{"", AnyGemmaValue()}};
  }
  if (string != types.end()) {
    types.erase(string);
    for (const char* keyword : {"not", "if", "contentEncoding", "contentMediaType"}) {
      if (Has(schema, keyword))
        return Refused("this keyword is not enforced in a string that is written as it is",
                       json::PointerJoin(at, keyword));
    }
    const bool any = !Has(schema, "pattern") && !Has(schema, "minLength") &&
                     !Has(schema, "maxLength") && !Has(schema, "format");
    auto written = String(schema, at, any);
    if (!written.ok()) return written.error();
    forms.push_back({MarkOf("string"), *written});
    // Without marks any text is a string.
    const bool unmarked =
        style_.marks == ArgumentStyle::Marks::kNone || style_.marks == ArgumentStyle::Marks::kCdata;
    if (any && wanted == nullptr && style_.marks == ArgumentStyle::Marks::kMinimaxM3) return forms;
    if (any && unmarked) return forms;
  }
  const bool gemma = style_.marks == ArgumentStyle::Marks::kGemma;
  const bool python = style_.marks == ArgumentStyle::Marks::kPython;
  const bool nested = style_.marks == ArgumentStyle::Marks::kCohere ||
                      style_.marks == ArgumentStyle::Marks::kMinimaxM3 || gemma;
  const bool apart = style_.marks == ArgumentStyle::Marks::kKimi || python || nested;
  if (!apart) {
    if (types.empty()) return forms;
    auto value = Json(schema, at, types);
    if (!value.ok()) return value.error();
    forms.push_back({MarkOf("json"), *value});
    return forms;
  }
  // Of any value the type may be called "integer" as well.
  if (wanted == nullptr && style_.marks == ArgumentStyle::Marks::kKimi) {
    auto value = Json(schema, at, {"integer"});
    if (!value.ok()) return value.error();
    forms.push_back({"integer", *value});
  }
  for (const std::string& type : types) {
    const bool dict = type == "object" && nested;
    const bool list = type == "array" && nested;
    // Of any value only scalars: what is nested without end is written by no finite notation here.
    if ((dict || list) && wanted == nullptr) continue;
    auto value = dict   ? Object(schema, at, depth + 1)
                 : list ? List(schema, at, depth + 1)
                        : Json(schema, at, {type});
    if (!value.ok()) return value.error();
    forms.push_back({MarkOf(type), *value});
    if (python && type == "boolean") {
      forms.push_back({"", reader_.ir_.Literal("True")});
      forms.push_back({"", reader_.ir_.Literal("False")});
    }
    if (python && type == "null") forms.push_back({"", reader_.ir_.Literal("None")});
  }
  return forms;
}

}  // namespace pawl
