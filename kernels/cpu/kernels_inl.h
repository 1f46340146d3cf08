// The kernels, written once over a vector of 16 floats. A variant (portable.cc, avx2.cc, avx512.cc)
// defines the vector type Vec in an unnamed namespace and includes this file, which defines
// everything inside that namespace too: code compiled for AVX-512 must never be picked by the
// linker to stand for code of the same name compiled for less, so nothing here is an inline
// function with a shared name, the standard library's templates included.
//
// What fixes every bit of a result: a sum over k keeps 16 partial sums, lane i taking the elements
// with k % 16 == i in ascending order by fused multiply-add; then lanes are folded 16 -> 8 -> 4 ->
// 2 -> 1, the upper half added to the lower. Tiling changes which sums are computed together, never
// the order inside one. The files are compiled with -ffp-contract=off, so that a * b + c is two
// roundings everywhere unless Fma says otherwise.
//
// Vec has: Zero, Set1, Load, LoadN (n < 16 values, the rest 0) for float, Bf16 and F16, Store,
// StoreN, Fma(a, b, c) = ab + c,
// +, -, *, /, Max(a, b) = a > b ? a : b, Min(a, b) = a < b ? a : b, PowerOfTwo, Sum, Sum4, and the
// tile sizes that suit its registers.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/integers.h"
#include "kernels/cpu/kernels.h"

