// The spans that begin alike are neighbours in the suffix array, so a beginning of a value is a
// range of it, and one more character narrows the range by two binary searches. The array is made
// by induced sorting (Nong, Zhang and Chan, "Linear Suffix Array Construction by Almost Pure
// Induced-Sorting", 2009), which takes linear time on texts that repeat themselves too. Places at
// which no span may begin are left out of it.
#include "src/base/source_text.h"

#include <algorithm>
#include <span>

#include "src/base/memory_size.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

// The code points that have one of the properties, as a sorted list of ranges.
class PropertySet {
 public:
  explicit PropertySet(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      const auto ranges = UnicodeProperty(name);
      ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
    }
    std::ranges::sort(ranges_, {}, &CodepointRange::lo);
  }
  // The sets of one property each are disjoint.
  bool Contains(char32_t c) const {
    const auto after = std::ranges::upper_bound(ranges_, c, {}, &CodepointRange::lo);
    return after != ranges_.begin() && c <= std::prev(after)->hi;
  }

 private:
  std::vector<CodepointRange> ranges_;
};

// A mark between the digits of a number.
bool IsNumberMark(char32_t c) { return c == '.' || c == ',' || c == '\'' || c == U'\u2019'; }

// In these any character is a border.
const PropertySet& WithoutSpaces() {
  static const PropertySet kScripts{
      "Script=Han",  "Script=Hiragana", "Script=Katakana", "Script=Bopomofo", "Script=Yi",
      "Script=Thai", "Script=Lao",      "Script=Khmer",    "Script=Myanmar",  "Script=Tibetan"};
  return kScripts;
}

// A mark that belongs to what stands before it, such as the variation selectors of emoji.
bool IsMark(char32_t c) {
  constexpr char32_t kFirst = 0x300;
  static const PropertySet kMarks{"M"};
  return c >= kFirst && kMarks.Contains(c) && !WithoutSpaces().Contains(c);
}

using Places = std::vector<int32_t>;

// By letter: where the suffixes that begin with it begin, those of kind L and those of kind S.
struct Buckets {
  Places large, small;
};

// Puts the suffixes in order, given some of kind S in theirs.
void Induce(const Places& word, const std::vector<bool>& small, const Buckets& begins,
            const Places& given, Places& sorted) {
  const auto n = static_cast<int32_t>(word.size());
  const auto letter = [&](int32_t at) {
    return static_cast<size_t>(word[static_cast<size_t>(at)]);
  };
  std::ranges::fill(sorted, -1);
  Places fill = begins.small;
  for (const int32_t at : given) sorted[static_cast<size_t>(fill[letter(at)]++)] = at;
  fill = begins.large;
  sorted[static_cast<size_t>(fill[letter(n - 1)]++)] = n - 1;
  for (int32_t i = 0; i < n; ++i) {
    const int32_t at = sorted[static_cast<size_t>(i)];
    if (at >= 1 && !small[static_cast<size_t>(at - 1)])
      sorted[static_cast<size_t>(fill[letter(at - 1)]++)] = at - 1;
  }
  fill = begins.large;
  for (int32_t i = n - 1; i >= 0; --i) {
    const int32_t at = sorted[static_cast<size_t>(i)];
    if (at >= 1 && small[static_cast<size_t>(at - 1)])
      sorted[static_cast<size_t>(--fill[letter(at - 1) + 1])] = at - 1;
  }
}

