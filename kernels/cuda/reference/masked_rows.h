// What bitmask.cu, masked_rows.cu and the draw of head.cuh compute, one row at a time. Arguments
// are those of the kernels with host memory behind their pointers. The tests
// (tests/cuda/masked_rows_test.cc) and the benchmark (bench/kernel_masks.cc) compare with it.
#ifndef PAWL_KERNELS_CUDA_REFERENCE_MASKED_ROWS_H_
#define PAWL_KERNELS_CUDA_REFERENCE_MASKED_ROWS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/cuda/reference/matmul.h"
#include "pawl/cuda_kernels.h"
#include "src/base/draw.h"

namespace pawl::PAWL_GPU::reference {

inline bool Allows(const MaskedRows& rows, int i, int64_t token) {
  if (rows.masks == nullptr) return true;
  const int64_t mask = rows.mask_rows != nullptr ? rows.mask_rows[i] : i;
  return mask < 0 || (rows.masks[mask * rows.masks_stride + token / 32] >> token % 32 & 1) != 0;
}
inline double LogitAt(const MaskedRows& rows, int i, int64_t token) {
  const int64_t row = rows.logit_rows != nullptr ? rows.logit_rows[i] : i;
  const int64_t at = row * rows.logits_stride + token;
  switch (rows.type) {
    case LogitType::kF32:
      return static_cast<const float*>(rows.logits)[at];
    case LogitType::kF16:
      return HalfValue(static_cast<const uint16_t*>(rows.logits)[at]);
    case LogitType::kBf16:
      return Bf16Value(static_cast<const uint16_t*>(rows.logits)[at]);
  }
  return 0;
}

// Log-probabilities of the tokens of row i; -infinity where they are not allowed.
inline std::vector<double> LogSoftmaxRow(const MaskedRows& rows, int i) {
  std::vector<double> out(static_cast<size_t>(rows.vocabulary),
                          -std::numeric_limits<double>::infinity());
  for (int64_t t = 0; t < rows.vocabulary; ++t) {
    if (Allows(rows, i, t)) out[static_cast<size_t>(t)] = LogitAt(rows, i, t);
  }
  const double most = *std::max_element(out.begin(), out.end());
  if (std::isinf(most)) return out;  // none is allowed
  double sum = 0;
  for (const double v : out) sum += std::exp(v - most);
  for (double& v : out) v -= most + std::log(sum);
  return out;
}

// The allowed token of the largest perturbed logit, all logits being finite; kNothingAllowed.
inline int32_t Draw(const MaskedRows& rows, int i, float temperature, uint64_t seed,
                    uint64_t position) {
  DrawKey best = kNoKey;
  for (int64_t t = 0; t < rows.vocabulary; ++t) {
    if (!Allows(rows, i, t)) continue;
    auto score = static_cast<float>(LogitAt(rows, i, t));
    if (temperature != 0) {
      score = Perturbed(score, temperature, GumbelAt(seed, position, static_cast<uint64_t>(t)));
    }
    best = std::max(best, KeyOf(score, static_cast<int32_t>(t)));
  }
  return best == kNoKey ? kNothingAllowed : TokenOf(best);
}

// The k allowed tokens of the largest logits, the lower one first among equals.
inline std::vector<int32_t> TopTokens(const MaskedRows& rows, int i, int k) {
  std::vector<int32_t> tokens;
  for (int64_t t = 0; t < rows.vocabulary; ++t) {
    if (Allows(rows, i, t)) tokens.push_back(static_cast<int32_t>(t));
  }
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](int32_t a, int32_t b) { return LogitAt(rows, i, a) > LogitAt(rows, i, b); });
  tokens.resize(static_cast<size_t>(k), -1);
  return tokens;
}

}  // namespace pawl::PAWL_GPU::reference

#endif  // PAWL_KERNELS_CUDA_REFERENCE_MASKED_ROWS_H_
