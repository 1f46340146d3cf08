// A thread that owns a batch engine, and one inbox. The loop takes what has come and makes a step
// of the batch. It starts with the first request, so that an engine that only counts tokens has no
// thread.
//
// What constraints are asked and is not known runs on threads of the batch, so a step is short
// however long that takes. Where all requests wait for such answers the step waits for the first of
// them, and what comes into the inbox wakes it.
//
// Memory. What the loop needs for a request is allocated by the thread that hands it in: its place
// in the inbox and in the table of requests. To cancel is to set a mark, which the loop looks for.
// So no message is lost, and the loop allocates only inside of the request that a failure ends.
#include "src/engine/async_engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/base/failure.h"
#include "src/base/os/processes.h"
#include "src/base/thread_pool.h"
#include "src/base/threads.h"
#include "src/decode/sampling/run.h"

namespace pawl {
namespace {

constexpr std::chrono::milliseconds kStillEvery{20};

Error ClosedError() noexcept {
  try {
    return Error{ErrorCode::kInvalid, "the engine is closed", ""};
  } catch (...) {
    return OutOfMemory();
  }
}

BatchOptions OptionsFor(const LoadedModel& model, const AsyncOptions& options) {
  BatchOptions batch = BatchOptionsFor(model, options.max_batch, options.drafter);
  batch.on_step = options.on_step;
  return batch;
}

}  // namespace

// ---- Requests ----

struct AsyncEngine::Request : std::enable_shared_from_this<AsyncEngine::Request> {
  explicit Request(AsyncEngine& of) : engine(of) {}
  virtual ~Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Adds it to the batch, which keeps it until its end.
  virtual Result<RequestId> Begin(BatchEngine& batch) = 0;
  // Ends it.
  virtual void Fail(Error why) noexcept = 0;

  template <typename Derived>
  std::shared_ptr<Derived> Self() {
    return std::static_pointer_cast<Derived>(shared_from_this());
  }
  // What the caller is told; an exception of the callback is dropped, because there is no one left
  // to tell.
  template <typename T, typename Done>
  void Tell(const Done& done, Result<T> result) noexcept {
    if (engine.closing_) result = ClosedError();
    engine.Forget(*this);
    try {
      done(std::move(result));
    } catch (...) {  // NOLINT(bugprone-empty-catch): see above
    }
  }

  AsyncEngine& engine;
  Id id = 0;
  RequestId batch_id = -1;  // of the engine's thread; -1: it is not in the batch yet
  std::atomic<bool> cancelled{false};
};

struct AsyncEngine::OutputRequest final : Request {
  OutputRequest(AsyncEngine& of, LaidOut laid, Delivery delivery_in)
      : Request(of),
        request(std::move(laid.request)),
        delivery(std::move(delivery_in)),
        stops(std::move(delivery.stops), delivery.include_stop),
        text(std::move(laid.text)),
        notes(std::move(laid.notes)),
        details(laid.details != nullptr ? std::move(laid.details) : std::move(delivery.details)) {
    if (details != nullptr) {
      details->asks = [this](RequestId asked) {
        batch_id = asked;
        if (cancelled) engine.batch_.Cancel(asked);
      };
    }
    if (text != nullptr) {
      text->on_reasoning = std::move(request.options.on_reasoning);
      delivery.text_of = [this](TokenId token, std::string_view bytes) {
        return text->Add(token, bytes);
      };
    }
    if (!delivery.on_token && stops.empty() && text == nullptr) return;
    if (delivery.reports) {
      request.options.on_report = [this](const TokenReport& report) {
        return Told(report.token, report.bytes, &report);
      };
    } else {
      request.options.on_token = [this](TokenId token, std::string_view bytes) {
        return Told(token, bytes, nullptr);
      };
    }
  }

  Result<RequestId> Begin(BatchEngine& batch) override {
    request.done = [self = Self<OutputRequest>()](Result<Generation> output) {
      self->End(std::move(output));
    };
    return batch.Add(std::move(request));
  }
  void Fail(Error why) noexcept override { End(std::move(why)); }

