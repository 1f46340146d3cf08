// A case is a number of few bits: a hash of what is true of a draft. Two cases that share one are
// taken for the same, which costs a little accuracy and no memory.
#include "src/decode/draft/chance_table.h"

#include <algorithm>
#include <cmath>

namespace pawl {
namespace {

constexpr float kGuessWeight = 8, kMostCounted = 4000;
constexpr uint32_t kLevels = 24;  // of a chance, evenly by its logarithmic odds
constexpr float kLeastGuess = 0.002f, kMostOdds = 6.3f;
constexpr size_t kRanks = 4, kCounts = 4;

}  // namespace

uint32_t ChanceTable::CaseOf(uint32_t sources, size_t rank, size_t count, float chance) {
  const float p = std::clamp(chance, kLeastGuess, 1 - kLeastGuess);
  const float odds = std::log(p / (1 - p));
  const float level = (odds + kMostOdds) / (2 * kMostOdds) * static_cast<float>(kLevels);
  uint32_t key = sources;
  key = key * kRanks + static_cast<uint32_t>(std::min(rank, kRanks - 1));
  key = key * kCounts + static_cast<uint32_t>(std::min(count, kCounts) - 1);
  key = key * kLevels + std::min(static_cast<uint32_t>(level), kLevels - 1);
  return (key * 0x9e3779b1u) >> (32 - kBits);
}

float ChanceTable::Of(uint32_t which, float chance) const {
  if (counters_.empty()) return chance;
  const Counter& counter = counters_[which];
  return (counter.right + kGuessWeight * chance) / (counter.asked + kGuessWeight);
}

void ChanceTable::Count(uint32_t which, bool right) {
  if (counters_.empty()) counters_.resize(size_t{1} << kBits);
  Counter& counter = counters_[which];
  ++counter.asked;
  if (right) ++counter.right;
  if (counter.asked > kMostCounted) {
    counter.asked /= 2;
    counter.right /= 2;
  }
}

}  // namespace pawl
