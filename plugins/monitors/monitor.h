// Monitors: what may be written next, so that the text names only what exists.
//
//   MonitorSet monitors = *MonitorSet::Make(Language::kTypeScript, {});
//   TextState state = monitors.Start("const list = [1, 2];\nlist.");
//   for (char c : std::string("lenght")) {
//     Refusal refusal;
//     if (!state.Add(c, &refusal)) break;       // at "g": no member of number[] begins with "leng"
//     "h"
//   }
//
// A monitor watches for its trigger, asks the analysis of the text so far, and answers with the
// names that may stand there, with a refusal of the next byte, or with nothing: unknown means no
// constraint. What it must never do is refuse what could still become a correct program.
//
// A TextState is a value: copying it forks, keeping an old one rolls back. Thread safety: a
// MonitorSet and the states made from it belong to one thread at a time.
#ifndef PAWL_PLUGINS_MONITORS_MONITOR_H_
#define PAWL_PLUGINS_MONITORS_MONITOR_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "plugins/monitors/scan.h"
#include "plugins/monitors/syntax.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors {

// Names that may stand at the cursor.
struct Completions {
  std::vector<std::string> names;  // sorted
  // What may follow a complete name; empty: any byte that ends a name.
  std::string followers;
  // Names that begin with "_" are not judged: stubs leave out what is private.
  bool private_free = false;
  // Names that begin with a small letter are not judged: packages, which may come from anywhere.
  bool lower_free = false;
  // Of `names`, sorted: they may stand there, but nothing proposes them. A text that is written has
  // not got them, nor private names that are not known.
  std::vector<std::string> hidden;
  // Another name may stand there for what may follow, but hardly does: x.new = 1,
  // print(x.a for x in all). Only a text that is written is held to these names.
  bool only_written = false;
  // In a text that is written: there may be further names that begin with "_".
  bool private_unknown = false;
  // Whether a name that begins with this byte is judged.
  bool Judges(char first) const {
    return !(private_free && first == '_') && !(lower_free && first >= 'a' && first <= 'z');
  }
};

// What an editor shows next to a name.
struct NameDetail {
  enum class Kind : uint8_t {
    kUnknown,
    kMethod,
    kFunction,
    kConstructor,
    kField,
    kVariable,
    kClass,
    kInterface,
    kModule,
    kProperty,
    kEnum,
    kEnumMember,
    kConstant,
    kKeyword
  };
  Kind kind = Kind::kUnknown;
  std::string detail;         // its type or its head, in one line; empty: not known
  std::string documentation;  // the comment or docstring of its declaration; empty: none
};

// A text that must not go on like this.
struct Refusal {
  size_t byte = 0;         // where the name begins
  std::string identifier;  // the name
  std::string monitor;
  std::string message;
  bool at_end = false;  // only the end of the text is refused: more text could mend it
};

// What a monitor says at its trigger: nothing (unknown), the names that may come, or that the next
// byte may not come.
struct Verdict {
  std::shared_ptr<const Completions> names;
  std::optional<Refusal> refusal;
};

// The place where a monitor is asked.
struct Cursor {
  std::string_view text;    // up to the cursor
  std::string_view suffix;  // behind it, when known
  const Scan* scan = nullptr;
  char next = 0;  // the byte about to be written
};

// What is known of a text in one language; made anew or brought up to date by its monitors.
class Analysis {
 public:
  virtual ~Analysis() = default;
  // Where the text's file is, so that it can import what is next to it.
  virtual void SetFile(const std::string& path) { (void)path; }
  // What is wrong with a finished text: names that nothing declares, and so on. In the order of the
  // text.
  virtual std::vector<Refusal> CheckFinished(std::string_view text,
                                             const std::vector<std::string>& monitors) = 0;
  // In the documented subset, everything that is wrong or not followed.
  virtual std::vector<Refusal> CheckStrict(std::string_view text) {
    return CheckFinished(text, {});
  }
  // The limits that were reached when the repository and the class path were read, in words.
  virtual std::vector<std::string> Limits() const { return {}; }
  // Forgets all that a question which an exception ended may have left half done; the next one
  // finds it anew. `whole`: the exception may have come from anywhere, memory that ran out, say;
  // else it came from a step of the question (work.h), which what is read from files does not take.
  virtual void Drop(bool whole) noexcept { (void)whole; }
  // These files of the repository have changed, come or gone; what was read of them is old.
  virtual void FilesChanged(const std::vector<std::string>& files) { (void)files; }
  // Set by a question: the text does not parse, however it is closed.
  bool unparsed = false;
};

