// `pawl extract`: a record out of a text, as JSON that is valid for a schema.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/cli/extractor.h"
#include "src/cli/progress.h"
#include "src/cli/report.h"
#include "src/engine/record_details.h"

namespace pawl::cli {
namespace {

constexpr const char* kExtract = "extract";

struct TextFlags {
  ExtractFlags extract;
  std::optional<std::string> text;
  std::string file = "-";
  bool json_lines = false;
  bool progress = false;
  bool details = false;
};

// What errors call the one text.
std::string SourceOf(const TextFlags& flags) {
  if (flags.text.has_value()) return "--text";
  return flags.file == "-" ? "standard input" : flags.file;
}

// What is loaded once.
struct Loaded {
  std::unique_ptr<ExtractEngine> engine;
  std::unique_ptr<Extractor> extractor;
  std::string input;  // the one text; without --json-lines
};

Result<Loaded> Load(const TextFlags& flags) {
  const ExtractFlags& extract = flags.extract;
  if (Status status = extract.Check(); !status.ok()) return status.error();
  if (flags.details && !(extract.retry.sampler.empty() && extract.setting.contrast.empty())) {
    return Error{ErrorCode::kUnsupported, "come with records that are drawn alone", "--details"};
  }
  const std::string& schema_file =
      extract.template_file.empty() ? extract.grammar.schema_file : extract.template_file;
  if (schema_file == "-" && flags.file == "-" && !flags.text.has_value()) {
    return Error{ErrorCode::kInvalid,
                 "the schema and the text cannot both come from standard input", ""};
  }
  // What fails fast comes first: the schema is compiled before the weights are read.
  Result<std::string> schema = extract.ReadSchemaText();
  if (!schema.ok()) return schema.error();
  Loaded out;
  Result<std::unique_ptr<ExtractEngine>> engine = ExtractEngine::Open(kExtract, extract);
  if (!engine.ok()) return engine.error();
  out.engine = *std::move(engine);
  Result<std::unique_ptr<Extractor>> extractor =
      Extractor::Create(*out.engine, extract, extract.setting, *schema, schema_file);
  if (!extractor.ok()) return extractor.error();
  out.extractor = *std::move(extractor);
  if (!flags.json_lines) {
    Result<std::string> read = flags.text.has_value() ? *flags.text : ReadInput(flags.file);
    if (!read.ok()) return read.error();
    out.input = *std::move(read);
    if (Status status = CheckExtractText(out.input); !status.ok()) {
      return InFile(SourceOf(flags), status.error());
    }
  }
  if (Status status = out.engine->LoadWeights(extract, flags.json_lines ? extract.batch : 1);
      !status.ok()) {
    return status.error();
  }
  if (extract.stats || !extract.stats_json.empty()) out.extractor->WantMaskSurprise();
  if (flags.details) out.extractor->WantDetails();
  return out;
}

void NoteSettings(const Extractor& extractor) {
  for (const std::string& note : SettingNotes(extractor)) Note(kExtract, note);
}

// What is told and kept at the end.
Status Report(const TextFlags& flags, const GenerationStats& stats, Loaded& loaded) {
  const ExtractFlags& extract = flags.extract;
  if (extract.stats) NoteSettings(*loaded.extractor);
  if (Status status = ReportStats(kExtract, extract.stats, extract.stats_json, stats,
                                  SettingsJson(*loaded.extractor));
      !status.ok()) {
    return status;
  }
  return loaded.engine->Save();
}

// A record as it is printed, without the end of the line.
std::string TextOf(const TextFlags& flags, int64_t index, const Generation& output) {
  if (!flags.details) return output.text;
  const bool closed = output.stop == StopReason::kClosed;
  std::string line = RecordLine{.index = index,
                                .record = output.text,
                                .reasoning = output.reasoning,
                                .members = DetailsJson(output.details),
                                .finish_reason = closed ? "length" : "stop",
                                .closed = closed,
                                .closed_by = output.closed_by,
                                .prompt_tokens = output.stats.prompt_tokens,
                                .output_tokens = output.stats.output_tokens}
                         .Json();
  std::ranges::replace(line, '\n', ' ');
  return line;
}

// To the file of --reasoning: a line of JSON for each text.
Status WriteReasoning(const TextFlags& flags, const std::string& lines) {
  const std::string& file = flags.extract.setting.thinking.file;
  return file.empty() ? Status() : WriteFile(file, lines);
}

int ExtractOne(const TextFlags& flags, Loaded& loaded) {
  Result<Generation> output = Generation();
  {
    Progress progress(kExtract, "extracting", flags.progress);
    loaded.extractor->Add(loaded.input, SourceOf(flags),
                          [&output](Result<Generation> done) { output = std::move(done); });
    while (loaded.engine->Step()) {
    }
  }
  if (!output.ok()) {
    // What was tried is told of a record that none of the tries gave as well.
    if (flags.extract.stats) NoteSettings(*loaded.extractor);
    return Fail(kExtract, output.error());
  }
  Print(TextOf(flags, 0, *output) + "\n");
  if (Status status = WriteReasoning(flags, json::Quote(output->reasoning) + "\n"); !status.ok()) {
    return Fail(kExtract, status.error());
  }
  for (const std::string& note : NotesOn(*output, *loaded.extractor)) Note(kExtract, note);
  if (Status status = Report(flags, output->stats, loaded); !status.ok()) {
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
  Lines(const TextFlags& flags, Loaded& loaded)
      : flags_(flags),
        engine_(*loaded.engine),
        loaded_(loaded),
        progress_(kExtract, "reading", flags.progress) {}

  int Run() {
    Result<LineReader> input = LineReader::Open(flags_.file);
    if (!input.ok()) return Fail(kExtract, input.error());
    for (;;) {
      Read(*input);
      if (!Write()) break;
      if (lines_.empty() && at_end_) break;
      engine_.Step();
    }
    if (input_error_.has_value()) return Fail(kExtract, *input_error_);
    if (Status status = WriteReasoning(flags_, reasoning_); !status.ok()) {
      return Fail(kExtract, status.error());
    }
    if (Status status = Report(flags_, total_, loaded_); !status.ok()) {
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
    const auto most = static_cast<size_t>(8 * batch());
    while (!at_end_ && engine_.running() < 2 * batch() && lines_.size() < most) {
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
      loaded_.extractor->Add(
          *text, "text", [mine](Result<Generation> output) { mine->output = std::move(output); });
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
    reasoning_ += (output.ok() ? json::Quote(output->reasoning) : std::string("null")) + "\n";
    if (!output.ok()) {
      ++failed_;
      const std::string message = output.error().ToString();
      Note(kExtract, fmt::format("{}: {}", place, message));
      cli::Print(fmt::format("{{\"error\":{{\"line\":{},\"message\":{}}}}}\n", line.number,
                             json::Quote(message)));
      return;
    }
    std::string text = TextOf(flags_, line.number - 1, *output);
    for (char& c : text) {
      if (c == '\n' || c == '\r') c = ' ';
    }
    cli::Print(text + "\n");
    for (const std::string& note : NotesOn(*output, *loaded_.extractor)) {
      Note(kExtract, fmt::format("{}: {}", place, note));
    }
    Add(output->stats, total_);
  }

  int batch() const { return flags_.extract.batch; }

  const TextFlags& flags_;
  ExtractEngine& engine_;
  Loaded& loaded_;
  Progress progress_;
  std::deque<std::unique_ptr<Line>> lines_;  // read, not yet written
  int number_ = 0;
  int failed_ = 0;
  bool at_end_ = false;
  std::optional<Error> input_error_;
  GenerationStats total_;
  std::string reasoning_;  // a line of JSON for each line
};

int Extract(const TextFlags& flags) {
  Result<Loaded> loaded = Load(flags);
  if (!loaded.ok()) return Fail(kExtract, loaded.error());
  if (flags.extract.stats || flags.extract.grammar.annotations) {
    for (const std::string& note : loaded->extractor->notes()) Note(kExtract, "note: " + note);
  }
  return flags.json_lines ? Lines(flags, *loaded).Run() : ExtractOne(flags, *loaded);
}

}  // namespace

void AddExtract(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kExtract, "Extract a record from a text as JSON valid for a schema");
  const auto flags = std::make_shared<TextFlags>();
  auto* text = command->add_option("--text", flags->text, "The text itself")->type_name("TEXT");
  TextOption(command, "--file", flags->file, "FILE", "File with the text; -: standard input")
      ->capture_default_str()
      ->excludes(text);
  flags->extract.AddTo(command);
  flags->extract.setting.thinking.AddFileTo(command);
  command
      ->add_flag(
          "--json-lines", flags->json_lines,
          "Many texts: every line of the input is a JSON string or {\"text\": ...}, every line of "
          "the output a record or {\"error\": ...}")
      ->excludes(text);
  command->add_flag("--details", flags->details,
                    "Print each record as a line of /v1/extract: with the places of its values in "
                    "the text, their probabilities and, for choices, the alternatives");
  command->add_flag("--progress", flags->progress, "Show progress even when stderr is no terminal");
  command->add_flag("--stats", flags->extract.stats,
                    "Tokens and seconds, and remarks on the schema, on stderr");
  TextOption(command, "--stats-json", flags->extract.stats_json, "FILE",
             "The same as JSON, to this file");
  command->footer(
      "Exit codes: 0 done; 1 with --json-lines, some lines failed; 2 bad input or usage.\n"
      "Example:\n  pawl extract --schema schemas/examples/contact.json "
      "--text \"Ann Lee, ann@example.org\"");
  command->callback([flags, &action] {
    const ExtractFlags& extract = flags->extract;
    if (extract.grammar.schema_file.empty() && extract.template_file.empty())
      throw CLI::RequiredError("--schema");
    action = [flags] { return Extract(*flags); };
  });
}

}  // namespace pawl::cli
