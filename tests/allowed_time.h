// How much processor time a test may take that guards against running away: what is quadratic there
// would take minutes. The bound is for a fast machine and a release build; on a slow one, or under
// a sanitizer, it grows with what a fixed piece of work takes.
#ifndef PAWL_TESTS_ALLOWED_TIME_H_
#define PAWL_TESTS_ALLOWED_TIME_H_

#include <algorithm>
#include <ctime>
#include <map>
#include <string>

namespace pawl {

inline double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

inline double AllowedSeconds(double seconds) {
  constexpr double kFast = 0.008;  // of this work, on a fast machine
  constexpr int kNames = 20'000;
  const double begin = ProcessorSeconds();
  std::map<std::string, int> names;
  for (int i = 0; i < kNames; ++i) names["name " + std::to_string(i * 7919 % kNames)] += i;
  const double work = ProcessorSeconds() - begin;
  return seconds * std::max(1.0, work / kFast) + (names.empty() ? 1.0 : 0.0);
}

}  // namespace pawl

#endif  // PAWL_TESTS_ALLOWED_TIME_H_
