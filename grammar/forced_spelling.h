// Forced spelling: in which tokens a run of bytes that the constraint dictates is written.
//
//   const auto tokens = pawl::SpellForced(vocabulary, encode, state.forced());
//
// A key such as "customer" is forced as text, but "c" "ustomer" spells it as well as "customer"
// does, and a model that has to go on from an unusual spelling goes on worse. So the run is encoded
// the way the model's training text was. Bytes at its end are left out where a longer token could
// still swallow them together with what follows: there the model has a choice.
#ifndef PAWL_GRAMMAR_FORCED_SPELLING_H_
#define PAWL_GRAMMAR_FORCED_SPELLING_H_

#include <string_view>
#include <vector>

#include "pawl/matcher.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

// Tokens that spell a prefix of `forced` (perhaps all of it, perhaps nothing): no token of the
// vocabulary begins with the bytes of its last tokens and goes on. Empty when the encoding is not
// made of exactly these bytes, as with tokenizers that put a space before every text.
// Shown by a shared libpawl_core, for libpawl_engine.
PAWL_EXPORT std::vector<TokenId> SpellForced(const Vocabulary& vocabulary, const Encoder& encode,
                                             std::string_view forced);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_FORCED_SPELLING_H_
