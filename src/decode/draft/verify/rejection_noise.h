// Uniform noise for rules of rejection, apart from that of the sampler (sampler.cc): what draws the
// drafts, what decides on them and what draws the token behind them are independent.
#ifndef PAWL_SRC_DECODE_DRAFT_VERIFY_REJECTION_NOISE_H_
#define PAWL_SRC_DECODE_DRAFT_VERIFY_REJECTION_NOISE_H_

#include <cstdint>

#include "src/base/random.h"

namespace pawl {

struct RejectionNoise {
  uint64_t seed = 0;
  uint64_t position = 0;  // of the output
  uint64_t use = 0;       // 0: decisions; from 1 on: a source of drafts

  // From 0 on and below 1.
  double Uniform(uint64_t index) const {
    // Tokens in lanes use numbers below 2^47, and XTC uses 2^62.
    const PhiloxBlock block = Philox4x32(seed, position, uint64_t{1} << 60 | use << 56 | index);
    const uint64_t bits = uint64_t{block.word[0]} << 21 ^ block.word[1] >> 11;
    return static_cast<double>(bits & ((uint64_t{1} << 53) - 1)) / 9007199254740992.0;
  }
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_VERIFY_REJECTION_NOISE_H_
