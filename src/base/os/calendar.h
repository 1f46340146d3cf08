// Dates and times of day.
#ifndef PAWL_SRC_BASE_OS_CALENDAR_H_
#define PAWL_SRC_BASE_OS_CALENDAR_H_

#include <ctime>
#include <optional>

namespace pawl::os {

std::tm UniversalTime(std::time_t at);
// Where this machine stands; nullopt where that cannot be told.
std::optional<std::tm> LocalTimeAt(std::time_t at);

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_CALENDAR_H_
