// The order is that of the keys log p + Gumbel noise, the largest first, which is the order of
// sampling without replacement (Yellott 1977; Vieira, "Gumbel-max trick and weighted reservoir
// sampling", 2014). Noise is a hash of (seed, step, round, token), so the order can be found piece
// by piece: the first pass keeps the largest keys only and skips tokens that even the largest noise
// could not bring among them. A step whose check accepts early never sorts the vocabulary.
//
// Masses are logarithms in double precision. What remains after rejections is the total less the
// rejected while these are less than half of it; beyond that the difference would lose its digits
// (a token of 1 - 1e-15 is rejected and tokens of 1e-16 are left), so what remains is summed anew.
#include "src/decode/sampling/step_law.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace pawl {
namespace {

// The larger key first; the lower item among equals.
template <typename Keyed>
bool Before(const Keyed& a, const Keyed& b) {
  return a.key > b.key || (a.key == b.key && a.item < b.item);
}

template <typename Log>
double LogSumOf(size_t count, const Log& log) {
  double largest = kNoMass;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, log(i));
  if (largest == kNoMass) return kNoMass;
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += std::exp(log(i) - largest);
  return largest + std::log(sum);
}

}  // namespace

double LogSum(std::span<const Candidate> candidates) {
  return LogSumOf(candidates.size(), [&](size_t i) { return candidates[i].log_mass; });
}

double LogSum(std::span<const double> logs) {
  return LogSumOf(logs.size(), [&](size_t i) { return logs[i]; });
}

double LogAdd(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNoMass ? a : a + std::log1p(std::exp(b - a));
}

Result<StepLaw> MakeStepLaw(std::span<const float> logits, double temperature, const Mask* mask,
                            int known) {
  float largest = -std::numeric_limits<float>::infinity();
  bool broken = false;
  for (const float logit : logits) {
    broken |= !(logit < std::numeric_limits<float>::infinity());
    largest = std::max(largest, logit);
  }
  if (broken || !std::isfinite(largest)) {
    return Error{ErrorCode::kInternal, "the model's logits are not finite numbers", "model"};
  }
  const double inverse = 1 / temperature;
  const double top = static_cast<double>(largest);
  std::vector<double> share(logits.size());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    share[i] = std::exp((static_cast<double>(logits[i]) - top) * inverse);
    sum += share[i];
  }
  StepLaw law;
  law.temperature = temperature;
  law.log_normaliser = top * inverse + std::log(sum);
  double left = 0;
  const size_t end = std::min(logits.size(), static_cast<size_t>(known));
  const auto add = [&](size_t i) {
    const double log_mass = static_cast<double>(logits[i]) * inverse - law.log_normaliser;
    if (!(log_mass > kNoMass)) return;
    law.allowed.push_back({static_cast<TokenId>(i), log_mass});
    left += share[i];
  };
  if (mask == nullptr) {
    law.allowed.reserve(end);
    for (size_t i = 0; i < end; ++i) add(i);
  } else {
    law.allowed.reserve(static_cast<size_t>(mask->count()));
    const std::span<const uint32_t> words = mask->words();
    for (size_t w = 0; w < words.size(); ++w) {
      for (uint32_t word = words[w]; word != 0; word &= word - 1) {
        const size_t i = w * 32 + static_cast<size_t>(std::countr_zero(word));
        if (i < end) add(i);
      }
    }
  }
  // Where all shares are tiny their sum has lost digits, or everything.
  law.log_allowed = left > sum * 1e-3 ? std::log(left / sum) : LogSum(law.allowed);
  if (law.allowed.size() == logits.size()) law.log_allowed = 0;
  return law;
}

GumbelOrder::GumbelOrder(std::span<const Candidate> candidates, double log_total,
                         const Noise& noise, int head)
    : candidates_(candidates), log_total_(log_total), noise_(noise), head_(head) {}

void GumbelOrder::Restart() {
  ++round_;
  filled_.clear();
  whole_ = false;
  seen_any_ = false;
}

// The first pass of a round keeps the head, the second one everything behind it.
void GumbelOrder::Fill() {
  ++passes_;
  const bool all = seen_any_;
  const size_t most = all ? candidates_.size() : static_cast<size_t>(head_);
  filled_.clear();
  double least = kNoMass;  // of a full head
  uint64_t block_number = ~uint64_t{0};
  PhiloxBlock block = {};
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& c = candidates_[i];
    if (c.log_mass + Noise::kMostGumbel < least) continue;
    const auto token = static_cast<uint64_t>(c.token);
    if (token >> 2 != block_number) {
      block_number = token >> 2;
      block = noise_.Block(round_, block_number);
    }
    const Keyed keyed = {c.log_mass + Noise::GumbelOf(block.word[token & 3]), static_cast<int>(i)};
    if (keyed.key < least) continue;
    if (all && !Before(last_, keyed)) continue;
    if (rejects_ > 0 && rejected_[i]) continue;
    filled_.push_back(keyed);
    if (!all) {
      std::push_heap(filled_.begin(), filled_.end(), Before<Keyed>);
      if (filled_.size() > most) {
        std::pop_heap(filled_.begin(), filled_.end(), Before<Keyed>);
        filled_.pop_back();
      }
      if (filled_.size() == most) least = filled_.front().key;
    }
  }
  std::sort(filled_.begin(), filled_.end(),
            [](const Keyed& a, const Keyed& b) { return Before(b, a); });
  whole_ = all || filled_.size() < most;
}

std::optional<int> GumbelOrder::Next() {
  for (;;) {
    if (filled_.empty()) {
      if (whole_) return std::nullopt;
      Fill();
      if (filled_.empty()) return std::nullopt;
    }
    last_ = filled_.back();
    filled_.pop_back();
    seen_any_ = true;
    return last_.item;
  }
}

void GumbelOrder::Reject(int item) {
  if (rejects_ == 0) rejected_.assign(candidates_.size(), false);
  rejected_[static_cast<size_t>(item)] = true;
  ++rejects_;
  rejected_share_ += std::exp(MassOf(item) - log_total_);
}

double GumbelOrder::Remaining() const {
  if (rejects_ == 0) return log_total_;
  if (rejected_share_ < 0.5) return log_total_ + std::log1p(-rejected_share_);
  std::vector<double> left;
  left.reserve(candidates_.size() - rejects_);
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (!rejected_[i]) left.push_back(candidates_[i].log_mass);
  }
  return LogSum(left);
}

double GumbelOrder::Scale(double mass, int64_t numerator, int64_t denominator) {
  if (numerator == 0) return kNoMass;
  return mass + std::log(static_cast<double>(numerator) / static_cast<double>(denominator));
}

int64_t GumbelOrder::Phantoms(int64_t most) {
  const double log_left = Remaining() - log_total_;
  if (log_left == kNoMass) return most;
  // The share of draws that hit what was rejected.
  const double miss = -std::expm1(log_left);
  if (miss <= 0) return 0;
  const double log_miss = miss < 0.5 ? std::log(miss) : std::log1p(-std::exp(log_left));
  const double draws = std::floor(std::log(noise_.Uniform(round_, 0)) / log_miss);
  return draws < static_cast<double>(most) ? static_cast<int64_t>(draws) : most;
}

}  // namespace pawl