namespace pawl {
namespace {

constexpr int kLanes = 16;

// ---- Matrix product ----

// Widening sixteen bf16 weights takes two instructions, a spreading load and a shift. From 32
// neighbours the sixteen at even places are had by one shift and those at odd places by one mask,
// if the inputs are in the same order: Pack puts them so once, and all outputs profit. Lane i of
// a sum then takes the elements 2i and 2i + 1 of each block of 32.
template <typename W>
constexpr bool kPaired = false;
template <>
constexpr bool kPaired<Bf16> = true;
constexpr int kPairBlock = 2 * kLanes;

template <const IntegerKernels& kIntegers>
void Pack(WeightType type, const float* x, int64_t x_stride, int rows, int64_t n, float* out) {
  if (IsQuantized(type)) return kIntegers.pack(x, x_stride, rows, n, out);
  for (int r = 0; r < rows; ++r, x += x_stride, out += PackedWidth(n)) {
    int64_t k = 0;
    for (; type == WeightType::kBf16 && k + kPairBlock <= n; k += kPairBlock) {
      for (int i = 0; i < kLanes; ++i) {
        out[k + i] = x[k + 2 * i];
        out[k + kLanes + i] = x[k + 2 * i + 1];
      }
    }
    for (; k < n; ++k) out[k] = x[k];
  }
}

// How a tile reads its weights. `Row(o)` is the o-th output from here.
template <typename W>
struct Stored {
  using Type = W;
  static constexpr bool kPairs = kPaired<W>;
  const W* data;
  int64_t stride;
  Vec Load(int o, int64_t k) const { return Vec::Load(data + o * stride + k); }
  Vec LoadN(int o, int64_t k, int n) const { return Vec::LoadN(data + o * stride + k, n); }
  Vec Even(int o, int64_t k) const { return Vec::LoadEven(data + o * stride + k); }
  Vec Odd(int o, int64_t k) const { return Vec::LoadOdd(data + o * stride + k); }
  Stored Row(int64_t o) const { return {data + o * stride, stride}; }
};

// O outputs times R input rows: O * R sums advance together, which hides the latency of the
// multiply-add (4 cycles, up to 2 per cycle) and uses each loaded weight R times and each loaded
// input O times. sums[r * sums_stride + o].
template <int O, int R, typename Weights>
inline void Tile(const Weights& w, const float* x, int64_t x_stride, int64_t n, float* sums,
                 int64_t sums_stride) {
  Vec acc[O * R];
#pragma GCC unroll 32
  for (int i = 0; i < O * R; ++i) acc[i] = Vec::Zero();
  // Sixteen terms of each sum: weights(o) times inputs(r).
  const auto step = [&](const auto& weights, const auto& inputs) __attribute__((always_inline)) {
    Vec weight[O];
#pragma GCC unroll 8
    for (int o = 0; o < O; ++o) weight[o] = weights(o);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec input = inputs(x + r * x_stride);
#pragma GCC unroll 8
      for (int o = 0; o < O; ++o) acc[r * O + o] = Fma(weight[o], input, acc[r * O + o]);
    }
  };
  int64_t k = 0;
  if constexpr (Weights::kPairs) {
    for (; k + kPairBlock <= n; k += kPairBlock) {
      step([&w, k](int o) { return w.Even(o, k); },
           [k](const float* p) { return Vec::Load(p + k); });
      step([&w, k](int o) { return w.Odd(o, k); },
           [k](const float* p) { return Vec::Load(p + k + kLanes); });
    }
  }
  for (; k + kLanes <= n; k += kLanes) {
    step([&w, k](int o) { return w.Load(o, k); }, [k](const float* p) { return Vec::Load(p + k); });
  }
  if (k < n) {
    const int rest = static_cast<int>(n - k);
    step([&w, k, rest](int o) { return w.LoadN(o, k, rest); },
         [k, rest](const float* p) { return Vec::LoadN(p + k, rest); });
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    float* out = sums + r * sums_stride;
    const Vec* a = acc + r * O;
    if constexpr (O % 4 == 0) {
#pragma GCC unroll 8
      for (int o = 0; o < O; o += 4) Sum4(a[o], a[o + 1], a[o + 2], a[o + 3], out + o);
    } else {
#pragma GCC unroll 8
      for (int o = 0; o < O; ++o) out[o] = Sum(a[o]);
    }
  }
}

template <typename Weights, int O, int R>
inline void TileToOutput(const MatMulArgs& args, const Weights& w, int64_t output, int row) {
  float sums[O * R];
  const int64_t width = PackedWidth(args.w.cols);
  Tile<O, R>(w.Row(output), args.x + row * width, width, args.w.cols, sums, O);
  for (int r = 0; r < R; ++r) {
    const int64_t y_row = args.y_rows != nullptr ? args.y_rows[row + r] : row + r;
    float* y = args.y + y_row * args.y_stride + output;
    for (int o = 0; o < O; ++o) {
      float value = sums[r * O + o];
      if (args.bias != nullptr) value += args.bias[output + o];
      y[o] = args.add ? y[o] + value : value;
    }
  }
}

// All rows for O outputs, R rows at a time, then the R' < R that are left.
template <typename Weights, int O, int R>
inline void RowsFrom(const MatMulArgs& args, const Weights& w, int64_t output, int row) {
  for (; row + R <= args.rows; row += R) TileToOutput<Weights, O, R>(args, w, output, row);
  if constexpr (R > 1) {
    if (row < args.rows) RowsFrom<Weights, O, R - 1>(args, w, output, row);
  }
}

template <typename Weights>
void MatMulWith(const MatMulArgs& args, const Weights& w, int64_t begin, int64_t end) {
  int64_t output = begin;
  if (args.rows == 1) {
    constexpr int kWide = Vec::kOutputsOneRow;
    for (; output + kWide <= end; output += kWide) {
      TileToOutput<Weights, kWide, 1>(args, w, output, 0);
    }
  }
  constexpr int kOutputs = Vec::kOutputs;
  for (; output + kOutputs <= end; output += kOutputs) {
    RowsFrom<Weights, kOutputs, Vec::kRows>(args, w, output, 0);
  }
  for (; output < end; ++output) RowsFrom<Weights, 1, 1>(args, w, output, 0);
}

template <typename W>
Stored<W> StoredWeights(const Matrix& m) {
  return {static_cast<const W*>(m.data), m.cols};
}
template <const IntegerKernels& kIntegers>
void MatMul(const MatMulArgs& args, int64_t begin, int64_t end) {
  switch (args.w.type) {
    case WeightType::kF32:
      return MatMulWith(args, StoredWeights<float>(args.w), begin, end);
    case WeightType::kBf16:
      return MatMulWith(args, StoredWeights<Bf16>(args.w), begin, end);
    case WeightType::kF16:
      return MatMulWith(args, StoredWeights<F16>(args.w), begin, end);
    case WeightType::kI8:
    case WeightType::kI4:
      return kIntegers.matmul(args, begin, end);
  }
}

// ---- Element-wise ----

// Calls f(offset, count) for blocks of 16 and the rest.
template <typename F>
inline void ForBlocks(int64_t n, const F& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, kLanes);
  if (i < n) f(i, static_cast<int>(n - i));
}

