// `pawl score`: how probable a model finds tokens, or a text as its tokenizer spells it.
#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>

#include "src/cli/chat.h"
#include "src/cli/command.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"
#include "src/cli/sampler_flags.h"
#include "src/decode/sampling/run.h"
#include "src/engine/prompt.h"

namespace pawl::cli {
namespace {

constexpr const char* kName = "score";

struct Flags {
  std::string model;
  std::optional<std::string> prompt;
  std::string prompt_file;
  ChatFlags chat;
  std::optional<std::string> text, tokens;
  double temperature = 1;
  bool end = false;
  bool special = false;
  bool json = false;
  int threads = 0;
  std::string dtype = "stored";
  DeviceFlags device;
};

Result<std::vector<TokenId>> PromptOf(const Flags& flags, const std::string& folder,
                                      const Text& text, const PromptTemplate& layout) {
  std::string prompt;
  if (flags.chat.has_messages()) {
    // The messages are read with the template.
  } else if (flags.prompt.has_value()) {
    prompt = *flags.prompt;
  } else {
    Result<std::string> read = ReadInput(flags.prompt_file.empty() ? "-" : flags.prompt_file);
    if (!read.ok()) return read.error();
    prompt = *std::move(read);
  }
  if (Status status = CheckUtf8(prompt); !status.ok()) {
    return InFile("the prompt", status.error());
  }
  if (!flags.chat.any()) return EncodeText(*text.tokenizer, layout, prompt, flags.special);
  Result<ChatPrompt> chat = flags.chat.Render(folder, *text.tokenizer, prompt);
  if (!chat.ok()) return chat.error();
  return std::move(chat->tokens);
}

int Score(const Flags& flags) {
  if (Status status = flags.chat.Check(); !status.ok()) return Fail(kName, status.error());
  if (flags.text.has_value() == flags.tokens.has_value()) {
    return Fail(kName, Error{ErrorCode::kInvalid, "one of --text and --tokens is wanted", ""});
  }
  Result<std::string> folder = FindModelFolder(flags.model);
  if (!folder.ok()) return Fail(kName, folder.error());
  Result<Text> text = LoadText(kName, *folder);
  if (!text.ok()) return Fail(kName, text.error());
  Result<PromptTemplate> layout = LoadPromptTemplate(*folder, *text->tokenizer);
  if (!layout.ok()) return Fail(kName, layout.error());
  const Result<std::vector<TokenId>> prompt = PromptOf(flags, *folder, *text, *layout);
  if (!prompt.ok()) return Fail(kName, prompt.error());
  Result<std::unique_ptr<Model>> model =
      LoadWeights(kName, *folder, flags.threads, flags.dtype, flags.device);
  if (!model.ok()) return Fail(kName, model.error());
  const int width = (*model)->info().vocabulary_size;
  if (Status status = CheckBos(*layout, *text->tokenizer, width, *folder); !status.ok()) {
    return Fail(kName, status.error());
  }
  std::vector<TokenId> tokens;
  if (flags.text.has_value()) {
    if (Status status = CheckUtf8(*flags.text); !status.ok()) {
      return Fail(kName, InFile("--text", status.error()));
    }
    tokens = text->tokenizer->Encode(*flags.text);
  } else {
    Result<std::vector<TokenId>> ids = ParseTokenIds(*flags.tokens, width, "--tokens");
    if (!ids.ok()) return Fail(kName, ids.error());
    tokens = *std::move(ids);
  }
  if (flags.end) {
    if (text->vocabulary->end_tokens().empty()) {
      return Fail(kName, Error{ErrorCode::kInvalid, "the model has no end token", "--end"});
    }
    tokens.push_back(text->vocabulary->end_tokens()[0]);
  }
  const Result<std::vector<double>> scores =
      ScoreTokens(**model, *prompt, tokens, flags.temperature);
  if (!scores.ok()) {
    Error error = scores.error();
    if (error.place == "prompt") error.place = "the prompt";
    if (error.place == "tokens") error.place = flags.text.has_value() ? "--text" : "--tokens";
    if (error.place == "temperature") error.place = "--temperature";
    return Fail(kName, error);
  }
  const double sum = std::accumulate(scores->begin(), scores->end(), 0.0);
  if (!flags.json) {
    Print(fmt::format("{}\n", sum));
    return kExitOk;
  }
  std::string ids, each;
  for (size_t i = 0; i < tokens.size(); ++i) {
    ids += fmt::format("{}{}", i > 0 ? "," : "", tokens[i]);
    each += fmt::format("{}{}", i > 0 ? "," : "", (*scores)[i]);
  }
  Print(fmt::format("{{\"log_probability\":{},\"tokens\":[{}],\"log_probabilities\":[{}]}}\n", sum,
                    ids, each));
  return kExitOk;
}

}  // namespace

void AddScore(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kName, "The log-probability of tokens, or of a text, after a prompt");
  const auto flags = std::make_shared<Flags>();
  command
      ->add_option("--model", flags->model,
                   "Model folder or GGUF file (default: the model that ships)")
      ->check(NotEmpty)
      ->type_name("PATH");
  auto* prompt = command->add_option("--prompt", flags->prompt, "The prompt")->type_name("TEXT");
  auto* prompt_file = command
                          ->add_option("--prompt-file", flags->prompt_file,
                                       "File with the prompt; -: standard input")
                          ->check(NotEmpty)
                          ->type_name("FILE")
                          ->excludes(prompt);
  flags->chat.AddTo(command, {prompt, prompt_file});
  command->add_option("--text", flags->text, "The text, in the tokenizer's spelling")
      ->type_name("TEXT");
  command->add_option("--tokens", flags->tokens, "Token ids, as generate --json-lines has them")
      ->type_name("IDS");
  command->add_flag("--end", flags->end, "And the end token behind them");
  command->add_option("--temperature", flags->temperature, "Of the model's distribution")
      ->type_name("T")
      ->capture_default_str();
  command->add_flag("--special", flags->special,
                    "Special tokens written out in the prompt become those tokens");
  command->add_option("--dtype", flags->dtype, "How weights are kept in memory")
      ->check(CLI::IsMember(DtypeNames()))
      ->type_name("TYPE")
      ->capture_default_str();
  flags->device.AddTo(command);
  command->add_option("--threads", flags->threads, "Threads; 0: all cores")
      ->transform(WholeNumber(0, 1024))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print JSON, token by token");
  command->footer("Example:\n  pawl score --prompt \"A colour: \" --text red");
  command->callback([flags, &action] { action = [flags] { return Score(*flags); }; });
}

}  // namespace pawl::cli
