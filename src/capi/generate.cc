// Models and their outputs for C. An output is handed in to the engine, whose thread appends to it;
// the thread that waits for the output hands the text on, so that functions of the caller run on
// the caller's thread.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/failure.h"
#include "src/base/file.h"
#include "src/capi/engine_handles.h"
#include "src/engine/copied_fields.h"
#include "src/engine/lora_names.h"
#include "src/engine/schema_view.h"
#include "src/engine/search_json.h"

namespace pawl::capi {
namespace {

// What has come of an output. The engine's thread and those of the caller share it.
struct Coming {
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;
  size_t safe = 0;       // bytes of `text` that stay
  std::string thoughts;  // not told yet
  std::optional<Result<Generation>> output;
  int32_t stop_index = -1;
  bool wants_details = false;
  std::string details;

  bool Add(const OutputToken& token) {
    const std::lock_guard lock(mutex);
    text += token.bytes;
    text.resize(token.size);
    safe = token.safe;
    changed.notify_all();
    return true;
  }
  void Think(std::string_view piece) {
    const std::lock_guard lock(mutex);
    thoughts += piece;
    changed.notify_all();
  }
  void End(Result<Generation> ended, const std::vector<std::string>& stops) {
    const std::lock_guard lock(mutex);
    output.emplace(std::move(ended));
    if (output->ok() && (*output)->stop == StopReason::kStopText) {
      const auto found = std::find(stops.begin(), stops.end(), (*output)->stop_text);
      stop_index = static_cast<int32_t>(found - stops.begin());
    }
    (void)Guarded([&]() -> Status {
      if (output->ok() && wants_details) {
        details = "{" + DetailsJson((*output)->details);
        if ((*output)->chunks > 0) details += "," + ConflictsJson((*output)->conflicts);
        details += "}";
      }
      return {};
    });
    changed.notify_all();
  }
};

std::string TextOf(const char* text, size_t length) { return std::string(Text(text, length)); }

pawl_engine_options EngineDefaults() {
  const EngineOptions defaults;
  pawl_engine_options out{};
  out.oracle_bytes = static_cast<int64_t>(defaults.oracle_bytes);
  out.device = static_cast<int32_t>(defaults.model.device);
  out.kv_dtype = static_cast<int32_t>(defaults.model.kv_dtype);
  out.kv_bytes = defaults.model.kv_bytes;
  out.kept_kv_bytes = defaults.model.kept_kv_bytes;
  out.max_batch = defaults.max_batch;
  out.draft_nodes = defaults.drafts.nodes;
  out.draft_history_bytes = defaults.drafts.history_bytes;
  out.draft_memory = defaults.drafts.memory;
  return out;
}
// Made when the library is loaded: the functions that hand it out cannot fail.
const pawl_engine_options kEngineDefaults = EngineDefaults();

pawl_status ReadPaths(const pawl_engine_options& given, ModelPaths& out, pawl_error** error) {
  const auto read = [&](const char* name, const char* const* folders, size_t count,
                        std::vector<std::string>& paths) -> pawl_status {
    if (!IsText(folders, count)) return Null(error, name);
    for (size_t i = 0; i < count; ++i) {
      if (folders[i] == nullptr) return Null(error, name + ("[" + std::to_string(i) + "]"));
      paths.emplace_back(folders[i]);
    }
    return PAWL_OK;
  };
  if (const auto bad = read("hub_folders", given.hub_folders, given.hub_count, out.hub)) return bad;
  if (const auto bad =
          read("ollama_folders", given.ollama_folders, given.ollama_count, out.ollama)) {
    return bad;
  }
  return read("lmstudio_folders", given.lmstudio_folders, given.lmstudio_count, out.lmstudio);
}

pawl_status ReadEngineOptions(const pawl_engine_options* options, EngineOptions& out,
                              pawl_error** error) {
  pawl_engine_options given = kEngineDefaults;
  if (const pawl_status bad = ReadStruct(options, given, error)) return bad;
  if (const pawl_status bad = Choose(given.dtype, "dtype", out.model.dtype, error)) return bad;
  if (const pawl_status bad = Choose(given.device, "device", out.model.device, error)) return bad;
  if (const pawl_status bad = Choose(given.kv_dtype, "kv_dtype", out.model.kv_dtype, error)) {
    return bad;
  }
  if (given.oracle_bytes < 0) return BadArgument(error, "oracle_bytes", "must not be negative");
  if (given.kv_bytes < 0) return BadArgument(error, "kv_bytes", "must not be negative");
  if (given.draft_history_bytes < 0) {
    return BadArgument(error, "draft_history_bytes", "must not be negative");
  }
  const struct {
    const char* name;
    const char* text;
    size_t length;
    std::string& field;
  } texts[] = {
      {"chat_template", given.chat_template, given.chat_template_length, out.chat_template},
      {"drafts", given.drafts, given.drafts_length, out.drafts.sources},
      {"draft_text_file", given.draft_text_file, given.draft_text_file_length,
       out.drafts.text_file},
      {"draft_model", given.draft_model, given.draft_model_length, out.drafts.model},
      {"draft_history_file", given.draft_history_file, given.draft_history_file_length,
       out.drafts.history_file}};
  for (const auto& one : texts) {
    if (!IsText(one.text, one.length)) return Null(error, one.name);
    if (one.text != nullptr) one.field = TextOf(one.text, one.length);
  }
  if (given.second_draft_model != nullptr && given.second_draft_model[0] != '\0') {
    if (out.drafts.model.empty()) {
      return BadArgument(error, "second_draft_model", "needs draft_model");
    }
    out.drafts.more_models.emplace_back(given.second_draft_model);
  }
  if (given.reasoning_open != nullptr) out.reasoning_open = given.reasoning_open;
  if (given.reasoning_close != nullptr) out.reasoning_close = given.reasoning_close;
  if (given.draft_verify != nullptr) out.drafts.verify = given.draft_verify;
  if (given.draft_shape != nullptr) out.drafts.shape = given.draft_shape;
  if (given.settings_folder != nullptr) out.paths.settings = given.settings_folder;
  out.model.threads = given.threads;
  out.model.kv_bytes = given.kv_bytes;
  out.model.kept_kv_bytes = given.kept_kv_bytes;
  out.oracle_bytes = static_cast<size_t>(given.oracle_bytes);
  out.max_batch = given.max_batch;
  out.drafts.nodes = given.draft_nodes;
  out.drafts.history_bytes = given.draft_history_bytes;
  out.drafts.memory = given.draft_memory;
  if (!IsText(given.lora, given.lora_count)) return Null(error, "lora");
  for (size_t i = 0; i < given.lora_count; ++i) {
    if (given.lora[i] == nullptr) return Null(error, "lora[" + std::to_string(i) + "]");
    Result<LoraAdapter> adapter = ParseLoraAdapter(given.lora[i]);
    if (!adapter.ok()) return Fail(error, adapter.error());
    out.model.lora.push_back(*std::move(adapter));
  }
  return ReadPaths(given, out.paths, error);
}

pawl_generate_options GenerateDefaults() {
  const GenerateOptions defaults;
  pawl_generate_options out{};
  out.temperature = defaults.sampling.temperature;
  out.top_k = defaults.sampling.top_k;
  out.top_p = defaults.sampling.top_p;
  out.min_p = defaults.sampling.min_p;
  out.repetition_penalty = defaults.sampling.repetition_penalty;
  out.presence_penalty = defaults.sampling.presence_penalty;
  out.frequency_penalty = defaults.sampling.frequency_penalty;
  out.seed = defaults.sampling.seed;
  out.max_tokens = defaults.max_tokens;
  out.at_budget = static_cast<int32_t>(defaults.at_budget);
  out.grammar_temperature = defaults.grammar_temperature ? 1 : 0;
  out.skip_forced = defaults.skip_forced ? 1 : 0;
  out.drafts = defaults.drafts ? 1 : 0;
  out.close_repetition = -1;
  out.draft_lanes = defaults.sampling.draft_lanes;
  return out;
}
const pawl_generate_options kGenerateDefaults = GenerateDefaults();

pawl_status ReadStops(const pawl_generate_options& given, std::vector<std::string>& stops,
                      pawl_error** error) {
  if (!IsText(given.stops, given.stop_count)) return Null(error, "stops");
  if (!IsText(given.stop_lengths, given.stop_count)) return Null(error, "stop_lengths");
  for (size_t i = 0; i < given.stop_count; ++i) {
    const std::string place = "stops[" + std::to_string(i) + "]";
    if (given.stops[i] == nullptr) return Null(error, place);
    if (given.stop_lengths[i] == 0) return BadArgument(error, place, "must not be empty");
    stops.push_back(TextOf(given.stops[i], given.stop_lengths[i]));
  }
  return PAWL_OK;
}

// What a prompt of extract has with schema and text.
pawl_status ReadAsking(const pawl_prompt& prompt, ExtractInput& input, pawl_error** error) {
  if (!IsText(prompt.instruction, prompt.instruction_length))
    return Null(error, "prompt.instruction");
  if (!IsText(prompt.examples_json, prompt.examples_json_length))
    return Null(error, "prompt.examples_json");
  input.instruction = Text(prompt.instruction, prompt.instruction_length);
  constexpr auto kMostView = static_cast<int32_t>(SchemaView::kAuto);
  if (prompt.schema_view < 0 || prompt.schema_view > kMostView)
    return BadArgument(error, "prompt.schema_view", "must be 0..5");
  input.view = static_cast<SchemaView>(prompt.schema_view);
  if (prompt.prefer_text != 0) input.prefer_text = std::max(prompt.prefer_text, 0.0);
  if (const Status status = CheckPreferText(input); !status.ok() || std::isnan(prompt.prefer_text))
    return BadArgument(error, "prompt.prefer_text", "must be a number of at most 1000");
  if (prompt.examples_json == nullptr) return PAWL_OK;
  Result<std::vector<ExtractExample>> examples =
      ExamplesFromJson(Text(prompt.examples_json, prompt.examples_json_length));
  if (!examples.ok()) return Fail(error, InFile("prompt.examples_json", examples.error()));
  input.examples = *std::move(examples);
  return PAWL_OK;
}

}  // namespace

pawl_status ReadPrompt(const pawl_prompt* given, EngineRequest& request, pawl_error** error) {
  if (given == nullptr) return Null(error, "prompt");
  pawl_prompt prompt{};
  if (const pawl_status bad = ReadStruct(given, prompt, error)) return bad;
  if (!IsText(prompt.text, prompt.text_length)) return Null(error, "prompt.text");
  if (!IsText(prompt.chat_json, prompt.chat_json_length)) return Null(error, "prompt.chat_json");
  if (!IsText(prompt.tokens, prompt.token_count)) return Null(error, "prompt.tokens");
  request.prompt = Text(prompt.text, prompt.text_length);
  request.chat_json = Text(prompt.chat_json, prompt.chat_json_length);
  if (prompt.token_count > 0) {
    request.tokens.assign(prompt.tokens, prompt.tokens + prompt.token_count);
  }
  request.parse_special = prompt.parse_special != 0;
  if (prompt.lora != nullptr) request.lora = prompt.lora;
  if (!IsText(prompt.schema, prompt.schema_length)) return Null(error, "prompt.schema");
  if (prompt.schema != nullptr) {
    request.extract =
        ExtractInput{std::string(Text(prompt.schema, prompt.schema_length)), request.prompt};
    request.prompt.clear();
    if (const pawl_status bad = ReadAsking(prompt, *request.extract, error)) return bad;
  }
  return PAWL_OK;
}

}  // namespace pawl::capi

