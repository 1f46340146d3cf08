// Failed: what a reader's function answers once an error is noted, whatever it answers otherwise:
// false, or no value. Internal to grammar/languages.
#ifndef PAWL_GRAMMAR_LANGUAGES_FAILED_H_
#define PAWL_GRAMMAR_LANGUAGES_FAILED_H_

#include <concepts>
#include <optional>

namespace pawl {

struct Failed {
  // Exactly bool: so that it does not become an integer by way of one.
  template <std::same_as<bool> B>
  operator B() const {
    return false;
  }
  template <typename T>
  operator std::optional<T>() const {
    return std::nullopt;
  }
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_FAILED_H_
