// Linux tells what a processor has by auxiliary vectors and counts those that the process may use;
// macOS has sysctl.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "src/base/os/processors.h"

#if defined(__linux__)
#include <sched.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace pawl::os {

int AvailableProcessors() {
#if defined(__linux__)
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int64_t CacheBytes([[maybe_unused]] int level) {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  const int name = level == 2 ? _SC_LEVEL2_CACHE_SIZE : _SC_LEVEL3_CACHE_SIZE;
  return std::max<int64_t>(0, ::sysconf(name));
#else
  return 0;
#endif
}

void NameThread([[maybe_unused]] const char* name) {
#if defined(__linux__)
  (void)::pthread_setname_np(::pthread_self(), name);
#elif defined(__APPLE__)
  (void)::pthread_setname_np(name);
#endif
}

int SystemThreadId() {
#if defined(__linux__)
  return static_cast<int>(::syscall(SYS_gettid));
#else
  return 0;
#endif
}

void LowerPriority([[maybe_unused]] int system_id) {
#if defined(__linux__)
  constexpr int kNiceness = 19;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(system_id), kNiceness);
#endif
}

#if defined(__aarch64__) && defined(__APPLE__)
namespace {
bool SystemSays(const char* name) {
  int value = 0;
  size_t size = sizeof value;
  return ::sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
}
}  // namespace
#endif

ArmFeatures AskArmFeatures() {
  ArmFeatures features;
#if defined(__aarch64__) && defined(__linux__)
  // The bits of asm/hwcap.h, which older systems' headers lack.
  constexpr unsigned long kDotProduct = 1ul << 20, kI8mm = 1ul << 13, kBf16 = 1ul << 14;
  features.dot_product = (::getauxval(AT_HWCAP) & kDotProduct) != 0;
  features.i8mm = (::getauxval(AT_HWCAP2) & kI8mm) != 0;
  features.bf16 = (::getauxval(AT_HWCAP2) & kBf16) != 0;
#elif defined(__aarch64__) && defined(__APPLE__)
  features.dot_product = SystemSays("hw.optional.arm.FEAT_DotProd");
  features.i8mm = SystemSays("hw.optional.arm.FEAT_I8MM");
  features.bf16 = SystemSays("hw.optional.arm.FEAT_BF16");
#endif
  return features;
}

bool RequestTiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
  constexpr long kTileData = 18;               // the state component of XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace pawl::os
