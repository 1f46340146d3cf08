// `pawl extract`: a record out of a text, as JSON that is valid for a schema.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/cli/canvas_picture.h"
#include "src/cli/command.h"
#include "src/cli/extractor.h"
#include "src/cli/progress.h"
#include "src/cli/record_output.h"
#include "src/cli/record_report.h"
#include "src/cli/report.h"
#include "src/engine/record_details.h"
#include "src/engine/schema_view.h"

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
  std::string output, report, diffusion_svg;
  std::vector<std::string> keep;  // members of a line that its record gets
  bool resume = false;
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
  std::optional<RecordOutput> output;
  std::optional<RecordReport> report;
};

// Errors name the option.
Status CheckOutput(const TextFlags& flags) {
  const auto wrong = [](const char* option, const char* what) {
    return Error{ErrorCode::kInvalid, what, option};
  };
  if (flags.resume && flags.output.empty()) return wrong("--resume", "needs --output");
  if (flags.resume && !flags.json_lines) return wrong("--resume", "needs --json-lines");
  if (!flags.keep.empty() && !flags.json_lines) return wrong("--keep", "needs --json-lines");
  if (flags.resume && !flags.extract.setting.thinking.file.empty()) {
    return wrong("--reasoning", "cannot be used with --resume");
  }
  if (flags.resume && !flags.report.empty())
    return wrong("--report", "cannot be used with --resume");
  if (flags.details && flags.output.ends_with(".csv")) {
    return wrong("--details", "are for .jsonl files and standard output");
  }
  return {};
}

// One picture is of one canvas.
Status CheckPicture(const TextFlags& flags) {
  if (flags.diffusion_svg.empty()) return {};
  const bool many = flags.json_lines;
  if (many || flags.extract.retry.retries > 0) {
    return Error{ErrorCode::kUnsupported,
                 std::string("cannot be used with ") + (many ? "--json-lines" : "--retries"),
                 "--diffusion-svg"};
  }
  return CheckWritable(flags.diffusion_svg);
}

// The names of --keep are not among the keys, which would hide them.
Result<RecordOutput> OpenOutput(const TextFlags& flags, const std::string& schema) {
  const Result<json::Value> tree = json::Parse(schema);
  RecordOutputOptions options{.file = flags.output, .resume = flags.resume, .keep = flags.keep};
  if (tree.ok() && !IsListSchema(*tree)) options.keys = SchemaKeys(*tree);
  for (const std::string& name : flags.keep) {
    if (std::ranges::find(options.keys, name) == options.keys.end()) continue;
    return Error{ErrorCode::kInvalid, "is a key of the schema: " + name, "--keep"};
  }
  if (flags.output.ends_with(".csv") && options.keys.empty()) {
    return Error{ErrorCode::kInvalid, "a table needs a schema of an object with properties",
                 "--output"};
  }
  return RecordOutput::Open(options);
}

