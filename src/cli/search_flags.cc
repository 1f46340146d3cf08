// The options of searches, and a run of one. Names are those of transformers; what belongs to one
// strategy is an argument of it, NAME=VALUE.
#include "src/cli/search_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "pawl/engine.h"
#include "src/base/failure.h"
#include "src/cli/command.h"
#include "src/cli/given_options.h"
#include "src/cli/progress.h"
#include "src/decode/sampling/names.h"
#include "src/decode/search/run.h"
#include "src/decode/search/strategy.h"
#include "src/engine/engine_parts.h"
#include "src/engine/search_json.h"

namespace pawl::cli {
namespace {

constexpr uint64_t kMostRows = uint64_t{1} << 40;

Error WrongSearchOption(const std::string& option, std::string message) {
  return Error{ErrorCode::kInvalid, std::move(message), option};
}

template <typename Choice>
std::vector<std::string> SearchNames() {
  const std::span<const char* const> names = OptionNames(Choice());
  return {names.begin(), names.end()};
}

// The place of an error of a search as an option.
Error AtSearchOption(Error error, const std::string& grammar_source) {
  if (error.place == "prompt") {
    error.place = "the prompt";
  } else if (error.place == "constraint" || error.place == "grammar") {
    error.place = grammar_source;
  } else if (error.place == "strategy") {
    error.place = "--search";
  } else if (error.place == "classify") {
    error.place = "--exact";
  } else if (error.place == "choices") {
    error.place = "--choice";
  } else if (error.place == "force_phrases") {
    error.place = "--force-phrase";
  } else if (error.place == "temperature" || error.place.starts_with("exact_") ||
             !SearchMemberOf(error.place).empty()) {
    const std::string member = SearchMemberOf(error.place);
    error.place = "--" + (member.empty() ? error.place : member);
    std::ranges::replace(error.place, '_', '-');
  }
  return error;
}

Result<std::pair<std::string, double>> ArgumentOf(const std::string& text) {
  const size_t equals = text.find('=');
  double value = 0;
  if (equals != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + equals + 1, end, value);
    if (error == std::errc() && at == end && std::isfinite(value)) {
      return std::pair(text.substr(0, equals), value);
    }
  }
  return WrongSearchOption("--search-arg", "must be NAME=NUMBER, not " + Readable(text));
}

// A line for each phrase that an output lacks, or one for many.
// Of a chat the other prompt is there in tokens, as its template makes it.
Result<SearchResult> SearchIn(const SamplerFlags::Scene& scene, const SearchOptions& options) {
  if (scene.contrast.empty()) return scene.engine.Search(scene.request, options);
  SearchOptions own = options;
  own.contrast_prompt.reset();
  return Guarded([&]() -> Result<SearchResult> {
    Result<SearchInput> input =
        SearchInputOf(scene.request, own, EngineAccess::ModelOf(scene.engine));
    if (!input.ok()) return input.error();
    input->contrast = scene.contrast;
    return RunSearch(*input, options);
  });
}

void NoteMissing(const std::string& command, const SearchResult& result) {
  constexpr size_t kMostLines = 8;
  std::vector<std::string> missing;
  size_t outputs = 0;
  for (const SearchOutput& output : result.outputs) {
    outputs += output.missing_phrases.empty() ? 0 : 1;
    for (const std::string& phrase : output.missing_phrases) missing.push_back(Readable(phrase));
  }
  if (missing.size() > kMostLines) {
    return Note(command, fmt::format("note: {} of {} outputs lack {} phrases, the first one is {}; "
                                     "--json names them all",
                                     outputs, result.outputs.size(), missing.size(), missing[0]));
  }
  for (const std::string& phrase : missing) {
    Note(command, "note: an output lacks the phrase " + phrase);
  }
}

}  // namespace

Status ReadContrast(const std::string& text, SearchOptions& options) {
  options.contrast_auto = text == "auto";
  if (text.empty() || options.contrast_auto) return {};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, options.contrast);
  if (error == std::errc() && at == end && std::abs(options.contrast) <= 100) return {};
  return WrongSearchOption("--contrast",
                           "must be a number from -100 to 100, or auto, not " + Readable(text));
}

void SelfInfillFlags::AddTo(CLI::App* command, const std::string& group) {
  command_ = command;
  command
      ->add_flag(
          "--self-infill", on,
          "Where the model is uncertain it writes the end first, then the middle; for models "
          "with markers for a gap (docs/search.md)")
      ->group(group);
  CountOption(command, "--self-infill-loops", loops, 0, 64, "Of --self-infill: how often, at most")
      ->group(group);
  RealOption(command, "--self-infill-threshold", threshold, 0, 1, "P",
             "Of --self-infill: probability of the best token below which it does so")
      ->group(group);
}

