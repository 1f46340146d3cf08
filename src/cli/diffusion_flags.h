// --threshold, --steps, --block-length, --remasking and --alg: the loop of a model that fills
// masks.
#ifndef PAWL_SRC_CLI_DIFFUSION_FLAGS_H_
#define PAWL_SRC_CLI_DIFFUSION_FLAGS_H_

#include <CLI/CLI.hpp>

#include "pawl/generation.h"
#include "pawl/result.h"

namespace pawl::cli {

struct DiffusionFlags {
  DiffusionOptions options;

  void AddTo(CLI::App* command);
  // `other`: an option whose outputs are not those of the loop; empty: none. Errors name the
  // option.
  Status Check(const std::string& other) const;
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_DIFFUSION_FLAGS_H_