class Monitor {
 public:
  virtual ~Monitor() = default;
  virtual const char* name() const = 0;
  // Cheap: looks at the last bytes and the next one. Asked before every byte of code.
  virtual bool Triggered(const Cursor& cursor) const = 0;
  virtual Verdict Ask(const Cursor& cursor, Analysis& analysis) const = 0;
  // Where Ask has no answer: names that are known to be there, though others may be too.
  virtual void Known(const Cursor& cursor, Analysis& analysis,
                     std::vector<std::string>& names) const {
    (void)cursor;
    (void)analysis;
    (void)names;
  }
  // What is known of some of the names that it answered with, or knows, at this place. `details`
  // has as many as there are names, and keeps what was found when a limit ends the question.
  virtual void Details(const Cursor& cursor, Analysis& analysis, std::span<const std::string> names,
                       std::vector<NameDetail>& details) const {
    (void)cursor;
    (void)analysis;
    (void)names;
    (void)details;
  }
};

class LspServer;  // lsp/server.h

// A language server that is asked where members are named.
struct LspSetting {
  std::string command;         // a command line; empty: none
  std::string root;            // the folder it works in; empty: the current one
  double limit_seconds = 0.5;  // for an answer; without one in time nothing is known
  double start_seconds = 20;   // for the server to start and to read the first file
  double read_seconds = 5;     // for it to read any other file
};

struct MonitorOptions {
  std::vector<std::string> monitors;  // empty: all
  std::string repo;                   // the repository that the text belongs to, empty: none
  std::string cache;                  // the folder for indexes of repositories, empty: in memory
  // Java: archives of compiled classes, and folders of them, in addition to those of the
  // development kit.
  std::vector<std::string> class_path;
  std::string java_home;              // Java: the development kit, empty: that of /usr/lib/jvm
  std::string stubs;                  // Python: a folder of stubs, empty: those that Pawl brings
  std::shared_ptr<LspServer> server;  // nullptr: none
  std::string file;                   // the name of the text, for imports and the server
  MonitorLimits limits;
};

// Where a monitor was asked.
struct MonitorPlace {
  size_t byte = 0;
  const char* monitor = "";
  bool constrained = false;
};

struct MonitorCounts {
  uint64_t bytes = 0;
  uint64_t points = 0;       // triggers
  uint64_t constrained = 0;  // triggers that led to a constraint
  uint64_t given_up = 0;     // questions that a limit ended, or that were not asked for one
  uint64_t steps = 0;        // of all questions
  double trigger_seconds = 0;
  bool keep_places = false;
  std::vector<MonitorPlace> places;  // when they are kept
};

class MonitorSet;

class TextState {
 public:
  const std::string& text() const { return *text_; }
  // Appends a byte. False, with why: it may not come, and the state is as before.
  bool Add(char c, Refusal* refusal);
  bool Add(std::string_view bytes, Refusal* refusal);
  // The names that may stand here, when the cursor is behind a trigger; what is written of one is
  // cut off.
  std::shared_ptr<const Completions> completions() const { return names_; }
  size_t written() const { return written_; }
  // Where the text is nested too deeply to be analysed; SIZE_MAX: nowhere. Nothing is refused then.
  size_t too_deep() const { return std::min(scan_.too_deep(), too_deep_); }
  // Asks the monitors what they would say of a name that begins here, once: the answer is kept for
  // the bytes that are tried here, in this state and its copies. nullptr: anything may begin.
  std::shared_ptr<const Completions> Expected();
  // Why Expected() knows nothing, in words.
  std::string WhyOpen();
  // Where Expected() knows nothing: names that may stand here among others, sorted.
  std::vector<std::string> Known();
  // What is known of names that Expected() or Known() has, as many as there are names.
  std::vector<NameDetail> Details(std::span<const std::string> names);

