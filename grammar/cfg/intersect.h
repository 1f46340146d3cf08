// Intersection of a context-free grammar with a regular language, again as a grammar.
//
//   auto words = OccurrenceAutomaton({"width", "height"});         // texts in which both occur
//   auto both = Intersect(std::move(ir), **words, vocabulary);
//
// What the grammar allows is exact, as for every grammar: no text leads where the two languages
// part.
//
// Thread safety: none. The result shares the arena and the machines of the grammar it is made of.
#ifndef PAWL_GRAMMAR_CFG_INTERSECT_H_
#define PAWL_GRAMMAR_CFG_INTERSECT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "grammar/cfg/grammar_ir.h"
#include "grammar/explicit_automaton.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

struct IntersectLimits {
  uint64_t max_work = 8'000'000;            // places looked at, of grammar and automaton together
  uint32_t max_terminal_states = 300'000;   // of all lexemes together with the automaton
  uint64_t max_target_cells = 100'000'000;  // a lexeme's states times the ways in which it may end
};

// Tokens taken by number count as their bytes, special tokens as none. Errors: kUnsatisfiable where
// no text is in both, kLimit, kUnsupported where a JSON Schema or free text inside of the grammar
// has too many states to be listed; else as CompileCfg's.
Result<GrammarIr> Intersect(GrammarIr ir, const ExplicitAutomaton& with,
                            const Vocabulary& vocabulary, const IntersectLimits& limits = {});

// The texts in which each of the words occurs, in any order, overlapping or not. Errors: kInvalid
// for a word that is empty or not UTF-8 (place: "word N"), kLimit for more than `max_states` states
// (about 2 to the number of words, times their letters).
Result<std::shared_ptr<const ExplicitAutomaton>> OccurrenceAutomaton(
    std::span<const std::string> words, uint32_t max_states = 4096);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_INTERSECT_H_
