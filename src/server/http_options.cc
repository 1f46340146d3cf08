// Who may ask. A server on the loopback address is reached by every page that the user's browser
// shows, by two attacks. A page may send requests to http://127.0.0.1:8080; the browser then names
// the page in Origin, and asks beforehand (CORS) unless the request looks like a form. And a page
// of evil.example may let its name point to 127.0.0.1 (DNS rebinding); for the browser the server
// is then the page's own, but Host still says evil.example.
//
// So on loopback without a key Host has to name this machine. Everywhere an Origin has to be that
// of the request's own host, or the one that was allowed. And a request with an Origin has to be
// application/json, which no form can send. Programs send no Origin and are not concerned.
#include "src/server/http_options.h"

#include <algorithm>
#include <string_view>

#include "src/server/http_reader.h"

namespace pawl::server {
namespace {

// Without the port; an address of IPv6 keeps its brackets.
std::string_view NameOf(std::string_view authority) {
  const size_t bracket = authority.find(']');
  const size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  return authority.substr(0, colon);
}

// 127.0.0.0/8, in full: 127.1 and the like are not what browsers send.
bool IsLoopbackV4(std::string_view name) {
  int parts = 0;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    const bool digits =
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (part.empty() || part.size() > 3 || !digits) return false;
    int value = 0;
    for (const char c : part) value = 10 * value + (c - '0');
    if (value > 255 || (parts == 0 && value != 127)) return false;
    ++parts;
    name.remove_prefix(part.size());
    if (name == ".") return false;
    if (!name.empty()) name.remove_prefix(1);
  }
  return parts == 4;
}

bool IsKnownHost(const HttpOptions& options, std::string_view authority) {
  std::string name = LowerAscii(NameOf(authority));
  if (name.size() > 1 && name.back() == '.') name.pop_back();
  if (IsLoopback(name)) return true;
  return std::any_of(options.allowed_hosts.begin(), options.allowed_hosts.end(),
                     [&](const std::string& allowed) { return LowerAscii(allowed) == name; });
}

struct Origin {
  bool good = false;
  std::string scheme, authority;  // in lower case, without the scheme's own port
};

// scheme "://" host [ ":" port ], and nothing behind it.
Origin ReadOrigin(std::string_view text) {
  Origin origin;
  const size_t mark = text.find("://");
  if (mark == std::string_view::npos) return origin;
  origin.scheme = LowerAscii(text.substr(0, mark));
  origin.authority = LowerAscii(text.substr(mark + 3));
  origin.good = IsHttpToken(origin.scheme) && !origin.authority.empty() &&
                IsHttpAuthority(origin.authority) && !NameOf(origin.authority).empty();
  return origin;
}

std::string WithoutPort(std::string authority, std::string_view scheme) {
  const std::string_view port = scheme == "https" ? ":443" : scheme == "http" ? ":80" : "";
  if (!port.empty() && authority.ends_with(port)) authority.resize(authority.size() - port.size());
  return authority;
}

bool IsAllowedOrigin(const HttpOptions& options, std::string_view host, std::string_view text) {
  if (options.cors_origin == "*") return true;
  const Origin origin = ReadOrigin(text);
  if (!origin.good) return false;
  const std::string authority = WithoutPort(origin.authority, origin.scheme);
  // The scheme is what a proxy in front of us may have changed.
  const bool web = origin.scheme == "http" || origin.scheme == "https";
  if (web && authority == WithoutPort(LowerAscii(host), origin.scheme)) return true;
  const Origin allowed = ReadOrigin(options.cors_origin);
  return allowed.good && allowed.scheme == origin.scheme &&
         WithoutPort(allowed.authority, allowed.scheme) == authority;
}

bool IsJson(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.remove_suffix(1);
  return LowerAscii(type) == "application/json";
}

}  // namespace

bool IsLoopback(std::string_view host) {
  const std::string name = LowerAscii(host);
  return name == "localhost" || name == "::1" || name == "[::1]" || IsLoopbackV4(name);
}

Status HttpOptions::Check() const {
  if (!cors_origin.empty() && cors_origin != "*" && !ReadOrigin(cors_origin).good) {
    return Error{ErrorCode::kInvalid, "is no origin, as https://example.org is one", "cors-origin"};
  }
  for (const std::string& name : allowed_hosts) {
    if (name.empty() || name.find('*') != std::string::npos || !IsHttpAuthority(name) ||
        NameOf(name).size() != name.size()) {
      return Error{ErrorCode::kInvalid, "is no name of a host, as example.org is one",
                   "allowed-host"};
    }
  }
  return {};
}

std::optional<ApiError> JudgeHeaders(const HttpOptions& options, const HttpRequest& head) {
  const std::string_view host = head.Header("host");
  const bool named = !host.empty();
  // Without a Host the request is of HTTP/1.0, which no browser speaks.
  bool has_host = false, has_origin = false;
  std::string_view origin;
  for (const auto& [name, value] : head.headers) {
    has_host = has_host || name == "host";
    if (name != "origin") continue;
    if (has_origin) return ApiError{.message = "there is more than one Origin"};
    has_origin = true;
    origin = value;
  }
  if (has_host && options.known_hosts_only && (!named || !IsKnownHost(options, host))) {
    return ApiError{.status = 403,
                    .message =
                        "this server is not known by the name in Host; --allowed-host NAME "
                        "adds names",
                    .code = "host_not_allowed"};
  }
  if (has_origin && !IsAllowedOrigin(options, host, origin)) {
    return ApiError{.status = 403,
                    .message =
                        "pages of this origin may not use the server; --cors-origin ORIGIN "
                        "allows one",
                    .code = "origin_not_allowed"};
  }
  if (has_origin && head.method == "POST" && !IsJson(head.Header("content-type"))) {
    return ApiError{.status = 415, .message = "a page has to send application/json"};
  }
  const std::string_view coding = head.Header("content-encoding");
  if (!coding.empty() && LowerAscii(coding) != "identity") {
    return ApiError{.status = 415, .message = "bodies have to come without Content-Encoding"};
  }
  return std::nullopt;
}

}  // namespace pawl::server
