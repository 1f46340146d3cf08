// Options that the commands of the monitors share: `pawl monitor`, `complete`, `index` and `lsp`.
#ifndef PAWL_SRC_CLI_MONITOR_FLAGS_H_
#define PAWL_SRC_CLI_MONITOR_FLAGS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "src/cli/draft_flags.h"
#include "src/cli/engine.h"
#include "src/model/model.h"
#ifdef PAWL_HAVE_MONITORS
#include "plugins/monitors/lsp/server.h"
#include "src/completion/completion.h"
#endif

namespace pawl::cli {

// Says that this pawl has no monitors; the exit code.
int FailWithoutMonitors(const std::string& command);

// --repo, --monitors, --lsp-server, --lsp-seconds.
struct MonitorFlags {
  std::string repo;
  std::vector<std::string> monitors;
  std::string lsp_server;
  double lsp_seconds = 0.5;

  void AddTo(CLI::App* command);
  // Errors name the option.
  Status Check() const;
  // The folder for indexes of repositories: "pawl" in $XDG_CACHE_HOME or in ~/.cache. Empty: the
  // user has no such folder.
  static std::string CacheFolder();
  // $JAVA_HOME; empty: there is none.
  static std::string JavaHome();
#ifdef PAWL_HAVE_MONITORS
  // nullptr without --lsp-server.
  std::shared_ptr<monitors::LspServer> Server() const;
#endif
};

#ifdef PAWL_HAVE_MONITORS
// --language. Errors: kInvalid. nullopt: not given.
Result<std::optional<monitors::Language>> LanguageFlag(const std::string& name);

// What completes, with all that it needs.
struct LoadedCompleter {
  std::shared_ptr<monitors::LspServer> server;
  std::unique_ptr<completion::CodeCompleter> completer;
};
#endif

// --model, --threads and --draft, for commands that complete.
struct CompleterFlags {
  std::string model;
  int threads = 0;
  LoraFlag lora;
  DraftFlags drafts;

  void AddTo(CLI::App* command);
#ifdef PAWL_HAVE_MONITORS
  Result<LoadedCompleter> Load(const std::string& command, const MonitorFlags& monitors) const;
#endif
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_MONITOR_FLAGS_H_
