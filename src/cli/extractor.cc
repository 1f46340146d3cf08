// Extraction for the command: a schema is compiled as the options say, first with closed objects,
// and each text becomes a request of one batch engine. The grammar is made before the weights are
// read, so that what is wrong with a schema is told at once.
#include "src/cli/extractor.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/decode/closing.h"
#include "src/engine/engine_parts.h"
#include "src/engine/schema_view.h"

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
                   "An output whose last 200 tokens repeat a period of at most 20: close, allow")
      ->check(CLI::IsMember({"close", "allow"}))
      ->capture_default_str();
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
  command->add_option("--model", model, kModelHelp)->check(NotEmpty)->type_name("MODEL");
  command->add_option("--dtype", dtype, "How weights are kept in memory")
      ->check(CLI::IsMember(DtypeNames()))
      ->type_name("TYPE")
      ->capture_default_str();
  device.AddTo(command);
  command->add_option("--threads", threads, "Threads; 0: all cores")
      ->transform(WholeNumber(0, 1024))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--batch", batch,
                   "Texts that the model works on at a time, where there are several; the output "
                   "is the same for all numbers")
      ->transform(WholeNumber(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  drafts.AddTo(command);
}

Status ExtractFlags::Check() const {
  if (Status status = setting.sampling.Check(); !status.ok()) return status;
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
  Result<std::unique_ptr<LoadedModel>> model = OpenModel(command, *folder);
  if (!model.ok()) return model.error();
  out->model_ = *std::move(model);
  return out;
}

Status ExtractEngine::LoadWeights(const ExtractFlags& flags, int batch) {
  if (Status status = cli::LoadWeights(command_, *model_, flags.threads, flags.dtype, flags.device);
      !status.ok()) {
    return status;
  }
  Result<std::shared_ptr<Drafter>> drafter = flags.drafts.Make(*model_);
  if (!drafter.ok()) return drafter.error();
  drafter_ = *std::move(drafter);
  // No one waits for an output but this thread, so it finds the masks.
  BatchOptions options = BatchOptionsFor(*model_, batch, drafter_);
  options.look_threads = 0;
  batch_ = std::make_unique<BatchEngine>(model_->model(), model_->vocabulary(), model_->encoder(),
                                         options);
  return {};
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
  out->options_.sampling = setting.sampling.params;
  out->options_.max_tokens = setting.sampling.max_tokens;
  out->options_.close_repetition = setting.repetition == "close";
  const Result<json::Value> tree = json::Parse(schema);
  out->input_.schema = tree.ok() ? json::Dump(*tree) : schema;
  out->input_.instruction = setting.instruction;
  out->input_.view = *SchemaViewNamed(setting.view);
  Result<std::vector<ExtractExample>> examples = setting.ReadExamplesFile();
  if (!examples.ok()) return examples.error();
  out->input_.examples = *std::move(examples);
  if (Status status = WriteExamples(*grammar, out->input_.schema, out->input_.examples);
      !status.ok()) {
    return InFile(setting.examples_file, status.error());
  }
  // What a chat template has against a message of a user.
  ExtractInput tried = out->input_;
  tried.text = "text";
  const auto prompt = engine.model().EncodeExtract(tried, engine.now());
  if (!prompt.ok()) {
    Error error = prompt.error();
    if (error.place == "instruction" || error.place == "examples") error.place = "--" + error.place;
    return error;
  }
  return out;
}

void Extractor::Add(std::string_view text, const std::string& source,
                    std::function<void(Result<Generation>)> done) {
  input_.text = text;
  Result<std::vector<TokenId>> prompt = engine_.model().EncodeExtract(input_, engine_.now());
  if (!prompt.ok()) {
    const bool placed = !prompt.error().place.empty();
    return done(placed ? prompt.error() : InFile(source, prompt.error()));
  }
  const Result<Grammar> grammar = GrammarFor(text);
  if (!grammar.ok()) return done(grammar.error());
  engine_.batch().Add({.prompt = *std::move(prompt),
                       .constraint = MakeConstraint(*grammar),
                       .options = options_,
                       .done = [this, source, done = std::move(done)](Result<Generation> output) {
                         if (!output.ok())
                           output = AtOption(output.error(), source, grammar_source_);
                         done(std::move(output));
                       }});
}

void Extractor::WantMaskSurprise() { options_.mask_surprise = !engine_.model().model().samples(); }

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
