// Results of searches as JSON: what the command prints, and what C, Python and HTTP hand out.
#include <charconv>
#include <cmath>
#include <string>

#include "pawl/sampling.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

// The shortest digits that give it back; no infinities.
std::string SearchNumber(double value) {
  if (std::isnan(value) || value < kZeroWeight) value = kZeroWeight;
  if (value > -kZeroWeight) value = -kZeroWeight;
  char digits[40];
  return {static_cast<char*>(digits), std::to_chars(digits, digits + sizeof digits, value).ptr};
}

std::string QuotedText(std::string_view text) {
  if (FindInvalidUtf8(text) == std::string_view::npos) return json::Quote(text);
  return json::Quote(EncodeCodepoints(DecodeCodepoints(text)));
}

}  // namespace

std::string SearchJson(const SearchResult& result) {
  std::string out = "{\"outputs\":[";
  for (const SearchOutput& one : result.outputs) {
    if (out.back() != '[') out += ",";
    out += "{\"text\":" + QuotedText(one.text) + ",\"tokens\":[";
    for (size_t i = 0; i < one.tokens.size(); ++i) {
      out += (i > 0 ? "," : "") + std::to_string(one.tokens[i]);
    }
    out += "],\"score\":" + SearchNumber(one.score) + ",\"log_probability\":" +
           (std::isnan(one.log_probability) ? "null" : SearchNumber(one.log_probability)) +
           ",\"ended\":" + (one.ended ? "true" : "false") +
           ",\"closed\":" + (one.closed ? "true" : "false") + ",\"missing_phrases\":[";
    for (size_t i = 0; i < one.missing_phrases.size(); ++i) {
      out += (i > 0 ? "," : "") + QuotedText(one.missing_phrases[i]);
    }
    out += "]}";
  }
  out += "],\"at_limit\":" + (result.at_limit.empty() ? "null" : json::Quote(result.at_limit));
  return out + ",\"rows\":" + std::to_string(result.model_rows) +
         ",\"calls\":" + std::to_string(result.model_calls) +
         ",\"nodes\":" + std::to_string(result.nodes) +
         (result.paths > 0 ? ",\"paths\":" + SearchNumber(result.paths) : "") +
         (result.steps > 0 ? ",\"steps\":" + std::to_string(result.steps) +
                                 ",\"pauses\":" + std::to_string(result.pauses)
                           : "") +
         "}";
}

std::string ClassifyJson(const ClassifyResult& result) {
  std::string out = "{\"choices\":[";
  for (const ChoiceProbability& one : result.choices) {
    // Nothing of it was followed to its end, or the model never writes it.
    const bool none = one.log_probability <= kZeroWeight;
    const bool unknown = none && result.missing > 0;
    if (out.back() != '[') out += ",";
    out += "{\"text\":" + QuotedText(one.text) +
           ",\"probability\":" + (unknown ? "null" : SearchNumber(one.probability)) +
           ",\"log_probability\":" + (none ? "null" : SearchNumber(one.log_probability)) + "}";
  }
  return out + "],\"valid\":" + SearchNumber(result.valid) +
         ",\"missing\":" + SearchNumber(result.missing) +
         ",\"at_limit\":" + (result.at_limit ? "\"rows\"" : "null") +
         ",\"rows\":" + std::to_string(result.rows) + ",\"calls\":" + std::to_string(result.calls) +
         "}";
}

}  // namespace pawl