struct pawl_generation {
  ~pawl_generation() {
    // Its number is 0 where it was never handed in.
    if (!ended && engine != nullptr && id != 0) engine->Cancel(id);
  }

  std::shared_ptr<pawl::AsyncEngine> engine;
  std::shared_ptr<pawl::capi::Coming> coming = std::make_shared<pawl::capi::Coming>();
  pawl::AsyncEngine::Id id = 0;
  pawl_on_text on_text = nullptr;
  void* context = nullptr;
  pawl_on_text on_reasoning = nullptr;
  void* reasoning_context = nullptr;
  // Of the threads that wait.
  size_t told = 0;       // bytes that on_text got
  bool refused = false;  // by on_text or on_reasoning
  std::atomic<bool> ended{false};
};

using namespace pawl;        // NOLINT: this file is the C face of that namespace
using namespace pawl::capi;  // NOLINT

namespace pawl::capi {
namespace {

pawl_status Start(pawl_engine* engine, const pawl_prompt* prompt, const pawl_grammar* grammar,
                  const pawl_generate_options* options, pawl_generation& made, pawl_error** error) {
  EngineRequest request;
  if (const pawl_status bad = ReadPrompt(prompt, request, error)) return bad;
  pawl_generate_options given = kGenerateDefaults;
  if (const pawl_status bad = ReadStruct(options, given, error)) return bad;
  GenerateOptions& out = request.options;
  if (const pawl_status bad = Choose(given.at_budget, "at_budget", out.at_budget, error)) {
    return bad;
  }
  if (const pawl_status bad = ReadStops(given, request.stops, error)) return bad;
  request.include_stop = given.include_stop != 0;
  Thinking& thinking = request.thinking;
  if (given.thinking < PAWL_THINKING_OFF) {
    return BadArgument(error, "thinking", "is no such choice: " + std::to_string(given.thinking));
  }
  thinking.tokens = std::max(given.thinking, 0);
  thinking.mode = given.thinking > 0                     ? Thinking::Mode::kTokens
                  : given.thinking == PAWL_THINKING_AUTO ? Thinking::Mode::kAuto
                  : given.thinking == PAWL_THINKING_OFF  ? Thinking::Mode::kOff
                                                         : Thinking::Mode::kDefault;
  out.sampling.temperature = static_cast<float>(given.temperature);
  out.sampling.top_k = given.top_k;
  out.sampling.top_p = static_cast<float>(given.top_p);
  out.sampling.min_p = static_cast<float>(given.min_p);
  out.sampling.repetition_penalty = static_cast<float>(given.repetition_penalty);
  out.sampling.presence_penalty = static_cast<float>(given.presence_penalty);
  out.sampling.frequency_penalty = static_cast<float>(given.frequency_penalty);
  if (!IsText(given.stages, given.stages_length)) return Null(error, "stages");
  Result<SamplerStages> stages = ParseSamplerStages(Text(given.stages, given.stages_length));
  if (!stages.ok()) return Fail(error, InFile("stages", stages.error()));
  out.sampling.stages = *std::move(stages);
  if (!IsText(given.diffusion, given.diffusion_length)) return Null(error, "diffusion");
  Result<DiffusionOptions> diffusion =
      ParseDiffusionOptions(Text(given.diffusion, given.diffusion_length));
  if (!diffusion.ok()) return Fail(error, InFile("diffusion", diffusion.error()));
  out.diffusion = *std::move(diffusion);
  out.sampling.seed = given.seed;
  out.sampling.draft_lanes = given.draft_lanes;
  out.draft_owner = given.draft_owner;
  out.max_tokens = given.max_tokens;
  out.grammar_temperature = given.grammar_temperature != 0;
  out.skip_forced = given.skip_forced != 0;
  out.drafts = given.drafts != 0;
  out.details = given.details != 0;
  if (given.close_repetition >= 0) out.close_repetition = given.close_repetition != 0;
  request.free_first = given.free_first;
  if (given.passes != 0) request.document = {given.chunk_tokens, given.passes};
  if (given.passes == 0 && given.chunk_tokens != 0) {
    return BadArgument(error, "chunk_tokens", "needs passes");
  }
  request.group = given.group;
  request.now = LocalTime();
  if (grammar != nullptr) request.grammar = grammar->grammar;
  made.engine = engine->engine;
  made.coming->wants_details = out.details;
  made.on_text = given.on_text;
  made.context = given.on_text_context;
  made.on_reasoning = given.on_reasoning;
  made.reasoning_context = given.on_reasoning_context;
  if (given.on_reasoning != nullptr) {
    request.options.on_reasoning = [coming = made.coming](std::string_view piece) {
      coming->Think(piece);
    };
  }
  Delivery delivery;
  if (given.on_text != nullptr) {
    delivery.on_token = [coming = made.coming](const OutputToken& token) {
      return coming->Add(token);
    };
  }
  delivery.done = [coming = made.coming, stops = request.stops](Result<Generation> output) {
    coming->End(std::move(output), stops);
  };
  const Result<AsyncEngine::Id> id = made.engine->Submit(request, std::move(delivery));
  if (!id.ok()) return Fail(error, id.error());
  made.id = *id;
  return PAWL_OK;
}

// Hands a piece on without the lock, and ends the output where the caller wants no more.
void Tell(pawl_generation& generation, pawl_on_text tell, void* context, const std::string& piece,
          std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  if (tell(context, piece.data(), piece.size()) == 0) {
    generation.refused = true;
    generation.engine->Cancel(generation.id);
  }
  lock.lock();
}

pawl_status WaitForEnd(pawl_generation& generation, pawl_error** error) {
  Coming& coming = *generation.coming;
  std::unique_lock lock(coming.mutex);
  for (;;) {
    const auto safe = [&] {
      return coming.output && coming.output->ok() ? (*coming.output)->text.size() : coming.safe;
    };
    const auto thinks = [&] { return !generation.refused && !coming.thoughts.empty(); };
    const auto tells = [&] {
      return generation.on_text != nullptr && !generation.refused && safe() > generation.told;
    };
    coming.changed.wait(lock, [&] { return coming.output.has_value() || thinks() || tells(); });
    if (thinks()) {
      const std::string piece = std::exchange(coming.thoughts, {});
      Tell(generation, generation.on_reasoning, generation.reasoning_context, piece, lock);
    } else if (tells()) {
      const bool whole = coming.output && coming.output->ok();
      const std::string_view text = whole ? (*coming.output)->text : coming.text;
      const std::string piece(text.substr(generation.told, safe() - generation.told));
      generation.told += piece.size();
      Tell(generation, generation.on_text, generation.context, piece, lock);
    } else {
      generation.ended = true;
      // The output may have ended before the caller's no reached it.
      if (coming.output->ok() && generation.refused) {
        (*coming.output)->stop = StopReason::kCancelled;
      }
      if (coming.output->ok()) return PAWL_OK;
      return Fail(error, coming.output->error());
    }
  }
}

}  // namespace
}  // namespace pawl::capi

