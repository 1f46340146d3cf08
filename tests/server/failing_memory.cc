// The operator new of the program counts for the thread that asked for it, and is malloc otherwise.
#include "tests/server/failing_memory.h"

#include <cstdlib>
#include <new>

namespace pawl::server {
namespace {

thread_local int64_t allocations_left = -1;  // below zero: all succeed
thread_local bool fails_once = false, allocation_failed = false;

void* Allocate(size_t size) {
  if (allocations_left == 0) {
    allocation_failed = true;
    if (fails_once) allocations_left = -1;
    return nullptr;
  }
  if (allocations_left > 0) --allocations_left;
  return std::malloc(size == 0 ? 1 : size);
}

}  // namespace

Failing::Failing(int64_t left, bool once) {
  allocation_failed = false;
  fails_once = once;
  allocations_left = left;
}
Failing::~Failing() { allocations_left = -1; }
bool Failing::failed() { return allocation_failed; }

}  // namespace pawl::server

void* operator new(size_t size) {
  void* const memory = pawl::server::Allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return pawl::server::Allocate(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { std::free(memory); }
