// Checks what the caller gave, and hands it to the strategy that was asked for.
#include "src/decode/search/run.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/base/utf8.h"
#include "src/decode/check_input.h"
#include "src/decode/sampling/branch_work.h"
#include "src/decode/search/classify.h"
#include "src/decode/search/self_infill.h"
#include "src/decode/search/strategy.h"
#include "src/model/mask_filling.h"

namespace pawl {
namespace {

constexpr int kMostBeams = 4096;
constexpr int kMostBranches = 65536;
constexpr size_t kMostPhraseBytes = 65536;

Error WrongSearch(std::string place, std::string message) {
  return Error{ErrorCode::kInvalid, std::move(message), std::move(place)};
}

Status CheckArguments(const SearchOptions& o, const SearchStrategy& strategy) {
  for (const auto& [name, value] : o.arguments) {
    const auto found = std::ranges::find_if(
        strategy.arguments,
        [&, &wanted = name](const SearchArgument& one) { return wanted == one.name; });
    if (found == strategy.arguments.end()) {
      std::string names;
      for (const SearchArgument& one : strategy.arguments) {
        names += (names.empty() ? "" : ", ") + std::string(one.name);
      }
      return WrongSearch("arguments", std::string(strategy.name) + " has no argument " + name +
                                          (names.empty() ? "" : "; it has " + names));
    }
    if (!(value >= found->least && value <= found->most)) {
      return WrongSearch("arguments", name + " must be from " + ArgumentNumber(found->least) +
                                          " to " + ArgumentNumber(found->most));
    }
    if (found->whole && value != std::floor(value)) {
      return WrongSearch("arguments", name + " must be a whole number");
    }
  }
  const auto value_of = [&](std::string_view name) {
    for (const auto& [given, value] : o.arguments) {
      if (given == name) return value;
    }
    for (const SearchArgument& one : strategy.arguments) {
      if (name == one.name) return one.value;
    }
    return 0.0;
  };
  for (const auto& [least, most] : {std::pair("min_trials", "max_trials"),
                                    std::pair("entropy_threshold_low", "entropy_threshold_high")}) {
    if (value_of(least) > value_of(most)) {
      return WrongSearch("arguments", std::string(least) + " must be at most " + most);
    }
  }
  if (value_of("lookahead") > 0 && o.strategy.ends_with("beam") && o.critic == nullptr) {
    return WrongSearch("arguments", "lookahead needs a critic, which judges what it sees");
  }
  return {};
}

// Those of beams.
Status CheckBeams(const SearchOptions& o) {
  if (o.num_beams < 1 || o.num_beams > kMostBeams) {
    return WrongSearch("num_beams", "must be from 1 to 4096");
  }
  if (o.strategy == "diverse-beam") {
    if (o.num_beam_groups < 1 || o.num_beams % o.num_beam_groups != 0) {
      return WrongSearch("num_beam_groups",
                         "must divide num_beams, which is " + std::to_string(o.num_beams));
    }
    if (!(o.diversity_penalty >= 0) || !std::isfinite(o.diversity_penalty)) {
      return WrongSearch("diversity_penalty", "must be a finite number of at least 0");
    }
  }
  if (o.n > o.num_beams) {
    return WrongSearch("n", "must be at most num_beams, which is " + std::to_string(o.num_beams));
  }
  return {};
}

Status CheckOptions(const SearchOptions& o) {
  const SearchStrategy* const strategy = FindStrategy(o.strategy);
  if (strategy == nullptr) {
    std::string names;
    for (const SearchStrategy& one : SearchStrategies()) {
      names += (names.empty() ? "" : ", ") + std::string(one.name);
    }
    return WrongSearch("strategy", "must be one of " + names + ", not \"" + o.strategy + "\"");
  }
  if (Status status = CheckArguments(o, *strategy); !status.ok()) return status;
  if (o.n != 1 && (strategy->uses & kHasOneOutput) != 0) {
    return WrongSearch("n", "must be 1: the strategy " + o.strategy + " has one output");
  }
  if (o.n < 1 || o.n > kMostBeams) return WrongSearch("n", "must be from 1 to 4096");
  if ((strategy->uses & kMixesRows) != 0) {
    if (o.n > kMostMixed) return WrongSearch("n", "must be from 1 to 8: so many share a row");
    if (o.contrast_prompt) {
      return WrongSearch("contrast_prompt", "cannot be used with the strategy " + o.strategy);
    }
  }
  if (o.strategy.ends_with("beam")) {
    if (Status status = CheckBeams(o); !status.ok()) return status;
  }
  if (!o.force_phrases.empty() && o.strategy != "beam") {
    return WrongSearch("force_phrases", "needs the strategy beam");
  }
  size_t bytes = 0;
  for (const std::string& phrase : o.force_phrases) {
    if (phrase.empty()) return WrongSearch("force_phrases", "has an empty text");
    bytes += phrase.size();
  }
  if (bytes > kMostPhraseBytes) {
    return WrongSearch("force_phrases", "has more than 65536 bytes");
  }
  if (!std::isfinite(o.length_penalty) || std::abs(o.length_penalty) > 100) {
    return WrongSearch("length_penalty", "must be from -100 to 100");
  }
  if (!std::isfinite(o.contrast) || std::abs(o.contrast) > 100) {
    return WrongSearch("contrast", "must be from -100 to 100");
  }
  if (o.no_repeat_ngram_size < 0) {
    return WrongSearch("no_repeat_ngram_size", "must be at least 0 (0 switches it off)");
  }
  if (o.max_tokens < 0) return WrongSearch("max_tokens", "must be at least 0");
  if (o.max_rows < 0) return WrongSearch("max_rows", "must be at least 0");
  if (o.max_nodes < 1 || o.max_nodes > (int64_t{1} << 30)) {
    return WrongSearch("max_nodes", "must be from 1 to 1073741824");
  }
  if (o.max_branches < 1 || o.max_branches > kMostBranches) {
    return WrongSearch("max_branches", "must be from 1 to 65536");
  }
  for (const auto& check : o.checks) {
    if (check == nullptr) return WrongSearch("checks", "has a check that is not there");
  }
  return {};
}

// The positions that a sequence may have. Errors: those of the prompt, with `place`; the model's,
// with `option`, which cannot run.
Result<int> CheckPrompt(const SearchInput& input, std::span<const TokenId> tokens,
                        const char* place, const char* option, BranchHost* host) {
  if (Status status = CheckCausal(input.model, option); !status.ok()) return status.error();
  const ModelInfo& info = input.model.info();
  if (tokens.empty()) return WrongSearch(place, "has no tokens");
  if (Status status = CheckTokens(tokens, info.vocabulary_size, place); !status.ok()) {
    return status.error();
  }
  const int positions =
      PositionsOf(info, host != nullptr ? host->memory() : input.model.kv_memory());
  const int prompt = static_cast<int>(tokens.size());
  if (prompt < positions) return positions;
  return Error{ErrorCode::kLimit,
               "has " + std::to_string(prompt) + " tokens, but the model holds " +
                   std::to_string(positions) + " with the output",
               place};
}

}  // namespace

Result<SearchResult> RunSearch(const SearchInput& input, const SearchOptions& options,
                               BranchHost* host) {
  if (Status status = CheckOptions(options); !status.ok()) return status.error();
  const SearchStrategy& strategy = *FindStrategy(options.strategy);
  const Result<int> positions = CheckPrompt(input, input.prompt, "prompt", "strategy", host);
  if (!positions.ok()) return positions.error();
  int other = 0;
  if (input.contrast) {
    const Result<int> fits =
        CheckPrompt(input, *input.contrast, "contrast_prompt", "contrast_prompt", host);
    if (!fits.ok()) return fits.error();
    other = static_cast<int>(input.contrast->size());
  }
  const int prompt = static_cast<int>(input.prompt.size());
  SamplingTask task;
  task.model = &input.model.info();
  task.vocabulary = &input.vocabulary;
  task.constraint = input.constraint;
  task.checks = options.checks;
  task.max_tokens = std::min(options.max_tokens, *positions - std::max(prompt, other));
  task.ExcludeControlTokens();
  const int capacity = std::min(*positions, prompt + task.max_tokens + 1);
  SearchOptions own = options;
  if (own.max_rows == 0) own.max_rows = strategy.rows;
  if (strategy.run == nullptr) return RunSelfInfill(input, own, *positions, host);
  // With penalty_alpha 0 no state is compared.
  const bool greedy =
      std::ranges::find(own.arguments, std::pair<std::string, double>("penalty_alpha", 0)) !=
      own.arguments.end();
  const bool states = (strategy.uses & kNeedsStates) != 0 && !greedy;
  if (states || (options.n > 1 && (strategy.uses & kMixesRows) != 0)) own.skip_forced = false;
  SearchRun run({input.model, input.encode, input.prompt, task, own, capacity, input.contrast,
                 std::min(*positions, other + task.max_tokens + 1), host, kNoToken, states,
                 input.cuts});
  if (Status status = run.Start(); !status.ok()) return status.error();
  if (!run.Complete(SearchRun::kRoot)) return strategy.run(run);
  run.Offer(SearchRun::kRoot, 0);
  return run.Finish({});
}

Result<ClassifyResult> RunClassify(const SearchInput& input, const ClassifyOptions& options,
                                   BranchHost* host) {
  std::vector<std::string> sorted = options.choices;
  std::ranges::sort(sorted);
  if (sorted.empty()) return WrongSearch("choices", "has no text");
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    return WrongSearch("choices", "has \"" + *twice + "\" twice");
  }
  size_t longest = 0;
  for (const std::string& choice : sorted) longest = std::max(longest, choice.size());
  if (!(options.exact_missing >= 0)) return WrongSearch("exact_missing", "must be at least 0");
  if (options.exact_rows < 1) return WrongSearch("exact_rows", "must be at least 1");
  const Result<int> positions = CheckPrompt(input, input.prompt, "prompt", "classify", host);
  if (!positions.ok()) return positions.error();
  if (!(options.temperature > 0) || !std::isfinite(options.temperature)) {
    return WrongSearch("temperature", "must be a finite number above 0");
  }
  const int64_t most =
      static_cast<int64_t>(input.prompt.size()) + static_cast<int64_t>(longest) + 1;
  return Classify(input, options, static_cast<int>(std::min<int64_t>(*positions, most)), host);
}

std::unique_ptr<Work> MakeSearchWork(SearchInput input, SearchOptions options,
                                     std::function<void(Result<SearchResult>)> done) {
  return MakeInputWork<SearchResult>(std::move(input), std::move(options), RunSearch,
                                     std::move(done));
}

std::unique_ptr<Work> MakeSearchWork(SearchInput input, ClassifyOptions options,
                                     std::function<void(Result<ClassifyResult>)> done) {
  return MakeInputWork<ClassifyResult>(std::move(input), std::move(options), RunClassify,
                                       std::move(done));
}

}  // namespace pawl
