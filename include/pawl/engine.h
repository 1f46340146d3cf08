// Engine: a language model from its files, and text out of it under a grammar.
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
// A prompt is a text, or messages that the model's chat template lays out:
//
//   request.messages = {{"system", "Be brief."}, {"user", "Is it far?"}};
//
// or what `pawl extract` asks: a record that is valid for a schema, out of a text. The grammar of
// that schema is the caller's to compile.
//
//   request.extract = pawl::ExtractInput{schema, text};
//
// Streaming, sampling and what the output cost: pawl/generation.h.
//
//   request.options.on_token = [](pawl::TokenId, std::string_view bytes) { return Print(bytes); };
//   request.options.sampling = {.temperature = 0.8f, .seed = 7};
//   Count(output->stats.output_tokens);
//
// Many requests share the calls of the model, and each gets token for token what it gets alone:
//
//   std::vector<pawl::Result<pawl::Generation>> outputs = engine->GenerateAll(requests);
//
// Where requests come and go, a loop of one's own:
//
//   engine->Add(request, [](pawl::Result<pawl::Generation> output) { ... });   // also later
//   while (engine->Step()) {
//   }
//
// Under a grammar an output is always complete: when the budget is nearly spent it is closed in the
// shortest way that was found instead of being cut (StopReason::kClosed).
//
// Thread safety: Generate, GenerateAll, Add, Cancel and Step one at a time, also across threads;
// the const functions at any time, from any thread, but not while the Engine is moved. Callbacks
// run on the thread of the call that runs the model; they may use the const functions, Add and
// Cancel. Nothing is global: two Engines know nothing of each other.
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

// How matrices are kept in memory. Stored ones stay in the mapped file; all others are copied or
// converted when loading, into large pages where the system has them, which are read faster.
// Integers are in groups of 32 with a scale each; with kInt4 the embedding and the head are int8.
// kFp8 is e4m3 with a scale for each row, on CUDA devices alone. Norms and biases are always float.
enum class WeightDtype { kAsStored, kFp32, kBf16, kFp16, kInt8, kInt4, kFp8 };

// Where the model runs. kAuto: on a CUDA device if there is one that can, else on the CPU.
enum class Device { kCpu, kCuda, kAuto };
// Keys and values on CUDA devices; the CPU's are floats.
enum class KvDtype { kBf16, kFp8, kFp32 };

struct ModelOptions {
  WeightDtype dtype = WeightDtype::kAsStored;
  int threads = 0;  // 0: all cores
  // Memory for keys and values, of all sequences together; taken as sequences grow. 0: half of
  // what the machine has (of a CUDA device: most of what the weights leave, at once). How much of
  // it may be kept for prefixes that no sequence uses now; -1: what the longest sequence takes, at
  // least 64 MiB, at most a quarter of kv_bytes.
  int64_t kv_bytes = 0;
  int64_t kept_kv_bytes = -1;
  Device device = Device::kCpu;
  KvDtype kv_dtype = KvDtype::kBf16;
  // Told in one line why the CPU is used after all where `device` is kAuto.
  std::function<void(const std::string& reason)> on_fallback;
  std::function<void(double fraction)> progress;
  // Which instructions the CPU's products use (docs/engine.md). The default is the best that this
  // processor has and that keeps what it multiplies.
  KernelVariant kernels = KernelVariant{};
};

struct EngineOptions {
  ModelOptions model;
  int max_batch = 8;  // requests that run at a time, 1 to 1024; more of them wait
  // In place of the model's own chat template: a text in the Jinja subset of
  // docs/chat_templates.md. Empty: the model's own.
  std::string chat_template;
  DraftOptions drafts;  // several tokens in a call of the model, with the same outputs
  // For what samplers learn about prompts (Sample).
  size_t oracle_bytes = size_t{256} << 20;
};

struct ChatMessage {
  std::string role;     // "system", "user", "assistant", ...
  std::string content;  // special tokens that it spells stay text
};

struct ExtractInput {
  std::string schema;  // JSON, as the model is to see it
  std::string text;    // UTF-8 and more than white space; what it spells stays text
};

struct EngineRequest {
  // At most one of the next five; none of them is the empty prompt.
  std::string prompt;                 // UTF-8; special tokens that it spells stay text
  std::vector<ChatMessage> messages;  // for the chat template
  // The same with all that a template can read: a JSON list of messages, or an object with
  // "messages", "tools", "documents", "add_generation_prompt", "chat_template_kwargs".
  std::string chat_json;
  std::vector<TokenId> tokens;  // as they are
  // By the model's pawl.json or its chat template, or as plain text.
  std::optional<ExtractInput> extract;

