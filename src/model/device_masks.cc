// Least recently used goes first. A row's words are copied to its own place in pinned memory, from
// where the device takes them while the host goes on; the place is not written again before the
// next step, when the copy has arrived.
#include "src/model/device_masks.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace pawl::PAWL_GPU {

Result<std::unique_ptr<DeviceMasks>> DeviceMasks::Make(int vocabulary, int rows) {
  std::unique_ptr<DeviceMasks> masks(new DeviceMasks());
  masks->stride_ = (int64_t{vocabulary} + 31) / 32;
  masks->rows_ = rows;
  const int64_t bytes = masks->stride_ * rows * 4;
  Result<DeviceMemory> memory = DeviceMemory::Make(bytes);
  if (!memory.ok()) return memory.error();
  masks->memory_ = *std::move(memory);
  Result<void*> pinned = AllocatePinned(bytes);
  if (!pinned.ok()) return pinned.error();
  masks->pinned_ = static_cast<uint32_t*>(*pinned);
  return masks;
}

DeviceMasks::~DeviceMasks() { FreePinned(pinned_); }

void DeviceMasks::NextStep() { ++step_; }

Result<int32_t> DeviceMasks::RowOf(const std::shared_ptr<const Mask>& mask, Stream stream) {
  const auto found = found_.find(mask.get());
  if (found != found_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    found->second->step = step_;
    return found->second->row;
  }
  int32_t row = static_cast<int32_t>(entries_.size());
  if (row == rows_) {
    if (entries_.back().step == step_) {
      return Error{ErrorCode::kLimit,
                   "more than " + std::to_string(rows_) + " different masks in one step", "cuda"};
    }
    row = entries_.back().row;
    found_.erase(entries_.back().mask.get());
    entries_.pop_back();
  }
  uint32_t* to = pinned_ + row * stride_;
  const std::span<const uint32_t> words = mask->words();
  const auto count = std::min(words.size(), static_cast<size_t>(stride_));
  std::copy_n(words.begin(), count, to);
  std::fill(to + count, to + stride_, 0u);
  Status status = CopyIn(memory_.as<uint32_t>() + row * stride_, to, stride_ * 4, stream);
  if (!status.ok()) return status.error();
  ++uploads_;
  entries_.push_front({mask, row, step_});
  found_[mask.get()] = entries_.begin();
  return row;
}

}  // namespace pawl::PAWL_GPU
