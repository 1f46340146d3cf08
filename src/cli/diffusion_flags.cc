// The names are those of LLaDA, Dream and Fast-dLLM, and ours for the accelerators. Which go
// together, the loop says (decode/diffusion/canvas_options.cc).
#include "src/cli/diffusion_flags.h"

#include <string>
#include <vector>

#include "src/cli/command.h"
#include "src/cli/options.h"
#include "src/decode/check_input.h"

namespace pawl::cli {
namespace {

constexpr const char* kDiffusionGroup = "Diffusion models (docs/diffusion.md)";

}  // namespace

void DiffusionFlags::AddTo(CLI::App* command) {
  const std::string group = kDiffusionGroup;
  const auto names = [&](const char* name, std::string& value,
                         const std::vector<std::string>& known, const char* help) {
    command->add_option(name, value, help)
        ->check(CLI::IsMember(known))
        ->type_name("NAME")
        ->group(group);
  };
  const auto count = [&](const char* name, std::optional<int>& value, const char* help) {
    command->add_option(name, value, help)
        ->transform(WholeNumber(1, kMostCount))
        ->type_name("N")
        ->group(group);
  };
  const auto number = [&](const char* name, std::optional<double>& value, double most,
                          const char* type, const char* help) {
    command->add_option(name, value, help)
        ->check(FiniteNumber(0, most))
        ->type_name(type)
        ->group(group);
  };
  constexpr double kMost = 1e6;
  names("--schedule", options.schedule, {"stepwise", "threshold", "prophet", "localleap", "ssd"},
        "Which masks of a block become tokens in a call: as many as --steps says (the default), "
        "those that are sure, or other schedules");
  number("--threshold", options.threshold, 1, "P",
         "How sure a mask has to be, with the schedules threshold and localleap (default: 0.9). "
         "Without --schedule: threshold");
  number("--factor", options.factor, kMost, "F",
         "In place of a threshold: the n surest masks, the last of which has 1 - F / (n + 1)");
  count("--steps", options.steps,
        "Calls for the whole canvas; a block takes at least one (default: one for each position)");
  count("--block-length", options.block_length,
        "Positions that are filled before those behind them (default: the model's, or 32)");
  names("--remasking", options.remasking, {"low_confidence", "random"},
        "LLaDA: which masks are sure: low_confidence (by the probability of the best token; the "
        "default), random");
  names("--alg", options.alg, {"origin", "maskgit_plus", "topk_margin", "entropy"},
        "Dream: which masks are sure: maskgit_plus (by the probability of the best token; the "
        "default), topk_margin, entropy, origin (masks by lot)");
  number("--alg-temp", options.alg_temp, kMost, "T",
         "Dream: masks are drawn by how sure they are, at this temperature (default: 0, off)");
  number("--eps", options.eps, 0.999999, "E",
         "Dream: the time behind the last step (default: 0.001)");
  number("--cfg-scale", options.cfg_scale, kMost, "S",
         "Guidance: away from what the model says without the prompt; a call runs two canvases "
         "(default: 0, off)");
  names("--cache", options.cache, {"none", "prefix", "dual", "dkv"},
        "Keys and values that calls keep: none (the default), prefix (in front of the block), "
        "dual (outside of it), dkv (of tokens)");
  count("--kv-refresh", options.kv_refresh,
        "With --cache: each call of this number runs all rows (default: the first of a block; "
        "with dkv 8)");
}

void DiffusionFlags::AddGapsTo(CLI::App* command) {
  command
      ->add_option("--gap-tokens", options.gap_tokens,
                   "The most tokens of each gap that --gap and --suffix leave (default: "
                   "--max-tokens divided among them)")
      ->transform(WholeNumber(1, kMostCount))
      ->type_name("N")
      ->group(kDiffusionGroup);
}

void DiffusionFlags::AddPictureTo(CLI::App* command, std::string& svg) {
  TextOption(command, "--diffusion-svg", svg, "FILE", "A picture of the canvas after each call")
      ->group(kDiffusionGroup);
}

Status DiffusionFlags::Check(const std::string& other) const {
  const Status given = RefuseDiffusion(options);
  if (given.ok() || other.empty()) return {};
  Error error = AtOption(given.error(), "", "");
  error.message = "cannot be used with " + other;
  return error;
}

}  // namespace pawl::cli
