// A model in a browser: what js/src/engine.js calls. The page gives the files of the model's folder
// as bytes; the engine reads them as it reads files everywhere (src/base/os/memory_files.h). A
// request is laid out as every other door has it laid out (src/engine/engine_parts.h) and becomes
// one of BatchEngine's. There is one thread, so the page makes the steps, and takes between them
// what has come: no function of the page is called from here.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "js/native/copied.h"
#include "pawl/compiler.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/json_reader.h"
#include "src/base/os/memory_files.h"
#include "src/capi/handles.h"
#include "src/decode/batch.h"
#include "src/decode/closing.h"
#include "src/engine/copied_fields.h"
#include "src/engine/engine_parts.h"
#include "src/engine/loaded_model.h"
#include "src/engine/option_names.h"
#include "src/engine/schema_view.h"
#include "src/engine/thinking.h"

namespace pawl {

// A page has no folder of measured choices.
Status LoadMeasured(const std::string&, const std::string&, ExtractChoices&) { return {}; }

}  // namespace pawl

using namespace pawl;        // NOLINT: this file is the C face of that namespace
using namespace pawl::capi;  // NOLINT

namespace {

// One output: what has come of it, and how it ended.
struct Coming {
  RequestId id = 0;
  std::string text;
  std::vector<TokenId> tokens;
  std::optional<Result<Generation>> output;
};

constexpr size_t kCachedGrammars = 16;

}  // namespace

struct pawl_wasm_engine {
  pawl_wasm_engine(std::unique_ptr<LoadedModel> loaded, const BatchOptions& options)
      : model(std::move(loaded)),
        compiler(model->vocabulary(), {.cached_grammars = kCachedGrammars}),
        batch(model->model(), model->vocabulary(), model->encoder(), options) {}

  std::unique_ptr<LoadedModel> model;
  Compiler compiler;
  std::map<int32_t, std::shared_ptr<Coming>> outputs;
  int32_t last = 0;
  BatchEngine batch;  // goes before the model that it refers to
};

