// A paired test over texts: whether one setting is better than another, or only luckier.
//
//   PairedResult result = PairedTest(right_of_a, right_of_b);   // fields right, by text
//   if (result.p < 0.01 && result.better_b > result.better_a) ...
#ifndef PAWL_SRC_EVAL_PAIRED_TEST_H_
#define PAWL_SRC_EVAL_PAIRED_TEST_H_

#include <cstdint>
#include <span>

namespace pawl::eval {

struct PairedResult {
  int64_t texts = 0;
  int64_t better_a = 0, better_b = 0, same = 0;  // texts
  int64_t difference = 0;                        // the sum of b - a
  // The probability of a difference at least as large, of either sign, if the settings of each text
  // were swapped by chance. Exact.
  double p = 1;
};

// REQUIRES: a.size() == b.size().
PairedResult PairedTest(std::span<const int64_t> a, std::span<const int64_t> b);

}  // namespace pawl::eval

#endif  // PAWL_SRC_EVAL_PAIRED_TEST_H_