inline Vec LoadUpTo(const float* x, int count) {
  return count == kLanes ? Vec::Load(x) : Vec::LoadN(x, count);
}

inline void StoreUpTo(const Vec& v, float* x, int count) {
  if (count == kLanes) {
    v.Store(x);
  } else {
    v.StoreN(x, count);
  }
}

void RmsNorm(const float* x, const float* weight, float eps, int64_t n, float* y) {
  Vec squares = Vec::Zero();
  ForBlocks(n, [&](int64_t i, int count) {
    const Vec v = LoadUpTo(x + i, count);
    squares = Fma(v, v, squares);
  });
  const float mean = Sum(squares) / static_cast<float>(n);
  const Vec inverse = Vec::Set1(1.0f / __builtin_sqrtf(mean + eps));
  ForBlocks(n, [&](int64_t i, int count) {
    StoreUpTo(LoadUpTo(weight + i, count) * (LoadUpTo(x + i, count) * inverse), y + i, count);
  });
}

void Rope(float* x, const float* cos_sin, int heads, int head_dim) {
  const int half = head_dim / 2;
  for (int h = 0; h < heads; ++h) {
    float* low = x + static_cast<int64_t>(h) * head_dim;
    float* high = low + half;
    ForBlocks(half, [&](int64_t i, int count) {
      const Vec c = LoadUpTo(cos_sin + i, count);
      const Vec s = LoadUpTo(cos_sin + half + i, count);
      const Vec a = LoadUpTo(low + i, count);
      const Vec b = LoadUpTo(high + i, count);
      StoreUpTo(a * c - b * s, low + i, count);
      StoreUpTo(b * c + a * s, high + i, count);
    });
  }
}

// What e^x is made of: x = n ln 2 + r with |r| <= ln 2 / 2, and power = 2^n, minus_one = e^r - 1 by
// the polynomial of Cephes' expf (Moshier, 1992), within 2 units in the last place. x must lie in
// [-87, 88]. n is rounded by adding 1.5 * 2^23, which leaves it in the low bits.
struct ExpParts {
  Vec power, minus_one;
};
inline ExpParts SplitExp(const Vec& x) {
  const Vec magic = Vec::Set1(12582912.0f);
  const Vec shifted = Fma(x, Vec::Set1(1.44269504088896341f), magic);
  const Vec n = shifted - magic;
  Vec r = Fma(n, Vec::Set1(-0.693359375f), x);
  r = Fma(n, Vec::Set1(2.12194440e-4f), r);
  Vec p = Vec::Set1(1.9875691500e-4f);
  p = Fma(p, r, Vec::Set1(1.3981999507e-3f));
  p = Fma(p, r, Vec::Set1(8.3334519073e-3f));
  p = Fma(p, r, Vec::Set1(4.1665795894e-2f));
  p = Fma(p, r, Vec::Set1(1.6666665459e-1f));
  p = Fma(p, r, Vec::Set1(5.0000001201e-1f));
  return {PowerOfTwo(shifted), Fma(p, r * r, r)};
}

// x within [low, high]; NaN stays NaN.
inline Vec Clamp(const Vec& x, float low, float high) {
  return Max(Vec::Set1(low), Min(Vec::Set1(high), x));
}

// e^x for x clamped to [-87, 88].
inline Vec Exp(const Vec& x) {
  const ExpParts parts = SplitExp(Clamp(x, -87.0f, 88.0f));
  return (parts.minus_one + Vec::Set1(1.0f)) * parts.power;
}

