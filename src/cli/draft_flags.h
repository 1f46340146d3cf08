// --draft and what belongs to it, for the commands that write outputs.
#ifndef PAWL_SRC_CLI_DRAFT_FLAGS_H_
#define PAWL_SRC_CLI_DRAFT_FLAGS_H_

#include <CLI/CLI.hpp>
#include <memory>

#include "pawl/generation.h"
#include "pawl/result.h"
#include "src/cli/engine.h"
#include "src/decode/draft/drafter.h"
#include "src/model/model.h"

namespace pawl::cli {

struct DraftFlags {
  DraftOptions options;
  void AddTo(CLI::App* command);
  // --draft-model alone.
  static void AddModels(CLI::App* command, std::vector<std::string>& models, const char* type,
                        const std::string& help);
  // What can be checked before a model is loaded. Errors name the option.
  Status Check() const;
  // The option that asked for drafts by name: --draft, or the one whose source `auto` takes.
  const char* asking() const;
  // nullptr where drafts are off. Errors name the option or the file.
  Result<std::shared_ptr<Drafter>> Make(LoadedModel& model) const;
  // An engine with these drafts. REQUIRES: the model has its weights.
  Result<Engine> MakeEngine(std::unique_ptr<LoadedModel> model, int max_batch = 1) const;

 private:
  // An option that says how drafts are made and has another value than its default; "": none.
  const char* manner() const;
  std::string command_;  // for notes
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_DRAFT_FLAGS_H_
