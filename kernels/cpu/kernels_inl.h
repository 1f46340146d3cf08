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
// +, -, *, /, Max(a, b) = a > b ? a : b, Min(a, b) = a < b ? a : b, PowerOfTwo, Sum, Sum4, Sum8,
// Sum16, and the tile sizes that suit its registers.

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

// Packed inputs of a product: n of each row, the next row `stride` floats further.
struct Inputs {
  const float* x;
  int64_t stride, n;
};

// How a tile reads its weights. `Row(o)` is the o-th output from here.
template <typename W>
struct Stored {
  static constexpr bool kPairs = kPaired<W>;
  static constexpr int kStep = kLanes;  // inputs that a multiply-add takes
  const W* data;
  int64_t stride;
  Vec Load(int o, int64_t k) const { return Vec::Load(data + o * stride + k); }
  Vec LoadN(int o, int64_t k, int n) const { return Vec::LoadN(data + o * stride + k, n); }
  Vec Even(int o, int64_t k) const { return Vec::LoadEven(data + o * stride + k); }
  Vec Odd(int o, int64_t k) const { return Vec::LoadOdd(data + o * stride + k); }
  Stored Row(int64_t o) const { return {data + o * stride, stride}; }
  static Inputs InputsOf(const MatMulArgs& args, int row) {
    const int64_t width = PackedWidth(args.w.cols);
    return {args.x + row * width, width, args.w.cols};
  }
  static Vec LoadRest(const float* x, int n) { return Vec::LoadN(x, n); }
  static Vec MultiplyAdd(const Vec& weight, const Vec& input, const Vec& sum) {
    return Fma(weight, input, sum);
  }
  // Asks for what lies O outputs further: in the order of addresses, as much for each `Step` inputs
  // as these take.
  static constexpr bool kFetches = true;
  template <int O, int Step>
  void Fetch(int64_t k) const {
    const char* from = reinterpret_cast<const char*>(data + O * stride + O * k);
    constexpr int kBytes = O * Step * static_cast<int>(sizeof(W));
#pragma GCC unroll 16
    for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(from + i, 0, 3);
  }
};

// O outputs times R input rows: O * R sums advance together, which hides the latency of the
// multiply-add (4 cycles, up to 2 per cycle) and uses each loaded weight R times and each loaded
// input O times. The lanes of each sum: acc[r * O + o]. With `Ahead` the weights of the O outputs
// behind these are asked for: memory would otherwise be read at two thirds of its speed.
template <int O, int R, bool Ahead = false, typename Weights>
__attribute__((always_inline)) inline void Accumulate(const Weights& w, const float* x,
                                                      int64_t x_stride, int64_t n, Vec* acc) {
#pragma GCC unroll 32
  for (int i = 0; i < O * R; ++i) acc[i] = Vec::Zero();
  // Sixteen terms of each sum: weights(o) times inputs(r).
  const auto step = [&](const auto& weights, const auto& inputs) __attribute__((always_inline)) {
    Vec weight[O];
#pragma GCC unroll 16
    for (int o = 0; o < O; ++o) weight[o] = weights(o);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec input = inputs(x + r * x_stride);
#pragma GCC unroll 16
      for (int o = 0; o < O; ++o) {
        acc[r * O + o] = Weights::MultiplyAdd(weight[o], input, acc[r * O + o]);
      }
    }
  };
  int64_t k = 0;
  if constexpr (Weights::kPairs) {
    for (; k + kPairBlock <= n; k += kPairBlock) {
      if constexpr (Ahead) w.template Fetch<O, kPairBlock>(k);
      step([&w, k](int o) { return w.Even(o, k); },
           [k](const float* p) { return Vec::Load(p + k); });
      step([&w, k](int o) { return w.Odd(o, k); },
           [k](const float* p) { return Vec::Load(p + k + kLanes); });
    }
  }
  constexpr int kStep = Weights::kStep, kPerLane = kStep / kLanes;
  for (; k + kStep <= n; k += kStep) {
    if constexpr (Ahead) w.template Fetch<O, kStep>(k);
    step([&w, k](int o) { return w.Load(o, k); },
         [k](const float* p) { return Vec::Load(p + k / kPerLane); });
  }
  if (k < n) {
    const int rest = static_cast<int>(n - k);
    step([&w, k, rest](int o) { return w.LoadN(o, k, rest); },
         [k, rest](const float* p) { return Weights::LoadRest(p + k / kPerLane, rest); });
  }
}

