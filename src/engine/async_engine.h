// AsyncEngine: an engine that any thread may use. One thread of its own runs the model, so that
// requests of many threads share its calls: outputs, samplers and scores.
//
//   Result<std::shared_ptr<AsyncEngine>> engine = AsyncEngine::Load("models/tiny-extract", {});
//   Result<AsyncEngine::Id> id = (*engine)->Submit(request, {
//       .on_token = [](const OutputToken& token) { return Show(token.bytes); },
//       .done = [](Result<Generation> output) { ... }});
//   (*engine)->Cancel(*id);                       // `done` is called with what there is
//   Result<SamplerResult> samples = (*engine)->Sample(request, options);      // waits for it
//
// Thread safety: any thread, at any time. Callbacks run on the engine's thread, which all requests
// share, so they must be short; those of samplers run on a thread of the sampler. They may use the
// engine but for Close, Sample and Score.
//
// Failures. An exception on the engine's thread fails the request that it belongs to (batch.h), and
// the thread goes on. Functions that hand a request in may throw std::bad_alloc: then the engine is
// as before, and no callback is called. Cancel needs no memory.
//
// Invariants:
//  (1) requests_ has the requests that were handed in and have not ended.
//  (2) inbox_ is a part of requests_: those that are not in the batch yet.
//  (3) Each request ends once, by its callback, on the engine's thread; also by Close.
//  (4) While pauses_ > 0 and not stepping_, the thread does not touch the model and the drafts.
#ifndef PAWL_SRC_ENGINE_ASYNC_ENGINE_H_
#define PAWL_SRC_ENGINE_ASYNC_ENGINE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "pawl/engine.h"
#include "src/decode/batch.h"
#include "src/decode/embed_work.h"
#include "src/decode/sampling/score.h"
#include "src/decode/stop_strings.h"
#include "src/engine/document.h"
#include "src/engine/engine_parts.h"
#include "src/engine/loaded_model.h"

namespace pawl {

// A token of an output, and the text as far as it goes with it.
struct OutputToken {
  TokenId token = kNoToken;
  std::string_view bytes;               // that it adds to the text
  const TokenReport* report = nullptr;  // with Delivery::reports
  size_t size = 0;                      // of the text, without what a stop string cuts off
  size_t safe = 0;                      // bytes of the text that stay, whatever follows
  std::string_view stop;                // the stop string that has come; empty: none has
};

// How an output comes back to the caller.
struct Delivery {
  // Of a BatchRequest, as EngineRequest has them of its own.
  std::vector<std::string> stops;
  bool include_stop = false;
  bool reports = false;  // OutputToken::report is wanted
  // The text that a token adds, where that is not its bytes. Called before on_token. nullptr: the
  // bytes.
  std::function<std::string_view(TokenId token, std::string_view bytes)> text_of = nullptr;
  // nullptr: nothing is wanted before the end. false ends the output.
  std::function<bool(const OutputToken& token)> on_token = nullptr;
  // Where there is `text_of`, Generation::text has what a stop string cuts off. Must not throw.
  std::function<void(Result<Generation> output)> done = nullptr;
  // Of a BatchRequest with GenerateOptions::details: what they are about.
  std::shared_ptr<DetailsRequest> details = nullptr;
};

struct AsyncOptions {
  int max_batch = 8;
  std::shared_ptr<Drafter> drafter = nullptr;     // drafts for all outputs; nullptr: none
  size_t oracle_bytes = size_t{256} << 20;        // memory for the tries of samplers
  std::function<void(double)> on_step = nullptr;  // BatchOptions::on_step
};

class AsyncEngine {
 public:
  using Id = int64_t;
  using ScoreDone = std::function<void(Result<TokenScores> scores)>;
  using EmbedDone = std::function<void(Result<std::vector<float>> embedding)>;
  using SampleDone = std::function<void(Result<SamplerResult> result)>;
  using SearchDone = std::function<void(Result<SearchResult> result)>;
  using ClassifyDone = std::function<void(Result<ClassifyResult> result)>;
  // Asked every 20 ms by the calls that wait; false: the wait ends, and so does the request.
  using Still = std::function<bool()>;

  // Errors: those of Engine::Load. In a process that was forked from this one the engine must not
  // be used, and its last owner leaves it alone there.
  static Result<std::shared_ptr<AsyncEngine>> Load(const std::string& path,
                                                   const EngineOptions& options);
  // Around the model of someone who keeps it alive. No one else runs it meanwhile. REQUIRES:
  // LoadWeights.
  AsyncEngine(LoadedModel& model, const AsyncOptions& options);
  // As Close.
  ~AsyncEngine();
  AsyncEngine(const AsyncEngine&) = delete;
  AsyncEngine& operator=(const AsyncEngine&) = delete;

  // The const functions of the model may be used, but for its Model.
  const LoadedModel& model() const { return model_; }

