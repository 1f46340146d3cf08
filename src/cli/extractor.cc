// Extraction for the command: a schema is compiled as the options say, and each text becomes a
// request of one engine. The grammar is made before the weights are read,
// so that what is wrong with a schema is told at once.
#include "src/cli/extractor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>

#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/cli/report.h"
#include "src/cli/sampler_flags.h"
#include "src/cli/search_flags.h"
#include "src/decode/closing.h"
#include "src/decode/sampling/names.h"
#include "src/engine/copied_fields.h"
#include "src/engine/engine_parts.h"
#include "src/engine/schema_view.h"
#include "src/engine/search_json.h"
#include "src/engine/thinking.h"

namespace pawl::cli {

// ---- Options ----

void ExtractSetting::AddTo(CLI::App* command) {
  layout.AddTo(command);
  sampling.AddTo(command);
  command
      ->add_option("--instruction", instruction,
                   "What to extract, in words, in place of a general instruction")
      ->check(NotEmpty)
      ->type_name("TEXT");
  command
      ->add_option("--examples", examples_file,
                   "Texts with the records that are right for them, shown to the model: lines of "
                   "{\"text\": ..., \"record\": ...}")
      ->check(NotEmpty)
      ->type_name("FILE");
  command
      ->add_option(
          "--schema-view", view,
          "How the prompt shows the schema: template (types by key), keys, schema (JSON Schema), "
          "none, auto (keys of flat records, else template; the default unless one was "
          "measured)")
      ->check(CLI::IsMember({"auto", "template", "keys", "schema", "none"}));
  command
      ->add_option("--repetition", repetition,
                   "An output whose last 200 tokens or more are one period of at most 64, eight "
                   "times: close, allow")
      ->check(CLI::IsMember({"close", "allow"}))
      ->capture_default_str();
  command
      ->add_option("--prefer-text", prefer_text,
                   "How many nats a value loses that the text does not have; 0: none "
                   "(default: docs/extraction.md)")
      ->check(FiniteNumber(0, kMostPreferText))
      ->type_name("NATS");
  TextOption(command, "--contrast", contrast, "A",
             "Make more probable what the text adds to the prompt: a number, or auto "
             "(docs/search.md)");
  CountOption(command, "--free-first", free_first, 0, 1 << 24, kFreeFirstHelp);
  thinking.AddThinkingTo(command, "off");
  diffusion.AddTo(command);
}

Status ExtractSetting::Check() const {
  if (Status status = sampling.Check(); !status.ok()) return status;
  if (Status status = diffusion.Check(contrast.empty() ? "" : "--contrast"); !status.ok()) {
    return status;
  }
  if (!contrast.empty()) {
    SearchOptions options;
    if (Status status = ReadContrast(contrast, options); !status.ok()) return status;
    if (thinking.given() || free_first > 0) {
      return Error{
          ErrorCode::kUnsupported,
          std::string("cannot be used with ") + (free_first > 0 ? "--free-first" : "--thinking"),
          "--contrast"};
    }
  }
  return thinking.Check();
}

Result<std::vector<ExtractExample>> ExtractSetting::ReadExamplesFile(
    std::vector<int>& lines) const {
  if (!examples.empty() || examples_file.empty()) return examples;
  const Result<std::string> text = ReadInput(examples_file);
  if (!text.ok()) return text.error();
  Result<std::vector<ExtractExample>> read = ReadExamples(*text, &lines);
  if (!read.ok()) return InFile(examples_file, read.error());
  return read;
}

void RetryFlags::AddTo(CLI::App* command) {
  command
      ->add_option("--check", checks,
                   "What a record has to pass: KIND:VALUE, where KIND is regex, schema, grammar, "
                   "style, syntax, monitor, program or tests; may be given several times")
      ->type_name("SPEC");
  RealOption(command, "--check-timeout", check_timeout, 0.001, 86400, "S",
             "Seconds for one answer of a program");
  CountOption(command, "--retries", retries, 0, 1000,
              "Further tries where a check refuses a record, which is shown to the model with what "
              "is wrong with it");
  const std::span<const char* const> names = OptionNames(SamplerKind());
  command
      ->add_option("--sampler", sampler,
                   "Draw records that keep the model's distribution, given the checks "
                   "(docs/sampling.md)")
      ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())))
      ->type_name("NAME");
}

