// gmtime_r and localtime_r of the C library.
#include "src/base/os/calendar.h"

namespace pawl::os {

std::tm UniversalTime(std::time_t at) {
  std::tm utc{};
  ::gmtime_r(&at, &utc);
  return utc;
}

std::optional<std::tm> LocalTimeAt(std::time_t at) {
  std::tm local{};
  if (::localtime_r(&at, &local) == nullptr) return std::nullopt;
  return local;
}

}  // namespace pawl::os
