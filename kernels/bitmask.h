// Applying token masks to logits: the arguments that the CPU and the CUDA kernel share, and the CPU
// kernel.
#ifndef PAWL_KERNELS_BITMASK_H_
#define PAWL_KERNELS_BITMASK_H_

#include <cstdint>

namespace pawl {

enum class LogitType : uint8_t { kF32, kF16, kBf16 };

// For each i < count, the row logit_rows[i] of the logits gets mask mask_rows[i]: where bit t % 32
// of word t / 32 is clear, the logit of token t becomes -infinity; others stay as they are. Bits
// from `vocabulary` on are not looked at. A row may be named once only.
struct BitmaskArgs {
  void* logits = nullptr;
  LogitType type = LogitType::kF32;
  int64_t logits_stride = 0;  // elements from one row to the next
  int64_t vocabulary = 0;
  const uint32_t* masks = nullptr;
  int64_t masks_stride = 0;             // words from one mask to the next
  const int32_t* logit_rows = nullptr;  // null: row i
  const int32_t* mask_rows = nullptr;   // null: mask i
  int32_t count = 0;
};

// In place, on the calling thread. Per row at most vocabulary / 8 bytes are read, and only refused
// logits are written.
void ApplyBitmask(const BitmaskArgs& args);

}  // namespace pawl

#endif  // PAWL_KERNELS_BITMASK_H_
