// Engine: loads a language model from its files and generates text under a grammar.
//
//   auto engine = pawl::Engine::Load("models/tiny-extract");        // a folder, or a GGUF file
//   if (!engine.ok()) return Report(engine.error().ToString());
//   pawl::Compiler compiler(engine->vocabulary());
//   auto grammar = compiler.CompileRegex("(yes|no), [a-z ]{3,40}");
//
//   pawl::EngineRequest request;
//   request.prompt = "The answer is ";
//   request.grammar = *grammar;
//   request.options.max_tokens = 100;
//   auto output = engine->Generate(request);
//   if (output.ok()) Print(output->text);                          // "no, it is not"
//
// A prompt is a text, or messages that the model's chat template turns into a text:
//
//   request.messages = {{"system", "Be brief."}, {"user", "Is it far?"}};
//
// Or the prompt is that of `pawl extract`: a schema and a text, for a record that is valid for the
// schema. The caller compiles the grammar of this schema.
//
//   request.extract = pawl::ExtractInput{schema, text};
//   request.grammar = *compiler.CompileJsonSchema(schema, pawl::ExtractSchemaOptions(text));
//
// Streaming, sampling, texts that end the output, and statistics (pawl/generation.h):
//
//   request.options.on_token = [](pawl::TokenId, std::string_view bytes) { return Print(bytes); };
//   request.options.sampling = {.temperature = 0.8f, .seed = 7};
//   request.stops = {"\n\n"};
//   Count(output->stats.output_tokens);
//
// Many requests share the calls of the model. Each output is token for token that of the request
// alone:
//
//   std::vector<pawl::Result<pawl::Generation>> outputs = engine->GenerateAll(requests);
//
// A loop of your own, if requests come and go:
//
//   engine->Add(request, [](pawl::Result<pawl::Generation> output) { ... });   // also later
//   while (engine->Step()) {
//   }
//
// An output under a grammar is always complete. When the budget is nearly spent, the shortest
// completion is appended instead of cutting the output (StopReason::kClosed).
//
// Thread safety: one call of Generate, GenerateAll, Add, Cancel, Step, Sample and Score at a time,
// on any thread. The const functions may be called at any time from any thread, except while the
// Engine is moved. Callbacks run on the thread of the call that runs the model. They may use the
// const functions, Add and Cancel. Engines share no state.
#ifndef PAWL_ENGINE_H_
#define PAWL_ENGINE_H_

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/constraint.h"
#include "pawl/generation.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/sampling.h"
#include "pawl/vocabulary.h"

