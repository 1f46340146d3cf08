// The options of the loop of a model that fills masks: --schedule, --threshold and others.
#ifndef PAWL_SRC_CLI_DIFFUSION_FLAGS_H_
#define PAWL_SRC_CLI_DIFFUSION_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "pawl/generation.h"
#include "pawl/result.h"

namespace pawl::cli {

struct DiffusionFlags {
  DiffusionOptions options;

  void AddTo(CLI::App* command);
  // --gap-tokens, of a command with texts behind its output.
  void AddGapsTo(CLI::App* command);
  // --diffusion-svg, of a command with one canvas.
  static void AddPictureTo(CLI::App* command, std::string& svg);
  // `other`: an option whose outputs are not those of the loop; empty: none. Errors name the
  // option.
  Status Check(const std::string& other) const;
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_DIFFUSION_FLAGS_H_
