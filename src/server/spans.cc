// Candidates are found by plain search and kept where nothing beside them makes a longer word or
// number. One place is remembered from value to value, because records are mostly copied in order.
#include "src/server/spans.h"

#include <utility>

#include "src/base/utf8.h"

namespace pawl::server {
namespace {

bool IsWord(char c) {
  return IsDigit(c) || IsLetter(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

// "12" is not in "312", nor in "12.5"; "an" is not in "man".
bool StandsAlone(std::string_view text, size_t begin, size_t end, bool number) {
  if (number) {
    if (begin > 0 && IsWord(text[begin - 1])) return false;
    if (begin > 1 && (text[begin - 1] == '.' || text[begin - 1] == ',') &&
        IsDigit(text[begin - 2])) {
      return false;
    }
    if (end < text.size() && IsDigit(text[end])) return false;
    const bool point = end + 1 < text.size() && (text[end] == '.' || text[end] == ',');
    return !point || !IsDigit(text[end + 1]);
  }
  if (begin > 0 && IsWord(text[begin]) && IsWord(text[begin - 1])) return false;
  return end >= text.size() || !IsWord(text[end - 1]) || !IsWord(text[end]);
}

size_t FindFrom(std::string_view text, std::string_view value, size_t from, bool number) {
  for (size_t at = text.find(value, from); at != std::string_view::npos;
       at = text.find(value, at + 1)) {
    if (StandsAlone(text, at, at + value.size(), number)) return at;
  }
  return std::string_view::npos;
}

class Finder {
 public:
  explicit Finder(std::string_view text) : text_(text) {}

  // The depth of a record is bounded by that of JSON texts.
  void Visit(const json::Value& value, const std::string& pointer) {
    switch (value.type) {
      case json::Type::kObject:
        for (const json::Member& member : value.members) {
          Visit(member.second, json::PointerJoin(pointer, member.first));
        }
        break;
      case json::Type::kArray:
        for (size_t i = 0; i < value.items.size(); ++i) {
          Visit(value.items[i], json::PointerJoin(pointer, std::to_string(i)));
        }
        break;
      case json::Type::kString:
      case json::Type::kNumber:
        Find(value.text, pointer, value.type == json::Type::kNumber);
        break;
      default:
        break;
    }
  }

  std::vector<Span> Take() { return std::move(spans_); }

 private:
  void Find(std::string_view value, const std::string& pointer, bool number) {
    if (value.empty()) return;
    size_t at = FindFrom(text_, value, from_, number);
    if (at == std::string_view::npos) at = FindFrom(text_, value, 0, number);
    if (at == std::string_view::npos) return;
    from_ = at + value.size();
    spans_.push_back({pointer, Characters(at), Characters(from_)});
  }

  size_t Characters(size_t bytes) {
    if (bytes < counted_bytes_) counted_bytes_ = counted_ = 0;
    for (; counted_bytes_ < bytes; ++counted_bytes_) {
      counted_ += (static_cast<unsigned char>(text_[counted_bytes_]) & 0xC0) != 0x80 ? 1 : 0;
    }
    return counted_;
  }

  std::string_view text_;
  size_t from_ = 0;
  size_t counted_bytes_ = 0, counted_ = 0;
  std::vector<Span> spans_;
};

}  // namespace

std::vector<Span> FindSpans(const json::Value& record, std::string_view text) {
  Finder finder(text);
  finder.Visit(record, "");
  return finder.Take();
}

}  // namespace pawl::server