Status RetryFlags::Check(const ExtractSetting& setting) const {
  if (retries > 0 && checks.empty()) {
    return Error{ErrorCode::kInvalid, "needs --check", "--retries"};
  }
  if (sampler.empty()) return {};
  if (!setting.contrast.empty()) {
    return Error{ErrorCode::kUnsupported, "cannot be used with --sampler", "--contrast"};
  }
  if (setting.thinking.given() || setting.free_first > 0) {
    return Error{ErrorCode::kUnsupported, "cannot be used with --sampler",
                 setting.free_first > 0 ? "--free-first" : "--thinking"};
  }
  return setting.diffusion.Check("--sampler");
}

void TryCounts::Add(const GenerationStats& stats) {
  ++calls;
  prompt_tokens += stats.prompt_tokens;
  output_tokens += stats.output_tokens;
}

void ExtractFlags::AddTo(CLI::App* command) {
  grammar.AddSchemaTo(command, /*with_layout=*/false);
  command
      ->add_option("--template", template_file,
                   "A template of NuExtract in place of a schema: {\"name\": \"string\", \"kind\": "
                   "[\"a\", \"b\"]}")
      ->check(NotEmpty)
      ->type_name("FILE");
  setting.AddTo(command);
  retry.AddTo(command);
  setting.thinking.AddMarksTo(command);
  TextOption(command, "--model", model, "MODEL", kModelHelp);
  ChoiceOption(command, "--dtype", dtype, DtypeNames(), "TYPE", "How weights are kept in memory");
  device.AddTo(command);
  lora.AddTo(command);
  CountOption(command, "--threads", threads, 0, 1024, "Threads; 0: all cores");
  CountOption(command, "--batch", batch, 1, 1024,
              "Texts that the model works on at a time, where there are several; the output is the "
              "same for all numbers");
  drafts.AddTo(command);
}

Status ExtractFlags::Check() const {
  if (Status status = setting.Check(); !status.ok()) return status;
  if (Status status = retry.Check(setting); !status.ok()) return status;
  if (Status status = drafts.Check(); !status.ok()) return status;
  if (!stats_json.empty()) {
    if (Status status = CheckWritable(stats_json); !status.ok()) return status;
  }
  if (!template_file.empty() && !grammar.schema_file.empty()) {
    return Error{ErrorCode::kInvalid, "cannot be used with --schema", "--template"};
  }
  return {};
}

Result<std::string> ExtractFlags::ReadSchemaText() const {
  if (template_file.empty()) return grammar.ReadSchema();
  const Result<std::string> text = ReadInput(template_file);
  if (!text.ok()) return text.error();
  const Result<json::Value> given = json::Parse(*text);
  if (!given.ok()) return InFile(template_file, given.error());
  Result<std::string> schema = SchemaOfTemplate(*given);
  if (!schema.ok()) return InFile(template_file, schema.error());
  return schema;
}

// ---- The engine ----

Result<std::unique_ptr<ExtractEngine>> ExtractEngine::Open(const char* command,
                                                           const ExtractFlags& flags) {
  std::unique_ptr<ExtractEngine> out(new ExtractEngine(command));
  Result<std::string> folder = FindModelFolder(flags.model);
  if (!folder.ok()) return folder.error();
  Result<std::unique_ptr<LoadedModel>> model =
      OpenModel(command, *folder, flags.setting.thinking.MarksAlone());
  if (!model.ok()) return model.error();
  out->model_ = *std::move(model);
  return out;
}

Status ExtractEngine::LoadWeights(const ExtractFlags& flags, int batch) {
  Status status =
      cli::LoadWeights(command_, *model_, flags.threads, flags.dtype, flags.device, flags.lora);
  if (!status.ok()) return status;
  Result<Engine> engine = flags.drafts.MakeEngine(std::move(model_), batch);
  if (!engine.ok()) return engine.error();
  engine_ = *std::move(engine);
  return {};
}

