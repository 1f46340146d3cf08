// `pawl generate`: continues a prompt, streaming, under at most one constraint.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "src/base/utf8.h"
#include "src/cli/chat.h"
#include "src/cli/command.h"
#include "src/cli/describe.h"
#include "src/cli/draft_flags.h"
#include "src/cli/engine.h"
#include "src/cli/gaps.h"
#include "src/cli/options.h"
#include "src/cli/report.h"
#include "src/cli/sampler_flags.h"
#include "src/decode/session.h"
#include "src/engine/prompt.h"

namespace pawl::cli {
namespace {

constexpr const char* kName = "generate";

struct Flags {
  GrammarFlags grammar{LayoutFlags::ForWriting()};
  SamplingFlags sampling{512};
  SamplerFlags sampler;
  std::string model;
  std::optional<std::string> prompt;
  std::string prompt_file;
  ChatFlags chat;
  int threads = 0;
  std::string dtype = "stored";
  DeviceFlags device;
  bool special = false;
  bool no_skip_forced = false;
  bool captures = false;
  bool stats = false;
  std::string stats_json;
  DraftFlags drafts;
};

// Passes bytes on as soon as they are whole code points.
class Stream {
 public:
  void Add(std::string_view bytes) {
    held_ += bytes;
    const size_t whole = CompleteUtf8Prefix(held_);
    if (whole == 0) return;
    Print(std::string_view(held_).substr(0, whole));
    held_.erase(0, whole);
  }
  void Finish() {
    Print(held_ + "\n");
    held_.clear();
  }

