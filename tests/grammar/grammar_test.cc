// The public face of grammars: vocabularies, states as values, forced text, and masks against
// trying every token.
#include "pawl/grammar.h"

#include <gtest/gtest.h>

#include <random>

#include "grammar/masks/token_trie.h"
#include "pawl/compiler.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

std::shared_ptr<const Vocabulary> MakeVocabulary(const std::vector<std::string>& extra) {
  return VocabularyOf(AllBytes(extra));
}

TEST(VocabularyTest, RefusesWhatItCannotHold) {
  EXPECT_FALSE(Vocabulary::Create({}).ok());
  auto bad = Vocabulary::Create({{"a"}, {1}, {}});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message, "special token id 1 is outside 0..0");
  EXPECT_EQ(bad.error().place, "special");
  EXPECT_FALSE(Vocabulary::Create({{"a"}, {}, {-1}}).ok());
  EXPECT_EQ(Vocabulary::Create({{std::string(70000, 'a')}, {}, {}}).error().place, "token 0");
}

TEST(VocabularyTest, LongestPrefixAndFewestTokens) {
  const auto v = *Vocabulary::Create({{"a", "ab", "abc", "bc", "c", "abcd"}, {5}, {}});
  EXPECT_EQ(v->LongestPrefix("abcde"), 2);  // "abcd" is special
  EXPECT_EQ(v->LongestPrefix("x"), kNoToken);
  EXPECT_EQ(v->FewestTokens("abcabc"), (std::vector<TokenId>{2, 2}));
  EXPECT_EQ(v->FewestTokens("abbc"), (std::vector<TokenId>{1, 3}));
  EXPECT_TRUE(v->FewestTokens("abx").empty());
}

TEST(TokenTrieTest, HoldsEveryTokenOnceAndSkipsSubtrees) {
  std::mt19937 random(7);
  std::vector<std::string> tokens;
  std::vector<TokenId> ids;
  for (int i = 0; i < 500; ++i) {
    std::string token;
    for (size_t n = random() % 5; n > 0; --n)
      token.push_back(static_cast<char>('a' + random() % 3));
    tokens.push_back(token);
    ids.push_back(i);
  }
  const TokenTrie trie(tokens, ids);
  std::vector<int> found(tokens.size(), 0);
  std::string path;
  for (uint32_t i = 0; i < trie.size(); ++i) {
    const TokenTrie::Node& node = trie.nodes()[i];
    path.resize(node.depth - 1u);
    path.push_back(static_cast<char>(node.byte));
    ASSERT_GT(node.end, i);
    trie.ForTokens(node, [&](TokenId t) {
      EXPECT_EQ(tokens[static_cast<size_t>(t)], path);
      ++found[static_cast<size_t>(t)];
    });
    // The jump past the subtree lands on the first node that does not begin with this path.
    if (node.end < trie.size()) {
      EXPECT_LE(trie.nodes()[node.end].depth, node.depth);
    }
  }
  for (size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(found[i], tokens[i].empty() ? 0 : 1) << i;
}

// The mask is what trying every token says.
void ExpectExactMask(const State& state, const Vocabulary& v) {
  const auto mask = state.mask();
  for (TokenId t = 0; t < v.size(); ++t) {
    const bool expected = v.is_end(t) ? state.accepting() : state.Advance(t).has_value();
    ASSERT_EQ(mask->Allows(t), expected) << t << " '" << v.bytes(t) << "'";
  }
}

TEST(GrammarTest, ChoicesForceWhatTheyShare) {
  const auto v = MakeVocabulary({"re", "red", "gre", "een", "\xC3", "\xA9t\xC3\xA9"});
  const Compiler compiler(v);
  const std::vector<std::string> choices = {"red", "reed", "\xC3\xA9t\xC3\xA9"};
  auto grammar = compiler.CompileChoice(choices);
  ASSERT_TRUE(grammar.ok());
  const State start = grammar->Start();
  ExpectExactMask(start, *v);
  EXPECT_EQ(start.forced(), "");
  EXPECT_EQ(start.Advance("r")->forced(), "e");
  EXPECT_EQ(start.Advance("\xC3")->forced(), "\xA9t\xC3\xA9");
  EXPECT_FALSE(start.Advance("ree")->accepting());
  EXPECT_TRUE(start.Advance("reed")->accepting());
  EXPECT_FALSE(start.Advance("redd").has_value());
  EXPECT_EQ(*start.Advance("ree")->CompletionBytes(), "d");
  EXPECT_EQ(start.completion_length(), 1);  // "red"
  EXPECT_EQ(start.MatchedPrefix("reef"), 3u);
  EXPECT_FALSE(compiler.CompileChoice({}).ok());
}

// Bug: a root was taken with Lark and had no effect.
TEST(GrammarTest, LarkHasOneRoot) {
  const Compiler compiler(MakeVocabulary({}));
  const auto compile = [&](GrammarLanguage language, const std::string& root) {
    const bool lark = language != GrammarLanguage::kEbnf;
    GrammarOptions options;
    options.root = root;
    return compiler.CompileGrammar(
        lark ? "start: other\nother: \"b\"" : "root ::= other\nother ::= \"b\"", language, options);
  };
  for (const GrammarLanguage language : {GrammarLanguage::kLark, GrammarLanguage::kLarkXgrammar}) {
    EXPECT_TRUE(compile(language, "start").ok());
    EXPECT_TRUE(compile(language, "root").ok());  // what the option is where it is not set
    const auto refused = compile(language, "other");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().place, "root");
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  }
  EXPECT_TRUE(compile(GrammarLanguage::kEbnf, "other").ok());
}

