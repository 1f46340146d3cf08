// SplitRegex: the regular expressions of tokenizer.json files ("Split", "Replace").
//
//   auto regex = SplitRegex::Compile(R"(\p{L}+|\s+(?!\S))");
//   std::vector<SplitRegex::Match> matches;
//   regex->FindAll(units, matches);
//
// The syntax is the part of Oniguruma's that such files use: literals, ".", classes (nested, and
// their intersection "&&"), \s \d \w and their complements, \p{..} with any property of
// src/base/utf8.h, groups, (?i:..), (?>..), (?=..), (?!..), ^ $ \A \z \b \B, alternation, and
// greedy, lazy and possessive repetition. Everything else is an error (kUnsupported, or kInvalid
// for bad syntax) whose place is "byte N" of the pattern.
//
// Properties are those of Unicode 15.0; Oniguruma 6.9.10 differs from that in nothing but the code
// points which Unicode 15.1 and 16.0 added.
//
// Immutable after Compile; all const methods are thread-safe.
#ifndef PAWL_SRC_TEXT_SPLIT_REGEX_H_
#define PAWL_SRC_TEXT_SPLIT_REGEX_H_

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "src/base/utf8.h"

namespace pawl {

// UnitSet: a set of code points and invalid bytes with constant-time lookup, for the classes of a
// Split pattern.
// Text is matched as code points in which a byte that is no part of valid UTF-8 is kInvalidByte +
// byte. No property holds such a unit, so exactly the complements ("\S", "[^a]") match it.
inline constexpr char32_t kInvalidByte = 0x110000;
inline constexpr char32_t kMaxUnit = kInvalidByte + 0xFF;

// The units of `text`, appended to `out`.
void DecodeUnits(std::string_view text, std::vector<char32_t>& out);
// Bytes that a unit takes in the text.
inline size_t UnitLength(char32_t unit) {
  return unit < 0x80 || unit >= kInvalidByte ? 1 : unit < 0x800 ? 2 : unit < 0x10000 ? 3 : 4;
}

class UnitSet {
 public:
  UnitSet() = default;
  // Any order, overlaps allowed.
  explicit UnitSet(std::vector<CodepointRange> ranges);

  bool Contains(char32_t unit) const {
    if (unit < 128) return (ascii_[unit >> 6] >> (unit & 63)) & 1;
    return (pages_[page_of_[unit >> 8]][(unit >> 6) & 3] >> (unit & 63)) & 1;
  }
  std::span<const CodepointRange> ranges() const { return ranges_; }
  friend bool operator==(const UnitSet& a, const UnitSet& b) { return a.ranges_ == b.ranges_; }

 private:
  using Page = std::array<uint64_t, 4>;  // 256 units
  std::vector<CodepointRange> ranges_;
  std::array<uint64_t, 2> ascii_{};
  std::vector<uint16_t> page_of_;
  std::vector<Page> pages_;
};

// Sorted, disjoint and non-adjacent ranges of the same set.
std::vector<CodepointRange> NormalizeRanges(std::vector<CodepointRange> ranges);
// All units from 0 to kMaxUnit that are not in `ranges`.
std::vector<CodepointRange> ComplementRanges(std::vector<CodepointRange> ranges);
// `ranges` and everything equal to a member without regard to case (simple case folding).
std::vector<CodepointRange> FoldCaseRanges(std::vector<CodepointRange> ranges);

class SplitRegex {
 public:
  struct Match {
    size_t begin, end;  // units
    friend bool operator==(const Match&, const Match&) = default;
  };

  static Result<SplitRegex> Compile(std::string_view pattern);
  // A pattern that matches `text` as it stands.
  static SplitRegex Literal(std::string_view text);

  // Appends all matches from left to right, none overlapping; an empty match never touches the end
  // of the match before it. Work is limited to a fixed number of steps for each unit of the text:
  // where a pattern would need more (only contrived ones do), the rest of the text counts as
  // without a match.
  void FindAll(std::span<const char32_t> units, std::vector<Match>& out) const;
  // The same, one match at a time.
  void ForEach(std::span<const char32_t> units,
               const std::function<void(const Match&)>& take) const;

 private:
  friend class SplitRegexCompiler;
  enum class Op : uint8_t {
    kSet,      // one unit of sets_[set]
    kSetLoop,  // min..max units of sets_[set], by `mode`
    kSplit,    // try x, then y
    kJump,     // to x
    kLook,     // run from the next instruction; go on at x, where this was, if it (`negative`: did
               // not) accept
    kAtomic,   // run from the next instruction; go on at x, where it ended
    kBeginLine,
    kEndLine,
    kBeginText,
    kEndText,
    kWordBoundary,  // between a unit of sets_[set] and none, or (`negative`) not there
    kAccept,
  };
  enum class Mode : uint8_t { kGreedy, kLazy, kPossessive };
  struct Instruction {
    Op op;
    Mode mode = Mode::kGreedy;
    bool negative = false;
    uint32_t set = 0;
    uint32_t x = 0, y = 0;
    uint32_t min = 0, max = 0;
  };
  struct Frame;
  struct Run;

  bool Step(Run& run, uint32_t pc, size_t position, size_t& end) const;
  bool Holds(const Instruction& in, std::span<const char32_t> units, size_t position) const;
  bool Repeat(Run& run, const Instruction& in, uint32_t next, size_t& position) const;
  bool Backtrack(Run& run, size_t base, uint32_t& pc, size_t& position) const;

  std::vector<Instruction> program_;
  std::vector<UnitSet> sets_;
};

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_SPLIT_REGEX_H_
