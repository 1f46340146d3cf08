// Quotes inside a field that does not begin with one stand for themselves.
#include "src/input/csv.h"

#include <utility>

namespace pawl {

Status CsvRow::Add(std::string_view line) {
  size_ += line.size() + 1;
  if (quoted_) {
    fields_.back() += '\n';
  } else {
    fields_.emplace_back();
  }
  bool closed = false;  // the field had quotes, which have been closed
  bool begins = !quoted_;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted_) {
      if (c != '"') {
        fields_.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields_.back() += line[++i];
      } else {
        quoted_ = false;
        closed = true;
      }
      continue;
    }
    if (c == ',') {
      fields_.emplace_back();
      closed = false;
      begins = true;
      continue;
    }
    if (c == '\r' && i + 1 == line.size()) break;
    if (closed) {
      return Error{ErrorCode::kInvalid, "a closing quote has to be followed by a comma",
                   "field " + std::to_string(fields_.size())};
    }
    if (c == '"' && begins) {
      quoted_ = true;
    } else {
      fields_.back() += c;
    }
    begins = false;
  }
  return {};
}

std::vector<std::string> CsvRow::Take() {
  size_ = 0;
  quoted_ = false;
  return std::exchange(fields_, {});
}

}  // namespace pawl
