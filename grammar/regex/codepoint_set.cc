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

}  // namespace pawl
