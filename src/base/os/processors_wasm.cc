// A module of WebAssembly has one thread, and no names for it.
#include "src/base/os/processors.h"

namespace pawl::os {

int AvailableProcessors() { return 1; }
int64_t CacheBytes(int) { return 0; }
void NameThread(const char*) {}
int SystemThreadId() { return 0; }
void LowerPriority(int) {}
ArmFeatures AskArmFeatures() { return {}; }
bool RequestTiles() { return false; }

}  // namespace pawl::os
