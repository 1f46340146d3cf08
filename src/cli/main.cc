// The `pawl` command: finds the subcommand, runs it, turns every way of failing into one message
// and an exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/cpu_features.h"
#include "src/base/os/processes.h"
#include "src/cli/command.h"
#include "src/cli/config_file.h"
#include "src/cli/variables.h"

namespace pawl {

// PAWL_KERNELS=avx2 pawl ...: as on a processor that has no more (src/base/cpu_features.h).
const char* MostInstructions() { return std::getenv("PAWL_KERNELS"); }

}  // namespace pawl

namespace pawl::cli {
namespace {

// The names that PAWL_KERNELS may have.
bool KernelsLimitIsKnown() {
  const char* most = MostInstructions();
  if (most == nullptr) return true;
  const std::string_view name = most;
  return name.empty() ||
         std::ranges::find(kInstructionLimits, name) != std::end(kInstructionLimits);
}

// "--text=" gives an empty text; CLI11 would take the next argument for it.
std::vector<const char*> WithEmptyValues(int argc, char** argv, std::deque<std::string>& names) {
  std::vector<const char*> out;
  for (int i = 0; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") {
      out.insert(out.end(), argv + i, argv + argc);
      break;
    }
    if (!argument.starts_with("--") || argument.find('=') + 1 != argument.size()) {
      out.push_back(argv[i]);
      continue;
    }
    names.emplace_back(argument.substr(0, argument.size() - 1));
    out.push_back(names.back().c_str());
    out.push_back("");
  }
  return out;
}

int Main(int argc, char** argv) {
  CLI::App app{
      "pawl: structured output for language models.\n"
      "Whatever the model samples, the output is in the language you asked for."};
  app.name("pawl");
  app.set_version_flag("--version", "pawl " PAWL_VERSION);
  app.require_subcommand(0, 1);
  app.footer(
      "Exit codes: 0 done; 1 some of several inputs were refused; 2 bad input or usage; 3 a bug in "
      "pawl.\n"
      "Example:\n  pawl extract --schema schemas/examples/invoice.json --text \"Invoice 7 from "
      "Acme, 30 EUR\"");
  if (!KernelsLimitIsKnown()) {
    Note("", fmt::format("PAWL_KERNELS: must be one of {}, not \"{}\"",
                         fmt::join(kInstructionLimits, ", "), MostInstructions()));
    return kExitBadInput;
  }
  app.set_config("--config", "", "Options from a TOML file, with a section for each command");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.get_option("--config")->type_name("FILE");
  const auto config = std::make_shared<ConfigFile>(app);
  app.config_formatter(config);
  app.fallthrough();
  Action action;
  AddExtract(app, action);
  AddEval(app, action);
  AddTune(app, action);
  AddGenerate(app, action);
#ifdef PAWL_HAVE_SERVER
  AddServe(app, action);
#endif
  AddValidate(app, action);
  AddMask(app, action);
  AddBench(app, action);
  AddMaskbench(app, action);
  AddTokenize(app, action);
  AddGrammar(app, action);
  AddInfo(app, action);
  AddModels(app, action);
  AddPull(app, action);
  AddQuantize(app, action);
  AddSample(app, action);
  AddScore(app, action);
  AddSchema(app, action);
  AddSchemaTest(app, action);
  AddMonitor(app, action);
  AddCheck(app, action);
  AddComplete(app, action);
  AddIndex(app, action);
  AddLsp(app, action);
  std::deque<std::string> names;
  std::vector<const char*> arguments = WithEmptyValues(argc, argv, names);
  Variables variables;
  if (Status status = variables.Read(app, arguments); !status.ok()) {
    Note("serve", status.error().ToString());
    return kExitBadInput;
  }
  for (const std::string& one : variables.arguments()) arguments.push_back(one.c_str());
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::Success& e) {
    std::ostringstream text;  // --help, --version
    app.exit(e, text, text);
    Print(text.str());
    const Status status = FlushOutput();
    return status.ok() ? kExitOk : Fail("", status.error());
  } catch (const CLI::ParseError& e) {
    std::string name;  // "bench masks"
    for (auto chosen = app.get_subcommands(); !chosen.empty();
         chosen = chosen.front()->get_subcommands()) {
      name += (name.empty() ? "" : " ") + chosen.front()->get_name();
    }
    Note(name, fmt::format("{} (see pawl{}{} --help)",
                           variables.Placed(config->Placed(UsageMessage(e), arguments)),
                           name.empty() ? "" : " ", name));
    return kExitBadInput;
  }
  if (!action) {
    const std::string help = app.help();
    std::fwrite(help.data(), 1, help.size(), stderr);
    return kExitBadInput;
  }
  const int code = action();
  if (Status status = FlushOutput(); !status.ok()) {
    return Fail(app.get_subcommands().front()->get_name(), status.error());
  }
  return code;
}

}  // namespace
}  // namespace pawl::cli

int main(int argc, char** argv) {
  // Pawl's own code throws nothing; the standard library does when memory runs out.
  try {
    std::vector<std::string> arguments = pawl::os::BeginProgram(argc, argv);
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    return pawl::cli::Main(static_cast<int>(arguments.size()), words.data());
  } catch (const std::bad_alloc&) {
    std::fputs("pawl: out of memory\n", stderr);
  } catch (const std::exception& e) {
    std::fputs("pawl: ", stderr);
    std::fputs(e.what(), stderr);
    std::fputs("\n", stderr);
  }
  return pawl::cli::kExitBug;
}
