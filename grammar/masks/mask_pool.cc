// Masks are found by a hash of their words and compared word by word, so equal masks are one object
// and its id stands for its content. What a caller holds stays alive when the pool forgets it.
#include "grammar/masks/mask_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace pawl {

Mask::Mask(MaskId id, std::vector<uint32_t> words) : id_(id), words_(std::move(words)) {}

namespace {

int CountBits(std::span<const uint32_t> words) {
  int count = 0;
  for (const uint32_t word : words) count += std::popcount(word);
  return count;
}

#if defined(__x86_64__)
// Of the processors of the last fifteen years; without it every word is a call.
__attribute__((target("popcnt"))) int CountBitsByInstruction(std::span<const uint32_t> words) {
  uint64_t count = 0;
  size_t i = 0;
  for (; i + 2 <= words.size(); i += 2) {
    uint64_t two;
    std::memcpy(&two, &words[i], sizeof two);
    count += static_cast<uint64_t>(__builtin_popcountll(two));
  }
  if (i < words.size()) count += static_cast<uint64_t>(__builtin_popcount(words[i]));
  return static_cast<int>(count);
}
#endif

}  // namespace

void Mask::Count() const {
  const auto first = std::ranges::find_if(words_, [](uint32_t word) { return word != 0; });
  if (first != words_.end()) {
    first_.store(static_cast<TokenId>((first - words_.begin()) * 32 + std::countr_zero(*first)),
                 std::memory_order_relaxed);
  }
#if defined(__x86_64__)
  const bool fast = __builtin_cpu_supports("popcnt") != 0;
  count_.store(fast ? CountBitsByInstruction(words_) : CountBits(words_),
               std::memory_order_release);
#else
  count_.store(CountBits(words_), std::memory_order_release);
#endif
}

std::vector<TokenId> Mask::Tokens() const {
  std::vector<TokenId> out;
  out.reserve(static_cast<size_t>(count()));
  for (size_t i = 0; i < words_.size(); ++i) {
    for (uint32_t rest = words_[i]; rest != 0; rest &= rest - 1) {
      out.push_back(static_cast<TokenId>(i * 32 + static_cast<size_t>(std::countr_zero(rest))));
    }
  }
  return out;
}

// Four lanes, so that the products do not wait for each other.
uint64_t MaskPool::Hash(std::span<const uint32_t> words) {
  uint64_t a = 1;
  uint64_t b = 2;
  uint64_t c = 3;
  uint64_t d = 4;
  const auto mix = [](uint64_t& lane, uint64_t block) {
    lane = (lane ^ block) * 0xD6E8FEB86659FD93u;
    lane ^= lane >> 32;
  };
  size_t i = 0;
  for (; i + 8 <= words.size(); i += 8) {
    uint64_t block[4];
    std::memcpy(block, &words[i], sizeof block);
    mix(a, block[0]);
    mix(b, block[1]);
    mix(c, block[2]);
    mix(d, block[3]);
  }
  for (; i < words.size(); ++i) mix(a, words[i]);
  uint64_t hash = 0;
  for (const uint64_t lane : {a, b, c, d})
    hash = (hash ^ lane ^ (lane >> 29)) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 32);
}

void MaskPool::Clear() {
  masks_.clear();
  bytes_ = 0;
}

std::shared_ptr<const Mask> MaskPool::Intern(uint64_t hash, std::vector<uint32_t> words) {
  const auto [first, last] = masks_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (std::ranges::equal(it->second->words(), words)) return it->second;
  }
  const size_t cost = words.size() * 4 + 128;
  if (bytes_ + cost > max_bytes_) Clear();
  auto mask = std::make_shared<const Mask>(next_id_++, std::move(words));
  masks_.emplace(hash, mask);
  bytes_ += cost;
  return mask;
}

}  // namespace pawl
