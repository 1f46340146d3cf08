// The scores are src/eval's; here a model writes the records.
#include "src/cli/eval_pass.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "src/base/json.h"
#include "src/cli/command.h"

namespace pawl::cli {

void EvalTexts::AddTo(CLI::App* command) {
  command
      ->add_option("--data", data,
                   "Lines of {\"text\": ..., \"record\": ...}; a \"schema\" in a line is that of "
                   "its text; -: standard input")
      ->check(NotEmpty)
      ->type_name("FILE");
  command
      ->add_option("--where", where,
                   "KEY=VALUE: only lines whose member KEY is VALUE (give it several times)")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("FILTER");
  command->add_option("--limit", limit, "The first N texts; 0: all")
      ->transform(WholeNumber(0, kMostCount))
      ->type_name("N")
      ->capture_default_str();
}

Result<std::vector<eval::EvalText>> EvalTexts::Read() const {
  const Result<std::string> lines = ReadInput(data);
  if (!lines.ok()) return lines.error();
  eval::EvalFilter filter{.where = {}, .most = limit};
  for (const std::string& one : where) {
    const size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{ErrorCode::kInvalid, "must be KEY=VALUE, not " + json::Quote(one), "--where"};
    }
    filter.where.emplace_back(one.substr(0, equals), one.substr(equals + 1));
  }
  Result<std::vector<eval::EvalText>> texts = eval::ReadEvalTexts(*lines, filter);
  if (!texts.ok()) return InFile(data, texts.error());
  return texts;
}

Result<EvalInput> OpenModelAndSchema(const char* command, const EvalTexts& flags) {
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
  Result<std::unique_ptr<ExtractEngine>> engine = ExtractEngine::Open(command, extract);
  if (!engine.ok()) return engine.error();
  out.engine = *std::move(engine);
  return out;
}

Status EvalPass::Prepare(const std::string& schema, const std::string& schema_place) {
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

void EvalPass::ReportTo(RecordReport* report, size_t setting) {
  report_ = report;
  report_setting_ = setting;
  for (auto& [text, schema] : schemas_) schema->extractor->WantDetails(true);
}

Result<eval::EvalRun> EvalPass::Run(const std::string& name, Progress& progress) {
  eval::EvalRun run;
  run.name = name;
  run.right_by_text.resize(texts_.size());
  outputs_.assign(texts_.size(), "");
  const auto start = std::chrono::steady_clock::now();
  size_t done = 0;
  for (size_t i = 0; i < texts_.size() && report_status_.ok(); ++i) {
    Schema& schema = *of_text_[i];
    if (!flags_.no_surprise) schema.extractor->WantMaskSurprise();
    while (engine_.running() >= 2 * flags_.extract.batch && engine_.Step()) {
    }
    const std::string source = fmt::format("{}: line {}", flags_.data, texts_[i].line);
    schema.extractor->Add(texts_[i].text, source, [&, i](Result<Generation> output) {
      Take(i, std::move(output), run);
      progress.Set(fmt::format("text {} of {}", ++done, texts_.size()));
    });
  }
  while (engine_.Step()) {
  }
  if (!report_status_.ok()) return report_status_.error();
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return run;
}

std::string EvalPass::RecordLines() const {
  std::string out;
  for (size_t i = 0; i < texts_.size(); ++i) {
    out += fmt::format("{{\"line\":{},\"id\":{},\"record\":{}}}\n", texts_[i].line,
                       json::Quote(texts_[i].id), outputs_[i].empty() ? "null" : outputs_[i]);
  }
  return out;
}

void EvalPass::Take(size_t i, Result<Generation> output, eval::EvalRun& run) {
  const eval::EvalText& text = texts_[i];
  const eval::FieldMetrics& metrics = of_text_[i]->metrics;
  Result<json::Value> record = Error{ErrorCode::kInvalid, "", ""};
  if (output.ok()) {
    run.output_tokens += output->stats.output_tokens;
    run.prompt_tokens += output->stats.prompt_tokens;
    run.mask_surprise += output->stats.mask_surprise;
    record = json::Parse(output->text);
  } else if (output.error().code == ErrorCode::kIo) {
    // A check cannot run: that says nothing of the texts.
    if (report_status_.ok()) report_status_ = output.error();
  } else {
    const std::string place = fmt::format("{}: line {}", flags_.data, text.line);
    const std::string message = output.error().ToString();
    Note(engine_.command(), message.starts_with(place) ? message : place + ": " + message);
  }
  run.scores.failed += !record.ok();
  if (record.ok()) outputs_[i] = json::Dump(*record);
  std::vector<eval::FieldVerdict> verdicts;
  const eval::RecordScore score = record.ok()
                                      ? eval::ScoreRecord(text.record, *record, metrics,
                                                          report_ == nullptr ? nullptr : &verdicts)
                                      : eval::ScoreMissing(text.record, metrics);
  if (report_ != nullptr) Tell(i, output, record.ok() ? output->text : "", verdicts);
  run.right_by_text[i] = score.right();
  run.scores.Add(score);
}

void EvalPass::Tell(size_t i, const Result<Generation>& output, const std::string& record,
                    const std::vector<eval::FieldVerdict>& verdicts) {
  const eval::EvalText& text = texts_[i];
  std::string error = output.ok() ? "" : output.error().ToString();
  if (output.ok() && record.empty()) error = "the record is no JSON";
  blocks_[i] = report_->BlocksOf({
      .name = fmt::format("line {}{}", text.line, text.id.empty() ? "" : " " + text.id),
      .setting = report_setting_,
      .text = text.text,
      .record = record,
      .error = error,
      .details = output.ok() ? &output->details : nullptr,
      .verdicts = &verdicts,
      .closed = output.ok() && output->stop == StopReason::kClosed,
  });
  while (!blocks_.empty() && blocks_.begin()->first == reported_) {
    if (report_status_.ok()) report_status_ = report_->Write(blocks_.begin()->second);
    blocks_.erase(blocks_.begin());
    ++reported_;
  }
}

}  // namespace pawl::cli
