// A watcher thread, so that work which reports nothing on its way still shows that it goes on.
#include "src/cli/progress.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "src/base/os/terminal.h"

namespace pawl::cli {
namespace {

constexpr std::chrono::milliseconds kSilence(1000);
constexpr std::chrono::milliseconds kRefresh(200);

}  // namespace

Progress::Progress(std::string command, std::string text, bool always)
    : command_(std::move(command)), terminal_(os::ErrorsAreShown()), text_(std::move(text)) {
  if (terminal_ || always) thread_ = std::thread([this] { Watch(); });
}

Progress::~Progress() {
  {
    std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Progress::Set(std::string text) {
  std::lock_guard lock(mutex_);
  text_ = std::move(text);
}

void Progress::Watch() {
  std::unique_lock lock(mutex_);
  if (wake_.wait_for(lock, kSilence, [this] { return done_; })) return;
  while (!done_) {
    if (terminal_) {
      fmt::print(stderr, "\r\x1b[Kpawl {}: {}", command_, text_);
    } else {
      fmt::print(stderr, "pawl {}: {}\n", command_, text_);
    }
    std::fflush(stderr);
    wake_.wait_for(lock, terminal_ ? kRefresh : kSilence, [this] { return done_; });
  }
  if (terminal_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace pawl::cli