  bool Told(TokenId token, std::string_view bytes, const TokenReport* report) {
    if (cancelled) return false;
    if (delivery.text_of) bytes = delivery.text_of(token, bytes);
    const bool goes_on = stops.Feed(bytes);
    if (!delivery.on_token) return goes_on;
    const bool wanted = delivery.on_token({.token = token,
                                           .bytes = bytes,
                                           .report = report,
                                           .size = stops.size(),
                                           .safe = stops.safe(),
                                           .stop = stops.found()});
    return goes_on && wanted;
  }

  // What was held back at the end of the output.
  bool TellRest(std::string_view rest) {
    (void)stops.Feed(rest);
    if (!delivery.on_token) return true;
    return delivery.on_token({.token = kNoToken,
                              .bytes = rest,
                              .size = stops.size(),
                              .safe = stops.safe(),
                              .stop = stops.found()});
  }

  void End(Result<Generation> output) noexcept {
    // Where the caller says what a token adds, the text of the output is the caller's affair.
    const bool cut = text != nullptr || !delivery.text_of;
    if (text != nullptr) {
      (void)Guarded([&]() -> Status {
        const std::string_view rest = text->Finish();
        if (!rest.empty() && stops.found().empty()) (void)TellRest(rest);
        return {};
      });
    }
    output = Guarded([&] {
      TellApart(text.get(), notes, output);
      if (output.ok()) CutAtStop(stops, cut ? stops.size() : std::string::npos, *output);
      return for_caller ? ForCaller(std::move(output)) : std::move(output);
    });
    if (details == nullptr || !output.ok() || engine.closing_ || cancelled) {
      return TellEnd(std::move(output));
    }
    const Status asked = Guarded([&]() -> Status {
      AddDetails(engine.batch_, engine.model_, details, std::move(output),
                 [self = Self<OutputRequest>()](Result<Generation> with) {
                   self->TellEnd(std::move(with));
                 });
      return {};
    });
    if (!asked.ok()) TellEnd(CopyOf(asked.error()));
  }

  void TellEnd(Result<Generation> output) noexcept {
    const auto done = [this](Result<Generation> result) {
      if (delivery.done) delivery.done(std::move(result));
    };
    Tell(done, std::move(output));
  }

  BatchRequest request;
  Delivery delivery;
  StopStrings stops;
  const std::shared_ptr<ThoughtText> text;  // nullptr: no thoughts
  const std::vector<std::string> notes;
  const std::shared_ptr<DetailsRequest> details;  // nullptr: none are wanted
  bool for_caller = false;                        // who gave a grammar, and no constraint
};

struct AsyncEngine::ScoreRequest final : Request {
  ScoreRequest(AsyncEngine& of, std::vector<TokenId> tokens_in, const ScoreOptions& options_in,
               uint64_t group_in, ScoreDone done_in, int adapter_in)
      : Request(of),
        tokens(std::move(tokens_in)),
        options(options_in),
        group(group_in),
        done(std::move(done_in)),
        adapter(adapter_in) {}

  Result<RequestId> Begin(BatchEngine& batch) override {
    Model& model = engine.model_.model(adapter);
    if (Status status = CheckScore(model, tokens, options); !status.ok()) return status.error();
    return batch.Add(
        MakeScoreWork(model, engine.model_.vocabulary()->size(), std::move(tokens), options,
                      [self = Self<ScoreRequest>()](Result<TokenScores> scores) {
                        self->Tell(self->done, std::move(scores));
                      }),
        group);
  }
  void Fail(Error why) noexcept override { Tell(done, Result<TokenScores>(std::move(why))); }

  std::vector<TokenId> tokens;
  const ScoreOptions options;
  const uint64_t group;
  const ScoreDone done;
  const int adapter;
};

struct AsyncEngine::EmbedRequest final : Request {
  EmbedRequest(AsyncEngine& of, std::vector<TokenId> tokens_in, const Pooling& pooling_in,
               uint64_t group_in, EmbedDone done_in, int adapter_in)
      : Request(of),
        tokens(std::move(tokens_in)),
        pooling(pooling_in),
        group(group_in),
        done(std::move(done_in)),
        adapter(adapter_in) {}