namespace pawl {

// ModelOptions: how a model is loaded.
//
//   pawl::EngineOptions options;                          // pawl/engine.h
//   options.model.dtype = pawl::WeightDtype::kInt8;       // half the memory of bf16
//   options.model.threads = 4;

enum class KernelVariant : int;

// The type of matrices in memory. kAsStored uses the mapped file. Other types are copied or
// converted at load, into large pages if the system has them. Large pages are read faster. kInt8
// and kInt4 have a scale for each group of 32 weights. With kInt4 the embedding and the head are
// int8. kFp8 is e4m3 with a scale for each row, for CUDA devices only. Norms and biases are always
// float.
enum class WeightDtype { kAsStored, kFp32, kBf16, kFp16, kInt8, kInt4, kFp8 };

// The device of the model. kAuto: a CUDA device if there is a suitable one, otherwise the CPU.
enum class Device { kCpu, kCuda, kAuto };
// The type of keys and values on CUDA devices. On the CPU they are floats.
enum class KvDtype { kBf16, kFp8, kFp32 };

// A LoRA adapter in the form that PEFT saves: a folder with adapter_config.json and
// adapter_model.safetensors (docs/models.md).
struct LoraAdapter {
  std::string name;  // what requests call it
  std::string path;
};

struct ModelOptions {
  WeightDtype dtype = WeightDtype::kAsStored;
  int threads = 0;  // 0: all cores
  // Memory in bytes for the keys and values of all sequences. The CPU takes it as sequences grow. A
  // CUDA device takes it at load. 0: half of the machine's memory; on a CUDA device most of the
  // memory that the weights leave.
  int64_t kv_bytes = 0;
  // The part of kv_bytes for prefixes that no sequence uses now. -1: the size of the longest
  // sequence, at least 64 MiB, at most a quarter of kv_bytes.
  int64_t kept_kv_bytes = -1;
  Device device = Device::kCpu;
  KvDtype kv_dtype = KvDtype::kBf16;
  // With kAuto: called with one line that says why the CPU is used.
  std::function<void(const std::string& reason)> on_fallback;
  // Called during loading with the loaded part, from 0 to 1.
  std::function<void(double fraction)> progress;
  // The instructions of the CPU's products (docs/engine.md). The default is the fastest variant of
  // this processor that does not round inputs to one bf16 number.
  KernelVariant kernels = KernelVariant{};
  // Adapters that requests may name (EngineRequest::lora), on the CPU only. They are read at load.
  std::vector<LoraAdapter> lora;
  int64_t lora_bytes = int64_t{1} << 30;  // memory for all of them
};

// The stores of this machine in which Engine::Load looks for models by name. The library reads no
// environment variables, so callers say where the stores are.
//
//   pawl::EngineOptions options;
//   options.paths.hub = {"/home/ann/.cache/huggingface/hub"};
//   auto engine = pawl::Engine::Load("Qwen/Qwen3-0.6B-GGUF:Q8_0", options);
struct ModelPaths {
  std::vector<std::string> hub;       // caches of the Hugging Face hub, with models--ORG--NAME
  std::vector<std::string> ollama;    // stores of Ollama, with manifests and blobs
  std::vector<std::string> lmstudio;  // folders of LM Studio, with ORG/NAME
  // The folder of choices that were measured, DIGEST.json of the weights (docs/evaluation.md).
  // Empty: there are none.
  std::string settings;
};

struct EngineOptions {
  ModelOptions model;
  ModelPaths paths;   // for names of models; paths of files need none
  int max_batch = 8;  // requests that run at a time, 1 to 1024; further requests wait
  // A chat template in the Jinja subset of docs/chat_templates.md. Empty: that of the model.
  std::string chat_template;
  // The marks around what the model thinks, both or none. Empty: those of the chat template.
  std::string reasoning_open;
  std::string reasoning_close;
  DraftOptions drafts;  // several tokens in a call of the model, with the same outputs
  // Memory in bytes for the tries of samplers (Sample).
  size_t oracle_bytes = size_t{256} << 20;
};

struct ChatMessage {
  std::string role;     // "system", "user", "assistant", ...
  std::string content;  // special tokens that it spells stay text
};

// How the prompt of extract shows the schema.
enum class SchemaView : uint8_t {
  kDefault,   // as the files of the model say, otherwise kAuto
  kTemplate,  // an object with the type of each key: {"name": "string", "tags": ["string"]}
  kKeys,      // the names of the keys
  kSchema,    // the JSON Schema as it is
  kNone,      // not at all
  kAuto,      // kKeys for a record without records in it, otherwise kTemplate
};

// A text and the record that is right for it, as JSON.
struct ExtractExample {
  std::string text;
  std::string record;
};

struct ExtractInput {
  std::string schema;  // JSON, in the form in which the model sees it
  std::string text;    // UTF-8, not only white space; special tokens that it spells stay text
  // What to extract, in words. Empty: as the files of the model say, otherwise a general
  // instruction.
  std::string instruction = {};
  std::vector<ExtractExample> examples = {};  // empty: as the files of the model say
  SchemaView view = SchemaView::kDefault;
  // How many nats a string, number or date loses that the text does not have, at most 1000. 0:
  // none. A value that began as a copy loses at least 10 where it goes on otherwise. nullopt: as
  // the files of the model say. Otherwise 1, and 6 for strings with a pattern and for fields whose
  // values in the examples all stand in their texts. Fields with another value in the examples lose
  // nothing. Needs a grammar with JsonSchemaOptions::bind_source. Searches and samplers do not have
  // it.
  std::optional<double> prefer_text = {};
  // Another try: a record of this text, and what is wrong with it. Empty: the first one.
  std::string record = {};
  std::string problem = {};
  // The text is a part of a longer one, and begins or ends inside a word or number of it. No copied
  // value begins or ends in what is left of that word.
  bool cut_begin = false;
  bool cut_end = false;
};

// A text that may be longer than the context is read in chunks, which share the calls of the model,
// and their records become one (docs/extraction.md).
struct DocumentOptions {
  int chunk_tokens = 0;  // of the text in a chunk; 0: half of the model's context
  int passes = 1;        // 1 to 16; a further pass reads the text with other borders
};

// A setting of extraction, and where it comes from where the request says nothing.
struct ExtractDefault {
  std::string name;    // as in docs/evaluation.md
  std::string value;   // JSON
  std::string source;  // "measured choice", "pawl.json" or "default"
};

// What a model may think before it answers (docs/thinking.md).
struct Thinking {
  enum class Mode {
    kDefault,  // kAuto for messages, kOff for extraction and for other prompts
    kAuto,     // as the model and its chat template want
    kOff,      // nothing: thoughts that the prompt opens are closed at once
    kTokens,   // at most `tokens` tokens
  };
  Mode mode = Mode::kDefault;
  int tokens = 0;
};

// The options of schemas that `pawl extract` has: compact JSON, closed objects, all keys asked for,
// strings of at most 256 characters or as many as `text` has, and `bind_source`. Where nothing fits
// with closed objects they are open.
PAWL_EXPORT JsonSchemaOptions ExtractSchemaOptions(std::string_view text = {});

struct EngineRequest {
  // At most one of the next five. With none of them the prompt is empty.
  std::string prompt;                 // UTF-8; special tokens that it spells stay text
  std::vector<ChatMessage> messages;  // for the chat template
  // Messages with everything that a template can read: a JSON list of messages, or an object with
  // "messages", "tools", "documents", "add_generation_prompt", "chat_template_kwargs".
  std::string chat_json;
  std::vector<TokenId> tokens;  // used unchanged
  // The prompt is made by the model's pawl.json, or by its chat template, or is plain text.
  std::optional<ExtractInput> extract;
  // With `extract`: its text is a document. The output comes in whole: callbacks for tokens and
  // thoughts are not called, and `stops` is an error. It has Generation::details in any case;
  // GenerateOptions::details adds alternatives. Values that are copied (x-pawl-source) need
  // JsonSchemaOptions::bind_source.
  std::optional<DocumentOptions> document;

