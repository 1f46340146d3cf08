// The models in the stores of this machine.
//
//   for (const ListedModel& model : ListModels(paths)) Print(model.name);
#ifndef PAWL_SRC_ENGINE_MODEL_LIST_H_
#define PAWL_SRC_ENGINE_MODEL_LIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pawl/engine.h"
#include "pawl/result.h"

namespace pawl {

struct ListedModel {
  std::string name;    // as ResolveModel takes it
  std::string path;    // empty where the name leads to none
  std::string family;  // "Qwen3ForCausalLM", "qwen3"; empty: unknown
  std::string type;    // "Q4_K_M", "BF16"; empty: unknown
  uint64_t bytes = 0;  // of the weights in files
  // Why it does not run here; nullopt: it does. Found by reading the tokenizer and the headers of
  // the weights.
  std::optional<Error> problem;
};

// Sorted by store and name. What is in a store but has not its layout is left out.
std::vector<ListedModel> ListModels(const ModelPaths& paths);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_MODEL_LIST_H_
