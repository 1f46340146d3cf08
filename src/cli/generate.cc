// `pawl generate`: continues a prompt, streaming, under at most one constraint.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "src/base/file.h"
#include "src/base/utf8.h"
#include "src/cli/canvas_picture.h"
#include "src/cli/command.h"
#include "src/cli/describe.h"
#include "src/cli/diffusion_flags.h"
#include "src/cli/draft_flags.h"
#include "src/cli/gaps.h"
#include "src/cli/options.h"
#include "src/cli/prompted_model.h"
#include "src/cli/report.h"
#include "src/cli/sampler_flags.h"
#include "src/cli/search_flags.h"
#include "src/engine/copied_text.h"
#include "src/engine/engine_parts.h"

namespace pawl::cli {
namespace {

constexpr const char* kGenerate = "generate";

struct GenerateFlags {
  GrammarFlags grammar{LayoutFlags::ForWriting()};
  SamplingFlags sampling{512};
  SamplerFlags sampler;
  SearchFlags search;
  PromptedModelFlags model;
  std::vector<std::string> stops;
  bool no_skip_forced = false;
  int free_first = 0;
  bool captures = false;
  bool stats = false;
  std::string stats_json;
  DraftFlags drafts;
  DiffusionFlags diffusion;
  std::string diffusion_svg;

  // A search asks the model in its own way.
  DraftFlags own_drafts() const {
    DraftFlags own = drafts;
    if (search.exact || search.any() || sampler.any()) own.options.sources = "off";
    return own;
  }

