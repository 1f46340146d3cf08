// The newer stages against twins that sort and sum step by step, on random rows; their state
// over many draws; and that what a grammar dictates is left alone.
#include "src/decode/sampler_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "src/decode/sampler.h"
#include "tests/decode/sixteen_model.h"
#include "tests/support/session.h"

namespace pawl {
namespace {

std::vector<float> RandomRow(std::mt19937& random, size_t size) {
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(size);
  for (float& l : logits) l = normal(random);
  return logits;
}

SamplerCandidates CandidatesOf(const std::vector<float>& logits) {
  SamplerCandidates out;
  for (size_t i = 0; i < logits.size(); ++i) out.push_back({logits[i], static_cast<TokenId>(i)});
  return out;
}

std::set<TokenId> TokensIn(const SamplerCandidates& candidates) {
  std::set<TokenId> tokens;
  for (const SamplerCandidate& c : candidates) tokens.insert(c.token);
  return tokens;
}

struct LawItem {
  double p;
  TokenId token;
};

// The probabilities, the most probable one first.
std::vector<LawItem> Law(const std::vector<float>& logits, double temperature) {
  std::vector<LawItem> law;
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    law.push_back({std::exp(double{logits[i]} / temperature), static_cast<TokenId>(i)});
    sum += law.back().p;
  }
  for (LawItem& item : law) item.p /= sum;
  std::ranges::stable_sort(law, std::ranges::greater(), &LawItem::p);
  return law;
}

double Entropy(const std::vector<LawItem>& law) {
  double sum = 0;
  for (const LawItem& item : law) sum -= item.p * std::log(item.p);
  return sum;
}

class StagesTest : public ::testing::Test {
 protected:
  // Calls `check(logits, temperature, x)` for random rows; x is random from 0 to 1.
  template <typename Check>
  void ForRows(const Check& check) {
    std::mt19937 random(5);
    std::uniform_real_distribution<float> uniform(0.01f, 1);
    for (int row = 0; row < 1000; ++row) {
      check(RandomRow(random, 2 + random() % 200), 0.3f + 1.5f * uniform(random), uniform(random));
    }
  }
};

TEST_F(StagesTest, TypicalKeepsTheNearestToTheEntropy) {
  ForRows([](const std::vector<float>& logits, float temperature, float p) {
    std::vector<LawItem> law = Law(logits, double{temperature});
    const double entropy = Entropy(law);
    std::ranges::stable_sort(
        law, {}, [&](const LawItem& item) { return std::abs(-std::log(item.p) - entropy); });
    std::set<TokenId> wanted;
    double sum = 0;
    for (const LawItem& item : law) {
      wanted.insert(item.token);
      if ((sum += item.p) >= double{p}) break;
    }
    SamplerCandidates got = CandidatesOf(logits);
    KeepTypical(got, p, temperature);
    EXPECT_EQ(TokensIn(got), wanted);
  });
}

TEST_F(StagesTest, TopNSigmaKeepsLogitsNearTheLargest) {
  ForRows([](const std::vector<float>& logits, float, float x) {
    const float n = 3 * x;
    const double mean =
        std::accumulate(logits.begin(), logits.end(), 0.0) / static_cast<double>(logits.size());
    double squares = 0;
    for (const float l : logits) squares += std::pow(double{l} - mean, 2);
    const double sigma = std::sqrt(squares / static_cast<double>(logits.size()));
    const double largest = double{*std::ranges::max_element(logits)};
    std::set<TokenId> wanted;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (double{logits[i]} >= largest - double{n} * sigma) wanted.insert(static_cast<TokenId>(i));
    }
    SamplerCandidates got = CandidatesOf(logits);
    KeepTopNSigma(got, n);
    EXPECT_EQ(TokensIn(got), wanted);
  });
}

TEST_F(StagesTest, XtcDropsAllButTheLastAboveTheThreshold) {
  ForRows([](const std::vector<float>& logits, float temperature, float x) {
    const float threshold = x / 4;
    const std::vector<LawItem> law = Law(logits, double{temperature});
    std::vector<TokenId> above;
    for (const LawItem& item : law) {
      if (item.p >= double{threshold}) above.push_back(item.token);
    }
    std::set<TokenId> wanted = TokensIn(CandidatesOf(logits));
    const std::set<TokenId> all = wanted;
    for (size_t i = 0; i + 1 < above.size(); ++i) wanted.erase(above[i]);
    SamplerCandidates got = CandidatesOf(logits);
    KeepXtc(got, 0.5f, threshold, temperature, 0.4);
    EXPECT_EQ(TokensIn(got), wanted);
    got = CandidatesOf(logits);
    KeepXtc(got, 0.5f, threshold, temperature, 0.6);
    EXPECT_EQ(TokensIn(got), all);
  });
}