// The places of the word, sorted by what stands behind them. Letters are 0 ... most.
Places SortSuffixes(const Places& word, int32_t most) {
  const size_t n = word.size();
  if (n == 0) return {};
  if (n == 1) return {0};
  std::vector<bool> small(n);
  for (size_t i = n - 1; i-- > 0;)
    small[i] = word[i] == word[i + 1] ? small[i + 1] : word[i] < word[i + 1];
  const auto letters = static_cast<size_t>(most) + 1;
  Buckets begins{Places(letters + 1), Places(letters + 1)};
  for (size_t i = 0; i < n; ++i) {
    if (small[i]) {
      ++begins.large[static_cast<size_t>(word[i]) + 1];
    } else {
      ++begins.small[static_cast<size_t>(word[i])];
    }
  }
  for (size_t c = 0; c < letters; ++c) {
    begins.small[c] += begins.large[c];
    begins.large[c + 1] += begins.small[c];
  }
  Places number(n, -1), lms;
  for (size_t i = 1; i < n; ++i) {
    if (small[i - 1] || !small[i]) continue;
    number[i] = static_cast<int32_t>(lms.size());
    lms.push_back(static_cast<int32_t>(i));
  }
  Places sorted(n);
  Induce(word, small, begins, lms, sorted);
  if (lms.empty()) return sorted;
  Places in_order;
  for (const int32_t at : sorted) {
    if (number[static_cast<size_t>(at)] >= 0) in_order.push_back(at);
  }
  const auto end_of = [&](int32_t at) {
    const auto next = static_cast<size_t>(number[static_cast<size_t>(at)]) + 1;
    return next < lms.size() ? static_cast<size_t>(lms[next]) : n;
  };
  const auto same = [&](int32_t a, int32_t b) {
    const auto l = static_cast<size_t>(a), r = static_cast<size_t>(b);
    const size_t l_end = end_of(a), r_end = end_of(b);
    if (l_end - l != r_end - r || l_end == n || r_end == n) return false;
    return std::equal(word.begin() + a, word.begin() + static_cast<ptrdiff_t>(l_end) + 1,
                      word.begin() + b);
  };
  Places names(lms.size());
  int32_t name = 0;
  for (size_t i = 1; i < in_order.size(); ++i) {
    if (!same(in_order[i - 1], in_order[i])) ++name;
    names[static_cast<size_t>(number[static_cast<size_t>(in_order[i])])] = name;
  }
  const Places ranks = SortSuffixes(names, name);
  for (size_t i = 0; i < lms.size(); ++i) in_order[i] = lms[static_cast<size_t>(ranks[i])];
  Induce(word, small, begins, in_order, sorted);
  return sorted;
}

// The code points of texts with borders between them.
std::u32string DecodeTexts(std::string_view texts) {
  std::u32string out;
  for (;;) {
    const size_t border = texts.find(kTextBorder);
    out += DecodeCodepoints(texts.substr(0, border));
    if (border == std::string_view::npos) return out;
    out += kTextBorderCode;
    texts.remove_prefix(border + 1);
  }
}

}  // namespace

TextCuts TakeCuts(std::string_view& text) {
  TextCuts cuts;
  cuts.begin = text.starts_with(kTextCut);
  if (cuts.begin) text.remove_prefix(1);
  cuts.end = text.ends_with(kTextCut);
  if (cuts.end) text.remove_suffix(1);
  return cuts;
}

std::string WithCuts(std::string_view text, const TextCuts& cuts) {
  std::string out(cuts.begin ? 1 : 0, kTextCut);
  out += text;
  if (cuts.end) out += kTextCut;
  return out;
}

size_t FindInvalidSource(std::string_view text) {
  const size_t taken = TakeCuts(text).begin ? 1 : 0;
  for (size_t begin = 0;;) {
    const size_t border = std::min(text.find(kTextBorder, begin), text.size());
    const size_t bad = FindInvalidUtf8(text.substr(begin, border - begin));
    if (bad != std::string_view::npos) return taken + begin + bad;
    if (border == text.size()) return std::string_view::npos;
    begin = border + 1;
  }
}

