// BatchEngine: many outputs from one model at a time, each under its own constraint, callback and
// budget. Requests come and go between steps. Other works (work.h) share the calls: the branches of
// a sampler, the scores of given tokens.
//
//   pawl::BatchEngine engine(*model, vocabulary, encode, {.max_batch = 8});
//   for (auto& prompt : prompts) {
//     engine.Add({.prompt = prompt, .constraint = constraint, .options = {.max_tokens = 200},
//                 .done = [](Result<Generation> output) { ... }});
//   }
//   engine.Add(MakeSamplerWork(...));                       // sampling/branch_work.h
//   while (engine.Step()) {
//   }
//
// What a request gets is token for token what it gets alone: rows do not depend on each other, and
// sampling depends on the request's seed and position only.
//
// Order and memory. Requests come in groups: what one client asked for at once. Places in the batch
// are given to the groups in turn, and inside of a group in the order in which its requests were
// added, when memory holds the prompt and some tokens more. A group without any place, whose turn
// has come, gets one of a group that has several. When memory runs out, the youngest of the running
// requests makes room; it is computed again later, from what the prefix cache has kept, and only
// the time tells. The oldest always goes on, so every request ends. The branches of a sampler get
// at most half of the rows of a call, so that outputs go on next to them.
//
// Looks. What a constraint is asked may take long. With BatchOptions::look_threads Step never waits
// for it longer than 5 ms: the output sits out until the answer is there, while the others go on
// (batch_looks.cc). Time decides when an output goes on, never what it says.
//
// Failures. A request that fails (a prompt that is too long, a constraint without a token left,
// logits that are not finite) ends with its error; the others go on. Exceptions are failures too:
// one that leaves a constraint, a mask, a sampler or a callback ends that request; one that leaves
// the model ends those requests of the call that fail again when each is called alone. The error is
// kLimit with "memory ran out" after std::bad_alloc, else kInternal with the exception's text.
#ifndef PAWL_SRC_DECODE_BATCH_H_
#define PAWL_SRC_DECODE_BATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/failure.h"
#include "src/base/thread_pool.h"
#include "src/decode/constraint.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/draft/verifier.h"
#include "src/decode/look_queue.h"
#include "src/decode/output_work.h"
#include "src/decode/waiting_line.h"
#include "src/decode/work.h"
#include "src/model/model.h"

namespace pawl {

using RequestId = int64_t;  // as in pawl/engine.h

// Whether the row of a new token runs before the constraint has followed the token, so that the
// host finds the next mask while the device computes. It costs a call more where the constraint
// turns out to force what comes next. The outputs are the same either way.
enum class MaskOverlap {
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
  // Threads for what constraints are asked and is not known yet; more are started while such a
  // question takes long. 0: the thread that calls Step finds it, however long that takes.
  int look_threads = 0;
  MaskOverlap late_masks = MaskOverlap::kAuto;
  // Guesses what outputs go on with, so that a call may give several tokens of one; nullptr: one at
  // a time. The outputs are the same. Used by one engine alone; outlives nothing but it.
  std::shared_ptr<Drafter> drafter = nullptr;
  // Told of each step: the processor time of the thread that calls Step, from one call of the model
  // to the next, that call included. Not called between them.
  std::function<void(double seconds)> on_step = nullptr;
};

struct BatchRequest {
  std::vector<TokenId> prompt;
  std::shared_ptr<const Constraint> constraint;  // nullptr: none
  GenerateOptions options;
  // Called once, unless the engine goes before the request ends. An exception that leaves it is
  // dropped, because there is no one left to tell.
  std::function<void(Result<Generation> output)> done;
  uint64_t group = 0;  // requests of one number take turns with other groups; 0: alone
  // The engine's model as the sequences of an adapter see it (adapted_model.h), which outlives the
  // engine. nullptr: the model itself.
  Model* model = nullptr;
};

struct BatchStats {
  int64_t steps = 0;
  int64_t rows = 0;
  int64_t preemptions = 0;
  int64_t late_steps = 0;  // in which the host found masks while the model computed
  int most_running = 0;
  int64_t drafts = 0, accepted = 0;  // rows of drafts; those that came
  int64_t failed_drafts = 0;         // calls that failed and were made again without
  // Looks that were handed to threads, and those of them that an output sat out for.
  int64_t looks = 0, late_looks = 0;
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
  // The same for a work of another kind. `group` as in BatchRequest.
  RequestId Add(std::unique_ptr<Work> work, uint64_t group = 0);
  // It ends at the next step, with what it has (StopReason::kCancelled), or as soon as its look has
  // stopped (base/stop_scope.h). Unknown ids are ignored.
  void Cancel(RequestId id);
  // At most one call of the model. false: nothing is left to do. Where all outputs wait for looks,
  // it waits for one of them, for Wake, or 5 ms.
  bool Step() noexcept;
  // Ends that wait. From any thread.
  void Wake();

  int running() const { return static_cast<int>(running_.size()); }
  int waiting() const { return line_.size() + static_cast<int>(next_.size()); }
  BatchStats stats() const;