Status SelfInfillFlags::Check() const {
  for (const char* name : {"--self-infill-loops", "--self-infill-threshold"}) {
    if (!on && command_->count(name) > 0) return WrongSearchOption(name, "needs --self-infill");
  }
  return {};
}

void SearchFlags::AddTo(CLI::App* command) {
  command_ = command;
  const std::string group = "Search (docs/search.md)";
  TextOption(command, "--search", strategy, "NAME",
             "Outputs of high probability: beam, best-first, diverse-beam, ...; help lists them")
      ->group(group);
  TextOption(command, "--search-arg", arguments, "NAME=VALUE",
             "An argument of the strategy; may be given several times")
      ->group(group);
  CountOption(command, "--search-rows", options.max_rows, 0, kMostRows,
              "Most rows of the model behind the prompt; 0: 65536, of best-first 2048")
      ->group(group);
  CountOption(command, "--max-nodes", options.max_nodes, 1, uint64_t{1} << 30, "Most hypotheses")
      ->group(group);
  CountOption(command, "--max-branches", options.max_branches, 1, 65536,
              "Most sequences of the model at a time; memory may allow fewer")
      ->group(group);
  CountOption(command, "--num-beams", options.num_beams, 1, 4096, "Of beam, diverse-beam: width")
      ->group(group);
  RealOption(command, "--length-penalty", options.length_penalty, -100, 100, "P",
             "Outputs rank by log P / length^P")
      ->group(group);
  ChoiceOption(command, "--early-stopping", early_stopping, SearchNames<EarlyStopping>(), "WHEN",
               "Of beam, diverse-beam: end with the first num_beams outputs")
      ->group(group);
  CountOption(command, "--num-beam-groups", options.num_beam_groups, 1, 4096, "Of diverse-beam")
      ->group(group);
  RealOption(command, "--diversity-penalty", options.diversity_penalty, 0, 1e6, "P",
             "Of diverse-beam: for a token that an earlier group has taken")
      ->group(group);
  CountOption(command, "--no-repeat-ngram-size", options.no_repeat_ngram_size, 0, kMostCount,
              "No sequence of so many tokens occurs twice; 0: off")
      ->group(group);
  command
      ->add_flag("--no-merge-spellings", no_merge_spellings,
                 "Keep hypotheses with the same text apart")
      ->group(group);
  TextOption(command, "--force-phrase", options.force_phrases, "TEXT",
             "A text that the output must have, with beam; may be given several times")
      ->group(group);
  command->add_flag("--force-ordered", options.force_ordered, "The phrases come in this order")
      ->group(group);
  ChoiceOption(command, "--force-in", force_in, SearchNames<ForceIn>(), "WHERE",
               "Phrases are looked for in the text, or in the values of JSON strings")
      ->group(group);
  infill.AddTo(command, group);
  TextOption(command, "--contrast-prompt", contrast_prompt, "TEXT",
             "Another prompt, such as one without the document, that outputs are to differ from")
      ->group(group);
  TextOption(command, "--contrast", contrast, "A",
             "How much they differ from it: a number, or auto")
      ->group(group);
  TextOption(command, "--search-svg", svg, "FILE", "Write a picture of what was searched")
      ->group(group);
  command
      ->add_flag("--exact", exact, "With --choice: the probability of each choice, not an output")
      ->group(group);
  RealOption(command, "--exact-missing", classify.exact_missing, 0, 1, "P",
             "Of --exact: end where at most this share is missing")
      ->group(group);
  CountOption(command, "--exact-rows", classify.exact_rows, 1, kMostRows,
              "Of --exact: most rows of the model behind the prompt")
      ->group(group);
  command->add_flag("--json", json, "With --search or --exact: one line of JSON")->group(group);
}

const char* SearchFlags::own() const {
  if (exact) return "--exact";
  if (!strategy.empty()) return "--search";
  if (infill.on) return "--self-infill";
  return options.force_phrases.empty() ? "--contrast-prompt" : "--force-phrase";
}

std::string SearchFlags::StrategyFor(const SamplingFlags& sampling) const {
  if (!strategy.empty()) return strategy;
  if (infill.on) return "self-infill";
  return searches() || sampling.params.temperature == 0 ? "beam" : "cntp";
}

