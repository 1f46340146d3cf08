// A two-level bitmap: the high bits of a code point choose a page of 256 bits, and equal pages
// (most are all zeros or all ones) are stored once, so a set takes some 10 KB and a lookup two
// loads.
#include "src/text/codepoint_set.h"

#include <algorithm>
#include <map>

#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl {

void DecodeUnits(std::string_view text, std::vector<char32_t>& out) {
  StopSteps steps;
  for (size_t i = 0; i < text.size();) {
    steps.Step();
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out.push_back(byte);
      ++i;
      continue;
    }
    const DecodedCodepoint d = DecodeUtf8(text.substr(i));
    out.push_back(d.valid ? d.codepoint : kInvalidByte + byte);
    i += static_cast<size_t>(d.length);
  }
}

std::vector<CodepointRange> NormalizeRanges(std::vector<CodepointRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodepointRange& a, const CodepointRange& b) { return a.lo < b.lo; });
  std::vector<CodepointRange> out;
  for (const CodepointRange& range : ranges) {
    if (!out.empty() && range.lo <= out.back().hi + 1) {
      out.back().hi = std::max(out.back().hi, range.hi);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

std::vector<CodepointRange> ComplementRanges(std::vector<CodepointRange> ranges) {
  std::vector<CodepointRange> out;
  char32_t next = 0;
  for (const CodepointRange& range : NormalizeRanges(std::move(ranges))) {
    if (range.lo > next) out.push_back({next, range.lo - 1});
    next = range.hi + 1;
  }
  if (next <= kMaxUnit) out.push_back({next, kMaxUnit});
  return out;
}

std::vector<CodepointRange> FoldCaseRanges(std::vector<CodepointRange> ranges) {
  ranges = NormalizeRanges(std::move(ranges));
  const UnitSet set(ranges);
  std::vector<char32_t> folded;  // what some member folds to
  for (const CaseFold& fold : SimpleCaseFolds()) {
    if (set.Contains(fold.from) || set.Contains(fold.to)) folded.push_back(fold.to);
  }
  std::sort(folded.begin(), folded.end());
  for (const CaseFold& fold : SimpleCaseFolds()) {
    if (!std::binary_search(folded.begin(), folded.end(), fold.to)) continue;
    ranges.push_back({fold.from, fold.from});
    ranges.push_back({fold.to, fold.to});
  }
  return NormalizeRanges(std::move(ranges));
}

UnitSet::UnitSet(std::vector<CodepointRange> ranges)
    : ranges_(NormalizeRanges(std::move(ranges))), page_of_((kMaxUnit >> 8) + 1) {
  std::map<Page, uint16_t> known;
  size_t r = 0;
  for (char32_t page = 0; page < page_of_.size(); ++page) {
    Page bits{};
    const char32_t first = page << 8, last = first + 255;
    for (; r < ranges_.size() && ranges_[r].lo <= last; ++r) {
      const char32_t lo = std::max(ranges_[r].lo, first), hi = std::min(ranges_[r].hi, last);
      for (char32_t c = lo; c <= hi; ++c) bits[(c >> 6) & 3] |= uint64_t{1} << (c & 63);
      if (ranges_[r].hi > last) break;  // goes on in the next page
    }
    const auto [at, is_new] = known.try_emplace(bits, static_cast<uint16_t>(pages_.size()));
    if (is_new) pages_.push_back(bits);
    page_of_[page] = at->second;
  }
  ascii_ = {pages_[page_of_[0]][0], pages_[page_of_[0]][1]};
}

}  // namespace pawl
