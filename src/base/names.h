// Names of choices: what users write for an enumerator, in the command, HTTP, C and Python.
//
//   inline std::span<const char* const> OptionNames(Colour) { ... }   // next to the enum's user
//   std::optional<Colour> colour = OptionOf<Colour>("red");
//   NameOf(Colour::kRed);                                              // "red"
//
// A choice is an enum whose values count from 0, and an overload of OptionNames, which gives the
// names in the order of the values. No state; thread-safe.
#ifndef PAWL_SRC_BASE_NAMES_H_
#define PAWL_SRC_BASE_NAMES_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl {

// The choice with this name.
template <typename Choice>
std::optional<Choice> OptionOf(std::string_view name) {
  const std::span<const char* const> names = OptionNames(Choice());
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return static_cast<Choice>(i);
  }
  return std::nullopt;
}

template <typename Choice>
const char* NameOf(Choice choice) {
  return OptionNames(choice)[static_cast<size_t>(choice)];
}

// "dead, live, accept, unknown", for messages.
template <typename Choice>
std::string NamesOf() {
  std::string list;
  for (const char* name : OptionNames(Choice())) {
    if (!list.empty()) list += ", ";
    list += name;
  }
  return list;
}

// Puts the choice of this name into `field`. Errors: kInvalid with `place`, with all the names.
template <typename Choice>
Status SetByName(std::string_view name, const char* place, Choice& field) {
  const std::optional<Choice> found = OptionOf<Choice>(name);
  if (!found.has_value()) {
    return Error{ErrorCode::kInvalid,
                 "must be one of " + NamesOf<Choice>() + ", not \"" + std::string(name) + "\"",
                 place};
  }
  field = *found;
  return {};
}

}  // namespace pawl

#endif  // PAWL_SRC_BASE_NAMES_H_
