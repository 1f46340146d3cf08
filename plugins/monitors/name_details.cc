// Comments and docstrings as an editor shows them. The form of both is that of their languages:
// JSDoc and Javadoc put a star in front of each line, and PEP 257 says how much indentation a
// docstring loses.
#include "plugins/monitors/name_details.h"

#include <algorithm>
#include <string>
#include <vector>

#include "plugins/monitors/work.h"

namespace pawl::monitors {
namespace {

bool Blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    while (!line.empty() && Blank(line.back())) line.remove_suffix(1);
    lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

// Joined, without empty lines at both ends; cut at the end of a character.
std::string Joined(const std::vector<std::string_view>& lines) {
  std::string out;
  for (const std::string_view line : lines) {
    if (out.empty() && line.empty()) continue;
    if (!out.empty()) out += '\n';
    out += line;
    if (out.size() > kMostDocumentation) break;
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  size_t size = std::min(out.size(), kMostDocumentation);
  while (size < out.size() && size > 0 && (static_cast<unsigned char>(out[size]) & 0xC0) == 0x80) {
    --size;
  }
  out.resize(size);
  return out;
}

}  // namespace

std::string CommentAbove(std::string_view text, size_t start) {
  size_t end = std::min(start, text.size());
  while (end > 0 && Blank(text[end - 1])) --end;
  if (end < 5 || text.substr(end - 2, 2) != "*/") return "";
  const size_t begin = text.rfind("/*", end - 3);
  Work::Bytes(begin == std::string_view::npos ? end : end - begin);
  if (begin == std::string_view::npos || begin + 4 >= end || text[begin + 2] != '*') return "";
  std::vector<std::string_view> lines = LinesOf(text.substr(begin + 3, end - 2 - (begin + 3)));
  for (std::string_view& line : lines) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with('*')) line.remove_prefix(1);
    if (line.starts_with(' ')) line.remove_prefix(1);
  }
  return Joined(lines);
}

std::string Docstring(std::string_view literal) {
  const size_t quote = literal.find_first_of("\"'");
  if (quote == std::string_view::npos) return "";
  literal.remove_prefix(quote);
  const bool triple = literal.size() >= 6 && literal[1] == literal[0] && literal[2] == literal[0];
  const size_t size = triple ? 3 : 1;
  if (literal.size() < 2 * size) return "";
  Work::Bytes(literal.size());
  std::vector<std::string_view> lines = LinesOf(literal.substr(size, literal.size() - 2 * size));
  size_t indent = std::string_view::npos;
  for (size_t i = 1; i < lines.size(); ++i) {
    indent = std::min(indent, lines[i].find_first_not_of(" \t"));
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t own = std::min(lines[i].find_first_not_of(" \t"), lines[i].size());
    lines[i].remove_prefix(i == 0 ? own : std::min(indent, lines[i].size()));
  }
  return Joined(lines);
}

std::string OneLine(std::string_view text, size_t most) {
  std::string out;
  for (const char c : text) {
    if (!Blank(c)) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
    if (out.size() > most) break;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  if (out.size() <= most) return out;
  size_t size = most;
  while (size > 0 && (static_cast<unsigned char>(out[size]) & 0xC0) == 0x80) --size;
  return out.substr(0, size) + "...";
}

}  // namespace pawl::monitors
