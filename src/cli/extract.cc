// `pawl extract`: a record out of a text, as JSON that is valid for a schema.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "schemas/grammar_cache.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/cli/draft_flags.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"
#include "src/cli/progress.h"
#include "src/cli/report.h"
#include "src/cli/thinking_flags.h"
#include "src/decode/closing.h"
#include "src/engine/loaded_model.h"
#include "src/engine/thinking.h"

namespace pawl::cli {
namespace {

constexpr const char* kExtract = "extract";

struct ExtractFlags {
  GrammarFlags grammar{LayoutFlags::ForWriting()};
  // A record in single bytes, as the model that ships writes it, easily has a thousand tokens.
  SamplingFlags sampling{4096};
  std::optional<std::string> text;
  std::string file = "-";
  std::string model;
  int threads = 0;
  std::string dtype = "stored";
  DeviceFlags device;
  bool json_lines = false;
  int batch = 8;
  bool progress = false;
  bool stats = false;
  std::string stats_json;
  ThinkingFlags thinking;
  DraftFlags drafts;
};

// What errors call the one text.
std::string SourceOf(const ExtractFlags& flags) {
  if (flags.text.has_value()) return "--text";
  return flags.file == "-" ? "standard input" : flags.file;
}

// Everything that is loaded once, and the engine that takes the texts.
class Extractor {
 public:
  static Result<std::unique_ptr<Extractor>> Create(const ExtractFlags& flags) {
    if (Status status = flags.sampling.Check(); !status.ok()) return status.error();
    if (Status status = flags.drafts.Check(); !status.ok()) return status.error();
    if (Status status = flags.thinking.Check(); !status.ok()) return status.error();
    if (!flags.stats_json.empty()) {
      if (Status status = CheckWritable(flags.stats_json); !status.ok()) return status.error();
    }
    if (flags.grammar.schema_file == "-" && flags.file == "-" && !flags.text.has_value()) {
      return Error{ErrorCode::kInvalid,
                   "the schema and the text cannot both come from standard input", ""};
    }
    // What fails fast comes first: the schema is compiled before the weights are read.
    GrammarFlags grammar_flags = flags.grammar;
    Result<std::string> schema = grammar_flags.ReadSchema();
    if (!schema.ok()) return schema.error();
    grammar_flags.schema_text = *schema;
    Result<std::string> folder = FindModelFolder(flags.model);
    if (!folder.ok()) return folder.error();
    Result<std::unique_ptr<LoadedModel>> model =
        OpenModel(kExtract, *folder, flags.thinking.MarksAlone());
    if (!model.ok()) return model.error();
    if (!flags.grammar.layout.max_string.has_value())
      grammar_flags.layout.max_string = MaxStringFor("");
    Result<Grammar> grammar = grammar_flags.Compile((*model)->vocabulary());
    if (!grammar.ok()) return grammar.error();
    if (grammar->Start().completion_length() < 0) {
      return NoValueFits(grammar_flags.schema_file + ": #");
    }
    // What a chat template has against a message of a user.
    const Thinking thinking = ThinkingFor(flags.thinking.asked(), false);
    const auto tried = (*model)->EncodeExtract("{}", "text", LocalTime(), thinking);
    if (!tried.ok()) return tried.error();
    const ModelTraits& traits = (*model)->traits();
    const ThoughtPlan plan =
        PlanThoughts(traits, ThinkingStartOf((*model)->tokenizer(), *tried, traits), thinking);
    NoteThinking(kExtract, flags.thinking, plan);
    std::string input;
    if (!flags.json_lines) {
      Result<std::string> read = flags.text.has_value() ? *flags.text : ReadInput(flags.file);
      if (!read.ok()) return read.error();
      input = *std::move(read);
      if (Status status = CheckExtractText(input); !status.ok()) {
        return InFile(SourceOf(flags), status.error());
      }
    }
    if (Status status = LoadWeights(kExtract, **model, flags.threads, flags.dtype, flags.device);
        !status.ok()) {
      return status.error();
    }
    Result<Engine> engine =
        flags.drafts.MakeEngine(*std::move(model), flags.json_lines ? flags.batch : 1);
    if (!engine.ok()) return engine.error();
    std::unique_ptr<Extractor> extractor(new Extractor(*std::move(engine), *std::move(grammar)));
    const Result<json::Value> tree = json::Parse(*schema);
    extractor->request_.extract = ExtractInput{tree.ok() ? json::Dump(*tree) : *schema, ""};
    extractor->request_.now = LocalTime();
    if (!plan.changes_nothing) extractor->request_.thinking = flags.thinking.asked();
    extractor->request_.options.sampling = flags.sampling.params;
    extractor->request_.options.max_tokens = flags.sampling.max_tokens;
    extractor->input_ = std::move(input);
    extractor->fixed_max_string_ = flags.grammar.layout.max_string.has_value();
    extractor->grammar_flags_ = std::move(grammar_flags);
    extractor->grammar_source_ = flags.grammar.source();
    return extractor;
  }

