// Probabilities of choices against all spellings of each.
#include <gtest/gtest.h>

#include <map>

#include "tests/search/toy_language.h"

namespace pawl {
namespace {

// The longest token that fits, as tokenizers without merges do.
std::vector<TokenId> LongestTokens(std::string_view text) {
  std::vector<TokenId> tokens;
  while (!text.empty()) {
    const bool two = text.starts_with("00");
    tokens.push_back(two ? kTwoZeros : text[0] == '0' ? kZero : text[0] == '1' ? kOne : kNewLine);
    text.remove_prefix(two ? 2 : 1);
  }
  return tokens;
}

// The sum over the spellings of the rest.
double BruteForce(const ToyLaw& law, std::string_view rest, std::vector<TokenId>& path) {
  const std::vector<double> p = law(path);
  if (rest.empty()) return p[kTheEnd];
  double sum = 0;
  const std::pair<TokenId, std::string_view> tokens[] = {
      {kZero, "0"}, {kOne, "1"}, {kTwoZeros, "00"}, {kNewLine, "\n"}};
  for (const auto& [token, bytes] : tokens) {
    if (!rest.starts_with(bytes)) continue;
    path.push_back(token);
    sum += p[static_cast<size_t>(token)] * BruteForce(law, rest.substr(bytes.size()), path);
    path.pop_back();
  }
  return sum;
}

std::vector<std::string> RandomChoices(std::mt19937& random) {
  std::vector<std::string> choices;
  for (size_t n = 1 + random() % 6; choices.size() < n;) {
    std::string text;
    for (size_t length = random() % 7; length > 0; --length) text += "001\n"[random() % 4];
    if (std::ranges::find(choices, text) == choices.end()) choices.push_back(text);
  }
  return choices;
}

TEST(ClassifyTest, BoundsHoldOnToys) {
  int complete = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    const ToyLaw law = SeededLaw(seed, 4);
    Toy toy(law, 5);
    ClassifyOptions options{.choices = RandomChoices(random)};
    options.exact_rows = seed % 3 == 0 ? 3 : 4096;
    options.exact_missing = seed % 5 == 0 ? 0.05 : seed % 2 == 0 ? 0 : 1e-6;
    const SearchInput input{toy.model, *toy.vocabulary, seed % 4 == 0 ? Encoder() : LongestTokens,
                            toy.prompt, nullptr};
    const Result<ClassifyResult> result = RunClassify(input, options);
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    ASSERT_EQ(result->choices.size(), options.choices.size());
    EXPECT_LE(result->rows, options.exact_rows);
    double all = 0, probabilities = 0;
    for (size_t i = 0; i < options.choices.size(); ++i) {
      std::vector<TokenId> path;
      const double brute = BruteForce(law, options.choices[i], path);
      const double got = std::exp(result->choices[i].log_probability);
      EXPECT_EQ(result->choices[i].text, options.choices[i]);
      EXPECT_LE(got, brute * (1 + 1e-5)) << seed;
      EXPECT_GE(got + result->missing, brute * (1 - 1e-5)) << seed;
      if (result->missing == 0) {
        EXPECT_NEAR(got, brute, 1e-6 * brute + 1e-12);
      }
      all += brute;
      probabilities += result->choices[i].probability;
    }
    EXPECT_LE(result->valid, all * (1 + 1e-5));
    EXPECT_GE(result->valid + result->missing, all * (1 - 1e-5));
    if (result->valid > 0) {
      EXPECT_NEAR(probabilities, 1, 1e-9);
    }
    EXPECT_TRUE(result->at_limit || result->missing <= options.exact_missing * result->valid);
    complete += result->at_limit ? 0 : 1;
    toy.ExpectNoPages();
  }
  EXPECT_GE(complete, 330);
}

// The sum over the spellings of texts that begin with the rest.
double BruteBeginning(const ToyLaw& law, std::string_view rest, std::vector<TokenId>& path) {
  const std::vector<double> p = law(path);
  double sum = 0;
  const std::pair<TokenId, std::string_view> tokens[] = {
      {kZero, "0"}, {kOne, "1"}, {kTwoZeros, "00"}, {kNewLine, "\n"}};
  for (const auto& [token, bytes] : tokens) {
    if (bytes.starts_with(rest)) {
      sum += p[static_cast<size_t>(token)];
    } else if (rest.starts_with(bytes)) {
      path.push_back(token);
      sum += p[static_cast<size_t>(token)] * BruteBeginning(law, rest.substr(bytes.size()), path);
      path.pop_back();
    }
  }
  return sum;
}

TEST(ClassifyTest, ChoicesWithWhichTextsGoOn) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const ToyLaw law = SeededLaw(seed, 4);
    Toy toy(law, 5);
    const ClassifyOptions options{.choices = {"010", "00", "1\n10", "011"}, .exact_missing = 0};
    SearchInput input{toy.model, *toy.vocabulary, seed % 4 == 0 ? Encoder() : LongestTokens,
                      toy.prompt, nullptr};
    input.choices_go_on = true;
    const Result<ClassifyResult> result = RunClassify(input, options);
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    EXPECT_EQ(result->missing, 0);
    for (size_t i = 0; i < options.choices.size(); ++i) {
      std::vector<TokenId> path;
      const double brute = BruteBeginning(law, options.choices[i], path);
      EXPECT_NEAR(std::exp(result->choices[i].log_probability), brute, 1e-6 * brute + 1e-12)
          << seed << " " << i;
    }
    toy.ExpectNoPages();
  }
}

