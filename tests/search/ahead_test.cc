// Laws that are found ahead: with drafts every strategy has the outputs that it has without, but
// at a limit of rows, which those of drafts count for; and the entropies of a known text.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/search/toy_language.h"

namespace pawl {
namespace {

// Repeats the first half of a text, mostly: what came before is a good guess.
ToyLaw RepeatingLaw(uint64_t seed) {
  return [seed](std::span<const TokenId> output) {
    const size_t period = 3 + seed % 4;
    const size_t at = output.size() % period;
    const uint64_t hash = seed * 31 + at;
    std::vector<double> law(kToyTokens);
    double sum = 0;
    for (size_t t = 0; t < law.size(); ++t) {
      law[t] = std::exp(6 * static_cast<double>(UniformAt(hash, 1, t)) +
                        static_cast<double>(UniformAt(HashOf(output, seed), 2, t)));
      sum += law[t];
    }
    for (double& p : law) p /= sum;
    return law;
  };
}

TEST(AheadTest, DraftsChangeNoOutput) {
  const std::vector<std::pair<std::string, std::vector<std::pair<std::string, double>>>> kRuns = {
      {"adadec", {{"threshold", 0.9}}},
      {"cntp", {{"temperature", 0.3}, {"entropy_threshold_high", 9}}},
      {"mcts", {{"rollouts", 12}}},
      {"foresight", {{"num_rollouts", 2}, {"beams", 2}}},
      {"lattice", {{"nodes", 24}}},
  };
  for (const auto& [strategy, arguments] : kRuns) {
    int64_t calls[2] = {0, 0};
    int limited = 0;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      SearchOptions options = {.strategy = strategy, .max_tokens = 40, .seed = seed};
      if (strategy != "adadec" && strategy != "cntp") options.n = 2;
      options.skip_forced = seed % 2 == 0;
      if (seed % 3 == 0) options.max_rows = 9 + static_cast<int64_t>(seed) % 30;
      if (seed % 7 == 0) options.no_repeat_ngram_size = 6;
      SearchResult results[2];
      for (const int drafts : {0, 1}) {
        ToySearch search(seed);
        search.law = RepeatingLaw(seed);
        LawModel model(search.law, static_cast<int>(search.toy.prompt.size()));
        if (seed % 5 == 0) {
          search.toy.constraint = nullptr;
        } else if (seed % 5 < 3) {
          search.toy.constraint = MakeConstraint(search.toy.Compile("([01]{2}1?){4,9}"));
        }
        options.arguments = arguments;
        if (drafts == 1) options.arguments.emplace_back("drafts", 1 + seed % 7);
        const Result<SearchResult> result = RunSearch(
            {model, *search.toy.vocabulary, {}, search.toy.prompt, search.toy.constraint}, options);
        if (!result.ok()) break;
        results[drafts] = *result;
        calls[drafts] += result->model_calls;
        EXPECT_EQ(model.sequences.Check(), "");
        EXPECT_EQ(model.sequences.pool().in_use(), 0);
      }
      const auto& [without, with] = results;
      limited += with.at_limit.empty() ? 0 : 1;
      if (options.max_rows > 0) {
        EXPECT_LE(with.model_rows, 5 + options.max_rows) << strategy << seed;
        EXPECT_FALSE(with.outputs.empty()) << strategy << seed;
      }
      if (!with.at_limit.empty()) continue;
      ASSERT_EQ(with.outputs.size(), without.outputs.size()) << strategy << seed;
      for (size_t i = 0; i < with.outputs.size(); ++i) {
        EXPECT_EQ(with.outputs[i].tokens, without.outputs[i].tokens) << strategy << seed;
        EXPECT_EQ(with.outputs[i].log_probability, without.outputs[i].log_probability) << strategy;
        EXPECT_EQ(with.outputs[i].closed, without.outputs[i].closed) << strategy << seed;
      }
      EXPECT_EQ(with.nodes, without.nodes) << strategy << seed;
    }
    EXPECT_LT(calls[1], calls[0]) << strategy;
    EXPECT_GE(limited, 2) << strategy;
  }
}

TEST(AheadTest, EntropiesAreThoseOfEachPlace) {
  int places = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    ToySearch search(seed);
    const std::vector<ToySearch::Output> all = search.All(6, 1);
    if (all.empty()) continue;
    std::vector<TokenId> text = all.back().tokens;
    text.pop_back();
    const Result<std::vector<EntropyPlace>> got = EntropiesOf(search.Input(), text);
    ASSERT_TRUE(got.ok()) << got.error().ToString();
    std::vector<EntropyPlace> slow;
    State state = search.grammar->Start();
    for (size_t i = 0; i < text.size(); ++i) {
      const std::vector<double> law = search.law(std::span(text).first(i));
      double sum = 0, entropy = 0;
      TokenId best = kNoToken;
      int choices = 0;
      const auto may = [&](TokenId t) {
        return t == kTheEnd ? state.accepting() : state.Advance(t).has_value();
      };
      for (TokenId t = 0; t <= kTheEnd; ++t) {
        if (!may(t)) continue;
        ++choices;
        sum += law[static_cast<size_t>(t)];
        if (best == kNoToken || law[static_cast<size_t>(t)] > law[static_cast<size_t>(best)]) {
          best = t;
        }
      }
      for (TokenId t = 0; t <= kTheEnd; ++t) {
        const double p = law[static_cast<size_t>(t)] / sum;
        if (may(t)) entropy -= p * std::log(p);
      }
      if (choices > 1) slow.push_back({entropy, best != text[i]});
      state = *state.Advance(text[i]);
    }
    ASSERT_EQ(got->size(), slow.size()) << search.regex;
    for (size_t i = 0; i < slow.size(); ++i, ++places) {
      EXPECT_NEAR((*got)[i].entropy, slow[i].entropy, 1e-5);
      EXPECT_EQ((*got)[i].wrong, slow[i].wrong);
    }
  }
  EXPECT_GT(places, 60);
  ToySearch search(1);
  search.toy.constraint = MakeConstraint(search.toy.Compile("0*"));
  const TokenId wrong[] = {kZero, kOne};
  EXPECT_EQ(EntropiesOf(search.Input(), wrong).error().ToString(),
            "text: its token 2 is one that may not follow");
}

}  // namespace
}  // namespace pawl
