// What the CUDA kernels compute, in double precision, one result at a time, as the formula says.
// Arguments are those of the kernels with host memory behind their pointers. The tests
// (tests/cuda/) and the benchmarks (bench/kernel_*.cc) compare with it.
//
// First matmul.cuh, head.cuh and the products of the library.
#ifndef PAWL_KERNELS_CUDA_REFERENCE_KERNELS_H_
#define PAWL_KERNELS_CUDA_REFERENCE_KERNELS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/cuda/kernels.h"
#include "pawl/cuda_kernels.h"
#include "src/base/random.h"

namespace pawl::PAWL_GPU::reference {

inline double HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31, low = bits & 1023;
  const double size = exponent == 0 ? std::ldexp(low, -24) : std::ldexp(1024 + low, exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}
inline double Bf16Value(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
inline double E4m3Value(uint8_t code) {
  const int exponent = code >> 3 & 15;
  const double size =
      exponent == 0 ? std::ldexp(code & 7, -9) : std::ldexp(8 + (code & 7), exponent - 10);
  return code >> 7 != 0 ? -size : size;
}

// What a weight is worth.
inline double WeightAt(const DeviceMatrix& w, int row, int column) {
  const int64_t plain = int64_t{row} * PaddedColumns(w.columns) + column;
  const auto* halves = static_cast<const uint16_t*>(w.data);
  if (w.type == DeviceWeight::kF32) return static_cast<const float*>(w.data)[plain];
  if (w.type == DeviceWeight::kBf16) return Bf16Value(halves[plain]);
  if (w.type == DeviceWeight::kF16) return HalfValue(halves[plain]);
  // Which quarter of its block of columns it belongs to, and which of the quarter's elements it is.
  struct Place {
    int quarter = 0, element = 0;
  };
  static const std::array<Place, kTileColumns> places = [] {
    std::array<Place, kTileColumns> made;
    for (int q = 0; q < 4; ++q) {
      for (int e = 0; e < 8; ++e) made[static_cast<size_t>(PackedColumn(q, e))] = {q, e};
    }
    return made;
  }();
  const auto [quarter, e] = places[static_cast<size_t>(column % kTileColumns)];
  const auto* at = static_cast<const uint8_t*>(w.data) +
                   PackedOffset(w.type, w.columns, row, column / kTileColumns, quarter);
  if (w.type == DeviceWeight::kFp8) return E4m3Value(at[e]) * w.row_scales[row];
  const int64_t group = TableIndex(w.groups, row, column >> w.group_shift);
  const double scale = HalfValue(w.scales[group]);
  if (w.type == DeviceWeight::kI8) return static_cast<int8_t>(at[e]) * scale;
  const int nibble = PackedNibble(e);
  const int q = at[nibble / 2] >> 4 * (nibble % 2) & 15;
  return q * scale + (w.minimums != nullptr ? HalfValue(w.minimums[group]) : -8 * scale);
}

inline double Activation(Gate gate, double v) {
  if (gate == Gate::kSilu) return v / (1 + std::exp(-v));
  const double u = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
  return v * (1 + std::tanh(u)) / 2;
}

// Result `output` of row r of x, of one of the parts. `before`: what y holds, for products that
// add. `terms`, if it is asked for, gains the sum of the squares of all that was added up: the
// scale that errors are to be measured by.
inline double MatMulAt(const MatMul& p, int part_index, int r, int output, double before = 0,
                       double* terms = nullptr) {
  const MatMulPart& part = p.parts[part_index];
  const int columns = part.w.columns;
  const float* x = p.x + int64_t{p.x_rows != nullptr ? p.x_rows[r] : r} * p.x_stride;
  double factor = 1;
  if (p.norm != nullptr) {
    double squares = 0;
    for (int k = 0; k < columns; ++k) squares += double{x[k]} * x[k];
    factor = 1 / std::sqrt(squares / columns + double{p.epsilon});
  }
  const int row = p.row_list != nullptr ? p.row_list[output] : output;
  double size = 1;
  const auto sum = [&](const DeviceMatrix& w, const float* bias) {
    double total = bias != nullptr ? bias[row] : 0;
    for (int k = 0; k < columns; ++k) {
      const double term = WeightAt(w, row, k) * x[k] * factor * (p.norm != nullptr ? p.norm[k] : 1);
      total += term;
      size += term * term;
    }
    return total;
  };
  double value = sum(part.w, part.bias);
  if (p.gate != Gate::kNone) {
    const double up = sum(part.up, part.up_bias);
    value = Activation(p.gate, value) * up;
    size *= std::fmax(1.0, up * up);
  }
  if (terms != nullptr) *terms += size;
  if (p.soft_cap > 0) value = p.soft_cap * std::tanh(value / p.soft_cap);
  return p.add ? before + value : value;
}

// layer.cu, and the conversions of prefill.cu.

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
  return p.norm != nullptr ? x[i] * InverseNorm(x, p.columns, p.epsilon) * p.norm[i] : x[i];
}
inline double GateAt(const GateRows& p, int r, int i) {
  if (i >= p.columns) return 0;
  const int64_t at = r * p.stride + i;
  return Activation(p.act, Bf16Value(p.gate[at])) * Bf16Value(p.up[at]);
}

// attention.cu and prefill.cu, one row and head at a time, on what the cache holds.

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
  double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  if (p.sinks != nullptr) {
    most = std::max(most, double{p.sinks[head]});
    sum = std::exp(p.sinks[head] - most);
  }
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
  std::vector<float> queries;
  for (int i = 0; i < p.heads * p.cache.head_dim; ++i) {
    queries.push_back(static_cast<float>(Bf16Value(p.q[r * p.q_stride + i])));
  }
  Attention same;
  same.q = queries.data();
  same.heads = p.heads;
  same.tables = p.tables;
  same.cache = p.cache;
  same.scale = p.scale;
  same.soft_cap = p.soft_cap;
  same.window = p.window;
  same.sinks = p.sinks;
  DeviceRow row = p.rows[r];
  if (!p.both_sides) row.prefix = row.position + 1;
  same.rows = &row;
  return AttentionAt(same, 0, head);
}

