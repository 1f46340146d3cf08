// The sampler against slow, obvious references: softmax for the draw, full sorts for the filters.
#include "src/decode/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "src/base/random.h"

namespace pawl {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Mask MaskOf(int size, const std::vector<TokenId>& tokens) {
  std::vector<uint32_t> words((static_cast<size_t>(size) + 31) / 32);
  for (TokenId t : tokens) words[static_cast<size_t>(t) / 32] |= 1u << (t % 32);
  return Mask(0, std::move(words));
}

std::vector<TokenId> AllTokens(int size) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < size; ++i) tokens.push_back(i);
  return tokens;
}

// What is left after penalties, mask, temperature and filters, by sorting everything; with the
// scores.
std::map<TokenId, double> ReferenceKept(const std::vector<float>& logits,
                                        const std::vector<TokenId>& allowed,
                                        const SamplingParams& p, const std::vector<TokenId>& prompt,
                                        const std::vector<TokenId>& output) {
  struct Item {
    TokenId token;
    double score;
  };
  std::vector<Item> items;
  for (TokenId t : allowed) {
    double l = static_cast<double>(logits[static_cast<size_t>(t)]);
    const auto in_output = std::count(output.begin(), output.end(), t);
    const auto in_prompt = std::count(prompt.begin(), prompt.end(), t);
    if (in_output + in_prompt > 0) {
      const double r = static_cast<double>(p.repetition_penalty);
      l = l > 0 ? l / r : l * r;
    }
    if (in_output > 0) {
      l -= static_cast<double>(p.presence_penalty) +
           static_cast<double>(p.frequency_penalty) * static_cast<double>(in_output);
    }
    items.push_back({t, l / static_cast<double>(p.temperature)});
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.score > b.score; });
  const double best = items[0].score;
  if (p.top_k > 0 && static_cast<size_t>(p.top_k) < items.size()) {
    items.resize(static_cast<size_t>(p.top_k));
  }
  if (p.top_p < 1) {
    double total = 0;
    for (const Item& item : items) total += std::exp(item.score - best);
    double sum = 0;
    size_t n = 0;
    while (n < items.size() && sum < static_cast<double>(p.top_p) * total) {
      sum += std::exp(items[n++].score - best);
    }
    items.resize(n);
  }
  std::map<TokenId, double> kept;
  for (const Item& item : items) {
    if (std::exp(item.score - best) >= static_cast<double>(p.min_p)) kept[item.token] = item.score;
  }
  return kept;
}

TEST(SamplerTest, DrawFollowsSoftmax) {
  const std::vector<float> logits = {1.0f, 0.0f, -1.0f, 2.0f, 0.5f, -3.0f};
  const double temperature = 1.3;
  std::vector<double> expected;
  double total = 0;
  for (float l : logits) total += std::exp(static_cast<double>(l) / temperature);
  for (float l : logits) expected.push_back(std::exp(static_cast<double>(l) / temperature) / total);
  constexpr int kDraws = 200000;
  std::vector<int> counts(logits.size());
  Sampler sampler({.temperature = static_cast<float>(temperature), .seed = 42});
  for (int i = 0; i < kDraws; ++i) {
    const auto token = sampler.Sample(logits, nullptr, static_cast<uint64_t>(i), {});
    ASSERT_TRUE(token.ok());
    ++counts[static_cast<size_t>(*token)];
  }
  double chi2 = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double want = expected[i] * kDraws;
    chi2 += (counts[i] - want) * (counts[i] - want) / want;
  }
  EXPECT_LT(chi2, 20.5);  // 5 degrees of freedom, p = 0.001
}

TEST(SamplerTest, SeedsAreIndependentStreams) {
  const std::vector<float> logits(4, 0.0f);
  std::vector<int> counts(16);
  constexpr int kDraws = 64000;
  Sampler one({.temperature = 1, .seed = 1});
  Sampler two({.temperature = 1, .seed = 2});
  for (int i = 0; i < kDraws; ++i) {
    const TokenId a = *one.Sample(logits, nullptr, static_cast<uint64_t>(i), {});
    const TokenId b = *two.Sample(logits, nullptr, static_cast<uint64_t>(i), {});
    ++counts[static_cast<size_t>(a * 4 + b)];
  }
  double chi2 = 0;
  for (int c : counts) chi2 += (c - 4000.0) * (c - 4000.0) / 4000.0;
  EXPECT_LT(chi2, 37.7);  // 15 degrees of freedom, p = 0.001
}

