// DiffusionWork: an output of a model that fills masks, as a work of a batch. Each call runs the
// prompt and the canvas, or those of its rows that no cache keeps, up to the end of the block for
// models trained so.
#ifndef PAWL_SRC_DECODE_DIFFUSION_DIFFUSION_WORK_H_
#define PAWL_SRC_DECODE_DIFFUSION_DIFFUSION_WORK_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "pawl/generation.h"
#include "src/decode/diffusion/canvas_cache.h"
#include "src/decode/diffusion/mask_filler.h"
#include "src/decode/generation.h"
#include "src/decode/work.h"
#include "src/model/model.h"

namespace pawl {

class DiffusionWork final : public Work {
 public:
  using Callback = std::function<void(Result<Generation>)>;

  // The model and the task outlive it.
  DiffusionWork(Model& model, const MaskFilling& filling, const OutputTask& task,
                std::vector<TokenId> prompt, std::shared_ptr<const Constraint> constraint,
                GenerateOptions options, Callback done);
  ~DiffusionWork() override { Evict(); }

  Result<bool> Start(bool may_wait) override;
  bool asks() const override { return asks_; }
  Result<bool> Look(bool known_only) override;
  Status Open() override;
  Status Prepare() override;
  int pending() const override;
  bool writes() const override { return true; }
  bool needs_logits() const override { return true; }
  int64_t pages(int headroom, bool looking) const override;
  int64_t PagesOf(int rows) const override;
  void Ask(RowSink& sink, int most) override;
  void Ran(const CallAnswers& answers, double seconds, bool failed) override;
  bool answered() const override { return answered_; }
  Result<bool> Take(const CallAnswers& answers, bool later) override;
  void Forget() override;
  void Evict() override;
  Result<bool> Emit() override;
  void Cancel() override { stop_ = StopReason::kCancelled; }
  void Finish(std::optional<Error> error, int preemptions) override;
  std::vector<std::shared_ptr<const Constraint>> TakeConstraints() override;
  void Done() override;

 private:
  // A canvas in the memory of the model; with guidance a second one, whose prompt is masked.
  struct Lane {
    MaskFiller filler;
    CanvasCache cache;
    std::vector<SequenceId> sequences = {};
    std::vector<int> rows = {};         // of the call
    std::vector<int32_t> outputs = {};  // the first answer of each sequence
    std::vector<std::vector<float>> scores = {};
  };
  CanvasWindow WindowOf(const MaskFiller& filler) const;
  int canvases() const { return options_.diffusion.cfg_scale.value_or(0) > 0 ? 2 : 1; }
  Status OpenLane(Lane& lane);
  void AskLane(Lane& lane, RowSink& sink);
  // Canvases that the steps lead to where what follows is as sure as in the call before.
  void AskDrafts(RowSink& sink);
  bool AskDraft(const MaskFiller& filler, size_t nth, RowSink& sink);
  void FreeDrafts();
  // All rows run in the next call.
  void Restart();
  void ReadScores(Lane& lane, const CallAnswers& answers) const;
  Result<bool> Follow();

  Model& model_;
  const MaskFilling filling_;
  const OutputTask& task_;
  const std::vector<TokenId> prompt_;
  std::shared_ptr<const Constraint> constraint_;  // until the filler has it
  bool constrained_ = false;
  const GenerateOptions options_;
  const Callback done_;
  std::vector<Lane> lanes_;  // the first one is the output, the others are drafts of the call
  size_t asked_drafts_ = 0;
  std::vector<std::vector<float>> last_;                 // scores of the call before, by position
  std::unique_ptr<RecordFilter> filter_, whole_filter_;  // of what is told, and of the output
  bool may_wait_ = true, asks_ = false, answered_ = false, asked_ = false;
  bool drafts_ = false, drafts_allowed_ = true;
  size_t most_drafts_ = 0;
  int held_ = 0;  // rows in the memory of the model, of each sequence of the output
  bool resized_ = false;
  int told_calls_ = 0;
  size_t told_ = 0;  // tokens of the output
  std::optional<StopReason> stop_;
  GenerationStats stats_;
  std::optional<Result<Generation>> result_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DIFFUSION_DIFFUSION_WORK_H_
