// Floats rounded to the blocks of GGUF's tensor types: the inverse of gguf_blocks.h.
//
//   EncodeBlocks("Q4_K", row, cols, out);  // cols / 256 blocks of 144 bytes
#ifndef PAWL_SRC_MODEL_GGUF_ENCODE_H_
#define PAWL_SRC_MODEL_GGUF_ENCODE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pawl {

// F32, F16, BF16, Q8_0, Q6_K, Q5_K, Q5_0, Q5_1, Q4_K, Q4_0, Q4_1, IQ4_NL, IQ4_XS, Q3_K, Q2_K.
bool CanEncode(std::string_view dtype);

// `cols` finite floats, a multiple of the block's elements, of at most kMostEncoded in size (F32
// and BF16: any). Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, F16 and BF16 are those of gguf-py bit for bit.
// Others look for scales with a small squared error, as ggml does without an importance matrix.
// REQUIRES: CanEncode(dtype).
void EncodeBlocks(std::string_view dtype, const float* row, int64_t cols, std::byte* out);
// The largest half.
constexpr float kMostEncoded = 65504.0f;

// How one type's blocks are made.
struct BlockEncoder {
  const char* name;
  int64_t elements, bytes;
  void (*encode)(const float* x, uint8_t* block);
};
// The types of 256 weights a block (gguf_encode_k.cc), nullptr for others.
const BlockEncoder* FindSuperBlockEncoder(std::string_view dtype);

// The index of the value of IQ4's table that is nearest to x.
int NearestIq4(float x);
// The scale of `count` weights in the table of IQ4 with the least squared error, large weights
// counting most; 0 where all are 0.
float FitIq4(const float* x, int count);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_GGUF_ENCODE_H_