  // true: special tokens that `prompt` spells become these tokens. Not for text of users.
  bool parse_special = false;
  // For messages, chat_json and extract. The output has the thoughts apart: Generation::reasoning.
  // The grammar and the constraint are those of the answer.
  Thinking thinking;
  // Free text of at most so many tokens comes before the answer, which the constraint is for; 0:
  // none. It is Generation::reasoning. Needs a constraint, and a model that does not think first.
  int free_first = 0;
  // The time for chat templates. nullopt: a template that asks for the time gets none.
  std::optional<std::tm> now;
  // The grammar of the output, compiled for Engine::vocabulary(). nullopt: no grammar.
  std::optional<Grammar> grammar;
  // A constraint of your own (pawl/constraint.h) for Engine::vocabulary(). nullptr: none. With a
  // grammar, the output obeys both.
  std::shared_ptr<const Constraint> constraint;
  GenerateOptions options;
  // Texts at which the output ends (StopReason::kStopText). Of those that end at the same byte the
  // longest counts. `on_token` gets a token when none of its bytes can belong to a stop text any
  // more. Empty texts are ignored.
  std::vector<std::string> stops;
  bool include_stop = false;  // true: the output has the stop text, too
  // Requests with the same number are one group. Groups take turns for the places in the batch. 0:
  // the request is a group of its own.
  uint64_t group = 0;
  // The name of the adapter for this request, one of ModelOptions::lora. Empty: none.
  std::string lora;
};

struct EngineInfo {
  std::string architecture;  // "LlamaForCausalLM"
  std::string weights;       // type of most weights: "bf16", "int8", ...
  std::string kernels;       // "avx512", ...
  int64_t parameters = 0;
  int64_t weight_bytes = 0;
  int context_length = 0;  // most tokens of a prompt and its output together
  int threads = 1;
  bool has_chat_template = false;
  std::vector<std::string> lora;  // names of the adapters
};

using RequestId = int64_t;

class PAWL_EXPORT Engine {
 public:
  using Done = std::function<void(Result<Generation> output)>;