TEST(GrammarTest, StatesAreValues) {
  const auto v = MakeVocabulary({});
  auto grammar = Compiler(v).CompileRegex("(ab)*c");
  ASSERT_TRUE(grammar.ok());
  const State start = grammar->Start();
  const State once = *start.Advance("ab");
  EXPECT_EQ(start, once) << "the same future is the same state";
  EXPECT_EQ(start.mask()->id(), once.mask()->id());
  EXPECT_NE(start.mask()->id(), start.Advance("a")->mask()->id());
  EXPECT_FALSE(start.Advance(TokenId{-1}).has_value());
  EXPECT_FALSE(start.Advance(v->end_tokens()[0]).has_value());
  EXPECT_EQ(start.Advance("a")->mask()->singleton(), 'b');
}

TEST(GrammarTest, RegexMasksAreExact) {
  const auto v = MakeVocabulary({"12", "1-", "-1", "é", "éa", "\xE2\x82", "\xAC"});
  for (const char* pattern :
       {"[0-9]{1,3}(-[0-9]+)?", "[é€]+a?", "\\w*\\d", "(?=.*b)[abc]{2,4}", ""}) {
    auto grammar = Compiler(v).CompileRegex(pattern);
    ASSERT_TRUE(grammar.ok()) << pattern;
    std::mt19937 random(3);
    for (int walk = 0; walk < 20; ++walk) {
      State state = grammar->Start();
      for (int step = 0; step < 8; ++step) {
        ExpectExactMask(state, *v);
        const auto completion = state.CompletionBytes();
        ASSERT_TRUE(completion.has_value()) << pattern;
        EXPECT_TRUE(state.Advance(*completion)->accepting());
        std::vector<TokenId> tokens = state.mask()->Tokens();
        std::erase_if(tokens, [&](TokenId t) { return v->is_end(t); });
        if (tokens.empty()) break;
        state = *state.Advance(tokens[random() % tokens.size()]);
      }
    }
  }
}

TEST(GrammarTest, BadPatternsNameTheByte) {
  const Compiler compiler(MakeVocabulary({}));
  auto grammar = compiler.CompileRegex("ab(");
  ASSERT_FALSE(grammar.ok());
  EXPECT_EQ(grammar.error().code, ErrorCode::kInvalid);
  EXPECT_NE(grammar.error().place.find("byte"), std::string::npos);
  EXPECT_EQ(compiler.CompileRegex("a(?!a)a").error().code, ErrorCode::kUnsatisfiable);
}

}  // namespace
}  // namespace pawl
