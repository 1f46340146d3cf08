// Particles: populations of weighted outputs that a model writes side by side (sequential Monte
// Carlo). A population of one is an independent weighted output (kAwrs); without checks its draws
// are those of masks (kGcd).
#ifndef PAWL_SRC_DECODE_SAMPLING_PARTICLES_H_
#define PAWL_SRC_DECODE_SAMPLING_PARTICLES_H_

#include <vector>

#include "pawl/result.h"
#include "pawl/sampling.h"
#include "src/base/thread_pool.h"
#include "src/decode/sampling/branches.h"
#include "src/decode/sampling/output_so_far.h"
#include "src/model/model.h"

namespace pawl {

// What a sampler runs on.
struct SamplerSetting {
  Model& model;
  std::vector<TokenId> prompt;
  SamplingTask task;
  const SamplerOptions& options;
  ThreadPool& pool;
  // Tokens are drawn as this one says, and weighted as the other one does; nullptr: none. Its
  // vocabulary is that of the other.
  Model* proposal = nullptr;
  int capacity = 0;            // positions of a sequence
  BranchHost* host = nullptr;  // runs the rows of `model`; nullptr: the model by itself
};

// kGcd, kAwrs and kSmc. Errors: those of the models and the checks.
Result<SamplerResult> SampleWithParticles(const SamplerSetting& setting);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_PARTICLES_H_
