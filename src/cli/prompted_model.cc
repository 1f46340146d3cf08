// The prompt is read before anything is loaded, the tokenizer before the weights: what is wrong is
// told as soon as it can be known.
#include "src/cli/prompted_model.h"

#include <limits>
#include <utility>

#include "src/cli/command.h"
#include "src/cli/options.h"

namespace pawl::cli {

void PromptedModelFlags::AddPromptTo(CLI::App* command) {
  command->add_option("--model", model, "Model folder or GGUF file (default: the model that ships)")
      ->check(NotEmpty)
      ->type_name("PATH");
  auto* given = command->add_option("--prompt", prompt, "The prompt")->type_name("TEXT");
  auto* file =
      command->add_option("--prompt-file", prompt_file, "File with the prompt; -: standard input")
          ->check(NotEmpty)
          ->type_name("FILE")
          ->excludes(given);
  chat.AddTo(command, {given, file});
}

void PromptedModelFlags::AddModelTo(CLI::App* command) {
  command->add_option("--dtype", dtype, "How weights are kept in memory")
      ->check(CLI::IsMember(DtypeNames()))
      ->type_name("TYPE")
      ->capture_default_str();
  device.AddTo(command);
  command->add_option("--threads", threads, "Threads; 0: all cores")
      ->transform(WholeNumber(0, 1024))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--special", special,
                    "Special tokens written out in the prompt become those tokens");
}

Result<Prompted> PromptedModelFlags::Load(const std::string& command) const {
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
  Result<Text> text = LoadText(command, *folder);
  if (!text.ok()) return text.error();
  Result<PromptTemplate> layout = LoadPromptTemplate(*folder, *text->tokenizer);
  if (!layout.ok()) return layout.error();
  Prompted prompted{*std::move(folder), *std::move(text), *std::move(layout), {}};
  const Tokenizer& tokenizer = *prompted.text.tokenizer;
  // What is wrong with the model's description is told with its weights.
  const Result<int> known = ContextLengthOf(prompted.folder);
  const int context = known.ok() ? *known : std::numeric_limits<int>::max();
  if (!chat.any()) {
    Result<std::vector<TokenId>> tokens =
        EncodeText(tokenizer, prompted.layout, said, special, context);
    if (!tokens.ok()) return InFile("the prompt", tokens.error());
    prompted.tokens = *std::move(tokens);
    return prompted;
  }
  // A chat template writes the beginning itself.
  Result<ChatPrompt> rendered = chat.Render(prompted.folder, tokenizer, said, context);
  if (!rendered.ok()) return rendered.error();
  prompted.tokens = std::move(rendered->tokens);
  return prompted;
}

Result<std::unique_ptr<Model>> PromptedModelFlags::LoadWeightsOf(const std::string& command,
                                                                 const Prompted& prompted) const {
  Result<std::unique_ptr<Model>> loaded =
      LoadWeights(command, prompted.folder, threads, dtype, device);
  if (!loaded.ok()) return loaded.error();
  if (Status status = CheckBos(prompted.layout, *prompted.text.tokenizer,
                               (*loaded)->info().vocabulary_size, prompted.folder);
      !status.ok()) {
    return status.error();
  }
  return loaded;
}

}  // namespace pawl::cli
