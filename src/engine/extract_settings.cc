// Each setting is asked for in turn in what was measured, in the model's pawl.json, and here. The
// files of measured choices: measured_settings.cc.
#include "src/engine/extract_settings.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "grammar/languages/option_fields.h"
#include "src/base/digest.h"
#include "src/base/json.h"
#include "src/base/names.h"
#include "src/engine/copied_fields.h"
#include "src/engine/schema_view.h"

namespace pawl {
namespace {

constexpr const char* kMeasuredSource = "measured choice";
constexpr const char* kOwnSource = "pawl.json";
constexpr const char* kNoSource = "default";

template <typename Choice>
void ReadChoice(const JsonReader& in, std::optional<Choice>& out) {
  if (!in.present()) return;
  const std::string name = in.String();
  out = OptionOf<Choice>(name);
  if (in.ok() && !out) in.Fail("must be one of " + NamesOf<Choice>());
}

std::vector<ExtractExample> ReadExampleList(const JsonReader& in) {
  std::vector<ExtractExample> out;
  for (const JsonReader one : in.Array().items()) {
    const JsonReader record = one.Object()["record"];
    if (!record.present()) record.Fail("is missing");
    const std::string text = one["text"].String();
    if (in.ok()) out.push_back({text, json::Dump(*record.value())});
  }
  return out;
}

std::string JsonOfExamples(const std::vector<ExtractExample>& examples) {
  std::string out;
  for (const ExtractExample& one : examples) {
    out += out.empty() ? "" : ",";
    out += "{\"text\":" + json::Quote(one.text) + ",\"record\":" + one.record + "}";
  }
  return "[" + out + "]";
}

std::string JsonOfSeparators(const std::string& item, const std::string& key) {
  return "[" + json::Quote(item) + "," + json::Quote(key) + "]";
}

std::string JsonOfNumber(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

// The setting with this name as JSON; empty: it is not set.
std::string ValueOf(const ExtractSettings& s, std::string_view name) {
  const auto quoted = [](const auto& choice) {
    return choice ? json::Quote(NameOf(*choice)) : std::string();
  };
  if (name == "schema_view") return s.schema_view ? json::Quote(NameOf(*s.schema_view)) : "";
  if (name == "whitespace") return quoted(s.whitespace);
  if (name == "separators") {
    return s.separators ? JsonOfSeparators((*s.separators)[0], (*s.separators)[1]) : "";
  }
  if (name == "keys") return quoted(s.keys);
  if (name == "nulls") return quoted(s.nulls);
  if (name == "instruction") return s.instruction ? json::Quote(*s.instruction) : "";
  if (name == "examples") return s.examples ? JsonOfExamples(*s.examples) : "";
  return s.prefer_text ? JsonOfNumber(*s.prefer_text) : "";
}

// What holds where no file says anything.
std::string DefaultOf(std::string_view name) {
  const JsonSchemaOptions options = ExtractSchemaOptions();
  if (name == "prefer_text") return json::Quote("auto");
  ExtractSettings standard;
  standard.schema_view = SchemaView::kAuto;
  standard.whitespace = options.whitespace;
  standard.separators = {options.item_separator, options.key_separator};
  standard.keys = options.keys;
  standard.nulls = options.nulls;
  standard.instruction = "";
  standard.examples.emplace();
  return ValueOf(standard, name);
}

}  // namespace

ExtractSettings ReadExtractSettings(const JsonReader& in) {
  ExtractSettings out;
  if (const JsonReader view = in["schema_view"]; view.present()) {
    out.schema_view = SchemaViewNamed(view.String());
    if (in.ok() && !out.schema_view) view.Fail(kSchemaViewNames);
  }
  ReadChoice(in["whitespace"], out.whitespace);
  if (const JsonReader separators = in["separators"].OptionalArray(); separators.present()) {
    if (separators.size() != 2) separators.Fail("must be two texts, of items and of keys");
    out.separators = {separators.Item(0).String(), separators.Item(1).String()};
  }
  ReadChoice(in["keys"], out.keys);
  ReadChoice(in["nulls"], out.nulls);
  if (const JsonReader text = in["instruction"]; text.present()) out.instruction = text.String();
  if (const JsonReader list = in["examples"]; list.present()) out.examples = ReadExampleList(list);
  if (double nats = 0; in["prefer_text"].Read(nats, 0, kMostPreferText)) out.prefer_text = nats;
  return out;
}

std::string JsonOf(const ExtractSettings& settings) {
  std::string out;
  for (const std::string_view name : kExtractSettingNames) {
    const std::string value = ValueOf(settings, name);
    if (!value.empty()) out += (out.empty() ? "" : ",") + json::Quote(name) + ":" + value;
  }
  return "{" + out + "}";
}

std::array<ExtractSettings, 2> ExtractChoices::For(std::string_view schema) const {
  std::array<ExtractSettings, 2> out = {measured, own};
  // Words and examples for one sort of records say nothing of another one.
  const bool words = measured.instruction || measured.examples;
  if (words && (schema.empty() || SchemaDigest(schema) != measured_schema)) {
    out[0].instruction.reset();
    out[0].examples.reset();
  }
  return out;
}

void ExtractChoices::Apply(ExtractInput& input) const {
  for (const ExtractSettings& from : For(input.schema)) {
    if (input.view == SchemaView::kDefault && from.schema_view) input.view = *from.schema_view;
    if (input.instruction.empty() && from.instruction) input.instruction = *from.instruction;
    if (input.examples.empty() && from.examples) input.examples = *from.examples;
    if (!input.prefer_text) input.prefer_text = from.prefer_text;
  }
}

void ExtractChoices::Apply(JsonSchemaOptions& options) const {
  for (const ExtractSettings* from : {&own, &measured}) {
    if (from->whitespace) options.whitespace = *from->whitespace;
    if (from->separators) {
      options.item_separator = (*from->separators)[0];
      options.key_separator = (*from->separators)[1];
    }
    if (from->keys) options.keys = *from->keys;
    if (from->nulls) options.nulls = *from->nulls;
  }
}

std::vector<ExtractDefault> ExtractChoices::List(std::string_view schema) const {
  const std::array<ExtractSettings, 2> settings = For(schema);
  std::vector<ExtractDefault> out;
  for (const std::string_view name : kExtractSettingNames) {
    ExtractDefault one{std::string(name), ValueOf(settings[0], name), kMeasuredSource};
    if (one.value.empty()) one = {one.name, ValueOf(settings[1], name), kOwnSource};
    if (one.value.empty()) one = {one.name, DefaultOf(name), kNoSource};
    out.push_back(std::move(one));
  }
  return out;
}

std::string SchemaDigest(std::string_view schema) {
  Digest digest(DigestKind::kSha256);
  digest.Add(schema);
  return digest.Hex().substr(0, kSettingsDigits);
}

}  // namespace pawl