SourceText::Sort SourceText::SortOf(char32_t c) {
  if (c < 0x80) {
    if (c == ' ' || (c >= '\t' && c <= '\r')) return Sort::kSpace;
    if (c >= '0' && c <= '9') return Sort::kDigit;
    return IsLetter(static_cast<char>(c)) || c == '_' ? Sort::kWord : Sort::kOther;
  }
  static const PropertySet kSpaces{"White_Space"}, kDigits{"Nd"}, kWords{"L", "M", "N"};
  if (kSpaces.Contains(c)) return Sort::kSpace;
  if (WithoutSpaces().Contains(c)) return Sort::kOther;
  if (kDigits.Contains(c)) return Sort::kDigit;
  return kWords.Contains(c) ? Sort::kWord : Sort::kOther;
}

SourceText::SourceText(std::string_view utf8, Spaces spaces) {
  const bool kept = spaces == Spaces::kAsGiven;
  const TextCuts cuts = TakeCuts(utf8);
  const std::u32string given = DecodeTexts(utf8);
  text_.reserve(given.size());
  places_.reserve(given.size() + 1);
  for (size_t i = 0; i < given.size(); ++i) {
    Sort sort = SortOf(given[i]);
    // A mark goes on what stands before it: behind a letter a word, behind a sign that sign.
    const bool first = text_.empty() || text_.back() == kTextBorderCode;  // of a text
    const bool behind_sign = !first && sorts_.back() == Sort::kOther;
    if (behind_sign && sort == Sort::kWord && IsMark(given[i])) sort = Sort::kOther;
    const bool space = sort == Sort::kSpace && !kept;
    if (space && (first || sorts_.back() == Sort::kSpace)) continue;
    if (given[i] == kTextBorderCode && !kept) DropSpaceBehind();
    text_.push_back(space ? U' ' : given[i]);
    sorts_.push_back(sort);
    places_.push_back(static_cast<uint32_t>(i));
  }
  if (!kept) DropSpaceBehind();
  places_.push_back(places_.empty() ? 0 : places_.back() + 1);
  SetCuts(cuts);
}

// What may belong to a word or number that goes on behind a cut, or to a sign with its marks.
void SourceText::SetCuts(const TextCuts& cuts) {
  const auto joins = [this](size_t i) {
    return sorts_[i] == Sort::kWord || sorts_[i] == Sort::kDigit || IsNumberMark(text_[i]) ||
           IsMark(text_[i]);
  };
  last_ = text_.size();
  for (bool more = cuts.end; more && last_ > 0;) {
    const bool of_sign = sorts_[--last_] == Sort::kOther && IsMark(text_[last_]);
    more = joins(last_) && last_ > 0 && (of_sign || joins(last_ - 1));
  }
  while (cuts.begin && first_ < last_ && joins(first_)) ++first_;
}

void SourceText::DropSpaceBehind() {
  if (sorts_.empty() || sorts_.back() != Sort::kSpace) return;
  text_.pop_back();
  sorts_.pop_back();
  places_.pop_back();
}

bool SourceText::IsMark(char32_t c) { return pawl::IsMark(c); }

bool SourceText::InNumber(size_t place) const {
  if (place == 0 || !IsNumberMark(text_[place])) return false;
  const auto digit = [this](size_t i) { return i < sorts_.size() && sorts_[i] == Sort::kDigit; };
  size_t before = place - 1;
  while (before > 0 && IsMark(text_[before])) --before;
  if (!digit(before) || !digit(place + 1)) return false;
  if (text_[place] == '.' || text_[place] == ',') return true;
  return digit(place + 2) && digit(place + 3) && !digit(place + 4);
}

bool SourceText::Inside(size_t place) const {
  if (place == 0 || place >= text_.size()) return false;
  if (sorts_[place] == Sort::kOther && IsMark(text_[place])) return true;
  const auto word = [this](size_t i) {
    return sorts_[i] == Sort::kWord || sorts_[i] == Sort::kDigit;
  };
  if (word(place - 1)) {
    return word(place) || InNumber(place);
  }
  return InNumber(place - 1);
}

