// Brings the index of the repository up to date on a thread of its own, and tells the client how
// far it has come ($/progress), where the client has said that it shows this.
#ifndef PAWL_SRC_CLI_LSP_INDEX_H_
#define PAWL_SRC_CLI_LSP_INDEX_H_
#ifdef PAWL_HAVE_MONITORS

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "src/cli/lsp_wire.h"

namespace pawl::cli {

class LspIndexing {
 public:
  // The id of the request for a token.
  static constexpr const char* kRequest = "pawl-index";

  LspIndexing(LspWire& wire, std::string repo, std::string cache)
      : wire_(wire), repo_(std::move(repo)), cache_(std::move(cache)) {}
  ~LspIndexing();  // leaves the index as it was, where it has not ended
  LspIndexing(const LspIndexing&) = delete;
  LspIndexing& operator=(const LspIndexing&) = delete;

  // Without a repository or a cache folder nothing is done. `shows`: the client shows progress.
  void Start(bool shows);
  // The client's answer to the request.
  void Answered(bool ok);
  bool running() const { return running_; }

 private:
  void Run();
  void Tell(const char* kind, const std::string& message, int percent);
  void Send(const char* kind, const std::string& message, int percent);

  LspWire& wire_;
  const std::string repo_, cache_;
  std::atomic<bool> shows_{false}, running_{false}, stop_{false};
  std::mutex telling_;
  bool begun_ = false;  // under `telling_`
  std::thread thread_;
};

}  // namespace pawl::cli

#endif  // PAWL_HAVE_MONITORS
#endif  // PAWL_SRC_CLI_LSP_INDEX_H_
