// The names by which users choose how a model is kept and where it runs, in the order of the
// choices' values. The command and Python read the same ones.
#ifndef PAWL_SRC_ENGINE_OPTION_NAMES_H_
#define PAWL_SRC_ENGINE_OPTION_NAMES_H_

#include <optional>
#include <span>
#include <string_view>

#include "pawl/generation.h"
#include "pawl/model_options.h"

namespace pawl {

inline std::span<const char* const> ChoiceNames(WeightDtype) {
  static constexpr const char* kNames[] = {"stored", "fp32", "bf16", "fp16", "int8", "int4", "fp8"};
  return kNames;
}
inline std::span<const char* const> ChoiceNames(KernelVariant) {
  static constexpr const char* kNames[] = {"auto",        "portable", "avx2",     "avx512",
                                           "avx512-vnni", "amx",      "amx-bf16", "avx512-bf16"};
  return kNames;
}
inline std::span<const char* const> ChoiceNames(Device) {
  static constexpr const char* kNames[] = {"cpu", "cuda", "auto"};
  return kNames;
}
inline std::span<const char* const> ChoiceNames(KvDtype) {
  static constexpr const char* kNames[] = {"bf16", "fp8", "fp32"};
  return kNames;
}
inline std::span<const char* const> ChoiceNames(AtBudget) {
  static constexpr const char* kNames[] = {"close", "close_or_cut", "cut"};
  return kNames;
}

template <typename Choice>
std::optional<Choice> ChoiceOf(std::string_view name) {
  const std::span<const char* const> names = ChoiceNames(Choice());
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return static_cast<Choice>(i);
  }
  return std::nullopt;
}

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_OPTION_NAMES_H_
