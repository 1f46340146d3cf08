// `pawl pull`: fetches a model from the hub. The path of what was fetched is the only line of the
// output; how far it is stands on stderr.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "src/base/os/signals.h"
#include "src/cli/command.h"
#include "src/cli/curl.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"
#include "src/cli/progress.h"
#include "src/engine/hub_pull.h"

namespace pawl::cli {
namespace {

constexpr const char* kPull = "pull";

int PullCommand(const std::string& name) {
  // A pipe that curl has left, and a file that may not grow, are errors with a text.
  os::IgnoreBrokenPipes();
  os::IgnoreFileSizeLimit();
  Result<HubSettings> settings = HubSettingsOf(EnvironmentVariable);
  if (!settings.ok()) return Fail(kPull, settings.error());
  const HubClient client(*std::move(settings), CurlGet);
  Result<std::string> path = Error{};
  {
    Progress progress(kPull, "asks " + client.settings().endpoint + " for " + name);
    PullOptions options;
    options.note = [](const std::string& text) { Note(kPull, "note: " + text); };
    options.progress = [&progress](const PullProgress& now) {
      const double all = now.all_size == 0 ? 1 : static_cast<double>(now.all_size);
      progress.Set(fmt::format("{}: {:.0f} % of {:.1f} MiB", now.file,
                               100 * static_cast<double>(now.all_done) / all, all / (1 << 20)));
    };
    path = PullModel(name, client, options);
  }
  if (!path.ok()) return Fail(kPull, path.error());
  Print(*path + "\n");
  return kExitOk;
}

}  // namespace

void AddPull(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kPull, "Fetch a model from the hub that HF_ENDPOINT names");
  const auto name = std::make_shared<std::string>();
  TextOption(command, "name", *name, "NAME",
             "ORG/NAME, and if need be @REVISION and :FILE or :TYPE of a GGUF file")
      ->required();
  command->footer(
      "Needs curl. What is there is not fetched, and what was cut goes on.\n"
      "Example:\n  pawl pull Qwen/Qwen3-0.6B-GGUF:Q8_0");
  command->callback([name, &action] { action = [name] { return PullCommand(*name); }; });
}

}  // namespace pawl::cli