// With m = e^2x - 1, which keeps all its digits near 0: tanh x = m / (m + 2). Beyond 20 it is 1 to
// the last place.
inline Vec Tanh(const Vec& x) {
  const ExpParts parts = SplitExp(Clamp(x + x, -40.0f, 40.0f));
  const Vec m = Fma(parts.minus_one, parts.power, parts.power - Vec::Set1(1.0f));
  return m / (m + Vec::Set1(2.0f));
}

void SiluMul(const float* gate, const float* up, int64_t n, float* y) {
  const Vec one = Vec::Set1(1.0f);
  ForBlocks(n, [&](int64_t i, int count) {
    const Vec g = LoadUpTo(gate + i, count);
    const Vec s = g / (one + Exp(Vec::Zero() - g));
    StoreUpTo(s * LoadUpTo(up + i, count), y + i, count);
  });
}

// (1 + tanh u) / 2 = 1 / (1 + e^-2u), which needs no tanh and cancels nowhere.
void GeluMul(const float* gate, const float* up, int64_t n, float* y) {
  const Vec one = Vec::Set1(1.0f);
  const Vec scale = Vec::Set1(-1.5957691216057308f);  // -2 sqrt(2 / pi)
  const Vec cubic = Vec::Set1(0.044715f);
  ForBlocks(n, [&](int64_t i, int count) {
    const Vec g = LoadUpTo(gate + i, count);
    const Vec u = scale * (g * Fma(cubic, g * g, one));
    StoreUpTo(g / (one + Exp(u)) * LoadUpTo(up + i, count), y + i, count);
  });
}

void SoftCap(float* x, float cap, int64_t n) {
  const Vec factor = Vec::Set1(cap);
  ForBlocks(n, [&](int64_t i, int count) {
    StoreUpTo(factor * Tanh(LoadUpTo(x + i, count) / factor), x + i, count);
  });
}

template <typename W>
void ToFloatTyped(const void* data, int64_t n, float* out) {
  const W* in = static_cast<const W*>(data);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Vec::Load(in + i).Store(out + i);
  if (i < n) {
    Vec::LoadN(in + i, static_cast<int>(n - i)).StoreN(out + i, static_cast<int>(n - i));
  }
}

void ToFloat(const void* data, WeightType type, int64_t n, float* out) {
  switch (type) {
    case WeightType::kF32:
      return ToFloatTyped<float>(data, n, out);
    case WeightType::kBf16:
      return ToFloatTyped<Bf16>(data, n, out);
    case WeightType::kF16:
      return ToFloatTyped<F16>(data, n, out);
    case WeightType::kI8:
    case WeightType::kI4:
      return;  // not elements on their own
  }
}

void ReadRow(const Matrix& m, int64_t row, float* out) {
  if (IsQuantized(m.type)) return ReadIntegerRow(m, row, out);
  const char* data = static_cast<const char*>(m.data) + row * m.cols * WeightBytes(m.type);
  ToFloat(data, m.type, m.cols, out);
}

// x * 0 is 0 or -0 for a finite x and NaN otherwise, and NaN survives the sum.
bool AllFinite(const float* x, int64_t n) {
  Vec sum = Vec::Zero();
  ForBlocks(n, [&](int64_t i, int count) { sum = Fma(LoadUpTo(x + i, count), Vec::Zero(), sum); });
  return Sum(sum) == 0.0f;
}

// Eight sums, so that additions never wait for each other.
float ReadSum(const float* x, int64_t n) {
  constexpr int kSums = 8;
  Vec sums[kSums];
  for (Vec& sum : sums) sum = Vec::Zero();
  int64_t i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
#pragma GCC unroll 8
    for (int s = 0; s < kSums; ++s) sums[s] = sums[s] + Vec::Load(x + i + s * kLanes);
  }
  for (int s = 1; s < kSums; ++s) sums[0] = sums[0] + sums[s];
  float total = Sum(sums[0]);
  for (; i < n; ++i) total += x[i];
  return total;
}

