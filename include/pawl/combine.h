// Grammars made of other grammars: filling a gap in a text, words that must occur, intersection and
// complement.
//
//   // Which bodies make a whole program of these two halves?
//   pawl::Infilling gap{.prefix = "def f(x):\n", .after = {"\n    return y\n"}};
//   auto body = pawl::Infill(*python, gap);                         // a Grammar like any other
//
//   const std::string words[] = {"width", "height"};
//   auto both = pawl::RequireWords(*python, words);                 // both occur in the output
//
// The results are exact. The output may end exactly where the definition holds. A token is allowed
// when some text that fits goes on with it, and only then.
//
// The results share parts and locks with the grammars they are made of: they may be used from
// several threads, which then wait for each other more often. Making one takes the lock of its
// grammar as long as it lasts.
//
// Thread safety: all functions may be called from several threads at once.
#ifndef PAWL_COMBINE_H_
#define PAWL_COMBINE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/result.h"

namespace pawl {

// A text with gaps, of which the first is to be filled:
//
//   prefix  [gap]  after[0]  [gap]  after[1]  ...  [gap]  after.back()
struct Infilling {
  std::string prefix = {};
  std::vector<std::string> after = {""};  // at least one

  // Puts `output` into the gap and moves on to the next one. false when that was the last: then
  // prefix is the whole text.
  bool Fill(std::string_view output) {
    prefix.append(output).append(after.front());
    after.erase(after.begin());
    return !after.empty();
  }
};

// The outputs for the gap: those with which some text of the grammar is prefix + output + after[0]
// + any text + after[1] ... . Errors: kUnsatisfiable where nothing fits (place: "prefix, byte N",
// "suffix", or "after N" where there are several), kInvalid for what is not UTF-8, kUnsupported for
// grammars with limits on tokens and for texts that cut into a JSON Schema whose states cannot be
// listed (recursion, or objects with keys that it does not name), kLimit.
PAWL_EXPORT Result<Grammar> Infill(const Grammar& grammar, const Infilling& infilling);

// The texts of the grammar in which each of the words occurs at least once, in any order,
// overlapping or not. At most 12 words. Errors: kUnsatisfiable, kInvalid (place: "word N"),
// kUnsupported and kLimit where grammar and words are too large together.
PAWL_EXPORT Result<Grammar> RequireWords(const Grammar& grammar,
                                         std::span<const std::string> words);

// The texts of both. One of the two must be regular: a regex, choices, a substring, or a schema
// whose states can be listed; else kUnsupported. REQUIRES: the same vocabulary.
PAWL_EXPORT Result<Grammar> Intersect(const Grammar& a, const Grammar& b);

// All texts but those of the grammar, which must be of a regex, choices or a substring; else
// kUnsupported.
PAWL_EXPORT Result<Grammar> Complement(const Grammar& grammar);

}  // namespace pawl

#endif  // PAWL_COMBINE_H_