// The same, folded: sums[r * O + o]. Sixteen sums are folded at once where there are so many: with
// short rows folding takes as long as the products otherwise.
template <int O, int R, bool Ahead = false, typename Weights>
inline void Tile(const Weights& w, const float* x, int64_t x_stride, int64_t n, float* sums) {
  constexpr int kSums = O * R;
  Vec acc[kSums];
  Accumulate<O, R, Ahead>(w, x, x_stride, n, acc);
  int i = 0;
#pragma GCC unroll 2
  for (; i + 16 <= kSums; i += 16) Sum16(acc + i, sums + i);
  if constexpr (kSums % 16 >= 8) {
    Sum8(acc + i, sums + i);
    i += 8;
  }
#pragma GCC unroll 4
  for (; i + 4 <= kSums; i += 4) Sum4(acc[i], acc[i + 1], acc[i + 2], acc[i + 3], sums + i);
#pragma GCC unroll 4
  for (; i < kSums; ++i) sums[i] = Sum(acc[i]);
}

// Neighbouring floats, added at once.
template <int N>
using Few __attribute__((vector_size(N * sizeof(float)))) = float;
template <int N>
inline Few<N> FewAt(const float* p) {
  Few<N> values;
  __builtin_memcpy(&values, p, sizeof values);
  return values;
}

template <typename Weights, int O, int R, bool Ahead = false>
inline void TileToOutput(const MatMulArgs& args, const Weights& w, int64_t output, int row) {
  float sums[O * R];
  const Inputs inputs = w.InputsOf(args, row);
  Tile<O, R, Ahead>(w.Row(output), inputs.x, inputs.stride, inputs.n, sums);
  const float* bias = args.bias != nullptr ? args.bias + output : nullptr;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const int64_t y_row = args.y_rows != nullptr ? args.y_rows[row + r] : row + r;
    float* y = args.y + y_row * args.y_stride + output;
    constexpr int kStep = O % 4 == 0 ? 4 : 1;
#pragma GCC unroll 4
    for (int o = 0; o < O; o += kStep) {
      Few<kStep> value = FewAt<kStep>(sums + r * O + o);
      if (bias != nullptr) value = value + FewAt<kStep>(bias + o);
      if (args.add) value = FewAt<kStep>(y + o) + value;
      __builtin_memcpy(y + o, &value, sizeof value);
    }
  }
}

// The rows row .. end-1 for O outputs, R rows at a time but never more than `most`, then those that
// are left. The first ones ask for the weights of the next outputs.
template <typename Weights, int O, int R, bool Ahead = Weights::kFetches>
inline void RowsFrom(const MatMulArgs& args, const Weights& w, int64_t output, int row, int end,
                     int most) {
  if (R <= most && row + R <= end) {
    TileToOutput<Weights, O, R, Ahead>(args, w, output, row);
    for (row += R; row + R <= end; row += R) TileToOutput<Weights, O, R>(args, w, output, row);
    if constexpr (R > 1) {
      if (row < end) RowsFrom<Weights, O, R - 1, false>(args, w, output, row, end, most);
    }
  } else if constexpr (R > 1) {
    if (row < end) RowsFrom<Weights, O, R - 1, Ahead>(args, w, output, row, end, most);
  }
}

// So many bytes of inputs stay in a level 2 cache while weights pass by.
constexpr int64_t kInputBytes = int64_t{1} << 20;

