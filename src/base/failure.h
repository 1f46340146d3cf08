// What an exception becomes where it ends: an Error for the one who asked.
//
//   try {
//     mask = constraint->mask();
//   } catch (...) {
//     error = CurrentFailure();       // {kLimit, "memory ran out"} after std::bad_alloc
//   }
//
// Nothing here throws, and an error that says that memory ran out needs no memory: the text fits
// into the string object itself.
#ifndef PAWL_SRC_BASE_FAILURE_H_
#define PAWL_SRC_BASE_FAILURE_H_

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "pawl/result.h"

namespace pawl {

inline constexpr std::string_view kMemoryRanOut = "memory ran out";

// Memory does not run out, but what is computed takes more of it than it may. Handled like the
// other kind where nothing else is said; the error has the text.
class TooMuchMemory : public std::bad_alloc {
 public:
  // `what` is a constant.
  explicit TooMuchMemory(const char* what) : what_(what) {}
  const char* what() const noexcept override { return what_; }

 private:
  const char* const what_;
};

inline Error OutOfMemory() noexcept {
  return Error{ErrorCode::kLimit, std::string(kMemoryRanOut), ""};
}

inline bool IsOutOfMemory(const Error& error) {
  return error.code == ErrorCode::kLimit && error.message == kMemoryRanOut;
}

// The error for the exception that is being handled: kLimit after std::bad_alloc, else kInternal;
// with the exception's text, but where memory ran out. REQUIRES: called from a handler.
inline Error CurrentFailure() noexcept {
  try {
    throw;
  } catch (const TooMuchMemory& cause) {
    try {
      return Error{ErrorCode::kLimit, cause.what(), ""};
    } catch (...) {
      return OutOfMemory();
    }
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::exception& cause) {
    try {
      return Error{ErrorCode::kInternal, cause.what(), ""};
    } catch (...) {
      return OutOfMemory();
    }
  } catch (...) {
    try {
      return Error{ErrorCode::kInternal, "an exception without a text", ""};
    } catch (...) {
      return OutOfMemory();
    }
  }
}

// A copy of `error`, or "memory ran out" where there is no memory for the copy.
inline Error CopyOf(const Error& error) noexcept {
  try {
    return error;
  } catch (...) {
    return OutOfMemory();
  }
}

// function(), or the error for the exception that leaves it. Result: what function returns, a
// Result of any type.
template <typename Function>
auto Guarded(Function&& function) noexcept -> decltype(function()) {
  try {
    return std::forward<Function>(function)();
  } catch (...) {
    return CurrentFailure();
  }
}

}  // namespace pawl

#endif  // PAWL_SRC_BASE_FAILURE_H_
