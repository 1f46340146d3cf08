// Texts under monitors, for tests.
#ifndef PAWL_TESTS_MONITORS_MONITORS_TEST_UTIL_H_
#define PAWL_TESTS_MONITORS_MONITORS_TEST_UTIL_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "plugins/monitors/monitor.h"

namespace pawl::monitors {

inline std::unique_ptr<MonitorSet> AllMonitors(Language language) {
  auto made = MonitorSet::Make(language, {});
  return made.ok() ? std::move(*made) : nullptr;
}

// What is refused of a finished text, while it is written or at its end.
inline std::optional<Refusal> Judge(MonitorSet& set, std::string_view text) {
  TextState state = set.Start("");
  Refusal refusal;
  for (const char c : text) {
    if (!state.Add(c, &refusal)) {
      size_t end = refusal.byte;
      while (end < text.size() && NameByte(text[end])) ++end;
      refusal.identifier = std::string(text.substr(refusal.byte, end - refusal.byte));
      return refusal;
    }
  }
  return set.Finish(text);
}

}  // namespace pawl::monitors

#endif  // PAWL_TESTS_MONITORS_MONITORS_TEST_UTIL_H_
