// Processors and the threads that run on them.
#ifndef PAWL_SRC_BASE_OS_PROCESSORS_H_
#define PAWL_SRC_BASE_OS_PROCESSORS_H_

#include <cstdint>

namespace pawl::os {

// How many processors this process may use; at least 1.
int AvailableProcessors();
// Bytes of the cache of that level, 2 or 3; 0 where it cannot be told.
int64_t CacheBytes(int level);

// The name under which the calling thread stands in top, ps and debuggers. At most 15 bytes. Does
// nothing where the system has no such names.
void NameThread(const char* name);

// A thread that gets less of the processors than others, where the system knows such a thing. A
// thread cannot take that back.
//
//   const int id = os::SystemThreadId();   // on the thread itself
//   os::LowerPriority(id);                 // on any thread
int SystemThreadId();
void LowerPriority(int system_id);

// What of 64-bit ARM beyond its first version the system says is there; nothing on others.
struct ArmFeatures {
  bool dot_product = false, i8mm = false, bf16 = false;
};
ArmFeatures AskArmFeatures();
// Asks the system for AMX's tiles; false where it refuses or knows none.
bool RequestTiles();

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_PROCESSORS_H_
