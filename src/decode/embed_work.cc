// The mean needs the states of all rows, so it takes no prefix that others have computed. Sums are
// doubles in the order of the tokens: the chunks that the rows come in change nothing.
#include "src/decode/embed_work.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/model/mask_filling.h"

namespace pawl {

void Normalize(std::vector<float>& vector) {
  double squares = 0;
  for (const float x : vector) squares += double{x} * x;
  if (squares <= 0) return;
  for (float& x : vector) x = static_cast<float>(x / std::sqrt(squares));
}

EmbedWork::EmbedWork(Model& model, std::vector<TokenId> tokens, const Pooling& pooling,
                     std::function<void(Result<std::vector<float>>)> done)
    : GivenTokensWork(model, tokens, static_cast<int>(tokens.size())),
      pooling_(pooling),
      done_(std::move(done)) {}

Result<bool> EmbedWork::Start(bool /*may_wait*/) {
  if (Status status = CheckCausal(model_, "embed"); !status.ok()) return status.error();
  if (model_.samples()) {
    return Error{ErrorCode::kUnsupported, "embeddings are not there on a device", ""};
  }
  if (tokens_.empty()) return Error{ErrorCode::kInvalid, "has no tokens", "prompt"};
  return true;
}

Status EmbedWork::Reuse() {
  if (length_ == 0 && pooling_.kind == Pooling::Kind::kLast) {
    length_ = model_.ReusePrefix(sequence_, std::span(tokens_).first(tokens_.size() - 1));
  }
  return {};
}

void EmbedWork::Ask(RowSink& sink, int most) {
  rows_ = most;
  answered_ = false;
  sink.states = true;
  for (int i = length_; i < length_ + most; ++i) sink.rows.push_back(RowAt(i, -1));
}

void EmbedWork::Ran(const CallAnswers& /*answers*/, double /*seconds*/, bool failed) {
  if (failed) return;
  length_ += rows_;
  answered_ = rows_ > 0;
}

Result<bool> EmbedWork::Take(const CallAnswers& answers, bool /*later*/) {
  answered_ = false;
  const auto first =
      std::ranges::find(answers.rows, sequence_, &Row::sequence) - answers.rows.begin();
  if (first == std::ssize(answers.rows)) return true;  // evicted: its rows run again
  const bool ends = length_ == all_rows_;
  const bool mean = pooling_.kind == Pooling::Kind::kMean;
  sum_.resize(answers.hidden);
  for (int r = mean ? 0 : rows_ - 1; r < rows_ && (mean || ends); ++r) {
    const auto states =
        answers.states.subspan(static_cast<size_t>(first + r) * answers.hidden, answers.hidden);
    for (size_t i = 0; i < answers.hidden; ++i) sum_[i] += double{states[i]};
  }
  if (!ends) return true;
  for (const double sum : sum_) {
    embedding_.push_back(static_cast<float>(mean ? sum / all_rows_ : sum));
  }
  if (!std::ranges::all_of(embedding_, [](float x) { return std::isfinite(x); })) {
    return Error{ErrorCode::kInvalid, "the model's states are NaN or infinite", "prompt"};
  }
  if (pooling_.normalize) Normalize(embedding_);
  return false;
}

void EmbedWork::Evict() {
  GivenTokensWork::Evict();
  sum_.clear();
}

void EmbedWork::Done() {
  if (!done_) return;
  if (result_.ok()) return done_(std::move(embedding_));
  done_(result_.error());
}

}  // namespace pawl