  Result<RequestId> Begin(BatchEngine& batch) override {
    return batch.Add(std::make_unique<EmbedWork>(
                         engine.model_.model(adapter), std::move(tokens), pooling,
                         [self = Self<EmbedRequest>()](Result<std::vector<float>> embedding) {
                           self->Tell(self->done, std::move(embedding));
                         }),
                     group);
  }
  void Fail(Error why) noexcept override { Tell(done, Result<std::vector<float>>(std::move(why))); }

  std::vector<TokenId> tokens;
  const Pooling pooling;
  const uint64_t group;
  const EmbedDone done;
  const int adapter;
};

struct AsyncEngine::SamplerRequest final : Request {
  SamplerRequest(AsyncEngine& of, std::vector<TokenId> prompt_in,
                 std::shared_ptr<const Constraint> constraint_in, SamplerOptions options_in,
                 SampleDone done_in)
      : Request(of),
        prompt(std::move(prompt_in)),
        constraint(std::move(constraint_in)),
        options(std::move(options_in)),
        done(std::move(done_in)),
        pool(of.model_.mask_threads()) {}
  ~SamplerRequest() override {
    if (proposal != nullptr) proposal->Return();
  }

  Result<RequestId> Begin(BatchEngine& batch) override {
    SamplerInput input{
        engine.model_.model(adapter),
        *engine.model_.vocabulary(),
        std::move(prompt),
        std::move(constraint),
        pool,
        proposal != nullptr ? &proposal->model_.model(proposal->model_.own_adapter()) : nullptr,
        &trie.front().trie};
    return batch.Add(MakeSamplerWork(std::move(input), std::move(options),
                                     [self = Self<SamplerRequest>()](Result<SamplerResult> result) {
                                       self->End(std::move(result));
                                     }),
                     group);
  }
  void Fail(Error why) noexcept override { End(std::move(why)); }

  void End(Result<SamplerResult> result) noexcept {
    // Who hears of the end may use both engines as they like.
    if (const auto lent = std::exchange(proposal, nullptr)) lent->Return();
    // A trie that a failure has left half grown is not asked again.
    if (result.ok()) engine.tries_.PutBack(std::move(trie));
    trie.clear();
    Tell(done, std::move(result));
  }

  std::vector<TokenId> prompt;
  std::shared_ptr<const Constraint> constraint;
  SamplerOptions options;
  uint64_t group = 0;
  int adapter = 0;
  const SampleDone done;
  ThreadPool pool;
  std::list<CachedTries::Known> trie;
  std::shared_ptr<AsyncEngine> proposal;  // borrowed
};

// A search, or a classification.
template <typename Options, typename Out>
struct AsyncEngine::SearchRequest final : Request {
  SearchRequest(AsyncEngine& of, SearchInput input_in, Options options_in, uint64_t group_in,
                std::function<void(Result<Out>)> done_in)
      : Request(of),
        input(std::move(input_in)),
        options(std::move(options_in)),
        group(group_in),
        done(std::move(done_in)) {}

  Result<RequestId> Begin(BatchEngine& batch) override {
    return batch.Add(MakeSearchWork(std::move(input), std::move(options),
                                    [self = Self<SearchRequest>()](Result<Out> result) {
                                      self->Tell(self->done, std::move(result));
                                    }),
                     group);
  }
  void Fail(Error why) noexcept override { Tell(done, Result<Out>(std::move(why))); }

