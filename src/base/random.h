// Random numbers and the draw of a token, for the CPU and the kernels, and so header only.
//
// Random numbers are counter-based: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy
// as 1, 2, 3", SC 2011). A draw is a pure function of (seed, position, index): no state, so any
// draw can be made again, in any order, on any thread or device.
#ifndef PAWL_SRC_BASE_RANDOM_H_
#define PAWL_SRC_BASE_RANDOM_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define PAWL_HOST_DEVICE __host__ __device__
#else
#define PAWL_HOST_DEVICE
#endif

namespace pawl {

struct PhiloxBlock {
  uint32_t word[4];
};

PAWL_HOST_DEVICE inline PhiloxBlock Philox4x32(uint64_t seed, uint64_t high, uint64_t low) {
  uint32_t c0 = static_cast<uint32_t>(low), c1 = static_cast<uint32_t>(low >> 32);
  uint32_t c2 = static_cast<uint32_t>(high), c3 = static_cast<uint32_t>(high >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Uniform in the open interval (0, 1), 23 bits: word `index % 4` of block `index / 4` at
// `position`. 23 and not 24 bits: one half is added to keep 0 out, and with 24 bits that sum would
// round up to 1.
PAWL_HOST_DEVICE inline float UniformAt(uint64_t seed, uint64_t position, uint64_t index) {
  const PhiloxBlock block = Philox4x32(seed, position, index >> 2);
  return (static_cast<float>(block.word[index & 3] >> 9) + 0.5f) * (1.0f / 8388608.0f);
}

// The largest value that GumbelFromWord gives, rounded up: samplers use it to skip hopeless tokens.
inline constexpr float kMaxGumbel = 22.875f;

// Standard Gumbel noise from 32 random bits. It is -log(E) with E = -log(1 - v) exponential and v
// small for the large values, the ones that win an argmax: a float is fine-grained near 0 but not
// near 1, so the plain -log(-log(u)) would have a coarse upper tail. Always finite: -2.82 to 22.88.
PAWL_HOST_DEVICE inline float GumbelFromWord(uint32_t word) {
  float v = (static_cast<float>(word) + 0.5f) * (1.0f / 4294967296.0f);
  if (v > 0.99999994f) v = 0.99999994f;
  return -logf(-log1pf(-v));
}

// Standard Gumbel noise at (seed, position, index).
PAWL_HOST_DEVICE inline float GumbelAt(uint64_t seed, uint64_t position, uint64_t index) {
  return GumbelFromWord(Philox4x32(seed, position, index >> 2).word[index & 3]);
}

// The arithmetic of drawing a token, shared by the CPU's sampler and the kernels, so that both draw
// the same token from the same logits. The rules are told in src/decode/sampler.h.

// What the draw maximises over the tokens: logit / T + noise, times T where T is at most 1, so that
// neither small nor large temperatures overflow and no pass over the logits is needed before it. At
// T = 0 it is the logit.
PAWL_HOST_DEVICE inline float Perturbed(float logit, float temperature, float noise) {
  return temperature <= 1.0f ? fmaf(temperature, noise, logit) : logit / temperature + noise;
}

// Logits below this cannot beat `best`, a value of Perturbed, with the largest noise there is.
PAWL_HOST_DEVICE inline float HopelessLogit(float best, float temperature) {
  const float room = kMaxGumbel * temperature;
  const float logit = temperature <= 1.0f ? best - room : best * temperature - room;
  // Less what roundings can have added.
  const float least = logit - 1e-5f * (fabsf(logit) + room);
  return least < 3e38f ? least : -3.402823466e38f;  // overflow: none is hopeless
}

// A logit after the penalties: `seen` in prompt or output, `count` times in the output. Stays
// finite.
struct Penalties {
  float repetition = 1, presence = 0, frequency = 0;
  PAWL_HOST_DEVICE bool any() const { return repetition != 1 || presence != 0 || frequency != 0; }
};
PAWL_HOST_DEVICE inline float Penalised(float logit, const Penalties& penalties, bool seen,
                                        int32_t count) {
  constexpr float kLargest = 3.402823466e38f;
  if (seen && penalties.repetition != 1) {
    logit = logit > 0 ? logit / penalties.repetition : logit * penalties.repetition;
  }
  if (count > 0) {
    logit -= fmaf(penalties.frequency, static_cast<float>(count), penalties.presence);
  }
  return logit > kLargest ? kLargest : logit < -kLargest ? -kLargest : logit;
}

// A logit less the largest one of its row, as the filters see it: 0 at most.
PAWL_HOST_DEVICE inline float RelativeScore(float logit, float largest, float temperature) {
  return (logit - largest) / temperature;
}
// Its probability times the sum of all, in units of 2^-40. Integers, so that sums are the same in
// any order; of fewer than 2^23 tokens they fit.
PAWL_HOST_DEVICE inline uint64_t WeightOf(float relative_score) {
  return static_cast<uint64_t>(exp(static_cast<double>(relative_score)) * 1099511627776.0);
}
// Whether so much weight is the share p of all.
PAWL_HOST_DEVICE inline bool Reaches(uint64_t reached, float p, uint64_t total) {
  return static_cast<double>(reached) >= static_cast<double>(p) * static_cast<double>(total);
}

// Scores with their tokens as integers in the order in which they rank: the larger score first, the
// lower token among equals. 0 is below all of them, kBrokenKey above all that are made of finite
// scores. A weak key is below all that are not.
using DrawKey = unsigned long long;  // what the kernels' atomics take
constexpr DrawKey kNoKey = 0;
constexpr DrawKey kBrokenKey = ~DrawKey{0};

// Floats as integers in the same order; -0 is 0.
PAWL_HOST_DEVICE inline uint32_t OrderedBits(float value) {
  const float number = value + 0.0f;
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
PAWL_HOST_DEVICE inline DrawKey KeyOf(float score, int32_t token, bool weak = false) {
  return static_cast<DrawKey>(weak ? 0u : 1u) << 63 |
         static_cast<DrawKey>(OrderedBits(score)) << 31 |
         (0x7fffffffu - static_cast<uint32_t>(token));
}
PAWL_HOST_DEVICE inline int32_t TokenOf(DrawKey key) {
  return static_cast<int32_t>(0x7fffffffu - static_cast<uint32_t>(key & 0x7fffffffu));
}
// Of a key that is not weak.
PAWL_HOST_DEVICE inline float ScoreOf(DrawKey key) {
  const uint32_t ordered = static_cast<uint32_t>(key >> 31 & 0xffffffffu);
  const uint32_t bits = (ordered >> 31) != 0 ? ordered & 0x7fffffffu : ~ordered;
  float score;
  memcpy(&score, &bits, sizeof score);
  return score;
}

}  // namespace pawl

#endif  // PAWL_SRC_BASE_RANDOM_H_
