// The exact permutation test for pairs (Fisher 1935): under the hypothesis that both settings are
// alike each difference may as well have the other sign. The differences are whole numbers, so the
// distribution of their sum is a table that one pass over the texts fills, in place of 2^n sums.
#include "src/eval/paired_test.h"

#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

namespace pawl::eval {

PairedResult PairedTest(std::span<const int64_t> a, std::span<const int64_t> b) {
  PairedResult result;
  result.texts = static_cast<int64_t>(a.size());
  std::vector<size_t> sizes;
  size_t most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const int64_t difference = b[i] - a[i];
    result.difference += difference;
    result.better_a += difference < 0;
    result.better_b += difference > 0;
    result.same += difference == 0;
    if (difference == 0) continue;
    sizes.push_back(static_cast<size_t>(std::llabs(difference)));
    most += sizes.back();
  }
  if (sizes.empty()) return result;
  // chance[s + most]: of the sum s of the differences taken so far.
  std::vector<double> chance(2 * most + 1), next;
  chance[most] = 1;
  for (const size_t size : sizes) {
    next.assign(chance.size(), 0);
    for (size_t i = 0; i < chance.size(); ++i) {
      if (chance[i] == 0) continue;
      next[i + size] += chance[i] / 2;
      next[i - size] += chance[i] / 2;
    }
    std::swap(chance, next);
  }
  const auto least = static_cast<size_t>(std::llabs(result.difference));
  double p = 0;
  for (size_t i = 0; i < chance.size(); ++i) {
    const size_t distance = i > most ? i - most : most - i;
    if (distance >= least) p += chance[i];
  }
  result.p = p < 1 ? p : 1;
  return result;
}

}  // namespace pawl::eval
