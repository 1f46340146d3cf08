// The same functions under other names, with their arguments in another order.
#include "src/base/os/calendar.h"

namespace pawl::os {

std::tm UniversalTime(std::time_t at) {
  std::tm utc{};
  ::gmtime_s(&utc, &at);
  return utc;
}

std::optional<std::tm> LocalTimeAt(std::time_t at) {
  std::tm local{};
  if (::localtime_s(&local, &at) != 0) return std::nullopt;
  return local;
}

}  // namespace pawl::os