extern "C" {

void pawl_engine_options_init(pawl_engine_options* options, size_t struct_size) {
  InitStruct(options, struct_size, kEngineDefaults);
}
void pawl_prompt_init(pawl_prompt* prompt, size_t struct_size) {
  InitStruct(prompt, struct_size, {});
}
void pawl_generate_options_init(pawl_generate_options* options, size_t struct_size) {
  InitStruct(options, struct_size, kGenerateDefaults);
}
void pawl_output_init(pawl_output* output, size_t struct_size) {
  InitStruct(output, struct_size, {});
}

pawl_status pawl_engine_load(const char* path, size_t path_length,
                             const pawl_engine_options* options, pawl_engine** engine,
                             pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (!IsText(path, path_length)) return Null(error, "path");
    if (engine == nullptr) return Null(error, "engine");
    EngineOptions opened;
    if (const pawl_status bad = ReadEngineOptions(options, opened, error)) return bad;
    auto loaded = AsyncEngine::Load(std::string(Text(path, path_length)), opened);
    if (!loaded.ok()) {
      Error cause = loaded.error();
      if (cause.place == "draft") cause.place = "drafts";  // the field's name here
      return Fail(error, cause);
    }
    auto data = std::make_shared<VocabularyData>();
    data->vocabulary = (*loaded)->model().vocabulary();
    data->fingerprint = FingerprintOf(*data->vocabulary);
    *engine = new pawl_engine{*std::move(loaded), std::move(data)};
    return PAWL_OK;
  });
}
void pawl_engine_free(pawl_engine* engine) { delete engine; }

