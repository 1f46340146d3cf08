// Strategies that go along one output: against greedy decoding and plain sampling, a look-ahead
// that computes everything anew, and all outputs of toy languages.
#include <gtest/gtest.h>

#include "tests/search/toy_language.h"
#include "tests/support/session.h"

namespace pawl {
namespace {

Result<Generation> Plain(ToySearch& search, float temperature, uint64_t seed, int max_tokens) {
  GenerateOptions options;
  options.sampling = {.temperature = temperature, .seed = seed};
  options.max_tokens = max_tokens;
  options.skip_forced = false;
  Session session(search.toy.model, search.toy.vocabulary);
  return session.Generate(search.toy.prompt, search.toy.constraint, options);
}

// The tokens of the first output, without the end.
std::vector<TokenId> TokensOf(const SearchResult& result) {
  std::vector<TokenId> tokens = result.outputs.at(0).tokens;
  if (result.outputs[0].ended) tokens.pop_back();
  return tokens;
}

void ExpectPlain(const SearchOptions& given, float temperature) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    if (seed % 5 == 0) {
      search.grammar.reset();
      search.toy.constraint = nullptr;
    }
    SearchOptions options = given;
    options.max_tokens = 40;
    options.seed = seed;
    options.skip_forced = false;
    const Result<Generation> plain = Plain(search, temperature, seed, 40);
    const Result<SearchResult> result = search.Run(options);
    ASSERT_EQ(result.ok(), plain.ok());
    if (!result.ok() || plain->stop == StopReason::kClosed) continue;
    ++compared;
    EXPECT_EQ(TokensOf(*result), plain->tokens) << search.regex << " " << seed;
  }
  EXPECT_GE(compared, 400);
}

TEST(StrategiesTest, AdaDecWithoutPausesIsGreedy) {
  ExpectPlain({.strategy = "adadec", .arguments = {{"threshold", 1e300}}}, 0);
}

TEST(StrategiesTest, OneTrialIsPlainSampling) {
  ExpectPlain({.strategy = "cntp", .arguments = {{"max_trials", 1}}}, 1);
  ExpectPlain({.strategy = "cntp", .arguments = {{"max_trials", 1}, {"temperature", 0.5}}}, 0.5f);
}

// ---- A look-ahead that computes everything anew ----

using Path = std::vector<TokenId>;

bool Completes(const State& state, int left) {
  if (state.accepting()) return true;
  for (TokenId t = kZero; left > 0 && t <= kNewLine; ++t) {
    const auto next = state.Advance(t);
    if (next && Completes(*next, left - 1)) return true;
  }
  return false;
}

// What may follow, the most probable token first.
std::vector<std::pair<double, TokenId>> Following(const ToySearch& search, const Path& path,
                                                  int most) {
  State state = search.grammar->Start();
  for (const TokenId t : path) state = *state.Advance(t);
  const std::vector<double> law = search.law(path);
  std::vector<std::pair<double, TokenId>> out;
  for (TokenId t = 0; t <= kTheEnd; ++t) {
    const auto next = t == kTheEnd ? std::optional<State>() : state.Advance(t);
    const int left = most - static_cast<int>(path.size()) - 1;
    const bool fits =
        t == kTheEnd ? state.accepting() : next && left >= 0 && Completes(*next, left);
    if (fits) out.emplace_back(std::log(law[static_cast<size_t>(t)]), t);
  }
  std::ranges::stable_sort(out, [](const auto& a, const auto& b) { return a.first > b.first; });
  return out;
}

Path SlowAdaDec(const ToySearch& search, int most, int lookahead, size_t beams) {
  Path path;
  while (path.empty() || path.back() != kTheEnd) {
    const auto following = Following(search, path, most);
    double best = -1e300;
    TokenId chosen = following.front().second;
    for (size_t i = 0; i < std::min(beams, following.size()); ++i) {
      Path ahead = path;
      ahead.push_back(following[i].second);
      double sum = following[i].first;
      for (int step = 0; step < lookahead && ahead.back() != kTheEnd; ++step) {
        const auto next = Following(search, ahead, most).front();
        ahead.push_back(next.second);
        sum += next.first;
      }
      const double mean = sum / static_cast<double>(ahead.size() - path.size());
      if (mean > best) best = mean, chosen = following[i].second;
    }
    path.push_back(chosen);
  }
  return path;
}

TEST(StrategiesTest, AdaDecLooksAheadAtEachStep) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    const int lookahead = static_cast<int>(seed % 4), beams = 1 + static_cast<int>(seed % 3);
    SearchOptions options{.strategy = "adadec", .max_tokens = 7};
    options.arguments = {{"threshold", 0},
                         {"lookahead", static_cast<double>(lookahead)},
                         {"beams", static_cast<double>(beams)}};
    const Result<SearchResult> result = search.Run(options);
    if (!result.ok()) continue;
    EXPECT_EQ(result->outputs.at(0).tokens,
              SlowAdaDec(search, 7, lookahead, static_cast<size_t>(beams)))
        << search.regex << " " << seed;
    search.toy.ExpectNoPages();
  }
}

// The reward of a text: a hash of it, from 0 to 1.
double RewardOf(std::string_view text) {
  uint64_t hash = 7;
  for (const char c : text) hash = (hash ^ static_cast<uint64_t>(c)) * 0x9e3779b97f4a7c15u;
  return 0.001 + static_cast<double>(UniformAt(hash, 2, 3));
}

class Table : public Critic {
 public:
  Result<double> Score(const CheckQuestion& question) const override {
    return question.ended ? std::log(RewardOf(question.text)) : 0;
  }
};

TEST(StrategiesTest, TreeSearchFindsTheBestLeaf) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    const int most = 3;
    const auto all = search.All(most, 0);
    if (all.empty()) continue;
    const auto vocabulary = ToyVocabulary();
    double best = 0;
    for (const ToySearch::Output& output : all) {
      std::string text;
      for (const TokenId t : output.tokens) {
        if (t != kTheEnd) text += vocabulary->bytes(t);
      }
      best = std::max(best, RewardOf(text));
    }
    SearchOptions options{.strategy = "mcts", .max_tokens = most};
    options.critic = std::make_shared<Table>();
    options.arguments = {{"rollouts", 2000}, {"width", 8}};
    const Result<SearchResult> result = search.Run(options);
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    EXPECT_NEAR(RewardOf(result->outputs.at(0).text), best, 1e-12) << search.regex;
    ++compared;
  }
  EXPECT_GE(compared, 300);
}

// What a check of whole outputs refuses gets no reward, and the others are found.
TEST(StrategiesTest, TreeSearchPassesTests) {
  ToySearch search(3);
  search.grammar = search.toy.Compile("[01]{6}");
  search.toy.constraint = MakeConstraint(*search.grammar);
  SearchOptions options{.strategy = "mcts", .max_tokens = 6};
  options.checks = {
      MakeCheck(CheckGranularity::kComplete, [](const CheckQuestion& question) -> Result<Verdict> {
        return question.text == "110100" ? Verdict::kAccept : Verdict::kDead;
      })};
  options.arguments = {{"rollouts", 2000}, {"width", 4}};
  const Result<SearchResult> result = search.Run(options);
  ASSERT_TRUE(result.ok()) << result.error().ToString();
  ASSERT_EQ(result->outputs.size(), 1u);
  EXPECT_EQ(result->outputs[0].text, "110100");
}

}  // namespace
}  // namespace pawl
