// Memory of both modules. operator new is here because that of the C++ library was built without
// exceptions: it ends the program where memory runs out. This one throws, and Guard of
// src/capi/handles.h makes a status of it. The page decides how much memory there is.
#include <algorithm>
#include <cstdlib>
#include <new>

void* operator new(size_t size) {
  if (void* const memory = std::malloc(std::max<size_t>(size, 1))) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t align) {
  const auto to = static_cast<size_t>(align);
  if (void* const memory = std::aligned_alloc(to, (std::max<size_t>(size, 1) + to - 1) / to * to))
    return memory;
  throw std::bad_alloc();
}
void* operator new[](size_t size) { return operator new(size); }
void* operator new[](size_t size, std::align_val_t align) { return operator new(size, align); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" {
void* pawl_wasm_allocate(size_t size) { return std::malloc(std::max<size_t>(size, 1)); }
void pawl_wasm_release(void* memory) { std::free(memory); }
}
