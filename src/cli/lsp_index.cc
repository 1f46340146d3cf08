// The index of a repository takes seconds where the repository is large. Till it is there, Java is
// completed as without a repository: what the repository declares is open.
#ifdef PAWL_HAVE_MONITORS
#include "src/cli/lsp_index.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "plugins/monitors/index.h"
#include "src/base/stop_scope.h"

namespace pawl::cli {

LspIndexing::~LspIndexing() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void LspIndexing::Start(bool shows) {
  if (repo_.empty() || cache_.empty() || thread_.joinable()) return;
  if (shows) {
    wire_.Send({{"jsonrpc", "2.0"},
                {"id", kRequest},
                {"method", "window/workDoneProgress/create"},
                {"params", {{"token", kRequest}}}});
  }
  running_ = true;
  thread_ = std::thread([this] {
    Run();
    running_ = false;
  });
}

void LspIndexing::Answered(bool ok) {
  shows_ = ok;
  if (running_) Tell("begin", "", 0);
}

void LspIndexing::Tell(const char* kind, const std::string& message, int percent) {
  if (!shows_) return;
  const std::lock_guard lock(telling_);
  // The client may have answered when a part was done.
  if (!std::exchange(begun_, true) && std::string_view(kind) != "begin") Send("begin", "", percent);
  Send(kind, message, percent);
}

void LspIndexing::Send(const char* kind, const std::string& message, int percent) {
  LspJson value = {{"kind", kind}};
  if (!message.empty()) value["message"] = message;
  if (std::string_view(kind) == "begin") {
    value["title"] = "Indexing";
    value["cancellable"] = false;
  }
  if (std::string_view(kind) != "end") value["percentage"] = percent;
  wire_.Send({{"jsonrpc", "2.0"},
              {"method", "$/progress"},
              {"params", {{"token", kRequest}, {"value", std::move(value)}}}});
}

void LspIndexing::Run() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kBetween = std::chrono::milliseconds(100);
  std::string said = "failed";
  try {
    auto index = monitors::RepositoryIndex::Open(monitors::IndexPath(cache_, repo_),
                                                 monitors::ForeignFile::kReplace);
    if (index.ok()) {
      monitors::IndexOptions options;
      options.threads = 1;  // the editor's user goes on typing
      Clock::time_point told = Clock::now() - kBetween;
      options.progress = [&](size_t done, size_t all) {
        if (stop_) throw Stopped();
        if (Clock::now() - told < kBetween) return;
        told = Clock::now();
        Tell("report", fmt::format("{}/{} files", done, all),
             all == 0 ? 100 : static_cast<int>(done * 100 / all));
      };
      const auto counts = (*index)->Update(repo_, options);
      said = counts.ok() ? fmt::format("{} files, {} symbols", counts->files, counts->symbols)
                         : counts.error().ToString();
    } else {
      said = index.error().ToString();
    }
  } catch (const Stopped&) {
    return;
  } catch (const std::exception& error) {
    said = error.what();
  }
  Tell("end", said, 100);
}

}  // namespace pawl::cli

#endif  // PAWL_HAVE_MONITORS
