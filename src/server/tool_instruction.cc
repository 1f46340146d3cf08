// The form was chosen by trying: a model of 135 million parameters called the right tool more often
// with the lines of the calls themselves than with schemas or with a description of the form
// (bench/tools/).
#include "src/server/tool_instruction.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace pawl::server {
namespace {

using json::Value;

constexpr int kDeepestSignature = 3;
constexpr std::string_view kBegin = "Tools:\n\n";
constexpr std::string_view kEnd =
    "A call of a tool is one of these lines with values in place of <...>.";
constexpr std::string_view kMayAnswer = " Where no tool fits, answer in words.";

std::string FirstLine(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_first_of("\r\n", begin) - begin));
}

std::string TypeText(const Value& schema) {
  const Value* values = schema.Find("enum");
  const Value* type = schema.Find("type");
  std::string out;
  const auto add = [&](const std::string& one) { out += (out.empty() ? "" : " | ") + one; };
  if (values != nullptr && values->type == json::Type::kArray) {
    for (const Value& value : values->items) add(json::Dump(value));
  } else if (type != nullptr && type->type == json::Type::kArray) {
    for (const Value& one : type->items) add(one.text);
  } else if (type != nullptr) {
    add(type->text);
  }
  if (out.empty()) out = "value";
  const Value* format = schema.Find("format");
  return format == nullptr ? out : out + ", " + format->text;
}

bool IsType(const Value& schema, std::string_view name) {
  const Value* type = schema.Find("type");
  return type != nullptr && type->type == json::Type::kString && type->text == name;
}

// A value of the schema, with types in place of values.
std::string Signature(const Value& schema, bool optional, int depth) {
  if (schema.type != json::Type::kObject) return "<value>";
  if (const Value* value = schema.Find("const")) return json::Dump(*value);
  const Value* properties = schema.Find("properties");
  const Value* items = schema.Find("items");
  if (depth < kDeepestSignature && items != nullptr && IsType(schema, "array")) {
    return "[" + Signature(*items, false, depth + 1) + ", ...]";
  }
  if (depth >= kDeepestSignature || properties == nullptr ||
      properties->type != json::Type::kObject) {
    return "<" + TypeText(schema) + (optional ? ", optional>" : ">");
  }
  std::string out = "{";
  const Value* required = schema.Find("required");
  for (const auto& [name, property] : properties->members) {
    const bool needed =
        required != nullptr && std::ranges::any_of(required->items, [&, &wanted = name](auto& one) {
          return one.text == wanted;
        });
    if (out.size() > 1) out += ", ";
    out += json::Quote(name) + ": " + Signature(property, !needed, depth + 1);
  }
  return out + "}";
}

