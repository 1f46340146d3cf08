// The engine that others link, on the thread of its caller. A request is laid out when it is added
// (engine_parts.h); from there on it is one of BatchEngine's. Generate and GenerateAll make steps
// until their own requests have answered.
#include "pawl/engine.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include "src/base/failure.h"
#include "src/decode/sampling/run.h"
#include "src/decode/sampling/score.h"
#include "src/engine/document.h"
#include "src/engine/engine_parts.h"

namespace pawl {

namespace {

// Tells the tokens of an output once no stop string can begin in them any more.
class HeldTokens {
 public:
  using OnToken = std::function<bool(TokenId token, std::string_view bytes)>;

  explicit HeldTokens(const EngineRequest& request)
      : stops_(request.stops, request.include_stop), on_token_(request.options.on_token) {}

  bool Add(TokenId token, std::string_view bytes) {
    const bool goes_on = stops_.Feed(bytes);
    if (on_token_) held_.push_back({token, std::string(bytes)});
    return TellUpTo(stops_.safe()) && goes_on;
  }
  void Finish(Generation& output) {
    // The stop string has been cut off what is left; special tokens before it have no bytes.
    if (told_ < stops_.size() || stops_.found().empty()) TellUpTo(stops_.size(), true);
    CutAtStop(stops_, stops_.size(), output);
  }

 private:
  // `cut`: a token that goes beyond is told with the bytes before `end`.
  bool TellUpTo(size_t end, bool cut = false) {
    while (!held_.empty() && !refused_) {
      auto& [token, bytes] = held_.front();
      if (told_ + bytes.size() > end) {
        if (!cut || told_ == end) break;
        bytes.resize(end - told_);
      }
      told_ += bytes.size();
      refused_ = !on_token_(token, bytes);
      held_.pop_front();
    }
    return !refused_;
  }

  StopStrings stops_;
  const OnToken on_token_;
  std::deque<std::pair<TokenId, std::string>> held_;
  size_t told_ = 0;  // bytes
  bool refused_ = false;
};

// Ends the output at the stop strings of the request.
void StopAt(const EngineRequest& request, BatchRequest& batch) {
  if (request.stops.empty()) return;
  const auto held = std::make_shared<HeldTokens>(request);
  batch.options.on_token = [held](TokenId token, std::string_view bytes) {
    return held->Add(token, bytes);
  };
  batch.done = [held, done = std::move(batch.done)](Result<Generation> output) {
    done(Guarded([&] {
      if (output.ok()) held->Finish(*output);
      return std::move(output);
    }));
  };
}

// `done`, after the details.
Engine::Done WithDetails(BatchEngine& engine, const LoadedModel& model,
                         std::shared_ptr<const DetailsRequest> request, Engine::Done done) {
  return [&engine, &model, request = std::move(request),
          done = std::move(done)](Result<Generation> output) {
    AddDetails(engine, model, request, std::move(output), done);
  };
}

// The request as the batch has it. The texts of its tokens go through the thoughts first, so stop
// strings are looked for in the answer alone.
BatchRequest BatchRequestWith(BatchEngine& engine, const LoadedModel& model,
                              const EngineRequest& request, LaidOut laid, Engine::Done done) {
  BatchRequest& batch = laid.request;
  if (laid.details != nullptr && done) {
    done = WithDetails(engine, model, std::move(laid.details), std::move(done));
  }
  const bool grammar_only = request.constraint == nullptr;
  batch.done = [done = std::move(done), grammar_only](Result<Generation> output) {
    if (done) done(grammar_only ? ForCaller(std::move(output)) : std::move(output));
  };
  StopAt(request, batch);
  if (laid.text == nullptr && laid.notes.empty()) return std::move(batch);
  const auto told = laid.text == nullptr ? nullptr : batch.options.on_token;
  Follow(laid.text, batch.options);
  batch.done = [done = std::move(batch.done), told, text = std::move(laid.text),
                notes = std::move(laid.notes)](Result<Generation> output) {
    done(Guarded([&] {
      // What was held back at the end of the output.
      const std::string_view rest = text == nullptr ? "" : text->Finish();
      if (told && !rest.empty()) (void)told(kNoToken, rest);
      TellApart(text.get(), notes, output);
      return std::move(output);
    }));
  };
  return std::move(batch);
}

}  // namespace

struct Engine::Impl {
  Impl(EngineParts parts, size_t oracle_bytes, const BatchOptions& options)
      : tries(oracle_bytes),
        loaded(std::move(parts.model)),
        drafter(std::move(parts.drafter)),
        batch(loaded->model(), loaded->vocabulary(), loaded->encoder(), options),
        max_batch(options.max_batch) {}