  SearchInput input;
  Options options;
  const uint64_t group;
  const std::function<void(Result<Out>)> done;
};

// ---- The engine ----

Result<std::shared_ptr<AsyncEngine>> AsyncEngine::Load(const std::string& path,
                                                       const EngineOptions& options) {
  return Guarded([&]() -> Result<std::shared_ptr<AsyncEngine>> {
    Result<EngineParts> parts = LoadEngineParts(path, options);
    if (!parts.ok()) return parts.error();
    return std::shared_ptr<AsyncEngine>(new AsyncEngine(*std::move(parts), options),
                                        [](AsyncEngine* engine) {
                                          if (!engine->forked()) delete engine;
                                        });
  });
}

AsyncEngine::AsyncEngine(EngineParts parts, const EngineOptions& options)
    : own_(std::move(parts.model)),
      model_(*own_),
      drafter_(std::move(parts.drafter)),
      process_(os::ThisProcess()),
      tries_(options.oracle_bytes),
      max_batch_(options.max_batch),
      batch_(model_.model(), model_.vocabulary(), model_.encoder(),
             BatchOptionsFor(model_, options.max_batch, drafter_)) {}

AsyncEngine::AsyncEngine(LoadedModel& model, const AsyncOptions& options)
    : model_(model),
      drafter_(options.drafter),
      process_(os::ThisProcess()),
      tries_(options.oracle_bytes),
      max_batch_(options.max_batch),
      batch_(model_.model(), model_.vocabulary(), model_.encoder(), OptionsFor(model, options)) {}

AsyncEngine::~AsyncEngine() { (void)Close(); }

bool AsyncEngine::forked() const { return os::ThisProcess() != process_; }

// ---- Handing in ----

Status AsyncEngine::Register(const std::shared_ptr<Request>& request) {
  const std::lock_guard lock(mutex_);
  if (stop_) return ClosedError();
  request->id = next_id_++;
  requests_.emplace(request->id, request);
  return {};
}

Status AsyncEngine::Post(const std::shared_ptr<Request>& request) {
  try {
    std::list<std::shared_ptr<Request>> one{request};
    const std::lock_guard lock(mutex_);
    if (stop_) {
      requests_.erase(request->id);
      return ClosedError();
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
    inbox_.splice(inbox_.end(), one);
    ++waiting_;
  } catch (...) {
    Forget(*request);
    throw;
  }
  wake_.notify_one();
  batch_.Wake();
  return {};
}

Result<AsyncEngine::Id> AsyncEngine::Hand(const std::shared_ptr<Request>& request) {
  if (Status status = Register(request); !status.ok()) return status.error();
  // The request may have ended when Post returns; its number stays.
  const Id id = request->id;
  if (Status status = Post(request); !status.ok()) return status.error();
  return id;
}

void AsyncEngine::Forget(const Request& request) noexcept {
  const std::lock_guard lock(mutex_);
  requests_.erase(request.id);
}

Result<AsyncEngine::Id> AsyncEngine::Submit(const EngineRequest& request, Delivery delivery) {
  if (request.document) return SubmitDocument(request, std::move(delivery));
  return SubmitOne(request, /*alternatives=*/true, std::move(delivery));
}

Result<AsyncEngine::Id> AsyncEngine::SubmitOne(const EngineRequest& request, bool alternatives,
                                               Delivery delivery) {
  Result<LaidOut> laid = LayOut(request, model_);
  if (!laid.ok()) return laid.error();
  if (laid->details != nullptr && !alternatives) laid->details->schema.clear();
  delivery.stops = request.stops;
  delivery.include_stop = request.include_stop;
  const auto handed = std::make_shared<OutputRequest>(*this, *std::move(laid), std::move(delivery));
  handed->for_caller = request.constraint == nullptr;
  return Hand(handed);
}

Result<AsyncEngine::Id> AsyncEngine::Submit(BatchRequest request, Delivery delivery) {
  LaidOut laid{.request = std::move(request), .text = nullptr, .notes = {}, .details = nullptr};
  return Hand(std::make_shared<OutputRequest>(*this, std::move(laid), std::move(delivery)));
}

// Its chunks are requests like others, so Close ends them, and with them the document.
Result<AsyncEngine::Id> AsyncEngine::SubmitDocument(const EngineRequest& request,
                                                    Delivery delivery) {
  DocumentJob::Door door;
  door.ahead = ChunksAhead(max_batch_);
  door.add = [this](const EngineRequest& chunk, bool alternatives, DocumentJob::Done done) {
    Delivery of_chunk;
    of_chunk.done = std::move(done);
    return SubmitOne(chunk, alternatives, std::move(of_chunk));
  };
  door.cancel = [this](Id id) { Cancel(id); };
  Result<std::shared_ptr<DocumentJob>> job =
      DocumentJob::Start(model_, request, std::move(door), std::move(delivery.done));
  if (!job.ok()) return job.error();
  const std::lock_guard lock(mutex_);
  std::erase_if(documents_, [](const auto& one) { return one.second->ended(); });
  const Id id = next_id_++;
  documents_.emplace(id, *std::move(job));
  return id;
}

Result<AsyncEngine::Id> AsyncEngine::SubmitScore(std::vector<TokenId> tokens,
                                                 const ScoreOptions& options, uint64_t group,
                                                 ScoreDone done, int adapter) {
  return Hand(std::make_shared<ScoreRequest>(*this, std::move(tokens), options, group,
                                             std::move(done), adapter));
}

Result<AsyncEngine::Id> AsyncEngine::SubmitEmbed(std::vector<TokenId> tokens,
                                                 const Pooling& pooling, uint64_t group,
                                                 EmbedDone done, int adapter) {
  return Hand(std::make_shared<EmbedRequest>(*this, std::move(tokens), pooling, group,
                                             std::move(done), adapter));
}

Result<AsyncEngine::Id> AsyncEngine::SubmitSampler(const EngineRequest& request,
                                                   SamplerOptions options,
                                                   std::shared_ptr<AsyncEngine> proposal,
                                                   SampleDone done) {
  Result<std::vector<TokenId>> prompt = PromptTokensOf(request, model_);
  if (!prompt.ok()) return prompt.error();
  Result<std::shared_ptr<const Constraint>> constraint = SamplerConstraintOf(request, model_);
  if (!constraint.ok()) return constraint.error();
  const Result<int> adapter = model_.AdapterOf(request.lora);
  if (!adapter.ok()) return adapter.error();
  if (proposal.get() == this) {
    return Error{ErrorCode::kInvalid, "is the model itself", "proposal"};
  }
  auto trie = tries_.Take(CachedTries::KeyOf(*prompt, request, options));
  const auto handed = std::make_shared<SamplerRequest>(
      *this, *std::move(prompt), *std::move(constraint), std::move(options), std::move(done));
  handed->group = request.group;
  handed->adapter = *adapter;
  handed->trie = std::move(trie);
  if (proposal == nullptr) return Hand(handed);
  // Registered first: of two engines that want to borrow each other at once, none waits.
  if (Status status = Register(handed); !status.ok()) return status.error();
  const Id id = handed->id;
  const Status lent = Guarded([&] { return proposal->Borrow(); });
  if (!lent.ok()) {
    Forget(*handed);
    return lent.error();
  }
  handed->proposal = std::move(proposal);
  if (Status status = Post(handed); !status.ok()) return status.error();
  return id;
}

template <typename Options, typename Out>
Result<AsyncEngine::Id> AsyncEngine::HandSearch(Result<SearchInput> input, Options options,
                                                uint64_t group,
                                                std::function<void(Result<Out>)> done) {
  if (!input.ok()) return input.error();
  return Hand(std::make_shared<SearchRequest<Options, Out>>(
      *this, *std::move(input), std::move(options), group, std::move(done)));
}

Result<AsyncEngine::Id> AsyncEngine::SubmitSearch(const EngineRequest& request,
                                                  SearchOptions options, SearchDone done) {
  Result<SearchInput> input = SearchInputOf(request, options, model_);
  return HandSearch<SearchOptions, SearchResult>(std::move(input), std::move(options),
                                                 request.group, std::move(done));
}

Result<AsyncEngine::Id> AsyncEngine::SubmitClassify(const EngineRequest& request,
                                                    ClassifyOptions options, ClassifyDone done) {
  return HandSearch<ClassifyOptions, ClassifyResult>(
      ClassifyInputOf(request, model_), std::move(options), request.group, std::move(done));
}

void AsyncEngine::Cancel(Id id) noexcept {
  std::shared_ptr<DocumentJob> job;
  {
    const std::lock_guard lock(mutex_);
    if (const auto document = documents_.find(id); document != documents_.end()) {
      job = document->second;
    }
  }
  if (job != nullptr) return job->Cancel();
  {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) return;
    found->second->cancelled = true;
    cancels_ = true;
  }
  wake_.notify_one();
  batch_.Wake();
}

Status AsyncEngine::Borrow() {
  std::unique_lock lock(mutex_);
  if (stop_) return Error{ErrorCode::kInvalid, "is closed", "proposal"};
  if (pauses_ > 0 || !requests_.empty()) {
    return Error{ErrorCode::kInvalid, "is in use by other requests", "proposal"};
  }
  ++pauses_;
  rests_.wait(lock, [this] { return !stepping_; });
  return {};
}

void AsyncEngine::Return() noexcept {
  {
    const std::lock_guard lock(mutex_);
    --pauses_;
  }
  wake_.notify_one();
}

Status AsyncEngine::Save() {
  if (drafter_ == nullptr) return {};
  {
    std::unique_lock lock(mutex_);
    rests_.wait(lock, [this] { return !saving_; });
    if (stop_) return {};  // Close writes it
    saving_ = true;
    ++pauses_;
    rests_.wait(lock, [this] { return !stepping_; });
  }
  Status saved = Guarded([this] { return drafter_->Save(); });
  {
    const std::lock_guard lock(mutex_);
    saving_ = false;
  }
  rests_.notify_all();
  Return();
  return saved;
}

// ---- Waiting ----

namespace {

// Where a thread waits for the end of its request.
template <typename T>
struct Wait {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Result<T>> result;
  // Of a sampler: an output that the waiting thread is to see, and what it says of it.
  const WeightedOutput* offered = nullptr;
  std::optional<bool> answer;
  bool left = false;  // the waiting thread sees no more of them