Result<Loaded> Load(const TextFlags& flags) {
  const ExtractFlags& extract = flags.extract;
  if (Status status = extract.Check(); !status.ok()) return status.error();
  const bool details = flags.details || !flags.report.empty();
  if (details && !(extract.retry.sampler.empty() && extract.setting.contrast.empty())) {
    const Error error{ErrorCode::kUnsupported, "come with records that are drawn alone",
                      "--details"};
    return flags.details ? error
                         : Error{error.code, "is for records that are drawn alone", "--report"};
  }
  if (Status status = CheckOutput(flags); !status.ok()) return status.error();
  if (Status status = CheckPicture(flags); !status.ok()) return status.error();
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
  Result<RecordOutput> output = OpenOutput(flags, *schema);
  if (!output.ok()) return output.error();
  out.output = *std::move(output);
  if (!flags.report.empty()) {
    Result<RecordReport> report = RecordReport::Open({.file = flags.report,
                                                      .model = out.engine->model().path(),
                                                      .schema = schema_file,
                                                      .data = SourceOf(flags)});
    if (!report.ok()) return report.error();
    out.report = *std::move(report);
  }
  if (Status status = out.engine->LoadWeights(extract, flags.json_lines ? extract.batch : 1);
      !status.ok()) {
    return status.error();
  }
  if (extract.stats || !extract.stats_json.empty()) out.extractor->WantMaskSurprise();
  if (details) out.extractor->WantDetails();
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

// Members of a text's line, as they follow others.
std::string MembersJson(const std::vector<json::Member>& members) {
  std::string out;
  for (const json::Member& one : members) {
    out += "," + json::Quote(one.first) + ":" + json::Dump(one.second);
  }
  return out;
}

// What becomes of a text. `more`: the other members of its line.
RecordAnswer AnswerOf(const TextFlags& flags, int64_t index, const Generation& output,
                      const std::vector<json::Member>& more) {
  RecordAnswer answer{.line = {}, .record = output.text, .error = {}, .kept = more};
  std::vector<json::Member> kept = more, passed;
  std::erase_if(kept, [&](const json::Member& one) {
    return std::ranges::find(flags.keep, one.first) == flags.keep.end();
  });
  const size_t begin = answer.record.find_first_not_of(" \t\r\n");
  if (!kept.empty() && begin != std::string::npos && answer.record[begin] == '{') {
    const size_t next = answer.record.find_first_not_of(" \t\r\n", begin + 1);
    const std::string members = MembersJson(kept).substr(1);
    answer.record.insert(begin + 1, members + (answer.record[next] == '}' ? "" : ","));
  }
  answer.line = answer.record;
  if (flags.details) {
    static constexpr const char* kOwn[] = {
        "index",       "record",        "reasoning",     "spans",        "byte_spans",
        "probability", "surprise",      "alternatives",  "error",        "closed",
        "closed_by",   "finish_reason", "prompt_tokens", "output_tokens"};
    for (const json::Member& one : more) {
      if (std::ranges::find(kOwn, one.first) == std::end(kOwn)) passed.push_back(one);
    }
    RecordLine line;
    line.index = index;
    line.record = answer.record;
    line.reasoning = output.reasoning;
    line.members = DetailsJson(output.details) + MembersJson(passed);
    line.closed = output.stop == StopReason::kClosed;
    line.finish_reason = line.closed ? "length" : "stop";
    line.closed_by = output.closed_by;
    line.prompt_tokens = output.stats.prompt_tokens;
    line.output_tokens = output.stats.output_tokens;
    answer.line = line.Json();
  }
  return answer;
}

// A document of the report, where one is written.
Status ReportText(const std::string& name, std::string_view text, const Result<Generation>& output,
                  const std::vector<json::Member>& more, Loaded& loaded) {
  if (!loaded.report) return {};
  const std::string error = output.ok() ? "" : output.error().ToString();
  ReportDocument document{.name = name, .text = text, .error = error, .more = &more};
  if (output.ok()) {
    document.record = output->text;
    document.details = &output->details;
    document.closed = output->stop == StopReason::kClosed;
  }
  return loaded.report->Write(loaded.report->BlockOf(document));
}

// White space of an answer that would break its line becomes a space: inside JSON strings there is
// none.
void OnOneLine(RecordAnswer& answer) {
  for (char& c : answer.line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
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
  Status reported = ReportText(SourceOf(flags), loaded.input, output, {}, loaded);
  if (reported.ok() && loaded.report) reported = loaded.report->Close();
  if (!reported.ok()) return Fail(kExtract, reported.error());
  if (!output.ok()) {
    // What was tried is told of a record that none of the tries gave as well.
    if (flags.extract.stats) NoteSettings(*loaded.extractor);
    return Fail(kExtract, output.error());
  }
  RecordAnswer answer = AnswerOf(flags, 0, *output, {});
  if (flags.details || !flags.output.empty()) OnOneLine(answer);
  if (Status status = loaded.output->Write(answer); !status.ok()) {
    return Fail(kExtract, status.error());
  }
  if (Status status = WriteReasoning(flags, json::Quote(output->reasoning) + "\n"); !status.ok()) {
    return Fail(kExtract, status.error());
  }
  for (const std::string& note : NotesOn(*output, *loaded.extractor)) Note(kExtract, note);
  if (Status status = Report(flags, output->stats, loaded); !status.ok()) {
    return Fail(kExtract, status.error());
  }
  return kExitOk;
}

// A line of the input.
struct TextLine {
  std::string text;
  std::vector<json::Member> more;  // its other members
};

// Reads a JSON string, or an object with one under "text". An object without one has its members.
Status ReadLine(std::string_view line, TextLine& out) {
  if (Status status = CheckExtractText(line); !status.ok()) return status;
  Result<json::Value> value = json::Parse(line);
  if (!value.ok()) return value.error();
  out.more = std::move(value->members);
  const auto found = std::ranges::find(out.more, "text", &json::Member::first);
  const json::Value& text = found == out.more.end() ? *value : found->second;
  if (text.type != json::Type::kString) {
    return Error{ErrorCode::kInvalid, "must be a JSON string, or an object with a string \"text\"",
                 ""};
  }
  out.text = text.text;
  if (found != out.more.end()) out.more.erase(found);
  if (Status status = CheckExtractText(out.text); !status.ok()) {
    return InFile("text", status.error());
  }
  return {};
}

// One line in, one line out, in order.
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
    if (loaded_.report) {
      if (Status status = loaded_.report->Close(); !status.ok()) {
        return Fail(kExtract, status.error());
      }
    }
    if (Status status = Report(flags_, total_, loaded_); !status.ok()) {
      return Fail(kExtract, status.error());
    }
    return failed_ > 0 ? kExitSomeFailed : kExitOk;
  }

 private:
  struct Line {
    int number;
    std::vector<json::Member> more;  // of the text's line
    std::string text;                // for the report
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
      if (++number_ <= loaded_.output->done()) continue;
      lines_.push_back(std::make_unique<Line>(Line{number_, {}, {}, std::nullopt}));
      Line* const mine = lines_.back().get();
      TextLine text;
      const Status read = ReadLine(**line, text);
      mine->more = std::move(text.more);
      if (!read.ok()) {
        mine->output = Result<Generation>(read.error());
        // Lines come and go without a step of the model.
        if (lines_.size() == 1) return;
        continue;
      }
      if (loaded_.report) mine->text = text.text;
      loaded_.extractor->Add(text.text, "text", [mine](Result<Generation> output) {
        mine->output = std::move(output);
      });
    }
  }

  // What is done, in order. false when no one is there to write to.
  bool Write() {
    while (!lines_.empty() && lines_.front()->output.has_value()) {
      if (Status status = Print(*lines_.front()); !status.ok()) {
        input_error_ = status.error();
        return false;
      }
      lines_.pop_front();
      ++written_;
      progress_.Set(fmt::format("line {}, {} failed, {:.1f} a second", number_, failed_,
                                static_cast<double>(written_) /
                                    std::max(1e-3, std::chrono::duration<double>(
                                                       std::chrono::steady_clock::now() - begin_)
                                                       .count())));
      if (!FlushOutput().ok()) return false;  // reported when the command ends
    }
    return true;
  }

  Status Print(Line& line) {
    Result<Generation>& output = *line.output;
    const std::string place = fmt::format("line {}", line.number);
    if (Status status = ReportText(place, line.text, output, line.more, loaded_); !status.ok()) {
      return status;
    }
    reasoning_ += (output.ok() ? json::Quote(output->reasoning) : std::string("null")) + "\n";
    if (!output.ok()) {
      ++failed_;
      const std::string message = output.error().ToString();
      Note(kExtract, fmt::format("{}: {}", place, message));
      return loaded_.output->Write(
          {.line = fmt::format(
               "{{\"error\":{{\"line\":{},\"message\":{}}}{}}}", line.number, json::Quote(message),
               flags_.details || !flags_.keep.empty() ? MembersJson(line.more) : ""),
           .record = {},
           .error = message,
           .kept = line.more});
    }
    RecordAnswer answer = AnswerOf(flags_, line.number - 1, *output, line.more);
    OnOneLine(answer);
    for (const std::string& note : NotesOn(*output, *loaded_.extractor)) {
      Note(kExtract, fmt::format("{}: {}", place, note));
    }
    Add(output->stats, total_);
    return loaded_.output->Write(answer);
  }

  int batch() const { return flags_.extract.batch; }

  const TextFlags& flags_;
  ExtractEngine& engine_;
  Loaded& loaded_;
  Progress progress_;
  std::deque<std::unique_ptr<Line>> lines_;  // read, not yet written
  int number_ = 0;
  int failed_ = 0;
  int64_t written_ = 0;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool at_end_ = false;
  std::optional<Error> input_error_;
  GenerationStats total_;
  std::string reasoning_;  // a line of JSON for each line
};

