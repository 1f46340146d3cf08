// What may come next, and where in a text that is, for a human.
#ifndef PAWL_SRC_CLI_DESCRIBE_H_
#define PAWL_SRC_CLI_DESCRIBE_H_

#include <string>
#include <string_view>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/text/tokenizer.h"

namespace pawl::cli {

// The bytes that may come next: a forced run quoted, else characters and ranges ("'\"', '0'-'9',
// the end").
std::string DescribeAllowed(const State& state);

// Captures as a JSON array of {"name", "begin", "end", "text"}; bytes that are no text as U+FFFD.
std::string CapturesJson(const std::vector<Capture>& captures);

// "line:column" of a byte, both from 1; columns count code points.
std::string LineColumn(std::string_view text, size_t byte);

// Tokens whose bytes, one after another, are exactly `text`: the tokenizer's encoding where it has
// that property, otherwise (a tokenizer that adds a space or normalises) as few tokens as possible.
// Errors: kInvalid with the byte that no token spells.
Result<std::vector<TokenId>> SpellText(const Tokenizer& tokenizer, const Vocabulary& vocabulary,
                                       std::string_view text);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_DESCRIBE_H_
