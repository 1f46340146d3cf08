// Which of the files of a repository are the model. The files are names with '/' between folders,
// as a hub or a walk through a folder lists them.
//
//   const Result<ModelChoice> choice = ChooseModel(names, "");        // Q4_K_M where there is one
//   const Result<ModelChoice> choice = ChooseModel(names, "Q8_0");    // a type
//   const Result<ModelChoice> choice = ChooseModel(names, "a-Q8_0.gguf");
#ifndef PAWL_SRC_ENGINE_MODEL_CHOICE_H_
#define PAWL_SRC_ENGINE_MODEL_CHOICE_H_

#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl {

// The type that a GGUF file's name says, in upper case: "Q4_K_M" of "a-q4_k_m.gguf",
// "UD-Q4_K_XL"; empty where it says none.
std::string TypeInName(std::string_view file);

struct ModelChoice {
  // The files of weights: GGUF files, the first one of a split model first. Empty: the model is the
  // folder with its safetensors files.
  std::vector<std::string> gguf;
};

// `wanted`: a GGUF file among `names`, a type, "safetensors", or empty. Without it a folder with
// safetensors files is the model, then the only GGUF file, then the one of type Q4_K_M, then Q8_0.
// Files of projectors (mmproj) and importance matrices are no models. The parts of a split model
// are one.
// Errors: kIo without a place where there is no such file, or a part is missing; the message lists
// what there is. kInvalid where several files fit.
Result<ModelChoice> ChooseModel(const std::vector<std::string>& names, std::string_view wanted);

// The GGUF files that are models, sorted: one for a split model, no projectors.
std::vector<std::string> GgufModels(const std::vector<std::string>& names);

// The names that the index of a sharded checkpoint lists, sorted. Errors: kInvalid with the place
// in the index; a name that leads out of the folder is one.
Result<std::vector<std::string>> ShardsOfIndex(std::string_view index);

// Whether a name that a hub or a manifest gives may become a path: relative, no empty part, neither
// "." nor "..", no control characters, no backslash, at most 512 bytes.
bool IsPlainName(std::string_view name);

inline constexpr const char* kShardIndex = "model.safetensors.index.json";
inline constexpr const char* kOneShard = "model.safetensors";

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_MODEL_CHOICE_H_
