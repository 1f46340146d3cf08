// Texts for Windows: paths and command lines are UTF-8 in Pawl and UTF-16 there.
#ifndef PAWL_SRC_BASE_OS_WIDE_WIN32_H_
#define PAWL_SRC_BASE_OS_WIDE_WIN32_H_

#include <string>
#include <string_view>

namespace pawl::os {

std::wstring Wide(std::string_view text);
std::string Narrow(std::wstring_view text);
// Sets errno from GetLastError.
void KeepLastError();

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_WIDE_WIN32_H_
