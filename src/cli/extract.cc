// `pawl extract`: a record out of a text, as JSON that is valid for a schema.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/cli/canvas_picture.h"
#include "src/cli/command.h"
#include "src/cli/extract_parts.h"
#include "src/cli/progress.h"
#include "src/cli/report.h"
#include "src/engine/copied_text.h"
#include "src/engine/schema_view.h"

namespace pawl::cli {
namespace {

// What is written is not what is read, nor twice the same; and where the texts or the report cannot
// be opened, the file of --output stays as it was.
Status CheckFiles(const TextFlags& flags) {
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code ignored;
    return !a.empty() && !b.empty() && (a == b || std::filesystem::equivalent(a, b, ignored));
  };
  const auto fail = [](const char* option, std::string what) {
    return Error{ErrorCode::kInvalid, std::move(what), option};
  };
  if (!flags.text && flags.file != "-") {
    if (same(flags.output, flags.file)) return fail("--output", "is the file of --file");
    if (same(flags.report, flags.file)) return fail("--report", "is the file of --file");
    std::error_code error;
    if (!std::filesystem::exists(flags.file, error)) {
      const std::error_code none = std::make_error_code(std::errc::no_such_file_or_directory);
      return Error{ErrorCode::kIo, "cannot read: " + (error ? error : none).message(), flags.file};
    }
  }
  if (same(flags.report, flags.output)) return fail("--report", "is the file of --output");
  return flags.report.empty() ? Status() : CheckWritable(flags.report);
}

// Errors name the option.
Status CheckOutput(const TextFlags& flags) {
  const auto wrong = [](const char* option, const char* what) {
    return Error{ErrorCode::kInvalid, what, option};
  };
  if (flags.resume && flags.output.empty()) return wrong("--resume", "needs --output");
  if (flags.resume && !flags.many() && !flags.document.document) {
    return wrong("--resume", "needs many texts (--json-lines), or --document");
  }
  if (!flags.keep.empty() && !flags.many()) {
    return wrong("--keep", "needs many texts (--json-lines)");
  }
  if (flags.resume && !flags.extract.setting.thinking.file.empty()) {
    return wrong("--reasoning", "cannot be used with --resume");
  }
  if (flags.resume && !flags.report.empty()) {
    return wrong("--report", "cannot be used with --resume");
  }
  if (flags.details && flags.output.ends_with(".csv")) {
    return wrong("--details", "are for .jsonl files and standard output");
  }
  return CheckFiles(flags);
}

// One picture is of one canvas.
Status CheckPicture(const TextFlags& flags) {
  if (flags.diffusion_svg.empty()) return {};
  const char* other = flags.many()                      ? "many texts"
                      : flags.document.document         ? "--document"
                      : flags.extract.retry.retries > 0 ? "--retries"
                                                        : nullptr;
  if (other != nullptr) {
    return Error{ErrorCode::kUnsupported, std::string("cannot be used with ") + other,
                 "--diffusion-svg"};
  }
  return CheckWritable(flags.diffusion_svg);
}

// What a cell of a table was copied from has to be in the text, where its schema has the keyword
// itself. A cell does not say whether it was a string or a number.
Status CheckCopiedCell(const json::Value& schema, const Tokenizer& tokenizer,
                       const std::string& key, const std::string& cell, const std::string& text) {
  const json::Value* const properties = schema.Find("properties");
  const json::Value* const field = properties == nullptr ? nullptr : properties->Find(key);
  if (field == nullptr || field->Find("x-pawl-source") == nullptr) return {};
  json::Value string;
  string.type = json::Type::kString;
  string.text = cell;
  std::vector<json::Value> readings = {string};
  const Result<json::Value> parsed = json::Parse(cell);
  if (parsed.ok() && parsed->type == json::Type::kNumber) readings.push_back(*parsed);
  const CopiedText copied(tokenizer, text);
  for (json::Value& reading : readings) {
    json::Value record;
    record.type = json::Type::kObject;
    record.members.emplace_back(key, std::move(reading));
    if (!copied.Spans(record, SpanKindOf(*field)).empty()) return {};
  }
  return Error{ErrorCode::kInvalid, json::Quote(cell) + " is not in its text", key};
}

// The names of --keep are not among the keys, which would hide them.
Result<RecordOutput> OpenOutput(const TextFlags& flags, const std::string& schema,
                                Extractor& extractor) {
  const Result<json::Value> tree = json::Parse(schema);
  RecordOutputOptions options{
      .file = flags.output, .resume = flags.resume, .keep = flags.keep, .details = flags.details};
  if (flags.resume && tree.ok()) {
    constexpr int64_t kAnyLength = int64_t{1} << 40;
    const Result<Grammar> grammar = extractor.GrammarFor(kAnyLength);
    if (!grammar.ok()) return grammar.error();
    options.check = [grammar = *grammar, tree = *tree](const json::Value& record) -> Status {
      const Result<std::string> written = WriteRecord(grammar, tree, record);
      return written.ok() ? Status() : Status(written.error());
    };
    // What was copied from a chunk of a document need not be a value of the whole.
    const Tokenizer& tokenizer = extractor.model().tokenizer();
    if (!grammar->unbound().empty() && !flags.document.document) {
      options.check_text = [grammar = *grammar, tree = *tree, &tokenizer](
                               const json::Value& record, const std::string& text) -> Status {
        const Result<Grammar> bound = grammar.Bind(CopiedText(tokenizer, text).text());
        if (!bound.ok()) return bound.error();
        const Result<std::string> written = WriteRecord(*bound, tree, record);
        return written.ok() ? Status() : Status(written.error());
      };
      options.check_cell = [tree = *tree, &tokenizer](const std::string& key,
                                                      const std::string& cell,
                                                      const std::string& text) {
        return CheckCopiedCell(tree, tokenizer, key, cell, text);
      };
    }
  }
  if (tree.ok() && !IsListSchema(*tree)) options.keys = SchemaKeys(*tree);
  for (const std::string& name : flags.keep) {
    if (std::ranges::find(options.keys, name) == options.keys.end()) continue;
    return Error{ErrorCode::kInvalid, "is a key of the schema: " + name, "--keep"};
  }
  const bool table = flags.output.ends_with(".csv");
  if (table && std::ranges::find(flags.keep, "error") != flags.keep.end()) {
    return Error{ErrorCode::kInvalid, "a table has a column of that name: error", "--keep"};
  }
  if (table && options.keys.empty()) {
    return Error{ErrorCode::kInvalid, "a table needs a schema of an object with properties",
                 "--output"};
  }
  return RecordOutput::Open(options);
}

// The one text.
Result<InputText> ReadOne(const TextFlags& flags) {
  if (flags.text) return InputText{.text = *flags.text, .pieces = {}, .boxes = {}};
  if (flags.format() == InputFormat::kPdf) {
    if (flags.file != "-") return ReadPdf(flags.file);
    return Error{ErrorCode::kUnsupported, "PDF is read from a file", flags.Source()};
  }
  Result<std::string> read = ReadInput(flags.file);
  if (!read.ok()) return read.error();
  if (flags.format() != InputFormat::kHtml) {
    // The end of the last line ends the file, and is no part of the text: as $(...) of a shell.
    const size_t end = read->ends_with("\r\n") ? 2 : read->ends_with('\n') ? 1 : 0;
    read->resize(read->size() - end);
    return InputText{.text = *std::move(read), .pieces = {}, .boxes = {}};
  }
  Result<InputText> text = ReadHtml(*read);
  if (!text.ok()) return InFile(flags.Source(), text.error());
  return text;
}

Result<ExtractJob> Load(const TextFlags& flags) {
  const ExtractFlags& extract = flags.extract;
  if (Status status = extract.Check(); !status.ok()) return status.error();
  const bool details = flags.details || !flags.report.empty();
  if (details && !(extract.retry.sampler.empty() && extract.setting.contrast.empty())) {
    const Error error{ErrorCode::kUnsupported, "come with records that are drawn alone",
                      "--details"};
    return flags.details ? error
                         : Error{error.code, "is for records that are drawn alone", "--report"};
  }
  if (Status status = flags.document.Check(extract); !status.ok()) return status.error();
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
  ExtractJob out;
  Result<std::unique_ptr<ExtractEngine>> engine = ExtractEngine::Open(kExtract, extract);
  if (!engine.ok()) return engine.error();
  out.engine = *std::move(engine);
  Result<std::unique_ptr<Extractor>> extractor =
      Extractor::Create(*out.engine, extract, extract.setting, *schema, schema_file);
  if (!extractor.ok()) return extractor.error();
  out.extractor = *std::move(extractor);
  if (Status status = flags.document.CheckFor(out.engine->model()); !status.ok()) {
    return status.error();
  }
  if (!flags.many()) {
    Result<InputText> read = ReadOne(flags);
    if (!read.ok()) return read.error();
    out.input = *std::move(read);
    if (Status status = CheckExtractText(out.input.text); !status.ok()) {
      return InFile(flags.Source(), status.error());
    }
  }
  Result<RecordOutput> output = OpenOutput(flags, *schema, *out.extractor);
  if (!output.ok()) return output.error();
  out.output = *std::move(output);
  if (!flags.report.empty()) {
    Result<RecordReport> report = RecordReport::Open({.file = flags.report,
                                                      .model = out.engine->model().path(),
                                                      .schema = schema_file,
                                                      .data = flags.Source()});
    if (!report.ok()) return report.error();
    out.report = *std::move(report);
  }
  const bool one_by_one = !flags.many() && !flags.document.document;
  if (Status status = out.engine->LoadWeights(extract, one_by_one ? 1 : extract.batch);
      !status.ok()) {
    return status.error();
  }
  if (extract.stats || !extract.stats_json.empty()) out.extractor->WantMaskSurprise();
  if (details || flags.document.document) out.extractor->WantDetails(details);
  return out;
}

// Until its record is there.
void ReadDocument(const TextFlags& flags, ExtractJob& job, DocumentRun& run, Progress& progress) {
  Pace pace;
  int64_t handed = 0;
  const auto submit = [&] {
    if (job.engine->running() >= 2 * flags.extract.batch || !run.SubmitNext()) return false;
    ++handed;
    return true;
  };
  for (bool more = true; more;) {
    while (submit()) {
    }
    pace.set_known(run.known_fraction());
    progress.Set(pace.Line(run.fraction(), handed - job.engine->running(), "chunks"));
    // A slow chunk holds back those behind it, so the engine may be idle before the end.
    more = job.engine->Step() || submit();
  }
}

int ExtractOne(const TextFlags& flags, ExtractJob& job) {
  if (flags.resume && job.output->done() > 0) {
    Status status = job.output->CheckTexts(1);
    if (status.ok()) status = job.output->CheckDone(job.input.text, {});
    if (!status.ok()) return Fail(kExtract, status.error());
    // The run before may have been killed with its record written.
    if (flags.document.document) (void)std::remove(ChunkFileOf(flags, 1).c_str());
    return kExitOk;
  }
  Result<Generation> output = Error{ErrorCode::kInternal, "the text has no record", flags.Source()};
  std::shared_ptr<DocumentRun> document;
  {
    Progress progress(kExtract, "extracting", flags.progress);
    const auto take = [&output](Result<Generation> done) { output = std::move(done); };
    if (flags.document.document) {
      document = RunOf(flags, job, job.input.text, flags.Source(), 1, flags.resume, take);
      ReadDocument(flags, job, *document, progress);
    } else {
      job.extractor->Add(job.input.text, flags.Source(), take);
      while (job.engine->Step()) {
      }
    }
  }
  Status reported = ReportText(flags.Source(), job.input.text, output, {}, job);
  if (reported.ok() && job.report) reported = job.report->Close();
  if (!reported.ok()) return Fail(kExtract, reported.error());
  if (!output.ok()) {
    // What was tried is told of a record that none of the tries gave as well.
    if (flags.extract.stats) NoteSettings(*job.extractor);
    return Fail(kExtract, output.error());
  }
  RecordAnswer answer = AnswerOf(flags, 0, *output, {}, &job.input);
  if (flags.details || !flags.output.empty()) OnOneLine(answer);
  if (Status status = job.output->Write(answer); !status.ok()) {
    return Fail(kExtract, status.error());
  }
  if (document != nullptr) document->RemoveFile();
  if (Status status = WriteReasoning(flags, json::Quote(output->reasoning) + "\n"); !status.ok()) {
    return Fail(kExtract, status.error());
  }
  for (const std::string& note : NotesOn(*output, *job.extractor)) Note(kExtract, note);
  if (Status status = Report(flags, output->stats, job); !status.ok()) {
    return Fail(kExtract, status.error());
  }
  return kExitOk;
}

// A file that --json-lines cannot read.
void NoteOtherFormat(const TextFlags& flags) {
  if (!flags.json_lines || InputFormatOf(flags.file) != InputFormat::kCsv) return;
  Note(kExtract,
       fmt::format("note: {} looks like CSV; without --json-lines it is read so", flags.file));
}

int Extract(TextFlags flags) {
  NoteOtherFormat(flags);
  CanvasPicture picture;
  if (!flags.diffusion_svg.empty()) {
    flags.extract.setting.diffusion.options.on_canvas = [&](std::span<const TokenId> canvas) {
      picture.Add(canvas);
    };
  }
  Result<ExtractJob> loaded = Load(flags);
  if (!loaded.ok()) return Fail(kExtract, loaded.error());
  NoteAnnotations(kExtract, loaded->extractor->notes(),
                  flags.extract.stats || flags.extract.grammar.annotations);
  if (flags.many()) return ExtractMany(flags, *loaded);
  const int code = ExtractOne(flags, *loaded);
  if (flags.diffusion_svg.empty() || code != kExitOk) return code;
  const std::string svg = picture.Svg(*loaded->engine->engine().vocabulary());
  const Status status = WriteFile(flags.diffusion_svg, svg);
  return status.ok() ? code : Fail(kExtract, status.error());
}

}  // namespace

