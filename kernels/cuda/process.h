// All that can be asked of a sampler, on rows of logits in device memory: penalties, mask,
// temperature, top-k, top-p, min-p, the draw. Rows that want a temperature and a mask only are
// drawn in the head itself (head.h).
#ifndef PAWL_KERNELS_CUDA_PROCESS_H_
#define PAWL_KERNELS_CUDA_PROCESS_H_

#include <cstdint>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/head.h"
#include "kernels/cuda/runtime.h"
#include "src/base/draw.h"

namespace pawl::PAWL_GPU {

struct ProcessRow {
  Penalties penalties;
  int32_t seen_begin = 0, seen_count = 0;  // of ProcessLogits::seen
  int32_t top_k = 0;                       // 0: off
  float top_p = 1.0f;                      // 1: off
  float least = -3.402823466e38f;          // log(min_p): the least logit beside the largest, / T
};

// tokens[r] is what Sampler of src/decode/sampler.h draws from row r. Penalties change the logits
// in place.
struct ProcessLogits {
  float* logits = nullptr;
  int64_t logits_stride = 0;
  int count = 0;
  const uint32_t* masks = nullptr;
  int64_t masks_stride = 0;
  const HeadRows* rows = nullptr;
  const ProcessRow* process = nullptr;  // [count]
  const int32_t* seen = nullptr;        // pairs: a token, and how often it is in the output
  HeadAnswers* answers = nullptr;
};
Status RunProcessLogits(const ProcessLogits& args, Stream stream);

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_PROCESS_H_
