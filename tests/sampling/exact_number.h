// Probabilities as exact numbers: multiples of 1 / D for one fixed, highly divisible D. A sum over
// all paths of a decision tree is then a sum of integers, and every division must come out even.
#ifndef PAWL_TESTS_SAMPLING_EXACT_NUMBER_H_
#define PAWL_TESTS_SAMPLING_EXACT_NUMBER_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace pawl {

class ExactNumber {
 public:
  ExactNumber() = default;  // 0
  // D / D, with D = 2^a 3^b ... : each prime up to 61 as often as in lcm(1 .. 64)^power.
  static const ExactNumber& One() {
    static const ExactNumber one = [] {
      ExactNumber n;
      n.limbs_ = {1};
      for (int power = 0; power < 12; ++power) {
        for (uint32_t p = 2; p <= 64; ++p) {
          bool prime = true;
          for (uint32_t d = 2; d * d <= p; ++d) prime &= p % d != 0;
          for (uint32_t q = p; prime && q <= 64; q *= p) n.Multiply(p);
        }
      }
      return n;
    }();
    return one;
  }
  ExactNumber Times(uint32_t numerator, uint32_t denominator) const {
    ExactNumber n = *this;
    n.Multiply(numerator);
    n.Divide(denominator);
    return n;
  }
  ExactNumber& operator+=(const ExactNumber& other) {
    uint64_t carry = 0;
    for (size_t i = 0; i < other.limbs_.size() || carry != 0; ++i) {
      if (i >= limbs_.size()) limbs_.push_back(0);
      carry += uint64_t{limbs_[i]} + (i < other.limbs_.size() ? other.limbs_[i] : 0);
      limbs_[i] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    return *this;
  }
  friend bool operator==(const ExactNumber&, const ExactNumber&) = default;
  double ToDouble() const {
    double value = 0, unit = 0;
    const auto& one = One().limbs_;
    for (size_t i = one.size(); i-- > 0;) {
      unit = unit * 4294967296.0 + one[i];
      value = value * 4294967296.0 + (i < limbs_.size() ? limbs_[i] : 0);
      if (unit > 1e200) break;
    }
    return value / unit;
  }

 private:
  void Multiply(uint32_t factor) {
    uint64_t carry = 0;
    for (uint32_t& limb : limbs_) {
      carry += uint64_t{limb} * factor;
      limb = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) limbs_.push_back(static_cast<uint32_t>(carry));
    Trim();
  }
  void Divide(uint32_t divisor) {
    uint64_t rest = 0;
    for (size_t i = limbs_.size(); i-- > 0;) {
      rest = rest << 32 | limbs_[i];
      limbs_[i] = static_cast<uint32_t>(rest / divisor);
      rest %= divisor;
    }
    ASSERT_EQ(rest, 0u) << "D is not divisible enough";
    Trim();
  }
  void Trim() {
    while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  }

  std::vector<uint32_t> limbs_;  // the lowest first, no zeros behind
};

}  // namespace pawl

#endif  // PAWL_TESTS_SAMPLING_EXACT_NUMBER_H_
