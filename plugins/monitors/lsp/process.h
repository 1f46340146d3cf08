// A child process that speaks the language server protocol's framing on its stdin and stdout.
//
//   auto process = LspProcess::Start("clangd --limit-results=0");
//   process->Send(message);
//   std::optional<nlohmann::json> answer = process->Receive(deadline);
//
// One thread at a time. What the child writes on stderr is thrown away.
#ifndef PAWL_PLUGINS_MONITORS_LSP_PROCESS_H_
#define PAWL_PLUGINS_MONITORS_LSP_PROCESS_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/result.h"
#include "src/base/os/processes.h"

namespace pawl::monitors {

using LspClock = std::chrono::steady_clock;

// The message of that text; a discarded value where it is no JSON, or nested more than 500 deep.
nlohmann::json ParseMessage(std::string_view text);

class LspProcess {
 public:
  // `command`: a command line for the shell. Errors: kIo.
  static Result<std::unique_ptr<LspProcess>> Start(const std::string& command);
  ~LspProcess();  // ends the child
  LspProcess(const LspProcess&) = delete;
  LspProcess& operator=(const LspProcess&) = delete;

  // false: the child is gone, or does not read.
  bool Send(const nlohmann::json& message, LspClock::time_point deadline);
  // The next message; nullopt: none came in time, or dead().
  std::optional<nlohmann::json> Receive(LspClock::time_point deadline);
  // It has ended, or has written what is no message.
  bool dead() const { return dead_; }

 private:
  LspProcess(os::ProcessId child, int in, int out) : child_(child), in_(in), out_(out) {}
  std::optional<nlohmann::json> Parse();
  bool Wait(int file, bool to_write, LspClock::time_point deadline) const;
  const os::ProcessId child_;
  const int in_, out_;
  std::string buffer_;
  size_t begin_ = 0;  // of what is not yet read in buffer_
  bool dead_ = false;
};

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_LSP_PROCESS_H_
