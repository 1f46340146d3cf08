// Set algebra by merging sorted lists of ranges; every operation is linear in the number of ranges.
#include "grammar/regex/codepoint_set.h"

#include <algorithm>
#include <unordered_set>

#include "src/base/utf8.h"

namespace pawl {

CodepointSet CodepointSet::FromRanges(std::span<const CodepointRange> ranges) {
  std::vector<CodepointRange> sorted;
  sorted.reserve(ranges.size());
  for (CodepointRange range : ranges) {
    range.hi = std::min(range.hi, kMaxCodepoint);
    if (range.lo <= range.hi) sorted.push_back(range);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const CodepointRange& a, const CodepointRange& b) { return a.lo < b.lo; });
  CodepointSet set;
  for (const CodepointRange& range : sorted) {
    if (!set.ranges_.empty() && range.lo <= set.ranges_.back().hi + 1) {
      set.ranges_.back().hi = std::max(set.ranges_.back().hi, range.hi);
    } else {
      set.ranges_.push_back(range);
    }
  }
  return set;
}

CodepointSet CodepointSet::Of(char32_t lo, char32_t hi) {
  const CodepointRange range{lo, hi};
  return FromRanges({&range, 1});
}

CodepointSet CodepointSet::All() { return Of(0, kMaxCodepoint); }

CodepointSet CodepointSet::Union(const CodepointSet& other) const {
  std::vector<CodepointRange> all(ranges_);
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  return FromRanges(all);
}

CodepointSet CodepointSet::Intersect(const CodepointSet& other) const {
  CodepointSet set;
  size_t i = 0, j = 0;
  while (i < ranges_.size() && j < other.ranges_.size()) {
    const char32_t lo = std::max(ranges_[i].lo, other.ranges_[j].lo);
    const char32_t hi = std::min(ranges_[i].hi, other.ranges_[j].hi);
    if (lo <= hi) set.ranges_.push_back({lo, hi});
    if (ranges_[i].hi < other.ranges_[j].hi) {
      ++i;
    } else {
      ++j;
    }
  }
  return set;
}

CodepointSet CodepointSet::Complement() const {
  CodepointSet set;
  char32_t next = 0;
  for (const CodepointRange& range : ranges_) {
    if (next < range.lo) set.ranges_.push_back({next, range.lo - 1});
    next = range.hi + 1;
  }
  if (next <= kMaxCodepoint) set.ranges_.push_back({next, kMaxCodepoint});
  return set;
}

CodepointSet CodepointSet::CaseClosure() const {
  // The foldings reached from members, then everything that folds to one of them.
  std::unordered_set<char32_t> targets;
  for (const CaseFold& fold : SimpleCaseFolds()) {
    if (Contains(fold.from) || Contains(fold.to)) targets.insert(fold.to);
  }
  if (targets.empty()) return *this;
  std::vector<CodepointRange> all(ranges_);
  for (const CaseFold& fold : SimpleCaseFolds()) {
    if (!targets.count(fold.to)) continue;
    all.push_back({fold.from, fold.from});
    all.push_back({fold.to, fold.to});
  }
  return FromRanges(all);
}

bool CodepointSet::Contains(char32_t codepoint) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), codepoint,
                       [](char32_t key, const CodepointRange& range) { return key < range.lo; });
  return after != ranges_.begin() && codepoint <= std::prev(after)->hi;
}

size_t CodepointSet::size() const {
  size_t total = 0;
  for (const CodepointRange& range : ranges_) total += range.hi - range.lo + 1;
  return total;
}

std::optional<CodepointSet> TakePosixClass(std::string_view text, size_t& at, bool ignore_case) {
  struct Posix {
    std::string_view name;
    std::string_view ranges;  // pairs of first and last
  };
  static constexpr Posix kClasses[] = {
      {"alnum", "09AZaz"},   {"alpha", "AZaz"},    {"ascii", {"\0\x7f", 2}},
      {"blank", "\t\t  "},   {"digit", "09"},      {"cntrl", {"\0\x1f\x7f\x7f", 4}},
      {"graph", "!~"},       {"lower", "az"},      {"print", " ~"},
      {"punct", "!/:@[`{~"}, {"space", "\t\r  "},  {"upper", "AZ"},
      {"word", "09AZ__az"},  {"xdigit", "09AFaf"},
  };
  const std::string_view rest = text.substr(at, 12);
  const size_t end = rest.find(":]", 2);
  if (!rest.starts_with("[:") || end == std::string_view::npos) return std::nullopt;
  std::string_view name = rest.substr(2, end - 2);
  const bool negative = name.starts_with('^');
  if (negative) name.remove_prefix(1);
  for (const Posix& posix : kClasses) {
    if (posix.name != name) continue;
    std::vector<CodepointRange> ranges;
    for (size_t i = 0; i < posix.ranges.size(); i += 2) {
      ranges.push_back({static_cast<unsigned char>(posix.ranges[i]),
                        static_cast<unsigned char>(posix.ranges[i + 1])});
    }
    at += end + 2;
    CodepointSet set = CodepointSet::FromRanges(ranges);
    if (ignore_case) set = set.CaseClosure();
    return negative ? set.Complement() : set;
  }
  return std::nullopt;
}

std::optional<PropertyName> TakePropertyName(std::string_view text, size_t& at) {
  if (!text.substr(at).starts_with('{')) {
    const std::string_view letter = text.substr(at, 1);
    if (letter.empty() || !IsLetter(letter[0])) return std::nullopt;
    ++at;
    return PropertyName{letter, false};
  }
  const size_t end = text.find('}', at);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view name = text.substr(at + 1, end - at - 1);
  at = end + 1;
  const bool negative = name.starts_with('^');
  if (negative) name.remove_prefix(1);
  return PropertyName{name, negative};
}

}  // namespace pawl
