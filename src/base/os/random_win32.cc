// rand_s of the C library, which asks the system.
#ifndef _CRT_RAND_S
#define _CRT_RAND_S
#endif
#include <cstdlib>

#include "src/base/os/random.h"

namespace pawl::os {

uint64_t RandomSeed() {
  unsigned high = 0, low = 0;
  ::rand_s(&high);
  ::rand_s(&low);
  return uint64_t{high} << 32 | low;
}

}  // namespace pawl::os