// ---- Attention ----

// Where a slot's keys or values are, in a layer's first page.
inline int64_t SlotOffset(const AttentionArgs& a, int32_t slot) {
  return (slot >> kKvPageShift) * a.page_stride + (slot & (kKvPage - 1)) * a.head_dim;
}

// Scores of R query heads against `count` consecutive keys: the keys are a matrix of weights, the
// heads its input rows.
template <int R>
inline void ScoresFor(const AttentionArgs& a, const float* keys, int64_t count, int head,
                      int64_t stride, float* scores) {
  const float* q = a.q + static_cast<int64_t>(head) * a.head_dim;
  float* out = scores + head * stride;
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    Tile<4, R>(Stored<float>{keys + j * a.head_dim, a.head_dim}, q, a.head_dim, a.head_dim, out + j,
               stride);
  }
  for (; j < count; ++j) {
    Tile<1, R>(Stored<float>{keys + j * a.head_dim, a.head_dim}, q, a.head_dim, a.head_dim, out + j,
               stride);
  }
}

// All heads from `head` on, R at a time, then the R' < R that are left.
template <int R>
inline void Scores(const AttentionArgs& a, const float* keys, int64_t count, int head,
                   int64_t stride, float* scores) {
  for (; head + R <= a.group; head += R) ScoresFor<R>(a, keys, count, head, stride, scores);
  if constexpr (R > 1) {
    if (head < a.group) Scores<R - 1>(a, keys, count, head, stride, scores);
  }
}

// scores[0 .. n-1] -> e^(score * scale - max), rounded up to whole blocks with zeros; returns their
// sum.
inline float Softmax(float* scores, int64_t n, float scale, float soft_cap) {
  const int64_t blocks = (n + kLanes - 1) / kLanes * kLanes;
  if (soft_cap > 0.0f) {
    const Vec factor = Vec::Set1(scale), cap = Vec::Set1(soft_cap);
    for (int64_t i = n; i < blocks; ++i) scores[i] = 0.0f;
    for (int64_t i = 0; i < blocks; i += kLanes) {
      (cap * Tanh(Vec::Load(scores + i) * factor / cap)).Store(scores + i);
    }
    scale = 1.0f;
  }
  for (int64_t i = n; i < blocks; ++i) scores[i] = -__builtin_huge_valf();
  const Vec factor = Vec::Set1(scale);
  Vec top = Vec::Set1(-__builtin_huge_valf());
  for (int64_t i = 0; i < blocks; i += kLanes) {
    const Vec v = Vec::Load(scores + i) * factor;
    v.Store(scores + i);
    top = Max(top, v);
  }
  float lanes[kLanes];
  top.Store(lanes);
  float largest = lanes[0];
  for (int i = 1; i < kLanes; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
  const Vec shift = Vec::Set1(largest);
  for (int64_t i = 0; i < blocks; i += kLanes) Exp(Vec::Load(scores + i) - shift).Store(scores + i);
  for (int64_t i = n; i < blocks; ++i) scores[i] = 0.0f;
  Vec sum = Vec::Zero();
  for (int64_t i = 0; i < blocks; i += kLanes) sum = sum + Vec::Load(scores + i);
  return Sum(sum);
}

// out[r] = sum over positions of p[r][j] * values[j], for R heads and B blocks of 16 elements that
// start at `offset`; `last` is how many elements the last block has.
template <int R, int B>
inline void WeightedSum(const AttentionArgs& a, int head, int offset, int last, int64_t stride,
                        const float* inverse) {
  Vec acc[R * B];
#pragma GCC unroll 32
  for (int i = 0; i < R * B; ++i) acc[i] = Vec::Zero();
  const float* p = a.scratch + head * stride;
  const auto add = [&](const float* value, int64_t j) __attribute__((always_inline)) {
    Vec v[B];
#pragma GCC unroll 8
    for (int b = 0; b < B - 1; ++b) v[b] = Vec::Load(value + b * kLanes);
    v[B - 1] = LoadUpTo(value + (B - 1) * kLanes, last);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec weight = Vec::Set1(p[r * stride + j]);
#pragma GCC unroll 8
      for (int b = 0; b < B; ++b) acc[r * B + b] = Fma(weight, v[b], acc[r * B + b]);
    }
  };
  const float* values = a.values + offset;
  for (int64_t j = a.first; j < a.prefix;) {
    const float* page = values + a.pages[j >> kKvPageShift] * a.page_stride;
    const int64_t next = (j | (kKvPage - 1)) + 1, end = next < a.prefix ? next : a.prefix;
    for (; j < end; ++j) add(page + (j & (kKvPage - 1)) * a.head_dim, j - a.first);
  }
  for (int i = 0; i < a.extra_count; ++i) {
    add(values + SlotOffset(a, a.extra[i]), a.prefix - a.first + i);
  }
  for (int r = 0; r < R; ++r) {
    float* out = a.out + static_cast<int64_t>(head + r) * a.head_dim + offset;
    const Vec factor = Vec::Set1(inverse[r]);
#pragma GCC unroll 8
    for (int b = 0; b < B - 1; ++b) (acc[r * B + b] * factor).Store(out + b * kLanes);
    StoreUpTo(acc[r * B + B - 1] * factor, out + (B - 1) * kLanes, last);
  }
}

