// The environment is read once, before the command line is parsed: what it has is appended to the
// arguments, so that CLI11 checks both alike.
#include "src/cli/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "src/base/json.h"
#include "src/base/os/processes.h"

namespace pawl::cli {
namespace {

constexpr std::string_view kPrefix = "PAWL_SERVE_";

bool HasName(const CLI::Option* option, const std::string& name) {
  return option->check_lname(name);
}

// PAWL_SERVE_MAX_TOKENS of "max-tokens".
std::string OptionNameOf(std::string_view variable) {
  std::string name(variable.substr(kPrefix.size()));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return name;
}

bool IsFlag(const CLI::Option* option) { return option->get_items_expected_max() == 0; }

}  // namespace

Status Variables::Read(const CLI::App& app, std::span<const char* const> arguments) {
  const auto is_command = [](std::string_view argument) { return argument == "serve"; };
  if (arguments.size() < 2 || std::ranges::none_of(arguments.subspan(1), is_command)) return {};
  const auto commands =
      app.get_subcommands([](const CLI::App* one) { return one->get_name() == "serve"; });
  if (commands.empty()) return {};
  const CLI::App* const command = commands.front();
  std::vector<std::string_view> variables;
  const std::vector<std::string> environment = os::EnvironmentVariables();
  for (const std::string_view one : environment) {
    if (one.starts_with(kPrefix) && one.find('=') != std::string_view::npos) {
      variables.push_back(one);
    }
  }
  std::ranges::sort(variables);
  for (const std::string_view one : variables) {
    const std::string variable(one.substr(0, one.find('=')));
    const std::string value(one.substr(variable.size() + 1));
    const std::string name = OptionNameOf(variable);
    const CLI::Option* found = nullptr;
    for (const CLI::App* from : {command, &app}) {
      for (const CLI::Option* option : from->get_options()) {
        const bool other = option == from->get_help_ptr() || option == app.get_version_ptr();
        if (!other && HasName(option, name)) found = option;
      }
    }
    if (found == nullptr) {
      return Error{ErrorCode::kInvalid, "is no option of pawl serve", variable};
    }
    const std::string spelled = "--" + name;
    const auto says = [&](std::string_view argument) {
      return argument == spelled || argument.starts_with(spelled + "=");
    };
    if (std::ranges::any_of(arguments, says)) continue;
    if (IsFlag(found)) {
      if (value == "false" || value == "0") continue;
      if (value != "true" && value != "1") {
        return Error{ErrorCode::kInvalid, "must be true or false, not " + json::Quote(value),
                     variable};
      }
      arguments_.push_back(spelled);
    } else {
      arguments_.push_back(spelled);
      arguments_.push_back(value);
    }
    given_.push_back({spelled, variable});
  }
  return {};
}

std::string Variables::Placed(const std::string& message) const {
  const std::string name = message.substr(0, message.find(": "));
  for (const Given& one : given_) {
    if (one.option == name) return one.variable + ": " + message;
  }
  return message;
}

std::string ShownConfig(const CLI::App& command) {
  const auto written = [](const std::string& value) {
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool plain = error == std::errc() && end == value.data() + value.size();
    return plain || value == "true" || value == "false" ? value : json::Quote(value);
  };
  std::string out = fmt::format("[{}]\n", command.get_name());
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty() || !option->get_configurable()) continue;
    const std::string& name = option->get_lnames().front();
    if (IsFlag(option)) {
      out += fmt::format("{} = {}\n", name, option->count() > 0 && option->as<bool>());
      continue;
    }
    std::vector<std::string> values;
    if (option->count() > 0) {
      values = option->reduced_results();
    } else if (!option->get_default_str().empty()) {
      values = {option->get_default_str()};
    }
    if (values.empty()) {
      out += fmt::format("# {} is not set\n", name);
    } else if (values.size() == 1) {
      out += fmt::format("{} = {}\n", name, written(values[0]));
    } else {
      std::string list;
      for (const std::string& value : values) list += (list.empty() ? "" : ", ") + written(value);
      out += fmt::format("{} = [{}]\n", name, list);
    }
  }
  return out;
}

}  // namespace pawl::cli
