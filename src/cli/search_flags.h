// --search and what goes with it: outputs of high probability; --exact: probabilities of choices.
#ifndef PAWL_SRC_CLI_SEARCH_FLAGS_H_
#define PAWL_SRC_CLI_SEARCH_FLAGS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "pawl/sampling.h"
#include "src/cli/sampler_flags.h"

namespace pawl::cli {

// --self-infill and what goes with it.
struct SelfInfillFlags {
  bool on = false;
  int loops = 2;
  double threshold = 0.25;

  void AddTo(CLI::App* command, const std::string& group);
  // Fails for an option that needs --self-infill.
  Status Check() const;

 private:
  const CLI::App* command_ = nullptr;
};

struct SearchFlags {
  SearchOptions options;
  std::string strategy;
  std::string early_stopping = "false";
  std::string force_in = "text";
  std::vector<std::string> arguments;
  std::string contrast_prompt, contrast;
  std::string svg;
  bool no_merge_spellings = false;
  SelfInfillFlags infill;
  bool exact = false;
  bool json = false;
  ClassifyOptions classify;

  void AddTo(CLI::App* command);
  // A search is asked for, or contrast, which without a search is greedy or draws.
  bool any() const { return searches() || contrasts(); }
  bool contrasts() const { return command_ != nullptr && command_->count("--contrast-prompt") > 0; }
  std::optional<std::string> other_prompt() const {
    return contrasts() ? std::optional(contrast_prompt) : std::nullopt;
  }
  // It goes on with the prompt as a text.
  bool infills() const { return infill.on || strategy == "self-infill"; }
  bool help() const { return strategy == "help"; }
  // The option that asks for it.
  const char* own() const;
  // Fails where there is one of the options and nothing that has a use for it, and for parameters
  // of `sampling`, which draws.
  Status Check(const SamplerFlags& sampler, const GrammarFlags& grammar,
               const SamplingFlags& sampling) const;

  // Prints the outputs, or the choices; return the exit code. `sampler` has --n, the checks and the
  // critic.
  int Run(const std::string& command, const SamplerFlags& sampler,
          const SamplerFlags::Scene& scene) const;
  int RunExact(const std::string& command, const SamplerFlags::Scene& scene) const;

 private:
  Result<SearchOptions> Options(const SamplerFlags& sampler,
                                const SamplerFlags::Scene& scene) const;

  bool searches() const { return !strategy.empty() || infill.on || !options.force_phrases.empty(); }
  std::string StrategyFor(const SamplingFlags& sampling) const;

  const CLI::App* command_ = nullptr;
};

// --contrast: a number, or auto. Errors name the option.
Status ReadContrast(const std::string& text, SearchOptions& options);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_SEARCH_FLAGS_H_