Status SearchFlags::Check(const SamplerFlags& sampler, const GrammarFlags& grammar,
                          const SamplingFlags& sampling) const {
  for (const char* name :
       {"--search-arg", "--search-rows", "--max-nodes", "--max-branches", "--num-beams",
        "--length-penalty", "--early-stopping", "--num-beam-groups", "--diversity-penalty",
        "--no-repeat-ngram-size", "--no-merge-spellings", "--search-svg"}) {
    if (!any() && command_->count(name) > 0) return WrongSearchOption(name, "needs --search");
  }
  for (const char* name : {"--force-ordered", "--force-in"}) {
    if (options.force_phrases.empty() && command_->count(name) > 0) {
      return WrongSearchOption(name, "needs --force-phrase");
    }
  }
  if (Status status = infill.Check(); !status.ok()) return status;
  if (infill.on && !strategy.empty()) {
    return WrongSearchOption("--self-infill", "cannot be used with --search");
  }
  if (!contrast.empty() && !contrasts()) {
    return WrongSearchOption("--contrast", "needs --contrast-prompt");
  }
  if (any() && !searches() && command_->count("--n") > 0 && sampler.n != 1) {
    return WrongSearchOption("--n", "must be 1: --contrast-prompt without --search has one output");
  }
  const std::string unused = UnusedOption(StrategyFor(sampling), [&](const std::string& option) {
    std::string name = "--" + option;
    std::ranges::replace(name, '_', '-');
    return command_->count(name) > 0;
  });
  if (any() && !unused.empty()) {
    std::string name = "--" + unused;
    std::ranges::replace(name, '_', '-');
    const std::string implied = strategy.empty() ? std::string(", which ") + own() + " takes" : "";
    return WrongSearchOption(name,
                             "is not an option of the strategy " + StrategyFor(sampling) + implied);
  }
  for (const char* name : {"--exact-missing", "--exact-rows"}) {
    if (!exact && command_->count(name) > 0) return WrongSearchOption(name, "needs --exact");
  }
  if (json && !any() && !exact) return WrongSearchOption("--json", "needs --search or --exact");
  if (!any() && !exact) return {};
  const auto apart = [&](const std::string& other) {
    return WrongSearchOption(own(), "cannot be used with " + other);
  };
  if (exact && any()) {
    return apart(FirstGiven(*command_,
                            {"--search", "--self-infill", "--force-phrase", "--contrast-prompt"}));
  }
  if (sampler.any()) return apart(sampler.own());
  if (exact && grammar.choices.empty()) return WrongSearchOption("--exact", "needs --choice");
  if (exact && grammar.combine.any()) {
    return apart(FirstGiven(*command_, {"--prefix", "--prefix-file", "--suffix", "--suffix-file",
                                        "--require", "--gap", "--gap-file"}));
  }
  const SamplingParams defaults;
  const SamplingParams& p = sampling.params;
  const auto draws = [&](const std::string& name) {
    return WrongSearchOption(name,
                             std::string("is for drawing tokens, which ") + own() + " does not");
  };
  if (searches() && !infill.on && p.temperature != defaults.temperature)
    return draws("--temperature");
  if (p.top_k != defaults.top_k) return draws("--top-k");
  if (p.top_p != defaults.top_p) return draws("--top-p");
  if (p.min_p != defaults.min_p) return draws("--min-p");
  if (p.draft_lanes != 1) return draws("--draft-lanes");
  if (p.repetition_penalty != 1) return draws("--repetition-penalty");
  if (p.presence_penalty != 0) return draws("--presence-penalty");
  if (p.frequency_penalty != 0) return draws("--frequency-penalty");
  if (!(p.stages == SamplerStages())) return draws(StageGiven(*command_));
  return {};
}

Result<SearchOptions> SearchFlags::Options(const SamplerFlags& sampler,
                                           const SamplerFlags::Scene& scene) const {
  SearchOptions out = options;
  out.strategy = StrategyFor(scene.sampling);
  if (!searches()) {
    const SearchOptions plain = GreedyOrDrawn(scene.sampling.params);
    out.num_beams = plain.num_beams;
    out.arguments = plain.arguments;
  }
  if (infill.on) {
    out.arguments = {{"loops", infill.loops},
                     {"threshold", infill.threshold},
                     {"temperature", double{scene.sampling.params.temperature}}};
  }
  if (contrasts()) out.contrast_prompt = contrast_prompt;
  if (Status status = ReadContrast(contrast, out); !status.ok()) return status.error();
  out.keep_graph = !svg.empty();
  out.n = sampler.n;
  out.early_stopping = *OptionOf<EarlyStopping>(early_stopping);
  out.force_in = *OptionOf<ForceIn>(force_in);
  out.merge_spellings = !no_merge_spellings;
  out.skip_forced = command_->count("--no-skip-forced") == 0;
  out.max_tokens = scene.sampling.max_tokens;
  out.seed = scene.sampling.params.seed;
  for (const std::string& text : arguments) {
    Result<std::pair<std::string, double>> argument = ArgumentOf(text);
    if (!argument.ok()) return argument.error();
    out.arguments.push_back(*std::move(argument));
  }
  if (Status status = sampler.MakeChecks(scene.engine, out.checks, out.critic); !status.ok()) {
    return status.error();
  }
  return out;
}

