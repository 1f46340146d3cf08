// getentropy, a call of the system that needs no file. A kernel that has none leaves the clock.
#include <unistd.h>

#include <chrono>

#include "src/base/os/random.h"

#if defined(__APPLE__)
#include <sys/random.h>
#endif

namespace pawl::os {

uint64_t RandomSeed() {
  uint64_t seed = 0;
  if (::getentropy(&seed, sizeof seed) == 0) return seed;
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return static_cast<uint64_t>(now) * 0x9E3779B97F4A7C15u ^ static_cast<uint64_t>(::getpid());
}

}  // namespace pawl::os