  // Texts stand behind the output, and a model that fills masks sees them in its canvas.
  bool texts_behind() const {
    const CombineFlags& combine = grammar.combine;
    const bool any =
        combine.gap_count() > 1 || !combine.suffixes.empty() || !combine.suffix_file.empty();
    return any && combine.words.empty();
  }
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

// Of the answer, which the thoughts stand before.
Result<std::vector<Capture>> CapturesOf(const Grammar& grammar, const Generation& output) {
  std::vector<OutputPiece> pieces;
  const auto thoughts = static_cast<size_t>(output.stats.reasoning_tokens);
  for (size_t i = thoughts; i < output.tokens.size(); ++i) {
    pieces.push_back({.token = output.tokens[i]});
  }
  return grammar.FindCaptures(pieces);
}

// Says so where the budget ended the output, or a limit did.
void NoteStop(const Generation& output) {
  for (const std::string& note : output.notes) Note(kGenerate, "note: " + note);
  if (output.stop == StopReason::kClosed && output.notes.empty()) {
    Note(kGenerate,
         fmt::format("note: the budget of {} tokens was nearly spent, so the output was closed "
                     "in the shortest valid way",
                     output.stats.budget));
  }
  if (output.stop == StopReason::kLength) {
    Note(kGenerate,
         fmt::format("note: the output was cut at the budget of {} tokens", output.stats.budget));
  }
}

Status Check(const GenerateFlags& flags) {
  const bool exact = flags.search.exact;
  const bool many = flags.sampler.any() || flags.search.any() || exact;
  const std::string own = flags.sampler.any() && !exact ? flags.sampler.own() : flags.search.own();
  const auto with = [&](const std::string& option) {
    return Error{ErrorCode::kUnsupported, "cannot be used with " + option, own};
  };
  const bool gaps = flags.grammar.combine.gap_count() > 1;
  const char* const gap = flags.grammar.combine.gaps.empty() ? "--gap-file" : "--gap";
  if (Status status = flags.grammar.Check(); !status.ok()) return status;
  if (Status status = flags.sampling.Check(); !status.ok()) return status;
  if (Status status = flags.sampler.Check(flags.sampling, flags.search.any()); !status.ok()) {
    return status;
  }
  const Status searched = flags.search.Check(flags.sampler, flags.grammar, flags.sampling);
  if (!searched.ok()) return searched;
  if (flags.search.contrasts() && flags.search.contrast_prompt.empty()) {
    return Error{ErrorCode::kInvalid, "is empty", "--contrast-prompt"};
  }
  // Standard input is read once.
  if (flags.search.contrasts() && flags.model.chat.messages_file == "-") {
    return Error{ErrorCode::kUnsupported, "cannot be used with --messages -", "--contrast-prompt"};
  }
  if (flags.search.infills() && flags.model.chat.any()) {
    return Error{ErrorCode::kUnsupported, "is for --prompt, not for a chat", flags.search.own()};
  }
  if (many && (flags.captures || gaps)) return with(flags.captures ? "--captures" : gap);
  if (Status status = flags.model.Check(flags.free_first > 0); !status.ok()) return status;
  if (flags.model.thinking.given() && (many || gaps)) {
    return Error{ErrorCode::kUnsupported, "cannot be used with " + (many ? own : gap),
                 "--thinking"};
  }
  if (flags.free_first > 0 && (many || gaps)) {
    return Error{ErrorCode::kUnsupported, "cannot be used with " + (many ? own : gap),
                 "--free-first"};
  }
  if (flags.free_first > 0 && !flags.grammar.any()) {
    return Error{ErrorCode::kInvalid, "needs a constraint, such as --schema", "--free-first"};
  }
  if (Status status = flags.drafts.Check(); !status.ok()) return status;
  if (Status status = flags.diffusion.Check(many ? own : ""); !status.ok()) return status;
  if (many && (NamesDrafts(flags.drafts.options) || !flags.stats_json.empty()))
    return with(flags.stats_json.empty() ? flags.drafts.asking() : "--stats-json");
  if (many && !flags.stops.empty()) return with("--stop");
  if (gaps && !flags.stops.empty()) {
    return Error{ErrorCode::kUnsupported, fmt::format("ends one output, but {} makes several", gap),
                 "--stop"};
  }
  if (!flags.diffusion_svg.empty()) {
    if (Status status = CheckWritable(flags.diffusion_svg); !status.ok()) return status;
  }
  if (!flags.stats_json.empty()) {
    if (Status status = CheckWritable(flags.stats_json); !status.ok()) return status;
  }
  if (flags.captures && gaps) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("speaks of one output, but {} makes several", gap), "--captures"};
  }
  return {};
}

// What is told of a run that went well.
int Conclude(const GenerateFlags& flags, Engine& engine, const GenerationStats& stats,
             const CanvasPicture& picture) {
  Status status = ReportStats(kGenerate, flags.stats, flags.stats_json, stats);
  if (status.ok()) status = engine.SaveDraftHistory();
  if (status.ok() && !flags.diffusion_svg.empty()) {
    status = WriteFile(flags.diffusion_svg, picture.Svg(*engine.vocabulary()));
  }
  return status.ok() ? kExitOk : Fail(kGenerate, status.error());
}

// All gaps in one canvas.
int FillCanvas(const GenerateFlags& flags, const Gaps& gaps, Engine& engine, EngineRequest request,
               const CanvasPicture& picture) {
  const bool captures = flags.captures;
  if (captures || !flags.stops.empty()) {
    return Fail(kGenerate, Error{ErrorCode::kUnsupported,
                                 "speaks of a text that is written from left to right",
                                 captures ? "--captures" : "--stop"});
  }
  request.grammar = gaps.whole();
  request.options.diffusion.prefix = gaps.infilling().prefix;
  request.options.diffusion.gaps = gaps.infilling().after;
  Result<Generation> output = EngineAccess::Generate(engine, request, ThoughtPlan());
  if (!output.ok()) {
    return Fail(kGenerate, AtOption(output.error(), "the prompt", flags.grammar.source()));
  }
  std::vector<std::string>& texts = output->gaps;
  // Any text may stand between two suffixes.
  texts.resize(std::min(texts.size(), flags.grammar.combine.gap_count()));
  Print(texts.size() > 1 ? OutputsLine(texts) : texts[0] + "\n");
  return Conclude(flags, engine, output->stats, picture);
}

Status WriteThoughts(const GenerateFlags& flags, const Generation& output) {
  const std::string& file = flags.model.thinking.file;
  return file.empty() ? Status() : WriteFile(file, output.reasoning);
}

// GrammarFlags::as_seen.
std::function<std::string(const std::string&)> SeenBy(const LoadedModel& model) {
  return [&model](const std::string& text) { return CopiedText(model.tokenizer(), text).text(); };
}

int Generate(const GenerateFlags& flags) {
  if (flags.search.help()) {
    Print(SearchHelp());
    return kExitOk;
  }
  if (Status status = Check(flags); !status.ok()) return Fail(kGenerate, status.error());
  Result<Prompted> prompted = flags.model.Load(kGenerate, flags.search.other_prompt());
  if (!prompted.ok()) return Fail(kGenerate, prompted.error());
  std::optional<Gaps> gaps;
  if (flags.grammar.any()) {
    GrammarFlags grammar = flags.grammar;
    grammar.as_seen = SeenBy(*prompted->model);
    grammar.chat_source = grammar.as_seen(prompted->source);
    Result<Gaps> created = Gaps::Create(grammar, prompted->model->vocabulary());
    if (!created.ok()) return Fail(kGenerate, created.error());
    NoteAnnotations(kGenerate, created->grammar().notes(), flags.grammar.annotations);
    gaps = *std::move(created);
  }
  const bool several = gaps && gaps->several();
  if (flags.captures && (!gaps || !gaps->grammar().has_captures())) {
    return Fail(kGenerate,
                Error{ErrorCode::kInvalid, "needs a grammar with captures", "--captures"});
  }
  if (Status status = flags.model.LoadWeightsOf(kGenerate, *prompted); !status.ok()) {
    return Fail(kGenerate, status.error());
  }
  const bool in_canvas =
      gaps && flags.texts_behind() && prompted->model->model().filling().has_value();
  Result<Engine> engine = flags.own_drafts().MakeEngine(std::move(prompted->model));
  if (!engine.ok()) return Fail(kGenerate, engine.error());
  EngineRequest request;
  request.tokens = std::move(prompted->tokens);
  if (gaps) request.grammar = gaps->grammar();
  const SamplerFlags::Scene scene = {
      *engine,     request,           flags.grammar, flags.sampling, flags.model.threads,
      flags.stats, prompted->contrast};
  if (flags.search.exact) return flags.search.RunExact(kGenerate, scene);
  if (flags.search.any()) return flags.search.Run(kGenerate, flags.sampler, scene);
  if (flags.sampler.any()) return flags.sampler.Run(kGenerate, scene);
  Stream stream;
  request.stops = flags.stops;
  GenerateOptions& options = request.options;
  options.sampling = flags.sampling.params;
  options.max_tokens = flags.sampling.max_tokens;
  options.skip_forced = !flags.no_skip_forced;
  request.free_first = flags.free_first;
  options.diffusion = flags.diffusion.options;
  CanvasPicture picture;
  if (!flags.diffusion_svg.empty()) {
    options.diffusion.on_canvas = [&](std::span<const TokenId> canvas) { picture.Add(canvas); };
  }
  if (in_canvas) return FillCanvas(flags, *gaps, *engine, request, picture);
  if (!several) {
    options.on_token = [&](TokenId, std::string_view bytes) {
      stream.Add(bytes);
      return FlushOutput().ok();
    };
  }
  const ThoughtPlan thoughts = several ? ThoughtPlan() : prompted->thoughts;
  NoteThinking(kGenerate, flags.model.thinking, prompted->thoughts);
  if (!prompted->note.empty()) Note(kGenerate, "note: " + prompted->note);
  std::vector<std::string> outputs;
  GenerationStats stats;
  for (bool more = true; more;) {
    if (gaps) {
      request.grammar = gaps->grammar();
      options.sampling.seed = gaps->SeedOf(flags.sampling.params.seed);
    }
    const Result<Generation> output = EngineAccess::Generate(*engine, request, thoughts);
    if (!output.ok()) {
      return Fail(kGenerate, AtOption(output.error(), "the prompt", flags.grammar.source()));
    }
    Add(output->stats, stats);
    if (!several) {
      stream.Finish();
      if (flags.captures) {
        const auto captures = CapturesOf(gaps->grammar(), *output);
        if (!captures.ok()) return Fail(kGenerate, captures.error());
        Print(CapturesJson(*captures) + "\n");
      }
      NoteStop(*output);
      if (Status status = WriteThoughts(flags, *output); !status.ok()) {
        return Fail(kGenerate, status.error());
      }
      break;
    }
    NoteStop(*output);
    outputs.push_back(output->text);
    Result<bool> next = gaps->Fill(output->text);
    if (!next.ok()) return Fail(kGenerate, next.error());
    more = *next;
    // The model goes on behind what it wrote and the text that stands there.
    std::vector<TokenId>& tokens = request.tokens;
    tokens.insert(tokens.end(), output->tokens.begin(), output->tokens.end());
    const std::vector<TokenId> behind = engine->Encode(gaps->text_behind());
    tokens.insert(tokens.end(), behind.begin(), behind.end());
  }
  if (several) Print(OutputsLine(outputs));
  return Conclude(flags, *engine, stats, picture);
}

}  // namespace

