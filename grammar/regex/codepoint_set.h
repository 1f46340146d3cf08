// CodepointSet: a set of Unicode code points as sorted, disjoint, non-adjacent inclusive ranges.
// A value; no shared state.
#ifndef PAWL_GRAMMAR_REGEX_CODEPOINT_SET_H_
#define PAWL_GRAMMAR_REGEX_CODEPOINT_SET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/utf8.h"

namespace pawl {

class CodepointSet {
 public:
  CodepointSet() = default;
  // Ranges in any order, overlapping or not; those with lo > hi are ignored, hi is cut at U+10FFFF.
  static CodepointSet FromRanges(std::span<const CodepointRange> ranges);
  static CodepointSet Of(char32_t lo, char32_t hi);
  static CodepointSet Of(char32_t codepoint) { return Of(codepoint, codepoint); }
  // Every code point, surrogates included.
  static CodepointSet All();

  CodepointSet Union(const CodepointSet& other) const;
  CodepointSet Intersect(const CodepointSet& other) const;
  CodepointSet Complement() const;
  // With every code point that is equal to a member without regard to case (simple case folding).
  CodepointSet CaseClosure() const;

  bool Contains(char32_t codepoint) const;
  bool empty() const { return ranges_.empty(); }
  // Number of code points.
  size_t size() const;
  size_t MemoryBytes() const { return ranges_.capacity() * sizeof(CodepointRange) + 16; }
  std::span<const CodepointRange> ranges() const { return ranges_; }

  friend bool operator==(const CodepointSet&, const CodepointSet&) = default;

 private:
  std::vector<CodepointRange> ranges_;
};

// The set that a POSIX class such as [:alpha:] or [:^alpha:] names at text[at]; `at` is moved
// behind it. nullopt, and `at` as it was, where none stands there. `ignore_case`: the class is
// closed under case before '^' takes its complement, as in Rust and PCRE.
std::optional<CodepointSet> TakePosixClass(std::string_view text, size_t& at, bool ignore_case);

// The name of a Unicode property behind \p or \P: "{name}", "{^name}" or one letter; `at` is moved
// behind it. nullopt where none of them stands there.
struct PropertyName {
  std::string_view name;
  bool negative;
};
std::optional<PropertyName> TakePropertyName(std::string_view text, size_t& at);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_REGEX_CODEPOINT_SET_H_
