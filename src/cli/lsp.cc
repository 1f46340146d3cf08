// `pawl lsp`: a language server on stdin and stdout (lsp_server.h). The thread that reads the
// input begins when everything is loaded.
#include <memory>

#include "src/cli/command.h"
#include "src/cli/lsp_server.h"
#include "src/cli/monitor_flags.h"
#include "src/cli/options.h"

namespace pawl::cli {
namespace {

constexpr const char* kLsp = "lsp";

struct LspFlags {
  MonitorFlags monitored;
  CompleterFlags completer;
  int max_tokens = 48;
  int max_prompt_tokens = 1024;
  int max_items = 100;
  bool no_monitors = false;
};

#ifndef PAWL_HAVE_MONITORS

int Run(const LspFlags&) { return FailWithoutMonitors(kLsp); }

#else

int Run(const LspFlags& flags) {
  if (Status status = flags.monitored.Check(); !status.ok()) return Fail(kLsp, status.error());
  Result<LoadedCompleter> loaded = flags.completer.Load(kLsp, flags.monitored);
  if (!loaded.ok()) return Fail(kLsp, loaded.error());
  const LspServerOptions options{.monitored = flags.monitored,
                                 .max_tokens = flags.max_tokens,
                                 .max_prompt_tokens = flags.max_prompt_tokens,
                                 .max_items = flags.max_items,
                                 .no_monitors = flags.no_monitors};
  return EditorServer(options, *loaded).Serve();
}

#endif

}  // namespace

void AddLsp(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kLsp,
                         "A language server on stdin and stdout: lists of names and inline "
                         "completion under the monitors");
  auto flags = std::make_shared<LspFlags>();
  flags->completer.AddTo(command);
  flags->monitored.AddTo(command);
  command->add_flag("--no-monitors", flags->no_monitors, "The model alone");
  CountOption(command, "--max-tokens", flags->max_tokens, 1, 4096, "Longest inline completion");
  CountOption(command, "--max-prompt-tokens", flags->max_prompt_tokens, 16, 1 << 20,
              "Most tokens of the text around the cursor that the model reads");
  CountOption(command, "--max-items", flags->max_items, 1, 10000, "Most names in a list");
  command->footer(
      "Exit codes: 0 done; 2 bad input or usage.\n"
      "Example:\n  pawl lsp --repo . --model models/tiny-code");
  command->callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace pawl::cli
