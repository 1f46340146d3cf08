// What attention.cu and prefill.cu compute, in double precision, one row and head at a time, on
// what the cache holds. Arguments are those of the kernels with host memory behind their pointers.
// The tests (tests/cuda/attention_test.cc) and the benchmark (bench/kernel_attention.cc) compare
// with it.
#ifndef PAWL_KERNELS_CUDA_REFERENCE_ATTENTION_H_
#define PAWL_KERNELS_CUDA_REFERENCE_ATTENTION_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cuda/layer.h"
#include "kernels/cuda/prefill.h"
#include "kernels/cuda/reference/matmul.h"

namespace pawl::PAWL_GPU::reference {

// Element d of the keys or values of a slot.
inline double CacheAt(const Cache& cache, const void* base, int slot, int kv_head, int d) {
  const int64_t element =
      ((int64_t{slot / kPageSize} * cache.kv_heads + kv_head) * kPageSize + slot % kPageSize) *
          HeadStride(cache.head_dim) +
      d;
  switch (cache.type) {
    case CacheType::kF32:
      return static_cast<const float*>(base)[element];
    case CacheType::kBf16:
      return Bf16Value(static_cast<const uint16_t*>(base)[element]);
    case CacheType::kFp8:
      return E4m3Value(static_cast<const uint8_t*>(base)[element]);
  }
  return 0;
}

// The result of a query head of row r.
inline std::vector<double> AttentionAt(const Attention& p, int r, int head) {
  const DeviceRow& row = p.rows[r];
  const int head_dim = p.cache.head_dim, kv_head = head / (p.heads / p.cache.kv_heads);
  std::vector<double> out(static_cast<size_t>(head_dim));
  if (row.position < 0) return out;
  const float* q = p.q + r * p.q_stride + int64_t{head} * head_dim;
  const int seen = row.prefix + row.extra_count;
  const int first = p.window > 0 ? std::max(0, row.position + 1 - p.window) : 0;
  std::vector<int> slots;
  std::vector<double> scores;
  for (int j = first; j < seen; ++j) {
    const int slot = j < row.prefix
                         ? p.tables[row.table_begin + j / kPageSize] * kPageSize + j % kPageSize
                         : p.extra[row.extra_begin + j - row.prefix];
    double score = 0;
    for (int d = 0; d < head_dim; ++d) {
      score += q[d] * CacheAt(p.cache, p.cache.keys, slot, kv_head, d);
    }
    score *= p.scale;
    if (p.soft_cap > 0) score = p.soft_cap * std::tanh(score / p.soft_cap);
    slots.push_back(slot);
    scores.push_back(score);
  }
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (size_t j = 0; j < slots.size(); ++j) {
    const double weight = std::exp(scores[j] - most);
    sum += weight;
    for (int d = 0; d < head_dim; ++d) {
      out[static_cast<size_t>(d)] +=
          weight * CacheAt(p.cache, p.cache.values, slots[j], kv_head, d);
    }
  }
  for (double& v : out) v /= sum;
  return out;
}

inline std::vector<double> PrefillAttentionAt(const PrefillAttention& p, int r, int head) {
  Attention same;
  same.q = p.q;
  same.q_stride = p.q_stride;
  same.rows = p.rows;
  same.heads = p.heads;
  same.tables = p.tables;
  same.cache = p.cache;
  same.scale = p.scale;
  same.soft_cap = p.soft_cap;
  same.window = p.window;
  return AttentionAt(same, r, head);
}

}  // namespace pawl::PAWL_GPU::reference

#endif  // PAWL_KERNELS_CUDA_REFERENCE_ATTENTION_H_
