// BestTokens: the best tokens of masks under the law of a position.
//
//   BestTokens best(width, most);
//   best.Begin(scores);
//   for (const TokenId token : best.Of(mask)) ...     // by falling score, equal ones by number
#ifndef PAWL_SRC_DECODE_DIFFUSION_BEST_TOKENS_H_
#define PAWL_SRC_DECODE_DIFFUSION_BEST_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pawl/vocabulary.h"
#include "src/decode/diffusion/canvas_states.h"

namespace pawl {

class BestTokens {
 public:
  BestTokens(int width, int most) : width_(width), most_(static_cast<size_t>(most)) {}

  // `scores` live until the next one begins.
  void Begin(std::span<const float> scores);
  // Good until the next call.
  std::span<const TokenId> Of(const CanvasMask& mask);
  // The best of all tokens, by rank; kNoToken: more are not ranked.
  TokenId Nth(size_t rank);

 private:
  // The score in the upper half, so that a larger number is a better token; then the token.
  using Ranked = uint64_t;
  Ranked RankOf(TokenId token) const;
  static TokenId TokenOf(Ranked ranked) { return static_cast<TokenId>(~ranked & 0xffffffff); }
  // The best of all tokens, or of those of a mask.
  void FindBest(const Mask* mask, size_t most, std::vector<Ranked>& best) const;
  // Those that are better than `least`, where there is one.
  void FindBetter(const Mask* mask, size_t most, std::optional<float> least,
                  std::vector<Ranked>& best) const;
  std::span<const Ranked> Order();
  // So many of the order that the mask allows.
  void TakeAllowed(const Mask& mask, std::span<const Ranked> order);

  const int width_;
  const size_t most_;
  std::span<const float> scores_;
  std::vector<Ranked> order_, long_order_;  // of all tokens; empty: not found yet
  std::vector<Ranked> ranked_;
  std::vector<TokenId> tokens_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DIFFUSION_BEST_TOKENS_H_
