// URI references for the test oracle: RFC 3986 section 5, nothing more.
#ifndef PAWL_TESTS_ORACLE_URI_H_
#define PAWL_TESTS_ORACLE_URI_H_

#include <string>
#include <string_view>

namespace pawl::oracle {

// `reference` resolved against `base` (both may be relative or empty), with its fragment.
std::string ResolveUri(std::string_view base, std::string_view reference);
// The part before '#', and after it (still percent-encoded; empty when there is none).
std::string WithoutFragment(std::string_view uri);
std::string FragmentOf(std::string_view uri);
std::string PercentDecode(std::string_view text);

}  // namespace pawl::oracle

#endif  // PAWL_TESTS_ORACLE_URI_H_
