// Code completion: a model continues a prefix, before a suffix, under the monitors of its language.
//
//   CodeCompleter completer(*model, tokenizer, vocabulary, layout);
//   auto done = completer.Complete({.prefix = "const xs = [1];\nxs.", .suffix = "\n", .language =
//   Language::kTypeScript}); done->text;                                    // "length;"
//
// Thread safety: one call at a time.
#ifndef PAWL_PLUGINS_MONITORS_COMPLETE_H_
#define PAWL_PLUGINS_MONITORS_COMPLETE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/generation.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "plugins/monitors/monitor.h"
#include "src/engine/prompt.h"
#include "src/model/model.h"
#include "src/text/tokenizer.h"

namespace pawl::monitors {

struct CompletionRequest {
  std::string prefix;
  std::string suffix;
  std::optional<Language> language;   // nullopt: no monitors, and the output ends with its line
  std::string repo;                   // the folder that the file belongs to
  std::vector<std::string> monitors;  // by name; empty: all
  bool use_monitors = true;
  // The suffix counts as written: names that it declares are known, and a tail that repeats its
  // beginning is cut off.
  bool suffix_aware = false;
  int max_tokens = 64;
  SamplingParams sampling;
  // Bytes that the output has to begin with, such as the item that an editor has selected.
  std::string must_begin;
};

struct CompletionResult {
  std::string text;
  bool ended = false;  // at the end of a statement or block; false: the budget was spent
  bool parses =
      true;  // prefix, text and suffix together have no syntax error that was not there before
  int tokens = 0;
  int refused = 0;  // tokens that the model wanted and a monitor refused
  uint64_t points = 0, constrained = 0;
  double monitor_seconds = 0, model_seconds = 0;
};

class CodeCompleter {
 public:
  // All must outlive it. `layout`: of the model's folder.
  CodeCompleter(Model& model, std::shared_ptr<const Tokenizer> tokenizer,
                std::shared_ptr<const Vocabulary> vocabulary, PromptTemplate layout);
  ~CodeCompleter();
  // Errors: kInvalid (sampling parameters, monitors, prompt), kLimit (the context), and what the
  // model reports.
  Result<CompletionResult> Complete(const CompletionRequest& request);

 private:
  Result<MonitorSet*> SetOf(const CompletionRequest& request);
  Model& model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  PromptTemplate layout_;
  struct Kept;
  std::vector<Kept> kept_;  // monitors of the last requests, least recently used first
};

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_COMPLETE_H_