// Whether a signature leaves something out that the model needs. What only bounds a value, such as
// a pattern, is in the grammar: a small model calls worse with schemas that say it (bench/tools/).
bool IsInSignatureOrGrammar(const std::string& key) {
  static constexpr std::string_view kKeys[] = {"$schema",
                                               "additionalProperties",
                                               "const",
                                               "default",
                                               "enum",
                                               "exclusiveMaximum",
                                               "exclusiveMinimum",
                                               "format",
                                               "maxItems",
                                               "maxLength",
                                               "maximum",
                                               "minItems",
                                               "minLength",
                                               "minimum",
                                               "multipleOf",
                                               "pattern",
                                               "required",
                                               "title",
                                               "type",
                                               "uniqueItems"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

bool SaysMore(const Value& schema, int depth) {
  if (schema.type != json::Type::kObject) return false;
  if (depth > kDeepestSignature) return true;
  for (const auto& [key, value] : schema.members) {
    if (key == "properties" && value.type == json::Type::kObject) {
      for (const auto& [name, property] : value.members) {
        if (SaysMore(property, depth + 1)) return true;
      }
    } else if (key == "items") {
      if (!IsType(schema, "array") || SaysMore(value, depth + 1)) return true;
    } else if (!IsInSignatureOrGrammar(key)) {
      return true;
    }
  }
  return false;
}

// The first spelling of an end of a call.
std::string SpelledOut(const std::vector<std::vector<FormatPiece>>& spellings) {
  std::string out;
  if (spellings.empty()) return out;
  for (const FormatPiece& piece : spellings.front()) {
    out += piece.kind == FormatPiece::Kind::kText    ? piece.text
           : piece.kind == FormatPiece::Kind::kIndex ? "0"
                                                     : std::string(piece.length, '0');
  }
  return out;
}

std::string ArgumentsOf(const ToolSpec& tool, const CallSyntax& call, std::string_view style,
                        const Value& schema) {
  if (call.body == CallSyntax::Body::kRaw) return "<text>";
  if (tool.kind == ToolSpec::Kind::kCustom) return R"({"input": <string>})";
  if (style != "qwen_xml") return style.empty() ? Signature(schema, false, 0) : "<arguments>";
  std::string out = "\n";
  const Value* properties = schema.Find("properties");
  if (properties == nullptr) return out;
  for (const auto& [name, property] : properties->members) {
    out += "<parameter=" + name + ">\n" + Signature(property, false, 1) + "\n</parameter>\n";
  }
  return out;
}

Value* MemberOf(Value& object, std::string_view key) {
  for (json::Member& member : object.members) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

std::string MemberText(const Value& message, std::string_view key) {
  const Value* value = message.Find(key);
  return value != nullptr && value->type == json::Type::kString ? value->text : std::string();
}

Value TextValue(std::string text) {
  Value value;
  value.type = json::Type::kString;
  value.text = std::move(text);
  return value;
}

Value MessageWith(const char* role, std::string content) {
  Value message;
  message.type = json::Type::kObject;
  message.members.emplace_back("role", TextValue(role));
  message.members.emplace_back("content", TextValue(std::move(content)));
  return message;
}

// The content of a message with `text` before or behind it.
void Extend(Value& message, const std::string& text, bool before) {
  Value* content = MemberOf(message, "content");
  if (content == nullptr) {
    message.members.emplace_back("content", TextValue(text));
    return;
  }
  const std::string old = content->text;
  *content = TextValue(old.empty() ? text : before ? text + "\n\n" + old : old + "\n\n" + text);
}

std::string CallText(const ToolInstruction& told, const Value& call) {
  const Value* function = call.Find("function");
  if (function == nullptr) function = &call;
  const std::string name = MemberText(*function, "name");
  const Value* arguments = function->Find("arguments");
  const bool as_text = arguments != nullptr && arguments->type == json::Type::kString;
  const std::string given = arguments == nullptr ? "{}"
                            : as_text            ? arguments->text
                                                 : json::Dump(*arguments);
  for (const ToolForm& form : told.forms) {
    if (form.name == name) return form.begin + given + form.end;
  }
  return R"({"name": )" + json::Quote(name) + R"(, "parameters": )" + given + "}";
}

}  // namespace

ToolInstruction InstructionOf(const RequestConstraints& asked, const OutputPlan& plan) {
  ToolInstruction out;
  out.text = out.with_schemas = kBegin;
  const std::string_view style = plan.format == nullptr ? "" : plan.format->style;
  for (const CallSyntax& call : plan.calls) {
    const ToolSpec& tool = asked.tools[call.tool];
    Value schema;
    if (tool.input.kind == ConstraintSpec::Kind::kJsonSchema) {
      if (Result<Value> read = json::Parse(tool.input.text); read.ok()) schema = *std::move(read);
    }
    std::string lines = FirstLine(tool.description);
    if (!lines.empty()) lines += "\n";
    const bool raw = call.body == CallSyntax::Body::kRaw && !call.raw_close.empty();
    const ToolForm form = {tool.name, SpelledOut(call.opens),
                           raw ? call.raw_close : SpelledOut(call.closes)};
    // Without a wrapper only the tool's name says whose arguments they are.
    if (form.begin.empty()) lines += tool.name + ":\n";
    lines += form.begin + ArgumentsOf(tool, call, style, schema) + form.end + "\n";
    out.text += lines + "\n";
    out.with_schemas += lines;
    const bool whole = tool.input.kind == ConstraintSpec::Kind::kJsonSchema && SaysMore(schema, 0);
    if (whole) out.with_schemas += "Schema: " + tool.input.text + "\n";
    out.with_schemas += "\n";
    out.forms.push_back(form);
  }
  for (std::string* text : {&out.text, &out.with_schemas}) {
    *text += kEnd;
    if (asked.choice.mode == ToolChoice::Mode::kAuto) *text += kMayAnswer;
  }
  return out;
}

void WriteCallsAsText(const ToolInstruction& told, Value& messages) {
  std::vector<Value> out;
  std::vector<std::pair<std::string, std::string>> names;  // of calls, by id
  bool results = false;                                    // the last message has results
  for (Value& message : messages.items) {
    const std::string role = MemberText(message, "role");
    Value* calls = MemberOf(message, "tool_calls");
    if (role == "assistant" && calls != nullptr && calls->type == json::Type::kArray) {
      std::string text;
      for (const Value& call : calls->items) {
        text += (text.empty() ? "" : "; ") + CallText(told, call);
        const Value* function = call.Find("function");
        names.emplace_back(MemberText(call, "id"),
                           function == nullptr ? "" : MemberText(*function, "name"));
      }
      std::erase_if(message.members,
                    [](const auto& member) { return member.first == "tool_calls"; });
      if (!text.empty()) Extend(message, text, false);
    }
    if (role != "tool") {
      out.push_back(std::move(message));
      results = false;
      continue;
    }
    std::string name = MemberText(message, "name");
    const std::string id = MemberText(message, "tool_call_id");
    for (const auto& [known, called] : names) {
      if (name.empty() && known == id) name = called;
    }
    const std::string text =
        "Result" + (name.empty() ? "" : " of " + name) + ":\n" + MemberText(message, "content");
    if (results) {
      Extend(out.back(), text, false);
    } else {
      out.push_back(MessageWith("user", text));
    }
    results = true;
  }
  messages.items = std::move(out);
}

void AddInstruction(const std::string& text, InstructionPlace place, Value& messages) {
  const char* role = place == InstructionPlace::kSystem ? "system" : "user";
  for (Value& message : messages.items) {
    if (MemberText(message, "role") != role) continue;
    return Extend(message, text, place == InstructionPlace::kUser);
  }
  messages.items.insert(messages.items.begin(), MessageWith(role, text));
}

}  // namespace pawl::server
