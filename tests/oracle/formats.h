// "format" for the test oracle, by hand from the RFCs.
#ifndef PAWL_TESTS_ORACLE_FORMATS_H_
#define PAWL_TESTS_ORACLE_FORMATS_H_

#include <optional>
#include <string>

namespace pawl::oracle {

// The string is of the format; true for formats that are not known; nullopt where this cannot be
// told (internationalised host names).
std::optional<bool> HasFormat(const std::string& format, const std::string& text);
// HasFormat knows it.
bool IsKnownFormat(const std::string& format);

}  // namespace pawl::oracle

#endif  // PAWL_TESTS_ORACLE_FORMATS_H_
