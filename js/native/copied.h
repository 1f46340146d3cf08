// What a function of a module gives to JavaScript: a copy in memory that the caller releases.
#ifndef PAWL_JS_NATIVE_COPIED_H_
#define PAWL_JS_NATIVE_COPIED_H_

#include <algorithm>
#include <cstdlib>
#include <new>

namespace pawl::capi {

// nullptr for nothing.
template <typename T>
T* Copied(const T* data, size_t count) {
  if (count == 0) return nullptr;
  T* const copy = static_cast<T*>(std::malloc(count * sizeof(T)));
  if (copy == nullptr) throw std::bad_alloc();
  std::copy_n(data, count, copy);
  return copy;
}

}  // namespace pawl::capi

#endif  // PAWL_JS_NATIVE_COPIED_H_
