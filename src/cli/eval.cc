// `pawl eval`: how many fields of records are right, on texts whose records are known.
//
// The scores are src/eval's. Here a model writes the records: all texts under one setting, then all
// of them under the next one, with the same weights. Settings are compared text by text.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar/languages/option_fields.h"
#include "src/base/json.h"
#include "src/base/names.h"
#include "src/cli/command.h"
#include "src/cli/engine.h"
#include "src/cli/eval_pass.h"
#include "src/cli/extractor.h"
#include "src/cli/progress.h"
#include "src/cli/record_report.h"
#include "src/cli/report.h"
#include "src/engine/extract_settings.h"
#include "src/engine/record_values.h"
#include "src/engine/schema_view.h"
#include "src/engine/spans.h"
#include "src/eval/eval_data.h"
#include "src/eval/eval_report.h"

namespace pawl::cli {
namespace {

constexpr const char* kEval = "eval";

struct EvalFlags : EvalTexts {
  std::vector<std::string> against;
  bool variants = false;
  bool save = false;
  bool json = false;
  std::string records, report;
  std::vector<std::string> written;
  bool progress = false;
};

// A setting and how the report calls it.
struct NamedSetting {
  std::string name;
  ExtractSetting setting;
};

// The options of --against, on top of those of the command.
Result<NamedSetting> ReadSetting(const std::string& options, const ExtractSetting& base) {
  NamedSetting out{options, base};
  char quote = 0;
  for (const char c : options) {
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
  }
  if (quote != 0) {
    return Error{ErrorCode::kInvalid, "has a quote that is not closed", "--against"};
  }
  CLI::App app;
  app.set_help_flag();
  out.setting.AddTo(&app);
  try {
    app.parse(options);
  } catch (const CLI::ParseError& error) {
    return Error{ErrorCode::kInvalid, json::Quote(options) + ": " + UsageMessage(error),
                 "--against"};
  }
  if (Status status = out.setting.Check(); !status.ok()) return status.error();
  return out;
}

// The options of --against, by what they change.
std::string SettingOptions() {
  ExtractSetting setting;
  CLI::App app;
  app.set_help_flag();
  setting.AddTo(&app);
  std::string names;
  for (const CLI::Option* option : app.get_options()) {
    names += (names.empty() ? "" : " ") + option->get_name();
  }
  return names;
}

// ---- Variants ----

// Views of the schema and white space; of a prompt that pawl.json fixes white space alone.
std::vector<NamedSetting> LayoutVariants(const ExtractSetting& base, bool views) {
  struct Space {
    const char* name;
    const char* whitespace;
    std::vector<std::string> separators;
  };
  const Space spaces[] = {{"--whitespace compact", "compact", {",", ":"}},
                          {"--separators ', ' ': '", "compact", {", ", ": "}},
                          {"--whitespace bounded", "bounded", {",", ":"}}};
  const std::vector<std::string> names =
      views ? std::vector<std::string>{"template", "keys", "schema"} : std::vector<std::string>{""};
  std::vector<NamedSetting> out;
  for (const std::string& view : names) {
    for (const Space& space : spaces) {
      NamedSetting one{(view.empty() ? "" : "--schema-view " + view + " ") + space.name, base};
      one.setting.view = view;
      one.setting.layout.whitespace = space.whitespace;
      one.setting.layout.separators = space.separators;
      one.setting.layout.asked.insert({"whitespace", "separators"});
      out.push_back(std::move(one));
    }
  }
  return out;
}

// Instructions: that of the command line or one that names what the schema calls itself, and the
// general one.
std::vector<NamedSetting> InstructionVariants(const NamedSetting& base, const std::string& schema) {
  NamedSetting other = base;
  const Result<json::Value> tree = json::Parse(schema);
  const json::Value* title = tree.ok() ? tree->Find("title") : nullptr;
  if (!base.setting.instruction.empty()) {
    other.name += " without --instruction";
    other.setting.instruction.clear();
  } else if (title != nullptr && !title->text.empty()) {
    other.setting.instruction = "Extract the " + title->text + " as JSON.";
    other.name += " --instruction " + json::Quote(other.setting.instruction);
  } else {
    return {};
  }
  return {other};
}

// Examples: without those of the command line, or with some of `texts`.
std::vector<NamedSetting> ExampleVariants(const NamedSetting& base,
                                          const std::vector<eval::EvalText>& texts) {
  std::vector<NamedSetting> out;
  if (!base.setting.examples_file.empty()) {
    NamedSetting none = base;
    none.name += " without --examples";
    none.setting.examples_file.clear();
    return {none};
  }
  for (size_t count = 1; count <= texts.size(); count += 2) {
    NamedSetting some = base;
    some.name += fmt::format(" with {} of the texts as examples", count);
    for (size_t i = 0; i < count; ++i) {
      some.setting.examples.push_back({texts[i].text, json::Dump(texts[i].record)});
    }
    out.push_back(std::move(some));
  }
  return out;
}

// How much values of the text are preferred.
std::vector<NamedSetting> PreferenceVariants(const NamedSetting& base) {
  std::vector<NamedSetting> out;
  for (const double nats : {0.0, 3.0, 10.0}) {
    NamedSetting one = base;
    one.name += fmt::format(" --prefer-text {}", nats);
    one.setting.prefer_text = nats;
    out.push_back(std::move(one));
  }
  return out;
}

// What of a setting the file of the measured choice keeps.
ExtractSettings ChoiceOf(const ExtractSetting& setting, bool views) {
  ExtractSettings out;
  const LayoutFlags& layout = setting.layout;
  out.whitespace = OptionOf<JsonSchemaOptions::Whitespace>(layout.whitespace);
  out.separators = {layout.separators[0], layout.separators[1]};
  if (layout.asked.contains("keys")) out.keys = OptionOf<JsonSchemaOptions::Keys>(layout.keys);
  if (layout.asked.contains("nulls")) out.nulls = OptionOf<JsonSchemaOptions::Nulls>(layout.nulls);
  out.prefer_text = setting.prefer_text;
  if (!views) return out;
  out.schema_view = SchemaViewNamed(setting.view);
  if (!setting.instruction.empty()) out.instruction = setting.instruction;
  std::vector<int> lines;
  Result<std::vector<ExtractExample>> examples = setting.ReadExamplesFile(lines);
  if (examples.ok() && !examples->empty()) out.examples = *std::move(examples);
  return out;
}

// The right records that are no values of their schemas, each with a note.
Result<int64_t> CountMisfits(const EvalFlags& flags, const EvalInput& input,
                             const std::vector<eval::EvalText>& texts) {
  constexpr int64_t kMostNotes = 5;
  struct Reader {
    Grammar grammar;
    json::Value schema;
  };
  std::map<std::string, Reader> readers;
  int64_t misfits = 0;
  for (const eval::EvalText& text : texts) {
    const std::string& used = text.schema.empty() ? input.schema : text.schema;
    auto reader = readers.find(used);
    if (reader == readers.end()) {
      GrammarFlags grammar_flags = flags.extract.grammar;
      grammar_flags.layout = LayoutFlags::ForReading();
      // In the data null says that a key is not there.
      grammar_flags.layout.keys = "all";
      grammar_flags.schema_text = used;
      grammar_flags.schema_file = input.schema_place;
      Result<Grammar> grammar = grammar_flags.Compile(input.engine->model().vocabulary());
      Result<json::Value> schema = json::Parse(used);
      // What is wrong with a schema is told where records are made.
      if (!grammar.ok() || !schema.ok()) continue;
      reader = readers.emplace(used, Reader{*std::move(grammar), *std::move(schema)}).first;
    }
    const Result<std::string> written =
        WriteRecord(reader->second.grammar, reader->second.schema, text.record);
    if (written.ok()) continue;
    if (++misfits > kMostNotes) continue;
    Note(kEval, fmt::format("note: {}: line {}: {}: the right record does not fit the schema",
                            flags.data, text.line, written.error().place));
  }
  if (misfits > kMostNotes) {
    Note(kEval, fmt::format("note: {} more right records do not fit", misfits - kMostNotes));
  }
  return misfits;
}

// Writes the choice, unless the texts that were held out speak against it.
Status SaveChoice(const EvalInput& input, const NamedSetting& best, bool views,
                  const std::vector<eval::EvalRun>& runs) {
  const LoadedModel& model = input.engine->model();
  const eval::PairedResult test = eval::PairedTest(runs[0].right_by_text, runs[1].right_by_text);
  if (test.difference < 0) {
    Note(kEval, fmt::format("note: not saved: {} fields fewer are right of the texts held out than "
                            "without it",
                            -test.difference));
    return {};
  }
  const Result<std::string> file = MeasuredFile(StorePaths().settings, model.path());
  if (!file.ok()) return file.error();
  if (file->empty()) {
    return Error{ErrorCode::kIo, "neither XDG_CONFIG_HOME nor HOME is set", "--save"};
  }
  const std::string measured = fmt::format(
      "{{\"setting\":{},\"model\":{},\"texts_held_out\":{},\"more_fields_right\":{},\"p\":{:.4f}}}",
      json::Quote(best.name), json::Quote(model.path()), test.texts, test.difference, test.p);
  const Result<json::Value> schema = json::Parse(input.schema);
  const Status saved = SaveMeasured(*file, ChoiceOf(best.setting, views),
                                    schema.ok() ? json::Dump(*schema) : "", measured);
  if (!saved.ok()) return saved;
  Note(kEval, "saved to " + *file);
  return {};
}

// The best of the variants on two thirds of the texts, and what it gives on the others. White space
// and the view of the schema come first; with the best of them an instruction, then examples, then
// how much values of the text are preferred.
Result<std::vector<eval::EvalRun>> RunVariants(const EvalFlags& flags, EvalInput& input,
                                               const std::vector<eval::EvalText>& texts) {
  constexpr size_t kExamples = 3, kLeastSeen = 9;
  std::vector<eval::EvalText> seen, held, shown;
  for (size_t i = 0; i < texts.size(); ++i) (eval::HeldOut(i) ? held : seen).push_back(texts[i]);
  if (held.empty()) {
    return Error{ErrorCode::kInvalid, "needs three texts or more", "--variants"};
  }
  const Result<ExtractPrompt>& prompt = input.engine->model().extract();
  const bool views = prompt.ok() && prompt->shows_views();
  // Texts that are shown as examples are not measured. Each text may have another schema.
  if (views && !input.schema.empty() && seen.size() >= kLeastSeen) {
    shown.assign(seen.begin(), seen.begin() + kExamples);
    seen.erase(seen.begin(), seen.begin() + kExamples);
  }
  Progress progress(kEval, "evaluating", flags.progress);
  const auto run = [&](const NamedSetting& one, const std::vector<eval::EvalText>& on,
                       const std::string& name) -> Result<eval::EvalRun> {
    EvalPass pass(flags, *input.engine, one.setting, on);
    if (Status status = pass.Prepare(input.schema, input.schema_place); !status.ok()) {
      return status.error();
    }
    return pass.Run(name, progress);
  };
  std::optional<NamedSetting> best;
  int64_t most = -1;
  const auto choose = [&](const std::vector<NamedSetting>& variants) -> Status {
    for (const NamedSetting& variant : variants) {
      Result<eval::EvalRun> one = run(variant, seen, variant.name);
      if (!one.ok()) return one.error();
      const int64_t right = one->scores.all().right + one->scores.all().right_nulls;
      Note(kEval, fmt::format("{}: {} fields right of {} texts", one->name, right, seen.size()));
      if (right <= most) continue;
      most = right;
      best = variant;
    }
    return {};
  };
  Status status = choose(LayoutVariants(flags.extract.setting, views));
  if (status.ok() && views) status = choose(InstructionVariants(*best, input.schema));
  if (status.ok() && views) status = choose(ExampleVariants(*best, shown));
  if (status.ok()) status = choose(PreferenceVariants(*best));
  if (!status.ok()) return status.error();
  std::vector<eval::EvalRun> runs;
  for (const NamedSetting& one : {NamedSetting{"default", flags.extract.setting}, *best}) {
    Result<eval::EvalRun> held_run = run(one, held, one.name + " (held out)");
    if (!held_run.ok()) return held_run.error();
    runs.push_back(*std::move(held_run));
  }
  if (flags.save) {
    if (status = SaveChoice(input, *best, views, runs); !status.ok()) return status.error();
  }
  return runs;
}

Result<std::vector<eval::EvalRun>> RunSettings(const EvalFlags& flags, EvalInput& input,
                                               const std::vector<eval::EvalText>& texts,
                                               const std::vector<NamedSetting>& settings,
                                               RecordReport* report) {
  std::vector<std::unique_ptr<EvalPass>> passes;
  for (const NamedSetting& one : settings) {
    passes.push_back(std::make_unique<EvalPass>(flags, *input.engine, one.setting, texts));
    if (Status status = passes.back()->Prepare(input.schema, input.schema_place); !status.ok()) {
      return status.error();
    }
    if (report != nullptr) passes.back()->ReportTo(report, passes.size() - 1);
  }
  if (Status status = input.engine->LoadWeights(flags.extract, flags.extract.batch); !status.ok()) {
    return status.error();
  }
  Progress progress(kEval, "evaluating", flags.progress);
  std::vector<eval::EvalRun> runs;
  for (size_t i = 0; i < passes.size(); ++i) {
    Result<eval::EvalRun> run = passes[i]->Run(settings[i].name, progress);
    if (!run.ok()) return run.error();
    runs.push_back(*std::move(run));
    if (i == 0 && !flags.records.empty()) {
      if (Status status = WriteFile(flags.records, passes[0]->RecordLines()); !status.ok()) {
        return status.error();
      }
    }
  }
  return runs;
}

// A record that no model wrote just now, in the report: the places of its values are known.
Status ReportWritten(const eval::EvalText& text, const json::Value& record,
                     const std::vector<eval::FieldVerdict>& verdicts, size_t setting,
                     RecordReport& report) {
  const bool missing = record.type == json::Type::kNull;
  const std::string written = missing ? "" : json::Dump(record);
  std::vector<ValueDetails> details;
  for (const Span& span : FindSpans(record, text.text)) {
    ValueDetails& one = details.emplace_back();
    one.pointer = span.pointer;
    one.span = {static_cast<int64_t>(span.begin), static_cast<int64_t>(span.end),
                static_cast<int64_t>(span.begin_byte), static_cast<int64_t>(span.end_byte)};
    one.surprise = std::numeric_limits<double>::quiet_NaN();
  }
  return report.Write(report.BlocksOf({
      .name = fmt::format("line {}{}", text.line, text.id.empty() ? "" : " " + text.id),
      .setting = setting,
      .text = text.text,
      .record = written,
      .error = missing ? "the file has no record" : "",
      .details = &details,
      .verdicts = &verdicts,
  }));
}

// The records of --written, a line for each text; without a model.
Result<eval::EvalRun> ScoreWritten(size_t number, const EvalFlags& flags, const std::string& schema,
                                   const std::vector<eval::EvalText>& texts, RecordReport* report) {
  const std::string& file = flags.written[number];
  const Result<std::string> lines = ReadInput(file);
  if (!lines.ok()) return lines.error();
  eval::EvalRun run;
  run.name = file;
  std::string_view rest = *lines;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string place = fmt::format("{}: line {}", file, i + 1);
    if (rest.empty()) {
      return Error{ErrorCode::kInvalid,
                   fmt::format("has {} lines, and there are {} texts", i, texts.size()), file};
    }
    const size_t end = std::min(rest.find('\n'), rest.size());
    const Result<json::Value> line = json::Parse(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.ok()) return InFile(place, line.error());
    const json::Value* record = line->Find("record");
    if (record == nullptr) return Error{ErrorCode::kInvalid, "must have a \"record\"", place};
    const std::string& used = texts[i].schema.empty() ? schema : texts[i].schema;
    const Result<json::Value> tree = json::Parse(used.empty() ? "{}" : used);
    if (!tree.ok()) return InFile(flags.data, tree.error());
    const Result<eval::FieldMetrics> metrics = eval::FieldMetrics::Of(*tree);
    if (!metrics.ok()) return InFile(flags.data, metrics.error());
    const bool missing = record->type == json::Type::kNull;
    std::vector<eval::FieldVerdict> verdicts;
    const eval::RecordScore score =
        missing ? eval::ScoreMissing(texts[i].record, *metrics)
                : eval::ScoreRecord(texts[i].record, *record, *metrics,
                                    report == nullptr ? nullptr : &verdicts);
    if (report != nullptr) {
      if (Status status = ReportWritten(texts[i], *record, verdicts, number, *report);
          !status.ok()) {
        return status.error();
      }
    }
    run.scores.failed += missing;
    run.right_by_text.push_back(score.right());
    run.scores.Add(score);
  }
  return run;
}

Result<std::vector<eval::EvalRun>> ScoreAllWritten(const EvalFlags& flags,
                                                   const std::vector<eval::EvalText>& texts,
                                                   RecordReport* report) {
  std::string schema;
  if (!flags.extract.grammar.schema_file.empty()) {
    Result<std::string> read = flags.extract.ReadSchemaText();
    if (!read.ok()) return read.error();
    schema = *std::move(read);
  }
  std::vector<eval::EvalRun> runs;
  for (size_t i = 0; i < flags.written.size(); ++i) {
    Result<eval::EvalRun> run = ScoreWritten(i, flags, schema, texts, report);
    if (!run.ok()) return run.error();
    runs.push_back(*std::move(run));
  }
  return runs;
}

int PrintRuns(const EvalFlags& flags, const Result<std::vector<eval::EvalRun>>& runs,
              std::optional<RecordReport>& report) {
  if (!runs.ok()) return Fail(kEval, runs.error());
  if (report) {
    if (Status status = report->Close(); !status.ok()) return Fail(kEval, status.error());
  }
  Print(flags.json ? eval::JsonOf(*runs) : eval::TableOf(*runs));
  const bool failed =
      std::ranges::any_of(*runs, [](const eval::EvalRun& run) { return run.scores.failed > 0; });
  return failed ? kExitSomeFailed : kExitOk;
}

// nullopt: none is asked for.
Result<std::optional<RecordReport>> OpenReport(const EvalFlags& flags,
                                               const std::vector<NamedSetting>& settings,
                                               const std::string& model) {
  if (flags.report.empty()) return std::optional<RecordReport>();
  const auto wrong = [](ErrorCode code, const char* what) { return Error{code, what, "--report"}; };
  if (flags.variants) return wrong(ErrorCode::kInvalid, "cannot be used with --variants");
  const bool alone = flags.extract.retry.sampler.empty() &&
                     std::ranges::all_of(settings, [](const NamedSetting& one) {
                       return one.setting.contrast.empty();
                     });
  if (!alone) return wrong(ErrorCode::kUnsupported, "is for records that are drawn alone");
  const ExtractFlags& extract = flags.extract;
  ReportOptions options{.file = flags.report, .data = flags.data, .settings = {}, .scored = true};
  options.schema =
      extract.template_file.empty() ? extract.grammar.schema_file : extract.template_file;
  if (flags.written.empty()) {
    options.model = model;
    for (const NamedSetting& one : settings) options.settings.push_back(one.name);
  } else {
    options.settings = flags.written;
  }
  Result<RecordReport> report = RecordReport::Open(options);
  if (!report.ok()) return report.error();
  return std::optional<RecordReport>(*std::move(report));
}

int Eval(const EvalFlags& flags) {
  if (Status status = flags.extract.Check(); !status.ok()) return Fail(kEval, status.error());
  if (flags.save && !flags.extract.lora.given.empty()) {
    return Fail(kEval, Error{ErrorCode::kUnsupported,
                             "cannot be used with --lora: what is saved holds for the model itself",
                             "--save"});
  }
  if (flags.save && !flags.variants) {
    return Fail(kEval, Error{ErrorCode::kInvalid, "needs --variants", "--save"});
  }
  Result<std::vector<eval::EvalText>> texts = flags.Read();
  if (!texts.ok()) return Fail(kEval, texts.error());
  std::vector<NamedSetting> settings = {{"setting", flags.extract.setting}};
  for (const std::string& options : flags.against) {
    Result<NamedSetting> one = ReadSetting(options, flags.extract.setting);
    if (!one.ok()) return Fail(kEval, one.error());
    settings.push_back(*std::move(one));
  }
  if (!flags.written.empty()) {
    Result<std::optional<RecordReport>> report = OpenReport(flags, settings, "");
    if (!report.ok()) return Fail(kEval, report.error());
    return PrintRuns(flags, ScoreAllWritten(flags, *texts, *report ? &**report : nullptr), *report);
  }
  Result<EvalInput> input = OpenModelAndSchema(kEval, flags);
  if (!input.ok()) return Fail(kEval, input.error());
  Result<std::optional<RecordReport>> report =
      OpenReport(flags, settings, input->engine->model().path());
  if (!report.ok()) return Fail(kEval, report.error());
  const Result<int64_t> misfits = CountMisfits(flags, *input, *texts);
  if (!misfits.ok()) return Fail(kEval, misfits.error());
  Result<std::vector<eval::EvalRun>> runs = Error{};
  if (flags.variants) {
    if (Status status = input->engine->LoadWeights(flags.extract, flags.extract.batch);
        !status.ok()) {
      return Fail(kEval, status.error());
    }
    runs = RunVariants(flags, *input, *texts);
  } else {
    runs = RunSettings(flags, *input, *texts, settings, *report ? &**report : nullptr);
  }
  if (runs.ok()) {
    for (eval::EvalRun& run : *runs) run.misfits = *misfits;
  }
  return PrintRuns(flags, runs, *report);
}

}  // namespace

