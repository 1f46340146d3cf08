// BranchWork: what writes branches (a sampler), as a work of a batch: its rows run in the calls of
// the other works.
//
//   engine.Add(std::make_unique<BranchWork>(model, prompt_tokens,
//       [](BranchHost& host) -> Status {
//         Branches branches(&host, model, prompt, capacity);
//         ...                                   // host.Run returns when the rows have run
//       },
//       [](Status ended) { ... }));
//
// The body runs on a thread of its own, as the look of the work (work.h): from one time that it
// wants logits to the next. So what it asks of constraints and checks holds up no output, and what
// it calls is called on that thread. It must not use the model but by the host.
#ifndef PAWL_SRC_DECODE_SAMPLING_BRANCH_WORK_H_
#define PAWL_SRC_DECODE_SAMPLING_BRANCH_WORK_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/failure.h"
#include "src/base/threads.h"
#include "src/decode/sampling/branches.h"
#include "src/decode/work.h"

namespace pawl {

class BranchWork final : public Work, public BranchHost {
 public:
  // `done` is called on the thread of the engine.
  BranchWork(Model& model, int prompt_tokens, std::function<Status(BranchHost&)> body,
             std::function<void(Status)> done);
  ~BranchWork() override;

  // ---- Of BranchHost, for the body
  KvMemory memory() const override { return memory_; }
  void Join(std::shared_ptr<BranchSet> set) override;
  void Leave(const BranchSet& set) override;
  Status Run(BranchSet& set) override;

  // ---- Of Work
  Result<bool> Start(bool may_wait) override;
  bool asks() const override { return asks_; }
  Result<bool> Look(bool known_only) override;
  Status Open() override { return {}; }
  Status Prepare() override;
  int pending() const override { return wanted_ == nullptr ? 0 : wanted_->pending(); }
  bool writes() const override;
  // A tree runs in one call.
  int most_rows(int max_rows) const override {
    return std::max({2, max_rows / 2, std::min(max_rows, kMaxTreeRows)});
  }
  bool needs_logits() const override { return true; }
  int64_t pages(int headroom, bool looking) const override;
  int64_t PagesOf(int rows) const override;
  void Ask(RowSink& sink, int most) override;
  void Ran(const CallAnswers& answers, double seconds, bool failed) override;
  bool answered() const override { return answered_; }
  Result<bool> Take(const CallAnswers& answers, bool later) override;
  void Forget() override;
  void Evict() override;
  void Cancel() override;
  bool ends_in_look() const override { return thread_.begun() && !thread_.ended(); }
  void End(bool failed) override;
  void Finish(std::optional<Error> error, int preemptions) override;
  void Done() override;

 private:
  void FreeLeft();

  Model& model_;
  const KvMemory memory_;
  const int prompt_tokens_;
  const std::function<Status(BranchHost&)> body_;
  const std::function<void(Status)> done_;
  bool may_wait_ = true;
  bool asks_ = true;
  // Of the body; set while it pauses or at its end.
  BranchSet* wanted_ = nullptr;
  Status body_status_;
  // What the body gets when it goes on; an error: it is to end.
  Status answer_;
  std::optional<Status> result_;
  // Of the last call: where the answers of the set are.
  std::vector<std::pair<size_t, int32_t>> outputs_;
  bool answered_ = false, ever_answered_ = false;
  mutable int64_t pages_ = 0;  // what pages() said last
  std::mutex mutex_;
  std::vector<std::shared_ptr<BranchSet>> sets_;  // under mutex_
  std::vector<std::shared_ptr<BranchSet>> left_;  // under mutex_; their sequences are to be freed
  SideThread thread_;                             // the last one: the body uses the others
};

// A work with a result. What `run` holds goes before `done` is called, so that what the caller gave
// ends with the caller's thread and not with the engine's.
template <typename Out>
std::unique_ptr<Work> MakeResultWork(Model& model, size_t prompt_tokens,
                                     std::function<Result<Out>(BranchHost& host)> run,
                                     std::function<void(Result<Out>)> done) {
  struct Held {
    std::function<Result<Out>(BranchHost& host)> run;
    std::optional<Out> result;
  };
  const auto held = std::make_shared<Held>(Held{std::move(run), std::nullopt});
  return std::make_unique<BranchWork>(
      model, static_cast<int>(prompt_tokens),
      [held](BranchHost& host) -> Status {
        Result<Out> ran = held->run(host);
        if (!ran.ok()) return ran.error();
        held->result = *std::move(ran);
        return {};
      },
      [done = std::move(done), held](const Status& ended) {
        std::optional<Out> result = std::move(held->result);
        held->run = nullptr;
        if (!ended.ok()) return done(CopyOf(ended.error()));
        done(*std::move(result));
      });
}

// One that runs `run` on what a caller gave: an input with a model and a prompt, and options.
template <typename Out, typename Input, typename Options>
std::unique_ptr<Work> MakeInputWork(Input input, Options options,
                                    Result<Out> (*run)(const Input&, const Options&, BranchHost*),
                                    std::function<void(Result<Out>)> done) {
  Model& model = input.model;
  const size_t prompt = input.prompt.size();
  return MakeResultWork<Out>(
      model, prompt,
      [input = std::move(input), options = std::move(options), run](BranchHost& host) {
        return run(input, options, &host);
      },
      std::move(done));
}

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_BRANCH_WORK_H_