TEST_F(StagesTest, EpsilonAndEtaCutOff) {
  ForRows([](const std::vector<float>& logits, float temperature, float x) {
    const float epsilon = x / 20;
    const std::vector<LawItem> law = Law(logits, double{temperature});
    const double eta =
        std::min(double{epsilon}, std::sqrt(double{epsilon}) * std::exp(-Entropy(law)));
    std::set<TokenId> above = {law[0].token}, above_eta = above;
    for (const LawItem& item : law) {
      if (item.p >= double{epsilon}) above.insert(item.token);
      if (item.p >= eta) above_eta.insert(item.token);
    }
    SamplerCandidates got = CandidatesOf(logits);
    KeepEpsilon(got, epsilon, temperature);
    EXPECT_EQ(TokensIn(got), above);
    got = CandidatesOf(logits);
    KeepEta(got, epsilon, temperature);
    EXPECT_EQ(TokensIn(got), above_eta);
  });
}

TEST_F(StagesTest, DynamicTemperatureFollowsTheEntropy) {
  ForRows([](const std::vector<float>& logits, float temperature, float x) {
    SamplerStages stages;
    stages.dynatemp_range = x;
    stages.dynatemp_exponent = 2;
    const double share = Entropy(Law(logits, 1)) / std::log(static_cast<double>(logits.size()));
    const double least = std::max(0.0, double{temperature} - double{x});
    const double wanted = least + (double{temperature} + double{x} - least) * share * share;
    EXPECT_NEAR(double{TemperatureAt(stages, temperature, 0, CandidatesOf(logits))}, wanted, 1e-5);
  });
  SamplerStages stages;
  stages.temperature_last = 0.25f;
  stages.temperature_tokens = 10;
  EXPECT_EQ(TemperatureAt(stages, 1, 0, {}), 1);
  EXPECT_FLOAT_EQ(TemperatureAt(stages, 1, 5, {}), 0.625f);
  EXPECT_EQ(TemperatureAt(stages, 1, 10, {}), 0.25f);
  EXPECT_EQ(TemperatureAt(stages, 1, 1000, {}), 0.25f);
  EXPECT_EQ(TemperatureAt(stages, 0, 5, {}), 0);
}

// The longest match of the end with each earlier place, place by place.
std::map<TokenId, size_t> SlowMatches(const std::vector<TokenId>& tokens,
                                      const std::vector<uint8_t>& drawn, size_t most) {
  std::map<TokenId, size_t> longest;
  for (size_t end = 0; end + 1 < tokens.size(); ++end) {
    size_t length = 0, counted = 0;
    while (length <= end && length < most &&
           tokens[end - length] == tokens[tokens.size() - 1 - length]) {
      counted += drawn[tokens.size() - 1 - length];
      ++length;
    }
    size_t& best = longest[tokens[end + 1]];
    best = std::max(best, counted);
  }
  return longest;
}

TEST_F(StagesTest, DryPenalisesTheLongestMatch) {
  std::mt19937 random(9);
  const auto vocabulary = VocabularyOf({"a", "b", "c", "\n", "d:"});
  for (int round = 0; round < 1000; ++round) {
    std::vector<TokenId> tokens(3 + random() % 40);
    for (TokenId& t : tokens)
      t = random() % 12 == 0 ? 3 + static_cast<TokenId>(random() % 2)
                             : static_cast<TokenId>(random() % 3);
    const size_t prompt = random() % tokens.size();
    std::vector<uint8_t> forced(tokens.size() - prompt), drawn(tokens.size(), 1);
    for (size_t i = 0; i < forced.size(); ++i) {
      forced[i] = random() % 5 == 0 ? 1 : 0;
      drawn[prompt + i] = forced[i] == 0 ? 1 : 0;
    }
    SamplerStages stages;
    stages.dry_multiplier = 0.8f;
    stages.dry_allowed_length = static_cast<int>(random() % 3) + 1;
    const size_t window = random() % 2 == 0 ? tokens.size() : 1 + random() % tokens.size();
    stages.dry_penalty_last_n = window == tokens.size() ? -1 : static_cast<int>(window);
    const std::vector<TokenId> seen(tokens.end() - static_cast<ptrdiff_t>(window), tokens.end());
    const std::vector<uint8_t> seen_drawn(drawn.end() - static_cast<ptrdiff_t>(window),
                                          drawn.end());
    size_t most = 0;
    while (most < seen.size() && seen[seen.size() - 1 - most] < 3) ++most;
    const auto matches = SlowMatches(seen, seen_drawn, most);
    SamplerCandidates got = CandidatesOf(std::vector<float>(5, 1.0f));
    PenaliseRepetition(got, stages, std::span(tokens).first(prompt),
                       std::span(tokens).subspan(prompt), forced, vocabulary.get());
    const auto allowed = static_cast<size_t>(stages.dry_allowed_length);
    for (const SamplerCandidate& c : got) {
      const auto found = matches.find(c.token);
      const size_t length = found == matches.end() ? 0 : found->second;
      // What has a breaker ends a repetition.
      const double penalty = length < allowed || most < allowed || c.token >= 3
                                 ? 0
                                 : 0.8 * std::pow(1.75, static_cast<double>(length - allowed));
      EXPECT_NEAR(double{c.score}, 1 - penalty, 1e-4) << round << " token " << c.token;
    }
  }
}

