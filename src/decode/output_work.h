// OutputWork: one output of a batch, as a Work: an OutputBuilder, its sequence in the model, and
// its drafts.
#ifndef PAWL_SRC_DECODE_OUTPUT_WORK_H_
#define PAWL_SRC_DECODE_OUTPUT_WORK_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "src/decode/draft/verifier.h"
#include "src/decode/generation.h"
#include "src/decode/work.h"
#include "src/model/model.h"

namespace pawl {

// What the outputs of a batch have in common. All must outlive them.
struct OutputSetting {
  OutputTask task;
  Model* model = nullptr;
  DraftVerifier* verifier = nullptr;  // nullptr: no drafts
  bool draws = false;                 // the model draws, but for works that need logits
};

class OutputWork final : public Work {
 public:
  using Callback = std::function<void(Result<Generation>)>;

  OutputWork(const OutputSetting& setting, std::vector<TokenId> prompt,
             std::shared_ptr<const Constraint> constraint, GenerateOptions options, Callback done);

  Result<bool> Start(bool may_wait) override;
  Result<bool> Begin() override;
  bool asks() const override { return !follows_later_ && run_.asks(); }
  Result<bool> Look(bool known_only) override;
  void Looked() override;
  const void* lane() const override { return run_.lane(); }

  Status Open() override;
  Status Reuse() override;
  int pending() const override { return static_cast<int>(run_.tokens().size()) - length_; }
  bool writes() const override;
  bool needs_logits() const override { return run_.draws_on_host(); }
  int64_t pages(int headroom, bool looking) const override;
  int64_t PagesOf(int rows) const override;
  void Ask(RowSink& sink, int most) override;
  void Ran(const CallAnswers& answers, double seconds, bool failed) override;
  bool answered() const override { return answered_; }
  Result<bool> Take(const CallAnswers& answers, bool later) override;
  void Settle(const CallAnswers& answers, bool ended) override;
  void Forget() override { setting_.model->Truncate(sequence_, length_); }
  void Evict() override;

  Result<bool> Emit() override { return run_.Emit(); }
  void Cancel() override { run_.Cancel(); }
  void End(bool failed) override;
  void Finish(std::optional<Error> error, int preemptions) override;
  std::vector<std::shared_ptr<const Constraint>> TakeConstraints() override {
    return run_.TakeConstraints();
  }
  void Done() override;
  OutputWork* output() override { return this; }

  // ---- For the engine

  // The prompt and the output so far, and how many of them its sequence holds.
  std::span<const TokenId> tokens() const { return run_.tokens(); }
  int length() const { return length_; }
  const Model& model() const { return *setting_.model; }
  // Trees for the call that comes. `wanted` false: none.
  void Offer(int rows, bool wanted);
  void GiveUpDrafts();
  // Take has left a look to do, and drafts behind it: TakeOn when the look is done.
  bool waits_in_tree() const { return drafts_ != nullptr && DraftVerifier::Waits(*drafts_); }
  Result<bool> TakeOn(const CallAnswers& answers);
  // While the model computes: the look that was left for then, and how its tokens are drawn.
  bool follows_later() const { return follows_later_; }
  Result<bool> Follow();
  void EndFollow() { follows_later_ = false; }
  // `sits_out`: it has ended, or another thread looks.
  Status Request(int tag, bool sits_out, SampleRequest& wanted);
  // The last Take was of a token alone, and forced ones came behind it.
  bool took_forced() const { return took_forced_; }

 private:
  const OutputSetting& setting_;
  OutputBuilder run_;
  Callback done_;
  std::optional<Result<Generation>> result_;
  std::unique_ptr<OutputDrafts> drafts_;  // nullptr: none
  bool may_wait_ = true;
  bool begun_ = false;          // what comes before its first logits is done
  bool follows_later_ = false;  // its look is to be done while the model runs
  bool took_forced_ = false;
  SequenceId sequence_ = -1;
  int length_ = 0;  // tokens that the sequence holds
  // Of the last call: its rows, and the answer behind the last of them.
  int rows_ = 0;
  int32_t output_ = -1;
  bool unwanted_ = false;
  bool answered_ = false;
  size_t asked_tokens_ = 0;  // tokens() before Follow
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_OUTPUT_WORK_H_
