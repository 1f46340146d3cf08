// A constraint of any kind becomes a format of structural tags, so that it can stand behind
// thoughts and next to calls of tools.
#include "src/engine/output_constraint.h"

#include <algorithm>
#include <string_view>

#include "src/base/json_reader.h"

namespace pawl {
namespace {

std::string FormatWith(std::string_view type, std::string_view key, const std::string& value) {
  std::string out;
  out.reserve(value.size() + type.size() + key.size() + 16);
  out += "{\"type\":\"";
  out += type;
  out += "\",\"";
  out += key;
  out += "\":";
  out += value;
  return out += '}';
}

// The older form of a structural tag as a format.
Result<std::string> FormatOfOldTag(const JsonReader& tag) {
  const JsonReader structures = tag["structures"], triggers = tag["triggers"];
  if (!structures.IsArray() || triggers.value() == nullptr) {
    tag.Fail(R"(must have "format", or "structures" and "triggers")");
  }
  std::string tags;
  for (const JsonReader one : structures.items()) {
    const json::Value *begin = one["begin"].value(), *schema = one["schema"].value(),
                      *end = one["end"].value();
    if (begin == nullptr || schema == nullptr || end == nullptr) {
      one.Fail(R"(must have "begin", "schema" and "end")");
      break;
    }
    tags += (tags.empty() ? "" : ",") + FormatWith("tag", "begin", json::Dump(*begin));
    tags.pop_back();
    tags += ",\"content\":" + FormatWith("json_schema", "json_schema", json::Dump(*schema)) +
            ",\"end\":" + json::Dump(*end) + "}";
  }
  if (!tag.ok()) return tag.error();
  return "{\"type\":\"triggered_tags\",\"triggers\":" + json::Dump(*triggers.value()) +
         ",\"tags\":[" + tags + "]}";
}

}  // namespace

JsonSchemaOptions LayoutSpec::ToOptions() const {
  JsonSchemaOptions options;
  options.whitespace = whitespace;
  if (whitespace == JsonSchemaOptions::Whitespace::kBounded) options.max_whitespace = 8;
  options.item_separator = item_separator;
  options.key_separator = key_separator;
  options.additional_properties = additional_properties;
  options.open_if_unsatisfiable = !additional_properties && !asked_additional_properties;
  options.keys = keys;
  options.nulls = nulls;
  options.max_string = std::max(max_string, 0);
  options.source = source;
  options.verbatim = verbatim;
  options.bind_source = bind_source;
  return options;
}

void LayoutSpec::FillIn(const JsonSchemaOptions& defaults) {
  if (!asked_whitespace) {
    whitespace = defaults.whitespace;
    item_separator = defaults.item_separator;
    key_separator = defaults.key_separator;
  }
  if (!asked_keys) keys = defaults.keys;
  if (!asked_nulls) nulls = defaults.nulls;
}

Result<std::string> ConstraintSpec::AsFormat() const {
  switch (kind) {
    case ConstraintSpec::Kind::kNone:
      return std::string(R"({"type":"any_text"})");
    case ConstraintSpec::Kind::kJsonSchema:
      return FormatWith("json_schema", "json_schema", text);
    case ConstraintSpec::Kind::kRegex:
      return FormatWith("regex", "pattern", json::Quote(text));
    case ConstraintSpec::Kind::kChoice: {
      std::string list;
      for (const std::string& choice : choices) {
        list +=
            (list.empty() ? "" : ",") + FormatWith("const_string", "value", json::Quote(choice));
      }
      return FormatWith("or", "elements", "[" + list + "]");
    }
    case ConstraintSpec::Kind::kGrammar: {
      const char* syntax = language == GrammarLanguage::kLark   ? "lark"
                           : language == GrammarLanguage::kGbnf ? "gbnf"
                                                                : "ebnf";
      return "{\"type\":\"grammar\",\"grammar\":" + json::Quote(text) + ",\"syntax\":\"" + syntax +
             "\"}";
    }
    case ConstraintSpec::Kind::kStructuralTag:
      break;
  }
  const Result<json::Value> tag = json::Parse(text);
  if (!tag.ok()) return tag.error();
  if (const json::Value* format = tag->Find("format")) return json::Dump(*format);
  return FormatOfOldTag(JsonReader(*tag, pointer));
}

ConstraintSpec ToolSpec::Arguments() const {
  ConstraintSpec out = input;
  if (takes_nothing) out.text.insert(1, R"("additionalProperties":false,)");
  return out;
}

json::Value ToolSpec::Declared() const {
  std::string parameters = input.text;
  if (kind == ToolSpec::Kind::kCustom) {
    parameters =
        R"({"type":"object","properties":{"input":{"type":"string"}},"required":["input"]})";
  }
  const Result<json::Value> declared = json::Parse(
      R"({"type":"function","function":{"name":)" + json::Quote(name) + R"(,"description":)" +
      json::Quote(description) + R"(,"parameters":)" + parameters + "}}");
  return declared.ok() ? *declared : json::Value();
}

}  // namespace pawl
