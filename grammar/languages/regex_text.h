// A regex term in the notations of the grammar languages. Internal to grammar/languages.
#ifndef PAWL_GRAMMAR_LANGUAGES_REGEX_TEXT_H_
#define PAWL_GRAMMAR_LANGUAGES_REGEX_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "grammar/languages/print.h"
#include "grammar/regex/regex_arena.h"

namespace pawl {

// How tightly a piece of notation must hold together where it stands.
enum class Binding : uint8_t { kChoice, kSequence, kQuantified, kAtom };

// `set` as a class. REQUIRES: not empty.
std::string ClassText(const CodepointSet& set, GrammarLanguage language);
// What follows an operand that is repeated: "*", "{2,3}", ...; kInfinite: no limit.
std::string QuantifierText(uint32_t min, uint32_t max);
// A term without and, not and lookahead: strings, classes and groups in EBNF and GBNF, the inside
// of
// /.../ in Lark. nullopt when it is longer than `limit` or nested too deep.
std::optional<std::string> RegexText(const RegexArena& arena, ReId id, GrammarLanguage language,
                                     Binding binding, size_t limit);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_REGEX_TEXT_H_