bool SourceText::BeginsAt(SpanKind kind, size_t place) const {
  if (place >= text_.size() || text_[place] == kTextBorderCode) return false;
  if (kind == SpanKind::kChars) return true;
  return place >= first_ && place < last_ && sorts_[place] != Sort::kSpace && !Inside(place);
}

bool SourceText::EndsAt(SpanKind kind, size_t place) const {
  if (place == 0 || place > text_.size() || text_[place - 1] == kTextBorderCode) return false;
  if (kind == SpanKind::kChars) return true;
  return place > first_ && place <= last_ && sorts_[place - 1] != Sort::kSpace && !Inside(place);
}

const std::u32string& SourceText::letters() {
  if (!letters_.empty()) return letters_;
  std::array<bool, 128> ascii{};
  for (const char32_t c : text_) {
    if (c < 128) {
      ascii[c] = true;
    } else if (c != kTextBorderCode) {
      letters_ += c;
    }
  }
  std::ranges::sort(letters_);
  letters_.erase(std::unique(letters_.begin(), letters_.end()), letters_.end());
  std::u32string below;
  for (char32_t c = 0; c < 128; ++c) {
    if (ascii[c]) below += c;
  }
  letters_.insert(0, below);
  return letters_;
}

const std::vector<uint32_t>& SourceText::Sorted(SpanKind kind) {
  std::optional<std::vector<uint32_t>>& known = sorted_[static_cast<size_t>(kind)];
  if (known) return *known;
  const std::u32string& all = letters();
  std::array<int32_t, 128> of_ascii{};
  for (size_t i = 0; i < all.size() && all[i] < 128; ++i)
    of_ascii[all[i]] = static_cast<int32_t>(i);
  Places word;
  word.reserve(text_.size());
  for (const char32_t c : text_) {
    word.push_back(c < 128 ? of_ascii[c]
                           : static_cast<int32_t>(std::ranges::lower_bound(all, c) - all.begin()));
  }
  std::vector<uint32_t>& out = known.emplace();
  for (const int32_t place : SortSuffixes(word, static_cast<int32_t>(all.size()))) {
    if (BeginsAt(kind, static_cast<size_t>(place))) out.push_back(static_cast<uint32_t>(place));
  }
  out.shrink_to_fit();
  return out;
}

SourceText::Occurrences SourceText::All(SpanKind kind) {
  return {0, static_cast<uint32_t>(Sorted(kind).size()), 0};
}

// The first occurrence that goes on with `c` or what comes behind it.
uint32_t SourceText::LowerBound(const std::vector<uint32_t>& places, const Occurrences& at,
                                char32_t c) const {
  const auto before = [&](uint32_t place) {
    const size_t next = size_t{place} + at.length;
    return next >= text_.size() || text_[next] < c;
  };
  // The first ones are looked at first: mostly few occurrences go on alike.
  uint32_t lo = at.lo, step = 1;
  while (lo + step <= at.hi && before(places[lo + step - 1])) {
    lo += step;
    step *= 2;
  }
  const auto first = places.begin() + lo, last = places.begin() + std::min(lo + step, at.hi);
  return static_cast<uint32_t>(std::partition_point(first, last, before) - places.begin());
}

SourceText::Occurrences SourceText::Next(SpanKind kind, const Occurrences& at, char32_t c) {
  const std::vector<uint32_t>& places = Sorted(kind);
  const uint32_t lo = LowerBound(places, at, c);
  return {lo, LowerBound(places, {lo, at.hi, at.length}, c + 1), at.length + 1};
}

SourceText::Occurrences SourceText::After(SpanKind kind, Occurrences at, std::u32string_view text) {
  for (; !text.empty() && at.hi - at.lo > 1; text.remove_prefix(1)) at = Next(kind, at, text[0]);
  if (text.empty() || at.empty()) return at;
  const size_t from = size_t{Sorted(kind)[at.lo]} + at.length;
  const bool goes_on = from <= text_.size() && this->text().substr(from).starts_with(text);
  return {at.lo, goes_on ? at.hi : at.lo, at.length + static_cast<uint32_t>(text.size())};
}

