// The options of samplers, and a run of one: a line for each output.
#include "src/cli/sampler_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <span>
#include <utility>

#include "pawl/sampling.h"
#include "src/base/file.h"
#include "src/cli/command.h"
#include "src/cli/given_options.h"
#include "src/cli/progress.h"
#include "src/decode/sampling/aligned.h"
#include "src/decode/sampling/check_spec.h"
#include "src/decode/sampling/names.h"
#include "src/engine/engine_parts.h"

#ifdef PAWL_HAVE_MONITORS
#include "src/completion/code_check.h"
#endif

namespace pawl::cli {
namespace {

constexpr size_t kMostTrieBytes = size_t{1} << 30;

// For --help and the parser.
template <typename Choice>
std::vector<std::string> Names() {
  const std::span<const char* const> names = OptionNames(Choice());
  return {names.begin(), names.end()};
}

Error Invalid(std::string message, std::string place) {
  return Error{ErrorCode::kInvalid, std::move(message), std::move(place)};
}

// All that a trie is of. Files count with what is in them.
Result<std::string> TrieKey(const SamplerFlags& flags, const SamplerFlags::Scene& scene,
                            const SamplerOptions& options) {
  const GrammarFlags& g = scene.grammar_flags;
  std::string key;
  const auto add = [&](std::string_view text) {
    key += fmt::format("{}:", text.size());
    key += text;
  };
  add(EngineAccess::ModelOf(scene.engine).path());
  add(scene.engine.info().weights);
  const LoadedModel& loaded = EngineAccess::ModelOf(scene.engine);
  if (const uint64_t adapter = loaded.AdapterKey(loaded.own_adapter()); adapter != 0) {
    add(std::to_string(adapter));
  }
  add(fmt::format("{} {} {}", options.temperature, options.max_tokens,
                  options.sampler == SamplerKind::kArs));
  for (const TokenId t : scene.request.tokens) add(std::to_string(t));
  add(g.regex.value_or(""));
  for (const auto* list : {&g.choices, &g.combine.gaps, &g.combine.suffixes, &g.combine.words,
                           &g.layout.separators, &flags.checks}) {
    add(std::to_string(list->size()));
    for (const std::string& text : *list) add(text);
  }
  for (const std::string& text :
       {g.grammar_language, g.root, g.ref_dir, g.ref_base, g.profile, g.layout.whitespace,
        g.layout.order, g.layout.spelling, g.layout.additional_properties,
        std::string(g.layout.ascii ? "ascii" : ""), g.combine.prefix.value_or("")}) {
    add(text);
  }
  for (const std::string& file : {g.schema_file, g.grammar_file, g.structural_tag_file,
                                  g.substring_file, g.combine.prefix_file, g.combine.suffix_file}) {
    if (file.empty()) continue;
    if (file == "-")
      return Invalid("cannot be used with a constraint from standard input", "--trie");
    Result<std::string> content = ReadInput(file);
    if (!content.ok()) return content.error();
    add(*content);
  }
  return key;
}

Status WriteFile(const std::string& path, const std::string& bytes) {
  const std::string partial = path + ".partial";
  std::FILE* file = std::fopen(partial.c_str(), "wb");
  if (file == nullptr) return Error{ErrorCode::kIo, "cannot be written", path};
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !written || std::rename(partial.c_str(), path.c_str()) != 0) {
    std::remove(partial.c_str());
    return Error{ErrorCode::kIo, "cannot be written", path};
  }
  return {};
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// The place of an error of RunSampler as an option.
Error AtSamplerOption(Error error, const std::string& grammar_source) {
  for (char& c : error.place) {
    if (c == '_') c = '-';
  }
  static constexpr std::array kOptions = {"n",        "particles",     "temperature", "max-tokens",
                                          "attempts", "ess-threshold", "lookahead",   "batch",
                                          "critic",   "max-rejects",   "proposal"};
  if (error.place == "prompt") {
    error.place = "the prompt";
  } else if (error.place == "sampler") {
    error.place = "--sampler";
  } else if (error.place == "seconds") {
    error.place = "--sampler-seconds";
  } else if (error.place == "constraint") {
    error.place = grammar_source;
  } else if (std::find(kOptions.begin(), kOptions.end(), error.place) != kOptions.end()) {
    error.place = "--" + error.place;
  }
  return error;
}

}  // namespace

Result<std::shared_ptr<const Check>> MakeCheckOption(
    const std::string& spec, const std::shared_ptr<const Vocabulary>& vocabulary,
    const CheckSpecOptions& options) {
  const std::string place = "--check " + spec;
  static constexpr std::array kKinds = {"regex",  "schema", "grammar", "style", "program", "tests",
#ifdef PAWL_HAVE_MONITORS
                                        "syntax", "monitor"
#endif
  };
  const std::string kind = spec.substr(0, spec.find_first_of(":@"));
  if (spec.find(':') == std::string::npos || std::ranges::find(kKinds, kind) == kKinds.end()) {
    return Invalid(fmt::format("must be KIND:VALUE or KIND@GRANULARITY:VALUE, with one of the "
                               "kinds {}",
                               fmt::join(kKinds, ", ")),
                   place);
  }
#ifdef PAWL_HAVE_MONITORS
  OfferCodeChecks(completion::MakeCodeCheck);
#endif
  auto check = MakeCheckOf(spec, vocabulary, options);
  if (check.ok()) return check;
  Error error = check.error();
  error.place = "--check " + error.place;
  return error;
}

Result<std::vector<TokenId>> ParseTokenIds(std::string_view text, int size,
                                           const std::string& place) {
  std::vector<TokenId> ids;
  constexpr std::string_view kBetween = " ,\n\r\t";
  size_t first = text.find_first_not_of(kBetween);
  const size_t last = text.find_last_not_of(kBetween);
  if (first != std::string_view::npos && text[first] == '[') {
    if (text[last] != ']') return Invalid("begins with '[' and does not end with ']'", place);
    text = text.substr(0, last);
    ++first;
  }
  for (size_t i = std::min(first, text.size()); i < text.size();) {
    if (kBetween.find(text[i]) != std::string_view::npos) {
      ++i;
      continue;
    }
    TokenId id = 0;
    const char* begin = text.data() + i;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), id);
    const std::string where = fmt::format("{}: byte {}", place, i);
    if (error != std::errc() || end == begin) return Invalid("not a token id", where);
    if (id < 0 || id >= size) {
      return Invalid(fmt::format("token {} is not among the model's {} tokens", id, size), where);
    }
    ids.push_back(id);
    i += static_cast<size_t>(end - begin);
  }
  return ids;
}

