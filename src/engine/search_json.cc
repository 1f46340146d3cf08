// One reader for three doors, so that a name means the same in all of them. Ranges are checked
// where the search begins (decode/search/run.cc), which names the option.
#include "src/engine/search_json.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "src/base/json.h"
#include "src/decode/sampling/names.h"
#include "src/decode/search/strategy.h"

namespace pawl {
namespace {

constexpr size_t kMostTexts = 4096;
constexpr size_t kMostChecks = 64;
constexpr int kMostInt = std::numeric_limits<int>::max();
constexpr int64_t kMostLong = int64_t{1} << 53;

template <typename Choice>
void ReadChoice(const JsonReader& in, Choice& out) {
  std::string name;
  if (!in.Read(name)) return;
  if (const auto found = OptionOf<Choice>(name)) {
    out = *found;
  } else {
    in.Fail("must be one of " + NamesOf<Choice>());
  }
}

// true, false or "never", as transformers has it.
void ReadEarlyStopping(const JsonReader& in, EarlyStopping& out) {
  if (!in.present() || in.IsString()) return ReadChoice(in, out);
  out = in.Bool() ? EarlyStopping::kTrue : EarlyStopping::kFalse;
}

void ReadArguments(const JsonReader& in, SearchOptions& options) {
  if (in.OptionalObject().size() == 0) return;
  for (const auto& [name, value] : in.value()->members) {
    options.arguments.emplace_back(name, in[name].Number());
  }
}

// llama.cpp's order of stages as letters, "edskypmxt"; any other text as it is.
std::vector<std::string> FromLetters(const std::string& text) {
  static constexpr std::pair<char, const char*> kLetters[] = {
      {'e', "penalties"},   {'d', "dry"},    {'s', "top_n_sigma"}, {'k', "top_k"},
      {'y', "typical_p"},   {'p', "top_p"},  {'m', "min_p"},       {'x', "xtc"},
      {'t', "temperature"}, {'i', "infill"}, {'f', "tfs_z"}};
  std::vector<std::string> names;
  for (const char c : text) {
    const auto found = std::ranges::find(kLetters, c, &std::pair<char, const char*>::first);
    if (found == std::end(kLetters)) return {text};
    names.emplace_back(found->second);
  }
  return names;
}

// The error of what was read, or of a member that was not.
Status AllRead(const JsonReader& in) {
  if (!in.ok()) return in.error();
  const auto unread = in.Unread(1);
  if (unread.empty()) return {};
  return Error{ErrorCode::kInvalid, "is no option",
               json::PointerJoin(in.place(), unread.front()->first)};
}

template <typename Options>
Result<Options> ParseOptions(std::string_view text,
                             void (*read)(const JsonReader& in, Options& options),
                             CheckSpecs* checks = nullptr) {
  const Result<json::Value> value = json::Parse(text.empty() ? "{}" : text);
  if (!value.ok()) return value.error();
  const JsonReader in = JsonReader(*value).Object();
  Options options;
  read(in, options);
  if (checks != nullptr) ReadCheckSpecs(in, *checks);
  if (Status status = AllRead(in); !status.ok()) return status.error();
  return options;
}

}  // namespace

void ReadContrast(const JsonReader& in, SearchOptions& options) {
  if (!in.present() || !in.IsString()) {
    in.Read(options.contrast);
    return;
  }
  std::string text;
  if (!in.Read(text)) return;
  if (text != "auto") in.Fail("must be a number or \"auto\"");
  options.contrast_auto = true;
}

SearchOptions GreedyOrDrawn(const SamplingParams& sampling) {
  SearchOptions options;
  options.seed = sampling.seed;
  options.num_beams = 1;
  if (sampling.temperature == 0) return options;
  options.strategy = "cntp";
  options.arguments = {{"max_trials", 1}, {"temperature", double{sampling.temperature}}};
  return options;
}

void ReadSearchOptions(const JsonReader& in, SearchOptions& options) {
  in["strategy"].Read(options.strategy);
  in["n"].Read(options.n, 0, kMostInt);
  in["num_beams"].Read(options.num_beams, 0, kMostInt);
  in["length_penalty"].Read(options.length_penalty);
  ReadEarlyStopping(in["early_stopping"], options.early_stopping);
  in["num_beam_groups"].Read(options.num_beam_groups, 0, kMostInt);
  in["diversity_penalty"].Read(options.diversity_penalty);
  in["no_repeat_ngram_size"].Read(options.no_repeat_ngram_size, 0, kMostInt);
  in["merge_spellings"].Read(options.merge_spellings);
  in["skip_forced"].Read(options.skip_forced);
  in["max_tokens"].Read(options.max_tokens, 0, kMostInt);
  in["search_rows"].Read(options.max_rows, int64_t{0}, kMostLong);
  in["max_nodes"].Read(options.max_nodes, int64_t{0}, kMostLong);
  in["max_branches"].Read(options.max_branches, 0, kMostInt);
  int64_t seed = 0;
  if (in["seed"].Read(seed)) options.seed = static_cast<uint64_t>(seed);
  in["force_phrases"].ReadStrings(options.force_phrases, kMostTexts);
  in["force_ordered"].Read(options.force_ordered);
  ReadChoice(in["force_in"], options.force_in);
  for (const char* name : {"force_ordered", "force_in"}) {
    if (options.force_phrases.empty() && in[name].present()) in[name].Fail("needs force_phrases");
  }
  ReadArguments(in["search_arg"], options);
  ReadContrast(in["contrast"], options);
  std::string prompt;
  if (in["contrast_prompt"].Read(prompt)) {
    options.contrast_prompt = std::move(prompt);
  } else if (in["contrast"].present()) {
    in["contrast"].Fail("needs contrast_prompt");
  }
  const std::string unused = UnusedOption(
      options.strategy, [&](const std::string& name) { return in[name.c_str()].present(); });
  if (!unused.empty()) {
    in[unused.c_str()].Fail("is not an option of the strategy " + options.strategy);
  }
}

std::string SearchMemberOf(const std::string& place) {
  if (place.starts_with("checks/") || place == "critic" || place == "check_timeout") return place;
  if (place == "arguments") return "search_arg";
  if (place == "max_rows") return "search_rows";
  static constexpr const char* kMembers[] = {"strategy",
                                             "n",
                                             "num_beams",
                                             "length_penalty",
                                             "num_beam_groups",
                                             "diversity_penalty",
                                             "max_tokens",
                                             "max_nodes",
                                             "max_branches",
                                             "force_phrases",
                                             "contrast",
                                             "contrast_prompt",
                                             "no_repeat_ngram_size"};
  return std::ranges::find(kMembers, place) != std::end(kMembers) ? place : "";
}

void ReadCheckSpecs(const JsonReader& in, CheckSpecs& specs) {
  in["checks"].ReadStrings(specs.checks, kMostChecks);
  in["critic"].Read(specs.critic);
  in["check_timeout"].Read(specs.timeout, 0.001, 86400.0);
}

void ReadSamplerOptions(const JsonReader& in, SamplerOptions& options) {
  ReadChoice(in["name"], options.sampler);
  in["n"].Read(options.n, 0, kMostInt);
  in["particles"].Read(options.particles, 0, kMostInt);
  in["temperature"].Read(options.temperature);
  in["max_tokens"].Read(options.max_tokens, 0, kMostInt);
  ReadChoice(in["estimator"], options.estimator);
  ReadChoice(in["resampling"], options.resampling);
  in["max_rejects"].Read(options.max_rejects, 0, kMostInt);
  in["accepts"].Read(options.accepts, 0, kMostInt);
  in["ess_threshold"].Read(options.ess_threshold);
  in["attempts"].Read(options.attempts, 0, kMostInt);
  in["lookahead"].Read(options.lookahead, 0, kMostInt);
  in["batch"].Read(options.batch, 0, kMostInt);
  in["seconds"].Read(options.seconds);
  // As the command calls it.
  if (in["sampler_seconds"].Read(options.seconds) && in["seconds"].present()) {
    in["sampler_seconds"].Fail("cannot be used with seconds");
  }
  int64_t seed = 0;
  if (in["seed"].Read(seed)) options.seed = static_cast<uint64_t>(seed);
}

void ReadSamplerStages(const JsonReader& in, SamplerStages& s) {
  in["typical_p"].Read(s.typical_p);
  in["top_n_sigma"].Read(s.top_n_sigma);
  in["xtc_probability"].Read(s.xtc_probability);
  in["xtc_threshold"].Read(s.xtc_threshold);
  in["epsilon_cutoff"].Read(s.epsilon_cutoff);
  in["eta_cutoff"].Read(s.eta_cutoff);
  in["dry_multiplier"].Read(s.dry_multiplier);
  in["dry_base"].Read(s.dry_base);
  in["dry_allowed_length"].Read(s.dry_allowed_length, 0, kMostInt);
  in["dry_penalty_last_n"].Read(s.dry_penalty_last_n, -1, kMostInt);
  in["dry_sequence_breakers"].ReadStrings(s.dry_sequence_breakers, kMostTexts);
  in["mirostat"].Read(s.mirostat, 0, 2);
  in["mirostat_tau"].Read(s.mirostat_tau);
  in["mirostat_eta"].Read(s.mirostat_eta);
  in["dynatemp_range"].Read(s.dynatemp_range);
  in["dynatemp_exponent"].Read(s.dynatemp_exponent);
  in["temperature_last"].Read(s.temperature_last);
  in["temperature_tokens"].Read(s.temperature_tokens, 1, kMostInt);
  in["momentum_alpha"].Read(s.momentum_alpha);
  in["momentum_k"].Read(s.momentum_k, 1, kMostInt);
  std::vector<std::string> names;
  if (!in["samplers"].ReadStrings(names, kMostTexts) || names.empty()) return;
  if (in["samplers"].IsString()) names = FromLetters(names[0]);
  s.order.clear();
  for (const std::string& name : names) {
    // Stages of llama.cpp that change no output here.
    if (name == "infill" || name == "tfs_z" || name == "adaptive_p") continue;
    s.order += (s.order.empty() ? "" : ",") + name;
  }
}

void ReadDiffusionOptions(const JsonReader& in, DiffusionOptions& options) {
  const auto number = [&](const char* name, std::optional<double>& out) {
    if (double value = 0; in[name].Read(value)) out = value;
  };
  const auto count = [&](const char* name, std::optional<int>& out) {
    if (int value = 0; in[name].Read(value, 1, kMostInt)) out = value;
  };
  in["schedule"].Read(options.schedule);
  number("threshold", options.threshold);
  number("factor", options.factor);
  count("steps", options.steps);
  count("block_length", options.block_length);
  in["remasking"].Read(options.remasking);
  in["alg"].Read(options.alg);
  number("alg_temp", options.alg_temp);
  number("eps", options.eps);
  number("cfg_scale", options.cfg_scale);
  in["cache"].Read(options.cache);
  count("kv_refresh", options.kv_refresh);
  in["prefix"].Read(options.prefix);
  in["gaps"].ReadStrings(options.gaps, kMostTexts);
  count("gap_tokens", options.gap_tokens);
}

void ReadClassifyOptions(const JsonReader& in, ClassifyOptions& options) {
  in["choices"].ReadStrings(options.choices, kMostTexts);
  in["exact_missing"].Read(options.exact_missing);
  in["exact_rows"].Read(options.exact_rows, int64_t{0}, kMostLong);
  in["temperature"].Read(options.temperature);
}

Result<SearchOptions> ParseSearchOptions(std::string_view text, CheckSpecs* checks) {
  return ParseOptions<SearchOptions>(text, ReadSearchOptions, checks);
}

Result<SamplerStages> ParseSamplerStages(std::string_view text) {
  return ParseOptions<SamplerStages>(text, ReadSamplerStages);
}

Result<ClassifyOptions> ParseClassifyOptions(std::string_view text) {
  return ParseOptions<ClassifyOptions>(text, ReadClassifyOptions);
}

Result<DiffusionOptions> ParseDiffusionOptions(std::string_view text) {
  return ParseOptions<DiffusionOptions>(text, ReadDiffusionOptions);
}

}  // namespace pawl
