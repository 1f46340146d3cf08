// A text token by token through the masks of a grammar.
#ifndef PAWL_SRC_CLI_WALK_H_
#define PAWL_SRC_CLI_WALK_H_

#include <optional>
#include <span>
#include <string_view>

#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl::cli {

// nullopt when the text is accepted: every token is in the mask of its state, and the text may end
// after the last. Otherwise what is wrong: kInvalid with the byte and what was allowed there, or
// kInternal when a mask and its state disagree. REQUIRES: `tokens` spell `text`.
std::optional<Error> WalkTokens(const Grammar& grammar, std::string_view text,
                                std::span<const TokenId> tokens);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_WALK_H_
