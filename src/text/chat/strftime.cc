// Only the conversions that say something about a date or a time of day; the C library's function
// would follow the locale of the process.
#include "src/text/chat/strftime.h"

#include <cstddef>

namespace pawl::jinja {
namespace {

constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};
constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};

std::string Padded(int value, int width, char pad) {
  std::string digits = std::to_string(value);
  const auto wide = static_cast<size_t>(width);
  if (pad != '\0' && digits.size() < wide) digits.insert(0, wide - digits.size(), pad);
  return digits;
}

}  // namespace

std::string FormatTime(std::string_view format, const std::tm& time, std::string& out) {
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    const bool bare = i + 1 < format.size() && format[i + 1] == '-';  // %-d: without padding
    i += bare ? 2 : 1;
    const char c = i < format.size() ? format[i] : '\0';
    const char zero = bare ? '\0' : '0';
    const int hour = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
    const auto month = static_cast<size_t>(time.tm_mon % 12 + 12) % 12;
    const auto day = static_cast<size_t>(time.tm_wday % 7 + 7) % 7;
    switch (c) {
      case 'Y':
        out += Padded(time.tm_year + 1900, 4, '\0');
        break;
      case 'y':
        out += Padded(time.tm_year % 100, 2, zero);
        break;
      case 'm':
        out += Padded(time.tm_mon + 1, 2, zero);
        break;
      case 'd':
        out += Padded(time.tm_mday, 2, zero);
        break;
      case 'e':
        out += Padded(time.tm_mday, 2, bare ? '\0' : ' ');
        break;
      case 'H':
        out += Padded(time.tm_hour, 2, zero);
        break;
      case 'I':
        out += Padded(hour, 2, zero);
        break;
      case 'M':
        out += Padded(time.tm_min, 2, zero);
        break;
      case 'S':
        out += Padded(time.tm_sec, 2, zero);
        break;
      case 'j':
        out += Padded(time.tm_yday + 1, 3, zero);
        break;
      case 'p':
        out += time.tm_hour < 12 ? "AM" : "PM";
        break;
      case 'B':
        out += kMonths[month];
        break;
      case 'b':
      case 'h':
        out += std::string_view(kMonths[month]).substr(0, 3);
        break;
      case 'A':
        out += kDays[day];
        break;
      case 'a':
        out += std::string_view(kDays[day]).substr(0, 3);
        break;
      case 'F':
        out += Padded(time.tm_year + 1900, 4, '\0') + "-" + Padded(time.tm_mon + 1, 2, '0') + "-" +
               Padded(time.tm_mday, 2, '0');
        break;
      case 'T':
        out += Padded(time.tm_hour, 2, '0') + ":" + Padded(time.tm_min, 2, '0') + ":" +
               Padded(time.tm_sec, 2, '0');
        break;
      case '%':
        out += '%';
        break;
      default:
        return "the conversion at byte " + std::to_string(i) +
               " is not supported; expected one of Y y m d e H I M S j p B b h A a F T %";
    }
  }
  return "";
}

}  // namespace pawl::jinja