const LoadedModel& ExtractEngine::model() const {
  return engine_ ? EngineAccess::ModelOf(*engine_) : *model_;
}

void ExtractEngine::Add(const EngineRequest& request,
                        const std::function<void(Result<Generation>)>& done, bool alternatives) {
  const auto answer = [this, done](Result<Generation> output) {
    --running_;
    done(std::move(output));
  };
  ++running_;
  const Result<RequestId> added = EngineAccess::AddChunk(*engine_, request, alternatives, answer);
  if (!added.ok()) answer(added.error());
}

Result<SamplerResult> ExtractEngine::Sample(const EngineRequest& request,
                                            const SamplerOptions& options) {
  return EngineAccess::Sample(*engine_, request, options, nullptr, nullptr);
}

void ExtractEngine::TellOfThinking(const ThinkingFlags& flags, const ThoughtPlan& plan) {
  if (!told_of_thinking_) NoteThinking(command_, flags, plan);
  told_of_thinking_ = told_of_thinking_ || plan.changes_nothing;
}

// ---- Records ----

Result<std::unique_ptr<Extractor>> Extractor::Create(ExtractEngine& engine,
                                                     const ExtractFlags& flags,
                                                     const ExtractSetting& setting,
                                                     const std::string& schema,
                                                     const std::string& place) {
  GrammarFlags grammar_flags = flags.grammar;
  grammar_flags.layout = setting.layout;
  grammar_flags.layout.FillIn(engine.model().ExtractOptions(""));
  grammar_flags.schema_text = schema;
  grammar_flags.schema_file = place;
  if (!setting.layout.max_string.has_value()) grammar_flags.layout.max_string = MaxStringFor("");
  grammar_flags.bind_source = true;
  Result<Grammar> grammar = grammar_flags.Compile(engine.model().vocabulary());
  if (!grammar.ok()) return grammar.error();
  if (grammar->Start().completion_length() < 0) return NoValueFits(place + ": #");
  std::unique_ptr<Extractor> out(new Extractor(engine, grammar_flags, *grammar));
  out->notes_ = grammar->notes();
  out->fixed_max_string_ = setting.layout.max_string.has_value();
  out->grammar_source_ = grammar_flags.source();
  GenerateOptions& options = out->request_.options;
  options.sampling = setting.sampling.params;
  options.max_tokens = setting.sampling.max_tokens;
  options.close_repetition = setting.repetition == "close";
  options.diffusion = setting.diffusion.options;
  out->request_.free_first = setting.free_first;
  out->contrast_ = setting.contrast;
  const Result<json::Value> tree = json::Parse(schema);
  ExtractInput& input = out->request_.extract.emplace();
  input.schema = tree.ok() ? json::Dump(*tree) : schema;
  input.instruction = setting.instruction;
  if (!setting.view.empty()) input.view = *SchemaViewNamed(setting.view);
  input.prefer_text = setting.prefer_text;
  Result<std::vector<ExtractExample>> examples = setting.ReadExamplesFile(out->example_lines_);
  if (!examples.ok()) return examples.error();
  input.examples = *std::move(examples);
  out->request_.now = engine.now();
  out->ListSettings(setting);
  if (Status status = out->MakeChecks(flags.retry); !status.ok()) return status.error();
  if (Status status = out->PlanPrompt(setting); !status.ok()) return status.error();
  return out;
}

Status Extractor::MakeChecks(const RetryFlags& retry) {
  const CheckSpecOptions options = {
      .time_limit = std::chrono::milliseconds(static_cast<int64_t>(retry.check_timeout * 1000))};
  for (const std::string& spec : retry.checks) {
    auto check = MakeCheckOption(spec, engine_.model().vocabulary(), options);
    if (!check.ok()) return check.error();
    checks_.push_back(*std::move(check));
    check_names_.push_back(spec);
  }
  most_retries_ = retry.retries;
  if (!retry.sampler.empty()) sampler_ = *OptionOf<SamplerKind>(retry.sampler);
  return {};
}

