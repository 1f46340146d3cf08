#include "grammar/mask_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace pawl {

Mask::Mask(MaskId id, std::vector<uint32_t> words) : id_(id), words_(std::move(words)) {}

void Mask::Count() const {
  int count = 0;
  TokenId first = kNoToken;
  for (size_t i = 0; i < words_.size(); ++i) {
    if (words_[i] == 0) continue;
    if (first == kNoToken)
      first = static_cast<TokenId>(i * 32 + static_cast<size_t>(std::countr_zero(words_[i])));
    count += std::popcount(words_[i]);
  }
  first_.store(first, std::memory_order_relaxed);
  count_.store(count, std::memory_order_release);
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

namespace {

// Four lanes, so that the products do not wait for each other.
uint64_t Hash(std::span<const uint32_t> words) {
  uint64_t lanes[4] = {1, 2, 3, 4};
  size_t i = 0;
  for (; i + 8 <= words.size(); i += 8) {
    uint64_t block[4];
    std::memcpy(block, &words[i], sizeof block);
    for (int k = 0; k < 4; ++k) {
      lanes[k] = (lanes[k] ^ block[k]) * 0xD6E8FEB86659FD93u;
      lanes[k] ^= lanes[k] >> 32;
    }
  }
  for (; i < words.size(); ++i) lanes[0] = (lanes[0] ^ words[i]) * 0xD6E8FEB86659FD93u;
  uint64_t hash = 0;
  for (const uint64_t lane : lanes) hash = (hash ^ lane ^ (lane >> 29)) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 32);
}

}  // namespace

std::shared_ptr<const Mask> MaskPool::Intern(std::vector<uint32_t> words) {
  const uint64_t hash = Hash(words);
  const auto [first, last] = masks_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (std::ranges::equal(it->second->words(), words)) return it->second;
  }
  const size_t cost = words.size() * 4 + 128;
  if (bytes_ + cost > max_bytes_) {
    masks_.clear();
    bytes_ = 0;
  }
  bytes_ += cost;
  auto mask = std::make_shared<const Mask>(next_id_++, std::move(words));
  masks_.emplace(hash, mask);
  return mask;
}

}  // namespace pawl
