#include "grammar/mask_memo.h"

#include <cstring>
#include <mutex>

namespace pawl {

std::shared_ptr<const Mask> MaskMemo::Find(Machine::Key key) const {
  const Shard& shard = shards_[ShardOf(key)];
  std::shared_lock lock(shard.mutex);
  const auto it = shard.masks.find(key);
  return it == shard.masks.end() ? nullptr : it->second;
}

int64_t MaskMemo::Copy(Machine::Key key, std::span<uint32_t> row) const {
  const Shard& shard = shards_[ShardOf(key)];
  std::shared_lock lock(shard.mutex);
  const auto it = shard.masks.find(key);
  if (it == shard.masks.end()) return -1;
  const std::span<const uint32_t> words = it->second->words();
  std::memcpy(row.data(), words.data(), words.size_bytes());
  return it->second->count();
}

void MaskMemo::Keep(Machine::Key key, const std::shared_ptr<const Mask>& mask) {
  Shard& shard = shards_[ShardOf(key)];
  std::unique_lock lock(shard.mutex);
  shard.masks.emplace(key, mask);
}

void MaskMemo::Clear() {
  for (Shard& shard : shards_) {
    std::unordered_map<Machine::Key, std::shared_ptr<const Mask>> forgotten;
    std::unique_lock lock(shard.mutex);
    forgotten.swap(shard.masks);  // freed after the lock is
    lock.unlock();
  }
}

}  // namespace pawl
