// SourceText: a text, and which of its spans a value may be.
//
//   SourceText source("Invoice 7  from\nAcme");
//   SourceText::Occurrences at = source.All(SpanKind::kSpan);
//   at = source.Next(SpanKind::kSpan, at, U'A');          // where "A" begins a span
//   source.EndsSpan(SpanKind::kSpan, at);                 // false: "A" is inside a word
//
// Spans are compared by code points. A run of white space counts as one space, and white space at
// either end of the text is left out. A kSpan neither begins nor ends with white space, inside a
// word (letters, marks, digits, `_`) or inside a number (`12` of `12.5`). An apostrophe belongs to
// a number in front of three digits (`1'240`, not `5'11"`). In scripts without spaces each
// character is a border. A kChars is any span. With Spaces::kAsGiven white space stays as it is.
// Several texts can be one, with a kTextBorder between them that no span crosses. With a kTextCut
// at the beginning or end a word of a longer text is cut there: no kSpan touches what is left of
// it.
//
// Memory: about 17 bytes for each character, and 4 for each character at which a span may begin.
// Thread safety: immutable but for the sorted places, which are made at the first use; callers take
// turns.
#ifndef PAWL_SRC_BASE_SOURCE_TEXT_H_
#define PAWL_SRC_BASE_SOURCE_TEXT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl {

enum class SpanKind : uint8_t { kSpan, kChars };

// A byte that UTF-8 does not have, and the code point of SourceText::text() that stands for it.
inline constexpr char kTextBorder = '\xFF';
inline constexpr char32_t kTextBorderCode = 0x110000;
// Another one, which is no part of the text.
inline constexpr char kTextCut = '\xFE';
// Takes the cuts at both ends away; whether there were any.
struct TextCuts {
  bool begin = false, end = false;
};
TextCuts TakeCuts(std::string_view& text);
std::string WithCuts(std::string_view text, const TextCuts& cuts);
// The first byte that neither belongs to UTF-8 nor is a border; npos: there is none.
size_t FindInvalidSource(std::string_view text);

class SourceText {
 public:
  enum class Spaces : uint8_t { kOne, kAsGiven };
  explicit SourceText(std::string_view utf8, Spaces spaces = Spaces::kOne);

  // The code points, with white space as spans have it.
  std::u32string_view text() const { return text_; }
  // Each of them but borders once, ascending.
  const std::u32string& letters();
  // The character of the text as it was given at which a place of text() stands; its end for
  // text().size().
  size_t CharacterAt(size_t place) const { return places_[place]; }
  // The character behind the last one of a span that ends at a place. REQUIRES: place > 0.
  size_t CharacterBehind(size_t place) const { return places_[place - 1] + 1; }
  // A span may begin, or end, here.
  bool BeginsAt(SpanKind kind, size_t place) const;
  bool EndsAt(SpanKind kind, size_t place) const;

  // A value at these places touches no word that is cut.
  bool IsWhole(size_t begin, size_t end) const { return begin >= first_ && end <= last_; }

  // The places at which a beginning of a span of some length occurs, as a range of the sorted
  // places.
  struct Occurrences {
    uint32_t lo = 0, hi = 0, length = 0;
    bool empty() const { return lo == hi; }
    friend bool operator==(const Occurrences&, const Occurrences&) = default;
  };
  Occurrences All(SpanKind kind);
  // The places that Occurrences are a range of.
  const std::vector<uint32_t>& SortedPlaces(SpanKind kind) { return Sorted(kind); }
  // Those that go on with the code point.
  Occurrences Next(SpanKind kind, const Occurrences& at, char32_t c);
  // Those that go on with the whole text.
  Occurrences After(SpanKind kind, Occurrences at, std::u32string_view text);
  // Whether one of them goes on with a code point of lo ... hi.
  bool GoesOn(SpanKind kind, const Occurrences& at, char32_t lo, char32_t hi);
  // fn(code point, those that go on with it) for each code point with which they go on, ascending.
  template <typename Fn>
  void ForFollowing(SpanKind kind, const Occurrences& at, Fn&& fn) {
    const std::vector<uint32_t>& places = Sorted(kind);
    for (uint32_t i = LowerBound(places, at, 0); i < at.hi;) {
      const char32_t c = text_[size_t{places[i]} + at.length];
      if (c == kTextBorderCode) break;  // the greatest
      const uint32_t next = LowerBound(places, {i + 1, at.hi, at.length}, c + 1);
      fn(c, Occurrences{i, next, at.length + 1});
      i = next;
    }
  }
  // fn(those that go on with it) for each code point of lo ... hi, ascending, until one is true;
  // whether one was.
  template <typename Fn>
  bool AnyWithin(SpanKind kind, const Occurrences& at, char32_t lo, char32_t hi, Fn&& fn) {
    const std::vector<uint32_t>& places = Sorted(kind);
    for (uint32_t i = LowerBound(places, at, lo); i < at.hi;) {
      const char32_t c = text_[size_t{places[i]} + at.length];
      if (c > hi || c == kTextBorderCode) return false;
      const uint32_t next = LowerBound(places, {i + 1, at.hi, at.length}, c + 1);
      if (fn(Occurrences{i, next, at.length + 1})) return true;
      i = next;
    }
    return false;
  }
  // One of them is a whole span.
  bool EndsSpan(SpanKind kind, const Occurrences& at);
  // The one that needs the fewest code points to the end of a span: how many, and where in text()
  // they stand. REQUIRES: not empty.
  struct NearestEnd {
    uint32_t missing;
    uint32_t from;
  };
  NearestEnd Nearest(SpanKind kind, const Occurrences& at);
  // The text, cut wherever a kSpan may begin or end.
  std::vector<std::u32string> Chunks() const;
  static bool IsSpace(char32_t c) { return SortOf(c) == Sort::kSpace; }
  // Letters, marks, digits and `_` of scripts that have spaces between words.
  static bool IsWord(char32_t c) { return SortOf(c) == Sort::kWord || SortOf(c) == Sort::kDigit; }
  // A mark that belongs to what stands before it, as an accent or a variation selector of emoji.
  static bool IsMark(char32_t c);
  // The places at which the value is a span, ascending.
  std::vector<size_t> Find(SpanKind kind, std::u32string_view value);

  size_t MemoryBytes() const;

 private:
  enum class Sort : uint8_t { kSpace, kWord, kDigit, kOther };
  static Sort SortOf(char32_t c);
  void DropSpaceBehind();
  void SetCuts(const TextCuts& cuts);
  // The mark at a place stands inside a number.
  bool InNumber(size_t place) const;
  bool Inside(size_t place) const;
  const std::vector<uint32_t>& Sorted(SpanKind kind);
  // The first place from this one on at which a span may end.
  size_t EndFrom(SpanKind kind, size_t place);
  uint32_t LowerBound(const std::vector<uint32_t>& places, const Occurrences& at, char32_t c) const;

  std::u32string text_, letters_;
  size_t first_ = 0, last_ = 0;   // a kSpan lies between these places
  std::vector<uint32_t> places_;  // by place, and one more
  std::vector<Sort> sorts_;
  std::array<std::optional<std::vector<uint32_t>>, 2> sorted_;  // by kind
  std::vector<uint32_t> ends_;  // by place: the next one at which a kSpan may end; made when asked
};

}  // namespace pawl

#endif  // PAWL_SRC_BASE_SOURCE_TEXT_H_
