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
#include "pawl/sampling.h"
#include "schemas/grammar_cache.h"
#include "src/base/source_text.h"
#include "src/cli/diffusion_flags.h"
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
  std::vector<ExtractExample> examples;  // in place of those of the file
  std::string view;                      // empty: not given
  std::string repetition = "close";
  std::string contrast;  // empty: none
  std::optional<double> prefer_text;
  int free_first = 0;
  ThinkingFlags thinking;
  DiffusionFlags diffusion;

  // All but the marks and the file of thoughts.
  void AddTo(CLI::App* command);
  // Errors name the option.
  Status Check() const;
  // The examples, and the lines of those of --examples. Errors name the file and the line.
  Result<std::vector<ExtractExample>> ReadExamplesFile(std::vector<int>& lines) const;
};

// --check, --retries and --sampler: records that have to pass, and what is tried where they do not.
struct RetryFlags {
  std::vector<std::string> checks;
  double check_timeout = 5;
  int retries = 0;
  std::string sampler;

  void AddTo(CLI::App* command);
  // Errors name the option.
  Status Check(const ExtractSetting& setting) const;
};

// What the tries of records have cost.
struct TryCounts {
  int64_t calls = 0, prompt_tokens = 0, output_tokens = 0;
  void Add(const GenerationStats& stats);
};

// The model, and what concerns all settings.
struct ExtractFlags {
  GrammarFlags grammar{LayoutFlags::ForExtract()};  // its layout is not used: that of `setting` is
  ExtractSetting setting;
  RetryFlags retry;
  std::string template_file;
  std::string model;
  int threads = 0;
  std::string dtype = "stored";
  DeviceFlags device;
  LoraFlag lora;
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
  // `alternatives`: those of details are wanted.
  void Add(const EngineRequest& request, const std::function<void(Result<Generation>)>& done,
           bool alternatives = true);
  bool Step() { return engine_->Step(); }
  // One draw of a sampler, waited for.
  Result<SamplerResult> Sample(const EngineRequest& request, const SamplerOptions& options);
  // REQUIRES: LoadWeights.
  Engine& engine() { return *engine_; }
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
  // `place`: how errors call the schema. Errors: of the schema, the examples, the checks and the
  // prompt.
  static Result<std::unique_ptr<Extractor>> Create(ExtractEngine& engine, const ExtractFlags& flags,
                                                   const ExtractSetting& setting,
                                                   const std::string& schema,
                                                   const std::string& place);
  // `source`: how errors call the text. `done`: as of ExtractEngine::Add. Where a check refuses the
  // record, the next try begins; after the last one that is an error.
  // `longest`: of strings, in characters; 0: as long as the text. `cuts`: of words at its ends.
  void Add(std::string_view text, const std::string& source,
           std::function<void(Result<Generation>)> done, int64_t longest = 0,
           const TextCuts& cuts = {});
  // The schema with strings of so many characters. Kept for the lengths met last.
  Result<Grammar> GrammarFor(int64_t longest);
  const LoadedModel& model() const { return engine_.model(); }
  const GenerateOptions& options() const { return request_.options; }
  // Compact JSON.
  const std::string& schema() const { return request_.extract->schema; }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<ExtractExample>& examples() const { return request_.extract->examples; }
  // Each setting with its value and where it comes from.
  const std::vector<ExtractDefault>& settings() const { return settings_; }
  bool has_checks() const { return !checks_.empty(); }
  const TryCounts& first_tries() const { return first_tries_; }
  const TryCounts& retries() const { return retries_; }
  // GenerateOptions::mask_surprise, where the model leaves its logits here.
  void WantMaskSurprise();
  // GenerateOptions::details.
  void WantDetails(bool alternatives) {
    request_.options.details = true;
    alternatives_ = alternatives;
  }

 private:
  // A text on its way to a record.
  struct Try {
    EngineRequest request;
    std::string source;
    std::function<void(Result<Generation>)> done;
    int number = 0;         // of the try; 0: the first one
    GenerationStats stats;  // of those before
    bool of_document = false;
  };

  Extractor(ExtractEngine& engine, const GrammarFlags& grammar_flags, Grammar grammar)
      : engine_(engine), grammar_flags_(grammar_flags), grammar_(std::move(grammar)) {}
  Status MakeChecks(const RetryFlags& retry);
  Status PlanPrompt(const ExtractSetting& setting);
  void ListSettings(const ExtractSetting& setting);
  void Start(const std::shared_ptr<Try>& one);
  Result<Generation> Draw(const EngineRequest& request);
  Result<Generation> Contrast(const EngineRequest& request);
  void End(const std::shared_ptr<Try>& one, Result<Generation> output);
  // What the checks have against a record; empty: nothing. Errors: those of the checks.
  Result<std::string> ProblemOf(const Generation& output) const;

  ExtractEngine& engine_;
  GrammarFlags grammar_flags_;
  Grammar grammar_;  // for texts of up to MaxStringFor("") characters, or for all
  bool fixed_max_string_ = false;
  GrammarCache long_grammars_{32};
  EngineRequest request_;  // what all texts have in common
  std::string grammar_source_;
  std::vector<std::string> notes_;
  std::vector<ExtractDefault> settings_;
  std::vector<int> example_lines_;
  std::vector<std::shared_ptr<const Check>> checks_;
  std::vector<std::string> check_names_;
  int most_retries_ = 0;
  std::optional<SamplerKind> sampler_;
  std::string contrast_;
  bool alternatives_ = true;
  TryCounts first_tries_, retries_;
};

// What --stats says of settings and tries, and the same as members of a JSON object.
std::vector<std::string> SettingNotes(const Extractor& extractor);
std::string SettingsJson(const Extractor& extractor);

// What is to say of an output, as notes: why it was closed, and what its engine says.
std::vector<std::string> NotesOn(const Generation& output, const Extractor& extractor);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_EXTRACTOR_H_
