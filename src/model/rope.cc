// Su et al., "RoFormer" (2021): pair i of d/2 turns by theta^(-2i/d) per position. What follows
// stretches a trained context:
//   linear   position interpolation (Chen et al., 2023): all frequencies divided by the factor;
//   dynamic  NTK-aware: a larger theta, growing with the length beyond the original context. The
//            reference implementation takes the longest length so far and leaves keys as they were
//            rotated; fed token by token, a key thus has the frequencies of its own position. Here
//            it has them however it is fed, as a row's result must not depend on its company;
//   llama3   wavelengths below original_context / high_freq_factor stay, those above
//            original_context / low_freq_factor are divided, a blend between;
//   yarn     (Peng et al., 2023): dimensions that turn more than beta_fast times within the
//            original context stay, those below beta_slow turns are divided, a linear ramp over
//            the dimensions between; attention is sharpened by attention_factor.
#include "src/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace pawl {
namespace {

// The dimension that turns `turns` times within the original context.
double YarnDimension(const RopeConfig& rope, int head_dim, double turns) {
  return head_dim * std::log(rope.original_context / (turns * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(rope.theta));
}

}  // namespace

double YarnAttentionFactor(double factor) {
  return factor <= 1.0 ? 1.0 : 0.1 * std::log(factor) + 1.0;
}

void RopeFrequencies(const RopeConfig& rope, int head_dim, int position,
                     std::vector<float>& frequencies) {
  double theta = rope.theta;
  if (rope.type == RopeType::kDynamic) {
    const double length = std::max(position + 1.0, rope.original_context);
    const double stretch = rope.factor * length / rope.original_context - (rope.factor - 1.0);
    theta *= std::pow(stretch, head_dim / std::max(head_dim - 2.0, 1.0));
  }
  double low = 0, high = 0;
  if (rope.type == RopeType::kYarn) {
    low = YarnDimension(rope, head_dim, rope.beta_fast);
    high = YarnDimension(rope, head_dim, rope.beta_slow);
    if (rope.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, head_dim - 1.0);
    if (low == high) high += 0.001;
  }
  frequencies.resize(static_cast<size_t>(head_dim) / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double power = std::pow(theta, 2.0 * static_cast<double>(i) / head_dim);
    double frequency = static_cast<float>(1.0 / power);
    if (rope.type == RopeType::kLinear) {
      frequency /= rope.factor;
    } else if (rope.type == RopeType::kLlama3) {
      const double wavelength = 2.0 * std::numbers::pi / frequency;
      const double turns = rope.original_context / wavelength;
      const double keep = std::clamp(
          (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0,
          1.0);
      frequency = (1.0 - keep) * frequency / rope.factor + keep * frequency;
    } else if (rope.type == RopeType::kYarn) {
      const double slow = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
      frequency = frequency / rope.factor * slow + frequency * (1.0 - slow);
    }
    if (i < rope.divisors.size()) frequency /= static_cast<double>(rope.divisors[i]);
    frequencies[i] = static_cast<float>(frequency);
  }
}

RopeRows::RopeRows(const RopeConfig& rope, int head_dim) : rope_(rope), head_dim_(head_dim) {
  RopeFrequencies(rope_, head_dim_, 0, frequencies_);
}

void RopeRows::Next(float* row) {
  if (rope_.type == RopeType::kDynamic && position_ >= rope_.original_context) {
    RopeFrequencies(rope_, head_dim_, position_, frequencies_);
  }
  const size_t half = static_cast<size_t>(head_dim_) / 2;
  for (size_t i = 0; i < half; ++i) {
    const double angle = static_cast<float>(position_) * frequencies_[i];
    row[i] = static_cast<float>(std::cos(angle) * rope_.attention_factor);
    row[half + i] = static_cast<float>(std::sin(angle) * rope_.attention_factor);
  }
  ++position_;
}

}  // namespace pawl
