// The types with 256 weights a block have two levels: each group of 16 or 32 weights has a scale
// (and a minimum) that is a small integer times a half of the block.
//
// A group is fitted by itself first. For integers that are given, the scale and the minimum with
// the least weighted squared error are the solution of two linear equations. So a search tries some
// steps from a little more than the range of the group to a little less, rounds the weights to
// each, solves, and keeps the pair of the least error. Large weights count more than small ones.
// Then the scales of all groups are rounded to the block's multiples, and the weights are rounded
// once more, to the scales as they are stored. The search and its bounds are those of ggml
// (ggml-quants.c, without an importance matrix), so that files are as good as its files.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/base/half.h"
#include "src/model/gguf_encode.h"

namespace pawl {
namespace {

constexpr int kSuper = 256;
// Groups of weights below this are zeros.
constexpr float kNoWeight = 1e-15f;

// To the nearest integer, ties to even: adding 1.5 x 2^23 leaves no bits behind the point.
int NearestInt(float x) {
  constexpr float kShift = 12582912.0f;
  return static_cast<int>(std::clamp(x, -4194304.0f, 4194303.0f) + kShift - kShift);
}
int NearestIn(float x, int least, int most) { return std::clamp(NearestInt(x), least, most); }

// Stores the half that is nearest to a number, and returns what the half is worth.
float StoreHalf(float value, uint8_t* out) {
  const uint16_t bits = FloatToHalf(value);
  std::memcpy(out, &bits, sizeof bits);
  return HalfToFloat(bits);
}

// Two bits of 256 weights: of each half, four runs of 32 share 32 bytes.
void PutPairs(const uint8_t* q, int shift, uint8_t* out) {
  std::memset(out, 0, kSuper / 4);
  for (int i = 0; i < kSuper; ++i) {
    uint8_t& byte = out[i / 128 * 32 + i % 32];
    byte = static_cast<uint8_t>(byte | (q[i] >> shift & 3) << i % 128 / 32 * 2);
  }
}
// One bit: eight runs of 32 share 32 bytes.
void PutBits(const uint8_t* q, int shift, uint8_t* out) {
  std::memset(out, 0, kSuper / 8);
  for (int i = 0; i < kSuper; ++i) {
    out[i % 32] = static_cast<uint8_t>(out[i % 32] | (q[i] >> shift & 1) << i / 32);
  }
}
// Four bits: the two halves of each run of 2 * half share its bytes.
void PutHalves(const uint8_t* q, int half, uint8_t* out) {
  for (int i = 0; i < kSuper; ++i) {
    const int run = i / (2 * half), at = run * half + i % half;
    if (i % (2 * half) < half) {
      out[at] = static_cast<uint8_t>(q[i] & 15);
    } else {
      out[at] = static_cast<uint8_t>(out[at] | (q[i] & 15) << 4);
    }
  }
}

// ---- with minimums ----

// A weight is worth scale * q - depth.
struct AffineFit {
  float scale = 0.0f, depth = 0.0f;
};

// The steps that are tried: (range of the integers + first + i * 0.1) for i up to `last`.
struct AffineSearch {
  int most;  // the largest integer
  float first;
  int last;
  bool absolute;  // the error is not squared
};

template <int kCount>
float ErrorOf(const float* x, const float* importance, const uint8_t* q, float scale, float minimum,
              bool absolute) {
  float error = 0.0f;
  for (int i = 0; i < kCount; ++i) {
    const float difference = scale * static_cast<float>(q[i]) + minimum - x[i];
    error += importance[i] * (absolute ? std::fabs(difference) : difference * difference);
  }
  return error;
}

template <int kCount>
void RoundAll(const float* x, float minimum, float inverse, int most, uint8_t* q) {
  for (int i = 0; i < kCount; ++i) {
    q[i] = static_cast<uint8_t>(NearestIn(inverse * (x[i] - minimum), 0, most));
  }
}

template <int kCount>
AffineFit FitAffine(const float* x, const float* importance, const AffineSearch& search) {
  float minimum = x[0], most = x[0], sum = 0.0f, sum_x = 0.0f;
  for (int i = 0; i < kCount; ++i) {
    minimum = std::min(minimum, x[i]);
    most = std::max(most, x[i]);
    sum += importance[i];
    sum_x += importance[i] * x[i];
  }
  minimum = std::min(minimum, 0.0f);
  const auto range = static_cast<float>(search.most);
  const float plain = range / (most - minimum);
  if (!(most > minimum) || !std::isfinite(plain)) return {0.0f, -minimum};
  uint8_t q[kCount];
  RoundAll<kCount>(x, minimum, plain, search.most, q);
  float scale = 1.0f / plain;
  float least = ErrorOf<kCount>(x, importance, q, scale, minimum, search.absolute);
  for (int step = 0; step <= search.last; ++step) {
    const float inverse =
        (search.first + 0.1f * static_cast<float>(step) + range) / (most - minimum);
    RoundAll<kCount>(x, minimum, inverse, search.most, q);
    float sum_q = 0.0f, sum_qq = 0.0f, sum_xq = 0.0f;
    for (int i = 0; i < kCount; ++i) {
      const auto value = static_cast<float>(q[i]);
      sum_q += importance[i] * value;
      sum_qq += importance[i] * value * value;
      sum_xq += importance[i] * value * x[i];
    }
    const float determinant = sum * sum_qq - sum_q * sum_q;
    if (!(determinant > 0.0f)) continue;
    float new_scale = (sum * sum_xq - sum_x * sum_q) / determinant;
    float new_minimum = (sum_qq * sum_x - sum_q * sum_xq) / determinant;
    if (new_minimum > 0.0f) {  // the format has none
      new_minimum = 0.0f;
      new_scale = sum_xq / sum_qq;
    }
    const float error = ErrorOf<kCount>(x, importance, q, new_scale, new_minimum, search.absolute);
    if (error < least) {
      least = error;
      scale = new_scale;
      minimum = new_minimum;
    }
  }
  return {scale, -minimum};
}

// The fits of all groups in multiples of two halves, and the weights rounded to them.
template <int kGroup>
struct AffineBlock {
  static constexpr int kGroups = kSuper / kGroup;
  uint8_t scales[kGroups], depths[kGroups], q[kSuper];

