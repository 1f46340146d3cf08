// All samplers over a model whose every output can be listed: sums of weight x f must estimate sums
// of P(y) f(y) over the valid outputs. And what is the same for all of them: seeds, threads,
// batches, pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "src/decode/sampling/resampling.h"
#include "src/decode/sampling/run.h"
#include "tests/sampling/toy_model.h"

namespace pawl {
namespace {

constexpr SamplerKind kAll[] = {SamplerKind::kGcd, SamplerKind::kFvo,  SamplerKind::kAwrs,
                                SamplerKind::kSmc, SamplerKind::kAsap, SamplerKind::kRs,
                                SamplerKind::kArs, SamplerKind::kCars};
bool IsExact(SamplerKind kind) {
  return kind == SamplerKind::kRs || kind == SamplerKind::kArs || kind == SamplerKind::kCars;
}

// Compares the weights of many runs of `options` with the law, output by output.
void ExpectLaw(const std::function<Toy()>& make, SamplerOptions options, int runs,
               const std::map<std::vector<TokenId>, double>& law) {
  double mass = 0;
  for (const auto& [y, p] : law) mass += p;
  std::map<std::vector<TokenId>, double> sum, squares;
  const uint64_t seed = options.seed;
  for (int r = 0; r < runs; ++r) {
    Toy toy = make();
    options.seed = seed + static_cast<uint64_t>(r);
    const Result<SamplerResult> result = toy.Run(options);
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    ASSERT_EQ(result->outputs.size(), static_cast<size_t>(options.n));
    std::map<std::vector<TokenId>, double> of_run;
    for (const WeightedOutput& out : result->outputs) {
      EXPECT_EQ(out.report.valid, out.log_weight > kZeroWeight);
      if (!out.report.valid) continue;
      ASSERT_TRUE(law.contains(out.tokens)) << out.text;
      EXPECT_NEAR(out.log_probability, std::log(law.at(out.tokens)), 1e-5);
      of_run[out.tokens] += std::exp(out.log_weight) / options.n;
    }
    for (const auto& [y, w] : of_run) {
      sum[y] += w;
      squares[y] += w * w;
    }
    toy.ExpectNoPages();
  }
  double chi = 0;
  for (const auto& [y, p] : law) {
    const double expected = IsExact(options.sampler) ? p / mass : p;
    const double mean = sum[y] / runs;
    // What few or no hits say of the variance is no less than this.
    const double least = expected * (IsExact(options.sampler)               ? 1.0 / options.n
                                     : options.sampler == SamplerKind::kSmc ? 2 * mass
                                                                            : mass / options.n);
    const double error = std::sqrt(std::max(squares[y] / runs - mean * mean, least) / runs);
    EXPECT_NEAR(mean, expected, 5 * error + 1e-6) << y.size() << " " << expected;
    chi += (mean - expected) * (mean - expected) / (error * error + 1e-12);
  }
  EXPECT_LT(chi, static_cast<double>(law.size()) + 5 * std::sqrt(2.0 * law.size()) + 5);
}

constexpr char kRegex[] = "0{1,3}1?|1(0|10)1*\n?";

TEST(WeightsTest, MasksOfARegex) {
  const Toy toy(HashedLaw);
  const Grammar grammar = toy.Compile(kRegex);
  const auto law = Enumerate(HashedLaw, &grammar, 5);
  for (const SamplerKind kind : kAll) {
    SCOPED_TRACE(static_cast<int>(kind));
    SamplerOptions options{.sampler = kind, .n = 10, .particles = 5, .max_tokens = 5};
    ExpectLaw(
        [] {
          Toy made(HashedLaw);
          made.Constrain(kRegex);
          return made;
        },
        options, 300, law);
  }
}

// The same language, told by a check: alone, and behind a mask of something wider.
TEST(WeightsTest, ChecksOfARegex) {
  const Toy toy(HashedLaw);
  const Grammar grammar = toy.Compile(kRegex);
  const auto law = Enumerate(HashedLaw, &grammar, 4);
  for (const CheckGranularity granularity :
       {CheckGranularity::kByte, CheckGranularity::kLine, CheckGranularity::kComplete}) {
    for (const SamplerKind kind : kAll) {
      SCOPED_TRACE(static_cast<int>(kind));
      SamplerOptions options{.sampler = kind, .n = 6, .particles = 3, .max_tokens = 4};
      options.checks = {MakeGrammarCheck(grammar, granularity)};
      ExpectLaw(
          [&] {
            Toy made(HashedLaw);
            if (granularity != CheckGranularity::kComplete) made.Constrain("[01]+\n?");
            return made;
          },
          options, 120, law);
    }
  }
}

// As every caller runs a sampler, with the checks of its options.
Result<SamplerResult> RunWhole(Toy& toy, const SamplerOptions& options) {
  ThreadPool pool(1);
  return RunSampler({toy.model, *toy.vocabulary, toy.prompt, toy.constraint, pool}, options);
}

// SamplerOptions::seconds: outputs that were complete in time are those of a run without a limit.
TEST(WeightsTest, TimeEndsARun) {
  for (const SamplerKind kind : kAll) {
    SCOPED_TRACE(static_cast<int>(kind));
    SamplerOptions options{.sampler = kind, .n = 40, .particles = 1, .max_tokens = 5, .batch = 2};
    const auto run = [&] {
      Toy toy(HashedLaw);
      toy.Constrain(kRegex);
      Result<SamplerResult> result = RunWhole(toy, options);
      EXPECT_TRUE(result.ok());
      toy.ExpectNoPages();
      return *std::move(result);
    };
    const SamplerResult whole = run();
    EXPECT_FALSE(whole.timed_out);
    options.seconds = 1e12;
    const SamplerResult same = run();
    ASSERT_EQ(same.outputs.size(), 40u);
    EXPECT_FALSE(same.timed_out);
    for (size_t i = 0; i < same.outputs.size(); ++i)
      EXPECT_EQ(same.outputs[i].tokens, whole.outputs[i].tokens);
    options.seconds = 1e-9;
    const SamplerResult none = run();
    EXPECT_TRUE(none.timed_out);
    EXPECT_TRUE(none.outputs.empty());
    // The third output takes longer than all of the time.
    options.seconds = 0.05;
    size_t told = 0;
    options.on_output = [&](const WeightedOutput&) {
      if (++told == 3) std::this_thread::sleep_for(std::chrono::milliseconds(60));
      return true;
    };
    const SamplerResult some = run();
    EXPECT_TRUE(some.timed_out);
    EXPECT_LT(some.outputs.size(), 40u);
    EXPECT_EQ(some.outputs.size(), told);
    // In their order; one that was under way may be lacking between others.
    size_t at = 0;
    for (const WeightedOutput& out : some.outputs) {
      while (at < whole.outputs.size() && whole.outputs[at].tokens != out.tokens) ++at;
      EXPECT_LT(at, whole.outputs.size());
      ++at;
    }
  }
}

TEST(WeightsTest, TheEffectiveNumberOfOutputs) {
  for (const SamplerKind kind : kAll) {
    SCOPED_TRACE(static_cast<int>(kind));
    Toy toy(HashedLaw);
    toy.Constrain(kRegex);
    const SamplerOptions options{.sampler = kind, .n = 20, .particles = 3, .max_tokens = 5};
    const Result<SamplerResult> result = RunWhole(toy, options);
    ASSERT_TRUE(result.ok());
    double sum = 0, squares = 0;
    for (const WeightedOutput& out : result->outputs) {
      const double weight = out.report.valid ? std::exp(out.log_weight) : 0;
      sum += weight;
      squares += weight * weight;
    }
    EXPECT_NEAR(result->effective_size, squares > 0 ? sum * sum / squares : 0, 1e-9 * 20);
    if (IsExact(kind)) {
      EXPECT_NEAR(result->effective_size, 20, 1e-9);
    }
  }
  Toy toy(HashedLaw);
  const SamplerOptions options{.seconds = -1};
  EXPECT_EQ(RunWhole(toy, options).error().place, "seconds");
}

TEST(WeightsTest, EstimatorsTruncationAndTemperature) {
  const Toy toy(HashedLaw);
  const Grammar grammar = toy.Compile(kRegex);
  const auto law = Enumerate(HashedLaw, &grammar, 4, 0.5);
  for (const Estimator estimator :
       {Estimator::kRecursive, Estimator::kTwoLoop, Estimator::kGeometric}) {
    for (const int most : {0, 2}) {
      if (estimator == Estimator::kTwoLoop && most > 0) continue;
      SamplerOptions options{.sampler = SamplerKind::kSmc, .n = 4, .particles = 4};
      options.temperature = 0.5;
      options.max_tokens = 4;
      options.checks = {MakeGrammarCheck(grammar)};
      options.estimator = estimator;
      options.max_rejects = most;
      ExpectLaw([] { return Toy(HashedLaw); }, options, 200, law);
    }
  }
}

// Particles drawn with every method, lines that are no multiple of the population, and resampling
// at every step.
TEST(WeightsTest, ResamplingMethodsAndPartsOfPopulations) {
  const Toy toy(HashedLaw);
  const Grammar grammar = toy.Compile(kRegex);
  const auto law = Enumerate(HashedLaw, &grammar, 5);
  for (const Resampling method : {Resampling::kStratified, Resampling::kSystematic,
                                  Resampling::kMultinomial, Resampling::kResidual}) {
    SamplerOptions options{.sampler = SamplerKind::kSmc, .n = 7, .particles = 5, .max_tokens = 5};
    options.resampling = method;
    options.ess_threshold = 1.1;
    ExpectLaw(
        [] {
          Toy made(HashedLaw);
          made.Constrain(kRegex);
          return made;
        },
        options, 200, law);
  }
}

class LikesOnes : public Critic {
 public:
  Result<double> Score(const CheckQuestion& question) const override {
    return 0.7 * static_cast<double>(std::count(question.text.begin(), question.text.end(), '1'));
  }
};

TEST(WeightsTest, CriticIsPartOfTheLaw) {
  const Toy toy(HashedLaw);
  const Grammar grammar = toy.Compile(kRegex);
  const auto law = Enumerate(HashedLaw, &grammar, 5);
  double expected = 0, sum = 0, squares = 0;
  for (const auto& [y, p] : law) {
    expected += p * std::exp(0.7 * static_cast<double>(std::count(y.begin(), y.end(), kOne)));
  }
  constexpr int kRuns = 1500;
  for (int r = 0; r < kRuns; ++r) {
    Toy made(HashedLaw);
    made.Constrain(kRegex);
    SamplerOptions options{.sampler = SamplerKind::kSmc, .n = 5, .max_tokens = 5};
    options.critic = std::make_shared<LikesOnes>();
    options.seed = static_cast<uint64_t>(r);
    options.ess_threshold = 0.9;
    const Result<SamplerResult> result = made.Run(options);
    ASSERT_TRUE(result.ok());
    double mean = 0;
    for (const WeightedOutput& out : result->outputs) mean += std::exp(out.log_weight) / 5;
    sum += mean;
    squares += mean * mean;
  }
  const double mean = sum / kRuns;
  EXPECT_NEAR(mean, expected, 4.5 * std::sqrt((squares / kRuns - mean * mean) / kRuns));
}

TEST(WeightsTest, AModelAsProposal) {
  const Toy toy(HashedLaw);
  const Grammar grammar = toy.Compile(kRegex);
  const auto law = Enumerate(HashedLaw, &grammar, 4);
  const auto other = [](std::span<const TokenId> output) {
    std::vector<double> p = HashedLaw(output);
    std::rotate(p.begin(), p.begin() + 1, p.end());
    return p;
  };
  std::map<std::vector<TokenId>, double> sum;
  constexpr int kRuns = 2000;
  for (int r = 0; r < kRuns; ++r) {
    Toy made(HashedLaw);
    LawModel draft(other, 37);
    SamplerOptions options{.sampler = SamplerKind::kSmc, .n = 4, .particles = 4, .max_tokens = 4};
    options.checks = {MakeGrammarCheck(grammar)};
    options.seed = static_cast<uint64_t>(r);
    ThreadPool pool(1);
    const SamplerSetting setting{made.model, made.prompt, made.Task(options), options, pool,
                                 &draft,     45};
    const Result<SamplerResult> result = SampleWithParticles(setting);
    ASSERT_TRUE(result.ok());
    for (const WeightedOutput& out : result->outputs) {
      if (out.report.valid) sum[out.tokens] += std::exp(out.log_weight) / 4 / kRuns;
    }
    EXPECT_EQ(draft.sequences.pool().in_use(), 0);
    made.ExpectNoPages();
  }
  for (const auto& [y, p] : law) EXPECT_NEAR(sum[y], p, 0.15 * p + 0.0012);
}

// ---- The 17 strings ----

TEST(WeightsTest, EvidenceOfSeventeenStrings) {
  for (const bool check : {false, true}) {
    for (const int particles : {1, 5, 50}) {
      const int runs = 20000 / (particles + 10);
      double sum = 0, squares = 0;
      Toy toy(FairBits);
      const Grammar grammar = toy.Compile(kSeventeen);
      if (!check) toy.Constrain(kSeventeen);
      SamplerOptions options{.sampler = SamplerKind::kSmc, .n = runs * particles};
      options.particles = particles;
      options.max_tokens = 6;
      options.batch = 100;
      options.seed = 5;
      if (check) options.checks = {MakeGrammarCheck(grammar)};
      const Result<SamplerResult> result = toy.Run(options);
      ASSERT_TRUE(result.ok());
      double zeros = 0, total = 0;
      for (int r = 0; r < runs; ++r) {
        double mean = 0;
        for (int i = 0; i < particles; ++i) {
          const WeightedOutput& out = result->outputs[static_cast<size_t>(r * particles + i)];
          const double w = std::exp(out.log_weight);
          mean += w / particles;
          total += w;
          zeros += out.text == "00000" ? w : 0;
        }
        EXPECT_NEAR(
            std::exp(result->outputs[static_cast<size_t>(r * particles)].report.log_evidence), mean,
            1e-9);
        sum += mean;
        squares += mean * mean;
      }
      const double mean = sum / runs;
      const double error = std::sqrt((squares / runs - mean * mean) / runs);
      EXPECT_NEAR(mean, kSeventeenMass, 4.5 * error);
      EXPECT_LT(error, 0.017);
      EXPECT_NEAR(zeros / total, 1.0 / 17, 0.017);
      toy.ExpectNoPages();
    }
  }
}

// ---- For all of them ----

void ExpectSame(const Result<SamplerResult>& a, const Result<SamplerResult>& b) {
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->outputs.size(), b->outputs.size());
  for (size_t i = 0; i < a->outputs.size(); ++i) {
    EXPECT_EQ(a->outputs[i].tokens, b->outputs[i].tokens) << i;
    EXPECT_EQ(a->outputs[i].log_weight, b->outputs[i].log_weight) << i;
    EXPECT_EQ(a->outputs[i].report.evaluations, b->outputs[i].report.evaluations) << i;
  }
}

TEST(WeightsTest, SameSeedSameResult) {
  for (const SamplerKind kind : kAll) {
    SamplerOptions options{.sampler = kind, .n = 23, .particles = 5, .seed = 3, .max_tokens = 12};
    std::vector<Result<SamplerResult>> results;
    for (const auto& [threads, batch] : {std::pair(1, 1), {4, 7}, {3, 64}, {1, 10}}) {
      Toy toy(HashedLaw);
      toy.Constrain("([01]{2}\n?)+");
      options.checks = {MakeGrammarCheck(toy.Compile("(0[01\n]*)?11?(\n|0|1){3,9}"))};
      options.batch = batch;
      results.push_back(toy.Run(options, nullptr, threads));
      if (results.size() > 1) ExpectSame(results[0], results.back());
      toy.ExpectNoPages();
    }
    options.seed = 4;
    Toy toy(HashedLaw);
    toy.Constrain("([01]{2}\n?)+");
    const Result<SamplerResult> other = toy.Run(options);
    ASSERT_TRUE(other.ok());
    EXPECT_NE(other->outputs[0].tokens.size() + other->outputs[1].tokens.size() * 100 +
                  other->outputs[2].tokens.size() * 10000,
              results[0]->outputs[0].tokens.size() + results[0]->outputs[1].tokens.size() * 100 +
                  results[0]->outputs[2].tokens.size() * 10000)
        << static_cast<int>(kind);
  }
}

TEST(WeightsTest, CancelledRunsLeaveNoPages) {
  for (const SamplerKind kind : kAll) {
    Toy toy(HashedLaw);
    toy.Constrain("([01]{2}\n?)+");
    SamplerOptions options{.sampler = kind, .n = 50, .particles = 5, .max_tokens = 20};
    int told = 0;
    options.on_output = [&](const WeightedOutput&) { return ++told < 7; };
    const Result<SamplerResult> result = toy.Run(options);
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(result->cancelled);
    EXPECT_EQ(result->outputs.size(), 7u);
    toy.ExpectNoPages();
  }
}

TEST(WeightsTest, AFailingCheckEndsTheRun) {
  for (const SamplerKind kind : kAll) {
    Toy toy(HashedLaw);
    SamplerOptions options{.sampler = kind, .n = 50, .particles = 5, .max_tokens = 20};
    options.checks = {
        MakeCheck(CheckGranularity::kByte, [](const CheckQuestion& q) -> Result<Verdict> {
          if (q.text.size() < 3) return Verdict::kAccept;
          return Error{ErrorCode::kIo, "the database is gone", "check"};
        })};
    const Result<SamplerResult> result = toy.Run(options);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, "the database is gone");
    toy.ExpectNoPages();
  }
}

