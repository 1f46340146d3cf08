// One counter for the kind that is armed. A thread finds out its kind by its name, and remembers it
// once the name is one of Pawl's; until then each allocation while something is armed asks again.
#include "tests/server/allocation_faults.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

namespace pawl::faults {
namespace {

constexpr const char* kNames[] = {"connection", "pawl-worker", "pawl-decoder", "pawl-pool",
                                  "caller"};

std::atomic<int> armed{-1};
std::atomic<int64_t> seen{0}, first{0}, last{0};
thread_local int kind = -1;  // -1: not known yet, -2: exempt

int MyKind() noexcept {
  if (kind != -1) return kind;
  char name[16] = "";
  (void)pthread_getname_np(pthread_self(), name, sizeof name);
  if (std::strcmp(name, "pawl-look") == 0) return kind = kPool;
  for (const int known : {kWorker, kDecoder, kPool}) {
    if (std::strcmp(name, kNames[known]) == 0) return kind = known;
  }
  return kOther;
}

bool Fails() noexcept {
  const int wanted = armed.load(std::memory_order_relaxed);
  if (wanted < 0 || MyKind() != wanted) return false;
  const int64_t n = seen.fetch_add(1, std::memory_order_relaxed) + 1;
  return n >= first.load(std::memory_order_relaxed) && n <= last.load(std::memory_order_relaxed);
}

}  // namespace

const char* NameOf(Kind k) { return kNames[k]; }
void Exempt() { kind = -2; }
void CountAsCaller() { kind = kCaller; }

void Arm(Kind k, int64_t nth, int64_t burst) {
  armed = -1;
  seen = 0;
  first = nth;
  last = nth == 0 ? -1 : nth + burst - 1;
  armed = k;
}

int64_t Disarm() {
  armed = -1;
  return seen;
}

void* Take(size_t size, size_t alignment) {
  void* const taken =
      Fails() ? nullptr
      : alignment > alignof(std::max_align_t)
          ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
          : std::malloc(size == 0 ? 1 : size);
  if (taken == nullptr) throw std::bad_alloc();
  return taken;
}

}  // namespace pawl::faults

void* operator new(size_t size) { return pawl::faults::Take(size, 0); }
void* operator new[](size_t size) { return pawl::faults::Take(size, 0); }
void* operator new(size_t size, std::align_val_t alignment) {
  return pawl::faults::Take(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return pawl::faults::Take(size, static_cast<size_t>(alignment));
}
void operator delete(void* taken) noexcept { std::free(taken); }
void operator delete[](void* taken) noexcept { std::free(taken); }
void operator delete(void* taken, size_t) noexcept { std::free(taken); }
void operator delete[](void* taken, size_t) noexcept { std::free(taken); }
void operator delete(void* taken, std::align_val_t) noexcept { std::free(taken); }
void operator delete[](void* taken, std::align_val_t) noexcept { std::free(taken); }
void operator delete(void* taken, size_t, std::align_val_t) noexcept { std::free(taken); }
void operator delete[](void* taken, size_t, std::align_val_t) noexcept { std::free(taken); }
