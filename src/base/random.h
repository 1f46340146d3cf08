// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as
// 1, 2, 3", SC 2011). A draw is a pure function of (seed, position, index): no state, so any draw
// can be made again, in any order, on any thread or device. Header only so that kernels share it.
#ifndef PAWL_SRC_BASE_RANDOM_H_
#define PAWL_SRC_BASE_RANDOM_H_

#include <array>
#include <cmath>
#include <cstdint>

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

}  // namespace pawl

#endif  // PAWL_SRC_BASE_RANDOM_H_
