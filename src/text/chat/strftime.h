// Dates as strftime writes them in the C locale, of a time that the caller gives. No state,
// thread-safe.
#ifndef PAWL_SRC_TEXT_CHAT_STRFTIME_H_
#define PAWL_SRC_TEXT_CHAT_STRFTIME_H_

#include <ctime>
#include <string>
#include <string_view>

namespace pawl::jinja {

// Appends `time` to `out`; answers what is wrong with the format, or nothing.
std::string FormatTime(std::string_view format, const std::tm& time, std::string& out);

}  // namespace pawl::jinja

#endif  // PAWL_SRC_TEXT_CHAT_STRFTIME_H_