  // Hands a request in. BatchRequest::done is not used, and callbacks of the request's options are
  // replaced where Delivery has a use for them. Errors: those of Engine::Add; kInvalid after Close.
  Result<Id> Submit(const EngineRequest& request, Delivery delivery);
  Result<Id> Submit(BatchRequest request, Delivery delivery);
  // `group` as in BatchRequest, `adapter` of LoadedModel::AdapterOf. Errors: kInvalid after Close;
  // the others come by `done`.
  Result<Id> SubmitScore(std::vector<TokenId> tokens, const ScoreOptions& options, uint64_t group,
                         ScoreDone done, int adapter = 0);
  // One vector for the tokens. Errors: kInvalid after Close; those of EmbedWork come by `done`.
  Result<Id> SubmitEmbed(std::vector<TokenId> tokens, const Pooling& pooling, uint64_t group,
                         EmbedDone done, int adapter = 0);
  // As Engine::Sample. `proposal` is lent to the sampler: what is handed in to it meanwhile waits.
  // Errors: those of Engine::Sample; kInvalid with "proposal" as place where it has requests.
  Result<Id> SubmitSampler(const EngineRequest& request, SamplerOptions options,
                           std::shared_ptr<AsyncEngine> proposal, SampleDone done);
  // As Engine::Search and Engine::Classify.
  Result<Id> SubmitSearch(const EngineRequest& request, SearchOptions options, SearchDone done);
  Result<Id> SubmitClassify(const EngineRequest& request, ClassifyOptions options,
                            ClassifyDone done);
  // The request ends soon, with what it has. Unknown ids, and those that have ended, are ignored.
  void Cancel(Id id) noexcept;

  // As Engine::Sample and Engine::Score, waiting for the result. SamplerOptions::on_output is
  // called on this thread.
  Result<SamplerResult> Sample(const EngineRequest& request, SamplerOptions options,
                               std::shared_ptr<AsyncEngine> proposal = nullptr,
                               const Still& still = nullptr);
  Result<std::vector<double>> Score(const EngineRequest& request, std::span<const TokenId> tokens,
                                    double temperature = 1, const Still& still = nullptr);
  // As Engine::Search and Engine::Classify, waiting for the result.
  Result<SearchResult> Search(const EngineRequest& request, SearchOptions options,
                              const Still& still = nullptr);
  Result<ClassifyResult> Classify(const EngineRequest& request, ClassifyOptions options,
                                  const Still& still = nullptr);
  // Writes the history of drafts, between two steps. Errors: kIo.
  Status Save();

  // Ends all requests with an error, and the thread. Errors: those of the history of drafts, which
  // is written then.
  Status Close();
  // This process was forked from the one that made the engine: there is no thread here, its locks
  // may be held for ever, and nothing may be done with it, not even ending it.
  bool forked() const;

  int running() const { return running_; }
  int waiting() const { return waiting_; }
  int64_t steps() const { return steps_; }
  // 0 to 1, of the memory for keys and values.
  double kv_usage() const { return kv_usage_; }
  int64_t draft_bytes() const { return draft_bytes_; }  // that drafts keep between outputs
  // Of the pages of keys and values that have memory.
  int64_t kv_bytes() const { return kv_bytes_; }

 private:
  struct Request;
  struct OutputRequest;
  // `alternatives`: those of details are wanted.
  Result<Id> SubmitOne(const EngineRequest& request, bool alternatives, Delivery delivery);
  Result<Id> SubmitDocument(const EngineRequest& request, Delivery delivery);
  struct ScoreRequest;
  struct EmbedRequest;
  struct SamplerRequest;
  template <typename Options, typename Out>
  struct SearchRequest;

  AsyncEngine(EngineParts parts, const EngineOptions& options);
  // Register makes it one of requests_, Post puts it into the inbox. After an error it is neither.
  Status Register(const std::shared_ptr<Request>& request);
  Status Post(const std::shared_ptr<Request>& request);
  template <typename Options, typename Out>
  Result<Id> HandSearch(Result<SearchInput> input, Options options, uint64_t group,
                        std::function<void(Result<Out>)> done);
  Result<Id> Hand(const std::shared_ptr<Request>& request);
  void Forget(const Request& request) noexcept;
  // The model, for the thread of another engine's sampler.
  Status Borrow();
  void Return() noexcept;

  void Loop() noexcept;
  void Begin(Request& request) noexcept;
  void CancelMarked() noexcept;
  void Publish() noexcept;
  void EndAll() noexcept;

  const std::unique_ptr<LoadedModel> own_;
  LoadedModel& model_;
  const std::shared_ptr<Drafter> drafter_;
  const int process_;
  CachedTries tries_;
  const int max_batch_;
  BatchEngine batch_;     // of the thread
  bool closing_ = false;  // of the thread

  std::mutex mutex_;
  std::condition_variable wake_, rests_;
  // All under mutex_.
  std::unordered_map<Id, std::shared_ptr<Request>> requests_;
  // Those that have ended go when another one comes.
  std::unordered_map<Id, std::shared_ptr<DocumentJob>> documents_;
  std::list<std::shared_ptr<Request>> inbox_;
  Id next_id_ = 1;
  bool cancels_ = false;  // some request is marked
  bool stepping_ = false;
  int pauses_ = 0;  // Borrow and Save; the thread makes no step meanwhile
  bool saving_ = false;
  bool stop_ = false;
  Status saved_;
  std::thread thread_;  // from the first request on

  std::mutex close_mutex_;
  std::atomic<int> running_{0}, waiting_{0};
  std::atomic<int64_t> steps_{0};
  std::atomic<double> kv_usage_{0};
  std::atomic<int64_t> draft_bytes_{0};
  std::atomic<int64_t> kv_bytes_{0};
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_ASYNC_ENGINE_H_
