// A model and what it is to go on from: the options that `pawl generate` and `pawl score` share.
#ifndef PAWL_SRC_CLI_PROMPTED_MODEL_H_
#define PAWL_SRC_CLI_PROMPTED_MODEL_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/cli/chat.h"
#include "src/cli/engine.h"
#include "src/cli/thinking_flags.h"
#include "src/engine/prompt.h"
#include "src/model/model.h"

namespace pawl::cli {

// A model without its weights yet, and the prompt in its tokens.
struct Prompted {
  std::unique_ptr<LoadedModel> model;
  std::vector<TokenId> tokens;
  ThoughtPlan thoughts = {};
  std::string source = {};             // of a chat: what fields are copied from
  std::vector<TokenId> contrast = {};  // of a chat: those of the other prompt
  std::string note = {};  // of thoughts that the prompt opens and nothing closes; empty: none
};

// --model, --prompt, --prompt-file, --special, those of chats, and how the model runs.
struct PromptedModelFlags {
  std::string model;
  std::optional<std::string> prompt;
  std::string prompt_file;
  ChatFlags chat;
  ThinkingFlags thinking;
  bool special = false;
  int threads = 0;
  std::string dtype = "stored";
  DeviceFlags device;
  LoraFlag lora;

  // What names the model and the prompt, and how the model runs: two groups, so that a command's
  // own options may stand between them.
  void AddPromptTo(CLI::App* command);
  void AddModelTo(CLI::App* command);
  // `free_first`: free text stands before the output, which --reasoning may be for.
  Status Check(bool free_first = false) const;
  // Without the weights, so that what is wrong elsewhere can be told before they are loaded.
  // `contrast`: of a chat, what the user says last in the other prompt.
  Result<Prompted> Load(const std::string& command,
                        const std::optional<std::string>& contrast = std::nullopt) const;
  Status LoadWeightsOf(const std::string& command, Prompted& prompted) const;
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_PROMPTED_MODEL_H_
