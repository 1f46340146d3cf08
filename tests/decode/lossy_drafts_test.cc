// The lossy rule keeps its bound: whatever is drafted, the distribution of each token is off by at
// most the threshold in total variation, and by nothing where no draft is probable enough. And the
// memory that drafting takes stays bounded however long it goes on.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/decode/batch.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/sampler.h"
#include "tests/decode/sixteen_model.h"

namespace pawl {
namespace {

// Drafts the same few tokens everywhere.
class StubbornSource : public DraftSource {
 public:
  explicit StubbornSource(std::vector<TokenId> tokens) : tokens_(std::move(tokens)) {}
  std::unique_ptr<DraftSession> Follow(const DraftRequest&) override {
    class Follower : public DraftSession {
     public:
      explicit Follower(const std::vector<TokenId>& tokens) : tokens_(tokens) {}
      void Propose(const DraftPlace&, DraftCursor&, std::vector<DraftProposal>& out) override {
        for (const TokenId t : tokens_) out.push_back({t, 0, 0.9f / float(tokens_.size())});
      }

     private:
      const std::vector<TokenId>& tokens_;
    };
    return std::make_unique<Follower>(tokens_);
  }

 private:
  std::vector<TokenId> tokens_;
};

struct Drawn {
  std::vector<double> shares = std::vector<double>(16);
  int64_t lossy = 0;
};

constexpr int kLossyDraws = 20'000;

Drawn Draw(std::vector<TokenId> drafts, float lossy, float temperature,
           const std::shared_ptr<const Constraint>& constraint) {
  SixteenModel model;
  const auto vocabulary = SixteenLetters();
  DraftSetting setting;
  setting.vocabulary = vocabulary;
  setting.vocabulary_size = 16;
  setting.options.always = true;
  setting.options.nodes = 8;
  setting.options.lossy = lossy;
  std::vector<Drafter::Named> sources;
  sources.push_back({"stubborn", std::make_unique<StubbornSource>(std::move(drafts))});
  BatchOptions options;
  options.drafter = *Drafter::Make(std::move(setting), {}, std::move(sources));
  BatchEngine engine(model, vocabulary, {}, options);
  Drawn drawn;
  constexpr int kPart = 2000;
  for (int part = 0; part < kLossyDraws / kPart; ++part) {
    GenerateOptions generate;
    generate.sampling = {.temperature = temperature, .seed = static_cast<uint64_t>(7 + part)};
    generate.max_tokens = kPart;
    engine.Add({.prompt = {0},
                .constraint = constraint,
                .options = generate,
                .done = [&](Result<Generation> output) {
                  ASSERT_TRUE(output.ok());
                  for (const TokenId t : output->tokens) {
                    drawn.shares[static_cast<size_t>(t)] += 1.0 / kLossyDraws;
                  }
                  drawn.lossy += output->stats.drafts.lossy;
                }});
  }
  while (engine.Step()) {
  }
  return drawn;
}

std::vector<double> Softmax(double temperature, const std::string& letters) {
  std::vector<double> p(16);
  double sum = 0;
  for (const char c : letters) {
    const auto v = static_cast<size_t>(c - 'a');
    sum += p[v] = std::exp(double{SixteenModel::Logit(v)} / temperature);
  }
  for (double& x : p) x /= sum;
  return p;
}

double TotalVariation(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum / 2;
}

TEST(LossyDraftsTest, TotalVariationIsAtMostTheThreshold) {
  const std::string all = "abcdefghijklmnop", some = "acegjklmnop";
  const auto vocabulary = SixteenLetters();
  const Compiler compiler(vocabulary);
  const auto grammar = compiler.CompileRegex("[" + some + "]*");
  for (const bool masked : {false, true}) {
    const auto constraint = masked ? MakeConstraint(*grammar) : nullptr;
    for (const float temperature : {0.3f, 0.9f}) {
      const std::vector<double> p = Softmax(temperature, masked ? some : all);
      std::vector<TokenId> order;
      for (TokenId t = 0; t < 16; ++t) {
        if (p[static_cast<size_t>(t)] > 0) order.push_back(t);
      }
      std::sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
        return p[static_cast<size_t>(a)] > p[static_cast<size_t>(b)];
      });
      const double first = p[static_cast<size_t>(order[0])];
      const double second = p[static_cast<size_t>(order[1])];
      // Of an empirical distribution of so many draws, generously.
      const double error = std::sqrt(16.0 / kLossyDraws);
      // The likeliest, the second, two at once, one that hardly ever comes.
      for (const std::vector<TokenId>& drafts :
           {std::vector<TokenId>{order[0]}, {order[1]}, {order[1], order[0]}, {order.back()}}) {
        for (const float lossy : {0.1f, 0.6f}) {
          const Drawn drawn = Draw(drafts, lossy, temperature, constraint);
          const double far = TotalVariation(drawn.shares, p);
          EXPECT_LE(far, double{lossy} + error);
          double most = 0;  // of what is drafted
          for (const TokenId t : drafts) most = std::max(most, p[static_cast<size_t>(t)]);
          if (most < 1 - double{lossy}) {
            // As if there was no rule.
            EXPECT_LE(far, error);
            EXPECT_EQ(drawn.lossy, 0);
          } else {
            // All but the tokens behind the last node of a tree are drafts then.
            EXPECT_GT(drawn.lossy, 0);
            EXPECT_GT(far, 0.5 * (1 - most) - error);
          }
        }
      }
      EXPECT_GT(first, second);
    }
  }
}