TEST(SamplerTest, NoiseIsFiniteAtBothEnds) {
  for (uint32_t word : {0u, 1u, 255u, 0x7FFFFFFFu, 0xFFFFFF00u, 0xFFFFFFFEu, 0xFFFFFFFFu}) {
    EXPECT_TRUE(std::isfinite(GumbelFromWord(word))) << word;
    EXPECT_LE(GumbelFromWord(word), kMaxGumbel) << word;
  }
  for (uint64_t i = 0; i < 100000; ++i) {
    const float u = UniformAt(3, 5, i);
    ASSERT_GT(u, 0.0f);
    ASSERT_LT(u, 1.0f);
  }
}

TEST(SamplerTest, DrawEqualsGumbelArgmaxOverWhatTheReferenceKeeps) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 3);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (int round = 0; round < 3000; ++round) {
    const int size = 1 + static_cast<int>(random() % 90);
    std::vector<float> logits;
    for (int i = 0; i < size; ++i) {
      // Rounded to quarters so that ties are common.
      logits.push_back(std::round(normal(random) * 4) / 4);
    }
    std::vector<TokenId> allowed;
    for (TokenId t : AllTokens(size)) {
      if (random() % 3 != 0) allowed.push_back(t);
    }
    if (allowed.empty())
      allowed.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(size)));
    std::vector<TokenId> prompt, output;
    for (int i = 0; i < 5; ++i) {
      prompt.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(size)));
      output.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(size)));
    }
    SamplingParams p;
    p.temperature = 0.25f * static_cast<float>(1 + random() % 8);
    if (random() % 2) p.top_k = static_cast<int>(random() % 12);
    if (random() % 2) p.top_p = 0.05f + 0.9f * uniform(random);
    if (random() % 2) p.min_p = 0.5f * uniform(random);
    if (random() % 3 == 0) p.repetition_penalty = 2.0f;  // powers of two: exact in float and double
    if (random() % 3 == 0) p.presence_penalty = 0.5f;
    if (random() % 3 == 0) p.frequency_penalty = 0.25f;
    p.seed = random();
    const Mask mask = MaskOf(size, allowed);
    const auto kept = ReferenceKept(logits, allowed, p, prompt, output);
    ASSERT_FALSE(kept.empty());
    double best_score = -std::numeric_limits<double>::infinity();
    for (const auto& [token, score] : kept) best_score = std::max(best_score, score);
    const uint64_t position = random() % 100;
    TokenId want = kNoToken;
    double want_value = 0;
    for (const auto& [token, score] : kept) {
      const double value =
          score - best_score +
          static_cast<double>(GumbelAt(p.seed, position, static_cast<uint64_t>(token)));
      if (want == kNoToken || value > want_value) {
        want = token;
        want_value = value;
      }
    }
    Sampler sampler(p);
    const auto got = sampler.Sample(logits, &mask, position, {prompt, output});
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(*got, want) << "round " << round;
    // Pure: the same again, and from a sampler that did something else before.
    (void)sampler.Sample(logits, nullptr, position + 1, {});
    EXPECT_EQ(*sampler.Sample(logits, &mask, position, {prompt, output}), want);
  }
}

TEST(SamplerTest, EveryDrawIsKeptByTheReferenceAndEveryKeptTokenIsDrawn) {
  const std::vector<float> logits = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<TokenId> allowed = {0, 2, 4, 5, 6};
  const Mask mask = MaskOf(8, allowed);
  for (const SamplingParams& p :
       {SamplingParams{.temperature = 2, .top_k = 3},
        SamplingParams{.temperature = 2, .top_p = 0.8f},
        SamplingParams{.temperature = 2, .min_p = 0.2f},
        SamplingParams{.temperature = 2, .top_k = 4, .top_p = 0.9f, .min_p = 0.1f}}) {
    const auto kept = ReferenceKept(logits, allowed, p, {}, {});
    std::set<TokenId> want, got;
    for (const auto& [token, score] : kept) want.insert(token);
    Sampler sampler(p);
    for (uint64_t i = 0; i < 2000; ++i) got.insert(*sampler.Sample(logits, &mask, i, {}));
    EXPECT_EQ(got, want);
  }
}

TEST(SamplerTest, TemperatureZeroIsArgmaxOfTheAllowedLowestIdFirst) {
  const std::vector<float> logits = {1, 9, 3, 7, 7, -2};
  const Mask mask = MaskOf(6, {0, 2, 3, 4, 5});
  Sampler greedy({.temperature = 0, .top_k = 1, .top_p = 0.1f, .seed = 3});
  EXPECT_EQ(*greedy.Sample(logits, nullptr, 0, {}), 1);
  EXPECT_EQ(*greedy.Sample(logits, &mask, 0, {}), 3);
  // A tiny temperature is nearly greedy and does not overflow.
  Sampler cold({.temperature = 1e-30f, .seed = 3});
  EXPECT_EQ(*cold.Sample(logits, nullptr, 0, {}), 1);
  Sampler hot({.temperature = 1e30f, .seed = 3});
  EXPECT_TRUE(hot.Sample(logits, &mask, 0, {}).ok());
}

