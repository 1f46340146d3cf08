// What `pawl extract` and `pawl eval` share: the options of extraction, and an engine that makes
// records of texts.
#ifndef PAWL_SRC_CLI_EXTRACTOR_H_
#define PAWL_SRC_CLI_EXTRACTOR_H_

#include <CLI/CLI.hpp>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/engine.h"
#include "pawl/result.h"
#include "schemas/grammar_cache.h"
#include "src/cli/draft_flags.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"
#include "src/cli/thinking_flags.h"
#include "src/engine/loaded_model.h"

namespace pawl::cli {

// How records are asked for and written: what a setting of `pawl eval` may change.
struct ExtractSetting {
  LayoutFlags layout = LayoutFlags::ForExtract();
  SamplingFlags sampling{4096};
  std::string instruction;
  std::string examples_file;
  std::string view = "auto";
  std::string repetition = "close";
  ThinkingFlags thinking;

  // All but the marks and the file of thoughts.
  void AddTo(CLI::App* command);
  // Errors name the option.
  Status Check() const;
  // The texts and records of --examples. Errors name the file and the line.
  Result<std::vector<ExtractExample>> ReadExamplesFile() const;
};

// The model, and what concerns all settings.
struct ExtractFlags {
  GrammarFlags grammar{LayoutFlags::ForExtract()};  // its layout is not used: that of `setting` is
  ExtractSetting setting;
  std::string template_file;
  std::string model;
  int threads = 0;
  std::string dtype = "stored";
  DeviceFlags device;
  int batch = 8;
  bool stats = false;
  std::string stats_json;
  DraftFlags drafts;

  // The options of the schema, the model and the records; not the file of thoughts.
  void AddTo(CLI::App* command);
  Status Check() const;
  // The JSON Schema of --schema, or of --template.
  Result<std::string> ReadSchemaText() const;
};

// The model, and from its weights on the engine. Settings and schemas come and go.
class ExtractEngine {
 public:
  // Reads everything but the weights.
  static Result<std::unique_ptr<ExtractEngine>> Open(const char* command,
                                                     const ExtractFlags& flags);
  Status LoadWeights(const ExtractFlags& flags, int batch);
  const char* command() const { return command_; }
  const LoadedModel& model() const;
  const std::optional<std::tm>& now() const { return now_; }
  // `done` is called in a later Step, or at once where the request is wrong. REQUIRES: LoadWeights.
  void Add(const EngineRequest& request, const std::function<void(Result<Generation>)>& done);
  bool Step() { return engine_->Step(); }
  // Texts that have no output yet.
  int running() const { return running_; }
  // What is kept for later runs. Errors: kIo.
  Status Save() { return engine_->SaveDraftHistory(); }
  // Where --thinking changes nothing: says so once.
  void TellOfThinking(const ThinkingFlags& flags, const ThoughtPlan& plan);

 private:
  explicit ExtractEngine(const char* command) : command_(command) {}
  const char* const command_;
  std::unique_ptr<LoadedModel> model_;              // until its weights are read
  const std::optional<std::tm> now_ = LocalTime();  // of all prompts of this run
  std::optional<Engine> engine_;
  int running_ = 0;
  bool told_of_thinking_ = false;
};

// One schema under one setting.
class Extractor {
 public:
  // `place`: how errors call the schema. Errors: of the schema, the examples, and the prompt.
  static Result<std::unique_ptr<Extractor>> Create(ExtractEngine& engine, const ExtractFlags& flags,
                                                   const ExtractSetting& setting,
                                                   const std::string& schema,
                                                   const std::string& place);
  // `source`: how errors call the text. `done`: as of ExtractEngine::Add.
  void Add(std::string_view text, const std::string& source,
           std::function<void(Result<Generation>)> done);
  const std::vector<std::string>& notes() const { return notes_; }
  // GenerateOptions::mask_surprise, where the model leaves its logits here.
  void WantMaskSurprise();

 private:
  Extractor(ExtractEngine& engine, const GrammarFlags& grammar_flags, Grammar grammar)
      : engine_(engine), grammar_flags_(grammar_flags), grammar_(std::move(grammar)) {}
  Status PlanPrompt(const ExtractSetting& setting);
  // The schema with strings that are as long as the text at most. Kept for the lengths met last.
  Result<Grammar> GrammarFor(std::string_view text);

  ExtractEngine& engine_;
  GrammarFlags grammar_flags_;
  Grammar grammar_;  // for texts of up to MaxStringFor("") characters, or for all
  bool fixed_max_string_ = false;
  GrammarCache long_grammars_{32};
  EngineRequest request_;  // what all texts have in common
  std::string grammar_source_;
  std::vector<std::string> notes_;
};

// Why an output was closed, as a note.
std::string ClosedNote(const Generation& output);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_EXTRACTOR_H_