TEST(LossyDraftsTest, NoThresholdIsNoRule) {
  const std::vector<TokenId> drafts = {15, 3};
  EXPECT_EQ(Draw(drafts, 0, 0.9f, nullptr).lossy, 0);
}

// At temperature 0 the probabilities are those of temperature 1.
TEST(LossyDraftsTest, AtTemperatureZeroSecondBestTokensComeIfTheyAreProbable) {
  std::vector<float> logits(16, -20.0f);
  logits[3] = 1.0f;
  logits[5] = 0.9f;  // nearly as likely: 0.475
  Sampler sampler({.temperature = 0});
  const std::vector<TokenId> drafts = {5};
  EXPECT_EQ(*sampler.Sample(logits, nullptr, 0, {}), 3);
  EXPECT_EQ(*sampler.ProbableDraft(logits, nullptr, {}, drafts, 0.5f), kNoToken);
  EXPECT_EQ(*sampler.ProbableDraft(logits, nullptr, {}, drafts, 0.55f), 5);
  EXPECT_EQ(*sampler.ProbableDraft(logits, nullptr, {}, {}, 0.9f), kNoToken);
  // What the mask refuses has no probability, and leaves its share to the rest.
  const Mask mask(0, {(1u << 5) | (1u << 7)});
  EXPECT_EQ(*sampler.ProbableDraft(logits, &mask, {}, drafts, 0.01f), 5);
  const std::vector<TokenId> refused = {3};
  EXPECT_EQ(*sampler.ProbableDraft(logits, &mask, {}, refused, 0.99f), kNoToken);
}

TEST(LossyDraftsTest, ThresholdsAreChecked) {
  for (const float bad : {-0.1f, 1.0f, std::nanf("")}) {
    DraftSetting setting;
    setting.vocabulary = SixteenLetters();
    setting.options.lossy = bad;
    const auto drafter = Drafter::Make(std::move(setting), {});
    ASSERT_FALSE(drafter.ok());
    EXPECT_EQ(drafter.error().ToString(), "draft_lossy: must be at least 0 and below 1");
  }
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// States are values that nodes hold: when a tree goes, so do they. Histories have their budget, and
// the other tables a size. PAWL_DRAFT_STEPS sets how many steps there are.
TEST(DraftMemoryTest, StaysBoundedOverManySteps) {
  const char* const given = std::getenv("PAWL_DRAFT_STEPS");
  const int64_t steps = given != nullptr ? std::max(1000LL, std::atoll(given)) : 4'000;
  // Logits that differ from place to place, and from text to text.
  uint64_t text_seed = 77;
  ToyModel model(kSixteen, [&](const ToyModel::Place& place, std::span<float> out) {
    uint64_t x = static_cast<uint64_t>(place.row.position) * 0x9e3779b97f4a7c15u + text_seed;
    for (float& logit : out) {
      x ^= x << 13, x ^= x >> 7, x ^= x << 17;
      logit = static_cast<float>(x % 1000) / 200;
    }
  });
  const auto vocabulary = SixteenLetters();
  const Compiler compiler(vocabulary);
  const auto grammar = compiler.CompileGrammar(
      "start: item+\nitem: /[a-d]+/ | \"e\" item \"f\" | /g[h-p]{0,9}g/", GrammarLanguage::kLark);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  DraftSetting setting;
  setting.vocabulary = vocabulary;
  setting.vocabulary_size = 16;
  setting.options.sources = "forced,literals,suffix,history,ngram,recycling,random";
  setting.options.always = true;
  setting.options.history_bytes = 1 << 20;
  const auto indices = ParseDraftSources(setting.options);
  ASSERT_TRUE(indices.ok()) << indices.error().ToString();
  BatchOptions options;
  options.max_batch = 4;
  const std::shared_ptr<Drafter> drafter = *Drafter::Make(std::move(setting), *indices);
  options.drafter = drafter;
  BatchEngine engine(model, vocabulary, {}, options);
  uint64_t seed = 0;
  int outputs = 0;
  const auto add = [&] {
    GenerateOptions generate;
    generate.sampling = {.temperature = 1, .seed = ++seed};
    generate.max_tokens = 300;
    engine.Add({.prompt = {0},
                .constraint = MakeConstraint(*grammar),
                .options = generate,
                .done = [&](Result<Generation> output) {
                  ASSERT_TRUE(output.ok()) << output.error().ToString();
                  ++outputs;
                  text_seed += 0x51ed27;
                }});
  };
  const auto bytes = [] { return static_cast<int64_t>(mallinfo2().uordblks); };
  int64_t first_half = 0, second_half = 0;
  for (int64_t step = 0; step < steps; ++step) {
    while (engine.running() + engine.waiting() < 4) add();
    engine.Step();
    if (step < steps / 10 || step % 50 != 0) continue;
    int64_t& most = step < steps / 2 ? first_half : second_half;
    most = std::max(most, bytes());
  }
  EXPECT_GT(outputs, 10);
  EXPECT_GT(engine.stats().accepted, steps / 100);
  RecordProperty("bytes_first_half", std::to_string(first_half));
  RecordProperty("bytes_second_half", std::to_string(second_half));
  RecordProperty("drafts", std::to_string(engine.stats().drafts));
  // Beyond what the sources share: the states and trees of four requests.
  EXPECT_LE(second_half, first_half + 2 * (1 << 20));
  EXPECT_LE(drafter->bytes(), 8 << 20);
}

#endif

}  // namespace
}  // namespace pawl