template <typename Weights>
void MatMulWith(const MatMulArgs& args, const Weights& w, int64_t begin, int64_t end) {
  // More outputs at once, where there are fewer rows.
  if (args.rows <= Vec::kFewRows) {
    constexpr int kWide = Vec::kOutputsFewRows;
    for (; begin + kWide <= end; begin += kWide) {
      RowsFrom<Weights, kWide, Vec::kFewRows>(args, w, begin, 0, args.rows, args.rows);
    }
  }
  constexpr int kOutputs = Vec::kOutputs, kRows = Vec::kRows;
  const int64_t row_bytes = PackedWidth(args.w.cols) * static_cast<int64_t>(sizeof(float));
  const int64_t fit = kInputBytes / row_bytes / kRows * kRows;
  const int rows = static_cast<int>(fit < kRows ? kRows : fit < args.rows ? fit : args.rows);
  for (int row = 0; row < args.rows; row += rows) {
    const int row_end = row + rows < args.rows ? row + rows : args.rows;
    // Eight rows are four and four, not six and two.
    const int tiles = (row_end - row + kRows - 1) / kRows;
    const int most = (row_end - row + tiles - 1) / tiles;
    int64_t output = begin;
    for (; output + kOutputs <= end; output += kOutputs) {
      RowsFrom<Weights, kOutputs, kRows>(args, w, output, row, row_end, most);
    }
    for (; output < end; ++output) RowsFrom<Weights, 1, 1>(args, w, output, row, row_end, 1);
  }
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
    default:
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
    default:
      return;  // integers are not elements on their own
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

// A query head of one row.
struct Query {
  const AttentionRow* row;
  float* out;
  float* scores;    // of position j at j - row->first, and behind them those of the extra slots
  int64_t skipped;  // so many positions before row->first, and their slots, have been left out
};

// Where a slot's keys or values are, in a layer's first page.
inline int64_t SlotOffset(const AttentionArgs& a, int32_t slot) {
  return (slot >> kKvPageShift) * a.page_stride + (slot & (kKvPage - 1)) * a.head_dim;
}

// Scores of R queries against the keys from .. to-1 of a page, the first of them being position
// `start`: the keys are a matrix of weights, the queries its input rows. Whole tiles are computed,
// and each query keeps the scores of the positions that it sees.
template <typename Arithmetic, int R>
inline void ScoresOfPage(const AttentionArgs& a, const float* page, int64_t start, int64_t from,
                         int64_t to, const float* q, const Query* queries) {
  using Keys = typename Arithmetic::Keys;
  const int64_t stride = Arithmetic::QueryStride(a.head_dim);
  // All keys of a page at once, where one query leaves registers for their sums.
  if constexpr (R == 1 && Vec::kOutputsFewRows >= 8) {
    const AttentionRow& row = *queries[0].row;
    if (row.first <= start && row.prefix >= start + kKvPage) {
      float* scores = queries[0].scores + (start - row.first);
      return Tile<kKvPage, 1>(Keys{page, a.head_dim}, q, stride, a.head_dim, scores);
    }
  }
  constexpr int kKeys = Vec::kOutputs;
  static_assert(kKvPage == kLanes && kKvPage % kKeys == 0);
  Vec sums[R][kLanes];
  if (to - from < kKvPage) {
    for (int r = 0; r < R; ++r) {
      for (Vec& sum : sums[r]) sum = Vec::Zero();
    }
  }
  for (int64_t j = from / kKeys * kKeys; j < to; j += kKeys) {
    Vec acc[kKeys * R];
    Accumulate<kKeys, R>(Keys{page + j * a.head_dim, a.head_dim}, q, stride, a.head_dim, acc);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int o = 0; o < kKeys; ++o) sums[r][j + o] = acc[r * kKeys + o];
    }
  }
  for (int r = 0; r < R; ++r) {
    const AttentionRow& row = *queries[r].row;
    const int64_t low = row.first > start ? row.first - start : 0;
    const int64_t high = row.prefix < start + kKvPage ? row.prefix - start : kKvPage;
    if (low == 0 && high == kKvPage) {
      Sum16(sums[r], queries[r].scores + (start - row.first));
      continue;
    }
    float scores[kLanes];
    Sum16(sums[r], scores);
    for (int64_t j = low; j < high; ++j) queries[r].scores[start + j - row.first] = scores[j];
  }
}