// What the command line says comes before what the files of the model say.
void Extractor::ListSettings(const ExtractSetting& setting) {
  const auto asked = [&](const ExtractDefault& one) {
    if (one.name == "schema_view") return !setting.view.empty();
    if (one.name == "instruction") return !setting.instruction.empty();
    if (one.name == "examples") return !request_.extract->examples.empty();
    if (one.name == "prefer_text") return setting.prefer_text.has_value();
    const bool space = one.name == "whitespace" || one.name == "separators";
    return setting.layout.asked.contains(one.name) ||
           (space && (setting.layout.asked.contains("whitespace") ||
                      setting.layout.asked.contains("separators")));
  };
  const LayoutFlags& layout = grammar_flags_.layout;
  const auto value = [&](const ExtractDefault& one) -> std::string {
    if (one.name == "schema_view") return json::Quote(setting.view);
    if (one.name == "instruction") return json::Quote(setting.instruction);
    if (one.name == "examples") return std::to_string(request_.extract->examples.size());
    if (one.name == "prefer_text") return fmt::format("{}", *setting.prefer_text);
    if (one.name == "whitespace") return json::Quote(layout.whitespace);
    if (one.name == "keys") return json::Quote(layout.keys);
    if (one.name == "nulls") return json::Quote(layout.nulls);
    return "[" + json::Quote(layout.separators[0]) + "," + json::Quote(layout.separators[1]) + "]";
  };
  settings_ = engine_.model().choices().List(request_.extract->schema);
  for (ExtractDefault& one : settings_) {
    if (asked(one)) one = {one.name, value(one), "option"};
  }
}

// What the examples, or a chat template, have against a prompt, and what may be thought.
Status Extractor::PlanPrompt(const ExtractSetting& setting) {
  ExtractInput tried = *request_.extract;
  tried.text = "text";
  if (Status status = WriteExamples(grammar_, tried.schema, tried.examples); !status.ok()) {
    // "examples: N: POINTER" is a line of the file.
    const std::string& place = status.error().place;
    const size_t colon = place.find(": #");
    const size_t number = static_cast<size_t>(std::atoi(place.c_str() + place.find(' ') + 1));
    if (number == 0 || number > example_lines_.size() || colon == std::string::npos) {
      return status;
    }
    return Error{status.error().code, status.error().message,
                 fmt::format("{}: line {}: #/record{}", setting.examples_file,
                             example_lines_[number - 1], place.substr(colon + 3))};
  }
  if (!setting.view.empty() && engine_.model().extract().ok() &&
      !engine_.model().extract()->shows_views()) {
    Note(
        engine_.command(),
        "note: --schema-view changes nothing: the prompt of the model's pawl.json shows the schema "
        "as it is, or not at all");
    request_.extract->view = SchemaView::kDefault;
  }
  if (setting.prefer_text.value_or(0) > 0 && (sampler_ || !contrast_.empty())) {
    Note(engine_.command(), fmt::format("note: --prefer-text changes nothing with {}",
                                        sampler_ ? "--sampler" : "--contrast"));
  }
  const LoadedModel& model = engine_.model();
  const Thinking thinking = ThinkingFor(setting.thinking.asked(), false);
  const auto prompt = model.EncodeExtract(tried, engine_.now(), thinking);
  if (!prompt.ok()) {
    Error error = prompt.error();
    if (error.place == "instruction" || error.place == "examples") error.place = "--" + error.place;
    return error;
  }
  const ModelTraits& traits = model.traits();
  const ThoughtPlan plan =
      PlanThoughts(traits, ThinkingStartOf(model.tokenizer(), *prompt, traits), thinking);
  engine_.TellOfThinking(setting.thinking, plan);
  if (!plan.changes_nothing) request_.thinking = setting.thinking.asked();
  return {};
}

void Extractor::Add(std::string_view text, const std::string& source,
                    std::function<void(Result<Generation>)> done, int64_t longest,
                    const TextCuts& cuts) {
  Result<Grammar> grammar = GrammarFor(longest > 0 ? longest : MaxStringFor(text));
  if (!grammar.ok()) return done(grammar.error());
  const auto one = std::make_shared<Try>(Try{request_, source, std::move(done), 0, {}, false});
  one->of_document = longest > 0;
  one->request.extract->text = text;
  one->request.extract->cut_begin = cuts.begin;
  one->request.extract->cut_end = cuts.end;
  one->request.grammar = *std::move(grammar);
  Start(one);
}

