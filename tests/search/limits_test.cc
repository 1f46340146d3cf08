// Limits of searches: rows that run again count, nodes of a lattice, and the memory of wide beams.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>

#include "src/decode/batch.h"
#include "tests/search/toy_language.h"

namespace pawl {
namespace {

constexpr const char* kSearches[] = {"beam",    "diverse-beam", "best-first",
                                     "lattice", "foresight",    "adadec",
                                     "cntp",    "mcts",         "superposed"};

// With few branches most rows run more than once.
TEST(LimitsTest, RowsThatRunAgainCount) {
  int limited = 0, again = 0;
  for (const char* strategy : kSearches) {
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      ToySearch search(seed, 21);
      search.grammar = search.toy.Compile("11[01]{4,40}");
      search.toy.constraint = MakeConstraint(*search.grammar);
      SearchOptions options{.strategy = strategy, .max_tokens = 50};
      if (std::string(strategy) == "superposed") options.n = 3;
      options.max_branches = 1 + static_cast<int>(seed % 3);
      options.max_rows = 5 + static_cast<int64_t>(seed * seed);
      if (seed % 4 == 0) options.contrast_prompt = "x";
      if (options.contrast_prompt && options.n == 3) continue;
      SearchInput input = search.Input();
      if (options.contrast_prompt) input.contrast = std::vector<TokenId>(21, kZero);
      const int64_t prompts = input.contrast ? 42 : 21;
      const Result<SearchResult> result = RunSearch(input, options);
      ASSERT_TRUE(result.ok()) << result.error().ToString();
      EXPECT_LE(result->model_rows, prompts + options.max_rows) << strategy << seed;
      ASSERT_FALSE(result->outputs.empty()) << strategy << seed;
      EXPECT_TRUE(std::regex_match(result->outputs[0].text, std::regex("11[01]{4,40}")));
      limited += result->at_limit == "rows" ? 1 : 0;
      options.max_rows = 100000;
      const Result<SearchResult> free = RunSearch(input, options);
      options.max_branches = 64;
      const Result<SearchResult> wide = RunSearch(input, options);
      ASSERT_TRUE(free.ok() && wide.ok());
      if (free->at_limit.empty() && wide->at_limit.empty()) {
        EXPECT_EQ(free->outputs[0].tokens, wide->outputs[0].tokens) << strategy << seed;
        again += free->model_rows > wide->model_rows ? 1 : 0;
      }
      search.toy.ExpectNoPages();
    }
  }
  EXPECT_GE(limited, 30);
  EXPECT_GE(again, 20);
}

// A check of complete outputs, which may start a process, is asked about few of them.
TEST(LimitsTest, FewCompleteOutputsAreJudged) {
  const auto vocabulary = VocabularyOf([] {
    std::vector<std::string> texts;
    for (int i = 0; i < 900; ++i) texts.push_back("t" + std::to_string(i));
    return texts;
  }());
  ToyModel model({.vocabulary_size = 901, .context_length = 100, .pages = 500, .kept = 50},
                 HashedLogits);
  const std::vector<TokenId> prompt(5, 7);
  for (const char* strategy : {"beam", "diverse-beam", "adadec", "cntp", "superposed"}) {
    int judged = 0;
    SearchOptions options{.strategy = strategy, .max_tokens = 5};
    options.checks = {
        MakeCheck(CheckGranularity::kComplete, [&](const CheckQuestion&) -> Result<Verdict> {
          ++judged;
          return Verdict::kDead;
        })};
    const auto result = RunSearch({model, *vocabulary, {}, prompt, nullptr}, options);
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    EXPECT_TRUE(result->outputs.empty()) << strategy;
    EXPECT_GE(judged, 32) << strategy;
    EXPECT_LE(judged, 4 * 32 * 5) << strategy;
  }
}

// Rows of pages that were given up to other requests count as well.
TEST(LimitsTest, RowsOfAWorkCount) {
  const auto vocabulary = VocabularyOf(Letters('a', 'w'));
  const Grammar grammar = *Compiler(vocabulary).CompileRegex("[a-g]{30,40}");
  for (const int64_t rows : {40, 90, 200}) {
    ToyModel model({.vocabulary_size = 24, .context_length = 400, .pages = 24, .kept = 4},
                   HashedLogits);
    std::optional<Result<SearchResult>> got;
    {
      BatchEngine engine(model, vocabulary, {}, {.look_threads = 2});
      for (int i = 0; i < 4; ++i) {
        BatchRequest request;
        request.prompt.assign(static_cast<size_t>(20 + i), static_cast<TokenId>(i));
        request.options.max_tokens = 60;
        request.done = [](const Result<Generation>& output) { EXPECT_TRUE(output.ok()); };
        engine.Add(std::move(request));
      }
      SearchOptions options{.num_beams = 6, .max_tokens = 45};
      options.max_rows = rows;
      engine.Add(MakeSearchWork(
          {model, *vocabulary, {}, std::vector<TokenId>(21, 3), MakeConstraint(grammar)}, options,
          [&](Result<SearchResult> result) { got = std::move(result); }));
      while (engine.Step()) {
      }
    }
    ASSERT_TRUE(got.has_value() && got->ok());
    EXPECT_EQ((*got)->at_limit, "rows");
    // The prompt may have run again before its search began.
    EXPECT_LE((*got)->model_rows, 2 * 21 + rows);
    ASSERT_EQ((*got)->outputs.size(), 1u);
    EXPECT_TRUE(std::regex_match((*got)->outputs[0].text, std::regex("[a-g]{30,40}")));
    EXPECT_EQ(model.alive, 0);
  }
}

TEST(LimitsTest, LatticesEndWithAnOutput) {
  for (const double nodes : {1, 5, 30, 60}) {
    for (const bool constrained : {true, false}) {
      ToySearch search(7);
      search.grammar = search.toy.Compile("[01]{40}");
      search.toy.constraint = constrained ? MakeConstraint(*search.grammar) : nullptr;
      SearchOptions options{.strategy = "lattice", .max_tokens = 40};
      options.arguments = {{"nodes", nodes}};
      const Result<SearchResult> result = search.Run(options);
      const Result<SearchResult> greedy = search.Run({.num_beams = 1, .max_tokens = 40});
      ASSERT_TRUE(result.ok() && greedy.ok());
      ASSERT_EQ(result->outputs.size(), 1u) << nodes;
      EXPECT_FALSE(result->outputs[0].closed);
      const size_t length = greedy->outputs.at(0).tokens.size();
      if (nodes < static_cast<double>(length)) {
        EXPECT_EQ(result->outputs[0].tokens, greedy->outputs[0].tokens);
        EXPECT_EQ(result->at_limit, "nodes");
      } else {
        EXPECT_EQ(result->at_limit, "");
      }
      options.n = 20;
      const Result<SearchResult> many = search.Run(options);
      ASSERT_TRUE(many.ok());
      EXPECT_EQ(many->at_limit, many->outputs.size() < 20 ? "nodes" : "");
    }
  }
}

// Of many beams the best tokens of each stay; where a beam needs more, its row runs again.
TEST(LimitsTest, WideBeamsKeepTheBestTokens) {
  constexpr int kBeamWidth = 3000;
  std::vector<std::string> texts;
  for (int i = 0; i + 1 < kBeamWidth; ++i) texts.push_back("t" + std::to_string(i) + ".");
  const auto vocabulary = VocabularyOf(texts);
  // Token 0 has nearly all of the probability, and behind it all tokens have about the same.
  ToyModel model({.vocabulary_size = kBeamWidth, .context_length = 400, .pages = 40000},
                 [](const ToyModel::Place& place, std::span<float> out) {
                   for (size_t t = 0; t < out.size(); ++t) {
                     out[t] = 1e-4f * static_cast<float>(t);
                   }
                   if (place.tokens.size() == 5) out[0] = 30;
                 });
  SearchOptions options{.n = kBeamWidth, .num_beams = kBeamWidth, .max_tokens = 2};
  options.length_penalty = 0;
  const Result<SearchResult> result =
      RunSearch({model, *vocabulary, {}, std::vector<TokenId>(5, 7), nullptr}, options);
  ASSERT_TRUE(result.ok()) << result.error().ToString();
  std::set<std::vector<TokenId>> all;
  for (const SearchOutput& output : result->outputs) {
    EXPECT_EQ(output.tokens[0], 0);
    all.insert(output.tokens);
  }
  EXPECT_EQ(all.size(), static_cast<size_t>(kBeamWidth));
}

}  // namespace
}  // namespace pawl