namespace {

// A JSON object that must outlive its reader.
Result<json::Value> ObjectOf(std::string_view text) {
  Result<json::Value> value = json::Parse(text);
  if (value.ok() && value->type != json::Type::kObject)
    return Error{ErrorCode::kInvalid, "must be an object", "#"};
  return value;
}

// The place of an error of a reader as the page has it: "#/max_tokens" is "max_tokens".
Error Named(Error error) {
  if (error.place.starts_with("#/")) error.place.erase(0, 2);
  return error;
}

Result<std::unique_ptr<pawl_wasm_engine>> Load(std::string_view text) {
  const Result<json::Value> given = ObjectOf(text);
  if (!given.ok()) return given.error();
  const JsonReader in(*given);
  std::string path = "model";
  ModelOptions options;
  BatchOptions batch;
  ChatOverride chat;
  // What the machine has is not known here, and all of it is taken at once.
  options.kv_bytes = int64_t{64} << 20;
  options.threads = 1;
  batch.max_batch = 1;
  in.OnlyMembers({"name", "kv_bytes", "max_batch", "dtype", "chat_template"});
  in["name"].Read(path);
  in["kv_bytes"].Read(options.kv_bytes, 1, int64_t{1} << 32);
  in["max_batch"].Read(batch.max_batch, 1, 64);
  in["chat_template"].Read(chat.text);
  if (const JsonReader dtype = in["dtype"]; dtype.present()) {
    const std::optional<WeightDtype> named = OptionOf<WeightDtype>(dtype.String());
    if (in.ok() && !named) dtype.Fail("must be one of " + NamesOf<WeightDtype>());
    options.dtype = named.value_or(options.dtype);
  }
  if (!in.ok()) return Named(in.error());
  Result<std::unique_ptr<LoadedModel>> model = LoadedModel::Open(path, chat, "");
  if (!model.ok()) return model.error();
  if (Status status = (*model)->LoadWeights(options); !status.ok()) return status.error();
  batch.max_rows = std::max(batch.max_rows, 2 * batch.max_batch);
  return std::make_unique<pawl_wasm_engine>(*std::move(model), batch);
}

// The request of an extraction but for its grammar. `schema` becomes the text of its schema.
Result<EngineRequest> ReadExtract(const JsonReader& in, std::string& schema) {
  in.OnlyMembers({"schema", "text", "instruction", "examples", "schema_view", "prefer_text",
                  "max_tokens", "temperature", "top_k", "top_p", "min_p", "seed"});
  EngineRequest request;
  ExtractInput& input = request.extract.emplace();
  schema = in["schema"].String();
  input.text = in["text"].String();
  in["instruction"].Read(input.instruction);
  if (const JsonReader view = in["schema_view"]; view.present()) {
    const std::optional<SchemaView> named = SchemaViewNamed(view.String());
    if (in.ok() && !named) view.Fail(kSchemaViewNames);
    input.view = named.value_or(input.view);
  }
  double prefer_text = 0;
  if (in["prefer_text"].Read(prefer_text)) input.prefer_text = prefer_text;
  SamplingParams& sampling = request.options.sampling;
  in["max_tokens"].Read(request.options.max_tokens, 1, 1 << 24);
  in["temperature"].Read(sampling.temperature);
  in["top_k"].Read(sampling.top_k, 0, 1 << 24);
  in["top_p"].Read(sampling.top_p);
  in["min_p"].Read(sampling.min_p);
  in["seed"].Read(sampling.seed, 0, int64_t{1} << 53);
  if (!in.ok()) return Named(in.error());
  if (const JsonReader examples = in["examples"]; examples.present()) {
    Result<std::vector<ExtractExample>> read = ExamplesFromJson(json::Dump(*examples.value()));
    if (!read.ok()) return InFile("examples", read.error());
    input.examples = *std::move(read);
  }
  if (Status status = CheckPreferText(input); !status.ok()) return status.error();
  return request;
}

Result<int32_t> AddExtract(pawl_wasm_engine& engine, std::string_view text) {
  const Result<json::Value> given = ObjectOf(text);
  if (!given.ok()) return given.error();
  std::string schema;
  Result<EngineRequest> request = ReadExtract(JsonReader(*given), schema);
  if (!request.ok()) return request.error();
  ExtractInput& input = *request->extract;
  const Result<Grammar> grammar =
      engine.compiler.CompileJsonSchema(schema, engine.model->ExtractOptions(input.text));
  if (!grammar.ok()) return InFile("schema", grammar.error());
  if (grammar->Start().completion_length() < 0) return NoValueFits("schema: #");
  const Result<json::Value> tree = json::Parse(schema);
  input.schema = tree.ok() ? json::Dump(*tree) : schema;
  request->grammar = *grammar;
  Result<LaidOut> laid = LayOut(*request, *engine.model);
  if (!laid.ok()) return laid.error();
  BatchRequest& batch = laid->request;
  const auto coming = std::make_shared<Coming>();
  batch.options.on_token = [coming](TokenId token, std::string_view bytes) {
    coming->tokens.push_back(token);
    coming->text += bytes;
    return true;
  };
  Follow(laid->text, batch.options);
  batch.done = [coming, apart = laid->text, notes = laid->notes](Result<Generation> output) {
    if (apart != nullptr) coming->text += apart->Finish();
    TellApart(apart.get(), notes, output);
    coming->output = ForCaller(std::move(output));
  };
  const int32_t id = engine.last + 1;
  engine.outputs.emplace(id, coming);
  coming->id = engine.batch.Add(std::move(batch));
  engine.last = id;
  return id;
}

constexpr const char* kStops[] = {"end", "closed", "length", "cancelled", "stop", "refused"};

std::string JsonOf(const Generation& output) {
  const GenerationStats& stats = output.stats;
  std::string text = "{\"text\":" + json::Quote(output.text) +
                     ",\"stop\":" + json::Quote(kStops[static_cast<int>(output.stop)]) +
                     ",\"tokens\":[";
  for (size_t i = 0; i < output.tokens.size(); ++i)
    text += (i > 0 ? "," : "") + std::to_string(output.tokens[i]);
  text += "],\"notes\":[";
  for (size_t i = 0; i < output.notes.size(); ++i)
    text += (i > 0 ? "," : "") + json::Quote(output.notes[i]);
  text += "],\"reasoning\":" + json::Quote(output.reasoning);
  const auto add = [&text](const char* name, double value) {
    text += std::string(",\"") + name + "\":" + std::to_string(value);
  };
  text += ",\"stats\":{\"prompt_tokens\":" + std::to_string(stats.prompt_tokens);
  text += ",\"output_tokens\":" + std::to_string(stats.output_tokens);
  text += ",\"sampled_tokens\":" + std::to_string(stats.sampled_tokens);
  text += ",\"forward_calls\":" + std::to_string(stats.forward_calls);
  add("prefill_seconds", stats.prefill_seconds);
  add("decode_seconds", stats.decode_seconds);
  add("constraint_seconds", stats.constraint_seconds);
  add("sample_seconds", stats.sample_seconds);
  return text + "}}";
}

std::string JsonOf(const EngineInfo& info) {
  return "{\"architecture\":" + json::Quote(info.architecture) +
         ",\"weights\":" + json::Quote(info.weights) + ",\"kernels\":" + json::Quote(info.kernels) +
         ",\"parameters\":" + std::to_string(info.parameters) +
         ",\"weightBytes\":" + std::to_string(info.weight_bytes) +
         ",\"contextLength\":" + std::to_string(info.context_length) + "}";
}

pawl_status GiveText(const std::string& text, char** data, size_t* length) {
  *data = Copied(text.data(), text.size());
  *length = text.size();
  return PAWL_OK;
}

// nullptr: the page has no such output, and the error is set.
std::shared_ptr<Coming> Find(const pawl_wasm_engine& engine, int32_t id, pawl_error** error) {
  const auto found = engine.outputs.find(id);
  if (found != engine.outputs.end()) return found->second;
  BadArgument(error, "id", "is no output of this engine");
  return nullptr;
}

}  // namespace