  // `source`: how errors call the text. `done` is called in a later Step, or at once where there
  // can be no prompt.
  void Add(std::string_view text, const std::string& source,
           std::function<void(Result<Generation>)> done) {
    Result<Grammar> grammar = GrammarFor(text);
    if (!grammar.ok()) return done(grammar.error());
    request_.extract->text = text;
    request_.grammar = *std::move(grammar);
    const auto answer = [this, source, done = std::move(done)](Result<Generation> output) {
      --running_;
      if (!output.ok()) {
        Error error = AtOption(output.error(), source, grammar_source_);
        if (error.place == "text") error.place = source;
        output = std::move(error);
      }
      done(std::move(output));
    };
    ++running_;
    const Result<RequestId> added = engine_.Add(request_, answer);
    if (!added.ok()) answer(added.error());
  }
  bool Step() { return engine_.Step(); }
  // Texts that have no output yet.
  int running() const { return running_; }
  // What is kept for later runs. Errors: kIo.
  Status Save() { return engine_.SaveDraftHistory(); }

  const std::vector<std::string>& notes() const { return grammar_.notes(); }
  // The one text; without --json-lines.
  const std::string& input() const { return input_; }

 private:
  Extractor(Engine engine, Grammar grammar)
      : grammar_(std::move(grammar)), engine_(std::move(engine)) {}

  // The schema with strings that are as long as the text at most. Kept for the lengths met last.
  Result<Grammar> GrammarFor(std::string_view text) {
    const int64_t longest = MaxStringFor(text);
    if (fixed_max_string_ || longest == MaxStringFor("")) return grammar_;
    return long_grammars_.Get(std::to_string(longest), [&] {
      grammar_flags_.layout.max_string = longest;
      return grammar_flags_.Compile(engine_.vocabulary());
    });
  }

