// `pawl eval`: how many fields of records are right, on texts whose records are known.
//
// The scores are src/eval's. Here a model writes the records: all texts under one setting, then all
// of them under the next one, with the same weights. Settings are compared text by text.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/cli/extractor.h"
#include "src/cli/progress.h"
#include "src/cli/report.h"
#include "src/eval/eval_data.h"
#include "src/eval/eval_report.h"

namespace pawl::cli {
namespace {

constexpr const char* kEval = "eval";

struct EvalFlags {
  ExtractFlags extract;
  std::string data;
  std::vector<std::string> where;
  uint64_t limit = 0;
  std::vector<std::string> against;
  bool variants = false;
  bool json = false;
  bool no_surprise = false;
  std::string records;
  std::vector<std::string> written;
  bool progress = false;
};

// A setting and how the report calls it.
struct NamedSetting {
  std::string name;
  ExtractSetting setting;
};

Result<std::vector<eval::EvalText>> ReadEvalFile(const EvalFlags& flags) {
  const Result<std::string> lines = ReadInput(flags.data);
  if (!lines.ok()) return lines.error();
  eval::EvalFilter filter{.where = {}, .most = flags.limit};
  for (const std::string& one : flags.where) {
    const size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{ErrorCode::kInvalid, "must be KEY=VALUE, not " + json::Quote(one), "--where"};
    }
    filter.where.emplace_back(one.substr(0, equals), one.substr(equals + 1));
  }
  Result<std::vector<eval::EvalText>> texts = eval::ReadEvalTexts(*lines, filter);
  if (!texts.ok()) return InFile(flags.data, texts.error());
  return texts;
}

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

// What --variants tries: views of the schema and white space.
std::vector<NamedSetting> VariantsOf(const ExtractSetting& base) {
  std::vector<NamedSetting> out;
  for (const char* view : {"template", "keys", "schema"}) {
    for (const char* space : {"compact", "spaced", "bounded"}) {
      NamedSetting one{fmt::format("--schema-view {} --whitespace {}", view, space), base};
      one.setting.view = view;
      one.setting.layout.whitespace = space;
      if (space == std::string_view("spaced")) {
        one.name = fmt::format("--schema-view {} --separators ', ' ': '", view);
        one.setting.layout.whitespace = "compact";
        one.setting.layout.separators = {", ", ": "};
      } else {
        one.setting.layout.separators = {",", ":"};
      }
      out.push_back(std::move(one));
    }
  }
  return out;
}

// All texts under one setting.
class EvalPass {
 public:
  EvalPass(const EvalFlags& flags, ExtractEngine& engine, const ExtractSetting& setting,
           const std::vector<eval::EvalText>& texts)
      : flags_(flags), engine_(engine), setting_(setting), texts_(texts) {}

  // What is wrong with the setting or a schema.
  Status Prepare(const std::string& schema, const std::string& schema_place) {
    for (const eval::EvalText& text : texts_) {
      const std::string& used = text.schema.empty() ? schema : text.schema;
      const std::string place = text.schema.empty()
                                    ? schema_place
                                    : fmt::format("{}: line {}: #/schema", flags_.data, text.line);
      if (used.empty()) {
        return Error{ErrorCode::kInvalid, "has no \"schema\", and --schema is not given",
                     fmt::format("{}: line {}", flags_.data, text.line)};
      }
      auto& known = schemas_[used];
      if (known == nullptr) {
        Result<std::unique_ptr<Extractor>> made =
            Extractor::Create(engine_, flags_.extract, setting_, used, place);
        if (!made.ok()) return made.error();
        const Result<json::Value> tree = json::Parse(used);
        if (!tree.ok()) return InFile(place, tree.error());
        Result<eval::FieldMetrics> metrics = eval::FieldMetrics::Of(*tree);
        if (!metrics.ok()) return InFile(place, metrics.error());
        known = std::make_unique<Schema>(Schema{*std::move(made), *std::move(metrics)});
      }
      of_text_.push_back(known.get());
    }
    return {};
  }

  // REQUIRES: Prepare, and the engine has its weights.
  eval::EvalRun Run(const std::string& name, Progress& progress) {
    eval::EvalRun run;
    run.name = name;
    run.right_by_text.resize(texts_.size());
    outputs_.assign(texts_.size(), "");
    const auto start = std::chrono::steady_clock::now();
    size_t done = 0;
    for (size_t i = 0; i < texts_.size(); ++i) {
      Schema& schema = *of_text_[i];
      if (!flags_.no_surprise) schema.extractor->WantMaskSurprise();
      while (engine_.running() >= 2 * flags_.extract.batch && engine_.Step()) {
      }
      schema.extractor->Add(texts_[i].text, "text", [&, i](Result<Generation> output) {
        Take(i, std::move(output), run);
        progress.Set(fmt::format("text {} of {}", ++done, texts_.size()));
      });
    }
    while (engine_.Step()) {
    }
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return run;
  }

