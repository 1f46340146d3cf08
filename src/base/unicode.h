// Unicode properties and simple case folding, from tables (Unicode 15.0). No state, thread-safe.
//
//   for (CodepointRange range : UnicodeProperty("Script=Greek")) Use(range.lo, range.hi);
#ifndef PAWL_SRC_BASE_UNICODE_H_
#define PAWL_SRC_BASE_UNICODE_H_

#include <span>
#include <string_view>

namespace pawl {

struct CodepointRange {
  char32_t lo;
  char32_t hi;  // inclusive
  friend bool operator==(const CodepointRange&, const CodepointRange&) = default;
};

// The code points that have a property, as sorted, disjoint, non-adjacent ranges; empty when the
// name is unknown (no property is empty). Surrogates count as code points here. Names, matched
// without regard to case, spaces, '-' and '_':
//   general categories     "Lu", "L", "LC", "Uppercase_Letter", "gc=Lu", "General_Category=Letter"
//   scripts                "Greek", "Grek", "sc=Greek", "Script=Grek", "scx=Greek",
//   "Script_Extensions=.." binary properties      "Alphabetic", "Uppercase", "White_Space",
//   "ID_Start", "Emoji", ... and "Any", "ASCII", "Assigned"
std::span<const CodepointRange> UnicodeProperty(std::string_view name);

// One line of the simple case folding: `from` folds to `to`.
struct CaseFold {
  char32_t from;
  char32_t to;
};

// All code points whose simple folding is another code point, sorted by `from`. Two code points are
// equal without regard to case when their foldings are equal; `to` never folds further.
std::span<const CaseFold> SimpleCaseFolds();
// The simple case folding of one code point: 'A' -> 'a'; itself when it has none. O(log n).
char32_t SimpleFold(char32_t codepoint);

}  // namespace pawl

#endif  // PAWL_SRC_BASE_UNICODE_H_