  Grammar grammar_;  // for texts of up to MaxStringFor("") characters, or for all
  bool fixed_max_string_ = false;
  GrammarFlags grammar_flags_{LayoutFlags::ForWriting()};
  GrammarCache long_grammars_{32};
  Engine engine_;
  EngineRequest request_;  // what all texts have in common
  int running_ = 0;
  std::string input_;
  std::string grammar_source_;
};

std::string ClosedNote(const Generation& output) {
  if (!output.notes.empty()) return "note: " + output.notes.front();
  return fmt::format(
      "note: the budget of {} tokens was nearly spent, so the output was closed in the shortest "
      "valid "
      "way",
      output.stats.budget);
}

// What is told and kept at the end.
Status Report(const ExtractFlags& flags, const GenerationStats& stats, Extractor& extractor) {
  if (Status status = ReportStats(kExtract, flags.stats, flags.stats_json, stats); !status.ok()) {
    return status;
  }
  return extractor.Save();
}

int ExtractOne(const ExtractFlags& flags, Extractor& extractor) {
  Result<Generation> output = Generation();
  {
    Progress progress(kExtract, "extracting", flags.progress);
    extractor.Add(extractor.input(), SourceOf(flags),
                  [&output](Result<Generation> done) { output = std::move(done); });
    while (extractor.Step()) {
    }
  }
  if (!output.ok()) return Fail(kExtract, output.error());
  Print(output->text + "\n");
  if (!flags.thinking.file.empty()) {
    if (Status status = WriteFile(flags.thinking.file, json::Quote(output->reasoning) + "\n");
        !status.ok()) {
      return Fail(kExtract, status.error());
    }
  }
  if (output->stop == StopReason::kClosed) Note(kExtract, ClosedNote(*output));
  if (Status status = Report(flags, output->stats, extractor); !status.ok()) {
    return Fail(kExtract, status.error());
  }
  return kExitOk;
}

// The text of one line: a JSON string, or an object with one under "text".
Result<std::string> TextOfLine(std::string_view line) {
  if (Status status = CheckExtractText(line); !status.ok()) return status.error();
  Result<json::Value> value = json::Parse(line);
  if (!value.ok()) return value.error();
  const json::Value* text = &*value;
  if (value->type == json::Type::kObject) text = value->Find("text");
  if (text == nullptr || text->type != json::Type::kString) {
    return Error{ErrorCode::kInvalid, "must be a JSON string, or an object with a string \"text\"",
                 ""};
  }
  return text->text;
}

// One line in, one line out, in order. White space of the output that would break its line becomes
// a space: inside JSON strings there is none.
class Lines {
 public:
  Lines(const ExtractFlags& flags, Extractor& extractor)
      : flags_(flags), extractor_(extractor), progress_(kExtract, "reading", flags.progress) {}

  int Run() {
    Result<LineReader> input = LineReader::Open(flags_.file);
    if (!input.ok()) return Fail(kExtract, input.error());
    for (;;) {
      Read(*input);
      if (!Write()) break;
      if (lines_.empty() && at_end_) break;
      extractor_.Step();
    }
    if (input_error_.has_value()) return Fail(kExtract, *input_error_);
    if (!flags_.thinking.file.empty()) {
      if (Status status = WriteFile(flags_.thinking.file, reasoning_); !status.ok()) {
        return Fail(kExtract, status.error());
      }
    }
    if (Status status = Report(flags_, total_, extractor_); !status.ok()) {
      return Fail(kExtract, status.error());
    }
    return failed_ > 0 ? kExitSomeFailed : kExitOk;
  }

 private:
  struct Line {
    int number;
    std::optional<Result<Generation>> output;
  };

  // As many lines as the engine has use for, waiting for input only when there is nothing to do.
  void Read(LineReader& input) {
    // Lines that are done wait for those before them: their number has a bound too.
    const auto most = static_cast<size_t>(8 * flags_.batch);
    while (!at_end_ && extractor_.running() < 2 * flags_.batch && lines_.size() < most) {
      const Result<bool> ready = lines_.empty() ? Result<bool>(true) : input.Ready();
      if (ready.ok() && !*ready) return;
      Result<std::optional<std::string>> line =
          ready.ok() ? input.Next() : Result<std::optional<std::string>>(ready.error());
      if (!line.ok()) input_error_ = line.error();
      at_end_ = !line.ok() || !line->has_value();
      if (at_end_) return;
      lines_.push_back(std::make_unique<Line>(Line{++number_, std::nullopt}));
      Line* const mine = lines_.back().get();
      Result<std::string> text = TextOfLine(**line);
      if (text.ok()) {
        if (Status status = CheckExtractText(*text); !status.ok())
          text = InFile("text", status.error());
      }
      if (!text.ok()) {
        mine->output = Result<Generation>(text.error());
        // Lines come and go without a step of the model.
        if (lines_.size() == 1) return;
        continue;
      }
      extractor_.Add(*text, "text",
                     [mine](Result<Generation> output) { mine->output = std::move(output); });
    }
  }

  // What is done, in order. false when there is nobody to write to.
  bool Write() {
    while (!lines_.empty() && lines_.front()->output.has_value()) {
      Print(*lines_.front());
      lines_.pop_front();
      progress_.Set(fmt::format("line {}, {} failed", number_, failed_));
      if (!FlushOutput().ok()) return false;  // reported when the command ends
    }
    return true;
  }

