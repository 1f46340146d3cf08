// A member of a body, before the body is parsed.
//
//   MemberText(R"({"model": "a", "messages": [...]})", "model")     // R"("a")"
#ifndef PAWL_SRC_SERVER_BODY_MEMBER_H_
#define PAWL_SRC_SERVER_BODY_MEMBER_H_

#include <optional>
#include <string_view>

namespace pawl::server {

// The text of the first member of that name, where the body is an object. Whether the body is JSON
// is not judged: where it is not, the text may be anything. O(body).
std::optional<std::string_view> MemberText(std::string_view body, std::string_view name);

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_BODY_MEMBER_H_
