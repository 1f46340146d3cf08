// WalkClasses: the plain tokens (class_trie.h) that may follow a position in a string.
//
// The trie of classes is walked as if all characters of a class led to the same state. Where they
// do not, most of them do as a rule - a property's name makes one letter of many special - and the
// walk goes on with what most of them lead to; the few others are then compared with that on the
// trie of bytes, down to where the two become one state again.
#ifndef PAWL_SCHEMAS_CLASS_WALK_H_
#define PAWL_SCHEMAS_CLASS_WALK_H_

#include <cstdint>

#include "schemas/scalar/class_trie.h"
#include "schemas/scalar/string_search.h"

namespace pawl::schema {

// Of `state`, a boundary of code points. Sets bits in `words`, which has none of a plain token yet,
// and may set or clear those of other tokens as is right for them. False when the classes are of no
// use here: the characters of a class differ nearly everywhere. The words are zero again then.
bool WalkClasses(StringSearch& search, StringSearch::StateId state, const Vocabulary& vocabulary,
                 const ClassTrie& classes, uint32_t* words);

// At most so many plain tokens may follow, to tell narrow positions from wide ones: those that
// begin with a character that may come.
uint32_t CountBeginnings(StringSearch& search, StringSearch::StateId state, const TokenTrie& trie,
                         const ClassTrie& classes);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_CLASS_WALK_H_
