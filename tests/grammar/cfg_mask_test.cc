// Masks of grammars on vocabularies with many tokens below each beginning, where a walk takes whole
// subtrees at once: against trying every token.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "tests/grammar/mask_oracle.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

// Random strings of letters, digits, marks, and characters beyond ASCII, whole and cut.
std::shared_ptr<const Vocabulary> DenseVocabulary(uint32_t seed) {
  const std::vector<std::string> pieces = {"a",
                                           "a",
                                           "b",
                                           "c",
                                           "A",
                                           "1",
                                           " ",
                                           " ",
                                           "(",
                                           ")",
                                           ",",
                                           ".",
                                           "*",
                                           "\xC3",
                                           "\xA9",
                                           "\xC3\xA9",
                                           "\xE6\x97\xA5",
                                           "\xE6\x97\xA6"};
  std::mt19937 random(seed);
  std::set<std::string> tokens;
  for (const std::string& piece : pieces) tokens.insert(piece);
  while (tokens.size() < 3000) {
    std::string token;
    for (auto length = 1 + random() % 6; length > 0; --length)
      token += pieces[random() % pieces.size()];
    tokens.insert(token);
  }
  std::vector<std::string> shuffled(tokens.begin(), tokens.end());
  std::ranges::shuffle(shuffled, random);
  shuffled.push_back(shuffled[7]);  // two tokens of the same bytes
  return VocabularyOf(std::move(shuffled), {}, {"<s>"});
}

struct MaskCase {
  GrammarLanguage language;
  const char* grammar;
};

const MaskCase kMaskCases[] = {
    {GrammarLanguage::kEbnf,
     "root ::= e\ne ::= n | n \"(\" e (\",\" e)* \")\" | e \" * \" e\nn ::= [a-z]+ \" \"*"},
    {GrammarLanguage::kEbnf,
     "root ::= (w | \"abc\" | [a-b1]+ \".\" w)+\nw ::= [a-zA-Z] [a-zA-Z0-9]* \" \""},
    {GrammarLanguage::kEbnf,
     "root ::= \"(\" (c \",\")* c \")\"\nc ::= [^a(),]+ | \"a\" [^*]* \"*\""},
    {GrammarLanguage::kEbnf, "root ::= x [ab]+ \".\" x\nx[lazy] ::= [^a]+"},
    {GrammarLanguage::kEbnf, "root ::= (x \"a\")*\nx[lazy] ::= \"(\" [^*]* [^a*]"},
    {GrammarLanguage::kEbnf, "root ::= (x | [ab]+ \",\")*\nx[lazy] ::= [^*]* \"*\""},
    {GrammarLanguage::kEbnf, "root ::= (x \"a\")* \".\"\nx[max_tokens=2] ::= \"(\" [^*]*"},
    {GrammarLanguage::kEbnf,
     "root ::= (x | y) (\" \" y)*\nx[max_tokens=1] ::= [^ .]+\ny[max_tokens=2] ::= [a-z]+ \".\""},
    {GrammarLanguage::kLark, "start: (x \"a\")* \".\"\nx[max_tokens=2]: /[^*]+/"},
    {GrammarLanguage::kLark,
     "start: x y? \"1\"\nx[max_tokens=1]: /[a-z]+[^a-z]*/\ny[max_tokens=1]: /[^1]+/"},
};

TEST(CfgMaskTest, DenseVocabulariesMeetTheirMasks) {
  int states = 0;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const auto vocabulary = DenseVocabulary(seed);
    const Compiler compiler(vocabulary);
    std::mt19937 random(seed + 12345);
    for (size_t i = 0; i < std::size(kMaskCases); ++i) {
      GrammarOptions options;  // prepared whole, not at all, and stopped on the way
      if (seed % 4 == 0) options.prepare_steps = 3'000'000;
      if (seed % 4 > 1) options.prepare_steps = 1 + random() % 8000;
      const auto grammar =
          compiler.CompileGrammar(kMaskCases[i].grammar, kMaskCases[i].language, options);
      ASSERT_TRUE(grammar.ok()) << kMaskCases[i].grammar << "\n" << grammar.error().ToString();
      for (int walk = 0; walk < 3; ++walk) {
        State state = grammar->Start();
        std::string text;
        for (int step = 0; step < 6; ++step) {
          const std::vector<TokenId> allowed =
              AllowedTokens(state, *vocabulary,
                            std::string(kMaskCases[i].grammar) + "\nseed " + std::to_string(seed) +
                                " after \"" + text + '"');
          ASSERT_FALSE(testing::Test::HasFailure());
          ++states;
          if (allowed.empty()) break;
          const TokenId token = allowed[random() % allowed.size()];
          text += vocabulary->bytes(token);
          state = *state.Advance(token);
        }
      }
    }
  }
  EXPECT_GT(states, 600);
}

}  // namespace
}  // namespace pawl