pawl_status pawl_engine_extract_options(const pawl_engine* engine, const char* text, size_t length,
                                        pawl_json_schema_options* options) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (engine == nullptr || options == nullptr || !IsText(text, length)) return PAWL_BAD_ARGUMENT;
    const LoadedModel& model = engine->engine->model();
    const JsonSchemaOptions made = model.ExtractOptions(Text(text, length));
    pawl_json_schema_options out{};
    pawl_json_schema_options_init(&out, sizeof out);
    out.whitespace = static_cast<int32_t>(made.whitespace);
    out.additional_properties = made.additional_properties ? 1 : 0;
    out.open_if_unsatisfiable = made.open_if_unsatisfiable ? 1 : 0;
    out.keys = static_cast<int32_t>(made.keys);
    out.nulls = static_cast<int32_t>(made.nulls);
    out.max_string = made.max_string;
    out.bind_source = made.bind_source ? 1 : 0;
    // The strings of the model's choices, which live as long as it does.
    for (const ExtractSettings* from : {&model.choices().own, &model.choices().measured}) {
      if (!from->separators) continue;
      const auto& [item, key] = *from->separators;
      out.item_separator = item.data();
      out.item_separator_length = item.size();
      out.key_separator = key.data();
      out.key_separator_length = key.size();
    }
    InitStruct(options, options->struct_size, out);
    return PAWL_OK;
  });
}

