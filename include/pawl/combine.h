// Grammars made from other grammars: fill a gap in a text, require words, intersect, complement.
// docs/infilling.md explains them.
//
//   // Which bodies make a complete program of these two halves?
//   pawl::Infilling gap{.prefix = "def f(x):\n", .after = {"\n    return y\n"}};
//   auto body = pawl::Infill(*python, gap);                         // a Grammar like any other
//
//   const std::string words[] = {"width", "height"};
//   auto both = pawl::RequireWords(*python, words);                 // both occur in the output
//
// The results are exact. The output may end exactly where the definition holds. A token is allowed
// exactly if some text that fits continues with it.
//
// What is made of a grammar that waits for its text (Grammar::unbound) waits for it as well:
// Grammar::Bind binds the grammars that it is made of.
//
// Thread safety: several threads may call all functions at the same time. A result shares parts and
// locks with the grammars that it is made from, so threads that use both wait for each other more
// often. Making a result holds the lock of its grammar for the whole call.
#ifndef PAWL_COMBINE_H_
#define PAWL_COMBINE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/result.h"

namespace pawl {

// A text with gaps. The first gap is filled next:
//
//   prefix  [gap]  after[0]  [gap]  after[1]  ...  [gap]  after.back()
struct Infilling {
  std::string prefix = {};
  std::vector<std::string> after = {""};  // at least one

  // Puts `output` into the first gap. false: there are no more gaps, and `prefix` is the whole
  // text.
  bool Fill(std::string_view output) {
    prefix.append(output).append(after.front());
    after.erase(after.begin());
    return !after.empty();
  }
};

// The grammar of all outputs for the first gap: some text of `grammar` is prefix + output +
// after[0] + any text + after[1] ... .
// Errors: kUnsatisfiable if nothing fits. Its place is "prefix, byte N", "suffix", or "after N" if
// there are several. Texts that are not UTF-8 are kInvalid. Grammars with limits on tokens are
// kUnsupported. So are texts that cut into a JSON Schema whose states cannot be listed (recursion,
// or keys that the schema does not name). Gaps that are too large are kLimit.
PAWL_EXPORT Result<Grammar> Infill(const Grammar& grammar, const Infilling& infilling);

// The texts with which a text of the grammar may end that begins with `prefix`: some text of the
// grammar is prefix + any text + output.
// Errors as of Infill.
PAWL_EXPORT Result<Grammar> Endings(const Grammar& grammar, std::string_view prefix);

// The texts of the grammar in which each word occurs at least once, in any order, overlapping or
// not. At most 12 words.
// Errors: kUnsatisfiable; kInvalid (place: "word N"); kUnsupported as for Infill; kLimit if grammar
// and words are too large together.
PAWL_EXPORT Result<Grammar> RequireWords(const Grammar& grammar,
                                         std::span<const std::string> words);

// The texts of both grammars. One of them must be regular: a regex, choices, a substring, or a
// schema whose states can be listed.
// Errors: kUnsupported if neither is regular.
// REQUIRES: both have the same vocabulary.
PAWL_EXPORT Result<Grammar> Intersect(const Grammar& a, const Grammar& b);

// All texts except those of the grammar.
// Errors: kUnsupported if the grammar is not of a regex, choices or a substring.
PAWL_EXPORT Result<Grammar> Complement(const Grammar& grammar);

}  // namespace pawl

#endif  // PAWL_COMBINE_H_
