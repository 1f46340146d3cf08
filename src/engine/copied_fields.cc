// What is evidence for a copy was chosen on SmolLM2-135M and the shipped model, with texts whose
// values are copied and others whose values are not (docs/extraction.md).
#include "src/engine/copied_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/grammar_access.h"
#include "src/base/json.h"
#include "src/base/source_text.h"
#include "src/engine/copied_text.h"
#include "src/engine/spans.h"

namespace pawl {
namespace {

constexpr int kMostSchemaDepth = 32, kMostSchemaSteps = 10'000;

// By the names of TextPreference::by_field: whether a value was found that stands in its text, and
// one that does not.
struct Evidence {
  bool copied = false, free = false;
};
using EvidenceByField = std::map<std::string, Evidence, std::less<>>;

// Of a value that is another one's spelling ("5 March" for 2024-03-05) nothing follows for texts.
bool StandsThere(const json::Value& value, const std::string& text) {
  if (value.type != json::Type::kString) return true;
  std::string spaced;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!space) spaced += c;
    if (space && !spaced.ends_with(' ')) spaced += ' ';
  }
  return spaced.find(value.text) != std::string::npos;
}

// The depth of a record is bounded by that of JSON texts.
void AddEvidence(const json::Value& value, const std::string& pointer, const std::string& field,
                 const std::set<std::string>& found, const std::string& text,
                 EvidenceByField& out) {
  for (const json::Member& member : value.members) {
    AddEvidence(member.second, json::PointerJoin(pointer, member.first),
                json::PointerJoin(field, member.first), found, text, out);
  }
  for (size_t i = 0; i < value.items.size(); ++i) {
    AddEvidence(value.items[i], json::PointerJoin(pointer, std::to_string(i)), field + "/*", found,
                text, out);
  }
  if (value.type != json::Type::kString && value.type != json::Type::kNumber) return;
  Evidence& evidence = out[field];
  const bool stands = found.contains(pointer) && StandsThere(value, text);
  (stands ? evidence.copied : evidence.free) = true;
}

constexpr std::array<std::string_view, 9> kUnlikelyFormats = {
    "email", "idn-email", "uri", "iri", "hostname", "idn-hostname", "ipv4", "ipv6", "uuid"};

// Fields that are texts with a pattern, or with a format of these: where the text has a span that
// fits one, it is hardly there by chance.
void FindPatterns(const json::Value& root, const json::Value& schema, const std::string& field,
                  int depth, int& steps, std::vector<std::string>& out) {
  if (depth > kMostSchemaDepth || --steps < 0) return;
  const auto visit = [&](const json::Value& inner, const std::string& below) {
    FindPatterns(root, inner, below, depth + 1, steps, out);
  };
  const json::Value* const format = schema.Find("format");
  const bool unlikely = format != nullptr &&
                        std::ranges::find(kUnlikelyFormats, format->text) != kUnlikelyFormats.end();
  if (unlikely || schema.Find("pattern") != nullptr) out.push_back(field);
  if (const json::Value* const ref = schema.Find("$ref");
      ref != nullptr && ref->text.starts_with("#/")) {
    const json::Value* at = &root;
    for (const std::string& token : json::PointerTokens(ref->text.substr(1))) {
      if (at != nullptr) at = at->Find(token);
    }
    if (at != nullptr) visit(*at, field);
  }
  for (const char* const several : {"anyOf", "oneOf", "allOf"}) {
    if (const json::Value* const all = schema.Find(several)) {
      for (const json::Value& one : all->items) visit(one, field);
    }
  }
  if (const json::Value* const keys = schema.Find("properties")) {
    for (const json::Member& key : keys->members) {
      visit(key.second, json::PointerJoin(field, key.first));
    }
  }
  if (const json::Value* const items = schema.Find("items")) visit(*items, field + "/*");
}

}  // namespace

TextPreference PreferenceOf(const ExtractInput& input) {
  PreferenceNats unshown = kPreferText, shown = kPreferLikelyText;
  TextPreference out;
  if (input.prefer_text) {
    const auto nats = static_cast<float>(*input.prefer_text);
    if (nats == 0) return out;
    unshown = shown = {nats, std::max(nats, kPreferText.inside)};
  }
  out.nats = unshown;
  if (const Result<json::Value> schema = json::Parse(input.schema); schema.ok()) {
    std::vector<std::string> fields;
    int steps = kMostSchemaSteps;
    FindPatterns(*schema, *schema, "", 0, steps, fields);
    for (const std::string& field : fields) out.by_field[field] = shown;
  }
  EvidenceByField evidence;
  for (const ExtractExample& example : input.examples) {
    const Result<json::Value> record = json::Parse(example.record);
    if (!record.ok()) continue;
    std::set<std::string> found;
    for (Span& span : FindSpans(*record, example.text)) found.insert(std::move(span.pointer));
    AddEvidence(*record, "", "", found, example.text, evidence);
  }
  for (const auto& [field, seen] : evidence)
    out.by_field[field] = seen.free ? PreferenceNats() : shown;
  return out;
}

Status CheckPreferText(const ExtractInput& input) {
  if (!input.prefer_text) return {};
  // Written so that NaN fails.
  if (*input.prefer_text >= 0 && *input.prefer_text <= kMostPreferText) return {};
  std::array<char, 32> given{};
  const auto end = std::to_chars(given.begin(), given.end(), *input.prefer_text).ptr;
  return Error{ErrorCode::kInvalid,
               "must be a number from 0 (off) to 1000, not " + std::string(given.begin(), end),
               "prefer_text"};
}

std::shared_ptr<const Constraint> WithTextPreference(std::shared_ptr<const Constraint> constraint,
                                                     const Grammar& grammar, ExtractInput input,
                                                     const LoadedModel& model) {
  // Masks are filled in any order.
  if (model.model().filling()) return constraint;
  model.choices().Apply(input);
  TextPreference preference = PreferenceOf(input);
  if (!preference.any()) return constraint;
  const std::string text = WithCuts(input.text, {input.cut_begin, input.cut_end});
  preference.encode = model.encoder();
  preference.text = CopiedText(model.tokenizer(), text).text();
  const std::optional<Grammar> copied = GrammarAccess::CopiedFrom(grammar, preference.text);
  if (!copied) return constraint;
  return PreferText(std::move(constraint), *copied, std::move(preference));
}

}  // namespace pawl
