// The engine that others link: the parts that the command line puts together, behind one pointer.
//
// A request is laid out and encoded when it is added, so that what is wrong with it is told at once
// and to whoever made it. From there on it is one of BatchEngine's; Generate and GenerateAll are
// steps until their own requests have answered.
#include "pawl/engine.h"

#include <algorithm>
#include <list>
#include <utility>

#include "src/base/failure.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/decode/batch.h"
#include "src/decode/sampling/run.h"
#include "src/engine/loaded_model.h"
#include "src/engine/model_files.h"
#include "src/model/model.h"
#include "src/text/chat/chat_input.h"

namespace pawl {
namespace {

constexpr int kMostBatch = 1024;

// The decode loop knows constraints; a caller without one of their own gave a grammar.
Result<Generation> ForCaller(Result<Generation> output, bool grammar_only) {
  if (output.ok() || !grammar_only || output.error().place != "constraint") return output;
  Error error = output.error();
  error.place = "grammar";
  return error;
}

Result<ChatInput> InputOf(const EngineRequest& request) {
  ChatInput input;
  if (!request.chat_json.empty()) {
    Result<json::Value> value = json::Parse(request.chat_json);
    if (!value.ok()) return InFile("chat_json", value.error());
    Result<ChatInput> read = ChatInputFromJson(*value);
    if (!read.ok()) return InFile("chat_json", read.error());
    input = *std::move(read);
  } else {
    input.messages.type = json::Type::kArray;
    for (const ChatMessage& message : request.messages) {
      const std::string place = "messages: #/" + std::to_string(input.messages.items.size());
      if (Status status = CheckUtf8(message.role); !status.ok()) {
        return InFile(place + "/role", status.error());
      }
      if (Status status = CheckUtf8(message.content); !status.ok()) {
        return InFile(place + "/content", status.error());
      }
      input.messages.items.push_back(MakeChatMessage(message.role, message.content));
    }
  }
  input.now = request.now;
  return input;
}

Result<std::vector<TokenId>> ChatTokens(const EngineRequest& request, const LoadedModel& model) {
  if (!model.chat().ok()) return model.chat().error();
  Result<ChatInput> input = InputOf(request);
  if (!input.ok()) return input.error();
  const Result<MarkedText> prompt = model.RenderChat(*std::move(input));
  if (!prompt.ok()) {
    const bool in_input = prompt.error().place.starts_with("#");
    const char* given = request.chat_json.empty() ? "messages" : "chat_json";
    return InFile(in_input ? given : model.chat()->place, prompt.error());
  }
  return model.EncodeChat(*prompt);
}

// What the output obeys. nullptr: nothing.
Result<std::shared_ptr<const Constraint>> ConstraintOf(
    const EngineRequest& request, const std::shared_ptr<const Vocabulary>& vocabulary) {
  if (!request.grammar) return request.constraint;
  if (&request.grammar->vocabulary() != vocabulary.get()) {
    return Error{ErrorCode::kInvalid,
                 "was compiled for another vocabulary than that of this engine", "grammar"};
  }
  std::shared_ptr<const Constraint> grammar = MakeConstraint(*request.grammar);
  if (request.constraint == nullptr) return grammar;
  return Both(std::move(grammar), request.constraint, vocabulary);
}

// A trie and what it is of. Grammar and constraint are kept, so that others cannot be at their
// addresses.
struct KnownTrie {
  std::vector<TokenId> prompt;
  std::optional<Grammar> grammar;
  std::shared_ptr<const Constraint> constraint;
  double temperature;
  int max_tokens;
  bool adaptive;
  std::vector<std::shared_ptr<const Check>> checks;
  OracleTrie trie;

  bool IsOf(std::span<const TokenId> tokens, const EngineRequest& request,
            const SamplerOptions& options) const {
    const std::optional<Grammar>& other = request.grammar;
    const bool same_grammar = grammar.has_value() == other.has_value() &&
                              (!grammar || grammar->Start() == other->Start());
    return same_grammar && constraint == request.constraint &&
           std::equal(prompt.begin(), prompt.end(), tokens.begin(), tokens.end()) &&
           temperature == options.temperature && max_tokens == options.max_tokens &&
           adaptive == (options.sampler == SamplerKind::kAdaptive && !options.fidelity) &&
           checks == options.checks;
  }
};

}  // namespace

struct Engine::Impl {
  static Result<Engine> Load(const std::string& path, const EngineOptions& options);
  Result<SamplerResult> Sample(const EngineRequest& request, const SamplerOptions& options,
                               std::vector<TokenId> prompt,
                               std::shared_ptr<const Constraint> constraint, Model* proposal);

  // The one used last first.
  std::list<KnownTrie> tries;
  size_t oracle_bytes = 0;

