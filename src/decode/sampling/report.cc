// Outputs as JSON: the lines of `pawl generate --json-lines`, and the reports that C and Python
// hand out.
#include <charconv>
#include <cmath>
#include <string>

#include "pawl/sampling.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/decode/sampling/names.h"

namespace pawl {
namespace {

// A number of JSON: no infinities, and the shortest digits that give it back.
std::string Number(double value) {
  if (std::isnan(value) || value < kZeroWeight) value = kZeroWeight;
  if (value > -kZeroWeight) value = -kZeroWeight;
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return {digits, end};
}

std::string ShortNumber(double value) {
  char digits[40];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 6).ptr;
  return {digits, end};
}

std::string QuoteLossy(std::string_view text) {
  if (FindInvalidUtf8(text) == std::string_view::npos) return json::Quote(text);
  return json::Quote(EncodeCodepoints(DecodeCodepoints(text)));
}

std::string Truth(bool value) { return value ? "true" : "false"; }

}  // namespace

std::string ReportJson(const SamplerReport& r, std::optional<Fidelity> asked) {
  std::string out =
      std::string("{\"sampler\":\"") + NameOf(r.sampler) + "\",\"valid\":" + Truth(r.valid) +
      ",\"at_budget\":" + Truth(r.at_budget) + ",\"attempts\":" + std::to_string(r.attempts) +
      ",\"evaluations\":" + std::to_string(r.evaluations) +
      ",\"draws\":" + std::to_string(r.draws) + ",\"model_rows\":" + std::to_string(r.model_rows) +
      ",\"mask_surprise\":" + Number(r.mask_surprise) + ",\"removed\":[";
  for (size_t i = 0; i < r.removed.size(); ++i) {
    out += (i > 0 ? "," : "") + ShortNumber(r.removed[i]);
  }
  out += "]";
  if (r.sampler == SamplerKind::kSmc) out += ",\"log_evidence\":" + Number(r.log_evidence);
  if (r.sampler == SamplerKind::kAsap || r.sampler == SamplerKind::kArs ||
      r.sampler == SamplerKind::kCars) {
    out += ",\"theta\":" + Number(r.theta) + ",\"found\":" + Number(r.found);
  }
  if (r.distance_at_most >= 0) out += ",\"distance_at_most\":" + Number(r.distance_at_most);
  if (asked.has_value()) {
    const Fidelity reached = r.sampler == SamplerKind::kCars   ? Fidelity::kExact
                             : r.sampler == SamplerKind::kAsap ? Fidelity::kAligned
                                                               : Fidelity::kFast;
    out += std::string(",\"fidelity\":{\"asked\":\"") + NameOf(*asked) + "\",\"reached\":\"" +
           (r.valid ? NameOf(reached) : "none") + "\"}";
  }
  return out + "}";
}

std::string OutputJson(const WeightedOutput& output, std::optional<Fidelity> asked) {
  std::string line = "{\"text\":" + QuoteLossy(output.text) + ",\"tokens\":[";
  for (size_t i = 0; i < output.tokens.size(); ++i) {
    line += (i > 0 ? "," : "") + std::to_string(output.tokens[i]);
  }
  return line + "],\"log_weight\":" + Number(output.log_weight) +
         ",\"log_probability\":" + Number(output.log_probability) +
         ",\"report\":" + ReportJson(output.report, asked) + "}";
}

}  // namespace pawl
