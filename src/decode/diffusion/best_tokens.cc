// A mask has few tokens, and all of them are ranked; or it has many, and some of the best tokens of
// the whole vocabulary are among them. So these are found once for a position, and each mask tests
// them by bit. Where they do not suffice, more are found, and at last those of the mask alone.
//
// Most tokens are worse than the least of those that are kept, so runs of them are compared at
// once, and what passes is thinned out from time to time.
#include "src/decode/diffusion/best_tokens.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

namespace pawl {
namespace {

constexpr size_t kRun = 64;
constexpr size_t kShortOrder = 4, kLongOrder = 64;  // times `most`

// Larger for larger scores; one number for both zeros. What is no number is the worst.
uint32_t ScoreBits(float score) {
  if (std::isnan(score)) return 0;
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

void KeepBest(std::vector<uint64_t>& ranked, size_t most) {
  if (ranked.size() <= most) return;
  std::ranges::nth_element(ranked, ranked.begin() + static_cast<ptrdiff_t>(most) - 1,
                           std::greater());
  ranked.resize(most);
}

}  // namespace

BestTokens::Ranked BestTokens::RankOf(TokenId token) const {
  const Ranked score = ScoreBits(scores_[static_cast<size_t>(token)]);
  return score << 32 | (~static_cast<uint32_t>(token));
}

void BestTokens::Begin(std::span<const float> scores) {
  scores_ = scores;
  order_.clear();
  long_order_.clear();
}

// A part of the tokens says about where the last one of the best is.
void BestTokens::FindBest(const Mask* mask, size_t most, std::vector<Ranked>& best) const {
  constexpr size_t kPart = 256;
  const auto width = static_cast<size_t>(width_);
  if (mask == nullptr && width >= 4 * most && width >= 4 * kPart) {
    best.clear();
    const size_t each = width / kPart;
    for (size_t t = 0; t < width; t += each) best.push_back(RankOf(static_cast<TokenId>(t)));
    KeepBest(best, 3 * most / (2 * each) + 4);
    const Ranked last = *std::ranges::min_element(best);
    FindBetter(mask, most, scores_[static_cast<size_t>(TokenOf(last))], best);
    if (best.size() == most) return;
  }
  FindBetter(mask, most, std::nullopt, best);
}

void BestTokens::FindBetter(const Mask* mask, size_t most, std::optional<float> least_of,
                            std::vector<Ranked>& best) const {
  best.clear();
  const size_t full = 2 * most + kRun;
  const auto width = static_cast<size_t>(width_);
  bool filled = least_of.has_value();
  float least = least_of.value_or(0);  // of those that are kept
  for (size_t run = 0; run < width; run += kRun) {
    const size_t end = std::min(width, run + kRun);
    uint64_t allowed = ~uint64_t{0};
    if (mask != nullptr) {
      const std::span<const uint32_t> words = mask->words();
      const size_t word = run / 32;
      allowed = words[word] | (word + 1 < words.size() ? uint64_t{words[word + 1]} << 32 : 0);
      if (allowed == 0) continue;
    }
    if (filled) {
      unsigned any = 0;
      for (size_t t = run; t < end; ++t) any |= scores_[t] > least ? 1u : 0u;
      if (any == 0) continue;
    }
    for (size_t t = run; t < end; ++t) {
      if ((allowed >> (t - run) & 1) == 0 || (filled && !(scores_[t] > least))) continue;
      best.push_back(RankOf(static_cast<TokenId>(t)));
    }
    if (best.size() < full) continue;
    KeepBest(best, most);
    const Ranked last = *std::ranges::min_element(best);
    least = scores_[static_cast<size_t>(TokenOf(last))];
    filled = true;
  }
  KeepBest(best, most);
  std::ranges::sort(best, std::greater());
}

void BestTokens::TakeAllowed(const Mask& mask, std::span<const Ranked> order) {
  tokens_.clear();
  for (const Ranked ranked : order) {
    if (tokens_.size() == most_) return;
    if (mask.Allows(TokenOf(ranked))) tokens_.push_back(TokenOf(ranked));
  }
}

std::span<const BestTokens::Ranked> BestTokens::Order() {
  if (order_.empty()) FindBest(nullptr, kShortOrder * most_, order_);
  return order_;
}

TokenId BestTokens::Nth(size_t rank) {
  const auto order = Order();
  return rank < order.size() ? TokenOf(order[rank]) : kNoToken;
}

std::span<const TokenId> BestTokens::Of(const CanvasMask& mask) {
  // Of masks that allow a large part of all tokens, enough are among the best of all.
  constexpr int kLargePart = 4;
  if (mask.few()) {
    if (mask.mask->count() >= width_ / kLargePart) {
      TakeAllowed(*mask.mask, Order());
      if (tokens_.size() == most_) return tokens_;
    }
    ranked_.clear();
    for (const TokenId token : mask.tokens) ranked_.push_back(RankOf(token));
    KeepBest(ranked_, most_);
    std::ranges::sort(ranked_, std::greater());
  } else {
    TakeAllowed(*mask.mask, Order());
    if (tokens_.size() == most_) return tokens_;
    if (long_order_.empty()) FindBest(nullptr, kLongOrder * most_, long_order_);
    TakeAllowed(*mask.mask, long_order_);
    if (tokens_.size() == most_) return tokens_;
    FindBest(mask.mask.get(), most_, ranked_);
  }
  tokens_.clear();
  for (const Ranked ranked : ranked_) tokens_.push_back(TokenOf(ranked));
  return tokens_;
}

}  // namespace pawl