void Extractor::Start(const std::shared_ptr<Try>& one) {
  if (sampler_) return End(one, Draw(one->request));
  if (!contrast_.empty()) return End(one, Contrast(one->request));
  engine_.Add(
      one->request, [this, one](Result<Generation> output) { End(one, std::move(output)); },
      alternatives_);
}

// A draw of the sampler as an output.
Result<Generation> Extractor::Draw(const EngineRequest& request) {
  const SamplingParams& sampling = request.options.sampling;
  SamplerOptions options;
  options.sampler = *sampler_;
  options.temperature = sampling.temperature > 0 ? sampling.temperature : 1;
  options.seed = sampling.seed;
  options.max_tokens = request.options.max_tokens;
  options.checks = checks_;
  const Result<SamplerResult> drawn = engine_.Sample(request, options);
  if (!drawn.ok()) {
    Error error = drawn.error();
    if (error.place == "sampler") error.place = "--sampler";
    return error;
  }
  const WeightedOutput& output = drawn->outputs.front();
  Generation out;
  out.tokens = output.tokens;
  out.text = output.text;
  out.stop = output.report.valid ? StopReason::kEnd : StopReason::kLength;
  out.stats.output_tokens = static_cast<int>(output.tokens.size());
  out.stats.forward_calls = static_cast<int>(drawn->model_calls);
  return out;
}

// The record with contrast to the prompt that has no text.
Result<Generation> Extractor::Contrast(const EngineRequest& request) {
  SearchOptions options = GreedyOrDrawn(request.options.sampling);
  options.max_tokens = request.options.max_tokens;
  options.contrast_prompt = "(none)";
  if (Status status = ReadContrast(contrast_, options); !status.ok()) return status.error();
  const Result<SearchResult> found = engine_.engine().Search(request, options);
  if (!found.ok()) {
    Error error = found.error();
    if (error.place == "contrast" || error.place == "strategy") error.place = "--contrast";
    return error;
  }
  if (found->outputs.empty()) {
    return Error{ErrorCode::kLimit, "no record was found within the limits", ""};
  }
  const SearchOutput& output = found->outputs.front();
  Generation out;
  out.tokens = output.tokens;
  out.text = request.grammar->Record(output.text);
  out.stop = output.closed ? StopReason::kClosed : StopReason::kEnd;
  out.stats.output_tokens = static_cast<int>(output.tokens.size());
  out.stats.forward_calls = static_cast<int>(found->model_calls);
  return out;
}

void Extractor::End(const std::shared_ptr<Try>& one, Result<Generation> output) {
  if (!output.ok()) {
    Error error = AtOption(output.error(), one->source, grammar_source_);
    const bool too_long =
        error.code == ErrorCode::kLimit && (error.place == "text" || error.place == one->source);
    if (error.place == "text") error.place = one->source;
    if (too_long && !one->of_document) error.message += "; --document reads it in chunks";
    return one->done(std::move(error));
  }
  (one->number == 0 ? first_tries_ : retries_).Add(output->stats);
  cli::Add(one->stats, output->stats);
  const Result<std::string> problem = ProblemOf(*output);
  if (!problem.ok()) return one->done(problem.error());
  if (problem->empty()) return one->done(std::move(output));
  if (one->number == most_retries_) {
    return one->done(
        Error{ErrorCode::kInvalid,
              fmt::format("no record passes: {}{}", *problem,
                          most_retries_ == 0 ? "" : fmt::format(" ({} tries)", most_retries_ + 1)),
              checks_.empty() ? "--sampler" : "--check"});
  }
  // The next try sees the record and the problem. Where the prompt has no place for them, or that
  // was tried, it is another draw.
  ++one->number;
  one->stats = output->stats;
  one->request.extract->record = output->text;
  one->request.extract->problem = *problem;
  SamplingParams& sampling = one->request.options.sampling;
  ++sampling.seed;
  constexpr float kWarm = 0.7f;
  const bool shown = engine_.model().extract()->shows_views();
  if (!shown || one->number > 1) sampling.temperature = std::max(sampling.temperature, kWarm);
  Start(one);
}