void SamplerFlags::AddTo(CLI::App* command) {
  command_ = command;
  const char* group = "Sampling that keeps the model's distribution";
  const auto named = [&](const char* name, std::string& value, std::vector<std::string> of,
                         const char* help) {
    command->add_option(name, value, help)
        ->check(CLI::IsMember(std::move(of)))
        ->type_name("NAME")
        ->group(group);
  };
  const auto count = [&](const char* name, int& value, uint64_t least, const char* help) {
    CountOption(command, name, value, least, kMostCount, help)->group(group);
  };
  named("--sampler", sampler, Names<SamplerKind>(),
        "Weighted outputs (awrs, smc, asap; gcd, fvo), or exact ones (cars; rs, ars)");
  named("--fidelity", fidelity, Names<Fidelity>(),
        "How near the model's law: picks the sampler, and the report says what was reached");
  count("--n", n, 1, "With --sampler or --search: outputs, one a line");
  count("--particles", particles, 1, "Of smc: the size of a population");
  command
      ->add_option("--check", checks,
                   "KIND:VALUE or KIND@GRANULARITY:VALUE, where KIND is regex, schema, grammar, "
                   "style, syntax, monitor, program or tests, GRANULARITY byte, token, line or "
                   "complete; may be "
                   "given several times")
      ->type_name("SPEC")
      ->group(group);
  RealOption(command, "--check-timeout", check_timeout, 0.001, 86400, "S",
             "Seconds for one answer of a program")
      ->group(group);
  TextOption(command, "--critic", critic, "COMMAND",
             "A program that scores outputs and what they begin with (awrs, smc, searches), or "
             "tests:COMMAND")
      ->group(group);
  named("--estimator", estimator, Names<Estimator>(), "How weights under checks are found");
  count("--max-rejects", max_rejects, 0, "Of a step under checks; 0: no limit");
  named("--resampling", resampling, Names<Resampling>(), "Of smc");
  RealOption(command, "--ess-threshold", ess_threshold, 0, 2, "T",
             "Of smc: resample below this share of the particles' effective number")
      ->group(group);
  count("--attempts", attempts, 0,
        "For each output of asap, rs, ars, cars; 0: 1 of asap; of the others 10000, or as many as "
        "fit "
        "into 16384 rows");
  count("--lookahead", lookahead, 0, "Of fvo: tokens that it looks behind");
  count("--batch", batch, 1, "Outputs or particles that run at a time");
  RealOption(command, "--sampler-seconds", seconds, 0, 1e9, "X",
             "End after so many seconds with the outputs that are complete; 0: no limit")
      ->group(group);
  TextOption(command, "--proposal", proposal, "MODEL",
             "Of awrs and smc: a model with the same vocabulary that proposes tokens")
      ->group(group);
  TextOption(command, "--trie", trie_file, "FILE",
             "Of asap, ars, cars: what was learnt, read and written; made where there is none")
      ->group(group);
  command
      ->add_flag("--json-lines", json_lines,
                 "An object a line: text, tokens, log_weight, log_probability, report")
      ->group(group);
}