pawl_status pawl_engine_save_drafts(pawl_engine* engine, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (engine == nullptr) return Null(error, "engine");
    const Status saved = engine->engine->Save();
    return saved.ok() ? PAWL_OK : Fail(error, saved.error());
  });
}

pawl_status pawl_engine_vocabulary(const pawl_engine* engine, pawl_vocabulary** vocabulary) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (engine == nullptr || vocabulary == nullptr) return PAWL_BAD_ARGUMENT;
    *vocabulary = new pawl_vocabulary{engine->vocabulary};
    return PAWL_OK;
  });
}

pawl_status pawl_engine_encode(const pawl_engine* engine, const char* text, size_t length,
                               int32_t* tokens, size_t capacity, size_t* count) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (engine == nullptr || count == nullptr || !IsText(text, length) ||
        !IsText(tokens, capacity)) {
      return PAWL_BAD_ARGUMENT;
    }
    const std::vector<TokenId> ids = engine->engine->model().tokenizer().Encode(Text(text, length));
    std::copy_n(ids.begin(), std::min(capacity, ids.size()), tokens);
    *count = ids.size();
    return PAWL_OK;
  });
}

pawl_status pawl_generation_start(pawl_engine* engine, const pawl_prompt* prompt,
                                  const pawl_grammar* grammar, const pawl_generate_options* options,
                                  pawl_generation** generation, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (engine == nullptr) return Null(error, "engine");
    if (generation == nullptr) return Null(error, "generation");
    auto made = std::make_unique<pawl_generation>();
    if (const pawl_status bad = Start(engine, prompt, grammar, options, *made, error)) return bad;
    *generation = made.release();
    return PAWL_OK;
  });
}