int SearchFlags::Run(const std::string& command, const SamplerFlags& sampler,
                     const SamplerFlags::Scene& scene) const {
  const Result<SearchOptions> made = Options(sampler, scene);
  if (!made.ok()) return Fail(command, made.error());
  std::optional<Progress> progress;
  progress.emplace(command, "searching");
  const Result<SearchResult> result = SearchIn(scene, *made);
  progress.reset();
  if (!result.ok()) {
    Error error = AtSearchOption(result.error(), scene.grammar_flags.source());
    if (error.place == "--search") error.place = own();
    return Fail(command, error);
  }
  if (!svg.empty()) {
    const Status written = WriteFile(svg, SearchSvg(result->graph));
    if (!written.ok()) return Fail(command, written.error());
  }
  if (json) {
    Print(SearchJson(*result) + "\n");
  } else {
    for (const SearchOutput& output : result->outputs) Print(output.text + "\n");
  }
  if (scene.stats) {
    Note(command, fmt::format("{} outputs; {} rows in {} calls of the model; {} hypotheses",
                              result->outputs.size(), result->model_rows, result->model_calls,
                              result->nodes));
  }
  if (!result->at_limit.empty()) {
    Note(command, fmt::format("note: the limit of {} was reached, so these are the best outputs "
                              "so far",
                              result->at_limit));
  }
  const size_t found = result->outputs.size();
  const bool cut = std::ranges::any_of(
      result->outputs, [](const SearchOutput& one) { return !one.ended && !one.closed; });
  if (cut && !scene.request.grammar) {
    Note(command,
         fmt::format("note: the output was cut at the budget of {} tokens", made->max_tokens));
  }
  if (found > 0 && found < static_cast<size_t>(made->n)) {
    Note(command, fmt::format("note: of {} outputs {} were found", made->n, found));
  }
  bool good = found > 0;
  if (!good) {
    std::string specs;
    for (const std::string& spec : sampler.checks) specs += (specs.empty() ? "" : ", ") + spec;
    Note(command, specs.empty() ? std::string("note: no complete output was found")
                                : "note: no output was found that --check " + specs + " accepts");
  }
  for (const SearchOutput& output : result->outputs) good &= output.missing_phrases.empty();
  NoteMissing(command, *result);
  return good ? kExitOk : kExitSomeFailed;
}

int SearchFlags::RunExact(const std::string& command, const SamplerFlags::Scene& scene) const {
  ClassifyOptions asked = classify;
  asked.choices = scene.grammar_flags.choices;
  const CLI::Option* temperature = command_->get_option("--temperature");
  if (temperature->count() > 0) asked.temperature = temperature->as<double>();
  EngineRequest request = scene.request;
  request.grammar.reset();
  const Result<ClassifyResult> result = scene.engine.Classify(request, asked);
  if (!result.ok()) return Fail(command, AtSearchOption(result.error(), "--choice"));
  if (json) {
    Print(ClassifyJson(*result) + "\n");
  } else {
    for (const ChoiceProbability& one : result->choices) {
      const bool none = one.log_probability <= kZeroWeight && result->missing > 0;
      Print(fmt::format("{}  {}\n", none ? "unknown " : fmt::format("{:.6f}", one.probability),
                        Readable(one.text)));
    }
  }
  if (scene.stats) {
    Note(command, fmt::format("valid {:.6g}, missing at most {:.6g}; {} rows in {} calls of the "
                              "model",
                              result->valid, result->missing, result->rows, result->calls));
  }
  if (result->at_limit) {
    Note(command, "note: the limit of --exact-rows was reached; --json says what may be missing");
  }
  // `valid` may be too small for a double.
  const bool found = std::ranges::any_of(result->choices, [](const ChoiceProbability& one) {
    return one.log_probability > kZeroWeight;
  });
  return !found && result->at_limit ? kExitSomeFailed : kExitOk;
}

}  // namespace pawl::cli
