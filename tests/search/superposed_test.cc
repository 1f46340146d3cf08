// Superposed decoding: one draft is greedy decoding, all drafts are of the language, and their rows
// are those of one. The toy model reads the first token of a mix, so a plain loop can follow it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/decode/generation.h"
#include "tests/search/toy_language.h"
#include "tests/support/session.h"

namespace pawl {
namespace {

// With forced text too, which is in the tokenizer's spelling.
TEST(SuperposedTest, OneDraftSkipsForcedText) {
  const auto encode = [](std::string_view text) {
    std::vector<TokenId> tokens;
    for (size_t at = 0; at < text.size();) {
      const bool two = text.substr(at, 2) == "00";
      tokens.push_back(two ? kTwoZeros : text[at] == '1' ? kOne : kZero);
      at += two ? 2 : 1;
    }
    return tokens;
  };
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    ToySearch search(seed);
    search.grammar = search.toy.Compile("[01]{2}1000010000[01]{3}00001");
    search.toy.constraint = MakeConstraint(*search.grammar);
    GenerateOptions greedy;
    greedy.sampling.temperature = 0;
    greedy.max_tokens = 40;
    Session session(search.toy.model, search.toy.vocabulary, encode);
    const Result<Generation> plain =
        session.Generate(search.toy.prompt, search.toy.constraint, greedy);
    SearchInput input = search.Input();
    input.encode = encode;
    const Result<SearchResult> result =
        RunSearch(input, {.strategy = "superposed", .max_tokens = 40});
    ASSERT_TRUE(result.ok() && plain.ok());
    std::vector<TokenId> tokens = result->outputs.at(0).tokens;
    tokens.pop_back();
    EXPECT_EQ(tokens, plain->tokens) << seed;
    EXPECT_LT(result->model_calls, 16) << seed;
  }
}

TEST(SuperposedTest, OneDraftIsGreedy) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    ToySearch search(seed);
    if (seed % 5 == 0) {
      search.grammar.reset();
      search.toy.constraint = nullptr;
    }
    GenerateOptions greedy;
    greedy.sampling.temperature = 0;
    greedy.max_tokens = 40;
    greedy.skip_forced = false;
    Session session(search.toy.model, search.toy.vocabulary);
    const Result<Generation> plain =
        session.Generate(search.toy.prompt, search.toy.constraint, greedy);
    const Result<SearchResult> result = search.Run({.strategy = "superposed", .max_tokens = 40});
    ASSERT_EQ(result.ok(), plain.ok());
    if (!result.ok() || plain->stop == StopReason::kClosed) continue;
    ++compared;
    std::vector<TokenId> tokens = result->outputs.at(0).tokens;
    if (result->outputs[0].ended) tokens.pop_back();
    EXPECT_EQ(tokens, plain->tokens) << search.regex;
  }
  EXPECT_GE(compared, 200);
}

// The same by loops over everything.
std::vector<std::vector<TokenId>> SlowDrafts(const ToySearch& search, size_t count) {
  struct Draft {
    std::vector<TokenId> tokens;
    double log_p = 0;
    State state;
  };
  std::vector<Draft> open = {{{}, 0, search.grammar->Start()}};
  std::vector<Draft> ended;
  std::vector<TokenId> read;  // what the rows have read: the first token of each mix
  while (!open.empty() && ended.size() < count) {
    const std::vector<double> law = search.law(read);
    std::vector<Draft> next;
    for (const Draft& draft : open) {
      for (TokenId t = 0; t <= kTheEnd; ++t) {
        Draft one = draft;
        one.tokens.push_back(t);
        one.log_p += std::log(law[static_cast<size_t>(t)]);
        if (t == kTheEnd ? !draft.state.accepting() : !draft.state.Advance(t)) continue;
        if (t != kTheEnd) one.state = *draft.state.Advance(t);
        next.push_back(std::move(one));
      }
    }
    std::ranges::stable_sort(next,
                             [](const Draft& a, const Draft& b) { return a.log_p > b.log_p; });
    while (next.size() > count - ended.size()) next.pop_back();
    open.clear();
    for (Draft& one : next) {
      (one.tokens.back() == kTheEnd ? ended : open).push_back(std::move(one));
    }
    if (!open.empty()) read.push_back(open[0].tokens.back());
  }
  std::vector<std::vector<TokenId>> tokens;
  for (const Draft& one : ended) tokens.push_back(one.tokens);
  std::ranges::sort(tokens);
  return tokens;
}

TEST(SuperposedTest, DraftsAreThoseOfAPlainLoop) {
  int compared = 0;
  int64_t rows[2] = {0, 0};
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    ToySearch search(seed);
    const Result<SearchResult> one =
        search.Run({.strategy = "superposed", .merge_spellings = false, .max_tokens = 60});
    const Result<SearchResult> three =
        search.Run({.strategy = "superposed", .n = 3, .merge_spellings = false, .max_tokens = 60});
    ASSERT_TRUE(one.ok() && three.ok());
    ASSERT_LE(three->outputs.size(), 3u);
    std::vector<std::vector<TokenId>> tokens;
    bool whole = three->at_limit.empty();
    for (const SearchOutput& output : three->outputs) {
      tokens.push_back(output.tokens);
      EXPECT_TRUE(output.ended);
      State state = search.grammar->Start();
      for (size_t i = 0; i + 1 < output.tokens.size(); ++i) {
        ASSERT_TRUE(state.Advance(output.tokens[i])) << search.regex;
        state = *state.Advance(output.tokens[i]);
      }
      EXPECT_TRUE(state.accepting());
      // Near the budget only the way to the end is open.
      whole = whole && output.tokens.size() < 40;
    }
    std::ranges::sort(tokens);
    if (!whole) continue;
    ++compared;
    EXPECT_EQ(tokens, SlowDrafts(search, 3)) << search.regex;
    size_t longest = 0;
    for (const auto& output : tokens) longest = std::max(longest, output.size());
    rows[0] += one->model_rows;
    rows[1] += three->model_rows;
    // Of a page of the prompt that is not full the rows run twice.
    EXPECT_LE(three->model_rows, static_cast<int64_t>(2 * search.toy.prompt.size() + longest))
        << search.regex;
  }
  EXPECT_GE(compared, 150);
  EXPECT_GT(rows[0], 0);
}

TEST(SuperposedTest, LimitsAndErrors) {
  ToySearch search(5, 40);
  search.grammar = search.toy.Compile("1111[01]{3,20}");
  search.toy.constraint = MakeConstraint(*search.grammar);
  const Result<SearchResult> cut =
      search.Run({.strategy = "superposed", .n = 3, .max_tokens = 30, .max_rows = 3});
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->at_limit, "rows");
  ASSERT_EQ(cut->outputs.size(), 1u);
  EXPECT_TRUE(cut->outputs[0].closed);
  EXPECT_EQ(search.Run({.strategy = "superposed", .n = 9}).error().ToString(),
            "n: must be from 1 to 8: so many share a row");
  SearchOptions contrast = {.strategy = "superposed"};
  contrast.contrast_prompt = "a";
  EXPECT_EQ(search.Run(contrast).error().place, "contrast_prompt");
}

}  // namespace
}  // namespace pawl