// All queries from q on, R at a time, then the R' < R that are left.
template <typename Arithmetic, int R>
inline void PageScores(const AttentionArgs& a, const float* page, int64_t start, int64_t from,
                       int64_t to, const float* q, const Query* queries, int count) {
  const int64_t stride = Arithmetic::QueryStride(a.head_dim);
  for (; count >= R; count -= R, q += R * stride, queries += R) {
    ScoresOfPage<Arithmetic, R>(a, page, start, from, to, q, queries);
  }
  if constexpr (R > 1) {
    if (count > 0) PageScores<Arithmetic, R - 1>(a, page, start, from, to, q, queries, count);
  }
}

// scores[0 .. n-1] -> e^(score * scale - max), rounded up to whole blocks with zeros; returns their
// sum.
float Softmax(float* scores, int64_t n, float scale, float soft_cap, const float* sink) {
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
  if (sink != nullptr && *sink > largest) largest = *sink;
  const Vec shift = Vec::Set1(largest);
  for (int64_t i = 0; i < blocks; i += kLanes) Exp(Vec::Load(scores + i) - shift).Store(scores + i);
  for (int64_t i = n; i < blocks; ++i) scores[i] = 0.0f;
  Vec sum = Vec::Zero();
  for (int64_t i = 0; i < blocks; i += kLanes) sum = sum + Vec::Load(scores + i);
  if (sink == nullptr) return Sum(sum);
  Exp(Vec::Set1(*sink) - shift).Store(lanes);
  return Sum(sum) + lanes[0];
}

// The sums of R queries for B blocks of 16 elements that start at `offset`, `last` being how many
// elements the last block has: from `out` to acc[r * B + b], and back when `add` has added to them.
template <int R, int B, typename Add>
__attribute__((always_inline)) inline void AddToOutputs(const Query* queries, int offset, int last,
                                                        const Add& add) {
  Vec acc[R * B];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const float* out = queries[r].out + offset;
#pragma GCC unroll 8
    for (int b = 0; b < B - 1; ++b) acc[r * B + b] = Vec::Load(out + b * kLanes);
    acc[r * B + B - 1] = LoadUpTo(out + (B - 1) * kLanes, last);
  }
  add(acc);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    float* out = queries[r].out + offset;
#pragma GCC unroll 8
    for (int b = 0; b < B - 1; ++b) acc[r * B + b].Store(out + b * kLanes);
    StoreUpTo(acc[r * B + B - 1], out + (B - 1) * kLanes, last);
  }
}

// Attention with the floats as they are.
struct Exact {
  using Keys = Stored<float>;
  static constexpr int64_t kPositions = 1;  // that a multiply-add of values takes
  static int64_t QueryStride(int64_t head_dim) { return head_dim; }
  static void PackQuery(const float* q, int64_t head_dim, float* out) {
    for (int64_t k = 0; k < head_dim; ++k) out[k] = q[k];
  }
  static void PackScores(const Query&, int64_t) {}

  // out[r] += sum over positions begin .. end-1 of p[r][j] * values[j], for R queries and B blocks.
  template <int R, int B>
  static void WeightedSum(const AttentionArgs& a, const Query* queries, int offset, int last,
                          int64_t begin, int64_t end) {
    const float* p[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) p[r] = queries[r].scores - queries[r].row->first;
    AddToOutputs<R, B>(
        queries, offset, last, [&](Vec * acc) __attribute__((always_inline)) {
          const auto add = [&](const float* value, int64_t j) __attribute__((always_inline)) {
            Vec v[B];
#pragma GCC unroll 8
            for (int b = 0; b < B - 1; ++b) v[b] = Vec::Load(value + b * kLanes);
            v[B - 1] = LoadUpTo(value + (B - 1) * kLanes, last);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
              const Vec weight = Vec::Set1(p[r][j]);
#pragma GCC unroll 8
              for (int b = 0; b < B; ++b) acc[r * B + b] = Fma(weight, v[b], acc[r * B + b]);
            }
          };
          const float* values = a.values + offset;
          const int64_t prefix = queries[0].row->prefix;
          int64_t j = begin;
          while (j < end && j < prefix) {
            const float* page = values + a.pages[j >> kKvPageShift] * a.page_stride;
            const int64_t next = (j | (kKvPage - 1)) + 1;
            const int64_t stop = next < prefix ? next : prefix;
            for (const int64_t to = stop < end ? stop : end; j < to; ++j) {
              add(page + (j & (kKvPage - 1)) * a.head_dim, j);
            }
          }
          const int32_t* extra = queries[0].row->extra;
          for (; j < end; ++j) add(values + SlotOffset(a, extra[j - prefix]), j);
        });
  }
};

