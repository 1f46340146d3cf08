// --chat, --messages and their companions: prompts made by the model's chat template.
#ifndef PAWL_SRC_CLI_CHAT_H_
#define PAWL_SRC_CLI_CHAT_H_

#include <CLI/CLI.hpp>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/engine.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/engine/output_plan.h"
#include "src/text/tokenizer.h"

namespace pawl::cli {

struct ChatPrompt {
  std::string text;
  std::vector<TokenId> tokens;
  ModelTraits traits;  // of the template
  std::string source;  // what fields are copied from (src/engine/message_source.h)
};

struct ChatFlags {
  bool chat = false;  // the prompt is what the user says
  std::string system;
  std::string messages_file;
  std::string template_file;
  std::string template_name;
  std::vector<std::string> arguments;  // NAME=JSON
  std::string now;
  bool trust = false;

  // `text`: the options that give a text, which --messages excludes.
  void AddTo(CLI::App* command, const std::vector<CLI::Option*>& text);
  bool any() const { return chat || has_messages(); }
  bool has_messages() const { return !messages_file.empty(); }
  Status Check() const;
  // `path`: the model's folder or GGUF file, or a tokenizer.json. `user`: with --chat, what the
  // user says. `max_tokens`: the model's context, which bounds the prompt (EncodeChatWithin).
  // `thinking`: what the template is told. `last`: in place of the last text of the user.
  Result<ChatPrompt> Render(const std::string& path, const Tokenizer& tokenizer,
                            std::string_view user, int max_tokens = std::numeric_limits<int>::max(),
                            const Thinking& thinking = {},
                            const std::optional<std::string>& last = std::nullopt) const;
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_CHAT_H_
