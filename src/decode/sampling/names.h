// The names of what samplers, searches and checks let one choose, for all forms in which they are
// asked for: the command, C, Python, and the reports. OptionOf<SamplerKind>("smc") finds the value.
#ifndef PAWL_SRC_DECODE_SAMPLING_NAMES_H_
#define PAWL_SRC_DECODE_SAMPLING_NAMES_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "pawl/sampling.h"
#include "src/base/names.h"

namespace pawl {

// Each in the order of its values.
inline std::span<const char* const> OptionNames(SamplerKind) {
  static constexpr const char* kNames[] = {"gcd",  "fvo", "awrs", "smc",
                                           "asap", "rs",  "ars",  "cars"};
  return kNames;
}
inline std::span<const char* const> OptionNames(Fidelity) {
  static constexpr const char* kNames[] = {"fast", "aligned", "exact"};
  return kNames;
}
inline std::span<const char* const> OptionNames(Estimator) {
  static constexpr const char* kNames[] = {"two-loop", "recursive", "geometric"};
  return kNames;
}
inline std::span<const char* const> OptionNames(Resampling) {
  static constexpr const char* kNames[] = {"stratified", "systematic", "multinomial", "residual"};
  return kNames;
}
inline std::span<const char* const> OptionNames(EarlyStopping) {
  static constexpr const char* kNames[] = {"false", "true", "never"};
  return kNames;
}
inline std::span<const char* const> OptionNames(ForceIn) {
  static constexpr const char* kNames[] = {"text", "value"};
  return kNames;
}
inline std::span<const char* const> OptionNames(CheckGranularity) {
  static constexpr const char* kNames[] = {"byte", "token", "line", "complete"};
  return kNames;
}
inline std::span<const char* const> OptionNames(Verdict) {
  static constexpr const char* kNames[] = {"dead", "live", "accept", "unknown"};
  return kNames;
}

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_NAMES_H_
