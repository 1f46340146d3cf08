// ScoreWork: reads the logits behind given tokens, as a work of a batch.
//
//   engine.Add(std::make_unique<ScoreWork>(model, tokens, /*first=*/3,
//       [](size_t i, std::span<const float> logits) -> Status { ... },   // from which token i
//       comes
//       [](Status ended) { ... }));
#ifndef PAWL_SRC_DECODE_SCORE_WORK_H_
#define PAWL_SRC_DECODE_SCORE_WORK_H_

#include <functional>
#include <span>
#include <vector>

#include "src/decode/given_tokens_work.h"

namespace pawl {

class ScoreWork final : public GivenTokensWork {
 public:
  // Of a call: bounds the memory for logits.
  static constexpr int kMostRows = 64;
  // The logits from which tokens[i] comes.
  using See = std::function<Status(size_t i, std::span<const float> logits)>;

  // `see` is asked for each token from `first` on, which is at least 1, in this order, on one of
  // the threads of the engine. `done` is called on the thread of the engine.
  ScoreWork(Model& model, std::vector<TokenId> tokens, size_t first, See see,
            std::function<void(Status)> done = {});

  Result<bool> Start(bool may_wait) override;
  Status Reuse() override;
  int most_rows(int max_rows) const override;
  void Ask(RowSink& sink, int most) override;
  void Ran(const CallAnswers& answers, double seconds, bool failed) override;
  Result<bool> Take(const CallAnswers& answers, bool later) override;
  void Done() override;

 private:
  const See see_;
  const std::function<void(Status)> done_;
  size_t next_;          // the first token that was not seen
  int32_t output_ = -1;  // the first one of the last call
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SCORE_WORK_H_
