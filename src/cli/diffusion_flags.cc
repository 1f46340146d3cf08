// The names are those of LLaDA, Dream and Fast-dLLM.
#include "src/cli/diffusion_flags.h"

#include <string>

#include "src/cli/command.h"
#include "src/cli/options.h"
#include "src/decode/check_input.h"

namespace pawl::cli {

void DiffusionFlags::AddTo(CLI::App* command) {
  const std::string group = "Diffusion models (docs/diffusion.md)";
  command
      ->add_option("--threshold", options.threshold,
                   "Commit all masks of a block that are at least so sure in a call (default: 0.9)")
      ->check(FiniteNumber(0, 1))
      ->type_name("P")
      ->group(group);
  command
      ->add_option("--steps", options.steps,
                   "Calls for the whole canvas, in place of a threshold; a block takes at least "
                   "one")
      ->transform(WholeNumber(1, kMostCount))
      ->type_name("N")
      ->group(group);
  command
      ->add_option("--block-length", options.block_length,
                   "Positions that are filled before those behind them (default: the model's, or "
                   "32)")
      ->transform(WholeNumber(1, kMostCount))
      ->type_name("N")
      ->group(group);
  command
      ->add_option("--remasking", options.remasking,
                   "LLaDA: which masks are sure: low_confidence (by the probability of the best "
                   "token; the default), random (with --steps)")
      ->check(CLI::IsMember({"low_confidence", "random"}))
      ->type_name("NAME")
      ->group(group);
  command
      ->add_option("--alg", options.alg,
                   "Dream: which masks are sure: maskgit_plus (by the probability of the best "
                   "token; the default), topk_margin, entropy")
      ->check(CLI::IsMember({"maskgit_plus", "topk_margin", "entropy"}))
      ->type_name("NAME")
      ->group(group);
}

Status DiffusionFlags::Check(const std::string& other) const {
  const Status given = RefuseDiffusion(options);
  if (given.ok()) return {};
  Error error = AtOption(given.error(), "", "");
  if (!other.empty()) {
    error.message = "cannot be used with " + other;
    return error;
  }
  if (options.steps && options.threshold) {
    return Error{ErrorCode::kInvalid, "cannot be used with --threshold", "--steps"};
  }
  if (options.remasking == "random" && !options.steps) {
    return Error{ErrorCode::kInvalid, "random needs --steps", "--remasking"};
  }
  return {};
}

}  // namespace pawl::cli