 private:
  friend class MonitorSet;
  TextState(MonitorSet* set, std::string text, std::string suffix);
  struct Answer {
    Verdict verdict;
    const char* monitor = "";
    bool unparsed = false;
    bool asked = false;
  };
  // A text that did not parse four times in a row is asked about less and less often.
  void Rest(bool unparsed);
  // What the first monitor that knows something says of the next byte.
  Answer Ask(char next);
  // The names of an answer, for a text that is read or written.
  void Fit(Verdict& verdict) const;
  // One monitor's answer, within the limits.
  Verdict AskOne(const Monitor& monitor, const Cursor& cursor);
  // Another question to one, within the limits.
  void Within(const std::function<void(Analysis&)>& ask);
  MonitorSet* set_;
  std::shared_ptr<std::string> text_;
  std::shared_ptr<const std::string> suffix_;
  Scan scan_;
  std::shared_ptr<const Completions> names_;  // constrained while set
  const char* monitor_ = "";
  size_t written_ = 0;                      // bytes of the name
  std::shared_ptr<const Answer> expected_;  // of a name that begins here
  uint32_t failures_ = 0;                   // questions in a row about a text that does not parse
  size_t asked_from_ = 0;                   // shorter texts are not asked about
  uint64_t spent_ = 0;                      // steps of the questions about this text
  uint32_t given_up_ = 0;
  size_t too_deep_ = SIZE_MAX;
};

class MonitorSet {
 public:
  // Errors: kInvalid for a name that no monitor has.
  static Result<std::unique_ptr<MonitorSet>> Make(Language language, const MonitorOptions& options);
  ~MonitorSet();

  TextState Start(std::string text, std::string suffix = "");
  // What a finished text still lacks: the first refusal, in the order of the text.
  std::optional<Refusal> Finish(std::string_view text);
  std::optional<Refusal> FinishStrict(std::string_view text);
  // Texts are written under the monitors: an escape does not spell a name (Java, TypeScript), and
  // what may be written is what a list would propose. In a text that is read, a name with an escape
  // is not judged, and neither is one that what follows may make right.
  void TextsAreWritten() { written_ = true; }
  Language language() const { return language_; }
  MonitorCounts& counts() { return counts_; }
  const MonitorLimits& limits() const { return limits_; }
  const std::vector<std::unique_ptr<Monitor>>& monitors() const { return monitors_; }
  Analysis& analysis() { return *analysis_; }

 private:
  friend class TextState;
  MonitorSet(Language language, const MonitorLimits& limits)
      : language_(language), limits_(limits) {}
  std::optional<Refusal> FinishWith(std::string_view text, bool strict);
  Language language_;
  bool written_ = false;
  MonitorLimits limits_;
  std::vector<std::unique_ptr<Monitor>> monitors_;
  std::vector<std::string> names_;
  std::unique_ptr<Analysis> analysis_;
  MonitorCounts counts_;
};

// Refusal::monitor where no monitor refuses, but a text is nested too deeply.
inline constexpr const char* kLimits = "limits";
// What is said of a text that is nested too deeply, as a refusal of its end.
Refusal TooDeepAt(std::string_view text, size_t byte);

// A language brings its analysis and its monitors; registry.cc lists them.
std::unique_ptr<Analysis> MakeTypeScriptAnalysis(const MonitorOptions& options);
std::vector<std::unique_ptr<Monitor>> TypeScriptMonitors();
std::unique_ptr<Analysis> MakeJavaAnalysis(const MonitorOptions& options);
std::vector<std::unique_ptr<Monitor>> JavaMonitors();
std::unique_ptr<Analysis> MakePythonAnalysis(const MonitorOptions& options);
std::vector<std::unique_ptr<Monitor>> PythonMonitors();

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_MONITOR_H_
