// The engine that others link, on the thread of its caller. A request is laid out when it is added
// (engine_parts.h); from there on it is one of BatchEngine's. Generate and GenerateAll make steps
// until their own requests have answered.
#include "pawl/engine.h"

#include <utility>

#include "src/base/failure.h"
#include "src/decode/sampling/run.h"
#include "src/decode/sampling/score.h"
#include "src/engine/engine_parts.h"

namespace pawl {

struct Engine::Impl {
  explicit Impl(size_t oracle_bytes) : tries(oracle_bytes) {}
  static Result<Engine> Load(const std::string& path, const EngineOptions& options);

  CachedTries tries;
  std::unique_ptr<LoadedModel> loaded;
  std::shared_ptr<Drafter> drafter;    // nullptr where drafts are off
  std::unique_ptr<BatchEngine> batch;  // goes before the model that it refers to
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&& other) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::Load(const std::string& model, const EngineOptions& options) {
  return Guarded([&] { return Impl::Load(model, options); });
}

Result<Engine> Engine::Impl::Load(const std::string& path, const EngineOptions& options) {
  Result<EngineParts> parts = LoadEngineParts(path, options);
  if (!parts.ok()) return parts.error();
  auto impl = std::make_unique<Impl>(options.oracle_bytes);
  impl->loaded = std::move(parts->model);
  impl->drafter = std::move(parts->drafter);
  const LoadedModel& model = *impl->loaded;
  impl->batch =
      std::make_unique<BatchEngine>(model.model(), model.vocabulary(), model.encoder(),
                                    BatchOptionsFor(model, options.max_batch, impl->drafter));
  return Engine(std::move(impl));
}

const std::shared_ptr<const Vocabulary>& Engine::vocabulary() const {
  return impl_->loaded->vocabulary();
}

EngineInfo Engine::info() const { return InfoOf(*impl_->loaded); }

std::vector<TokenId> Engine::Encode(std::string_view text, bool parse_special) const {
  return impl_->loaded->tokenizer().Encode(text, {.parse_special = parse_special});
}

std::string Engine::Decode(std::span<const TokenId> tokens) const {
  return impl_->loaded->tokenizer().Decode(tokens);
}

Result<std::vector<TokenId>> Engine::PromptTokens(const EngineRequest& request) const {
  return PromptTokensOf(request, *impl_->loaded);
}

Result<RequestId> Engine::Add(const EngineRequest& request, Done done) {
  return Guarded([&]() -> Result<RequestId> {
    Result<LaidOut> laid = LayOut(request, *impl_->loaded);
    if (!laid.ok()) return laid.error();
    const bool grammar_only = request.constraint == nullptr;
    Follow(laid->text, laid->request.options);
    // What was held back at the end of the output.
    auto told = laid->text == nullptr ? nullptr : request.options.on_token;
    laid->request.done = [done = std::move(done), grammar_only, text = laid->text,
                          note = std::move(laid->note),
                          told = std::move(told)](Result<Generation> output) {
      if (text != nullptr) {
        const std::string_view rest = text->Finish();
        if (told && !rest.empty()) (void)told(kNoToken, rest);
      }
      TellApart(text.get(), note, output);
      if (done) done(grammar_only ? ForCaller(std::move(output)) : std::move(output));
    };
    return impl_->batch->Add(std::move(laid->request));
  });
}

Status Engine::SaveDraftHistory() {
  return impl_->drafter == nullptr ? Status() : impl_->drafter->Save();
}

Result<SamplerResult> Engine::Sample(const EngineRequest& request, const SamplerOptions& options,
                                     Engine* proposal) {
  return Guarded([&]() -> Result<SamplerResult> {
    const LoadedModel& model = *impl_->loaded;
    Result<std::vector<TokenId>> prompt = PromptTokensOf(request, model);
    if (!prompt.ok()) return prompt.error();
    Result<std::shared_ptr<const Constraint>> constraint = SamplerConstraintOf(request, model);
    if (!constraint.ok()) return constraint.error();
    if (proposal == this) {
      return Error{ErrorCode::kInvalid, "is the model itself", "proposal"};
    }
    // A trie that an exception has left half grown is not asked again.
    auto trie = impl_->tries.Take(CachedTries::KeyOf(*prompt, request, options));
    ThreadPool pool(model.mask_threads());
    const SamplerInput input{model.model(),
                             *model.vocabulary(),
                             *std::move(prompt),
                             *std::move(constraint),
                             pool,
                             proposal != nullptr ? &proposal->impl_->loaded->model() : nullptr,
                             &trie.front().trie};
    Result<SamplerResult> result = RunSampler(input, options);
    impl_->tries.PutBack(std::move(trie));
    return result;
  });
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
