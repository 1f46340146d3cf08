// Noise: the random numbers of one step of one output, as a pure function of (seed, step, round,
// index). Nothing depends on the order in which they are asked for, so neither threads nor batches
// change an output.
#ifndef PAWL_SRC_DECODE_SAMPLING_NOISE_H_
#define PAWL_SRC_DECODE_SAMPLING_NOISE_H_

#include <cmath>
#include <cstdint>

#include "src/base/random.h"

namespace pawl {

// A seed for the `index`-th of many things that are drawn under one seed.
inline uint64_t SeedFor(uint64_t seed, uint64_t index, uint64_t purpose) {
  const PhiloxBlock block = Philox4x32(seed, index, ~purpose);
  return static_cast<uint64_t>(block.word[0]) << 32 | block.word[1];
}

class Noise {
 public:
  // The largest value of Gumbel, rounded up.
  static constexpr double kMostGumbel = 22.9;

  Noise(uint64_t seed, uint64_t step) : seed_(seed), step_(step) {}

  // Four neighbours come from one block; who walks over tokens asks for blocks.
  PhiloxBlock Block(uint64_t round, uint64_t block) const {
    return Philox4x32(seed_, step_ << 20 | (round & 0xfffff), block);
  }
  static double GumbelOf(uint32_t word) {
    const double v = (static_cast<double>(word) + 0.5) * (1.0 / 4294967296.0);
    return -std::log(-std::log1p(-v));
  }
  double Gumbel(uint64_t round, uint64_t index) const {
    return GumbelOf(Block(round, index >> 2).word[index & 3]);
  }
  // In the open interval (0, 1), 53 bits. Its numbers have nothing to do with those of Gumbel.
  double Uniform(uint64_t round, uint64_t index) const {
    const PhiloxBlock block = Block(round, index | uint64_t{1} << 62);
    const uint64_t bits = (static_cast<uint64_t>(block.word[0]) << 32 | block.word[1]) >> 11;
    return (static_cast<double>(bits) + 0.5) * 0x1p-53;
  }

 private:
  uint64_t seed_, step_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_NOISE_H_
