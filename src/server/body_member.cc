// Brackets are counted and strings are skipped; nothing else of JSON is looked at.
#include "src/server/body_member.h"

#include <algorithm>
#include <cstddef>

#include "src/base/json.h"

namespace pawl::server {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// The place of the quote that ends the string that begins at `at`.
size_t QuoteAfter(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at;
}

// Where the value that begins at `at` ends.
size_t EndOfValue(std::string_view text, size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      at = QuoteAfter(text, at);
      if (depth == 0) return std::min(at + 1, text.size());
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return at;
      if (--depth == 0) return at + 1;
    } else if (c == ',' && depth == 0) {
      return at;
    }
  }
  return text.size();
}

bool IsName(std::string_view quoted, std::string_view name) {
  if (quoted.find('\\') == std::string_view::npos) {
    return quoted.substr(1, quoted.size() - 2) == name;
  }
  const auto value = json::Parse(quoted);
  return value.ok() && value->text == name;
}

}  // namespace

std::optional<std::string_view> MemberText(std::string_view body, std::string_view name) {
  size_t at = body.find_first_not_of(kBlanks);
  if (at == std::string_view::npos || body[at] != '{') return std::nullopt;
  for (++at;;) {
    at = body.find_first_not_of(kBlanks, at);
    if (at == std::string_view::npos || body[at] != '"') return std::nullopt;
    const size_t begin = at, end = QuoteAfter(body, at);
    if (end >= body.size()) return std::nullopt;
    at = body.find_first_not_of(kBlanks, end + 1);
    if (at == std::string_view::npos || body[at] != ':') return std::nullopt;
    at = body.find_first_not_of(kBlanks, at + 1);
    if (at == std::string_view::npos) return std::nullopt;
    const size_t after = EndOfValue(body, at);
    if (IsName(body.substr(begin, end + 1 - begin), name)) {
      std::string_view value = body.substr(at, after - at);
      return value.substr(0, value.find_last_not_of(kBlanks) + 1);
    }
    at = body.find_first_not_of(kBlanks, after);
    if (at == std::string_view::npos || body[at] != ',') return std::nullopt;
    ++at;
  }
}

}  // namespace pawl::server