 private:
  std::string held_;
};

Result<std::vector<Capture>> CapturesOf(const Grammar& grammar, const Generation& output) {
  std::vector<OutputPiece> pieces;
  for (const TokenId token : output.tokens) pieces.push_back({.token = token});
  return grammar.FindCaptures(pieces);
}

// Says so where the budget ended the output.
void NoteStop(const Generation& output) {
  if (output.stop == StopReason::kClosed) {
    Note(kName,
         fmt::format("note: the budget of {} tokens was nearly spent, so the output was closed "
                     "in the shortest valid way",
                     output.stats.budget));
  }
  if (output.stop == StopReason::kLength) {
    Note(kName,
         fmt::format("note: the output was cut at the budget of {} tokens", output.stats.budget));
  }
}

int Generate(const Flags& flags) {
  if (Status status = flags.grammar.Check(); !status.ok()) return Fail(kName, status.error());
  if (Status status = flags.sampling.Check(); !status.ok()) return Fail(kName, status.error());
  if (Status status = flags.sampler.Check(flags.sampling); !status.ok()) {
    return Fail(kName, status.error());
  }
  if (flags.sampler.any() && (flags.captures || flags.grammar.combine.gap_count() > 1)) {
    return Fail(kName, Error{ErrorCode::kUnsupported, "cannot be used with --captures and --gap",
                             "--sampler"});
  }
  if (Status status = flags.chat.Check(); !status.ok()) return Fail(kName, status.error());
  if (Status status = flags.drafts.Check(); !status.ok()) return Fail(kName, status.error());
  if (flags.sampler.any() && (flags.drafts.options.sources != "off" || !flags.stats_json.empty())) {
    return Fail(kName, Error{ErrorCode::kUnsupported,
                             "cannot be used with --draft and --stats-json", "--sampler"});
  }
  if (!flags.stats_json.empty()) {
    if (Status status = CheckWritable(flags.stats_json); !status.ok()) {
      return Fail(kName, status.error());
    }
  }
  if (flags.captures && flags.grammar.combine.gap_count() > 1) {
    return Fail(kName, Error{ErrorCode::kInvalid, "speaks of one output, but --gap makes several",
                             "--captures"});
  }
  std::string prompt;
  if (flags.chat.has_messages()) {
    // The messages are read with the template.
  } else if (flags.prompt.has_value()) {
    prompt = *flags.prompt;
  } else {
    Result<std::string> read = ReadInput(flags.prompt_file.empty() ? "-" : flags.prompt_file);
    if (!read.ok()) return Fail(kName, read.error());
    prompt = *std::move(read);
  }
  if (Status status = CheckUtf8(prompt); !status.ok()) {
    return Fail(kName, InFile("the prompt", status.error()));
  }
  Result<std::string> folder = FindModelFolder(flags.model);
  if (!folder.ok()) return Fail(kName, folder.error());
  Result<Text> text = LoadText(kName, *folder);
  if (!text.ok()) return Fail(kName, text.error());
  std::vector<TokenId> chat_tokens;
  if (flags.chat.any()) {
    Result<ChatPrompt> chat = flags.chat.Render(*folder, *text->tokenizer, prompt);
    if (!chat.ok()) return Fail(kName, chat.error());
    chat_tokens = std::move(chat->tokens);
  }
  std::optional<Gaps> gaps;
  if (flags.grammar.any()) {
    Result<Gaps> created = Gaps::Create(flags.grammar, text->vocabulary);
    if (!created.ok()) return Fail(kName, created.error());
    flags.grammar.NoteAnnotations(kName, created->grammar());
    gaps = *std::move(created);
  }
  const bool several = gaps && gaps->several();
  if (flags.captures && (!gaps || !gaps->grammar().has_captures())) {
    return Fail(kName, Error{ErrorCode::kInvalid, "needs a grammar with captures", "--captures"});
  }
  Result<PromptTemplate> layout = LoadPromptTemplate(*folder, *text->tokenizer);
  if (!layout.ok()) return Fail(kName, layout.error());
  Result<std::unique_ptr<Model>> model =
      LoadWeights(kName, *folder, flags.threads, flags.dtype, flags.device);
  if (!model.ok()) return Fail(kName, model.error());
  if (Status status =
          CheckBos(*layout, *text->tokenizer, (*model)->info().vocabulary_size, *folder);
      !status.ok()) {
    return Fail(kName, status.error());
  }

  // A chat template writes the beginning itself.
  std::vector<TokenId> tokens = flags.chat.any()
                                    ? std::move(chat_tokens)
                                    : EncodeText(*text->tokenizer, *layout, prompt, flags.special);

  if (flags.sampler.any()) {
    return flags.sampler.Run(
        kName, {*folder, *text, **model, tokens, gaps ? &gaps->grammar() : nullptr, flags.grammar,
                flags.sampling, flags.threads, flags.stats});
  }
  Result<std::shared_ptr<Drafter>> drafter = flags.drafts.Make(*text, **model);
  if (!drafter.ok()) return Fail(kName, drafter.error());
  Session session(**model, text->vocabulary, EncoderOf(*text), *drafter);
  Stream stream;
  GenerateOptions options;
  options.sampling = flags.sampling.params;
  options.max_tokens = flags.sampling.max_tokens;
  options.skip_forced = !flags.no_skip_forced;
  if (!several) {
    options.on_token = [&](TokenId, std::string_view bytes) {
      stream.Add(bytes);
      return FlushOutput().ok();
    };
  }
  std::vector<std::string> outputs;
  GenerationStats stats;
  for (bool more = true; more;) {
    if (gaps) options.sampling.seed = gaps->SeedOf(flags.sampling.params.seed);
    Result<Generation> output =
        session.Generate(tokens, gaps ? MakeConstraint(gaps->grammar()) : nullptr, options);
    if (!output.ok()) {
      return Fail(kName, AtOption(output.error(), "the prompt", flags.grammar.source()));
    }
    Add(output->stats, stats);
    if (!several) {
      stream.Finish();
      if (flags.captures) {
        const auto captures = CapturesOf(gaps->grammar(), *output);
        if (!captures.ok()) return Fail(kName, captures.error());
        Print(CapturesJson(*captures) + "\n");
      }
      NoteStop(*output);
      break;
    }
    NoteStop(*output);
    outputs.push_back(output->text);
    Result<bool> next = gaps->Fill(output->text);
    if (!next.ok()) return Fail(kName, next.error());
    more = *next;
    // The model goes on behind what it wrote and the text that stands there.
    tokens.insert(tokens.end(), output->tokens.begin(), output->tokens.end());
    const std::vector<TokenId> behind = text->tokenizer->Encode(gaps->text_behind());
    tokens.insert(tokens.end(), behind.begin(), behind.end());
  }
  if (several) Print(OutputsLine(outputs));
  if (flags.stats) Note(kName, Describe(stats));
  if (!flags.stats_json.empty()) {
    if (Status status = WriteFile(flags.stats_json, StatsJson(stats)); !status.ok()) {
      return Fail(kName, status.error());
    }
  }
  if (*drafter != nullptr) {
    if (Status status = (*drafter)->Save(); !status.ok()) return Fail(kName, status.error());
  }
  return kExitOk;
}

}  // namespace

void AddGenerate(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kName, "Continue a prompt, under a constraint if one is given");
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
  flags->grammar.AddAllTo(command);
  flags->grammar.combine.AddGapsTo(command);
  flags->sampling.AddTo(command);
  flags->sampler.AddTo(command);
  command->add_option("--dtype", flags->dtype, "How weights are kept in memory")
      ->check(CLI::IsMember(DtypeNames()))
      ->type_name("TYPE")
      ->capture_default_str();
  flags->device.AddTo(command);
  command->add_option("--threads", flags->threads, "Threads; 0: all cores")
      ->transform(WholeNumber(0, 1024))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--special", flags->special,
                    "Special tokens written out in the prompt become those tokens");
  command->add_flag("--no-skip-forced", flags->no_skip_forced,
                    "Ask the model for every token, also where the text is forced (slower)");
  command->add_flag("--captures", flags->captures,
                    "Behind the text, a line of JSON: what the grammar's captures hold");
  command->add_flag("--stats", flags->stats, "Tokens and seconds on stderr");
  command->add_option("--stats-json", flags->stats_json, "The same as JSON, to this file")
      ->check(NotEmpty)
      ->type_name("FILE");
  flags->drafts.AddTo(command);
  command->footer(
      "Example:\n  pawl generate --prompt \"The answer is \" --regex \"(yes|no), [a-z ]{3,40}\" "
      "--temperature 0.8 --seed 7");
  command->callback([flags, &action] { action = [flags] { return Generate(*flags); }; });
}

}  // namespace pawl::cli
