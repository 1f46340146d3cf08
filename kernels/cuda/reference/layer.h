// What layer.cu and the conversions of prefill.cu compute, in double precision. Arguments are those
// of the kernels with host memory behind their pointers. The tests (tests/cuda/layer_test.cc,
// attention_test.cc) and the benchmark (bench/kernel_layer.cc) compare with it.
#ifndef PAWL_KERNELS_CUDA_REFERENCE_LAYER_H_
#define PAWL_KERNELS_CUDA_REFERENCE_LAYER_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cuda/layer.h"
#include "kernels/cuda/prefill.h"
#include "kernels/cuda/reference/matmul.h"

namespace pawl::PAWL_GPU::reference {

inline double EmbedAt(const Embed& p, int r, int i) {
  return WeightAt(p.table, p.rows[r].token, i) * double{p.scale};
}

// 1 / root mean square.
inline double InverseNorm(const float* values, int count, float epsilon) {
  double squares = 0;
  for (int i = 0; i < count; ++i) squares += double{values[i]} * values[i];
  return 1 / std::sqrt(squares / count + double{epsilon});
}

// Row r of x afterwards; `x` is what it was.
inline std::vector<double> NormAndAddRow(const NormAndAdd& p, int r, const float* x) {
  const float* y = p.y + r * p.y_stride;
  const double factor = InverseNorm(y, p.columns, p.epsilon);
  std::vector<double> out;
  for (int i = 0; i < p.columns; ++i) out.push_back(x[i] + y[i] * factor * p.norm[i]);
  return out;
}

// Vector `index` of row r: a query head, a key head after them, or a value head after those; with
// its bias, normed and rotated. p.qkv is what the kernel was given.
inline std::vector<double> RotatedAt(const RotateAndStore& p, int r, int index) {
  const int d = p.cache.head_dim, kv_heads = p.cache.kv_heads;
  const bool is_query = index < p.heads, is_value = index >= p.heads + kv_heads;
  const int head = is_query ? index : (index - p.heads) % kv_heads;
  const float* bias = is_query ? p.q_bias : is_value ? p.v_bias : p.k_bias;
  const float* norm = is_query ? p.q_norm : p.k_norm;
  const float* v = p.qkv + r * p.stride + int64_t{index} * d;
  std::vector<double> in(static_cast<size_t>(d));
  double squares = 0;
  for (int i = 0; i < d; ++i) {
    const double value = double{v[i]} + (bias != nullptr ? bias[head * d + i] : 0.0f);
    in[static_cast<size_t>(i)] = value;
    squares += value * value;
  }
  if (is_value) return in;
  for (int i = 0; i < d && norm != nullptr; ++i) {
    in[static_cast<size_t>(i)] *= norm[i] / std::sqrt(squares / d + double{p.epsilon});
  }
  std::vector<double> out(in.size());
  const float* turn = p.rope + int64_t{p.rows[r].position} * d;
  for (int i = 0; i < d / 2; ++i) {
    const auto a = static_cast<size_t>(i), b = static_cast<size_t>(i + d / 2);
    out[a] = in[a] * turn[a] - in[b] * turn[b];
    out[b] = in[b] * turn[a] + in[a] * turn[b];
  }
  return out;
}

inline double ToBf16At(const ToBf16& p, int r, int i) {
  if (i >= p.columns) return 0;
  const float* x = p.x + r * p.x_stride;
  if (p.norm != nullptr) return x[i] * InverseNorm(x, p.columns, p.epsilon) * p.norm[i];
  if (p.up == nullptr) return x[i];
  return Activation(p.gate, x[i]) * p.up[r * p.x_stride + i];
}

}  // namespace pawl::PAWL_GPU::reference

#endif  // PAWL_KERNELS_CUDA_REFERENCE_LAYER_H_
