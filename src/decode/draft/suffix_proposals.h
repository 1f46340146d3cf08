// Proposals from a suffix automaton: what came after the longest context that is known, then after
// shorter ones.
#ifndef PAWL_SRC_DECODE_DRAFT_SUFFIX_PROPOSALS_H_
#define PAWL_SRC_DECODE_DRAFT_SUFFIX_PROPOSALS_H_

#include <vector>

#include "src/decode/draft/source.h"
#include "src/decode/draft/suffix_automaton.h"

namespace pawl {

// The place in a suffix automaton as a cursor, and back.
inline DraftCursor CursorOf(SuffixAutomaton::Match match) { return {match.state, match.length}; }
inline SuffixAutomaton::Match MatchOf(DraftCursor cursor) { return {cursor.a, cursor.b}; }

// Adds a few tokens, the likeliest of each context first. Marks (negative tokens) are left out.
void ProposeFrom(const SuffixAutomaton& text, DraftCursor cursor, const DraftPlace& place,
                 std::vector<DraftProposal>& out);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_SUFFIX_PROPOSALS_H_
