// A run of a sampler from what a caller has: a model, a prompt, a constraint, options.
#ifndef PAWL_SRC_DECODE_SAMPLING_RUN_H_
#define PAWL_SRC_DECODE_SAMPLING_RUN_H_

#include <functional>
#include <memory>
#include <vector>

#include "pawl/result.h"
#include "pawl/sampling.h"
#include "pawl/vocabulary.h"
#include "src/base/thread_pool.h"
#include "src/decode/constraint.h"
#include "src/decode/sampling/prefix_trie.h"
#include "src/decode/work.h"
#include "src/model/model.h"

namespace pawl {

struct SamplerInput {
  Model& model;
  const Vocabulary& vocabulary;
  std::vector<TokenId> prompt;
  std::shared_ptr<const Constraint> constraint;  // nullptr: none
  ThreadPool& pool;
  Model* proposal = nullptr;
  // What kAsap, kArs and kCars learn is kept here; nullptr: for this run alone. It is of
  // one model, prompt, constraint, temperature, max_tokens and set of checks; kArs needs one
  // of its own.
  PrefixTrie* trie = nullptr;
};

// Errors: kInvalid with the option as place; kLimit for a prompt that is too long ("prompt"); those
// of the model and the checks.
Result<SamplerResult> RunSampler(const SamplerInput& input, const SamplerOptions& options);

// The same as a work of a batch (BatchEngine::Add), whose calls it shares. What `input` refers to
// outlives the work. Checks and callbacks of the options are
// called on a thread of the work, `done` on the thread of the batch.
std::unique_ptr<Work> MakeSamplerWork(SamplerInput input, SamplerOptions options,
                                      std::function<void(Result<SamplerResult>)> done);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_RUN_H_