extern "C" {

// A file of the model's folder, of memory that pawl_wasm_allocate gave and that is the module's
// from now on.
pawl_status pawl_wasm_engine_file(const char* name, size_t length, void* data, size_t bytes,
                                  pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    os::AddMemoryFile(std::string(Text(name, length)), static_cast<std::byte*>(data), bytes);
    return PAWL_OK;
  });
}

pawl_status pawl_wasm_engine_load(const char* options, size_t length, pawl_wasm_engine** out,
                                  pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    Result<std::unique_ptr<pawl_wasm_engine>> loaded = Load(Text(options, length));
    if (!loaded.ok()) return Fail(error, loaded.error());
    *out = loaded->release();
    return PAWL_OK;
  });
}
// With its files: a module has one engine.
void pawl_wasm_engine_free(pawl_wasm_engine* engine) {
  delete engine;
  os::RemoveMemoryFiles();
}

pawl_status pawl_wasm_engine_info(const pawl_wasm_engine* engine, char** json, size_t* length,
                                  pawl_error** error) {
  return Guard(error, [&] { return GiveText(JsonOf(InfoOf(*engine->model)), json, length); });
}

pawl_status pawl_wasm_engine_extract(pawl_wasm_engine* engine, const char* request, size_t length,
                                     int32_t* id, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    const Result<int32_t> added = AddExtract(*engine, Text(request, length));
    if (!added.ok()) return Fail(error, added.error());
    *id = *added;
    return PAWL_OK;
  });
}

// At most one call of the model. 0: nothing is left to do.
int32_t pawl_wasm_engine_step(pawl_wasm_engine* engine) { return engine->batch.Step() ? 1 : 0; }

void pawl_wasm_engine_cancel(pawl_wasm_engine* engine, int32_t id) {
  const auto found = engine->outputs.find(id);
  if (found != engine->outputs.end()) engine->batch.Cancel(found->second->id);
}

// What has come since the last call: the text, which may end inside a character, and the tokens.
// The caller releases both; NULL for none. *ended: pawl_wasm_engine_output has the rest.
pawl_status pawl_wasm_engine_take(pawl_wasm_engine* engine, int32_t id, char** text, size_t* length,
                                  int32_t** tokens, size_t* count, int32_t* ended,
                                  pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    const std::shared_ptr<Coming> coming = Find(*engine, id, error);
    if (coming == nullptr) return PAWL_BAD_ARGUMENT;
    GiveText(std::exchange(coming->text, {}), text, length);
    *count = coming->tokens.size();
    *tokens = Copied(coming->tokens.data(), coming->tokens.size());
    coming->tokens.clear();
    *ended = coming->output.has_value() ? 1 : 0;
    return PAWL_OK;
  });
}

// The output as JSON, or its error. The engine forgets it. REQUIRES: it has ended.
pawl_status pawl_wasm_engine_output(pawl_wasm_engine* engine, int32_t id, char** json,
                                    size_t* length, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    const std::shared_ptr<Coming> coming = Find(*engine, id, error);
    if (coming == nullptr) return PAWL_BAD_ARGUMENT;
    if (!coming->output) return BadArgument(error, "id", "has not ended");
    engine->outputs.erase(id);
    if (!coming->output->ok()) return Fail(error, coming->output->error());
    return GiveText(JsonOf(**coming->output), json, length);
  });
}

}  // extern "C"
