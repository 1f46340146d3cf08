// DiffusionWork: an output of a model that fills masks, as a work of a batch. Each call runs the
// prompt and the canvas, up to the end of the block for models trained so.
#ifndef PAWL_SRC_DECODE_DIFFUSION_DIFFUSION_WORK_H_
#define PAWL_SRC_DECODE_DIFFUSION_DIFFUSION_WORK_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "pawl/generation.h"
#include "src/decode/diffusion/mask_filler.h"
#include "src/decode/generation.h"
#include "src/decode/work.h"
#include "src/model/mask_filling.h"

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
  Status CheckOptions() const;
  Result<bool> Follow();
  // Positions of the canvas that run.
  int canvas_end() const;

  Model& model_;
  const MaskFilling filling_;
  const OutputTask& task_;
  const std::vector<TokenId> prompt_;
  std::shared_ptr<const Constraint> constraint_;
  const GenerateOptions options_;
  const Callback done_;
  std::optional<MaskFiller> filler_;
  std::vector<std::vector<float>> scores_;
  SequenceId sequence_ = -1;
  int32_t output_ = -1;  // the first answer of the last call
  bool may_wait_ = true, asks_ = false, answered_ = false, asked_ = false;
  size_t told_ = 0;  // tokens of the output
  std::optional<StopReason> stop_;
  GenerationStats stats_;
  std::optional<Result<Generation>> result_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DIFFUSION_DIFFUSION_WORK_H_
