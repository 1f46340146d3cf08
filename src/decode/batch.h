// BatchEngine: many outputs from one model at a time, each under its own constraint, callback and
// budget. Requests come and go between steps.
//
//   pawl::BatchEngine engine(*model, vocabulary, encode, {.max_batch = 8});
//   for (auto& prompt : prompts) {
//     engine.Add({.prompt = prompt, .constraint = constraint, .options = {.max_tokens = 200},
//                 .done = [](Result<Generation> output) { ... }});
//   }
//   while (engine.Step()) {
//   }
//
// What a request gets is token for token what it gets alone: rows do not depend on each other, and
// sampling depends on the request's seed and position only.
//
// Order and memory. Requests start in the order in which they were added, when a place in the batch
// is free and memory holds their prompt and some tokens more. When memory runs out, the youngest of
// the running requests makes room; it is computed again later, from what the prefix cache has
// kept, and nobody notices but by the time. The oldest always goes on, so every request ends.
//
// Failures. A request that fails (a prompt that is too long, a constraint without a token left,
// logits that are not finite) ends with its error; the others go on. Exceptions are failures too:
// one that leaves a constraint, a mask, a sampler or a callback ends that request; one that leaves
// the model ends those requests of the call that fail again when each is called alone. The error is
// kLimit with "memory ran out" after std::bad_alloc, else kInternal with the exception's text.
#ifndef PAWL_SRC_DECODE_BATCH_H_
#define PAWL_SRC_DECODE_BATCH_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "grammar/forced_spelling.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/thread_pool.h"
#include "src/decode/constraint.h"
#include "src/decode/draft/cost_curve.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/generation.h"
#include "src/model/model.h"

namespace pawl {

using RequestId = int64_t;  // as in pawl/engine.h

// Whether the row of a new token runs before the constraint has followed the token, so that the
// host finds the next mask while the device computes. It costs a call more where the constraint
// turns out to force what comes next. The outputs are the same either way.
enum class LateMasks {
  kAuto,  // where what was measured so far says that it saves time
  kNever,
  kAlways,
};

struct BatchOptions {
  int max_batch = 8;   // requests that run at a time, at least 1
  int max_rows = 256;  // of a call of the model: bounds the memory of activations; at least
                       // 2 * max_batch
  int threads = 1;     // for masks and sampling, the caller counted; 0: one for each processor
  // For models that draw tokens themselves (Model::samples); others give logits in any case.
  bool sample_in_model = true;
  LateMasks late_masks = LateMasks::kAuto;
  // Guesses what outputs go on with, so that a call may give several tokens of one; nullptr: one at
  // a time. The outputs are the same. Used by one engine alone; outlives nothing but it.
  std::shared_ptr<Drafter> drafter = nullptr;
};

struct BatchRequest {
  std::vector<TokenId> prompt;
  std::shared_ptr<const Constraint> constraint;  // nullptr: none
  GenerateOptions options;
  // Called once, unless the engine goes before the request ends. An exception that leaves it is
  // dropped, because there is no one left to tell.
  std::function<void(Result<Generation> output)> done;
};

struct BatchStats {
  int64_t steps = 0;
  int64_t rows = 0;
  int64_t preemptions = 0;
  int64_t late_steps = 0;  // in which the host found masks while the model computed
  int most_running = 0;
  int64_t drafts = 0, accepted = 0;  // rows of drafts; those that came
  int64_t failed_drafts = 0;         // calls that failed and were made again without
};

// One thread at a time. Callbacks run on the thread that calls Step; they may call Add and Cancel,
// but not Step. The model must outlive the engine.
class BatchEngine {
 public:
  // `vocabulary`: of the model's tokenizer. Logits beyond its size are never chosen. `encode`: the
  // tokenizer's encoding of a piece of text, for forced runs; may be empty; is called from several
  // threads when there are several.
  BatchEngine(Model& model, std::shared_ptr<const Vocabulary> vocabulary, Encoder encode = {},
              const BatchOptions& options = {});
  ~BatchEngine();
  BatchEngine(const BatchEngine&) = delete;
  BatchEngine& operator=(const BatchEngine&) = delete;