template <typename Arithmetic, int R, int B>
inline void WeightedBlocks(const AttentionArgs& a, const Query* queries, int offset, int64_t begin,
                           int64_t end) {
  for (; offset + B * kLanes <= a.head_dim; offset += B * kLanes) {
    Arithmetic::template WeightedSum<R, B>(a, queries, offset, kLanes, begin, end);
  }
  if constexpr (B > 1) {
    WeightedBlocks<Arithmetic, R, B - 1>(a, queries, offset, begin, end);
  } else if (offset < a.head_dim) {
    Arithmetic::template WeightedSum<R, 1>(a, queries, offset, a.head_dim - offset, begin, end);
  }
}

// Positions begin .. end-1, those from the prefix on being the extra slots. They are the same for
// all queries, and where there are extra slots among them all queries are of one row.
template <typename Arithmetic, int R>
inline void WeightedSums(const AttentionArgs& a, const Query* queries, int count, int64_t begin,
                         int64_t end) {
  if (begin >= end) return;
  for (; count >= R; count -= R, queries += R) {
    WeightedBlocks<Arithmetic, R, Vec::kAttentionBlocks>(a, queries, 0, begin, end);
  }
  if constexpr (R > 1) {
    if (count > 0) WeightedSums<Arithmetic, R - 1>(a, queries, count, begin, end);
  }
}