// A breaker that stands in the middle of tokens, and in several.
TEST_F(StagesTest, DrySequenceBreakersSpanTokens) {
  const auto vocabulary = VocabularyOf({"x", "y", "EN", "D."});
  SamplerStages stages;
  stages.dry_multiplier = 1;
  stages.dry_allowed_length = 1;
  stages.dry_base = 1;
  stages.dry_sequence_breakers = {"ND"};
  // x y END x: without the breaker "x" would be followed by "y" again after a match of 1.
  const std::vector<TokenId> tokens = {2, 3, 0, 1, 2, 3, 0};
  SamplerCandidates got = CandidatesOf({0, 0, 0, 0});
  PenaliseRepetition(got, stages, {}, tokens, {}, vocabulary.get());
  EXPECT_EQ(got[1].score, -1);
  stages.dry_allowed_length =
      2;  // "D." x is a match of 2 tokens, of which one is behind the breaker
  got = CandidatesOf({0, 0, 0, 0});
  PenaliseRepetition(got, stages, {}, tokens, {}, vocabulary.get());
  EXPECT_EQ(got[1].score, 0);
}

// The mean surprise comes to what was asked for, where that can be reached.
// By texts as they stand: how long the longest end, with the candidate, is that stood before.
TEST_F(StagesTest, MomentumChoosesByProbabilityAndRepetition) {
  std::mt19937 random(14);
  int repeated = 0;
  for (int round = 0; round < 1000; ++round) {
    const std::vector<float> logits = RandomRow(random, 6);
    std::vector<TokenId> prompt(random() % 8), output(random() % 30);
    for (TokenId& t : prompt) t = static_cast<TokenId>(random() % 6);
    for (TokenId& t : output) t = static_cast<TokenId>(random() % 3);
    SamplerStages stages;
    stages.momentum_alpha = static_cast<float>(round % 4) * 0.1f;
    stages.momentum_k = 1 + round % 6;
    std::vector<TokenId> text = prompt;
    text.insert(text.end(), output.begin(), output.end());
    const auto length_with = [&](TokenId token) {
      std::vector<TokenId> longer = text;
      longer.push_back(token);
      int longest = 0;
      for (size_t size = 1; size <= std::min<size_t>(6, text.size()); ++size) {
        const auto end = longer.end() - static_cast<ptrdiff_t>(size);
        const bool there = std::search(text.begin(), text.end(), end, longer.end()) != text.end();
        if (there) longest = static_cast<int>(size);
      }
      return longest;
    };
    const std::vector<LawItem> law = Law(logits, 1);
    TokenId want = law[0].token;
    double most = -1e300;
    for (size_t i = 0; i < std::min(law.size(), static_cast<size_t>(stages.momentum_k)); ++i) {
      const int length = length_with(law[i].token);
      repeated += length > 2 ? 1 : 0;
      if (length > 5 && round % 4 != 0) continue;
      const double value = law[i].p - double{stages.momentum_alpha} * length;
      if (value <= most || (round % 4 == 0 && i > 0)) continue;
      most = value;
      want = law[i].token;
    }
    SamplerCandidates got = CandidatesOf(logits);
    KeepMomentum(got, stages, prompt, output, {});
    EXPECT_EQ(TokensIn(got), std::set<TokenId>({want})) << round;
    // Alpha 0 is greedy, whatever the temperature and the filters.
    Sampler greedy({});
    SamplingParams params;
    params.temperature = 0.8f;
    params.top_p = 0.9f;
    params.stages.momentum_alpha = 0;
    Sampler momentum(params);
    EXPECT_EQ(*momentum.Sample(logits, nullptr, 3, {prompt, output}),
              *greedy.Sample(logits, nullptr, 3, {prompt, output}));
  }
  EXPECT_GE(repeated, 100);
  // Tokens that were not drawn lengthen no repetition.
  SamplerStages stages;
  stages.momentum_alpha = 0.3f;
  const std::vector<TokenId> output = {0, 1, 2, 0, 1};
  const std::vector<uint8_t> forced = {0, 0, 0, 1, 1};
  SamplerCandidates got = {{std::log(0.75f), 2}, {std::log(0.25f), 3}};
  KeepMomentum(got, stages, {}, output, {});
  EXPECT_EQ(got[0].token, 3);
  got = {{std::log(0.75f), 2}, {std::log(0.25f), 3}};
  KeepMomentum(got, stages, {}, output, forced);
  EXPECT_EQ(got[0].token, 2);
}