  void End(Result<T> ended) {
    const std::lock_guard lock(mutex);
    result.emplace(std::move(ended));
    changed.notify_all();
  }
  // On the sampler's thread.
  bool Offer(const WeightedOutput& output) {
    std::unique_lock lock(mutex);
    if (left) return false;
    offered = &output;
    answer.reset();
    changed.notify_all();
    changed.wait(lock, [this] { return answer.has_value() || left; });
    offered = nullptr;
    return answer.value_or(false);
  }
};

// Until the request has ended. `see`: what the caller wants to do with outputs.
template <typename T>
Result<T> WaitFor(AsyncEngine& engine, AsyncEngine::Id id, Wait<T>& wait,
                  const AsyncEngine::Still& still,
                  const std::function<bool(const WeightedOutput&)>& see) {
  std::unique_lock lock(wait.mutex);
  const auto leave = [&] {
    wait.left = true;
    wait.changed.notify_all();
    lock.unlock();
    engine.Cancel(id);
    lock.lock();
    wait.changed.wait(lock, [&] { return wait.result.has_value(); });
  };
  const auto news = [&] {
    return wait.result.has_value() || (wait.offered != nullptr && !wait.answer);
  };
  try {
    for (;;) {
      if (!still) {
        wait.changed.wait(lock, news);
      } else if (!wait.changed.wait_for(lock, kStillEvery, news)) {
        lock.unlock();
        const bool goes_on = still();
        lock.lock();
        if (!goes_on && !wait.result.has_value()) leave();
      }
      if (wait.result.has_value()) return *std::move(wait.result);
      if (wait.offered == nullptr || wait.answer) continue;
      const WeightedOutput* const output = wait.offered;
      lock.unlock();
      const bool goes_on = see(*output);
      lock.lock();
      wait.answer = goes_on;
      wait.changed.notify_all();
    }
  } catch (...) {
    // The request refers to what the caller has.
    if (!lock.owns_lock()) lock.lock();
    if (!wait.result.has_value()) leave();
    throw;
  }
}

}  // namespace

Result<SamplerResult> AsyncEngine::Sample(const EngineRequest& request, SamplerOptions options,
                                          std::shared_ptr<AsyncEngine> proposal,
                                          const Still& still) {
  const auto wait = std::make_shared<Wait<SamplerResult>>();
  const std::function<bool(const WeightedOutput&)> see = std::move(options.on_output);
  if (see) {
    options.on_output = [wait](const WeightedOutput& output) { return wait->Offer(output); };
  } else {
    options.on_output = nullptr;
  }
  const Result<Id> id =
      SubmitSampler(request, std::move(options), std::move(proposal),
                    [wait](Result<SamplerResult> result) { wait->End(std::move(result)); });
  if (!id.ok()) return id.error();
  return WaitFor(*this, *id, *wait, still, see);
}

Result<std::vector<double>> AsyncEngine::Score(const EngineRequest& request,
                                               std::span<const TokenId> tokens, double temperature,
                                               const Still& still) {
  Result<std::vector<TokenId>> prompt = PromptTokensOf(request, model_);
  if (!prompt.ok()) return prompt.error();
  const Result<int> adapter = model_.AdapterOf(request.lora);
  if (!adapter.ok()) return adapter.error();
  if (Status writes = CheckWrites(model_); !writes.ok()) return writes.error();
  const ScoreOptions options{.first = prompt->size(), .temperature = temperature};
  prompt->insert(prompt->end(), tokens.begin(), tokens.end());
  const auto wait = std::make_shared<Wait<TokenScores>>();
  const Result<Id> id = SubmitScore(
      *std::move(prompt), options, request.group,
      [wait](Result<TokenScores> scores) { wait->End(std::move(scores)); }, *adapter);
  if (!id.ok()) return id.error();
  Result<TokenScores> scores = WaitFor(*this, *id, *wait, still, {});
  if (!scores.ok()) return scores.error();
  return std::move(scores->logprobs);
}

Result<SearchResult> AsyncEngine::Search(const EngineRequest& request, SearchOptions options,
                                         const Still& still) {
  const auto wait = std::make_shared<Wait<SearchResult>>();
  const Result<Id> id =
      SubmitSearch(request, std::move(options),
                   [wait](Result<SearchResult> result) { wait->End(std::move(result)); });
  if (!id.ok()) return id.error();
  return WaitFor(*this, *id, *wait, still, {});
}

Result<ClassifyResult> AsyncEngine::Classify(const EngineRequest& request, ClassifyOptions options,
                                             const Still& still) {
  const auto wait = std::make_shared<Wait<ClassifyResult>>();
  const Result<Id> id =
      SubmitClassify(request, std::move(options),
                     [wait](Result<ClassifyResult> result) { wait->End(std::move(result)); });
  if (!id.ok()) return id.error();
  return WaitFor(*this, *id, *wait, still, {});
}

// ---- The thread ----

void AsyncEngine::Begin(Request& request) noexcept {
  const Result<RequestId> begun = Guarded([&] { return request.Begin(batch_); });
  if (!begun.ok()) return request.Fail(CopyOf(begun.error()));
  request.batch_id = *begun;
}

void AsyncEngine::CancelMarked() noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, request] : requests_) {
    if (request->cancelled && request->batch_id >= 0) batch_.Cancel(request->batch_id);
  }
}

