// Result<T>: a value or an Error. Every function of Pawl that reads user input returns one.
//
//   pawl::Result<pawl::Grammar> grammar = compiler.CompileJsonSchema(text);
//   if (!grammar.ok()) {
//     std::cerr << grammar.error().ToString() << "\n";   // "#/minimum: must be a number"
//     return 2;
//   }
//   Use(*grammar);
//
// No function of Pawl throws. Reading value() of a failed Result is a programming error (checked by
// assert in debug builds).
#ifndef PAWL_RESULT_H_
#define PAWL_RESULT_H_

#include <atomic>
#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

// PAWL_EXPORT marks the symbols that a shared library of Pawl's C++ API exports. Others are hidden.
// Headers that are not installed mark what libpawl_engine takes from a shared libpawl_core.
#if defined(__GNUC__) || defined(__clang__)
#define PAWL_EXPORT __attribute__((visibility("default")))
#else
#define PAWL_EXPORT
#endif

namespace pawl {

enum class ErrorCode {
  kInvalid,        // the input is malformed: not JSON, not a regex, a keyword with a wrong value
  kUnsupported,    // well formed, but this version does not enforce it
  kUnsatisfiable,  // well formed and supported, but no value fits
  kLimit,          // a documented limit (size, depth, steps, memory, tokens) was reached
  kIo,             // a file could not be read or written
  kInternal,       // a bug in Pawl
};

// The message and the place of an error. `place` is a JSON Pointer ("#/properties/a"),
// "line:column", "byte 17", a file path, or empty for the whole input.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string place;

  std::string ToString() const { return place.empty() ? message : place + ": " + message; }
};

inline const char* ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kUnsatisfiable:
      return "unsatisfiable";
    case ErrorCode::kLimit:
      return "limit";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

// Success without a value.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    assert(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

// StopFlag: lets another thread end a compilation.
//
//   auto stop = std::make_shared<pawl::StopFlag>();
//   auto grammar = compiler.CompileJsonSchema(schema, options, stop);   // kLimit when stopped
//   ...
//   stop->Stop();                                                       // on another thread
//
// A flag is for one compilation. After the compilation has succeeded, Stop does nothing.
// Thread safety: several threads may call all methods at the same time.

class StopFlag {
 public:
  void Stop() {
    State running = State::kRunning;
    state_.compare_exchange_strong(running, State::kStopped);
  }
  bool stopped() const { return state_.load(std::memory_order_relaxed) == State::kStopped; }
  // For the compiler, at the end of the compilation. false: the compilation was stopped before.
  bool Finish() {
    State running = State::kRunning;
    return state_.compare_exchange_strong(running, State::kFinished) || running == State::kFinished;
  }

 private:
  enum class State { kRunning, kStopped, kFinished };
  std::atomic<State> state_{State::kRunning};
};

}  // namespace pawl

#endif  // PAWL_RESULT_H_