TEST_F(StagesTest, MirostatKeepsTheSurprise) {
  for (const int version : {1, 2}) {
    std::vector<float> logits(500);
    for (size_t i = 0; i < logits.size(); ++i) {
      logits[i] = -1.2f * std::log(static_cast<float>(i + 1));
    }
    SamplingParams params{.temperature = 1, .seed = 8};
    params.stages.mirostat = version;
    params.stages.mirostat_tau = 3;
    Sampler sampler(params);
    double sum = 0, mu = 6;
    constexpr int kSteps = 2000;
    for (int i = 0; i < kSteps; ++i) {
      const Result<TokenId> token = sampler.Sample(logits, nullptr, static_cast<uint64_t>(i), {});
      ASSERT_TRUE(token.ok());
      // Without Taken nothing is learnt.
      ASSERT_EQ(*sampler.Sample(logits, nullptr, static_cast<uint64_t>(i), {}), *token);
      sampler.Taken();
      SamplerCandidates kept = CandidatesOf(logits);
      KeepMirostat(kept, version, mu, static_cast<int>(logits.size()), 1);
      ASSERT_TRUE(TokensIn(kept).contains(*token));
      const double surprise = SurpriseOf(kept, *token, 1);
      mu -= 0.1 * (surprise - 3);
      sum += surprise;
    }
    EXPECT_NEAR(sum / kSteps, 3, 0.1) << version;
  }
}

TEST_F(StagesTest, OffValuesChangeNothing) {
  ForRows([](const std::vector<float>& logits, float temperature, float x) {
    SamplingParams plain{.temperature = temperature,
                         .top_k = 20,
                         .top_p = 0.9f,
                         .min_p = 0.02f,
                         .seed = static_cast<uint64_t>(1000 * x)};
    SamplingParams off = plain;
    off.stages.order = kDefaultStages;
    off.stages.xtc_probability = 0.9f;
    off.stages.xtc_threshold = 0.6f;
    off.stages.dry_multiplier = 1;
    off.stages.dry_penalty_last_n = 0;
    EXPECT_EQ(*Sampler(plain).Sample(logits, nullptr, 3, {}),
              *Sampler(off).Sample(logits, nullptr, 3, {}));
  });
}

// Stages run in the order of the list; filters in front of the temperature see that of 1.
TEST_F(StagesTest, OrderIsTheLists) {
  const std::vector<float> logits = {2, 1.9f, 0, -1};
  SamplingParams params{.temperature = 0.05f, .top_p = 0.6f};
  std::set<TokenId> cold, warm;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    params.seed = seed;
    params.stages.order = "temperature,top_p";
    cold.insert(*Sampler(params).Sample(logits, nullptr, 0, {}));
    params.stages.order = "top_p;temperature";
    warm.insert(*Sampler(params).Sample(logits, nullptr, 0, {}));
  }
  EXPECT_EQ(cold, std::set<TokenId>({0}));
  EXPECT_EQ(warm, std::set<TokenId>({0, 1}));
  EXPECT_EQ(OrderOf(params), "top_p,temperature");
  params.stages.order = "typ_p,temperature";
  params.stages.typical_p = 0.5f;
  EXPECT_EQ(OrderOf(params), "typical_p,temperature");
  params.stages.order = "top_p,top_q";
  EXPECT_EQ(CheckSamplingParams(params).error().place, "samplers");
  params.stages.order = "top_p,top_p";
  EXPECT_EQ(CheckSamplingParams(params).error().place, "samplers");
  EXPECT_FALSE(Sampler({}).needs_logits());
  EXPECT_FALSE(Sampler({.temperature = 1, .top_p = 0.5f}).needs_logits());
  params.stages.order = kLlamaStages;
  EXPECT_TRUE(Sampler(params).needs_logits());
}

// A repeated key is dictated, so a value behind it is as free as the first time.
TEST_F(StagesTest, DryLeavesWhatTheGrammarDictates) {
  const auto vocabulary = SixteenLetters();
  SixteenModel model;
  const Grammar grammar = *Compiler(vocabulary).CompileRegex("(abcd[a-p]){3}");
  const auto text = [&](float multiplier) {
    GenerateOptions options;
    options.sampling.stages.dry_multiplier = multiplier;
    options.sampling.stages.dry_allowed_length = 2;
    Session session(model, vocabulary);
    const std::vector<TokenId> prompt = {1};
    return session.Generate(prompt, MakeConstraint(grammar), options)->text;
  };
  EXPECT_EQ(text(5), text(0));
}

}  // namespace
}  // namespace pawl
