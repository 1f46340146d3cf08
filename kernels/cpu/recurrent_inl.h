// What recurrent layers add to kernels_inl.h, which includes this file: steps of a state, the short
// convolution before them, and sigmoid gates.
//
// Lanes run over the values of a head, so a column of the state is in one lane and no sum crosses
// lanes: the order of additions is that of the keys, whatever the width of a block of columns.

namespace pawl {
namespace {

void SigmoidMul(const float* gate, const float* up, int64_t n, float* y) {
  const Vec one = Vec::Set1(1.0f);
  ForBlocks(n, [&](int64_t i, int count) {
    const Vec g = LoadUpTo(gate + i, count);
    StoreUpTo(LoadUpTo(up + i, count) / (one + Exp(Vec::Zero() - g)), y + i, count);
  });
}

// B blocks of 16 columns from `column` on, `last` being how many columns the last one has.
template <bool kDelta, bool kKeep, bool kRead, int B>
inline void StateColumns(const StateStepArgs& a, int column, int last) {
  const Vec decay = Vec::Set1(a.decay), beta = Vec::Set1(a.beta);
  const auto load = [last](const float* p, Vec* v) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int b = 0; b < B - 1; ++b) v[b] = Vec::Load(p + b * kLanes);
    v[B - 1] = LoadUpTo(p + (B - 1) * kLanes, last);
  };
  const float* from = a.from + column;
  Vec d[B];
  load(a.v + column, d);
  if constexpr (kDelta) {
    Vec known[B];
#pragma GCC unroll 8
    for (int b = 0; b < B; ++b) known[b] = Vec::Zero();
    for (int64_t i = 0; i < a.keys; ++i) {
      Vec s[B];
      load(from + i * a.values, s);
      const Vec key = Vec::Set1(a.k[i]);
#pragma GCC unroll 8
      for (int b = 0; b < B; ++b) known[b] = Fma(s[b] * decay, key, known[b]);
    }
#pragma GCC unroll 8
    for (int b = 0; b < B; ++b) d[b] = d[b] - known[b];
  }
  Vec out[B];
#pragma GCC unroll 8
  for (int b = 0; b < B; ++b) {
    d[b] = d[b] * beta;
    out[b] = Vec::Zero();
  }
  for (int64_t i = 0; i < a.keys; ++i) {
    Vec s[B];
    load(from + i * a.values, s);
    const Vec key = Vec::Set1(a.k[i]);
#pragma GCC unroll 8
    for (int b = 0; b < B; ++b) s[b] = Fma(key, d[b], s[b] * decay);
    if constexpr (kKeep) {
      float* to = a.to + column + i * a.values;
#pragma GCC unroll 8
      for (int b = 0; b < B - 1; ++b) s[b].Store(to + b * kLanes);
      StoreUpTo(s[B - 1], to + (B - 1) * kLanes, last);
    }
    if constexpr (kRead) {
      const Vec query = Vec::Set1(a.q[i]);
#pragma GCC unroll 8
      for (int b = 0; b < B; ++b) out[b] = Fma(s[b], query, out[b]);
    }
  }
  if constexpr (kRead) {
    float* y = a.out + column;
#pragma GCC unroll 8
    for (int b = 0; b < B - 1; ++b) out[b].Store(y + b * kLanes);
    StoreUpTo(out[B - 1], y + (B - 1) * kLanes, last);
  }
}

template <bool kDelta, bool kKeep, bool kRead>
inline void StateStepOf(const StateStepArgs& a) {
  constexpr int kBlocks = Vec::kAttentionBlocks;
  int column = 0;
  for (; column + kBlocks * kLanes <= a.values; column += kBlocks * kLanes) {
    StateColumns<kDelta, kKeep, kRead, kBlocks>(a, column, kLanes);
  }
  for (; column < a.values; column += kLanes) {
    const int left = a.values - column;
    StateColumns<kDelta, kKeep, kRead, 1>(a, column, left < kLanes ? left : kLanes);
  }
}

void StateStep(const StateStepArgs& a) {
  const int form = (a.delta ? 4 : 0) + (a.to != nullptr ? 2 : 0) + (a.out != nullptr ? 1 : 0);
  switch (form) {
    case 1:
      return StateStepOf<false, false, true>(a);
    case 2:
      return StateStepOf<false, true, false>(a);
    case 3:
      return StateStepOf<false, true, true>(a);
    case 5:
      return StateStepOf<true, false, true>(a);
    case 6:
      return StateStepOf<true, true, false>(a);
    case 7:
      return StateStepOf<true, true, true>(a);
    default:
      return;  // nothing is wanted
  }
}

void Convolution(const ConvolutionArgs& a) {
  const Vec one = Vec::Set1(1.0f);
  ForBlocks(a.channels, [&](int64_t i, int count) {
    Vec sum = a.bias != nullptr ? LoadUpTo(a.bias + i, count) : Vec::Zero();
    for (int t = 0; t < a.taps; ++t) {
      sum = Fma(LoadUpTo(a.weights + t * a.channels + i, count), LoadUpTo(a.inputs[t] + i, count),
                sum);
    }
    if (a.silu) sum = sum / (one + Exp(Vec::Zero() - sum));
    StoreUpTo(sum, a.y + i, count);
  });
}

}  // namespace
}  // namespace pawl