// At the end of the budget only the end is left: outputs that cannot end there have weight 0.
TEST(WeightsTest, EndOfTheBudget) {
  for (const SamplerKind kind : kAll) {
    SCOPED_TRACE(static_cast<int>(kind));
    Toy toy(HashedLaw);
    toy.Constrain("(01|10)+");
    SamplerOptions options{.sampler = kind, .n = 200, .particles = 4, .max_tokens = 3};
    options.attempts = IsExact(kind) ? 300 : 1;
    const Result<SamplerResult> result = toy.Run(options);
    ASSERT_TRUE(result.ok());
    int valid = 0, dead = 0;
    for (const WeightedOutput& out : result->outputs) {
      if (out.report.valid) {
        ++valid;
        EXPECT_TRUE(out.tokens.size() == 3 || out.tokens.size() == 4);  // with the end
        EXPECT_EQ(out.tokens.back(), kTheEnd);
      } else {
        ++dead;
        EXPECT_EQ(out.log_weight, kZeroWeight);
      }
    }
    EXPECT_GT(valid, 20);
    if (!IsExact(kind) && kind != SamplerKind::kFvo) {
      EXPECT_GT(dead, 0);
    }
  }
}

// Without a number of attempts an output that is never valid ends by the rows that it costs.
TEST(WeightsTest, FailedAttemptsEndByTheirRows) {
  SamplerOptions options{.sampler = SamplerKind::kRs, .max_tokens = 6};
  options.checks = {MakeCheck(CheckGranularity::kComplete, [](const CheckQuestion&) {
    return Result<Verdict>(Verdict::kDead);
  })};
  Toy toy(HashedLaw);
  const Result<SamplerResult> result = toy.Run(options);
  ASSERT_TRUE(result.ok());
  const SamplerReport& report = result->outputs.at(0).report;
  EXPECT_FALSE(report.valid);
  EXPECT_LT(report.attempts, 10000);
  EXPECT_GE(report.model_rows, 16384);
  EXPECT_LT(report.model_rows, 16384 + 7);
}

// Nothing valid: lines with weight 0 and no endless search.
TEST(WeightsTest, NothingIsValid) {
  for (const SamplerKind kind : kAll) {
    Toy toy(HashedLaw);
    toy.Constrain("[01]{9}");
    SamplerOptions options{.sampler = kind, .n = 6, .particles = 4, .max_tokens = 3};
    options.attempts = 200;
    const Result<SamplerResult> result = toy.Run(options);
    ASSERT_TRUE(result.ok());
    for (const WeightedOutput& out : result->outputs) {
      EXPECT_FALSE(out.report.valid);
      EXPECT_EQ(out.log_weight, kZeroWeight);
    }
    toy.ExpectNoPages();
  }
}

}  // namespace
}  // namespace pawl
