// A statement ends at a ";" or the end of a line where the brackets are as they were at the
// beginning, or before a bracket that closes what the prefix has opened. An operator at the end of
// a line goes on; so does a "{", and its block is part of the statement. In Python a line that ends
// with ":" opens a block, which ends with the first line that is not indented further.
#include "src/completion/statement.h"

namespace pawl::completion {

StatementEnd::StatementEnd(monitors::Language language, std::string_view prefix)
    : scan_(language), language_(language) {
  scan_.Add(prefix);
  depth_ = scan_.depth();
  const size_t line = prefix.rfind('\n') + 1;  // npos + 1 is 0
  while (line + indent_ < prefix.size() &&
         (prefix[line + indent_] == ' ' || prefix[line + indent_] == '\t')) {
    ++indent_;
  }
}

// An operator at the end of a line: the statement goes on.
bool StatementEnd::Continues() const {
  return std::string_view("=+-*/%&|^<>?:,.!~({[").find(last_) != std::string_view::npos;
}

// Python, inside of a block: whether the line that begins is still part of it.
bool StatementEnd::Indented(char c) {
  if (!line_begins_) return true;
  if (c == '\n') {
    column_ = 0;
  } else if (c == ' ' || c == '\t') {
    ++column_;
  } else {
    line_begins_ = false;
    return column_ > indent_;
  }
  return true;
}

size_t StatementEnd::Take(std::string_view bytes) {
  const bool python = language_ == monitors::Language::kPython;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    const bool code = scan_.in_code();
    if (block_ && !Indented(c)) return i;
    if (code && (c == ')' || c == ']' || c == '}') && scan_.depth() <= depth_) return i;
    // A comment ends with its line too.
    if (c == '\n' && scan_.depth() <= depth_ && some_) {
      monitors::Scan behind = scan_;
      behind.Add(c);
      if (behind.in_code()) {
        if (python && last_ == ':') block_ = true;
        if (!(python ? block_ : Continues())) return i;
        line_begins_ = true;
        column_ = 0;
      }
    }
    scan_.Add(c);
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
      some_ = true;
      last_ = c;
    }
    if (code && c == ';' && scan_.depth() <= depth_ && !python) return i + 1;
  }
  return std::string_view::npos;
}

}  // namespace pawl::completion