// REQUIRES: a.row_count * a.group <= kAttentionQueries.
template <typename Arithmetic>
void AttentionOfQueries(const AttentionArgs& a) {
  constexpr int kQueries = Vec::kAttentionQueries;
  const int count = a.row_count * a.group;
  int64_t positions = 0;
  AttentionRow rows[kAttentionQueries];
  int64_t skipped[kAttentionQueries];
  for (int i = 0; i < a.row_count; ++i) {
    AttentionRow& row = rows[i] = a.rows[i];
    skipped[i] = row.first > row.prefix ? row.first - row.prefix : 0;
    row.extra += skipped[i];  // some of the extra slots are not seen
    row.extra_count -= static_cast<int>(skipped[i]);
    row.first -= skipped[i];
    const int64_t seen = row.prefix - row.first + row.extra_count;
    positions = seen > positions ? seen : positions;
  }
  const int64_t stride = AttentionStride(positions);
  Query queries[kAttentionQueries];
  // Queries side by side, and behind them the scores of each.
  const int64_t q_stride = Arithmetic::QueryStride(a.head_dim);
  float* const q = a.scratch;
  float* scores = a.scratch + count * q_stride;
  int64_t least = rows[0].first, most = rows[0].prefix;               // seen by any row
  int64_t common_first = rows[0].first, common_end = rows[0].prefix;  // by all
  for (int i = 0, n = 0; i < a.row_count; ++i) {
    const AttentionRow& row = rows[i];
    for (int h = 0; h < a.group; ++h, ++n, scores += stride) {
      Arithmetic::PackQuery(row.q + int64_t{h} * a.head_dim, a.head_dim, q + n * q_stride);
      queries[n] = {&row, row.out + int64_t{h} * a.head_dim, scores, skipped[i]};
    }
    for (int64_t k = 0; k < int64_t{a.group} * a.head_dim; ++k) row.out[k] = 0.0f;
    least = row.first < least ? row.first : least;
    most = row.prefix > most ? row.prefix : most;
    common_first = row.first > common_first ? row.first : common_first;
    common_end = row.prefix < common_end ? row.prefix : common_end;
  }
  for (int64_t start = least / kKvPage * kKvPage; start < most; start += kKvPage) {
    const float* page = a.keys + a.pages[start >> kKvPageShift] * a.page_stride;
    const int64_t from = least > start ? least - start : 0;
    const int64_t to = most < start + kKvPage ? most - start : kKvPage;
    PageScores<Arithmetic, Vec::kRows>(a, page, start, from, to, q, queries, count);
  }
  for (int n = 0; n < count; ++n) {
    const AttentionRow& row = *queries[n].row;
    float* out = queries[n].scores + (row.prefix - row.first);
    for (int i = 0; i < row.extra_count; ++i) {
      using Keys = typename Arithmetic::Keys;
      Tile<1, 1>(Keys{a.keys + SlotOffset(a, row.extra[i]), a.head_dim}, q + n * q_stride, q_stride,
                 a.head_dim, out + i);
    }
  }
  float inverse[kAttentionQueries];
  for (int n = 0; n < count; ++n) {
    const AttentionRow& row = *queries[n].row;
    const int64_t seen = row.prefix - row.first + row.extra_count;
    const float* sink = a.sinks == nullptr ? nullptr : a.sinks + n % a.group;
    inverse[n] = 1.0f / Softmax(queries[n].scores, seen, a.scale, a.soft_cap, sink);
    Arithmetic::PackScores(queries[n], seen);
  }
  // Each row's positions in ascending order: its own first ones, those that all rows see, its own
  // last ones.
  constexpr int64_t kPositions = Arithmetic::kPositions;
  common_first = (common_first + kPositions - 1) / kPositions * kPositions;
  common_end = common_end / kPositions * kPositions;
  if (common_first > common_end) common_first = common_end = 0;
  const bool common = common_first < common_end;
  const auto each_row = [&](bool before) {
    for (int i = 0; i < a.row_count; ++i) {
      const AttentionRow& row = rows[i];
      const int64_t end = row.prefix + row.extra_count;
      WeightedSums<Arithmetic, kQueries>(a, queries + i * a.group, a.group,
                                         before || !common ? row.first : common_end,
                                         before ? common_first : end);
    }
  };
  if (common) {
    each_row(true);
    WeightedSums<Arithmetic, kQueries>(a, queries, count, common_first, common_end);
  }
  each_row(false);
  for (int n = 0; n < count; ++n) {
    const Vec factor = Vec::Set1(inverse[n]);
    float* out = queries[n].out;
    ForBlocks(a.head_dim, [&](int64_t i, int lanes) {
      StoreUpTo(LoadUpTo(out + i, lanes) * factor, out + i, lanes);
    });
  }
}

template <typename Arithmetic>
void Attention(const AttentionArgs& a) {
  if (a.group <= kAttentionQueries) return AttentionOfQueries<Arithmetic>(a);
  for (int h = 0; h < a.group; h += kAttentionQueries) {
    AttentionRow row = a.rows[0];
    row.q += int64_t{h} * a.head_dim;
    row.out += int64_t{h} * a.head_dim;
    AttentionArgs part = a;
    part.rows = &row;
    if (a.sinks != nullptr) part.sinks += h;
    part.group = a.group - h < kAttentionQueries ? a.group - h : kAttentionQueries;
    AttentionOfQueries<Arithmetic>(part);
  }
}

}  // namespace
}  // namespace pawl

#include "kernels/cpu/recurrent_inl.h"

namespace pawl {
namespace {

template <const IntegerKernels& kIntegers>
constexpr KernelSet TableNamed(const char* name) {
  KernelSet set = {};
  set.name = name;
  set.pack = Pack<kIntegers>;
  set.matmul = MatMul<kIntegers>;
  set.rmsnorm = RmsNorm;
  set.rope = Rope;
  set.attention = Attention<Exact>;
  set.softmax = Softmax;
  set.silu_mul = SiluMul;
  set.gelu_mul = GeluMul;
  set.soft_cap = SoftCap;
  set.to_float = ToFloat;
  set.read_row = ReadRow;
  set.all_finite = AllFinite;
  set.read_sum = ReadSum;
  set.sigmoid_mul = SigmoidMul;
  set.state_step = StateStep;
  set.convolution = Convolution;
  return set;
}

}  // namespace
}  // namespace pawl