  // A line for each text of the last run.
  std::string RecordLines() const {
    std::string out;
    for (size_t i = 0; i < texts_.size(); ++i) {
      out += fmt::format("{{\"line\":{},\"id\":{},\"record\":{}}}\n", texts_[i].line,
                         json::Quote(texts_[i].id), outputs_[i].empty() ? "null" : outputs_[i]);
    }
    return out;
  }

 private:
  struct Schema {
    std::unique_ptr<Extractor> extractor;
    eval::FieldMetrics metrics;
  };

  void Take(size_t i, Result<Generation> output, eval::EvalRun& run) {
    const eval::EvalText& text = texts_[i];
    const eval::FieldMetrics& metrics = of_text_[i]->metrics;
    Result<json::Value> record = Error{ErrorCode::kInvalid, "", ""};
    if (output.ok()) {
      run.output_tokens += output->stats.output_tokens;
      run.prompt_tokens += output->stats.prompt_tokens;
      run.mask_surprise += output->stats.mask_surprise;
      record = json::Parse(output->text);
    } else {
      Note(kEval, fmt::format("line {}: {}", text.line, output.error().ToString()));
    }
    run.scores.failed += !record.ok();
    if (record.ok()) outputs_[i] = json::Dump(*record);
    const eval::RecordScore score = record.ok() ? eval::ScoreRecord(text.record, *record, metrics)
                                                : eval::ScoreMissing(text.record, metrics);
    run.right_by_text[i] = score.right();
    run.scores.Add(score);
  }

