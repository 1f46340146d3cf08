// Masks on a CUDA device, for engines that have logits there: component `cuda` of the package.
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
// A mask is a row of 32-bit words; bit t % 32 of word t / 32 is set where token t is allowed (what
// Mask::words() and Matcher::FillMask give). Every pointer is device memory, sizes and
// offsets are 64 bits wide, and rows can be named through lists, so that a batch, the nodes of
// draft trees, or any part of either is one call. Functions put their kernels on a stream (a
// cudaStream_t, null for the default one) and return at once; they are thread-safe for different
// memory. Errors (kInternal): a launch failed. They run on devices of compute capability 8.0 and
// later.
#ifndef PAWL_CUDA_KERNELS_H_
#define PAWL_CUDA_KERNELS_H_

#include <cstdint>

#include "pawl/result.h"

namespace pawl {

enum class LogitType : uint8_t { kF32, kF16, kBf16 };

// For each i < count, the row logit_rows[i] of the logits gets mask mask_rows[i]: where the bit of
// token t is clear, its logit becomes -infinity; others stay as they are. Bits from `vocabulary` on
// are not looked at. A row may be named once only.
struct BitmaskArgs {
  void* logits = nullptr;
  LogitType type = LogitType::kF32;
  int64_t logits_stride = 0;  // elements from one row to the next
  int64_t vocabulary = 0;
  const uint32_t* masks = nullptr;
  int64_t masks_stride = 0;             // words from one mask to the next
  const int32_t* logit_rows = nullptr;  // null: row i
  const int32_t* mask_rows = nullptr;   // null: mask i; a negative entry: no mask, the row stays
  int32_t count = 0;
};

// What the functions below read: rows of logits, each with a mask. As BitmaskArgs, but `masks` may
// be null for none at all, and a row may be named more than once.
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

// One token for each row: argmax over the allowed tokens of logit / temperature + Gumbel noise, the
// lowest id among equals; at temperature 0 without noise. The noise is a pure
// function of (seed, position, token), Philox4x32-10 as in src/base/random.h, so the same arguments
// give the same token in any batch. Logits of -infinity are never chosen unless all allowed ones
// are, which then count as equal.
struct SampleArgs {
  MaskedRows rows;
  const float* temperatures = nullptr;  // [count], or null for 0
  const uint64_t* seeds = nullptr;      // [count], or null for 0
  const uint64_t* positions = nullptr;  // [count], or null for 0
  int32_t* tokens = nullptr;            // [count]; kNothingAllowed or kBrokenLogits where they are
  void* workspace = nullptr;            // WorkspaceBytes(count, vocabulary), 16-byte aligned
};
constexpr int32_t kNothingAllowed = -1;
constexpr int32_t kBrokenLogits = -2;  // an allowed logit is NaN or +infinity

// out[i][t] = logit - log(sum over allowed tokens of e^logit), -infinity where t is not allowed.
struct LogSoftmaxArgs {
  MaskedRows rows;
  float* out = nullptr;  // row i at out + i * out_stride
  int64_t out_stride = 0;
  void* workspace = nullptr;
};

// The k allowed tokens with the largest logits, in falling order, the lower id first among equals,
// with their log-probabilities among the allowed ones. Beyond the number of allowed tokens: token
// -1, -infinity.
struct TopKArgs {
  MaskedRows rows;
  int32_t k = 0;              // 1 .. kMostTopK
  int32_t* tokens = nullptr;  // [count][k]
  float* logprobs = nullptr;  // [count][k]
  void* workspace = nullptr;
};
constexpr int32_t kMostTopK = 64;

namespace cuda {

// Device memory that the functions with a `workspace` need for so many rows.
int64_t WorkspaceBytes(int64_t count, int64_t vocabulary);

Status ApplyBitmask(const BitmaskArgs& args, void* stream);
Status Sample(const SampleArgs& args, void* stream);
Status LogSoftmax(const LogSoftmaxArgs& args, void* stream);
Status TopK(const TopKArgs& args, void* stream);

}  // namespace cuda
}  // namespace pawl

#endif  // PAWL_CUDA_KERNELS_H_
