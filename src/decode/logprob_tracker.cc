// Log-probabilities are those of the distribution that the token is chosen from when nothing but
// the mask has changed it: softmax over the allowed tokens. So the probabilities of the tokens that
// may come add up to one, a token that must come has probability one, and without a mask they are
// the model's own. What the mask took is told apart, as surprise.
#include "src/decode/logprob_tracker.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace pawl {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
// What a token gets that has no probability at all; JSON has no infinity.
constexpr float kImpossible = -9999;

template <typename See>
void ForEachAllowed(size_t size, const Mask* mask, const See& see) {
  if (mask == nullptr) {
    for (size_t i = 0; i < size; ++i) see(i);
    return;
  }
  const std::span<const uint32_t> words = mask->words();
  for (size_t w = 0; w < words.size(); ++w) {
    for (uint32_t word = words[w]; word != 0; word &= word - 1) {
      const size_t i = w * 32 + static_cast<size_t>(std::countr_zero(word));
      if (i < size) see(i);
    }
  }
}

// The logarithm of the sum of exponentials.
double LogSum(std::span<const float> logits, const Mask* mask) {
  float most = kMinusInfinity;
  ForEachAllowed(logits.size(), mask, [&](size_t i) { most = std::max(most, logits[i]); });
  if (most == kMinusInfinity) return -std::numeric_limits<double>::infinity();
  double sum = 0;
  ForEachAllowed(logits.size(), mask,
                 [&](size_t i) { sum += std::exp(static_cast<double>(logits[i] - most)); });
  return static_cast<double>(most) + std::log(sum);
}

float Finite(double logprob) {
  return logprob > kImpossible ? static_cast<float>(std::min(logprob, 0.0)) : kImpossible;
}

}  // namespace

void LogprobTracker::See(std::span<const float> logits, const Mask* mask) {
  if (!wants_logits()) return;
  seen_ = true;
  log_sum_ = LogSum(logits, mask);
  seen_surprise_ = 0;
  if (surprise_ && mask != nullptr) {
    const double removed = LogSum(logits, nullptr) - log_sum_;
    seen_surprise_ = -Finite(-removed);
  }
  if (most_ < 0) return;
  logits_.assign(logits.begin(), logits.end());
  top_.clear();
  if (most_ == 0) return;
  const auto better = [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob > b.logprob || (a.logprob == b.logprob && a.token < b.token);
  };
  // A heap with the worst of the best on top.
  ForEachAllowed(logits.size(), mask, [&](size_t i) {
    const TokenLogprob next{static_cast<TokenId>(i), Finite(logits[i] - log_sum_)};
    if (static_cast<int>(top_.size()) < most_) {
      top_.push_back(next);
      std::push_heap(top_.begin(), top_.end(), better);
    } else if (better(next, top_.front())) {
      std::pop_heap(top_.begin(), top_.end(), better);
      top_.back() = next;
      std::push_heap(top_.begin(), top_.end(), better);
    }
  });
  std::sort(top_.begin(), top_.end(), better);
}

void LogprobTracker::SeeTop(std::span<const TokenLogprob> top) {
  if (!on_ || most_ < 0) return;
  seen_ = true;
  seen_surprise_ = 0;
  logits_.clear();
  top_.clear();
  for (const TokenLogprob& one : top) {
    if (one.token != kNoToken) top_.push_back({one.token, Finite(one.logprob)});
  }
}

void LogprobTracker::Append(TokenId token, TokenReport::Source source, int allowed) {
  if (!on_) return;
  Record record{token, source, allowed, 0, 0, tops_.size(), tops_.size()};
  if (seen_ && source == TokenReport::Source::kSampled) {
    record.surprise = seen_surprise_;
    if (most_ >= 0 && !logits_.empty()) {
      record.logprob = Finite(logits_[static_cast<size_t>(token)] - log_sum_);
    } else if (most_ >= 0) {
      const auto found = std::find_if(top_.begin(), top_.end(),
                                      [&](const TokenLogprob& one) { return one.token == token; });
      record.logprob = found != top_.end() ? found->logprob : kImpossible;
    }
    const size_t most = std::min(top_.size(), static_cast<size_t>(std::max(0, most_)));
    tops_.insert(tops_.end(), top_.begin(), top_.begin() + static_cast<ptrdiff_t>(most));
    record.top_end = tops_.size();
  }
  seen_ = false;
  records_.push_back(record);
}

void LogprobTracker::MarkDrafted(size_t i) {
  if (i >= records_.size() || records_[i].source != TokenReport::Source::kSampled) return;
  records_[i].source = TokenReport::Source::kDrafted;
}

void LogprobTracker::Cut(size_t tokens) {
  if (tokens >= records_.size()) return;
  tops_.resize(records_[tokens].top_begin);
  records_.resize(tokens);
}

TokenReport LogprobTracker::report(size_t i) const {
  const Record& record = records_[i];
  TokenReport out;
  out.token = record.token;
  out.source = record.source;
  out.allowed = record.allowed;
  out.logprob = record.logprob;
  out.surprise = record.surprise;
  out.top = std::span(tops_).subspan(record.top_begin, record.top_end - record.top_begin);
  return out;
}

double LogprobTracker::surprise_sum() const {
  double sum = 0;
  for (const Record& record : records_) sum += record.surprise;
  return sum;
}

}  // namespace pawl