  Result<RequestId> AddOne(const EngineRequest& request, bool alternatives, Done done) {
    Result<LaidOut> laid = LayOut(request, *loaded);
    if (!laid.ok()) return laid.error();
    if (laid->details != nullptr && !alternatives) laid->details->schema.clear();
    return batch.Add(BatchRequestWith(batch, *loaded, request, *std::move(laid), std::move(done)));
  }

  Result<RequestId> AddDocument(const EngineRequest& request, Done done) {
    std::erase_if(documents, [](const auto& one) { return one.second->ended(); });
    DocumentJob::Door door;
    door.ahead = ChunksAhead(max_batch);
    door.add = [this](const EngineRequest& chunk, bool alternatives, Done with) {
      return AddOne(chunk, alternatives, std::move(with));
    };
    door.cancel = [this](RequestId id) { batch.Cancel(id); };
    Result<std::shared_ptr<DocumentJob>> job =
        DocumentJob::Start(*loaded, request, std::move(door), std::move(done));
    if (!job.ok()) return job.error();
    documents.emplace(--last_document, *std::move(job));
    return last_document;
  }

  CachedTries tries;
  std::unique_ptr<LoadedModel> loaded;
  std::shared_ptr<Drafter> drafter;  // nullptr where drafts are off
  BatchEngine batch;                 // goes before the model that it refers to
  const int max_batch;
  // Below 0, which no request of the batch has. Those that have ended go when another one comes.
  std::unordered_map<RequestId, std::shared_ptr<DocumentJob>> documents;
  RequestId last_document = -1;
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&& other) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::Load(const std::string& model, const EngineOptions& options) {
  return Guarded([&]() -> Result<Engine> {
    Result<EngineParts> parts = LoadEngineParts(model, options);
    if (!parts.ok()) return parts.error();
    const BatchOptions batch = BatchOptionsFor(*parts->model, options.max_batch, parts->drafter);
    return Engine(std::make_unique<Impl>(*std::move(parts), options.oracle_bytes, batch));
  });
}

Engine EngineAccess::Make(EngineParts parts, int max_batch) {
  BatchOptions batch = BatchOptionsFor(*parts.model, max_batch, parts.drafter);
  batch.look_threads = 0;
  return Engine(
      std::make_unique<Engine::Impl>(std::move(parts), EngineOptions().oracle_bytes, batch));
}

const LoadedModel& EngineAccess::ModelOf(const Engine& engine) { return *engine.impl_->loaded; }

const std::shared_ptr<const Vocabulary>& Engine::vocabulary() const {
  return impl_->loaded->vocabulary();
}

EngineInfo Engine::info() const { return InfoOf(*impl_->loaded); }

JsonSchemaOptions Engine::extract_options(std::string_view text) const {
  return impl_->loaded->ExtractOptions(text);
}

std::vector<ExtractDefault> Engine::extract_defaults() const {
  return impl_->loaded->choices().List();
}

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
    if (request.document) return impl_->AddDocument(request, std::move(done));
    return impl_->AddOne(request, /*alternatives=*/true, std::move(done));
  });
}

Result<RequestId> EngineAccess::AddChunk(Engine& engine, const EngineRequest& request,
                                         bool alternatives, Engine::Done done) {
  return Guarded([&]() -> Result<RequestId> {
    return engine.impl_->AddOne(request, alternatives, std::move(done));
  });
}

