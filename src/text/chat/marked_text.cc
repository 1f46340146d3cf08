// Marks are ranges in order. Texts are only ever appended to, so a new mark either extends the last
// one or stands behind it, and a piece of another text is found by binary search.
#include "src/text/chat/marked_text.h"

#include <algorithm>

namespace pawl {
namespace {

// The first range that ends after `at`.
std::vector<TextRange>::const_iterator After(const std::vector<TextRange>& ranges, size_t at) {
  return std::upper_bound(ranges.begin(), ranges.end(), at,
                          [](size_t key, const TextRange& range) { return key < range.end; });
}

}  // namespace

MarkedText MarkedText::Data(std::string text) {
  MarkedText out(std::move(text));
  out.Mark(0, out.size());
  return out;
}

void MarkedText::Mark(size_t begin, size_t end) {
  if (begin >= end) return;
  if (!data_.empty() && data_.back().end == begin) {
    data_.back().end = end;
  } else {
    data_.push_back({begin, end});
  }
}

void MarkedText::AppendData(std::string_view text) {
  const size_t begin = size();
  bytes_ += text;
  Mark(begin, size());
}

void MarkedText::Append(const MarkedText& other, size_t begin, size_t end) {
  end = std::min(end, other.size());
  if (begin >= end) return;
  const size_t shift = size();
  bytes_.append(other.bytes_, begin, end - begin);
  for (auto at = After(other.data_, begin); at != other.data_.end() && at->begin < end; ++at) {
    Mark(std::max(at->begin, begin) - begin + shift, std::min(at->end, end) - begin + shift);
  }
}

void MarkedText::AppendInPlaceOf(const MarkedText& other, size_t begin, size_t end,
                                 std::string_view text) {
  if (other.HasData(begin, end)) {
    AppendData(text);
  } else {
    Append(text);
  }
}

MarkedText MarkedText::Slice(size_t begin, size_t end) const {
  MarkedText out;
  out.Append(*this, begin, end);
  return out;
}

bool MarkedText::HasData(size_t begin, size_t end) const {
  const auto at = After(data_, begin);
  return at != data_.end() && at->begin < end;
}

}  // namespace pawl
