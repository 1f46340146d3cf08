// Row i, of the token at position i, has the logits from which token i + 1 comes. The last token
// has no row. After Evict the rows of tokens that were seen run again, without answers.
#include "src/decode/score_work.h"

#include <algorithm>
#include <utility>

#include "src/model/mask_filling.h"

namespace pawl {

ScoreWork::ScoreWork(Model& model, std::vector<TokenId> tokens, size_t first, See see,
                     std::function<void(Status)> done)
    : model_(model),
      tokens_(std::move(tokens)),
      see_(std::move(see)),
      done_(std::move(done)),
      next_(std::max<size_t>(first, 1)) {}

Result<bool> ScoreWork::Start(bool /*may_wait*/) {
  if (Status status = CheckCausal(model_); !status.ok()) return status.error();
  return next_ < tokens_.size();
}

Status ScoreWork::Open() {
  const Result<SequenceId> sequence = model_.NewSequence(static_cast<int>(tokens_.size()) - 1);
  if (!sequence.ok()) return sequence.error();
  sequence_ = *sequence;
  return {};
}

// The row in front of the next token runs in any case, for its logits.
Status ScoreWork::Reuse() {
  if (length_ == 0) {
    length_ = model_.ReusePrefix(sequence_, std::span(tokens_).first(next_ - 1));
  }
  return {};
}

int ScoreWork::pending() const { return static_cast<int>(tokens_.size()) - 1 - length_; }

int ScoreWork::most_rows(int max_rows) const { return std::min(kMostRows, max_rows); }

int64_t ScoreWork::pages(int /*headroom*/, bool /*looking*/) const {
  return PagesOf(pending()) + (sequence_ < 0 ? model_.kv_memory().state.most() : 0);
}

int64_t ScoreWork::PagesOf(int rows) const {
  return model_.kv_memory().PagesOf(length_, int64_t{length_} + rows);
}

void ScoreWork::Ask(RowSink& sink, int most) {
  rows_ = most;
  output_ = -1;
  answered_ = false;
  for (int i = length_; i < length_ + most; ++i) {
    const bool wanted = static_cast<size_t>(i) + 1 >= next_;
    const int32_t output = wanted ? sink.Want(*this, i) : -1;
    if (wanted && output_ < 0) output_ = output;
    sink.rows.push_back({.token = tokens_[static_cast<size_t>(i)],
                         .position = i,
                         .sequence = sequence_,
                         .output = output});
  }
}

void ScoreWork::Ran(const CallAnswers& /*answers*/, double /*seconds*/, bool failed) {
  if (failed) return;
  length_ += rows_;
  answered_ = output_ >= 0;
}

Result<bool> ScoreWork::Take(const CallAnswers& answers, bool /*later*/) {
  answered_ = false;
  for (int32_t output = output_; next_ <= static_cast<size_t>(length_); ++next_, ++output) {
    if (Status status = see_(next_, answers.Logits(output)); !status.ok()) return status.error();
  }
  return next_ < tokens_.size();
}

void ScoreWork::Forget() { model_.Truncate(sequence_, length_); }

void ScoreWork::Evict() {
  if (sequence_ >= 0) model_.FreeSequence(sequence_);
  sequence_ = -1;
  length_ = 0;
}

void ScoreWork::Cancel() { result_ = Error{ErrorCode::kLimit, "the request was cancelled", ""}; }

void ScoreWork::Finish(std::optional<Error> error, int /*preemptions*/) {
  if (error.has_value()) result_ = *std::move(error);
}

void ScoreWork::Done() {
  if (done_) done_(std::move(result_));
}

}  // namespace pawl