void AsyncEngine::Publish() noexcept {
  running_ = batch_.running();
  waiting_ = batch_.waiting();
  steps_ = batch_.stats().steps;
  const KvMemory memory = model_.model().kv_memory();
  if (drafter_ != nullptr) draft_bytes_ = drafter_->bytes();
  kv_usage_ = 1.0 - static_cast<double>(memory.available) / static_cast<double>(memory.pages);
  kv_bytes_ = memory.made * memory.page_bytes;
}

void AsyncEngine::Loop() noexcept {
  NameThread("pawl-decoder");
  bool busy = false;
  std::list<std::shared_ptr<Request>> taken;
  for (;;) {
    bool cancels = false;
    {
      std::unique_lock lock(mutex_);
      stepping_ = false;
      if (pauses_ > 0) rests_.notify_all();
      wake_.wait(lock,
                 [&] { return stop_ || (pauses_ == 0 && (busy || cancels_ || !inbox_.empty())); });
      if (stop_) break;
      stepping_ = true;
      taken.swap(inbox_);
      cancels = std::exchange(cancels_, false);
    }
    for (const std::shared_ptr<Request>& request : taken) Begin(*request);
    taken.clear();
    if (cancels) CancelMarked();
    busy = batch_.Step();
    Publish();
  }
  EndAll();
}

void AsyncEngine::EndAll() noexcept {
  closing_ = true;
  std::list<std::shared_ptr<Request>> left;
  {
    std::unique_lock lock(mutex_);
    rests_.wait(lock, [this] { return !saving_; });
    left.swap(inbox_);
    for (const auto& [id, request] : requests_) request->cancelled = true;
  }
  CancelMarked();
  for (const std::shared_ptr<Request>& request : left) request->Fail(ClosedError());
  while (batch_.Step()) {
  }
  if (drafter_ != nullptr) saved_ = Guarded([this] { return drafter_->Save(); });
}

Status AsyncEngine::Close() {
  if (forked()) return {};
  const std::lock_guard closing(close_mutex_);
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  batch_.Wake();
  if (thread_.joinable()) thread_.join();
  return std::exchange(saved_, Status());
}

}  // namespace pawl
