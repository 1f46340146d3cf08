// How a tokenizer spells what may be copied from a text.
//
//   CopiedSpelling spelling(encode, text, vocabulary);
//   std::shared_ptr<const Mask> first = spelling.Of(at, at.mask(), R"("K)");
//
// A model that copies a text seldom writes all tokens with which the copy may go on. Where the text
// has "Kofi", a model with the tokens "K", "Ko" and "ofi" writes "K", "ofi", and begins another
// word with "Ko". The tokens of the tokenizer's spelling are the first ones of its encodings of all
// that may follow as a copy, and at the beginning of a value what these begin with.
#ifndef PAWL_SRC_DECODE_COPIED_SPELLING_H_
#define PAWL_SRC_DECODE_COPIED_SPELLING_H_

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "pawl/grammar.h"
#include "pawl/matcher.h"
#include "pawl/vocabulary.h"
#include "src/base/sync.h"

namespace pawl {

class CopiedSpelling {
 public:
  // `text`: what values are copied from, as Grammar::Bind takes it. `vocabulary` outlives this.
  // Without `encode` every spelling is the tokenizer's.
  CopiedSpelling(Encoder encode, std::string_view text, const Vocabulary& vocabulary);

  // The tokens of `copies` without those with which a string or number begins or goes on in another
  // spelling than the tokenizer's. `value`: what is there of the value, the quote of a
  // string among it; empty in front of a value. Where no spelling is found: `copies`.
  std::shared_ptr<const Mask> Of(const State& at, std::shared_ptr<const Mask> copies,
                                 std::string_view value) const;

 private:
  using Tokens = std::set<std::string_view>;  // their bytes
  using Spelled = std::optional<Tokens>;      // nullopt: not known
  // The first tokens of `prefix` and what may be written behind it and `value`.
  Spelled FirstTokens(const State& at, std::string_view value, const std::string& prefix) const;
  // What follows `begun` in the text; everywhere where that is empty.
  Spelled OfText(std::string_view begun, const std::string& prefix) const;
  bool AddOfRest(size_t at, const std::string& prefix, Tokens& out) const;
  // Numbers and dates, which the text may write otherwise.
  bool AddOfDigits(const State& at, bool string, const std::string& prefix, Tokens& out) const;
  std::string_view FirstOf(const std::string& text) const;

  const Encoder encode_;
  const Vocabulary& vocabulary_;
  std::string text_;  // as JSON strings have it, white space as one space
  mutable Mutex mutex_;
  mutable std::map<std::string, Spelled> begins_;  // OfText("", prefix); with the mutex
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_COPIED_SPELLING_H_