  // Special tokens that `prompt` spells become those tokens. Not for text from users.
  bool parse_special = false;
  // What chat templates take for the present time. Without it a template that asks for the time
  // is told that there is none.
  std::optional<std::tm> now;
  // What the output must be; compiled for Engine::vocabulary(). nullopt: anything.
  std::optional<Grammar> grammar;
  GenerateOptions options;
  // Requests of one number take turns with others for the places in the batch. 0: alone.
  uint64_t group = 0;
};

struct EngineInfo {
  std::string architecture;  // "LlamaForCausalLM"
  std::string weights;       // how most are kept: "bf16", "int8", ...
  std::string kernels;       // "avx512", ...
  int64_t parameters = 0;
  int64_t weight_bytes = 0;
  int context_length = 0;  // most tokens of a prompt and its output
  int threads = 1;
  bool has_chat_template = false;
};

using RequestId = int64_t;

class PAWL_EXPORT Engine {
 public:
  using Done = std::function<void(Result<Generation> output)>;

  // `path`: a folder as on the Hugging Face hub (config.json, *.safetensors, tokenizer.json, a chat
  // template if there is one), or a GGUF file. Errors: kIo, kInvalid and kUnsupported with the file
  // and the key, tensor or byte; kLimit when memory is short.
  static Result<Engine> Load(const std::string& path, const EngineOptions& options = {});
  Engine(Engine&& other) noexcept;
  Engine& operator=(Engine&& other) noexcept;
  // Requests that have not ended are dropped, without their callbacks.
  ~Engine();

  // What grammars for this model are compiled for.
  const std::shared_ptr<const Vocabulary>& vocabulary() const;
  EngineInfo info() const;
  std::vector<TokenId> Encode(std::string_view text, bool parse_special = false) const;
  std::string Decode(std::span<const TokenId> tokens) const;
  // The tokens that a request gives to the model, laid out and encoded. Errors: those of Add.
  Result<std::vector<TokenId>> PromptTokens(const EngineRequest& request) const;

  // Runs until this request has ended; requests that were added go on meanwhile. Errors: those of
  // Add, and while it runs kLimit when the prompt does not fit the context or the shortest output
  // does not fit the budget (the message has both numbers), kInvalid for sampling parameters out of
  // their range. Places: "prompt", "grammar", "max_tokens", or the sampling parameter.
  Result<Generation> Generate(const EngineRequest& request);
  // One answer for each request, in their order; one that fails does not touch the others.
  std::vector<Result<Generation>> GenerateAll(std::span<const EngineRequest> requests);

  // Outputs that keep the model's distribution (pawl/sampling.h). Of the request's options none is
  // looked at; nothing is forced. What kAligned, kAdaptive and kExact learn is kept for the next
  // call with the same prompt, grammar, checks (the same objects), temperature and max_tokens, up
  // to EngineOptions::oracle_bytes. `proposal`: kAwrs and kSmc draw tokens as that model does,
  // which has the same vocabulary, and weight them as this one does; nobody else may use it
  // meanwhile. Errors: those of Add, of the checks, and kInvalid with the option as place; kLimit
  // with "prompt" as place when it is too long. Not from a callback.
  Result<SamplerResult> Sample(const EngineRequest& request, const SamplerOptions& options,
                               Engine* proposal = nullptr);
  // The model's log-probability of each token behind the prompt and the tokens before it, without a
  // mask. Errors: those of Add; kInvalid with "tokens" or "temperature" as place.
  Result<std::vector<double>> Score(const EngineRequest& request, std::span<const TokenId> tokens,
                                    double temperature = 1);

  // Takes a request without running it. `done` is called once, in a later Step, Generate or
  // GenerateAll. Errors: kInvalid when more than one prompt is given, it is not UTF-8, the messages
  // are not what the template takes, or the grammar is of another vocabulary; those of the chat
  // template, and where the model has none.
  Result<RequestId> Add(const EngineRequest& request, Done done);
  // It ends at the next step with what it has (StopReason::kCancelled). Unknown ids are ignored.
  void Cancel(RequestId id);
  // Writes the histories of drafts to DraftOptions::history_file; does nothing without one. Errors:
  // kIo.
  Status SaveDraftHistory();
  // At most one call of the model. false: nothing is left to do. Not from a callback.
  bool Step();

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pawl

#endif  // PAWL_ENGINE_H_
