// The memory for keys and values on a device: its size, where a layer's lie, and copies of slots.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "src/model/transformer_cuda.h"

namespace pawl::PAWL_GPU {
namespace {

constexpr int64_t kLeastKept = int64_t{64} << 20;

}  // namespace

Status TransformerCuda::AllocateCache() {
  const int64_t layer_bytes =
      int64_t{same_.kv_heads} * kPageSize * HeadStride(same_.head_dim) * CacheBytes(options_.cache);
  const int64_t page_bytes = layer_bytes * 2 * config_.layer_count();
  int64_t bytes = options_.kv_bytes;
  if (bytes <= 0) {
    const Result<DeviceFacts> device = CurrentDevice();
    if (!device.ok()) return device.error();
    bytes = std::max<int64_t>(device->free_bytes - BytesLater(), 0) / 10 * 9;
    // No more than a few thousand sequences could ever use.
    bytes = std::min(bytes, (int64_t{config_.context_length} / kPageSize + 1) * page_bytes * 4096);
  }
  const int64_t pages = std::min<int64_t>(bytes / page_bytes, kMostPages);
  if (pages < 1) {
    return Error{ErrorCode::kLimit,
                 "a key-value memory of " + std::to_string(bytes) +
                     " bytes does not hold a page of " + std::to_string(page_bytes),
                 "cuda"};
  }
  Result<DeviceMemory> memory = DeviceMemory::Make(pages * page_bytes);
  if (!memory.ok()) return memory.error();
  cache_ = *std::move(memory);
  // Once: what pads heads, and what is not written yet, is a number.
  if (Status status = Fill(cache_.data(), 0, pages * page_bytes, stream_); !status.ok()) {
    return status;
  }
  cache_half_ = pages * layer_bytes;
  int64_t kept = options_.kept_kv_bytes;
  if (kept < 0) {
    kept = std::max(PagesFor(config_.context_length) * page_bytes, kLeastKept);
    kept = std::min(kept, pages * page_bytes / 4);
  }
  KvLimits limits;
  limits.pages = static_cast<int32_t>(pages);
  limits.kept_pages = static_cast<int32_t>(std::min(kept / page_bytes, pages));
  sequences_ = std::make_unique<KvSequences>(limits, config_.context_length);
  return {};
}

KvMemory TransformerCuda::kv_memory() const {
  const KvPool& pool = sequences_->pool();
  return {kPagePositions, pool.pages(), pool.available(),
          cache_half_ / pool.pages() * 2 * config_.layer_count(), pool.pages()};
}

Cache TransformerCuda::CacheOf(int layer) const {
  char* keys = cache_.as<char>() + 2 * layer * cache_half_;
  return {keys, keys + cache_half_, options_.cache, same_.kv_heads, same_.head_dim};
}

Status TransformerCuda::Copy(std::span<const SlotCopy> copies) {
  if (copies.empty()) return {};
  static_assert(sizeof(SlotCopy) == 2 * sizeof(int32_t));
  const auto bytes = static_cast<int64_t>(copies.size_bytes());
  if (Status status = Grow(moves_, bytes, true); !status.ok()) return status;
  std::memcpy(moves_.pinned, copies.data(), copies.size_bytes());
  if (Status status = CopyIn(moves_.device.data(), moves_.pinned, bytes, stream_); !status.ok()) {
    return status;
  }
  MoveSlots args;
  args.first = CacheOf(0);
  args.layer_stride = 2 * cache_half_;
  args.layers = config_.layer_count();
  args.moves = moves_.device.as<int32_t>();
  args.count = static_cast<int>(copies.size());
  if (Status status = RunMoveSlots(args, stream_); !status.ok()) return status;
  return Synchronize(stream_);
}

Status TransformerCuda::CommitTree(SequenceId sequence, int row) {
  if (Status status = sequences_->CommitTree(sequence, row, copies_); !status.ok()) return status;
  return Copy(copies_);
}

Status TransformerCuda::CopySequence(SequenceId from, SequenceId to) {
  if (!config_.both_sides) return Model::CopySequence(from, to);
  if (Status status = sequences_->Copy(from, to, copies_); !status.ok()) return status;
  return Copy(copies_);
}

int TransformerCuda::ReuseCopying(SequenceId sequence, std::span<const TokenId> tokens) {
  if (config_.both_sides) return ReusePrefix(sequence, tokens);
  const int length = sequences_->ReuseCopying(sequence, tokens, copies_);
  if (Copy(copies_).ok()) return length;
  // They are computed.
  const int known = length - static_cast<int>(copies_.size());
  Truncate(sequence, known);
  return known;
}

}  // namespace pawl::PAWL_GPU