Result<std::string> Extractor::ProblemOf(const Generation& output) const {
  if (sampler_ && output.stop != StopReason::kEnd) {
    return fmt::format("no draw of {} tokens is valid", request_.options.max_tokens);
  }
  for (size_t i = 0; i < checks_.size(); ++i) {
    std::string why;
    const Result<Verdict> verdict = checks_[i]->Judge(
        {.text = output.text, .tokens = output.tokens, .ended = true, .why = &why});
    if (!verdict.ok()) return InFile("--check", verdict.error());
    if (*verdict == Verdict::kAccept) continue;
    if (!why.empty()) return why;
    if (*verdict == Verdict::kUnknown) return check_names_[i] + " gave no verdict";
    return "it does not pass " + check_names_[i];
  }
  return std::string();
}

void Extractor::WantMaskSurprise() {
  request_.options.mask_surprise = !engine_.model().model().samples();
}

Result<Grammar> Extractor::GrammarFor(int64_t longest) {
  if (fixed_max_string_ || longest == MaxStringFor("")) return grammar_;
  return long_grammars_.Get(std::to_string(longest), [&] {
    grammar_flags_.layout.max_string = longest;
    return grammar_flags_.Compile(engine_.model().vocabulary());
  });
}

static std::string ClosedNote(const Generation& output) {
  if (output.closed_by == ClosedBy::kRepetition) {
    return "note: the output repeated itself, so it was closed in the shortest valid way";
  }
  if (output.closed_by == ClosedBy::kSteps && !output.notes.empty()) {
    return "note: " + output.notes.front();
  }
  return fmt::format(
      "note: the budget of {} tokens was nearly spent, so the output was closed in the shortest "
      "valid way",
      output.stats.budget);
}

std::vector<std::string> NotesOn(const Generation& output, const Extractor& extractor) {
  std::vector<std::string> out;
  if (output.stop == StopReason::kClosed) out.push_back(ClosedNote(output));
  const bool first_told = output.closed_by == ClosedBy::kSteps;
  for (size_t i = first_told ? 1 : 0; i < output.notes.size(); ++i) {
    // What holds for all texts is told once, with --stats.
    if (std::ranges::find(extractor.notes(), output.notes[i]) == extractor.notes().end()) {
      out.push_back("note: " + output.notes[i]);
    }
  }
  return out;
}

std::vector<std::string> SettingNotes(const Extractor& extractor) {
  constexpr size_t kMostValue = 60;
  std::string line;
  for (const ExtractDefault& one : extractor.settings()) {
    const bool long_value = one.value.size() > kMostValue;
    line +=
        fmt::format("{}{} {} ({})", line.empty() ? "" : ", ", one.name,
                    long_value ? one.value.substr(0, kMostValue) + "..." : one.value, one.source);
  }
  std::vector<std::string> out = {"settings: " + line};
  if (!extractor.has_checks()) return out;
  const auto counts = [](const TryCounts& one) {
    return fmt::format("{} calls, {} tokens of prompts, {} of outputs", one.calls,
                       one.prompt_tokens, one.output_tokens);
  };
  out.push_back(fmt::format("tries: first {}; retries {}", counts(extractor.first_tries()),
                            counts(extractor.retries())));
  return out;
}

std::string SettingsJson(const Extractor& extractor) {
  std::string settings;
  for (const ExtractDefault& one : extractor.settings()) {
    settings += fmt::format("{}{}:{{\"value\":{},\"from\":{}}}", settings.empty() ? "" : ",",
                            json::Quote(one.name), one.value, json::Quote(one.source));
  }
  const auto counts = [](const TryCounts& one) {
    return fmt::format("{{\"calls\":{},\"prompt_tokens\":{},\"output_tokens\":{}}}", one.calls,
                       one.prompt_tokens, one.output_tokens);
  };
  std::string out = ",\"settings\":{" + settings + "}";
  if (extractor.has_checks()) {
    out += ",\"tries\":{\"first\":" + counts(extractor.first_tries()) +
           ",\"retries\":" + counts(extractor.retries()) + "}";
  }
  return out;
}

}  // namespace pawl::cli
