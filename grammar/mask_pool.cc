#include "grammar/mask_pool.h"

#include <algorithm>
#include <bit>

namespace pawl {

Mask::Mask(MaskId id, std::vector<uint32_t> words) : id_(id), words_(std::move(words)) {
  for (size_t i = 0; i < words_.size(); ++i) {
    if (words_[i] == 0) continue;
    if (first_ == kNoToken)
      first_ = static_cast<TokenId>(i * 32 + static_cast<size_t>(std::countr_zero(words_[i])));
    count_ += std::popcount(words_[i]);
  }
}

std::vector<TokenId> Mask::Tokens() const {
  std::vector<TokenId> out;
  out.reserve(static_cast<size_t>(count_));
  for (size_t i = 0; i < words_.size(); ++i) {
    for (uint32_t rest = words_[i]; rest != 0; rest &= rest - 1) {
      out.push_back(static_cast<TokenId>(i * 32 + static_cast<size_t>(std::countr_zero(rest))));
    }
  }
  return out;
}

std::shared_ptr<const Mask> MaskPool::Intern(std::vector<uint32_t> words) {
  uint64_t hash = 0x9E3779B97F4A7C15u;
  for (const uint32_t word : words) hash = (hash ^ word) * 0xD6E8FEB86659FD93u, hash ^= hash >> 32;
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
