// The head and the draw in one launch: tokens from the last rows of a forward pass, without logits
// in memory and without reading rows of the head that nobody allows. Kernel: head.cuh.
#ifndef PAWL_KERNELS_CUDA_HEAD_H_
#define PAWL_KERNELS_CUDA_HEAD_H_

#include <cstdint>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/matmul.h"
#include "src/base/draw.h"

namespace pawl::PAWL_GPU {

// Where the blocks of a launch meet. Zeros before the first launch; each launch leaves zeros.
struct HeadState {
  DrawKey best[kMostSkinnyRows];
  int32_t blocks_done;
};

// What there is to know about the rows, in device memory, so that launches are the same for all.
struct HeadRows {
  // Rows of the masks; kEveryToken, kNoTokenWanted.
  int32_t masks[kMostSkinnyRows];
  int32_t limits[kMostSkinnyRows];  // tokens from here on are not allowed
  float temperatures[kMostSkinnyRows];
  uint64_t seeds[kMostSkinnyRows];
  uint64_t positions[kMostSkinnyRows];
  int32_t list_count;
};
constexpr int32_t kEveryToken = -1;
constexpr int32_t kNoTokenWanted = -2;  // the row is not computed; its token is kNothingAllowed

// What the kernels find.
struct HeadAnswers {
  int32_t tokens[kMostSkinnyRows];      // or kNothingAllowed, kBrokenLogits
  int32_t not_finite[kMostSkinnyRows];  // of products that give logits (MatMul::not_finite)
};

// tokens[r] is what Sampler of src/decode/sampler.h draws from head . norm(x[r]) with a temperature
// and no filters, whatever the number of rows and in whatever order blocks run.
struct HeadSample {
  // One part; bias, up, y, gate, add and the row list are not looked at.
  MatMul product;
  const uint32_t* masks = nullptr;
  int64_t masks_stride = 0;
  const HeadRows* rows = nullptr;
  // Not null: the tokens that any row allows, ascending, rows->list_count of them, at most
  // most_listed. Otherwise blocks find them in the masks.
  const int32_t* list = nullptr;
  int most_listed = 0;
  HeadState* state = nullptr;
  HeadAnswers* answers = nullptr;
};

// Errors: kInternal when the launch fails.
Status RunHeadSample(const HeadSample& args, Stream stream);

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_HEAD_H_