bool SourceText::GoesOn(SpanKind kind, const Occurrences& at, char32_t lo, char32_t hi) {
  const std::vector<uint32_t>& places = Sorted(kind);
  const uint32_t first = LowerBound(places, at, lo);
  return first < at.hi && text_[size_t{places[first]} + at.length] <= hi;
}

size_t SourceText::EndFrom(SpanKind kind, size_t place) {
  if (kind == SpanKind::kChars) return std::max<size_t>(place, 1);
  if (ends_.empty()) {
    ends_.resize(text_.size() + 1);
    for (size_t i = text_.size() + 1; i-- > 0;) {
      const bool ends = i == text_.size() || EndsAt(kind, i);
      ends_[i] = ends ? static_cast<uint32_t>(i) : ends_[i + 1];
    }
  }
  return ends_[place];
}

bool SourceText::EndsSpan(SpanKind kind, const Occurrences& at) {
  if (at.length == 0 || at.empty()) return false;
  if (kind == SpanKind::kChars) return true;
  const std::vector<uint32_t>& places = Sorted(kind);
  const auto ends = [&](uint32_t i) { return EndsAt(kind, size_t{places[i]} + at.length); };
  // What is read is the same at all of them, so of many one for each character behind it decides.
  // Behind a digit a mark may go on the number, which takes a look at what follows that.
  constexpr uint32_t kFew = 16;
  const bool digit = sorts_[size_t{places[at.lo]} + at.length - 1] == Sort::kDigit;
  for (uint32_t i = at.lo; i < at.hi;) {
    if (ends(i)) return true;
    const size_t next = size_t{places[i]} + at.length;
    const bool alike =
        at.hi - i > kFew && next < text_.size() && !(digit && IsNumberMark(text_[next]));
    i = alike ? LowerBound(places, {i + 1, at.hi, at.length}, text_[next] + 1) : i + 1;
  }
  return false;
}

SourceText::NearestEnd SourceText::Nearest(SpanKind kind, const Occurrences& at) {
  const std::vector<uint32_t>& places = Sorted(kind);
  NearestEnd best{UINT32_MAX, 0};
  const uint32_t least = at.length == 0 ? 1 : 0;
  for (uint32_t i = at.lo; i < at.hi && best.missing > least; ++i) {
    const size_t from = size_t{places[i]} + at.length;
    const auto missing = static_cast<uint32_t>(EndFrom(kind, from + least) - from);
    if (missing < best.missing) best = {missing, static_cast<uint32_t>(from)};
  }
  return best;
}

std::vector<std::u32string> SourceText::Chunks() const {
  std::vector<std::u32string> chunks;
  for (size_t i = 0; i < text_.size(); ++i) {
    if (i == 0 || BeginsAt(SpanKind::kSpan, i) || EndsAt(SpanKind::kSpan, i)) chunks.emplace_back();
    chunks.back() += text_[i];
  }
  return chunks;
}

std::vector<size_t> SourceText::Find(SpanKind kind, std::u32string_view value) {
  Occurrences at = All(kind);
  for (size_t i = 0; i < value.size() && !at.empty(); ++i) at = Next(kind, at, value[i]);
  std::vector<size_t> out;
  for (uint32_t i = at.lo; i < at.hi && !value.empty(); ++i) {
    const size_t place = Sorted(kind)[i];
    if (EndsAt(kind, place + value.size())) out.push_back(place);
  }
  std::ranges::sort(out);
  return out;
}

size_t SourceText::MemoryBytes() const {
  size_t sorted = 0;
  for (const auto& one : sorted_) sorted += one ? one->capacity() * sizeof(uint32_t) : 0;
  return sizeof(*this) + (text_.capacity() + letters_.capacity()) * sizeof(char32_t) +
         HeapBytes(places_, sorts_, ends_) + sorted;
}

}  // namespace pawl
