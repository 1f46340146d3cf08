// The names by which users choose how a model is kept and where it runs, in the order of the
// choices' values. The command and Python read the same ones.
#ifndef PAWL_SRC_ENGINE_OPTION_NAMES_H_
#define PAWL_SRC_ENGINE_OPTION_NAMES_H_

#include <optional>
#include <span>
#include <string_view>

#include "pawl/engine.h"
#include "pawl/generation.h"
#include "src/base/names.h"

namespace pawl {

inline std::span<const char* const> OptionNames(WeightDtype) {
  static constexpr const char* kNames[] = {"stored", "fp32", "bf16", "fp16", "int8", "int4", "fp8"};
  return kNames;
}
inline std::span<const char* const> OptionNames(KernelVariant) {
  static constexpr const char* kNames[] = {"auto",        "portable", "avx2",      "avx512",
                                           "avx512-vnni", "amx",      "amx-bf16",  "avx512-bf16",
                                           "neon",        "neon-dot", "neon-i8mm", "neon-bfmmla"};
  return kNames;
}
inline std::span<const char* const> OptionNames(Device) {
  static constexpr const char* kNames[] = {"cpu", "cuda", "auto"};
  return kNames;
}
inline std::span<const char* const> OptionNames(KvDtype) {
  static constexpr const char* kNames[] = {"bf16", "fp8", "fp32"};
  return kNames;
}
inline std::span<const char* const> OptionNames(AtBudget) {
  static constexpr const char* kNames[] = {"close", "close_or_cut", "cut"};
  return kNames;
}

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_OPTION_NAMES_H_
