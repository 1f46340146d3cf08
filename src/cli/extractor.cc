// Extraction for the command: a schema is compiled as the options say, first with closed objects,
// and each text becomes a request of one engine. The grammar is made before the weights are read,
// so that what is wrong with a schema is told at once.
#include "src/cli/extractor.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/decode/closing.h"
#include "src/engine/engine_parts.h"
#include "src/engine/schema_view.h"
#include "src/engine/thinking.h"

namespace pawl::cli {
namespace {

// Objects are closed where the schema does not say; where nothing fits then they stay open.
Result<Grammar> CompileClosed(GrammarFlags& flags,
                              const std::shared_ptr<const Vocabulary>& vocabulary,
                              std::vector<std::string>& notes) {
  Result<Grammar> grammar = flags.Compile(vocabulary);
  std::string& additional = flags.layout.additional_properties;
  const bool nothing_fits = grammar.ok() ? grammar->Start().completion_length() < 0
                                         : grammar.error().code == ErrorCode::kUnsatisfiable;
  if (!nothing_fits || additional == "allow" || flags.layout.asked_additional_properties) {
    return grammar;
  }
  additional = "allow";
  Result<Grammar> open = flags.Compile(vocabulary);
  if (!open.ok()) return grammar;
  notes.emplace_back("#: no value fits with closed objects, so additional keys are allowed");
  return open;
}

}  // namespace

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
      ->add_option("--schema-view", view,
                   "How the prompt shows the schema: template (types by key), keys (their names), "
                   "schema (JSON Schema), none, auto (keys of flat records, else template)")
      ->check(CLI::IsMember({"auto", "template", "keys", "schema", "none"}))
      ->capture_default_str();
  command
      ->add_option("--repetition", repetition,
                   "An output whose last 200 tokens or more are one period of at most 64, eight "
                   "times: close, allow")
      ->check(CLI::IsMember({"close", "allow"}))
      ->capture_default_str();
  thinking.AddThinkingTo(command, "off");
}

Status ExtractSetting::Check() const {
  if (Status status = sampling.Check(); !status.ok()) return status;
  return thinking.Check();
}

Result<std::vector<ExtractExample>> ExtractSetting::ReadExamplesFile() const {
  if (examples_file.empty()) return std::vector<ExtractExample>();
  const Result<std::string> text = ReadInput(examples_file);
  if (!text.ok()) return text.error();
  Result<std::vector<ExtractExample>> examples = ReadExamples(*text);
  if (!examples.ok()) return InFile(examples_file, examples.error());
  return examples;
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
  setting.thinking.AddMarksTo(command);
  TextOption(command, "--model", model, "MODEL", kModelHelp);
  ChoiceOption(command, "--dtype", dtype, DtypeNames(), "TYPE", "How weights are kept in memory");
  device.AddTo(command);
  CountOption(command, "--threads", threads, 0, 1024, "Threads; 0: all cores");
  CountOption(command, "--batch", batch, 1, 1024,
              "Texts that the model works on at a time, where there are several; the output is the "
              "same for all numbers");
  drafts.AddTo(command);
}

Status ExtractFlags::Check() const {
  if (Status status = setting.Check(); !status.ok()) return status;
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
  if (Status status = cli::LoadWeights(command_, *model_, flags.threads, flags.dtype, flags.device);
      !status.ok()) {
    return status;
  }
  Result<Engine> engine = flags.drafts.MakeEngine(std::move(model_), batch);
  if (!engine.ok()) return engine.error();
  engine_ = *std::move(engine);
  return {};
}

const LoadedModel& ExtractEngine::model() const {
  return engine_ ? EngineAccess::ModelOf(*engine_) : *model_;
}

void ExtractEngine::Add(const EngineRequest& request,
                        const std::function<void(Result<Generation>)>& done) {
  const auto answer = [this, done](Result<Generation> output) {
    --running_;
    done(std::move(output));
  };
  ++running_;
  const Result<RequestId> added = engine_->Add(request, answer);
  if (!added.ok()) answer(added.error());
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
  grammar_flags.schema_text = schema;
  grammar_flags.schema_file = place;
  if (!setting.layout.max_string.has_value()) grammar_flags.layout.max_string = MaxStringFor("");
  std::vector<std::string> notes;
  Result<Grammar> grammar = CompileClosed(grammar_flags, engine.model().vocabulary(), notes);
  if (!grammar.ok()) return grammar.error();
  if (grammar->Start().completion_length() < 0) return NoValueFits(place + ": #");
  std::unique_ptr<Extractor> out(new Extractor(engine, grammar_flags, *grammar));
  out->notes_ = grammar->notes();
  out->notes_.insert(out->notes_.end(), notes.begin(), notes.end());
  out->fixed_max_string_ = setting.layout.max_string.has_value();
  out->grammar_source_ = grammar_flags.source();
  GenerateOptions& options = out->request_.options;
  options.sampling = setting.sampling.params;
  options.max_tokens = setting.sampling.max_tokens;
  options.close_repetition = setting.repetition == "close";
  const Result<json::Value> tree = json::Parse(schema);
  ExtractInput& input = out->request_.extract.emplace();
  input.schema = tree.ok() ? json::Dump(*tree) : schema;
  input.instruction = setting.instruction;
  input.view = *SchemaViewNamed(setting.view);
  Result<std::vector<ExtractExample>> examples = setting.ReadExamplesFile();
  if (!examples.ok()) return examples.error();
  input.examples = *std::move(examples);
  out->request_.now = engine.now();
  if (Status status = out->PlanPrompt(setting); !status.ok()) return status.error();
  return out;
}

// What the examples, or a chat template, have against a prompt, and what may be thought.
Status Extractor::PlanPrompt(const ExtractSetting& setting) {
  ExtractInput tried = *request_.extract;
  tried.text = "text";
  if (Status status = WriteExamples(grammar_, tried.schema, tried.examples); !status.ok()) {
    return InFile(setting.examples_file, status.error());
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
                    std::function<void(Result<Generation>)> done) {
  Result<Grammar> grammar = GrammarFor(text);
  if (!grammar.ok()) return done(grammar.error());
  request_.extract->text = text;
  request_.grammar = *std::move(grammar);
  engine_.Add(request_, [this, source, done = std::move(done)](Result<Generation> output) {
    if (!output.ok()) {
      Error error = AtOption(output.error(), source, grammar_source_);
      if (error.place == "text") error.place = source;
      output = std::move(error);
    }
    done(std::move(output));
  });
}

void Extractor::WantMaskSurprise() {
  request_.options.mask_surprise = !engine_.model().model().samples();
}

Result<Grammar> Extractor::GrammarFor(std::string_view text) {
  const int64_t longest = MaxStringFor(text);
  if (fixed_max_string_ || longest == MaxStringFor("")) return grammar_;
  return long_grammars_.Get(std::to_string(longest), [&] {
    grammar_flags_.layout.max_string = longest;
    return grammar_flags_.Compile(engine_.model().vocabulary());
  });
}

std::string ClosedNote(const Generation& output) {
  if (output.closed_by == ClosedBy::kRepetition) {
    return "note: the output repeated itself, so it was closed in the shortest valid way";
  }
  if (!output.notes.empty()) return "note: " + output.notes.front();
  return fmt::format(
      "note: the budget of {} tokens was nearly spent, so the output was closed in the shortest "
      "valid way",
      output.stats.budget);
}

}  // namespace pawl::cli