// The options that were given and that records depend on, as text.
static std::string GivenOptions(const CLI::App& command) {
  static constexpr std::string_view kOfTheRun[] = {
      "annotations", "batch",        "draft",        "draft-history", "draft-memory",
      "draft-model", "draft-nodes",  "draft-shape",  "draft-text",    "examples",
      "file",        "input-format", "json-lines",   "keep",          "memory-budget",
      "model",       "output",       "progress",     "reasoning",     "report",
      "resume",      "schema",       "stats",        "stats-json",    "template",
      "text",        "threads",      "chunk-tokens", "passes",        "document"};
  std::string out;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_single_name();
    if (option->count() == 0 || std::ranges::find(kOfTheRun, name) != std::end(kOfTheRun)) continue;
    out += name;
    for (const std::string& value : option->results()) out += " " + json::Quote(value);
    out += "\n";
  }
  return out;
}

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
  command
      ->add_option("--input-format", flags->input_format,
                   "Of the file: text, markdown, html, pdf (through pdftotext), csv (a column "
                   "\"text\") or jsonl (as --json-lines); the default is by its name")
      ->check(CLI::IsMember({"text", "markdown", "html", "pdf", "csv", "jsonl"}))
      ->excludes(text)
      ->type_name("FORMAT");
  flags->document.AddTo(command);
  TextOption(command, "--output", flags->output, "FILE",
             "Write records to this file, .jsonl or .csv, in place of standard output");
  command
      ->add_option("--keep", flags->keep,
                   "With many texts: these members of a line are put into its record")
      ->delimiter(',')
      ->type_name("NAMES");
  command->add_flag("--resume", flags->resume,
                    "Go on behind the records that the file of --output has from a run that "
                    "ended early; with --document, behind the chunks");
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
  command->callback([flags, &action, command] {
    const ExtractFlags& extract = flags->extract;
    if (extract.grammar.schema_file.empty() && extract.template_file.empty())
      throw CLI::RequiredError("--schema");
    flags->given = GivenOptions(*command);
    action = [flags] { return Extract(*flags); };
  });
}

}  // namespace pawl::cli