TEST(SamplerTest, MaskIsNeverViolated) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    const int size = 200;
    std::vector<float> logits(size);
    for (float& l : logits) {
      l = static_cast<float>(random() % 1000) / 10.0f;
      if (random() % 10 == 0) l = -kInfinity;
    }
    const TokenId only = static_cast<TokenId>(random() % size);
    const TokenId other = static_cast<TokenId>(random() % size);
    const Mask mask = MaskOf(size, {only, other});
    Sampler sampler(
        {.temperature = 1.5f, .top_k = 5, .top_p = 0.5f, .min_p = 0.5f, .seed = random()});
    const auto token = sampler.Sample(logits, &mask, static_cast<uint64_t>(round), {});
    ASSERT_TRUE(token.ok());
    EXPECT_TRUE(mask.Allows(*token));
  }
}

TEST(SamplerTest, PenaltiesMoveTheArgmax) {
  const std::vector<float> logits = {4.0f, 3.5f, -1.0f};
  const std::vector<TokenId> history = {0, 0};
  Sampler repetition({.repetition_penalty = 2});
  EXPECT_EQ(*repetition.Sample(logits, nullptr, 0, {history, {}}), 1);
  Sampler presence({.presence_penalty = 0.6f});
  EXPECT_EQ(*presence.Sample(logits, nullptr, 0, {history, {}}), 0);  // the prompt does not count
  EXPECT_EQ(*presence.Sample(logits, nullptr, 0, {{}, history}), 1);
  Sampler frequency({.frequency_penalty = 0.3f});
  EXPECT_EQ(*frequency.Sample(logits, nullptr, 0, {{}, history}), 1);
  const std::vector<TokenId> once = {0};
  EXPECT_EQ(*frequency.Sample(logits, nullptr, 0, {{}, once}), 0);
  // Negative logits are multiplied, so that the penalty never helps a token.
  const std::vector<float> negative = {-1.0f, -1.5f};
  EXPECT_EQ(*repetition.Sample(negative, nullptr, 0, {history, {}}), 1);
}

TEST(SamplerTest, BadLogitsAndMasksAreErrors) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Sampler sampler({.temperature = 1});
  const std::vector<float> logits = {0, nan, kInfinity, -kInfinity};
  const auto all = sampler.Sample(logits, nullptr, 0, {});
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().code, ErrorCode::kInternal);
  EXPECT_EQ(all.error().place, "token 1");
  const Mask infinite = MaskOf(4, {0, 2});
  EXPECT_FALSE(sampler.Sample(logits, &infinite, 0, {}).ok());
  // Only what is allowed matters; minus infinity is a token that is not chosen.
  const Mask fine = MaskOf(4, {0, 3});
  EXPECT_EQ(*sampler.Sample(logits, &fine, 0, {}), 0);
  const Mask impossible = MaskOf(4, {3});
  EXPECT_EQ(*sampler.Sample(logits, &impossible, 0, {}), 3);
  const Mask none = MaskOf(4, {});
  const auto empty = sampler.Sample(logits, &none, 0, {});
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.error().code, ErrorCode::kInvalid);
  // Bits beyond the logits cannot be chosen.
  const Mask beyond = MaskOf(64, {40});
  EXPECT_FALSE(sampler.Sample(logits, &beyond, 0, {}).ok());
}

TEST(SamplerTest, ParametersOutOfRangeAreNamed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::pair<SamplingParams, std::string> cases[] = {
      {{.temperature = -1}, "temperature"},
      {{.temperature = nan}, "temperature"},
      {{.temperature = kInfinity}, "temperature"},
      {{.top_k = -1}, "top_k"},
      {{.top_p = 0}, "top_p"},
      {{.top_p = 1.01f}, "top_p"},
      {{.min_p = -0.1f}, "min_p"},
      {{.repetition_penalty = 0}, "repetition_penalty"},
      {{.presence_penalty = nan}, "presence_penalty"},
      {{.frequency_penalty = kInfinity}, "frequency_penalty"},
  };
  for (const auto& [params, field] : cases) {
    const Status status = CheckSamplingParams(params);
    ASSERT_FALSE(status.ok()) << field;
    EXPECT_EQ(status.error().place, field);
  }
  EXPECT_TRUE(CheckSamplingParams({}).ok());
}

}  // namespace
}  // namespace pawl
