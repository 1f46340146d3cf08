// GivenTokensWork: tokens that are there already, run through a model as a work of a batch. What
// comes of their rows is told by the class below it: the logits (score_work.h) or the states
// (embed_work.h).
#ifndef PAWL_SRC_DECODE_GIVEN_TOKENS_WORK_H_
#define PAWL_SRC_DECODE_GIVEN_TOKENS_WORK_H_

#include <optional>
#include <vector>

#include "src/decode/work.h"

namespace pawl {

class GivenTokensWork : public Work {
 public:
  // The first `rows` of the tokens have rows.
  GivenTokensWork(Model& model, std::vector<TokenId> tokens, int rows)
      : model_(model), tokens_(std::move(tokens)), all_rows_(rows) {}
  ~GivenTokensWork() override { Free(); }

  bool asks() const override { return false; }
  Result<bool> Look(bool /*known_only*/) override { return true; }
  Status Open() override;
  int pending() const override { return all_rows_ - length_; }
  bool writes() const override { return false; }
  bool needs_logits() const override { return true; }
  int64_t pages(int headroom, bool looking) const override;
  int64_t PagesOf(int rows) const override;
  bool answered() const override { return answered_; }
  void Forget() override { model_.Truncate(sequence_, length_); }
  void Evict() override { Free(); }
  void Cancel() override;
  void Finish(std::optional<Error> error, int preemptions) override;

 protected:
  void Free();
  Row RowAt(int i, int32_t output) const {
    return {.token = tokens_[static_cast<size_t>(i)],
            .position = i,
            .sequence = sequence_,
            .output = output};
  }

  Model& model_;
  const std::vector<TokenId> tokens_;
  const int all_rows_;
  SequenceId sequence_ = -1;
  int length_ = 0;  // of the sequence
  int rows_ = 0;    // of the last call
  bool answered_ = false;
  Status result_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_GIVEN_TOKENS_WORK_H_
