// What is told of tokens in addition to the tokens: probabilities against softmax written out,
// biases, and what happens at the end of the budget.
#include "src/decode/logprob_tracker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/random.h"
#include "tests/support/session.h"
#include "tests/support/toy_model.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

constexpr int kVocabulary = 12;

// Logits that depend on the position alone, so that a test can ask for them.
class PositionModel : public ToyModel {
 public:
  PositionModel()
      : ToyModel({.vocabulary_size = kVocabulary, .context_length = 200, .reads = false},
                 [this](const Place& place, std::span<float> out) {
                   all_wanted = all_wanted && place.row.allowed.empty();
                   for (int i = 0; i < kVocabulary; ++i)
                     out[static_cast<size_t>(i)] = LogitAt(place.row.position, i);
                 }) {}
  static float LogitAt(int position, int token) {
    return 6 * UniformAt(7, static_cast<uint64_t>(position), static_cast<uint64_t>(token));
  }
  bool all_wanted = true;
};

double LogSumAt(int position, const std::string& letters) {
  double sum = 0;
  for (const char c : letters) sum += std::exp(PositionModel::LogitAt(position, c - 'a'));
  return std::log(sum);
}

TEST(TokenWatchTest, LogprobsAreSoftmaxAmongTheAllowed) {
  PositionModel model;
  const auto vocabulary = VocabularyOf(Letters('a', 'k'));
  const Compiler compiler(vocabulary);
  const auto grammar = compiler.CompileRegex("([a-d]x?[b-f]k){4}");
  ASSERT_TRUE(grammar.ok());
  Session session(model, vocabulary);
  std::vector<TokenReport> reports;
  std::vector<std::vector<TokenLogprob>> tops;
  GenerateOptions options;
  options.sampling = {.temperature = 1.5f, .seed = 3};
  options.logprobs = 3;
  options.mask_surprise = true;
  options.on_report = [&](const TokenReport& report) {
    reports.push_back(report);
    tops.emplace_back(report.top.begin(), report.top.end());
    return true;
  };
  const std::vector<TokenId> prompt = {0};
  const auto out = session.Generate(prompt, MakeConstraint(*grammar), options);
  ASSERT_TRUE(out.ok()) << out.error().ToString();
  ASSERT_EQ(reports.size(), 12u);
  EXPECT_TRUE(model.all_wanted) << "surprise needs the logits that the mask refuses";
  double surprise = 0;
  for (size_t i = 0; i < reports.size(); ++i) {
    const TokenReport& report = reports[i];
    EXPECT_EQ(report.token, out->tokens[i]);
    if (i % 3 == 2) {  // 'k', which was not chosen
      EXPECT_EQ(report.source, TokenReport::Source::kForced);
      EXPECT_EQ(report.logprob, 0);
      EXPECT_TRUE(tops[i].empty());
      continue;
    }
    const std::string allowed = i % 3 == 0 ? "abcd" : "bcdef";
    const int position = static_cast<int>(i);
    EXPECT_EQ(report.source, TokenReport::Source::kSampled);
    EXPECT_EQ(report.allowed, static_cast<int>(allowed.size()));
    const double sum = LogSumAt(position, allowed);
    EXPECT_NEAR(report.logprob, PositionModel::LogitAt(position, report.token) - sum, 1e-5);
    double all = 0;
    for (int t = 0; t < kVocabulary; ++t) all += std::exp(PositionModel::LogitAt(position, t));
    EXPECT_NEAR(report.surprise, std::log(all) - sum, 1e-5);
    surprise += report.surprise;
    ASSERT_EQ(tops[i].size(), 3u);
    for (size_t k = 0; k < 3; ++k) {
      int better = 0;  // tokens before this one
      for (const char c : allowed) {
        better += PositionModel::LogitAt(position, c - 'a') >
                          PositionModel::LogitAt(position, tops[i][k].token)
                      ? 1
                      : 0;
      }
      EXPECT_EQ(better, static_cast<int>(k));
      EXPECT_NEAR(tops[i][k].logprob, PositionModel::LogitAt(position, tops[i][k].token) - sum,
                  1e-5);
    }
  }
  EXPECT_NEAR(out->stats.mask_surprise, surprise, 1e-6);
}

TEST(TokenWatchTest, BiasMovesTheChoiceAndTheGrammarHasTheLastWord) {
  PositionModel model;
  const auto vocabulary = VocabularyOf(Letters('a', 'k'));
  const Compiler compiler(vocabulary);
  const auto grammar = compiler.CompileRegex("[a-d]{8}");
  Session session(model, vocabulary);
  const std::vector<TokenId> prompt = {0};
  GenerateOptions options;
  options.logit_bias = {{2, 100.f}};
  auto out = session.Generate(prompt, MakeConstraint(*grammar), options);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->text, "cccccccc");
  options.logit_bias = {{9, 100.f}, {0, -100.f}, {1, -100.f}, {2, -100.f}, {3, -100.f}};
  out = session.Generate(prompt, MakeConstraint(*grammar), options);
  ASSERT_TRUE(out.ok()) << out.error().ToString();
  EXPECT_EQ(out->text.size(), 8u);
  EXPECT_EQ(out->text.find_first_not_of("abcd"), std::string::npos) << out->text;
  options.logit_bias = {{kVocabulary, 1.f}};
  out = session.Generate(prompt, MakeConstraint(*grammar), options);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error().place, "logit_bias");
}

TEST(TokenWatchTest, AtTheEndOfTheBudgetItIsClosedOrCut) {
  PositionModel model;
  const auto vocabulary = VocabularyOf(Letters('a', 'k'));
  const Compiler compiler(vocabulary);
  const auto grammar = compiler.CompileRegex("a[b-h]{20,90}cab");
  Session session(model, vocabulary);
  const std::vector<TokenId> prompt = {0};
  const auto generate = [&](AtBudget at_budget, int tokens) {
    GenerateOptions options;
    options.at_budget = at_budget;
    options.max_tokens = tokens;
    options.sampling = {.temperature = 2, .seed = 5};
    return session.Generate(prompt, MakeConstraint(*grammar), options);
  };
  int closed_early = 0;
  for (int tokens = 0; tokens <= 40; ++tokens) {
    const auto closed = generate(AtBudget::kClose, tokens);
    const auto either = generate(AtBudget::kCloseOrCut, tokens);
    const auto cut = generate(AtBudget::kCut, tokens);
    ASSERT_TRUE(cut.ok() && either.ok());
    const bool ended = cut->stop == StopReason::kEnd;  // by the model, which needs 24 for it
    EXPECT_TRUE(ended ? tokens >= 24 : cut->stop == StopReason::kLength);
    if (!ended) {
      EXPECT_EQ(cut->tokens.size(), static_cast<size_t>(tokens));
    }
    EXPECT_EQ(closed.ok(), tokens >= 24);
    if (closed.ok()) {
      EXPECT_EQ(closed->text, either->text);
      EXPECT_EQ(closed->text.substr(closed->text.size() - 3), "cab");
      if (closed->stop == StopReason::kEnd) {
        EXPECT_EQ(closed->text, cut->text);
      }
      closed_early += closed->stop == StopReason::kClosed ? 1 : 0;
    } else {
      EXPECT_EQ(either->text, cut->text);
      EXPECT_EQ(either->stop, StopReason::kLength);
    }
  }
  EXPECT_GT(closed_early, 0);
}

}  // namespace
}  // namespace pawl
