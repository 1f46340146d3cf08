// --sampler and what goes with it: outputs that keep the model's distribution.
#ifndef PAWL_SRC_CLI_SAMPLER_FLAGS_H_
#define PAWL_SRC_CLI_SAMPLER_FLAGS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/sampling.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"

namespace pawl::cli {

struct SamplerFlags {
  std::string sampler;
  std::string fidelity;
  int n = 1;
  std::vector<std::string> checks;
  double check_timeout = 5;
  std::string critic;
  std::string estimator = "recursive";
  std::string resampling = "stratified";
  int particles = 5;
  double ess_threshold = 0.5;
  int max_rejects = 0;
  int attempts = 0;
  int lookahead = 8;
  int batch = 32;
  double seconds = 0;
  std::string proposal;
  std::string trie_file;
  bool json_lines = false;

  void AddTo(CLI::App* command);
  // A sampler is asked for.
  bool any() const { return !sampler.empty() || !fidelity.empty(); }
  // The option that asks for it.
  const char* own() const { return sampler.empty() ? "--fidelity" : "--sampler"; }
  // Fails where there is one of the other options and no sampler, or both names of one, or
  // parameters of `sampling` that would bend the model's law. `search`: --search has a use for some
  // of the options.
  Status Check(const SamplingFlags& sampling, bool search) const;
  // What --check and --critic say. Errors name the option.
  Status MakeChecks(const Engine& engine, std::vector<std::shared_ptr<const pawl::Check>>& checks,
                    std::shared_ptr<const Critic>& critic) const;

  // What a run needs in addition to the options.
  struct Scene {
    Engine& engine;
    const EngineRequest& request;  // the prompt as tokens, the grammar
    const GrammarFlags& grammar_flags;
    const SamplingFlags& sampling;
    int threads = 0;
    bool stats = false;
    std::vector<TokenId> contrast = {};  // of the other prompt, where that is a chat
  };
  // Prints the outputs; returns the exit code.
  int Run(const std::string& command, const Scene& scene) const;

 private:
  Result<SamplerOptions> Options(const Scene& scene) const;
  std::string WhyInvalid(bool at_budget) const;

  const CLI::App* command_ = nullptr;
};

// The check of a --check. Errors name the option.
Result<std::shared_ptr<const Check>> MakeCheckOption(
    const std::string& spec, const std::shared_ptr<const Vocabulary>& vocabulary,
    const CheckSpecOptions& options);

// Tokens written as text: ids with spaces, commas, or as a JSON array. Errors: kInvalid with
// `place`.
Result<std::vector<TokenId>> ParseTokenIds(std::string_view text, int size,
                                           const std::string& place);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_SAMPLER_FLAGS_H_
