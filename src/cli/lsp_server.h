// The language server behind `pawl lsp`: which method is answered how.
#ifndef PAWL_SRC_CLI_LSP_SERVER_H_
#define PAWL_SRC_CLI_LSP_SERVER_H_
#ifdef PAWL_HAVE_MONITORS

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "src/cli/lsp_documents.h"
#include "src/cli/lsp_index.h"
#include "src/cli/lsp_wire.h"
#include "src/cli/monitor_flags.h"

namespace pawl::cli {

struct LspServerOptions {
  MonitorFlags monitored;
  int max_tokens = 48;
  int max_prompt_tokens = 1024;
  int max_items = 100;
  bool no_monitors = false;
};

// Requests are answered one after the other, in the order in which they come.
class EditorServer {
 public:
  EditorServer(const LspServerOptions& options, LoadedCompleter& loaded)
      : options_(options),
        loaded_(loaded),
        indexing_(wire_, options.monitored.repo, MonitorFlags::CacheFolder()) {}

  // Until the client says exit or closes the stream; the exit code.
  int Serve();

 private:
  struct Answer {
    LspJson result = nullptr;
    int code = 0;  // of an error
    std::string problem = {};
  };
  static Answer Wrong(std::string problem) {
    return {.code = kLspInvalidParams, .problem = std::move(problem)};
  }
  // What the client can show.
  struct Client {
    bool documents_on_resolve = false;  // it asks for documentation of single items
    bool insert_replace = false;
    bool preselect = false;
    bool progress = false;
    bool watches = false;
    std::set<int> kinds;  // of items that it knows
  };

  Answer Handle(const std::string& method, const LspJson& p, bool asks);
  Answer Initialize(const LspJson& p);
  void Initialized();
  void Opened(const LspJson& document);
  void Changed(const std::string& uri, const LspJson& p);
  void FilesChanged(const LspJson& changes);
  void ClientAnswered(const LspJson& message);
  // The request at a position of an open document.
  struct Place {
    const LspDocument* document = nullptr;
    size_t cursor = 0;
    completion::CompletionRequest request;
  };
  Result<Place> PlaceAt(const std::string& uri, const LspJson& p);
  Answer Complete(const std::string& uri, const LspJson& p);
  Answer List(const std::string& uri, const LspJson& p);
  Answer Resolve(LspJson item) const;
  LspJson Item(const Place& place, const completion::NameList& list, size_t number) const;
  void TellEmpty(const std::string& uri, const LspJson& position, const std::string& why,
                 bool asked_for);
  void TellLimits(const std::vector<std::string>& limits);
  void Log(int type, const std::string& message);

  const LspServerOptions& options_;
  LoadedCompleter& loaded_;
  LspWire wire_;
  LspIndexing indexing_;
  LspDocuments documents_;
  Client client_;
  // The documentation of the lists that were sent last.
  struct Sent {
    uint64_t number = 0;
    std::vector<std::string> documentation;
  };
  std::deque<Sent> sent_;
  uint64_t lists_ = 0;
  std::set<std::string> told_;  // notes that were written
  bool initialized_ = false;
  bool shutdown_ = false;
};

}  // namespace pawl::cli

#endif  // PAWL_HAVE_MONITORS
#endif  // PAWL_SRC_CLI_LSP_SERVER_H_