Status SamplerFlags::Check(const SamplingFlags& sampling, bool search) const {
  if (!any()) {
    for (const char* name : {"--n", "--check", "--check-timeout", "--critic"}) {
      if (!search && command_->count(name) > 0)
        return Invalid("needs --sampler, --fidelity or --search", name);
    }
    for (const char* name : {"--particles", "--estimator", "--max-rejects", "--resampling",
                             "--ess-threshold", "--attempts", "--lookahead", "--batch",
                             "--sampler-seconds", "--proposal", "--trie", "--json-lines"}) {
      if (command_->count(name) > 0) return Invalid("needs --sampler or --fidelity", name);
    }
    return {};
  }
  if (!sampler.empty() && !fidelity.empty()) {
    return Invalid("picks the sampler, so it cannot be given with --sampler", "--fidelity");
  }
  const SamplingParams defaults;
  const SamplingParams& p = sampling.params;
  const auto bends = [this](const std::string& name) {
    return Invalid(fmt::format("changes the model's distribution, which {} keeps", own()), name);
  };
  if (p.top_k != defaults.top_k) return bends("--top-k");
  if (p.top_p != defaults.top_p) return bends("--top-p");
  if (p.min_p != defaults.min_p) return bends("--min-p");
  if (p.repetition_penalty != 1) return bends("--repetition-penalty");
  if (p.presence_penalty != 0) return bends("--presence-penalty");
  if (p.frequency_penalty != 0) return bends("--frequency-penalty");
  if (p.draft_lanes != 1) return Invalid("is for outputs without --sampler", "--draft-lanes");
  if (!(p.stages == SamplerStages())) return bends(StageGiven(*command_));
  const bool learns = sampler == "asap" || sampler == "ars" || sampler == "cars" ||
                      fidelity == "aligned" || fidelity == "exact";
  if (!trie_file.empty() && !learns) return Invalid("is for asap, ars and cars", "--trie");
  return {};
}

Status SamplerFlags::MakeChecks(const Engine& engine,
                                std::vector<std::shared_ptr<const pawl::Check>>& made_checks,
                                std::shared_ptr<const Critic>& made_critic) const {
  const CheckSpecOptions programs = {
      .time_limit = std::chrono::milliseconds(static_cast<int64_t>(check_timeout * 1000)),
      .processes = std::max(1, engine.info().threads)};
  for (const std::string& spec : checks) {
    auto check = MakeCheckOption(spec, engine.vocabulary(), programs);
    if (!check.ok()) return check.error();
    made_checks.push_back(*std::move(check));
  }
  if (!critic.empty()) {
    auto made = MakeCriticOf(critic, programs);
    if (!made.ok()) return InFile("--critic", made.error());
    made_critic = *std::move(made);
  }
  return {};
}

Result<SamplerOptions> SamplerFlags::Options(const Scene& scene) const {
  SamplerOptions options;
  if (!fidelity.empty()) {
    options.fidelity = *OptionOf<Fidelity>(fidelity);
  } else {
    options.sampler = *OptionOf<SamplerKind>(sampler);
  }
  options.n = n;
  options.particles = particles;
  // As it was written: the other samplers have it as a float, which would make another law.
  const CLI::Option* temperature = command_->get_option("--temperature");
  options.temperature = temperature->count() > 0 ? temperature->as<double>() : 1;
  options.seed = scene.sampling.params.seed;
  options.max_tokens = scene.sampling.max_tokens;
  options.estimator = *OptionOf<Estimator>(estimator);
  options.resampling = *OptionOf<Resampling>(resampling);
  options.max_rejects = max_rejects;
  options.ess_threshold = ess_threshold;
  options.attempts = attempts;
  options.lookahead = lookahead;
  options.batch = batch;
  options.seconds = seconds;
  if (Status status = MakeChecks(scene.engine, options.checks, options.critic); !status.ok()) {
    return status.error();
  }
  return options;
}