void AddGenerate(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kGenerate, "Continue a prompt, under a constraint if one is given");
  const auto flags = std::make_shared<GenerateFlags>();
  flags->model.AddPromptTo(command);
  flags->model.thinking.AddTo(command, "auto");
  flags->grammar.AddAllTo(command);
  flags->grammar.combine.AddGapsTo(command);
  flags->sampling.AddTo(command);
  flags->sampler.AddTo(command);
  flags->search.AddTo(command);
  flags->model.AddModelTo(command);
  TextOption(command, "--stop", flags->stops, "TEXT",
             "A text at which the output ends, which is cut off; may be given several times");
  command->add_flag("--no-skip-forced", flags->no_skip_forced,
                    "Ask the model for every token, also where the text is forced (slower)");
  CountOption(command, "--free-first", flags->free_first, 0, 1 << 24, kFreeFirstHelp);
  command->add_flag("--captures", flags->captures,
                    "Behind the text, a line of JSON: what the grammar's captures hold");
  command->add_flag("--stats", flags->stats, "Tokens and seconds on stderr");
  TextOption(command, "--stats-json", flags->stats_json, "FILE", "The same as JSON, to this file");
  flags->drafts.AddTo(command);
  flags->diffusion.AddTo(command);
  flags->diffusion.AddGapsTo(command);
  DiffusionFlags::AddPictureTo(command, flags->diffusion_svg);
  command->footer(
      "Example:\n  pawl generate --prompt \"The answer is \" --regex \"(yes|no), [a-z ]{3,40}\" "
      "--temperature 0.8 --seed 7");
  command->callback([flags, &action] { action = [flags] { return Generate(*flags); }; });
}

}  // namespace pawl::cli
