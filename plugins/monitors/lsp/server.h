// The LSP tier: members of the expression before the cursor, as a real language server has them.
//
//   LspServer server({.command = "clangd"});
//   LspQuestion question{.language = Language::kCpp, .file = "/src/a.cc", .text = "... p."};
//   std::shared_ptr<const Completions> names = server.Ask(question);      // nullptr: unknown
//
// The server starts with the first question and stays. Anything but a whole, certain answer in time
// is unknown. Thread safety: several threads may ask; one at a time is answered.
#ifndef PAWL_PLUGINS_MONITORS_LSP_SERVER_H_
#define PAWL_PLUGINS_MONITORS_LSP_SERVER_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plugins/monitors/lsp/process.h"
#include "plugins/monitors/monitor.h"
#include "plugins/monitors/scan.h"

namespace pawl::monitors {

// What the text alone says about a place where a language server is to be asked.

// Whether the word stands in the text, not as a part of another name.
bool HasWord(std::string_view text, std::string_view word);

// The text ends with "." or, in C++, "->" behind an expression; not the point of a number.
bool BehindMember(Language language, std::string_view text);

// Whether a server can know all members here. Not in templates, whose types depend on what is not
// known, and not in classes that are not finished; not for `self`, whose attributes come into being
// where they are written. `whole`: what stands behind the cursor is known too.
bool CertainPlace(Language language, std::string_view text, bool whole);

// Names that no server lists, and that may stand where a member does: macros of the text, types of
// which one may be a base class (`a.Base::member`), the words `template` and `operator`.
std::vector<std::string> AlsoPossible(Language language, std::string_view text);

// Python: the classes in whose body the end of the text stands.
std::vector<std::string> EnclosingClasses(std::string_view text);

struct LspQuestion {
  Language language = Language::kCpp;
  std::string file;         // its name; need not exist. Empty: one is made up
  std::string_view text;    // up to the cursor, behind "." or "->"
  std::string_view suffix;  // behind it, where it is known
};

// How often answers were what they were.
struct LspCounts {
  uint64_t asked = 0;
  uint64_t known = 0;    // names came
  uint64_t cached = 0;   // without asking again
  uint64_t early = 0;    // the server has not read the file yet
  uint64_t late = 0;     // no answer in time
  uint64_t partial = 0;  // the list was not complete
  uint64_t guessed = 0;  // words of the text, or a type that is known in part
  uint64_t empty = 0;
  uint64_t starts = 0;
  uint64_t failures = 0;  // the server ended, or wrote what is no message
};

class LspServer {
 public:
  explicit LspServer(LspSetting setting);
  ~LspServer();
  // nullptr: unknown.
  std::shared_ptr<const Completions> Ask(const LspQuestion& question);
  // Starts the server and shows it a file, so that it is warm when it is asked.
  void Show(Language language, const std::string& file, std::string_view text);
  LspCounts counts() const;

 private:
  struct Document {
    std::string language;
    int64_t version = 0;
    std::string text;
    bool read = false;  // the server has said something about it
  };
  using Json = nlohmann::json;
  bool Ready(LspClock::time_point deadline);
  bool Initialize(LspClock::time_point deadline);
  // Shows the text as it is now; the uri.
  std::string Update(Language language, const std::string& file, std::string text,
                     LspClock::time_point deadline);
  void Notify(const char* method, Json params, LspClock::time_point deadline);
  // The result of a request; nullopt: none in time, or an error.
  std::optional<Json> Request(const char* method, Json params, LspClock::time_point deadline);
  void Handle(const Json& message, LspClock::time_point deadline);
  bool WaitUntilRead(const std::string& uri, LspClock::time_point deadline);
  std::shared_ptr<const Completions> Answer(const LspQuestion& question, const Json& result,
                                            const std::string& uri, const Json& position,
                                            LspClock::time_point deadline);
  bool CertainOfType(const LspQuestion& question, const std::string& uri, const Json& position,
                     LspClock::time_point deadline);
  void Remember(const std::string& key, std::shared_ptr<const Completions> names);
  void Drop();

  const LspSetting setting_;
  mutable std::mutex mutex_;
  std::unique_ptr<LspProcess> process_;
  bool initialized_ = false;
  bool always_partial_ = false;  // a server that calls every list incomplete
  std::string root_;
  int64_t next_id_ = 1;
  std::map<std::string, Document> documents_;  // by uri
  // Answers by what was asked, the latest first.
  using Cached = std::pair<std::string, std::shared_ptr<const Completions>>;
  std::list<Cached> cache_;
  std::unordered_map<std::string, std::list<Cached>::iterator> cached_;
  size_t cache_bytes_ = 0;
  LspClock::time_point not_before_ = {};  // for starting it again
  LspCounts counts_;
};

// Asks the server where a member is named. `server` must outlive the monitor.
std::unique_ptr<Monitor> MakeLspMonitor(std::shared_ptr<LspServer> server, Language language,
                                        std::string file);

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_LSP_SERVER_H_
