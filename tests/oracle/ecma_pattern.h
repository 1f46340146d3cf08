// ECMA-262 patterns through RE2, for the test oracle.
#ifndef PAWL_TESTS_ORACLE_ECMA_PATTERN_H_
#define PAWL_TESTS_ORACLE_ECMA_PATTERN_H_

#include <optional>
#include <string>
#include <string_view>

namespace pawl::oracle {

// The RE2 pattern that finds what the ECMA-262 pattern finds; nullopt when RE2 has no such pattern
// (lookaround, back references), or where it is not certain that both read it alike.
std::optional<std::string> EcmaToRe2(std::string_view pattern);

// `pattern` occurs somewhere in `text`; nullopt when that cannot be told.
std::optional<bool> EcmaSearch(const std::string& pattern, const std::string& text);

// The text is a pattern at all; nullopt when that cannot be told.
std::optional<bool> IsEcmaPattern(const std::string& pattern);

}  // namespace pawl::oracle

#endif  // PAWL_TESTS_ORACLE_ECMA_PATTERN_H_
