// Random toy languages with a model whose law is a hash of the output, and all their outputs by
// trying them.
#ifndef PAWL_TESTS_SEARCH_TOY_LANGUAGE_H_
#define PAWL_TESTS_SEARCH_TOY_LANGUAGE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/decode/search/run.h"
#include "tests/sampling/toy_model.h"

namespace pawl {

// Each prefix has probabilities of its own, the prompt's token has some too.
inline ToyLaw SeededLaw(uint64_t seed, double sharpness = 2) {
  return [seed, sharpness](std::span<const TokenId> output) {
    const uint64_t hash = HashOf(output, seed);
    std::vector<double> law(kToyTokens);
    double sum = 0;
    for (size_t t = 0; t < law.size(); ++t) {
      law[t] = std::exp(sharpness * static_cast<double>(UniformAt(hash, 1, t)));
      sum += law[t];
    }
    for (double& p : law) p /= sum;
    return law;
  };
}

// A regex over "0" and "1" that matches some text of at most `most` bytes.
inline std::string RandomRegex(std::mt19937& random, int depth = 3) {
  const auto part = [&] { return RandomRegex(random, depth - 1); };
  switch (depth == 0 ? random() % 3 : random() % 8) {
    case 0:
      return "0";
    case 1:
      return "1";
    case 2:
      return "[01]";
    case 3:
      return "(" + part() + "|" + part() + ")";
    case 4:
      return "(" + part() + ")?";
    case 5:
      return "(" + part() + ")*";
    default:
      return part() + part();
  }
}

struct ToySearch {
  // `seed`: of the language and the law.
  explicit ToySearch(uint64_t seed, int prompt_size = 5)
      : law(SeededLaw(seed)), toy(law, prompt_size) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    regex = RandomRegex(random);
    grammar = toy.Compile(regex);
    toy.constraint = MakeConstraint(*grammar);
  }

  SearchInput Input() { return {toy.model, *toy.vocabulary, {}, toy.prompt, toy.constraint}; }
  Result<SearchResult> Run(const SearchOptions& options) { return RunSearch(Input(), options); }

  struct Output {
    std::vector<TokenId> tokens;
    double log_probability;
    double score;
  };
  // All outputs of at most so many tokens, the best first.
  std::vector<Output> All(int most, double length_penalty) const {
    std::vector<Output> outputs;
    for (const auto& [tokens, p] : Enumerate(law, grammar ? &*grammar : nullptr, most)) {
      const double log_p = std::log(p);
      outputs.push_back(
          {tokens, log_p, log_p / std::pow(static_cast<double>(tokens.size()), length_penalty)});
    }
    std::ranges::stable_sort(outputs, std::ranges::greater(), &Output::score);
    return outputs;
  }

  ToyLaw law;
  Toy toy;
  std::string regex;
  std::optional<Grammar> grammar;
};

// The n best of all, in order. Scores that are equal up to rounding may change places.
inline void ExpectBest(const SearchResult& result, const std::vector<ToySearch::Output>& all,
                       size_t n) {
  ASSERT_EQ(result.outputs.size(), std::min(n, all.size()));
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const SearchOutput& got = result.outputs[i];
    EXPECT_NEAR(got.score, all[i].score, 1e-5) << i;
    const auto same = std::ranges::find(all, got.tokens, &ToySearch::Output::tokens);
    ASSERT_NE(same, all.end()) << i;
    EXPECT_NEAR(got.log_probability, same->log_probability, 1e-5) << i;
    EXPECT_TRUE(got.ended);
  }
}

}  // namespace pawl

#endif  // PAWL_TESTS_SEARCH_TOY_LANGUAGE_H_
