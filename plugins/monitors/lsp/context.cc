// C++: the text is read once with the scanner; for each bracket that is open at its end it is known
// what stands before it, back to the statement's beginning. A "{" whose head has `template`,
// `auto` or `requires` makes types depend on what nobody knows yet; one whose head has `class`,
// `struct` or `union` is a type that is not finished.
#include "plugins/monitors/lsp/context.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace pawl::monitors {
namespace {

std::string_view TrimmedEnd(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\n' ||
                           text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

bool CertainCpp(std::string_view text, bool whole) {
  Scan scan(Language::kCpp);
  struct Open {
    size_t head;  // where the statement before the bracket begins
    size_t at;
  };
  std::vector<Open> open;
  size_t statement = 0;
  std::vector<size_t> outer;  // statements around
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t before = scan.depth();
    const bool code = scan.in_code();
    scan.Add(text[i]);
    if (scan.depth() > before) {
      open.push_back({statement, i});
      outer.push_back(statement);
      if (text[i] == '{') statement = i + 1;
    } else if (scan.depth() < before && !open.empty()) {
      statement = text[i] == '}' ? i + 1 : outer.back();
      open.pop_back();
      outer.pop_back();
    } else if (code && text[i] == ';' && scan.bracket() != '(') {
      statement = i + 1;
    }
  }
  if (!scan.in_code()) return false;
  // The statement at the cursor itself may be a generic lambda, or a directive.
  const std::string_view now = text.substr(statement);
  if (HasWord(now, "template") || HasWord(now, "define")) return false;
  for (const Open& bracket : open) {
    const std::string_view head = text.substr(bracket.head, bracket.at - bracket.head);
    if (text[bracket.at] != '{') continue;
    for (const char* word : {"template", "auto", "requires", "concept"}) {
      if (HasWord(head, word)) return false;
    }
    if (whole) continue;
    const bool call = head.find(')') != std::string_view::npos;
    for (const char* word : {"class", "struct", "union"}) {
      if (!call && HasWord(head, word)) return false;
    }
  }
  return true;
}

size_t IndentOf(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  return first == std::string_view::npos ? line.size() : first;
}

// The name before the "." at the end, empty when that is no name alone.
std::string_view Receiver(std::string_view text) {
  text = TrimmedEnd(text);
  if (text.empty()) return {};
  text.remove_suffix(1);
  size_t start = text.size();
  while (start > 0 && NameByte(text[start - 1])) --start;
  if (start > 0 && text[start - 1] == '.') return {};
  return text.substr(start);
}

}  // namespace

bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !NameByte(text[at - 1]);
    const bool ends = at + word.size() == text.size() || !NameByte(text[at + word.size()]);
    if (begins && ends) return true;
  }
  return false;
}

bool BehindMember(Language language, std::string_view text) {
  if (text.size() < 2) return false;
  const bool arrow = language == Language::kCpp && text.ends_with("->");
  if (!arrow && text.back() != '.') return false;
  text.remove_suffix(arrow ? 2 : 1);
  text = TrimmedEnd(text);
  if (text.empty()) return false;
  const char last = text.back();
  if (!NameByte(last) && last != ')' && last != ']' && last != '"' && last != '\'') return false;
  size_t start = text.size();
  while (start > 0 && NameByte(text[start - 1])) --start;
  // "1.": the point of a number. "from .": where modules are searched.
  return start == text.size() || NameStart(text[start]);
}

bool CertainPlace(Language language, std::string_view text, bool whole) {
  if (language == Language::kCpp) return CertainCpp(text, whole);
  if (language != Language::kPython) return true;
  const std::string_view receiver = Receiver(text);
  if (receiver == "self" || receiver == "cls") return false;
  const size_t line = text.rfind('\n') + 1;
  const std::string_view now = text.substr(line);
  const std::string_view code = now.substr(IndentOf(now));
  // Modules, and attributes that come into being when they are written.
  return !code.starts_with("import ") && !code.starts_with("from ");
}

std::vector<std::string> AlsoPossible(Language language, std::string_view text) {
  if (language != Language::kCpp) return {};
  constexpr std::string_view kBeforeTypes[] = {"define",    "class",     "struct",  "union",
                                               "namespace", "public",    "private", "protected",
                                               "using",     "namespace", "typename"};
  std::set<std::string_view> names = {"template", "operator"};
  std::string_view before;
  for (size_t at = 0; at < text.size();) {
    if (!NameStart(text[at])) {
      const char c = text[at++];
      if (c != ' ' && c != '\t') before = {};
      continue;
    }
    size_t end = at;
    while (end < text.size() && NameByte(text[end])) ++end;
    const std::string_view name = text.substr(at, end - at);
    const bool type = std::find(std::begin(kBeforeTypes), std::end(kBeforeTypes), before) !=
                      std::end(kBeforeTypes);
    if (type || text.substr(end).starts_with("::")) names.insert(name);
    before = name;
    at = end;
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> EnclosingClasses(std::string_view text) {
  std::vector<std::string> names;
  size_t least = std::string_view::npos;
  for (size_t end = text.size();;) {
    const size_t newline = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view line = text.substr(begin, end - begin);
    const size_t indent = IndentOf(line);
    const std::string_view code = line.substr(indent);
    if (!code.empty() && code[0] != '#' && (indent < least || end == text.size())) {
      if (code.starts_with("class ") && indent < least && end != text.size()) {
        size_t stop = 6;
        while (stop < code.size() && NameByte(code[stop])) ++stop;
        names.emplace_back(code.substr(6, stop - 6));
      }
      least = std::min(least, indent);
    }
    if (begin == 0) return names;
    end = begin - 1;
  }
}

}  // namespace pawl::monitors