  // `model`: a folder of Hugging Face's form (config.json, *.safetensors, tokenizer.json,
  // optionally a chat template), a GGUF file, or the name of a model in a store of
  // EngineOptions::paths (docs/models.md). Load fetches nothing. Errors: kIo, kInvalid and
  // kUnsupported with the file and the key, tensor or byte; kLimit if there is not enough memory.
  static Result<Engine> Load(const std::string& model, const EngineOptions& options = {});
  Engine(Engine&& other) noexcept;
  Engine& operator=(Engine&& other) noexcept;
  // Drops requests that have not ended, without calling their callbacks.
  ~Engine();

  // The vocabulary for the grammars of this model.
  const std::shared_ptr<const Vocabulary>& vocabulary() const;
  EngineInfo info() const;
  std::vector<TokenId> Encode(std::string_view text, bool parse_special = false) const;
  std::string Decode(std::span<const TokenId> tokens) const;
  // ExtractSchemaOptions, with what the files of the model say of them.
  JsonSchemaOptions extract_options(std::string_view text = {}) const;
  // Each setting of extraction where a request says nothing.
  std::vector<ExtractDefault> extract_defaults() const;
  // The tokens of the request's prompt, after templates and encoding. Errors: those of Add.
  Result<std::vector<TokenId>> PromptTokens(const EngineRequest& request) const;

  // Runs until this request has ended. Requests that were added go on meanwhile.
  // Errors: those of Add. A prompt that does not fit into the context is kLimit, and so is a
  // shortest output that does not fit into the budget; the message has both numbers. A sampling
  // parameter out of range is kInvalid. Errors of a constraint of your own are those of
  // pawl/constraint.h. Places: "prompt", "grammar", "constraint", "max_tokens", or the sampling
  // parameter.
  Result<Generation> Generate(const EngineRequest& request);
  // Runs all requests. Returns a result for each, in order. A failed request does not affect
  // others.
  std::vector<Result<Generation>> GenerateAll(std::span<const EngineRequest> requests);

  // Returns outputs that keep the model's distribution (pawl/sampling.h). The request's `options`
  // and `stops` are ignored, and no text is forced. The tries of kAsap, kArs and kCars are kept for
  // the next call with the same prompt, grammar, constraint and checks (the same objects),
  // temperature and max_tokens, up to EngineOptions::oracle_bytes. With `proposal`, kAwrs and kSmc
  // draw tokens from that model and weight them for this one. It must have the same vocabulary and
  // no other user during the call. Errors: those of Add and of the checks; kInvalid with the option
  // as place; kLimit with "prompt" as place if the prompt is too long. A constraint that is not
  // exact is kUnsupported. REQUIRES: not called from a callback.
  Result<SamplerResult> Sample(const EngineRequest& request, const SamplerOptions& options,
                               Engine* proposal = nullptr);
  // Returns outputs of high probability (pawl/sampling.h). The request's `options` and `stops` are
  // ignored. Errors: those of Sample. REQUIRES: not called from a callback.
  Result<SearchResult> Search(const EngineRequest& request, const SearchOptions& options);
  // The probabilities of choices behind the prompt. The request has no grammar and no constraint.
  // Errors: those of Add; kInvalid with the option as place.
  // REQUIRES: not called from a callback.
  Result<ClassifyResult> Classify(const EngineRequest& request, const ClassifyOptions& options);
  // The model's log-probability (base e) of each token after the prompt and the tokens before it,
  // without a mask.
  // Errors: those of Add; kInvalid with "tokens" or "temperature" as place.
  Result<std::vector<double>> Score(const EngineRequest& request, std::span<const TokenId> tokens,
                                    double temperature = 1);

  // Adds a request without running it. `done` is called once, in a later Step, Generate or
  // GenerateAll.
  // Errors: kInvalid if the request has more than one prompt, if the prompt is not UTF-8, if the
  // template refuses the messages, or if the grammar has another vocabulary. Errors of the chat
  // template are returned too. Messages are an error if the model has no chat template.
  Result<RequestId> Add(const EngineRequest& request, Done done);
  // Ends a request at the next step, with its output so far (StopReason::kCancelled). Unknown ids
  // are ignored.
  void Cancel(RequestId id);
  // Writes the histories of drafts to DraftOptions::history_file. Does nothing without this file.
  // Errors: kIo.
  Status SaveDraftHistory();
  // Makes at most one call of the model. false: there is no more work.
  // REQUIRES: not called from a callback.
  bool Step();

 private:
  friend class EngineAccess;
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pawl

#endif  // PAWL_ENGINE_H_