  // All errors come by `done`, in a later Step. Throws std::bad_alloc where there is no memory for
  // the request: the engine is as before then, and `done` is not called.
  RequestId Add(BatchRequest request);
  // It ends at the next step, with what it has (StopReason::kCancelled). Unknown ids are ignored.
  void Cancel(RequestId id);
  // At most one call of the model. false: nothing is left to do.
  bool Step() noexcept;

  int running() const { return static_cast<int>(running_.size()); }
  int waiting() const { return static_cast<int>(waiting_.size()); }
  const BatchStats& stats() const { return stats_; }

 private:
  struct Request;
  using Owned = std::unique_ptr<Request>;
  // Part of a request in a call.
  struct Share {
    Request* request;
    int rows = 0;
  };

  void EndCancelled();
  void Admit();
  Result<bool> Begin(Request& request);
  bool HasRoomFor(const Request& request) const;
  // Which rows run now; makes room where memory is short.
  void PlanShares();
  void AddShare(Request& request, int most, int& left);
  bool WaitsForElder(const Request& request) const;
  int64_t MissingPages() const;
  void Preempt();
  // Runs `shares` in one call, with drafts behind them where there are some; the failed ones get
  // their error.
  Status Call(std::span<const Share> shares, bool with_drafts);
  void MakeRows(std::span<const Share> shares, bool draws);
  Status RunRows(bool draws, double& seconds);
  // After a call that failed as a whole.
  void Forget(std::span<const Share> shares);
  // batch_drafts.cc: trees for those of `shares` whose next token is asked for.
  bool DraftsMade(std::span<const Share> shares);
  bool MakeDrafts(std::span<const Share> shares);
  void BeginDrafts(Request& request);
  static bool HasTree(const Request& request);
  void DropDrafts(std::span<const Share> shares);
  void LearnCost(std::span<const Share> shares, double seconds);
  // The rows behind those of a share.
  void AddDraftRows(Request& request, int pending, bool draws);
  // The next tokens of a request whose last token and drafts have run.
  Result<bool> TakeDrafted(Request& request);
  // What is in the model's memory of what was drafted, and what the drafter learns.
  void SettleDrafts(Request& request);
  void FinishDrafts(Request& request);
  void AskBehind(Request& request, int node, SampleRequest& wanted) const;
  void CallAlone();
  // Of the requests whose last token has run, the next one.
  void TakeAnswers();
  // What the model asks for while it computes.
  void FollowLate();
  bool LateIsFaster() const;
  // Tells and ends the requests that have something to tell or have ended.
  void Settle();
  void FailAll(const Error& why);
  void Release(Request& request);

  Model& model_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  Encoder encode_;
  BatchOptions options_;
  OutputTask task_;
  ThreadPool pool_;
  RequestId next_id_ = 0;
  // Each in the order of ids; every running id is lower than every waiting one. running_, ended_
  // and shares_ have memory for all requests that they may get, so that no step is lost for want of
  // it.
  std::vector<Owned> running_;
  std::deque<Owned> waiting_;
  std::vector<Owned> ended_;  // `done` not yet called
  std::vector<Share> shares_;
  std::vector<Row> rows_;
  std::vector<float> logits_;  // or, where the model draws,
  std::vector<SampleRequest> requests_;
  std::vector<TokenId> tokens_;
  struct Asking {
    Request* request = nullptr;
    int node = 0;  // of its tree; 0: behind its last token
  };
  std::vector<Asking> asking_;  // by output
  CostCurve curve_;
  bool curve_tried_ = false;
  std::vector<DraftTask> draft_tasks_;
  // Running means by step: seconds of calls, seconds for what follows a token, and which part of
  // the tokens is followed by forced ones.
  double call_seconds_ = 0, follow_seconds_ = 0, forced_share_ = 0;
  BatchStats stats_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_BATCH_H_
