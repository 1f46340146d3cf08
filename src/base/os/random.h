// Random numbers of the system.
#ifndef PAWL_SRC_BASE_OS_RANDOM_H_
#define PAWL_SRC_BASE_OS_RANDOM_H_

#include <cstdint>

namespace pawl::os {

// A start for generators of random numbers, another one at each call. Not std::random_device, which
// reads a file with some C++ libraries and throws where that file is not there.
uint64_t RandomSeed();

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_RANDOM_H_
