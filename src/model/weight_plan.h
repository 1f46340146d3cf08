// What the weights of a model will take: found in the headers of its files, before the weights are
// read.
//
//   const Result<WeightPlan> plan = PlanWeights("model.gguf", WeightDtype::kAsStored);
//   if (plan.ok()) Reserve(plan->memory_bytes);
#ifndef PAWL_SRC_MODEL_WEIGHT_PLAN_H_
#define PAWL_SRC_MODEL_WEIGHT_PLAN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pawl/engine.h"
#include "pawl/result.h"

namespace pawl {

struct WeightPlan {
  int64_t memory_bytes = 0;  // those included that stay in the mapped file
  int64_t file_bytes = 0;
  // Bytes of the matrices of each dtype of the files ("Q4_K", "BF16"), the most first.
  std::vector<std::pair<std::string, int64_t>> types;
};

// Of a model folder or a GGUF file. Errors: those of LoadModel.
Result<WeightPlan> PlanWeights(const std::string& path, WeightDtype dtype);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_WEIGHT_PLAN_H_