  const EvalFlags& flags_;
  ExtractEngine& engine_;
  const ExtractSetting& setting_;
  const std::vector<eval::EvalText>& texts_;
  std::map<std::string, std::unique_ptr<Schema>> schemas_;
  std::vector<Schema*> of_text_;
  std::vector<std::string> outputs_;
};

struct EvalInput {
  std::unique_ptr<ExtractEngine> engine;
  std::string schema, schema_place;
};

Result<EvalInput> OpenModelAndSchema(const EvalFlags& flags) {
  EvalInput out;
  const ExtractFlags& extract = flags.extract;
  const std::string& file =
      extract.template_file.empty() ? extract.grammar.schema_file : extract.template_file;
  if (!file.empty()) {
    Result<std::string> schema = extract.ReadSchemaText();
    if (!schema.ok()) return schema.error();
    out.schema = *std::move(schema);
    out.schema_place = file;
  }
  Result<std::unique_ptr<ExtractEngine>> engine = ExtractEngine::Open(kEval, extract);
  if (!engine.ok()) return engine.error();
  out.engine = *std::move(engine);
  return out;
}

// The best of the variants on two thirds of the texts, and what it gives on the others.
Result<std::vector<eval::EvalRun>> RunVariants(const EvalFlags& flags, EvalInput& input,
                                               const std::vector<eval::EvalText>& texts) {
  std::vector<eval::EvalText> seen, held;
  for (size_t i = 0; i < texts.size(); ++i) (eval::HeldOut(i) ? held : seen).push_back(texts[i]);
  if (held.empty()) {
    return Error{ErrorCode::kInvalid, "needs three texts or more", "--variants"};
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
  std::vector<NamedSetting> variants = VariantsOf(flags.extract.setting);
  size_t best = 0;
  int64_t most = -1;
  for (size_t i = 0; i < variants.size(); ++i) {
    Result<eval::EvalRun> one = run(variants[i], seen, variants[i].name);
    if (!one.ok()) return one.error();
    const int64_t right = one->scores.all().right + one->scores.all().right_nulls;
    Note(kEval, fmt::format("{}: {} fields right of {} texts", one->name, right, seen.size()));
    if (right > most) {
      most = right;
      best = i;
    }
  }
  std::vector<eval::EvalRun> runs;
  for (const NamedSetting& one : {NamedSetting{"default", flags.extract.setting}, variants[best]}) {
    Result<eval::EvalRun> held_run = run(one, held, one.name + " (held out)");
    if (!held_run.ok()) return held_run.error();
    runs.push_back(*std::move(held_run));
  }
  return runs;
}

Result<std::vector<eval::EvalRun>> RunSettings(const EvalFlags& flags, EvalInput& input,
                                               const std::vector<eval::EvalText>& texts,
                                               const std::vector<NamedSetting>& settings) {
  std::vector<std::unique_ptr<EvalPass>> passes;
  for (const NamedSetting& one : settings) {
    passes.push_back(std::make_unique<EvalPass>(flags, *input.engine, one.setting, texts));
    if (Status status = passes.back()->Prepare(input.schema, input.schema_place); !status.ok()) {
      return status.error();
    }
  }
  if (Status status = input.engine->LoadWeights(flags.extract, flags.extract.batch); !status.ok()) {
    return status.error();
  }
  Progress progress(kEval, "evaluating", flags.progress);
  std::vector<eval::EvalRun> runs;
  for (size_t i = 0; i < passes.size(); ++i) {
    runs.push_back(passes[i]->Run(settings[i].name, progress));
    if (i == 0 && !flags.records.empty()) {
      if (Status status = WriteFile(flags.records, passes[0]->RecordLines()); !status.ok()) {
        return status.error();
      }
    }
  }
  return runs;
}

// The records of --written, a line for each text; without a model.
Result<eval::EvalRun> ScoreWritten(const std::string& file, const EvalFlags& flags,
                                   const std::string& schema,
                                   const std::vector<eval::EvalText>& texts) {
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
    const eval::RecordScore score = missing ? eval::ScoreMissing(texts[i].record, *metrics)
                                            : eval::ScoreRecord(texts[i].record, *record, *metrics);
    run.scores.failed += missing;
    run.right_by_text.push_back(score.right());
    run.scores.Add(score);
  }
  return run;
}

Result<std::vector<eval::EvalRun>> ScoreAllWritten(const EvalFlags& flags,
                                                   const std::vector<eval::EvalText>& texts) {
  std::string schema;
  if (!flags.extract.grammar.schema_file.empty()) {
    Result<std::string> read = flags.extract.ReadSchemaText();
    if (!read.ok()) return read.error();
    schema = *std::move(read);
  }
  std::vector<eval::EvalRun> runs;
  for (const std::string& file : flags.written) {
    Result<eval::EvalRun> run = ScoreWritten(file, flags, schema, texts);
    if (!run.ok()) return run.error();
    runs.push_back(*std::move(run));
  }
  return runs;
}

int PrintRuns(const EvalFlags& flags, const Result<std::vector<eval::EvalRun>>& runs) {
  if (!runs.ok()) return Fail(kEval, runs.error());
  Print(flags.json ? eval::JsonOf(*runs) : eval::TableOf(*runs));
  const bool failed =
      std::ranges::any_of(*runs, [](const eval::EvalRun& run) { return run.scores.failed > 0; });
  return failed ? kExitSomeFailed : kExitOk;
}

int Eval(const EvalFlags& flags) {
  if (Status status = flags.extract.Check(); !status.ok()) return Fail(kEval, status.error());
  Result<std::vector<eval::EvalText>> texts = ReadEvalFile(flags);
  if (!texts.ok()) return Fail(kEval, texts.error());
  if (!flags.written.empty()) return PrintRuns(flags, ScoreAllWritten(flags, *texts));
  std::vector<NamedSetting> settings = {{"setting", flags.extract.setting}};
  for (const std::string& options : flags.against) {
    Result<NamedSetting> one = ReadSetting(options, flags.extract.setting);
    if (!one.ok()) return Fail(kEval, one.error());
    settings.push_back(*std::move(one));
  }
  Result<EvalInput> input = OpenModelAndSchema(flags);
  if (!input.ok()) return Fail(kEval, input.error());
  Result<std::vector<eval::EvalRun>> runs = Error{};
  if (flags.variants) {
    if (Status status = input->engine->LoadWeights(flags.extract, flags.extract.batch);
        !status.ok()) {
      return Fail(kEval, status.error());
    }
    runs = RunVariants(flags, *input, *texts);
  } else {
    runs = RunSettings(flags, *input, *texts, settings);
  }
  return PrintRuns(flags, runs);
}

}  // namespace

void AddEval(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      kEval,
      "Extract records from texts whose records are known, and count the fields that are right");
  const auto flags = std::make_shared<EvalFlags>();
  command
      ->add_option("--data", flags->data,
                   "Lines of {\"text\": ..., \"record\": ...}; a \"schema\" in a line is that of "
                   "its text; -: standard input")
      ->required()
      ->check(NotEmpty)
      ->type_name("FILE");
  command
      ->add_option("--where", flags->where,
                   "KEY=VALUE: only lines whose member KEY is VALUE (give it several times)")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("FILTER");
  command->add_option("--limit", flags->limit, "The first N texts; 0: all")
      ->transform(WholeNumber(0, kMostCount))
      ->type_name("N")
      ->capture_default_str();
  auto* against =
      command
          ->add_option("--against", flags->against,
                       "Options of a further setting, in one argument; it is compared with the "
                       "first by a paired test (give it several times)")
          ->take_all()
          ->allow_extra_args(false)
          ->type_name("OPTIONS");
  command
      ->add_flag("--variants", flags->variants,
                 "Try views of the schema and white space on two thirds of the texts, and tell "
                 "what the best one gives on the others")
      ->excludes(against);
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
