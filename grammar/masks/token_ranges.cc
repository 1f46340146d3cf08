// The bits of all tokens before a cut are kept. The bits between two cuts are then `upper &
// ~lower`, one pass over the words, whatever the number of tokens; the two ends are set one by one.
#include "grammar/masks/token_ranges.h"

#include <algorithm>
#include <utility>

namespace pawl {

TokenRanges::TokenRanges(std::span<const TokenId> order, std::vector<uint32_t> cuts, int words)
    : cuts_(std::move(cuts)), words_(static_cast<size_t>(words)) {
  std::vector<uint32_t> bits(words_);
  uint32_t place = 0;
  cut_words_.reserve(cuts_.size() * words_);
  for (const uint32_t at : cuts_) {
    for (; place < at; ++place)
      bits[static_cast<size_t>(order[place]) >> 5] |= 1u << (order[place] & 31);
    cut_words_.insert(cut_words_.end(), bits.begin(), bits.end());
  }
}

void TokenRanges::SetBits(std::span<const TokenId> order, uint32_t first, uint32_t last,
                          uint32_t* words) const {
  const auto set = [&](uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; ++i)
      words[static_cast<size_t>(order[i]) >> 5] |= 1u << (order[i] & 31);
  };
  if (last - first < kMany) return set(first, last);
  // All of a range behind the cut `low` (0: the beginning) and before the cut `high` at once.
  const auto low =
      static_cast<size_t>(std::lower_bound(cuts_.begin(), cuts_.end(), first) - cuts_.begin());
  const auto high = static_cast<size_t>(std::upper_bound(cuts_.begin(), cuts_.end(), last) -
                                        cuts_.begin());  // cuts_[high - 1] <= last
  const bool whole = first == 0;
  const uint32_t from = whole ? 0 : low < cuts_.size() ? cuts_[low] : last;
  const uint32_t to = high == 0 ? 0 : cuts_[high - 1];
  if (to < from || to - from < kMany) return set(first, last);
  const uint32_t* const upper = &cut_words_[(high - 1) * words_];
  if (whole) {
    for (size_t w = 0; w < words_; ++w) words[w] |= upper[w];
  } else {
    const uint32_t* const lower = &cut_words_[low * words_];
    for (size_t w = 0; w < words_; ++w) words[w] |= upper[w] & ~lower[w];
  }
  set(first, from);
  set(to, last);
}

}  // namespace pawl
