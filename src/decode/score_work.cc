// Row i, of the token at position i, has the logits from which token i + 1 comes. The last token
// has no row. After Evict the rows of tokens that were seen run again, without answers.
#include "src/decode/score_work.h"

#include <algorithm>
#include <utility>

#include "src/model/mask_filling.h"

namespace pawl {

ScoreWork::ScoreWork(Model& model, std::vector<TokenId> tokens, size_t first, See see,
                     std::function<void(Status)> done)
    : GivenTokensWork(model, tokens, static_cast<int>(tokens.size()) - 1),
      see_(std::move(see)),
      done_(std::move(done)),
      next_(std::max<size_t>(first, 1)) {}

Result<bool> ScoreWork::Start(bool /*may_wait*/) {
  if (Status status = CheckCausal(model_, "score"); !status.ok()) return status.error();
  return next_ < tokens_.size();
}

// The row in front of the next token runs in any case, for its logits.
Status ScoreWork::Reuse() {
  if (length_ == 0) {
    length_ = model_.ReusePrefix(sequence_, std::span(tokens_).first(next_ - 1));
  }
  return {};
}

int ScoreWork::most_rows(int max_rows) const { return std::min(kMostRows, max_rows); }

void ScoreWork::Ask(RowSink& sink, int most) {
  rows_ = most;
  output_ = -1;
  answered_ = false;
  for (int i = length_; i < length_ + most; ++i) {
    const bool wanted = static_cast<size_t>(i) + 1 >= next_;
    const int32_t output = wanted ? sink.Want(*this, i) : -1;
    if (wanted && output_ < 0) output_ = output;
    sink.rows.push_back(RowAt(i, output));
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

void ScoreWork::Done() {
  if (done_) done_(std::move(result_));
}

}  // namespace pawl
