// What `pawl eval` and `pawl tune` share: texts whose records are known, and a run of all of them
// under one setting.
#ifndef PAWL_SRC_CLI_EVAL_PASS_H_
#define PAWL_SRC_CLI_EVAL_PASS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "src/cli/extractor.h"
#include "src/cli/progress.h"
#include "src/cli/record_report.h"
#include "src/eval/eval_data.h"
#include "src/eval/eval_report.h"

namespace pawl::cli {

// The texts, and the model.
struct EvalTexts {
  ExtractFlags extract;
  std::string data;
  std::vector<std::string> where;
  uint64_t limit = 0;
  bool no_surprise = false;

  // --data, --where, --limit.
  void AddTo(CLI::App* command);
  // Errors name the option, or the file and the line.
  Result<std::vector<eval::EvalText>> Read() const;
};

struct EvalInput {
  std::unique_ptr<ExtractEngine> engine;
  std::string schema, schema_place;
};
Result<EvalInput> OpenModelAndSchema(const char* command, const EvalTexts& flags);

// All texts under one setting.
class EvalPass {
 public:
  EvalPass(const EvalTexts& flags, ExtractEngine& engine, const ExtractSetting& setting,
           const std::vector<eval::EvalText>& texts)
      : flags_(flags), engine_(engine), setting_(setting), texts_(texts) {}

  // What is wrong with the setting or a schema.
  Status Prepare(const std::string& schema, const std::string& schema_place);
  // The next run writes its texts there, in their order, as documents of this setting.
  void ReportTo(RecordReport* report, size_t setting);
  // Errors of the report. Texts without a record are counted.
  // REQUIRES: Prepare, and the engine has its weights.
  Result<eval::EvalRun> Run(const std::string& name, Progress& progress);
  // A line for each text of the last run.
  std::string RecordLines() const;

 private:
  struct Schema {
    std::unique_ptr<Extractor> extractor;
    eval::FieldMetrics metrics;
  };
  void Take(size_t i, Result<Generation> output, eval::EvalRun& run);
  void Tell(size_t i, const Result<Generation>& output, const std::string& record,
            const std::vector<eval::FieldVerdict>& verdicts);

  const EvalTexts& flags_;
  ExtractEngine& engine_;
  const ExtractSetting& setting_;
  const std::vector<eval::EvalText>& texts_;
  std::map<std::string, std::unique_ptr<Schema>> schemas_;
  std::vector<Schema*> of_text_;
  std::vector<std::string> outputs_;
  RecordReport* report_ = nullptr;
  size_t report_setting_ = 0, reported_ = 0;           // texts that are written
  std::map<size_t, std::vector<std::string>> blocks_;  // of texts that wait for those before them
  Status report_status_;
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_EVAL_PASS_H_