pawl_status pawl_generation_wait(pawl_generation* generation, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (generation == nullptr) return Null(error, "generation");
    return WaitForEnd(*generation, error);
  });
}

void pawl_generation_cancel(pawl_generation* generation) {
  if (generation != nullptr) generation->engine->Cancel(generation->id);
}

pawl_status pawl_generation_get(const pawl_generation* generation, pawl_output* output) {
  if (generation == nullptr || output == nullptr || output->struct_size < sizeof(size_t) ||
      !generation->ended || !generation->coming->output->ok()) {
    return PAWL_BAD_ARGUMENT;
  }
  const Generation& made = **generation->coming->output;
  pawl_output out{};
  out.text = made.text.data();
  out.text_length = made.text.size();
  out.tokens = made.tokens.data();
  out.token_count = made.tokens.size();
  out.stop_index = generation->coming->stop_index;
  out.stop = static_cast<int32_t>(made.stop);
  out.closed_by = static_cast<int32_t>(made.closed_by);
  out.prompt_tokens = made.stats.prompt_tokens;
  out.reused_tokens = made.stats.reused_tokens;
  out.sampled_tokens = made.stats.sampled_tokens;
  out.forced_tokens = made.stats.forced_tokens;
  out.closing_tokens = made.stats.closing_tokens;
  out.model_calls = made.stats.forward_calls;
  out.drafted_tokens = static_cast<int32_t>(made.stats.drafts.rows);
  out.accepted_tokens = static_cast<int32_t>(made.stats.drafts.accepted);
  out.reasoning_tokens = made.stats.reasoning_tokens;
  out.reasoning = made.reasoning.data();
  out.reasoning_length = made.reasoning.size();
  if (generation->coming->wants_details) {
    out.details = generation->coming->details.data();
    out.details_length = generation->coming->details.size();
  }
  InitStruct(output, output->struct_size, out);
  return PAWL_OK;
}
void pawl_generation_free(pawl_generation* generation) { delete generation; }

pawl_status pawl_engine_generate(pawl_engine* engine, const pawl_prompt* prompt,
                                 const pawl_grammar* grammar, const pawl_generate_options* options,
                                 pawl_generation** generation, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    pawl_generation* made = nullptr;
    if (generation == nullptr) return Null(error, "generation");
    if (const auto bad = pawl_generation_start(engine, prompt, grammar, options, &made, error)) {
      return bad;
    }
    std::unique_ptr<pawl_generation> whole(made);
    if (const pawl_status bad = WaitForEnd(*whole, error)) return bad;
    *generation = whole.release();
    return PAWL_OK;
  });
}

}  // extern "C"