// The tokenizer's own spellings are the tree of one call.
TEST(ClassifyTest, TwentyLabelsAnswerAfterOneCall) {
  Toy toy(SeededLaw(7), 37);
  ClassifyOptions options;
  for (int i = 0; options.choices.size() < 20; ++i) {
    options.choices.push_back(std::string(1, "01"[i & 1]) + std::string(1, "01"[i >> 1 & 1]) +
                              std::string(1, "01"[i >> 2 & 1]) + std::string(1, "01"[i >> 3 & 1]) +
                              (i >= 16 ? "1" : ""));
  }
  options.exact_missing = 1e9;
  const SearchInput input{toy.model, *toy.vocabulary, LongestTokens, toy.prompt, nullptr};
  const Result<ClassifyResult> result = RunClassify(input, options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->calls, 1);
  EXPECT_LE(result->rows, 64);
}

// Texts with more tokens than a tree has rows.
TEST(ClassifyTest, LongChoices) {
  const ToyLaw law = SeededLaw(9, 1);
  Toy toy(law, 5);
  ClassifyOptions options{.choices = {std::string(70, '1'), std::string(80, '1'), "1"}};
  const SearchInput input{toy.model, *toy.vocabulary, LongestTokens, toy.prompt, nullptr};
  const Result<ClassifyResult> result = RunClassify(input, options);
  ASSERT_TRUE(result.ok());
  for (size_t i = 0; i < 3; ++i) {
    std::vector<TokenId> path;
    const double brute = std::log(BruteForce(law, options.choices[i], path));
    EXPECT_NEAR(result->choices[i].log_probability, brute, 1e-3) << i;
  }
}

// Each token has a probability of about 1e-4 and texts one of 1e-400, which no double has.
TEST(ClassifyTest, ProbabilitiesBelowTheSmallestDouble) {
  const ToyLaw law = [](std::span<const TokenId> output) {
    std::vector<double> p(kToyTokens, 1e-4);
    p[kZero] = output.size() % 2 == 0 ? 2e-4 : 1e-4;
    double sum = 0;
    for (const double one : p) sum += one;
    p[kTwoZeros] += 1 - sum;
    return p;
  };
  Toy toy(law, 5);
  ClassifyOptions options{.choices = {std::string(100, '1'), "0" + std::string(99, '1')}};
  const SearchInput input{toy.model, *toy.vocabulary, LongestTokens, toy.prompt, nullptr};
  const Result<ClassifyResult> result = RunClassify(input, options);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->at_limit);
  EXPECT_LE(result->rows, 300);
  EXPECT_EQ(result->valid, 0);
  double probabilities = 0;
  for (size_t i = 0; i < 2; ++i) {
    std::vector<TokenId> path;
    double log_p = std::log(law(path)[static_cast<size_t>(i == 0 ? kOne : kZero)]);
    path.push_back(i == 0 ? kOne : kZero);
    for (; path.size() < 100; path.push_back(kOne)) log_p += std::log(law(path)[kOne]);
    log_p += std::log(law(path)[kTheEnd]);
    EXPECT_NEAR(result->choices[i].log_probability, log_p, 1e-2);
    probabilities += result->choices[i].probability;
  }
  EXPECT_NEAR(probabilities, 1, 1e-9);
  EXPECT_NEAR(result->choices[1].probability, 2.0 / 3, 1e-3);
  EXPECT_EQ(ClassifyJson(*result).find("null,\"log"), std::string::npos);

  // A low temperature.
  options.choices = {"1", "0"};
  options.temperature = 0.005;
  const Result<ClassifyResult> cold = RunClassify(input, options);
  ASSERT_TRUE(cold.ok());
  EXPECT_NEAR(cold->choices[0].probability + cold->choices[1].probability, 1, 1e-9);
  EXPECT_GT(cold->choices[0].log_probability, kZeroWeight);
  EXPECT_LT(cold->choices[0].log_probability, -1000);
}

TEST(ClassifyTest, WrongOptionsAreNamed) {
  Toy toy(SeededLaw(7), 5);
  const auto error = [&](ClassifyOptions options) {
    const SearchInput input{toy.model, *toy.vocabulary, {}, toy.prompt, nullptr};
    const Result<ClassifyResult> result = RunClassify(input, options);
    return result.ok() ? "" : result.error().place + ": " + result.error().message;
  };
  EXPECT_EQ(error({}), "choices: has no text");
  EXPECT_EQ(error({.choices = {"0", "1", "0"}}), "choices: has \"0\" twice");
  EXPECT_EQ(error({.choices = {"0"}, .exact_rows = 0}), "exact_rows: must be at least 1");
  EXPECT_EQ(error({.choices = {"0"}, .temperature = 0}),
            "temperature: must be a finite number above 0");
}

}  // namespace
}  // namespace pawl