  // `most`: the largest multiple. The halves go to d and dmin.
  void Make(const float* x, const AffineFit (&fits)[kGroups], int most_q, int most, uint8_t* d,
            uint8_t* dmin) {
    float scale = 0.0f, depth = 0.0f;
    for (const AffineFit& fit : fits) {
      scale = std::max(scale, fit.scale);
      depth = std::max(depth, fit.depth);
    }
    const auto steps = static_cast<float>(most);
    const float unit = StoreHalf(scale / steps, d), depth_unit = StoreHalf(depth / steps, dmin);
    const float per_scale = scale > 0.0f ? steps / scale : 0.0f;
    const float per_depth = depth > 0.0f ? steps / depth : 0.0f;
    for (int g = 0; g < kGroups; ++g) {
      scales[g] = static_cast<uint8_t>(NearestIn(per_scale * fits[g].scale, 0, most));
      depths[g] = static_cast<uint8_t>(NearestIn(per_depth * fits[g].depth, 0, most));
      const float step = unit * static_cast<float>(scales[g]);
      const float below = depth_unit * static_cast<float>(depths[g]);
      for (int i = g * kGroup; i < (g + 1) * kGroup; ++i) {
        const int nearest = step == 0.0f ? 0 : NearestIn((x[i] + below) / step, 0, most_q);
        q[i] = static_cast<uint8_t>(nearest);
      }
    }
  }
};

void EncodeQ2K(const float* x, uint8_t* block) {
  constexpr AffineSearch kSearch = {3, -0.5f, 15, true};
  AffineFit fits[16];
  for (int g = 0; g < 16; ++g) {
    float importance[16];
    for (int i = 0; i < 16; ++i) importance[i] = std::fabs(x[16 * g + i]);
    fits[g] = FitAffine<16>(x + 16 * g, importance, kSearch);
  }
  AffineBlock<16> made;
  made.Make(x, fits, 3, 15, block + 80, block + 82);
  for (int g = 0; g < 16; ++g) {
    block[g] = static_cast<uint8_t>(made.scales[g] | made.depths[g] << 4);
  }
  PutPairs(made.q, 0, block + 16);
}

// Eight groups of 32 with scales and minimums of six bits in twelve bytes.
void EncodeGroupsOf32(const float* x, const AffineSearch& search, uint8_t* block,
                      AffineBlock<32>& made) {
  AffineFit fits[8];
  for (int g = 0; g < 8; ++g) {
    const float* group = x + 32 * g;
    float squares = 0.0f, importance[32];
    for (int i = 0; i < 32; ++i) squares += group[i] * group[i];
    const float typical = std::sqrt(squares / 32.0f);
    for (int i = 0; i < 32; ++i) importance[i] = typical + std::fabs(group[i]);
    fits[g] = FitAffine<32>(group, importance, search);
  }
  made.Make(x, fits, search.most, 63, block, block + 2);
  uint8_t* packed = block + 4;
  for (int g = 0; g < 4; ++g) {
    const uint8_t scale = made.scales[g + 4], depth = made.depths[g + 4];
    packed[g] = static_cast<uint8_t>(made.scales[g] | scale >> 4 << 6);
    packed[g + 4] = static_cast<uint8_t>(made.depths[g] | depth >> 4 << 6);
    packed[g + 8] = static_cast<uint8_t>((scale & 15) | (depth & 15) << 4);
  }
}

void EncodeQ4K(const float* x, uint8_t* block) {
  AffineBlock<32> made;
  EncodeGroupsOf32(x, {15, -1.0f, 20, false}, block, made);
  PutHalves(made.q, 32, block + 16);
}

void EncodeQ5K(const float* x, uint8_t* block) {
  AffineBlock<32> made;
  EncodeGroupsOf32(x, {31, -0.5f, 15, false}, block, made);
  PutBits(made.q, 4, block + 16);
  PutHalves(made.q, 32, block + 48);
}

// ---- around zero ----

// Sixteen weights as integers from -most to most - 1 times a scale, each weight counting by its
// square.
struct Sums {
  float products = 0.0f, squares = 0.0f;
  void Add(float x, int q, float sign = 1.0f) {
    const float weight = sign * x * x, value = static_cast<float>(q);
    products += weight * x * value;
    squares += weight * value * value;
  }
  float scale() const { return squares > 0.0f ? products / squares : 0.0f; }
};

Sums SumsOf(const float* x, float inverse, int most) {
  Sums sums;
  for (int i = 0; i < 16; ++i) sums.Add(x[i], NearestIn(inverse * x[i], -most, most - 1));
  return sums;
}

float ExtremeOf16(const float* x) {
  float extreme = 0.0f;
  for (int i = 0; i < 16; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  return extreme;
}

// The best of nineteen steps.
float FitSteps(const float* x, int most) {
  const float extreme = ExtremeOf16(x);
  if (std::fabs(extreme) < kNoWeight) return 0.0f;
  const auto range = static_cast<float>(most);
  Sums sums = SumsOf(x, -range / extreme, most);
  float scale = sums.scale(), best = scale * sums.products;
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    sums = SumsOf(x, -(range + 0.1f * static_cast<float>(step)) / extreme, most);
    if (sums.squares > 0.0f && sums.products * sums.products > best * sums.squares) {
      scale = sums.scale();
      best = scale * sums.products;
    }
  }
  return scale;
}

// Few integers: each weight's is moved as long as this makes the error smaller.
float FitByTurns(const float* x, int most) {
  const float extreme = ExtremeOf16(x);
  if (std::fabs(extreme) < kNoWeight) return 0.0f;
  const float inverse = -static_cast<float>(most) / extreme;
  int q[16];
  Sums sums;
  for (int i = 0; i < 16; ++i) {
    q[i] = NearestIn(inverse * x[i], -most, most - 1);
    sums.Add(x[i], q[i]);
  }
  bool changed = true;
  for (int turn = 0; turn < 5 && changed; ++turn) {
    changed = false;
    for (int i = 0; i < 16; ++i) {
      Sums moved = sums;
      moved.Add(x[i], q[i], -1.0f);
      if (!(moved.products > 0.0f)) continue;
      const int next = NearestIn(x[i] * moved.squares / moved.products, -most, most - 1);
      if (next == q[i]) continue;
      moved.Add(x[i], next);
      if (moved.squares > 0.0f && moved.products * moved.products * sums.squares >
                                      sums.products * sums.products * moved.squares) {
        q[i] = next;
        sums = moved;
        changed = true;
      }
    }
  }
  return sums.scale();
}

// The scales of `count` groups in multiples of a half, of which the largest is -most.
void RoundScales(const float* scales, int count, int most, uint8_t* d, int* multiples,
                 float* steps) {
  float extreme = 0.0f;
  for (int g = 0; g < count; ++g) {
    if (std::fabs(scales[g]) > std::fabs(extreme)) extreme = scales[g];
  }
  const float inverse = std::fabs(extreme) < kNoWeight ? 0.0f : -static_cast<float>(most) / extreme;
  const float unit = StoreHalf(inverse == 0.0f ? 0.0f : 1.0f / inverse, d);
  for (int g = 0; g < count; ++g) {
    multiples[g] = NearestIn(inverse * scales[g], -most, most - 1);
    steps[g] = unit * static_cast<float>(multiples[g]);
  }
}

// Integers from 0 on; a group without a step is zeros.
void RoundGroups(const float* x, const float* steps, int most, uint8_t* q) {
  for (int i = 0; i < kSuper; ++i) {
    const float step = steps[i / 16];
    const int nearest = step == 0.0f ? 0 : NearestIn(x[i] / step, -most, most - 1);
    q[i] = static_cast<uint8_t>(nearest + most);
  }
}

void EncodeQ6K(const float* x, uint8_t* block) {
  float scales[16], steps[16];
  int multiples[16];
  uint8_t q[kSuper];
  for (int g = 0; g < 16; ++g) scales[g] = FitSteps(x + 16 * g, 32);
  RoundScales(scales, 16, 128, block + 208, multiples, steps);
  for (int g = 0; g < 16; ++g) {
    block[192 + g] = static_cast<uint8_t>(static_cast<int8_t>(multiples[g]));
  }
  RoundGroups(x, steps, 32, q);
  PutHalves(q, 64, block);
  PutPairs(q, 4, block + 128);
}

void EncodeQ3K(const float* x, uint8_t* block) {
  float scales[16], steps[16];
  int multiples[16];
  uint8_t q[kSuper];
  for (int g = 0; g < 16; ++g) scales[g] = FitByTurns(x + 16 * g, 4);
  RoundScales(scales, 16, 32, block + 108, multiples, steps);
  uint8_t* packed = block + 96;
  std::memset(packed, 0, 12);
  for (int g = 0; g < 16; ++g) {
    const int six = multiples[g] + 32;
    packed[g % 8] = static_cast<uint8_t>(packed[g % 8] | (six & 15) << g / 8 * 4);
    packed[8 + g % 4] = static_cast<uint8_t>(packed[8 + g % 4] | six >> 4 << g / 4 * 2);
  }
  RoundGroups(x, steps, 4, q);
  PutBits(q, 2, block);
  PutPairs(q, 0, block + 32);
}

void EncodeIq4Xs(const float* x, uint8_t* block) {
  float scales[8], steps[8];
  int multiples[8];
  uint8_t q[kSuper];
  for (int g = 0; g < 8; ++g) scales[g] = FitIq4(x + 32 * g, 32);
  RoundScales(scales, 8, 32, block, multiples, steps);
  unsigned high = 0;
  std::memset(block + 4, 0, 4);
  for (int g = 0; g < 8; ++g) {
    const int six = multiples[g] + 32;
    block[4 + g / 2] = static_cast<uint8_t>(block[4 + g / 2] | (six & 15) << g % 2 * 4);
    high |= static_cast<unsigned>(six >> 4) << 2 * g;
    const float inverse = steps[g] == 0.0f ? 0.0f : 1.0f / steps[g];
    for (int i = 32 * g; i < 32 * (g + 1); ++i) {
      q[i] = static_cast<uint8_t>(NearestIq4(x[i] * inverse));
    }
  }
  const auto stored = static_cast<uint16_t>(high);
  std::memcpy(block + 2, &stored, sizeof stored);
  PutHalves(q, 16, block + 8);
}

constexpr BlockEncoder kSuperEncoders[] = {
    {"Q2_K", kSuper, 84, EncodeQ2K},  {"Q3_K", kSuper, 110, EncodeQ3K},
    {"Q4_K", kSuper, 144, EncodeQ4K}, {"Q5_K", kSuper, 176, EncodeQ5K},
    {"Q6_K", kSuper, 210, EncodeQ6K}, {"IQ4_XS", kSuper, 136, EncodeIq4Xs},
};

}  // namespace

const BlockEncoder* FindSuperBlockEncoder(std::string_view dtype) {
  for (const BlockEncoder& encoder : kSuperEncoders) {
    if (dtype == encoder.name) return &encoder;
  }
  return nullptr;
}

}  // namespace pawl
