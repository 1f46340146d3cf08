// Closing: in which tokens an output is brought to its end.
#ifndef PAWL_SRC_DECODE_CLOSING_H_
#define PAWL_SRC_DECODE_CLOSING_H_

#include <optional>
#include <string>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

// At most `most` tokens that lead from the state to an accepting one. The tokens of its shortest
// completion where those are few enough; else long tokens are looked for that bring the end nearer.
// nullopt when none were found, which does not prove that there are none. The same arguments give
// the same answer.
std::optional<std::vector<TokenId>> CloseWithin(const State& state, int most);

// The error for a grammar without a shortest output (State::completion_length).
Error NoValueFits(std::string place);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_CLOSING_H_