void AddEval(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      kEval,
      "Extract records from texts whose records are known, and count the fields that are right");
  const auto flags = std::make_shared<EvalFlags>();
  flags->AddTo(command);
  command->get_option("--data")->required();
  auto* against =
      command
          ->add_option("--against", flags->against,
                       "Options of a further setting, in one argument; it is compared with the "
                       "first by a paired test (give it several times). They are `" +
                           SettingOptions() + "`.")
          ->take_all()
          ->allow_extra_args(false)
          ->type_name("OPTIONS");
  command
      ->add_flag(
          "--variants", flags->variants,
          "Try views of the schema, white space, an instruction and examples on two thirds of "
          "the texts, and tell what the best ones give on the others")
      ->excludes(against);
  command->add_flag("--save", flags->save,
                    "With --variants: keep the best choice for this model, in "
                    "$XDG_CONFIG_HOME/pawl/models; not where it is worse than the default");
  command->add_flag("--json", flags->json, "The result as JSON, in a line");
  command->add_option("--records", flags->records, "The records of the first setting, to this file")
      ->check(NotEmpty)
      ->type_name("FILE");
  command
      ->add_option("--written", flags->written,
                   "Score the records of this file, in place of those of a model: lines of "
                   "{\"record\": ...}, as --records writes them (give it several times)")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("FILE");
  TextOption(command, "--report", flags->report, "FILE",
             "Write an HTML page that shows each text with the places of its record's values, "
             "their probabilities, and which are wrong");
  command->add_flag("--no-mask-surprise", flags->no_surprise,
                    "Leave mask_surprise out, for times as those of extract");
  command->add_flag("--progress", flags->progress, "Show progress even when stderr is no terminal");
  flags->extract.AddTo(command);
  command->footer(
      "Exit codes: 0 done; 1 some texts have no record; 2 bad input or usage.\n"
      "Example:\n  pawl eval --schema bench/extract/order.schema.json --data "
      "bench/extract/orders.jsonl --where split=known --against '--schema-view keys'");
  command->callback([flags, &action] { action = [flags] { return Eval(*flags); }; });
}

}  // namespace pawl::cli