// experts.cu and experts.cuh.

struct Chosen {
  int expert;
  double weight;
};
// The experts of row r, which is no padding, in the order of their numbers.
inline std::vector<Chosen> ChosenOf(const ChooseExperts& p, int r) {
  const float* scores = p.scores + r * p.scores_stride;
  const auto experts = static_cast<size_t>(p.experts);
  std::vector<double> weights(scores, scores + experts);
  if (p.kind == ScoreKind::kSoftmax) {
    const double most = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& w : weights) sum += w = std::exp(w - most);
    for (double& w : weights) w /= sum;
  } else if (p.kind == ScoreKind::kSigmoid) {
    for (double& w : weights) w = 1 / (1 + std::exp(-w));
  }
  std::vector<double> compared = weights;
  for (size_t e = 0; e < experts && p.choice_bias != nullptr; ++e) compared[e] += p.choice_bias[e];
  const auto size = experts / static_cast<size_t>(p.groups);
  const auto best = [](const std::vector<double>& of, int count) {
    std::vector<int> order(of.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return of[static_cast<size_t>(a)] > of[static_cast<size_t>(b)];
    });
    order.resize(static_cast<size_t>(count));
    return order;
  };
  if (p.groups > 1) {
    std::vector<double> worth;
    for (size_t begin = 0; begin < experts; begin += size) {
      std::vector<double> group(compared.begin() + static_cast<std::ptrdiff_t>(begin),
                                compared.begin() + static_cast<std::ptrdiff_t>(begin + size));
      std::sort(group.rbegin(), group.rend());
      worth.push_back(group[0] + (size > 1 ? group[1] : 0.0));
    }
    std::vector<bool> left(worth.size());
    for (const int g : best(worth, p.chosen_groups)) left[static_cast<size_t>(g)] = true;
    for (size_t e = 0; e < experts; ++e) {
      if (!left[e / size]) compared[e] = -std::numeric_limits<double>::infinity();
    }
  }
  std::vector<Chosen> chosen;
  double sum = 0;
  const std::vector<int> order = best(compared, p.chosen);
  for (const int e : order) {
    const bool exponential = p.kind == ScoreKind::kSoftmaxOfChosen;
    const double weight = weights[static_cast<size_t>(e)];
    chosen.push_back(
        {e, exponential ? std::exp(weight - weights[static_cast<size_t>(order[0])]) : weight});
    sum += chosen.back().weight;
  }
  for (Chosen& c : chosen) {
    if (p.normalized || p.kind == ScoreKind::kSoftmaxOfChosen) c.weight /= sum;
    c.weight *= p.scale * (p.factors != nullptr ? double{p.factors[c.expert]} : 1.0);
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const Chosen& a, const Chosen& b) { return a.expert < b.expert; });
  return chosen;
}

// Result `output` of an expert for row `x_row` of x. `terms`: as of MatMulAt.
inline double ExpertAt(const ExpertProducts& p, int expert, int x_row, int output,
                       double* terms = nullptr) {
  const auto part = [&](const ExpertMatrices& all, DeviceMatrix& w, const float*& bias) {
    const int64_t e = expert;
    w = all.first;
    w.data = static_cast<const char*>(w.data) + e * all.data_stride;
    if (w.scales != nullptr) w.scales += e * all.scales_stride;
    if (w.minimums != nullptr) w.minimums += e * all.scales_stride;
    if (w.row_scales != nullptr) w.row_scales += e * all.row_scales_stride;
    bias = all.bias != nullptr ? all.bias + e * all.bias_stride : nullptr;
  };
  MatMul product;
  product.x = p.x + x_row * p.x_stride;
  product.norm = p.norm;
  product.epsilon = p.epsilon;
  part(p.w, product.parts[0].w, product.parts[0].bias);
  if (p.gate == Gate::kNone) return MatMulAt(product, 0, 0, output, 0, terms);
  part(p.up, product.parts[0].up, product.parts[0].up_bias);
  product.gate = p.gate;
  const double plain = MatMulAt(product, 0, 0, output, 0, terms);
  if (p.clamp == 0) return plain;
  product.gate = Gate::kNone;
  const double c = p.clamp, gate = std::min(MatMulAt(product, 0, 0, output), c);
  std::swap(product.parts[0].w, product.parts[0].up);
  std::swap(product.parts[0].bias, product.parts[0].up_bias);
  const double up = std::clamp(MatMulAt(product, 0, 0, output), -c, c);
  return (up + 1) * gate / (1 + std::exp(-1.702 * gate));
}

// masked_rows.cu and the draw of head.cuh, one row at a time.

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

#endif  // PAWL_KERNELS_CUDA_REFERENCE_KERNELS_H_