int Extract(TextFlags flags) {
  CanvasPicture picture;
  if (!flags.diffusion_svg.empty()) {
    flags.extract.setting.diffusion.options.on_canvas = [&](std::span<const TokenId> canvas) {
      picture.Add(canvas);
    };
  }
  Result<Loaded> loaded = Load(flags);
  if (!loaded.ok()) return Fail(kExtract, loaded.error());
  if (flags.extract.stats || flags.extract.grammar.annotations) {
    for (const std::string& note : loaded->extractor->notes()) Note(kExtract, "note: " + note);
  }
  if (flags.json_lines) return Lines(flags, *loaded).Run();
  const int code = ExtractOne(flags, *loaded);
  if (flags.diffusion_svg.empty() || code != kExitOk) return code;
  const std::string svg = picture.Svg(*loaded->engine->engine().vocabulary());
  const Status status = WriteFile(flags.diffusion_svg, svg);
  return status.ok() ? code : Fail(kExtract, status.error());
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
  TextOption(command, "--output", flags->output, "FILE",
             "Write records to this file, .jsonl or .csv, in place of standard output");
  command
      ->add_option("--keep", flags->keep,
                   "With --json-lines: these members of a line are put into its record")
      ->delimiter(',')
      ->type_name("NAMES");
  command->add_flag("--resume", flags->resume,
                    "Go on behind the lines that the file of --output has from a run that ended "
                    "early");
  command->add_flag("--details", flags->details,
                    "Print each record as a line of /v1/extract: with the places of its values in "
                    "the text, their probabilities and, for choices, the alternatives");
  TextOption(command, "--report", flags->report, "FILE",
             "Write an HTML page that shows each text with the places of its record's values and "
             "what --details says of them");
  command->add_flag("--progress", flags->progress, "Show progress even when stderr is no terminal");
  command->add_flag("--stats", flags->extract.stats,
                    "Tokens and seconds, and remarks on the schema, on stderr");
  DiffusionFlags::AddPictureTo(command, flags->diffusion_svg);
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
