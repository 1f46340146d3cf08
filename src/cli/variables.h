// Options of `pawl serve` from the environment: PAWL_SERVE_MAX_TOKENS=100 is --max-tokens 100. An
// option on the command line comes first, a variable before the file of --config.
#ifndef PAWL_SRC_CLI_VARIABLES_H_
#define PAWL_SRC_CLI_VARIABLES_H_

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

#include "pawl/result.h"

namespace pawl::cli {

class Variables {
 public:
  // Of the command that `arguments` name, where it takes variables. `app` has all commands.
  // Errors: a variable that is no option, or that is neither true nor false where it has to be; the
  // place is its name.
  Status Read(const CLI::App& app, std::span<const char* const> arguments);

  // What stands for them on the command line.
  const std::vector<std::string>& arguments() const { return arguments_; }
  // The message of a usage error, with the variable in front of it that gave the value.
  std::string Placed(const std::string& message) const;

 private:
  struct Given {
    std::string option, variable;
  };
  std::vector<Given> given_;
  std::vector<std::string> arguments_;
};

// The options of a command with their values in this run, in the form that --config reads.
std::string ShownConfig(const CLI::App& command);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_VARIABLES_H_
