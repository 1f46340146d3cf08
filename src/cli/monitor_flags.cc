// A folder that is not there, a monitor without a name, a server without a command: said before
// anything is loaded.
#include "src/cli/monitor_flags.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "src/cli/command.h"
#include "src/cli/options.h"
#include "src/engine/prompt.h"

namespace pawl::cli {

int FailWithoutMonitors(const std::string& command) {
  return Fail(command, Error{ErrorCode::kUnsupported,
                             "this pawl was built without the monitors; scripts/install_deps.sh "
                             "installs what they need, then build again",
                             ""});
}

void MonitorFlags::AddTo(CLI::App* command) {
  TextOption(command, "--repo", repo, "DIR", "The repository that the files belong to");
  command
      ->add_option("--monitors", monitors,
                   "Only these monitors, separated by commas (default: all)")
      ->delimiter(',')
      ->type_name("NAMES");
  TextOption(command, "--lsp-server", lsp_server, "COMMAND",
             "Command line of a language server that is asked for members, such as clangd");
  RealOption(command, "--lsp-seconds", lsp_seconds, 0.001, 600, "X",
             "Time that the language server has for an answer; without one nothing is known");
}

Status MonitorFlags::Check() const {
  std::error_code error;
  if (!repo.empty() && !std::filesystem::is_directory(repo, error)) {
    return Error{ErrorCode::kIo, fmt::format("\"{}\" is no folder", repo), "--repo"};
  }
  for (const std::string& name : monitors) {
    if (name.empty()) return Error{ErrorCode::kInvalid, "has an empty name", "--monitors"};
  }
  return {};
}

std::string MonitorFlags::CacheFolder() {
  // As the XDG Base Directory Specification has it: a relative path is as good as none.
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/pawl";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/pawl";
  return "";
}

std::string MonitorFlags::JavaHome() {
  const char* const home = std::getenv("JAVA_HOME");
  return home == nullptr ? "" : home;
}

#ifdef PAWL_HAVE_MONITORS

std::shared_ptr<monitors::LspServer> MonitorFlags::Server() const {
  if (lsp_server.empty()) return nullptr;
  monitors::LspSetting setting;
  setting.command = lsp_server;
  setting.root = repo;
  setting.limit_seconds = lsp_seconds;
  return std::make_shared<monitors::LspServer>(std::move(setting));
}

Result<std::optional<monitors::Language>> LanguageFlag(const std::string& name) {
  if (name.empty()) return std::optional<monitors::Language>();
  const std::optional<monitors::Language> language = monitors::LanguageNamed(name);
  if (language) return language;
  return Error{ErrorCode::kInvalid,
               fmt::format("\"{}\" is none of typescript, java, python, cpp", name), "--language"};
}

#endif

void CompleterFlags::AddTo(CLI::App* command) {
  TextOption(command, "--model", model, "MODEL",
             "Model folder, GGUF file or name (default: models/tiny-code)");
  CountOption(command, "--threads", threads, 0, 1024, "Threads of the model; 0: all cores");
  lora.AddTo(command);
  drafts.AddTo(command);
}

#ifdef PAWL_HAVE_MONITORS

Result<LoadedCompleter> CompleterFlags::Load(const std::string& command,
                                             const MonitorFlags& monitors) const {
  if (Status status = drafts.Check(); !status.ok()) return status.error();
  LoadedCompleter out;
  Result<std::string> folder = FindModelFolder(model, "tiny-code");
  if (!folder.ok()) return folder.error();
  Result<std::unique_ptr<LoadedModel>> opened = OpenModel(command, *folder);
  if (!opened.ok()) return opened.error();
  if (Status status = LoadWeights(command, **opened, threads, "stored", {}, lora); !status.ok()) {
    return status.error();
  }
  Result<Engine> engine = drafts.MakeEngine(*std::move(opened));
  if (!engine.ok()) return engine.error();
  out.server = monitors.Server();
  out.completer = std::make_unique<completion::CodeCompleter>(*std::move(engine), out.server);
  return out;
}

#endif

}  // namespace pawl::cli
