// WalkString: the tokens that may follow a position in a string, all at once.
//
//   mask = what any string allows  -  what this one does not
//
// The trie of the tokens is walked together with the string's search, but only as far as the two
// differ: where the search has become free (StringSearch::FreedomOf) the rest of the subtree is
// known from StringTokens, where it is dead the rest is dead.
#ifndef PAWL_SCHEMAS_SCALAR_STRING_WALK_H_
#define PAWL_SCHEMAS_SCALAR_STRING_WALK_H_

#include <cstdint>
#include <vector>

#include "grammar/masks/machine_masks.h"
#include "schemas/scalar/json_string.h"
#include "schemas/scalar/string_search.h"
#include "schemas/scalar/string_tokens.h"

namespace pawl::schema {

// Tokens that close the string, as far as the string is concerned: what follows the quote is not
// looked at.
struct StringClosings {
  uint32_t begin, end;          // places in StringIndex::crossings()
  StringSearch::StateId state;  // after `read` code points of the token
  uint16_t read;
  // With freedom: the tokens whose length - read is in min..max. Without: all of them have the
  // length `read`, and the string may end in `state`.
  bool free;
  uint64_t min = 0, max = 0;
};

// `state`: of the search at a boundary of code points, reached where `index` begins; live. Sets the
// bits in `words` of the tokens that stay inside, and appends the others. `fresh`: words are zero,
// and index is that of the root. The path by which they were found.
MaskStrategy WalkString(StringSearch& search, StringSearch::StateId state,
                        const Vocabulary& vocabulary, uint32_t node, const StringTokens& tokens,
                        const StringIndex& index, StringSpelling spelling, bool fresh,
                        uint32_t* words, std::vector<StringClosings>& closings);

// The plain tokens (class_trie.h) that may follow a position in a string. The trie of classes is
// walked as if all characters of a class led to the same state. Where they do not, most of them do
// as a rule - a property's name makes one letter of many special - and the walk goes on with what
// most of them lead to; the few others are then compared with that on the trie of bytes, down to
// where the two become one state again.
//
// Of `state`, a boundary of code points. Sets bits in `words`, which has none of a plain token yet,
// and may set or clear those of other tokens as is right for them. False when the classes are of no
// use here: the characters of a class differ nearly everywhere. The words are zero again then.
bool WalkClasses(StringSearch& search, StringSearch::StateId state, const Vocabulary& vocabulary,
                 const ClassTrie& classes, uint32_t* words);

// WalkString of a string that is a span of a text, with a table of further conditions or none
// (source_walk.cc). The places of the closings are of the trie's order.
void WalkSource(StringSearch& search, StringSearch::StateId state, const Vocabulary& vocabulary,
                uint32_t node, StringSpelling spelling, uint32_t* words,
                std::vector<StringClosings>& closings);

// At most so many plain tokens may follow, to tell narrow positions from wide ones: those that
// begin with a character that may come.
uint32_t CountBeginnings(StringSearch& search, StringSearch::StateId state, const TokenTrie& trie,
                         const ClassTrie& classes);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_STRING_WALK_H_