Result<Generation> EngineAccess::Generate(Engine& engine, const EngineRequest& request,
                                          const ThoughtPlan& thoughts) {
  return Guarded([&]() -> Result<Generation> {
    Engine::Impl& impl = *engine.impl_;
    Result<LaidOut> laid = LayOut(request, *impl.loaded, &thoughts);
    if (!laid.ok()) return laid.error();
    std::optional<Result<Generation>> answer;
    const Result<RequestId> id = impl.batch.Add(
        BatchRequestWith(impl.batch, *impl.loaded, request, *std::move(laid),
                         [&answer](Result<Generation> output) { answer = std::move(output); }));
    if (!id.ok()) return id.error();
    while (!answer && impl.batch.Step()) {
    }
    if (answer) return *std::move(answer);
    return Error{ErrorCode::kInternal, "the request did not end", ""};
  });
}

Status Engine::SaveDraftHistory() {
  return impl_->drafter == nullptr ? Status() : impl_->drafter->Save();
}

Result<SamplerResult> Engine::Sample(const EngineRequest& request, const SamplerOptions& options,
                                     Engine* proposal) {
  return Guarded([&]() -> Result<SamplerResult> {
    const Result<std::vector<TokenId>> prompt = PromptTokens(request);
    if (!prompt.ok()) return prompt.error();
    if (proposal == this) {
      return Error{ErrorCode::kInvalid, "is the model itself", "proposal"};
    }
    // A trie that an exception has left half grown is not asked again.
    auto trie = impl_->tries.Take(CachedTries::KeyOf(*prompt, request, options));
    Model* model = nullptr;
    if (proposal != nullptr) {
      const LoadedModel& other = *proposal->impl_->loaded;
      model = &other.model(other.own_adapter());
    }
    Result<SamplerResult> result =
        EngineAccess::Sample(*this, request, options, model, &trie.front().trie);
    impl_->tries.PutBack(std::move(trie));
    return result;
  });
}

Result<SamplerResult> EngineAccess::Sample(Engine& engine, const EngineRequest& request,
                                           const SamplerOptions& options, Model* proposal,
                                           PrefixTrie* trie) {
  const LoadedModel& model = ModelOf(engine);
  Result<std::vector<TokenId>> prompt = PromptTokensOf(request, model);
  if (!prompt.ok()) return prompt.error();
  Result<std::shared_ptr<const Constraint>> constraint = SamplerConstraintOf(request, model);
  if (!constraint.ok()) return constraint.error();
  const Result<int> adapter = model.AdapterOf(request.lora);
  if (!adapter.ok()) return adapter.error();
  ThreadPool pool(model.mask_threads());
  return RunSampler({model.model(*adapter), *model.vocabulary(), *std::move(prompt),
                     *std::move(constraint), pool, proposal, trie},
                    options);
}

Result<SearchResult> Engine::Search(const EngineRequest& request, const SearchOptions& options) {
  return Guarded([&]() -> Result<SearchResult> {
    const Result<SearchInput> input = SearchInputOf(request, options, *impl_->loaded);
    if (!input.ok()) return input.error();
    return RunSearch(*input, options);
  });
}

Result<ClassifyResult> Engine::Classify(const EngineRequest& request,
                                        const ClassifyOptions& options) {
  return Guarded([&]() -> Result<ClassifyResult> {
    const Result<SearchInput> input = ClassifyInputOf(request, *impl_->loaded);
    if (!input.ok()) return input.error();
    return RunClassify(*input, options);
  });
}

Result<std::vector<double>> Engine::Score(const EngineRequest& request,
                                          std::span<const TokenId> tokens, double temperature) {
  return Guarded([&]() -> Result<std::vector<double>> {
    const Result<std::vector<TokenId>> prompt = PromptTokens(request);
    if (!prompt.ok()) return prompt.error();
    const Result<int> adapter = impl_->loaded->AdapterOf(request.lora);
    if (!adapter.ok()) return adapter.error();
    if (Status writes = CheckWrites(*impl_->loaded); !writes.ok()) return writes.error();
    return ScoreTokens(impl_->loaded->model(*adapter), *prompt, tokens, temperature);
  });
}

void Engine::Cancel(RequestId id) {
  const auto document = impl_->documents.find(id);
  if (document == impl_->documents.end()) return impl_->batch.Cancel(id);
  const std::shared_ptr<DocumentJob> job = document->second;
  job->Cancel();
}

bool Engine::Step() { return impl_->batch.Step(); }

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
