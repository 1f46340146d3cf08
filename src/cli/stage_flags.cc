// The options of the newer stages of sampling, with the names of llama.cpp and transformers.
#include <string>

#include "src/cli/given_options.h"
#include "src/cli/options.h"
#include "src/decode/sampler_stages.h"

namespace pawl::cli {

static constexpr const char* kStageGroup = "Stages of sampling (docs/sampling.md)";

std::string FirstGiven(const CLI::App& command, std::initializer_list<const char*> options) {
  for (const char* name : options) {
    if (command.count(name) > 0) return name;
  }
  return "";
}

std::string StageGiven(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group() == kStageGroup && option->count() > 0) return option->get_name();
  }
  return "";
}

void AddStageOptions(CLI::App* command, SamplerStages& s) {
  const std::string group = kStageGroup;
  const auto real = [&](const char* name, float& value, const char* help) {
    command->add_option(name, value, help)
        ->transform(FiniteNumber())
        ->type_name("X")
        ->capture_default_str()
        ->group(group);
  };
  const auto count = [&](const char* name, int& value, uint64_t least, uint64_t most,
                         const char* help) {
    CountOption(command, name, value, least, most, help)->group(group);
  };
  TextOption(command, "--samplers", s.order, "NAMES",
             "The stages in their order, separated by commas (default: " +
                 std::string(kDefaultStages) + ")")
      ->group(group);
  real("--typical-p", s.typical_p, "Keep the tokens nearest to the entropy that reach X; 1: all");
  real("--top-n-sigma", s.top_n_sigma, "Keep logits within X standard deviations; -1: all");
  real("--xtc-probability", s.xtc_probability, "Chance to drop the most probable tokens ...");
  real("--xtc-threshold", s.xtc_threshold, "... but the last one of those above this probability");
  real("--epsilon-cutoff", s.epsilon_cutoff, "Drop tokens below this probability; 0: none");
  real("--eta-cutoff", s.eta_cutoff, "The same, by the entropy; 0: none");
  real("--dry-multiplier", s.dry_multiplier, "DRY: penalty for going on with a repetition; 0: off");
  real("--dry-base", s.dry_base, "DRY: the penalty grows by this with each token");
  count("--dry-allowed-length", s.dry_allowed_length, 0, kMostCount,
        "DRY: repetitions up to this length are free");
  command
      ->add_option("--dry-penalty-last-n", s.dry_penalty_last_n,
                   "DRY: tokens that are looked at; -1: all, 0: off")
      ->check(CLI::Range(-1, static_cast<int>(kMostCount)))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--dry-sequence-breaker", s.dry_sequence_breakers,
                   "DRY: a text that ends repetitions; may be given several times (default: line "
                   "feed : \" *)")
      ->type_name("TEXT")
      ->group(group);
  count("--mirostat", s.mirostat, 0, 2, "Mirostat 1 or 2 in place of the filters; 0: off");
  real("--mirostat-tau", s.mirostat_tau, "Mirostat: wanted surprise in bits");
  real("--mirostat-eta", s.mirostat_eta, "Mirostat: learning rate");
  real("--dynatemp-range", s.dynatemp_range, "The temperature follows the entropy by this; 0: off");
  real("--dynatemp-exponent", s.dynatemp_exponent, "How it follows");
  real("--temperature-last", s.temperature_last, "The temperature falls to this; -1: it does not");
  count("--temperature-tokens", s.temperature_tokens, 1, kMostCount, "... over so many tokens");
  real("--momentum-alpha", s.momentum_alpha,
       "Momentum: the best token, less this for each token that it repeats; -1: off");
  count("--momentum-k", s.momentum_k, 1, kMostCount, "Momentum: most probable tokens");
}

}  // namespace pawl::cli
