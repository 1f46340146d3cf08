// Masks on a CUDA device, for engines whose logits are there: component `cuda` of the package.
//
//   pawl::BitmaskArgs args;
//   args.logits = logits;  // device memory, [rows][vocabulary] of bf16
//   args.type = pawl::LogitType::kBf16;
//   args.logits_stride = args.vocabulary = 128256;
//   args.masks = masks;    // device memory, [rows][4008] words
//   args.masks_stride = 4008;
//   args.count = rows;
//   pawl::Status status = pawl::cuda::ApplyBitmask(args, stream);
//
// A mask is a row of 32-bit words. Bit t % 32 of word t / 32 is 1 if token t is allowed, as in
// Mask::words() and Matcher::FillMask. Every pointer is device memory. Sizes and offsets have 64
// bits. Lists can name rows, so one call can handle a batch, the nodes of draft trees, or any part
// of them. The functions launch kernels on a stream (a cudaStream_t; null: the default stream) and
// return at once. They need compute capability 8.0 or later.
//
// Errors: kInternal if a launch fails.
//
// Thread safety: several threads may call the functions for different memory.
#ifndef PAWL_CUDA_KERNELS_H_
#define PAWL_CUDA_KERNELS_H_

#include <cstdint>

#include "pawl/result.h"

namespace pawl {

enum class LogitType : uint8_t { kF32, kF16, kBf16 };

// For each i < count, mask mask_rows[i] is applied to row logit_rows[i] of the logits: the logit of
// a token whose bit is 0 becomes -infinity. Other logits are unchanged. Bits from `vocabulary` on
// are ignored. A row may be named only once.
struct BitmaskArgs {
  void* logits = nullptr;
  LogitType type = LogitType::kF32;
  int64_t logits_stride = 0;  // elements from one row to the next
  int64_t vocabulary = 0;
  const uint32_t* masks = nullptr;
  int64_t masks_stride = 0;             // words from one mask to the next
  const int32_t* logit_rows = nullptr;  // null: row i
  const int32_t* mask_rows = nullptr;   // null: mask i; a negative entry: no mask for this row
  int32_t count = 0;
};

// The input of the functions below: rows of logits, each with a mask. The fields are those of
// BitmaskArgs. `masks` may be null for no masks, and a row may be named more than once.
struct MaskedRows {
  const void* logits = nullptr;
  LogitType type = LogitType::kF32;
  int64_t logits_stride = 0;
  int64_t vocabulary = 0;
  const uint32_t* masks = nullptr;
  int64_t masks_stride = 0;
  const int32_t* logit_rows = nullptr;
  const int32_t* mask_rows = nullptr;
  int32_t count = 0;
};

// Draws one token for each row: the argmax over the allowed tokens of logit / temperature + Gumbel
// noise. Of equal tokens the lowest id counts. At temperature 0 there is no noise. The noise is a
// pure function of (seed, position, token), Philox4x32-10 as in src/base/random.h, so the same
// arguments give the same token in any batch. A logit of -infinity is chosen only if all allowed
// logits are -infinity; these then count as equal.
struct SampleArgs {
  MaskedRows rows;
  const float* temperatures = nullptr;  // [count], or null for 0
  const uint64_t* seeds = nullptr;      // [count], or null for 0
  const uint64_t* positions = nullptr;  // [count], or null for 0
  int32_t* tokens = nullptr;            // [count]; may be kNothingAllowed or kBrokenLogits
  void* workspace = nullptr;            // WorkspaceBytes(count, vocabulary), 16-byte aligned
};
constexpr int32_t kNothingAllowed = -1;
constexpr int32_t kBrokenLogits = -2;  // an allowed logit is NaN or +infinity

// out[i][t] = logit - log(sum over allowed tokens of e^logit), or -infinity if t is not allowed.
struct LogSoftmaxArgs {
  MaskedRows rows;
  float* out = nullptr;  // row i at out + i * out_stride
  int64_t out_stride = 0;
  void* workspace = nullptr;
};

// The k allowed tokens with the largest logits, in falling order, with their log-probabilities
// among the allowed tokens. Of equal logits the lower id is first. If fewer than k tokens are
// allowed, the others are token -1 with -infinity.
struct TopKArgs {
  MaskedRows rows;
  int32_t k = 0;              // 1 .. kMostTopK
  int32_t* tokens = nullptr;  // [count][k]
  float* logprobs = nullptr;  // [count][k]
  void* workspace = nullptr;
};
constexpr int32_t kMostTopK = 64;

namespace cuda {

// The size in bytes of the `workspace` for `count` rows.
int64_t WorkspaceBytes(int64_t count, int64_t vocabulary);

Status ApplyBitmask(const BitmaskArgs& args, void* stream);
Status Sample(const SampleArgs& args, void* stream);
Status LogSoftmax(const LogSoftmaxArgs& args, void* stream);
Status TopK(const TopKArgs& args, void* stream);

}  // namespace cuda
}  // namespace pawl

#endif  // PAWL_CUDA_KERNELS_H_
