// Code completion: a model continues a prefix, before a suffix, under the monitors of its language.
//
//   CodeCompleter completer(*std::move(engine));
//   auto done = completer.Complete({.prefix = "const xs = [1];\nxs.", .suffix = "\n",
//                                   .language = Language::kTypeScript});
//   done->text;                                    // "length;"
//
// A program with a decode loop of its own takes the parts: a CompletionPlanner makes the prompt's
// texts and the constraint, a CompletionOutput cuts what comes.
#ifndef PAWL_SRC_COMPLETION_COMPLETION_H_
#define PAWL_SRC_COMPLETION_COMPLETION_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/engine.h"
#include "pawl/generation.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "plugins/monitors/monitor.h"
#include "src/completion/monitor_constraint.h"
#include "src/completion/name_list.h"
#include "src/completion/name_ranks.h"
#include "src/completion/statement.h"

namespace pawl::completion {

struct CompletionRequest {
  std::string prefix;
  std::string suffix;
  std::optional<monitors::Language>
      language;                       // nullopt: no monitors, and the output ends with its line
  std::string repo;                   // the folder that the file belongs to
  std::string cache;                  // monitors::MonitorOptions::cache
  std::string java_home;              // monitors::MonitorOptions::java_home
  std::string file;                   // its name, for a language server; may be empty
  std::vector<std::string> monitors;  // by name; empty: all
  bool use_monitors = true;
  // The suffix counts as written: names that it declares are known, and a tail that repeats its
  // beginning is cut off.
  bool suffix_aware = false;
  int max_tokens = 64;
  // Of prefix and suffix together; 0: what the context leaves. Fewer are read sooner.
  int max_prompt_tokens = 0;
  SamplingParams sampling;
  // Text that would break a file is cut to a beginning that does not.
  bool must_parse = false;
  // Bytes that the output has to begin with, such as the item that an editor has selected.
  std::string must_begin;
  // Self-infilling in place of the monitors (docs/search.md): at most so many rounds, where the
  // best token has less than this probability. The completion is one with which the file parses;
  // where there is none, or the model has no markers for a gap, the ordinary one. 0: off.
  int infill_loops = 0;
  double infill_threshold = 0.25;
  // What is begun at the end of the prefix may be spelled anew. Not where a grammar is about to
  // tell what the output looks like.
  bool heal = true;
  // Set by another thread: the completion is not wanted any more, and ends with the model's call.
  const std::atomic<bool>* stop = nullptr;
};

// A longer suffix is not asked about.
inline constexpr size_t kMostParsedSuffix = size_t{1} << 20;

struct CompletionPlan {
  std::string prefix;  // what the model reads; a name that is begun at its end is left out
  // So many bytes at the beginning of what the model writes stand in the text already.
  size_t skip = 0;
  std::shared_ptr<MonitorHost> host;
  MonitoredText text;
  // Under the monitors and, unless nullptr, a grammar.
  // `given_up`: as in MonitoredText.
  std::shared_ptr<const Constraint> ConstraintWith(
      std::shared_ptr<const Constraint> grammar,
      std::shared_ptr<std::atomic<uint64_t>> given_up = nullptr) const;
};

// Thread safety: any number of calls at a time.
class CompletionPlanner {
 public:
  // `server`: a language server that is asked too (lsp/server.h).
  explicit CompletionPlanner(std::shared_ptr<const Vocabulary> vocabulary,
                             std::shared_ptr<monitors::LspServer> server = nullptr);
  // Errors: kInvalid, place "monitors".
  Result<CompletionPlan> Plan(const CompletionRequest& request);
  // The names that may stand at the cursor (name_list.h), without a model. Errors: those of Plan.
  // Throws Stopped (StopScope).
  Result<PlaceNames> NamesAt(const CompletionRequest& request);
  // Files of repositories have changed, come or gone.
  void FilesChanged(const std::vector<std::string>& files);

 private:
  Result<std::shared_ptr<MonitorHost>> HostOf(const CompletionRequest& request);
  struct Kept {
    std::string key;
    std::shared_ptr<MonitorHost> host;
  };
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const std::shared_ptr<monitors::LspServer> server_;
  std::mutex mutex_;
  std::vector<Kept> kept_;  // least recently used first
};

// What a model writes, cut to the completion.
class CompletionOutput {
 public:
  CompletionOutput(const CompletionRequest& request, const CompletionPlan& plan);
  // Bytes of the next token. false: the completion ends with, or in, them.
  bool Add(std::string_view bytes);
  // Grows with each Add; Finish may cut it.
  const std::string& text() const { return text_; }
  bool ended() const { return ended_; }  // at the end of a statement or block
  // After the last: cuts bytes that are no whole character and, with suffix_aware, what the suffix
  // repeats.
  void Finish();
  // The last gate. false: prefix, text and suffix together have a syntax error. Where nothing
  // follows, brackets of the prefix may stay open.
  bool Parses() const;
  // The three have no syntax error at all; without a suffix, what is open may stay open. True where
  // a parser cannot tell.
  bool ParsesWhole() const;
  // Where the file does not parse with the text, and would with another one: cuts the text to the
  // longest beginning with which it does, at the end of a name or bracket outside of what the text
  // has opened. false: there is none.
  bool CutToParse();

 private:
  // Parses, or the file has a syntax error that is not the text's.
  bool BreaksNothing() const;

  const CompletionRequest& request_;
  StatementEnd end_;
  size_t skip_;
  std::string text_;
  bool ended_ = false;
};

struct CompletionResult {
  std::string text;
  bool ended = false;  // at the end of a statement or block; false: the budget was spent
  bool parses = true;  // see CompletionOutput::Parses
  int tokens = 0;
  int refused = 0;  // tokens that the model wanted and a monitor refused
  uint64_t points = 0, constrained = 0;
  uint64_t given_up = 0;  // questions that a limit of the monitors ended
  double monitor_seconds = 0, model_seconds = 0;
  GenerationStats stats;
  // Limits of the repository and the class path that were reached, in words.
  std::vector<std::string> limits;
};

// Thread safety: one call at a time.
class CodeCompleter {
 public:
  explicit CodeCompleter(Engine engine, std::shared_ptr<monitors::LspServer> server = nullptr);
  // Errors: kInvalid (sampling parameters, monitors, prompt), kLimit (the context), and what the
  // model reports.
  Result<CompletionResult> Complete(const CompletionRequest& request);
  // The names that may stand at the cursor, the most probable first. Errors: those of Complete.
  // Throws Stopped where options.stop was set.
  Result<NameList> Names(const CompletionRequest& request, const NameListOptions& options = {});
  void FilesChanged(const std::vector<std::string>& files) { planner_.FilesChanged(files); }

 private:
  // Positions behind the prompt, for the tokens of names.
  static constexpr int kRoomForNames = 64;
  std::vector<TokenId> PromptOf(std::string prefix, std::string suffix, size_t room) const;
  // nullopt: no candidate parses.
  Result<std::optional<Generation>> SelfInfill(const CompletionRequest& request,
                                               const CompletionPlan& plan,
                                               const EngineRequest& asked);
  Engine engine_;
  CompletionPlanner planner_;
  std::unique_ptr<NameSpellings> spellings_;  // made with the first list
};

}  // namespace pawl::completion

#endif  // PAWL_SRC_COMPLETION_COMPLETION_H_