// What outputs came to that are not valid, and what helps. `at_budget`: some are as long as
// allowed.
std::string SamplerFlags::WhyInvalid(bool at_budget) const {
  std::string names;
  for (const std::string& spec : checks) names += (names.empty() ? "--check " : ", ") + spec;
  const std::string limit = at_budget ? "--max-tokens" : "";
  const std::string both = names + (names.empty() || limit.empty() ? "" : " or ") + limit;
  std::string why = both.empty() ? "" : fmt::format(": {} refused them", both);
  const bool exact = sampler == "cars" || sampler == "ars" || sampler == "rs";
  if (exact && attempts == 0) {
    why += fmt::format(
        "; an output ends after {} rows of the model or {} attempts, or where nothing is left to "
        "try, and --attempts N sets another limit",
        kDefaultExactRows, kDefaultExactAttempts);
  }
  if (names.empty()) return why;
  if (sampler == "rs" || sampler == "ars") why += "; --sampler cars needs fewer rows";
  if (!sampler.empty() && !exact) {
    why +=
        fmt::format("; {} does not go back behind a token, --sampler cars begins again", sampler);
  }
  return why;
}

int SamplerFlags::Run(const std::string& command, const Scene& scene) const {
  Result<SamplerOptions> options = Options(scene);
  if (!options.ok()) return Fail(command, options.error());
  std::unique_ptr<Model> draft;
  if (!proposal.empty()) {
    const Result<std::string> path = FindModelFolder(proposal);
    if (!path.ok()) return Fail(command, path.error());
    Result<std::unique_ptr<Model>> loaded = LoadWeightsOnly(command, *path, scene.threads);
    if (!loaded.ok()) return Fail(command, loaded.error());
    draft = *std::move(loaded);
  }
  if (!trie_file.empty()) {
    // Before the work whose result it is to hold.
    std::error_code ignored;
    if (Exists(trie_file) && !std::filesystem::is_regular_file(trie_file, ignored)) {
      return Fail(command, Error{ErrorCode::kIo, "not a regular file", trie_file});
    }
    if (Status status = CheckWritable(trie_file); !status.ok())
      return Fail(command, status.error());
  }
  PrefixTrie trie({.max_bytes = kMostTrieBytes});
  std::string key;
  if (!trie_file.empty()) {
    Result<std::string> made = TrieKey(*this, scene, *options);
    if (!made.ok()) return Fail(command, made.error());
    key = *std::move(made);
    if (Exists(trie_file)) {
      Result<std::string> bytes = ReadRegularFile(trie_file, kMostTrieBytes);
      if (!bytes.ok()) return Fail(command, bytes.error());
      Result<PrefixTrie> loaded = PrefixTrie::Load(*bytes, key, {.max_bytes = kMostTrieBytes});
      if (!loaded.ok()) return Fail(command, InFile(trie_file, loaded.error()));
      trie = *std::move(loaded);
    }
  }
  int lines = 0, valid = 0;
  int64_t asked = 0;
  bool at_budget = false;
  const auto text_of = [&] {
    return fmt::format("sampling: {} of {} outputs, {} valid", lines, options->n, valid);
  };
  std::optional<Progress> progress;
  progress.emplace(command, text_of());
  options->keep_outputs = false;
  options->on_output = [&](const WeightedOutput& out) {
    ++lines;
    valid += out.report.valid ? 1 : 0;
    asked += out.report.evaluations;
    at_budget = at_budget || (!out.report.valid && out.report.at_budget);
    progress->Set(text_of());
    if (json_lines) {
      Print(OutputJson(out, options->fidelity) + "\n");
    } else if (out.report.valid) {
      Print(out.text + "\n");
    }
    return FlushOutput().ok();
  };
  const Result<SamplerResult> result = EngineAccess::Sample(
      scene.engine, scene.request, *options, draft.get(), trie_file.empty() ? nullptr : &trie);
  progress.reset();
  if (!result.ok()) {
    return Fail(command, AtSamplerOption(result.error(), scene.grammar_flags.source()));
  }
  if (!trie_file.empty()) {
    if (Status status = WriteFile(trie_file, trie.Save(key)); !status.ok()) {
      return Fail(command, status.error());
    }
  }
  if (scene.stats) {
    Note(command, fmt::format("{} outputs, {} valid; {} rows in {} calls of the model; {} "
                              "questions to checks; trie of {} nodes, {} bytes",
                              lines, valid, result->model_rows, result->model_calls, asked,
                              result->trie_nodes, result->trie_bytes));
  }
  if (result->timed_out) {
    Note(command, fmt::format("note: {} of {} outputs in {} s (--sampler-seconds)", lines,
                              options->n, seconds));
  }
  if (valid > 1 && result->effective_size < 2) {
    Note(command, fmt::format("warning: one of {} outputs has nearly all of the weight: their "
                              "effective number is {:.2f}",
                              valid, result->effective_size));
  }
  if (valid < lines) {
    Note(command, fmt::format("note: {} of {} outputs did not become valid and have weight 0{}",
                              lines - valid, lines, WhyInvalid(at_budget)));
  }
  return valid > 0 ? kExitOk : kExitSomeFailed;
}

}  // namespace pawl::cli
