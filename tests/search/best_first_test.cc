// Best first against all outputs of random toy languages; limits, and what the calls cost.
#include <gtest/gtest.h>

#include <set>

#include "tests/search/toy_language.h"

namespace pawl {
namespace {

constexpr int kLanguages = 500;

TEST(BestFirstTest, ExactOnToyLanguages) {
  for (uint64_t seed = 1; seed <= kLanguages; ++seed) {
    ToySearch search(seed);
    const int most = 3 + static_cast<int>(seed % 3);
    const auto all = search.All(most, 0);
    SearchOptions options{.strategy = "best-first", .n = 1 + static_cast<int>(seed % 6)};
    options.length_penalty = 0;
    options.merge_spellings = false;
    options.skip_forced = seed % 2 == 0;
    options.max_tokens = most;
    options.arguments = {{"batch", 1.0 + static_cast<double>(seed % 4)}};
    const Result<SearchResult> result = search.Run(options);
    if (all.empty()) {
      EXPECT_FALSE(result.ok()) << search.regex;
      continue;
    }
    ASSERT_TRUE(result.ok()) << search.regex << ": " << result.error().ToString();
    SCOPED_TRACE(search.regex);
    ExpectBest(*result, all, static_cast<size_t>(options.n));
    EXPECT_EQ(result->at_limit, "");
    search.toy.ExpectNoPages();
  }
}

// Two spellings of a text are one output, the better one.
TEST(BestFirstTest, MergedSpellingsAreDifferentTexts) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    ToySearch search(seed);
    SearchOptions options{.strategy = "best-first", .n = 8, .length_penalty = 0, .max_tokens = 4};
    const Result<SearchResult> result = search.Run(options);
    if (!result.ok()) continue;
    std::set<std::string> texts;
    for (const SearchOutput& output : result->outputs) {
      EXPECT_TRUE(texts.insert(output.text).second) << search.regex << ": " << output.text;
    }
  }
}

// At a limit the output is complete all the same, and the search says so.
TEST(BestFirstTest, LimitsEndWithACompleteOutput) {
  ToySearch search(1);
  search.grammar = search.toy.Compile("[01]{12}11");
  search.toy.constraint = MakeConstraint(*search.grammar);
  for (const char* strategy : {"best-first", "beam", "diverse-beam"}) {
    for (const bool rows : {true, false}) {
      SearchOptions options{.strategy = strategy, .max_tokens = 14};
      (rows ? options.max_rows : options.max_nodes) = 5;
      const Result<SearchResult> result = search.Run(options);
      ASSERT_TRUE(result.ok()) << result.error().ToString();
      EXPECT_EQ(result->at_limit, rows ? "rows" : "nodes") << strategy;
      ASSERT_EQ(result->outputs.size(), 1u);
      EXPECT_TRUE(result->outputs[0].closed);
      const auto state = search.grammar->Start().Advance(result->outputs[0].text);
      ASSERT_TRUE(state.has_value());
      EXPECT_TRUE(state->accepting()) << result->outputs[0].text;
    }
  }
}

TEST(BestFirstTest, WrongOptionsAreNamed) {
  ToySearch search(1);
  const auto place = [&](SearchOptions options) {
    const Result<SearchResult> result = search.Run(options);
    return result.ok() ? "" : result.error().place + ": " + result.error().message;
  };
  EXPECT_EQ(place({.strategy = "worst-first"}),
            "strategy: must be one of adadec, beam, best-first, cntp, contrastive, diverse-beam, "
            "foresight, lattice, mcts, self-infill, superposed, not "
            "\"worst-first\"");
  EXPECT_EQ(place({.strategy = "best-first", .n = 0}), "n: must be from 1 to 4096");
  EXPECT_EQ(place({.n = 5}), "n: must be at most num_beams, which is 4");
  EXPECT_EQ(place({.strategy = "best-first", .arguments = {{"batches", 1}}}),
            "arguments: best-first has no argument batches; it has batch");
  EXPECT_EQ(place({.strategy = "best-first", .arguments = {{"batch", 0}}}),
            "arguments: batch must be from 1 to 256");
  EXPECT_EQ(place({.strategy = "diverse-beam", .num_beams = 6, .num_beam_groups = 4}),
            "num_beam_groups: must divide num_beams, which is 6");
  EXPECT_EQ(place({.max_rows = -1}), "max_rows: must be at least 0");
  search.grammar = search.toy.Compile("0{40}");
  search.toy.constraint = MakeConstraint(*search.grammar);
  EXPECT_EQ(place({.max_tokens = 10}),
            "max_tokens: the shortest output that was found takes 20 tokens, but the budget is 10");
}

}  // namespace
}  // namespace pawl