template <int R, int B>
inline void WeightedBlocks(const AttentionArgs& a, int head, int offset, int64_t stride,
                           const float* inverse) {
  for (; offset + B * kLanes <= a.head_dim; offset += B * kLanes) {
    WeightedSum<R, B>(a, head, offset, kLanes, stride, inverse);
  }
  if constexpr (B > 1) {
    WeightedBlocks<R, B - 1>(a, head, offset, stride, inverse);
  } else if (offset < a.head_dim) {
    WeightedSum<R, 1>(a, head, offset, a.head_dim - offset, stride, inverse);
  }
}

template <int R>
inline void WeightedSums(const AttentionArgs& a, int head, int64_t n, int64_t stride) {
  for (; head + R <= a.group; head += R) {
    float inverse[R];
    for (int i = 0; i < R; ++i) {
      inverse[i] = 1.0f / Softmax(a.scratch + (head + i) * stride, n, a.scale, a.soft_cap);
    }
    WeightedBlocks<R, Vec::kAttentionBlocks>(a, head, 0, stride, inverse);
  }
  if constexpr (R > 1) {
    if (head < a.group) WeightedSums<R - 1>(a, head, n, stride);
  }
}

void Attention(const AttentionArgs& a) {
  constexpr int kHeads = Vec::kAttentionHeads;
  const int64_t run = a.prefix - a.first;
  const int64_t n = run + a.extra_count;
  const int64_t stride = (n + kLanes - 1) / kLanes * kLanes;
  for (int64_t j = a.first; j < a.prefix;) {
    const float* page = a.keys + a.pages[j >> kKvPageShift] * a.page_stride;
    const int64_t next = (j | (kKvPage - 1)) + 1, end = next < a.prefix ? next : a.prefix;
    Scores<kHeads>(a, page + (j & (kKvPage - 1)) * a.head_dim, end - j, 0, stride,
                   a.scratch + (j - a.first));
    j = end;
  }
  for (int i = 0; i < a.extra_count; ++i) {
    Scores<kHeads>(a, a.keys + SlotOffset(a, a.extra[i]), 1, 0, stride, a.scratch + run + i);
  }
  WeightedSums<kHeads>(a, 0, n, stride);
}

template <const IntegerKernels& kIntegers>
constexpr KernelSet TableNamed(const char* name) {
  return {name,    Pack<kIntegers>, MatMul<kIntegers>, RmsNorm, Rope,      Attention, SiluMul,
          GeluMul, SoftCap,         ToFloat,           ReadRow, AllFinite, ReadSum};
}

}  // namespace
}  // namespace pawl