 private:
  // A work, and where it stands.
  struct Request {
    Request(RequestId id_in, uint64_t group_in, std::unique_ptr<Work> work_in)
        : id(id_in),
          group(group_in != 0 ? group_in : ~static_cast<uint64_t>(id_in)),
          work(std::move(work_in)) {}
    void Fail(Error why) noexcept {
      error = std::move(why);
      ended = true;
    }
    // What a step of the work has answered.
    void Take(const Result<bool>& goes_on) noexcept {
      if (!goes_on.ok()) return Fail(CopyOf(goes_on.error()));
      ended = !*goes_on;
    }

    RequestId id;
    const uint64_t group;
    int64_t age = 0;  // grows with each request whose turn has come
    const std::unique_ptr<Work> work;
    bool started = false;  // its turn has come once
    bool begun = false;    // what comes before its first row is done
    bool cancelled = false;
    int preemptions = 0;
    // While another thread looks (batch_looks.cc), `work` is that thread's, see work.h.
    bool looking = false;
    bool late = false;  // and Step no longer waits for it
    std::atomic<bool> looked{false};
    Result<bool> answer = true;  // of the look, when `looked`
    bool ended = false;
    std::optional<Error> error;
  };
  using Owned = std::unique_ptr<Request>;
  // Part of a request in a call.
  struct RowSpan {
    Request* request;
    int rows = 0;
    int all_rows = 0;  // with drafts; of the call that was made last
  };

  void EndCancelled();
  void EndNow(Owned& request);
  void Admit();
  // Those of next_ that can run begin to. false: one of them has to wait for a place or memory.
  bool AdmitReady();
  void InsertByAge(Owned request, std::vector<Owned>& list);
  // Running requests that wait for no look.
  int present() const;
  int PlacesOf(uint64_t group) const;
  void MakePlace();
  // batch_looks.cc: what is left of the request's look, on another thread.
  void BeginLook(Request& request);
  void LookThere(Request& request) noexcept;
  // For those that are not late, at most 5 ms.
  void WaitForLooks();
  // Outputs that have drafts behind a look wait for it, and take them.
  void GoOnInTrees(const CallAnswers& answers);
  void WaitForNews();
  void TakeLooks();
  void EndLook(Request& request);
  // Frees what the work's constraints hold, for which it may wait.
  void Discard(Work& work);
  const OutputSetting& SettingOf(Model* model);
  bool MayWait() const { return looks_ == nullptr; }  // Step, for constraints
  void CountStep();
  bool HasRoomFor(const Request& request) const;
  // Which rows run now; makes room where memory is short.
  void PlanShares();
  int PromptRows() const;
  void AddShare(Request& request, int most, int& left);
  bool WaitsForElder(Request& request) const;
  int64_t MissingPages() const;
  void Preempt();
  // Runs `shares` in one call, with drafts behind them where there are some; the failed ones get
  // their error.
  Status Call(std::span<RowSpan> shares, bool with_drafts);
  // Whether there are drafts.
  bool PlanDrafts(std::span<const RowSpan> shares, bool wanted);
  void MakeRows(std::span<RowSpan> shares);
  Status RunRows(double& seconds);
  CallAnswers answers() const;
  // Some work of the next call needs logits, so the model does not draw in it.
  bool needs_logits() const;
  void CallAlone();
  // Of the requests whose last token has run, the next one.
  void TakeAnswers();
  // What the model asks for while it computes.
  void AdvanceDuringForward();
  // What was left for that, where no model draws.
  void FollowNow();
  void Ask(size_t output);
  bool LateIsFaster() const;
  // Tells and ends the requests that have something to tell or have ended.
  void Settle();
  void FailAll(const Error& why);

  Model& model_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  Encoder encode_;
  BatchOptions options_;
  OutputSetting setting_;
  std::list<OutputSetting> adapted_;  // the same for other views of the model
  ThreadPool pool_;
  std::unique_ptr<LookQueue> looks_;         // nullptr: no threads for looks
  std::unique_ptr<DraftVerifier> verifier_;  // nullptr: no drafts
  RequestId next_id_ = 0;
  int64_t next_age_ = 0;
  // Those whose turn has not come, then those whose turn has: waiting for their first look, a place
  // or memory; running; cancelled while another thread looks. The vectors have memory for all
  // requests that they may get, so that no step is lost for want of it.
  WaitingLine<Owned> line_;
  std::vector<Owned> next_, running_;  // by age
  std::vector<Owned> leaving_;
  std::vector<Owned> ended_;  // `done` not yet called
  bool cancels_ = false;
  int looking_ = 0;   // requests that another thread looks for
  int patience_ = 0;  // steps for which a group has had no place
  double step_began_ = -1;
  bool prompts_wait_ = false;  // for rows, which drafts must not take
  std::vector<RowSpan> shares_;
  RowSink sink_;
  std::vector<float> logits_, states_;  // or, where the model draws,
  std::vector<SampleRequest> requests_;
  std::vector<TokenId> tokens_;
  std::vector<Request*> asking_;   // by output
  std::vector<Request*> present_;  // of PlanShares
  // Running means by step: seconds of calls, seconds for what follows a token, and which part of
  // the tokens is followed by forced ones.
  double call_seconds_ = 0, follow_seconds_ = 0, forced_share_ = 0;
  double row_seconds_ = 0;  // of calls with many rows: running mean for one of them
  BatchStats stats_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_BATCH_H_