  std::unique_ptr<LoadedModel> loaded;
  std::shared_ptr<Drafter> drafter;    // nullptr where drafts are off
  std::unique_ptr<BatchEngine> batch;  // goes before the model that it refers to
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&& other) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::Load(const std::string& path, const EngineOptions& options) {
  return Guarded([&] { return Impl::Load(path, options); });
}

Result<Engine> Engine::Impl::Load(const std::string& path, const EngineOptions& options) {
  if (options.max_batch < 1 || options.max_batch > kMostBatch) {
    return Error{ErrorCode::kInvalid,
                 "must be from 1 to " + std::to_string(kMostBatch) + ", not " +
                     std::to_string(options.max_batch),
                 "max_batch"};
  }
  if (options.model.threads < 0) {
    return Error{ErrorCode::kInvalid,
                 "must be at least 0, not " + std::to_string(options.model.threads), "threads"};
  }
  if (const auto sources = ParseDraftSources(options.drafts); !sources.ok()) {
    return sources.error();
  }
  auto impl = std::make_unique<Impl>();
  impl->oracle_bytes = options.oracle_bytes;
  Result<std::unique_ptr<LoadedModel>> loaded =
      LoadedModel::Open(path, {.text = options.chat_template});
  if (!loaded.ok()) return loaded.error();
  impl->loaded = *std::move(loaded);
  const LoadedModel& model = *impl->loaded;
  if (Status status = impl->loaded->LoadWeights(options.model); !status.ok()) {
    return status.error();
  }
  Result<std::shared_ptr<Drafter>> drafter = model.MakeDrafter(options.drafts);
  if (!drafter.ok()) return drafter.error();
  impl->drafter = *std::move(drafter);
  BatchOptions batch;
  batch.max_batch = options.max_batch;
  batch.max_rows = std::max(batch.max_rows, 2 * options.max_batch);
  batch.threads = options.max_batch > 1 ? model.mask_threads() : 1;
  batch.look_threads = std::max(2, batch.threads);
  batch.drafter = impl->drafter;
  impl->batch =
      std::make_unique<BatchEngine>(model.model(), model.vocabulary(), model.encoder(), batch);
  return Engine(std::move(impl));
}

const std::shared_ptr<const Vocabulary>& Engine::vocabulary() const {
  return impl_->loaded->vocabulary();
}

EngineInfo Engine::info() const {
  const ModelInfo& model = impl_->loaded->info();
  EngineInfo info;
  info.architecture = model.architecture;
  info.weights = model.dtype;
  info.kernels = model.kernels;
  info.parameters = model.parameters;
  info.weight_bytes = model.weight_bytes;
  info.context_length = model.context_length;
  info.threads = model.threads;
  info.has_chat_template = impl_->loaded->chat().ok();
  return info;
}

std::vector<TokenId> Engine::Encode(std::string_view text, bool parse_special) const {
  return impl_->loaded->tokenizer().Encode(text, {.parse_special = parse_special});
}

std::string Engine::Decode(std::span<const TokenId> tokens) const {
  return impl_->loaded->tokenizer().Decode(tokens);
}

Result<std::vector<TokenId>> Engine::PromptTokens(const EngineRequest& request) const {
  const int given = int{!request.prompt.empty()} + int{!request.messages.empty()} +
                    int{!request.chat_json.empty()} + int{!request.tokens.empty()} +
                    int{request.extract.has_value()};
  if (given > 1) {
    return Error{ErrorCode::kInvalid,
                 "more than one of prompt, messages, chat_json, tokens and extract is given",
                 "prompt"};
  }
  const LoadedModel& model = *impl_->loaded;
  const auto placed = [](Result<std::vector<TokenId>> tokens, const char* place) {
    if (tokens.ok() || !tokens.error().place.empty()) return tokens;
    return Result<std::vector<TokenId>>(InFile(place, tokens.error()));
  };
  if (request.extract) {
    const auto& [schema, text] = *request.extract;
    if (Status status = CheckExtractText(text); !status.ok()) {
      return InFile("text", status.error());
    }
    return placed(model.EncodeExtract(schema, text, request.now), "text");
  }
  if (!request.tokens.empty()) return request.tokens;
  if (!request.messages.empty() || !request.chat_json.empty()) {
    return placed(ChatTokens(request, model), "prompt");
  }
  if (Status status = CheckUtf8(request.prompt); !status.ok()) {
    return InFile("prompt", status.error());
  }
  return placed(model.EncodePlain(request.prompt, request.parse_special), "prompt");
}

Result<RequestId> Engine::Add(const EngineRequest& request, Done done) {
  return Guarded([&]() -> Result<RequestId> {
    Result<std::vector<TokenId>> prompt = PromptTokens(request);
    if (!prompt.ok()) return prompt.error();
    auto constraint = ConstraintOf(request, vocabulary());
    if (!constraint.ok()) return constraint.error();
    BatchRequest added;
    added.constraint = *std::move(constraint);
    added.prompt = *std::move(prompt);
    added.options = request.options;
    added.group = request.group;
    const bool grammar_only = request.constraint == nullptr;
    added.done = [done = std::move(done), grammar_only](Result<Generation> output) {
      if (done) done(ForCaller(std::move(output), grammar_only));
    };
    return impl_->batch->Add(std::move(added));
  });
}

Status Engine::SaveDraftHistory() {
  return impl_->drafter == nullptr ? Status() : impl_->drafter->Save();
}

Result<SamplerResult> Engine::Sample(const EngineRequest& request, const SamplerOptions& options,
                                     Engine* proposal) {
  return Guarded([&]() -> Result<SamplerResult> {
    Result<std::vector<TokenId>> prompt = PromptTokens(request);
    if (!prompt.ok()) return prompt.error();
    auto constraint = ConstraintOf(request, vocabulary());
    if (!constraint.ok()) return constraint.error();
    if (request.constraint != nullptr && !request.constraint->exact()) {
      return Error{ErrorCode::kUnsupported, "is not exact, which samplers need", "constraint"};
    }
    if (proposal == this) {
      return Error{ErrorCode::kInvalid, "is the model itself", "proposal"};
    }
    return impl_->Sample(request, options, *std::move(prompt), *std::move(constraint),
                         proposal != nullptr ? &proposal->impl_->loaded->model() : nullptr);
  });
}

Result<SamplerResult> Engine::Impl::Sample(const EngineRequest& request,
                                           const SamplerOptions& options,
                                           std::vector<TokenId> prompt,
                                           std::shared_ptr<const Constraint> constraint,
                                           Model* proposal) {
  const auto known = std::find_if(tries.begin(), tries.end(), [&](const KnownTrie& t) {
    return t.IsOf(prompt, request, options);
  });
  if (known != tries.end()) {
    tries.splice(tries.begin(), tries, known);
  } else {
    const bool adaptive = options.sampler == SamplerKind::kAdaptive && !options.fidelity;
    tries.push_front({prompt, request.grammar, request.constraint, options.temperature,
                      options.max_tokens, adaptive, options.checks,
                      OracleTrie({.max_bytes = oracle_bytes / 4})});
  }
  // A trie that an exception has left half grown is not asked again.
  struct Scope {
    std::list<KnownTrie>& tries;
    bool whole = false;
    ~Scope() {
      if (!whole) tries.pop_front();
    }
  } scope{tries};
  ThreadPool pool(loaded->mask_threads());
  const SamplerInput input{
      loaded->model(), *loaded->vocabulary(), std::move(prompt), std::move(constraint), pool,
      proposal,        &tries.front().trie};
  Result<SamplerResult> result = RunSampler(input, options);
  scope.whole = true;
  size_t bytes = 0;
  for (auto it = tries.begin(); it != tries.end();) {
    bytes += it->trie.bytes();
    // One that knows nothing is not worth a place.
    it = bytes > oracle_bytes || it->trie.node_count() == 0 ? tries.erase(it) : std::next(it);
  }
  return result;
}

Result<std::vector<double>> Engine::Score(const EngineRequest& request,
                                          std::span<const TokenId> tokens, double temperature) {
  return Guarded([&]() -> Result<std::vector<double>> {
    const Result<std::vector<TokenId>> prompt = PromptTokens(request);
    if (!prompt.ok()) return prompt.error();
    return ScoreTokens(impl_->loaded->model(), *prompt, tokens, temperature);
  });
}

void Engine::Cancel(RequestId id) { impl_->batch->Cancel(id); }

bool Engine::Step() { return impl_->batch->Step(); }

Result<Generation> Engine::Generate(const EngineRequest& request) {
  return std::move(GenerateAll(std::span(&request, 1)).front());
}

std::vector<Result<Generation>> Engine::GenerateAll(std::span<const EngineRequest> requests) {
  // Callbacks refer to what is here, so nothing may throw once a request is added.
  std::vector<Result<Generation>> outputs;
  outputs.reserve(requests.size());
  std::vector<std::optional<Result<Generation>>> answers(requests.size());
  size_t left = requests.size();
  for (size_t i = 0; i < requests.size(); ++i) {
    // Guarded: memory for the callback itself may run out.
    const Result<RequestId> id = Guarded([&]() -> Result<RequestId> {
      return Add(requests[i], [&answers, &left, i](Result<Generation> output) {
        answers[i] = std::move(output);
        --left;
      });
    });
    if (!id.ok()) {
      answers[i] = CopyOf(id.error());
      --left;
    }
  }
  while (left > 0 && Step()) {
  }
  for (auto& answer : answers) {
    outputs.push_back(answer ? *std::move(answer)
                             : Error{ErrorCode::kInternal, "the request did not end", ""});
  }
  return outputs;
}

}  // namespace pawl