  void Print(Line& line) {
    Result<Generation>& output = *line.output;
    const std::string place = fmt::format("line {}", line.number);
    if (!flags_.thinking.file.empty())
      reasoning_ += (output.ok() ? json::Quote(output->reasoning) : std::string("null")) + "\n";
    if (!output.ok()) {
      ++failed_;
      const std::string message = output.error().ToString();
      Note(kExtract, fmt::format("{}: {}", place, message));
      cli::Print(fmt::format("{{\"error\":{{\"line\":{},\"message\":{}}}}}\n", line.number,
                             json::Quote(message)));
      return;
    }
    for (char& c : output->text) {
      if (c == '\n' || c == '\r') c = ' ';
    }
    cli::Print(output->text + "\n");
    if (output->stop == StopReason::kClosed) {
      Note(kExtract, fmt::format("{}: {}", place, ClosedNote(*output)));
    }
    Add(output->stats, total_);
  }

  const ExtractFlags& flags_;
  Extractor& extractor_;
  Progress progress_;
  std::deque<std::unique_ptr<Line>> lines_;  // read, not yet written
  int number_ = 0;
  int failed_ = 0;
  bool at_end_ = false;
  std::optional<Error> input_error_;
  GenerationStats total_;
  std::string reasoning_;  // a line of JSON for each line, where it is wanted
};

int Extract(const ExtractFlags& flags) {
  Result<std::unique_ptr<Extractor>> extractor = Extractor::Create(flags);
  if (!extractor.ok()) return Fail(kExtract, extractor.error());
  if (flags.stats || flags.grammar.annotations) {
    for (const std::string& note : (*extractor)->notes()) Note(kExtract, "note: " + note);
  }
  return flags.json_lines ? Lines(flags, **extractor).Run() : ExtractOne(flags, **extractor);
}

}  // namespace

void AddExtract(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kExtract, "Extract a record from a text as JSON valid for a schema");
  const auto flags = std::make_shared<ExtractFlags>();
  flags->grammar.AddSchemaTo(command);
  auto* text = command->add_option("--text", flags->text, "The text itself")->type_name("TEXT");
  auto* file =
      TextOption(command, "--file", flags->file, "FILE", "File with the text; -: standard input")
          ->capture_default_str()
          ->excludes(text);
  (void)file;
  TextOption(command, "--model", flags->model, "MODEL", kModelHelp);
  flags->thinking.AddTo(command, "off");
  flags->sampling.AddTo(command);
  ChoiceOption(command, "--dtype", flags->dtype, DtypeNames(), "TYPE",
               "How weights are kept in memory");
  flags->device.AddTo(command);
  CountOption(command, "--threads", flags->threads, 0, 1024, "Threads; 0: all cores");
  command
      ->add_flag(
          "--json-lines", flags->json_lines,
          "Many texts: every line of the input is a JSON string or {\"text\": ...}, every line of "
          "the output a record or {\"error\": ...}")
      ->excludes(text);
  CountOption(command, "--batch", flags->batch, 1, 1024,
              "With --json-lines: texts that the model works on at a time; the output is the "
              "same for all numbers");
  command->add_flag("--progress", flags->progress, "Show progress even when stderr is no terminal");
  command->add_flag("--stats", flags->stats,
                    "Tokens and seconds, and remarks on the schema, on stderr");
  TextOption(command, "--stats-json", flags->stats_json, "FILE", "The same as JSON, to this file");
  flags->drafts.AddTo(command);
  command->footer(
      "Exit codes: 0 done; 1 with --json-lines, some lines failed; 2 bad input or usage.\n"
      "Example:\n  pawl extract --schema schemas/examples/contact.json "
      "--text \"Ann Lee, ann@example.org\"");
  command->callback([flags, &action] { action = [flags] { return Extract(*flags); }; });
}

}  // namespace pawl::cli
