// Calls of a matcher of the C library as the bytes of a fuzz input say, and what they are read
// with.
#ifndef PAWL_TESTS_FUZZ_CAPI_FUZZ_CALLS_H_
#define PAWL_TESTS_FUZZ_CAPI_FUZZ_CALLS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/pawl.h"
#include "tests/fuzz/fuzz_util.h"

namespace pawl::fuzz {

// The vocabulary: the bytes, "ab", "<tool>" and two end tokens.
inline constexpr int32_t kTool = 257, kFirstEnd = 258, kSize = 260;
inline constexpr size_t kWords = 9;
using Row = std::array<uint32_t, kWords>;

// The input, read from its front; zeros behind its end.
class Calls {
 public:
  explicit Calls(std::string_view input) : input_(input), rest_(input) {}
  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  // A length and as many bytes, or what is left.
  std::string Text() {
    const size_t length = Byte();
    const std::string text(rest_.substr(0, length));
    rest_.remove_prefix(text.size());
    return text;
  }
  bool done() const { return rest_.empty(); }
  std::string_view input() const { return input_; }
  void Require(bool holds, const char* what) const { fuzz::Require(holds, what, input_); }

 private:
  std::string_view input_, rest_;
};

// Owns a handle. A handle that was not given stays as it was.
template <typename T, void (*free)(T*)>
class Handle {
 public:
  explicit Handle(T* handle = nullptr) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() { free(handle_); }
  T* get() const { return handle_; }
  // Calls `make` with where to put a handle; the old one is freed after it succeeded.
  template <typename Make>
  pawl_status Take(const Make& make) {
    T* made = nullptr;
    const pawl_status status = make(&made);
    fuzz::Require((status == PAWL_OK) == (made != nullptr), "a status and a handle disagree", "");
    if (made != nullptr) free(std::exchange(handle_, made));
    return status;
  }

 private:
  T* handle_;
};
using GrammarHandle = Handle<pawl_grammar, pawl_grammar_free>;
using MatcherHandle = Handle<pawl_matcher, pawl_matcher_free>;

// An error that may come: there is one exactly when the status says so, with a message, and it is
// no bug of the library's.
class Failure {
 public:
  explicit Failure(const Calls& in) : in_(in) {}
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;
  ~Failure() { pawl_error_free(error_); }
  pawl_error** out() { return &error_; }
  void Check(pawl_status status) const {
    in_.Require(pawl_error_status(error_) == status, "an error and its status disagree");
    in_.Require((pawl_error_message(error_)[0] != 0) == (status != PAWL_OK),
                "an error without a message");
    in_.Require(status != PAWL_INTERNAL, pawl_error_message(error_));
    in_.Require(std::string_view(pawl_status_name(status)) != "unknown", "a status without a name");
  }

 private:
  const Calls& in_;
  pawl_error* error_ = nullptr;
};

// Fewer than `most` texts.
class TextList {
 public:
  TextList(Calls& in, int most) {
    for (int count = in.Byte() % most; count > 0; --count) texts_.push_back(in.Text());
    for (const std::string& text : texts_) {
      data_.push_back(text.empty() ? nullptr : text.data());
      lengths_.push_back(text.size());
    }
  }
  const char* const* data() const { return data_.data(); }
  const size_t* lengths() const { return lengths_.data(); }
  size_t size() const { return data_.size(); }

 private:
  std::vector<std::string> texts_;
  std::vector<const char*> data_;
  std::vector<size_t> lengths_;
};

// How matchers are made.
class MatcherOptions {
 public:
  explicit MatcherOptions(uint8_t ways = 0)
      : own_end_((ways & 2) != 0), terminates_((ways & 4) != 0) {}
  MatcherHandle NewMatcher(const pawl_grammar* grammar, const Calls& in) const;
  bool standard() const { return !own_end_ && !terminates_; }
  // The output ends with the token, which is no part of it.
  bool IsEnd(int32_t token) const {
    if (terminates_) return false;
    return own_end_ ? token == 'b' || token == kTool : token >= kFirstEnd;
  }

 private:
  bool own_end_, terminates_;
};

// The mask; its status must say whether there is any token in it.
Row MaskOf(const pawl_matcher* matcher, const Calls& in);

// One call after another until the input ends.
void Drive(pawl_matcher* matcher, const MatcherOptions& options, Calls& in);

}  // namespace pawl::fuzz

#endif  // PAWL_TESTS_FUZZ_CAPI_FUZZ_CALLS_H_
