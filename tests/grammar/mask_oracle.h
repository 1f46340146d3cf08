// The mask of a state against its definition: advancing by every token.
#ifndef PAWL_TESTS_GRAMMAR_MASK_ORACLE_H_
#define PAWL_TESTS_GRAMMAR_MASK_ORACLE_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pawl/grammar.h"

namespace pawl {

// The tokens that the mask allows, without the ends of the output. Fails the test where the mask is
// wrong; `where` says in the message which state it is.
inline std::vector<TokenId> AllowedTokens(const State& state, const Vocabulary& vocabulary,
                                          const std::string& where) {
  const auto mask = state.mask();
  std::vector<TokenId> allowed;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const bool end = vocabulary.is_end(id);
    const bool fits = end ? state.accepting() : state.Advance(id).has_value();
    EXPECT_EQ(mask->Allows(id), fits) << where << ", token " << id;
    if (fits && !end) allowed.push_back(id);
  }
  return allowed;
}

}  // namespace pawl

#endif  // PAWL_TESTS_GRAMMAR_MASK_ORACLE_H_
