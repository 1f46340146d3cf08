// --config FILE: options from a TOML file, with a section for each command.
#ifndef PAWL_SRC_CLI_CONFIG_FILE_H_
#define PAWL_SRC_CLI_CONFIG_FILE_H_

#include <CLI/CLI.hpp>
#include <istream>
#include <span>
#include <string>
#include <vector>

namespace pawl::cli {

// The reader of CLI::App::config_formatter.
class ConfigFile : public CLI::ConfigTOML {
 public:
  // `app` has all commands when a file is read.
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  // Throws a CLI::ConfigError that begins with the line.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // The message of a usage error, with file and line in front of it where the value that it speaks
  // of is the file's: of an option that `arguments` do not have.
  std::string Placed(const std::string& message, std::span<const char* const> arguments) const;

 private:
  struct Line {
    const CLI::Option* option;
    int number;
  };
  // The option that a key in a section means. Throws where there is none.
  const CLI::Option* OptionAt(const CLI::ConfigItem& item, int line) const;

  const CLI::App& app_;
  mutable std::vector<Line> lines_;  // in the order of the file
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_CONFIG_FILE_H_
