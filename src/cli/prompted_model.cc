// The prompt is read before anything is loaded, the tokenizer before the weights: what is wrong is
// told as soon as it can be known.
#include "src/cli/prompted_model.h"

#include <utility>

#include "src/base/utf8.h"
#include "src/cli/command.h"
#include "src/cli/options.h"

namespace pawl::cli {

void PromptedModelFlags::AddPromptTo(CLI::App* command) {
  TextOption(command, "--model", model, "MODEL", kModelHelp);
  auto* given = command->add_option("--prompt", prompt, "The prompt")->type_name("TEXT");
  auto* file = TextOption(command, "--prompt-file", prompt_file, "FILE",
                          "File with the prompt; -: standard input")
                   ->excludes(given);
  chat.AddTo(command, {given, file});
}

void PromptedModelFlags::AddModelTo(CLI::App* command) {
  ChoiceOption(command, "--dtype", dtype, DtypeNames(), "TYPE", "How weights are kept in memory");
  device.AddTo(command);
  lora.AddTo(command);
  CountOption(command, "--threads", threads, 0, 1024, "Threads; 0: all cores");
  command->add_flag("--special", special,
                    "Special tokens written out in the prompt become those tokens");
}

Status PromptedModelFlags::Check(bool free_first) const {
  if (Status status = chat.Check(); !status.ok()) return status;
  const bool of_free_text = free_first && thinking.thinking.empty() && thinking.marks.empty();
  if (thinking.given() && !chat.any() && !of_free_text) {
    return Error{ErrorCode::kInvalid,
                 "--thinking, --reasoning-marks and --reasoning need --chat or --messages", ""};
  }
  return thinking.Check();
}

Result<Prompted> PromptedModelFlags::Load(const std::string& command,
                                          const std::optional<std::string>& contrast) const {
  std::string said;
  if (chat.has_messages()) {
    // The messages are read with the template.
  } else if (prompt.has_value()) {
    said = *prompt;
  } else {
    Result<std::string> read = ReadInput(prompt_file.empty() ? "-" : prompt_file);
    if (!read.ok()) return read.error();
    said = *std::move(read);
  }
  if (Status status = CheckUtf8(said); !status.ok()) return InFile("the prompt", status.error());
  Result<std::string> folder = FindModelFolder(model);
  if (!folder.ok()) return folder.error();
  Result<std::unique_ptr<LoadedModel>> opened = OpenModel(command, *folder);
  if (!opened.ok()) return opened.error();
  Prompted prompted{*std::move(opened), {}, {}};
  const LoadedModel& loaded = *prompted.model;
  if (!chat.any()) {
    Result<std::vector<TokenId>> tokens = loaded.EncodePlain(said, special);
    if (!tokens.ok()) return InFile("the prompt", tokens.error());
    prompted.tokens = *std::move(tokens);
    return prompted;
  }
  // A chat template writes the beginning itself.
  const Thinking asked = ThinkingFor(thinking.asked(), true);
  Result<ChatPrompt> rendered =
      chat.Render(loaded.path(), loaded.tokenizer(), said, loaded.context_length(), asked);
  if (!rendered.ok()) return rendered.error();
  if (contrast) {
    Result<ChatPrompt> other = chat.Render(loaded.path(), loaded.tokenizer(), said,
                                           loaded.context_length(), asked, contrast);
    if (!other.ok()) return other.error();
    prompted.contrast = std::move(other->tokens);
  }
  prompted.tokens = std::move(rendered->tokens);
  prompted.source = rendered->source.empty() ? " " : std::move(rendered->source);
  ModelTraits traits = std::move(rendered->traits);
  if (!thinking.marks.empty()) {
    traits.think_open = thinking.marks[0];
    traits.think_close = thinking.marks[1];
  }
  prompted.note = UnclosedNote(rendered->text, traits);
  prompted.thoughts = PlanThoughts(traits, ThinkingStartOf(rendered->text, traits), asked);
  return prompted;
}

Status PromptedModelFlags::LoadWeightsOf(const std::string& command, Prompted& prompted) const {
  return LoadWeights(command, *prompted.model, threads, dtype, device, lora);
}

}  // namespace pawl::cli
