// Works of different kinds in one batch: what each gets is what it gets alone, and the calls of the
// model are shared.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include "src/decode/batch.h"
#include "src/decode/sampling/run.h"
#include "src/decode/sampling/score.h"
#include "src/decode/score_work.h"
#include "src/model/random_weights.h"
#include "tests/decode/paged_model.h"
#include "tests/support/model_around.h"

namespace pawl {
namespace {

// The same model, which draws the tokens itself.
class DrawingModel : public PagedModel {
 public:
  explicit DrawingModel(int32_t pages) : PagedModel(pages, 0, true) {}
};

// Another model, whose calls are counted.
class CountingModel : public ModelAround {
 public:
  explicit CountingModel(Model& inner) : ModelAround(inner) {}
  Status Run(const ModelCall& call) override {
    ++calls;
    rows += static_cast<int64_t>(call.rows.size());
    return inner_.Run(call);
  }

  int64_t calls = 0, rows = 0;
};

std::shared_ptr<const Vocabulary> Letters(int size) {
  VocabularyInit init;
  for (int i = 0; i < size; ++i) init.tokens.push_back("t" + std::to_string(i) + " ");
  init.special = {2};
  init.end_tokens = {2};
  return *Vocabulary::Create(std::move(init));
}

TransformerConfig SmallShape() {
  TransformerConfig config = *ShapeNamed("135m");
  config.hidden = 64;
  config.layers.resize(2);
  for (Layer& layer : config.layers) {
    layer.mlp().width = 96;
    layer.attention().heads = 4;
    layer.attention().kv_heads = 2;
    layer.attention().head_dim = 16;
  }
  config.vocabulary = 300;
  config.context_length = 512;
  return config;
}

struct Mixture {
  std::vector<BatchRequest> chats;
  SamplerOptions options;
  std::vector<TokenId> prompt;
};

Mixture MixtureOf(int chats, int tokens, int vocabulary) {
  std::mt19937 random(7);
  const auto text = [&](int count) {
    std::vector<TokenId> tokens_of;
    for (int i = 0; i < count; ++i) {
      tokens_of.push_back(
          static_cast<TokenId>(3 + random() % static_cast<unsigned>(vocabulary - 3)));
    }
    return tokens_of;
  };
  Mixture mixture;
  for (int i = 0; i < chats; ++i) {
    BatchRequest& request = mixture.chats.emplace_back();
    request.prompt = text(20 + 5 * i);
    request.options.max_tokens = tokens;
    request.options.sampling = {.temperature = 1, .seed = static_cast<uint64_t>(i)};
  }
  mixture.prompt = text(24);
  mixture.options.sampler = SamplerKind::kSmc;
  mixture.options.n = mixture.options.particles = mixture.options.batch = 8;
  mixture.options.max_tokens = tokens;
  mixture.options.temperature = 1;
  mixture.options.seed = 5;
  return mixture;
}

struct Outputs {
  std::vector<Generation> chats;
  std::optional<SamplerResult> samples;
  int64_t calls = 0, rows = 0;
  double seconds = 0;
};

void ExpectSame(const SamplerResult& got, const SamplerResult& wanted) {
  ASSERT_EQ(got.outputs.size(), wanted.outputs.size());
  for (size_t i = 0; i < wanted.outputs.size(); ++i) {
    EXPECT_EQ(got.outputs[i].tokens, wanted.outputs[i].tokens) << i;
    EXPECT_EQ(got.outputs[i].text, wanted.outputs[i].text) << i;
    EXPECT_EQ(got.outputs[i].log_weight, wanted.outputs[i].log_weight) << i;
    EXPECT_EQ(got.outputs[i].log_probability, wanted.outputs[i].log_probability) << i;
  }
}

// One engine for all of them, or one after the other.
Outputs RunMixture(Model& model, const Mixture& mixture, bool together, int look_threads) {
  CountingModel counting(model);
  const auto vocabulary = Letters(model.info().vocabulary_size);
  ThreadPool pool(1);
  Outputs out;
  out.chats.resize(mixture.chats.size());
  BatchEngine engine(counting, vocabulary, {}, {.look_threads = look_threads});
  const auto begin = std::chrono::steady_clock::now();
  const auto finish = [&] {
    while (engine.Step()) {
    }
  };
  for (size_t i = 0; i < mixture.chats.size(); ++i) {
    BatchRequest request = mixture.chats[i];
    request.done = [&out, i](Result<Generation> output) {
      ASSERT_TRUE(output.ok()) << output.error().ToString();
      out.chats[i] = *std::move(output);
    };
    engine.Add(std::move(request));
    if (!together) finish();
  }
  SamplerInput input{counting, *vocabulary, mixture.prompt, nullptr, pool};
  if (together) {
    engine.Add(
        MakeSamplerWork(std::move(input), mixture.options, [&](Result<SamplerResult> result) {
          ASSERT_TRUE(result.ok()) << result.error().ToString();
          out.samples = *std::move(result);
        }));
    finish();
  } else {
    Result<SamplerResult> result = RunSampler(input, mixture.options);
    EXPECT_TRUE(result.ok()) << result.error().ToString();
    if (result.ok()) out.samples = *std::move(result);
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  out.calls = counting.calls;
  out.rows = counting.rows;
  return out;
}

void Compare(const Outputs& apart, const Outputs& together) {
  for (size_t i = 0; i < apart.chats.size(); ++i) {
    EXPECT_EQ(together.chats[i].tokens, apart.chats[i].tokens) << i;
    EXPECT_EQ(together.chats[i].text, apart.chats[i].text) << i;
  }
  ASSERT_TRUE(apart.samples.has_value() && together.samples.has_value());
  ExpectSame(*together.samples, *apart.samples);
  EXPECT_LE(static_cast<double>(together.calls), 0.75 * static_cast<double>(apart.calls));
}

TEST(WorksTest, FourChatsAndASamplerShareCalls) {
  for (const int look_threads : {0, 2}) {
    ModelOptions one_thread;
    one_thread.threads = 1;
    const auto model = *RandomModel(SmallShape(), one_thread, 1);
    const Mixture mixture = MixtureOf(4, 60, model->info().vocabulary_size);
    const Outputs apart = RunMixture(*model, mixture, false, 0);
    const Outputs together = RunMixture(*model, mixture, true, look_threads);
    Compare(apart, together);
  }
}

// PAWL_WORKS_SHAPE=135m (or another shape of random_weights.h) prints what it takes.
TEST(WorksTest, TimeOfTheMixture) {
  const char* const shape = std::getenv("PAWL_WORKS_SHAPE");
  if (shape == nullptr) GTEST_SKIP() << "PAWL_WORKS_SHAPE names no shape to measure";
  ModelOptions model_options;
  model_options.dtype = WeightDtype::kInt8;
  model_options.threads = 1;
  const auto model = *RandomModel(*ShapeNamed(shape), model_options, 1);
  const Mixture mixture = MixtureOf(4, 60, model->info().vocabulary_size);
  const Outputs apart = RunMixture(*model, mixture, false, 0);
  const Outputs together = RunMixture(*model, mixture, true, 2);
  Compare(apart, together);
  std::printf("apart: %lld calls, %lld rows, %.2f s; together: %lld calls, %lld rows, %.2f s\n",
              static_cast<long long>(apart.calls), static_cast<long long>(apart.rows),
              apart.seconds, static_cast<long long>(together.calls),
              static_cast<long long>(together.rows), together.seconds);
}

// ---- Under pressure ----

SamplerOptions PagedOptions(std::mt19937& random, uint64_t seed) {
  SamplerOptions options;
  constexpr SamplerKind kinds[] = {SamplerKind::kSmc, SamplerKind::kAsap, SamplerKind::kFvo,
                                   SamplerKind::kAwrs};
  options.sampler = kinds[random() % 4];
  options.n = 1 + static_cast<int>(random() % 4);
  options.particles = 1 + static_cast<int>(random() % 4);
  options.batch = 4;
  options.attempts = 2;
  options.max_tokens = 4 + static_cast<int>(random() % 30);
  options.temperature = 1;
  options.seed = seed;
  return options;
}

std::vector<double> LogsOf(Model& model, const std::vector<TokenId>& tokens) {
  Result<std::vector<double>> scores =
      ScoreTokens(model, std::span(tokens).first(1), std::span(tokens).subspan(1), 1);
  EXPECT_TRUE(scores.ok());
  return *std::move(scores);
}

template <typename ModelType>
void RunRandomMixtures(int rounds, int look_threads, int32_t pages) {
  std::mt19937 random(static_cast<unsigned>(11 + look_threads));
  const auto vocabulary = TestVocabulary();
  int64_t preemptions = 0;
  for (int round = 0; round < rounds; ++round) {
    ModelType model(pages);
    std::vector<std::unique_ptr<ThreadPool>> pools;  // of the samplers
    BatchEngine engine(model, vocabulary, {},
                       {.max_batch = 4, .max_rows = 40, .look_threads = look_threads});
    std::vector<Job> jobs;
    for (int i = 0; i < 5; ++i) jobs.push_back(RandomJob(random, i, 300));
    std::vector<std::optional<Result<Generation>>> texts(jobs.size());
    std::vector<std::vector<TokenId>> prompts;
    std::vector<SamplerOptions> options;
    std::vector<std::optional<Result<SamplerResult>>> samples(3);
    std::vector<std::vector<TokenId>> scored;
    std::vector<std::vector<std::pair<size_t, float>>> seen(2);
    for (size_t i = 0; i < samples.size(); ++i) {
      prompts.push_back(
          std::vector<TokenId>(1 + random() % 40, static_cast<TokenId>(random() % 2)));
      options.push_back(PagedOptions(random, i));
      pools.push_back(std::make_unique<ThreadPool>(2));
    }
    for (size_t i = 0; i < seen.size(); ++i) {
      std::vector<TokenId> tokens;
      for (size_t t = 0; t < 2 + random() % 90; ++t)
        tokens.push_back(static_cast<TokenId>(random() % 3));
      scored.push_back(std::move(tokens));
    }
    int done = 0;
    for (size_t i = 0; i < jobs.size(); ++i) {
      engine.Add(RequestOf(jobs[i], [&, i](Result<Generation> output) {
        texts[i] = std::move(output);
        ++done;
      }));
      if (i < samples.size()) {
        engine.Add(MakeSamplerWork({model, *vocabulary, prompts[i], nullptr, *pools[i]}, options[i],
                                   [&, i](Result<SamplerResult> result) {
                                     samples[i] = std::move(result);
                                     ++done;
                                   }),
                   1 + i % 2);
      }
      if (i < seen.size()) {
        engine.Add(std::make_unique<ScoreWork>(
            model, scored[i], 1,
            [&seen, i](size_t t, std::span<const float> logits) -> Status {
              seen[i].push_back({t, logits[0]});
              return {};
            },
            [&done](const Status& ended) {
              EXPECT_TRUE(ended.ok()) << ended.error().ToString();
              ++done;
            }));
      }
      for (unsigned steps = random() % 20; steps > 0; --steps) engine.Step();
    }
    while (engine.Step()) {
      ASSERT_EQ(model.sequences.Check(), "");
      ASSERT_LE(model.most_rows, 40);
    }
    EXPECT_EQ(done, 10);
    preemptions += engine.stats().preemptions;
    for (size_t i = 0; i < jobs.size(); ++i) ExpectSame(*texts[i], Alone(jobs[i]), i);
    for (size_t i = 0; i < samples.size(); ++i) {
      PagedModel alone(1000);
      const Result<SamplerResult> wanted =
          RunSampler({alone, *vocabulary, prompts[i], nullptr, *pools[i]}, options[i]);
      ASSERT_TRUE(samples[i]->ok()) << samples[i]->error().ToString();
      ASSERT_TRUE(wanted.ok());
      ExpectSame(**samples[i], *wanted);
    }
    for (size_t i = 0; i < seen.size(); ++i) {
      ASSERT_EQ(seen[i].size(), scored[i].size() - 1);
      for (size_t t = 0; t < seen[i].size(); ++t) EXPECT_EQ(seen[i][t].first, t + 1);
      PagedModel alone(1000);
      EXPECT_EQ(LogsOf(alone, scored[i]).size(), seen[i].size());
    }
    EXPECT_EQ(model.sequences.pool().available(), pages);
  }
  if (rounds >= 40 && pages < 100) {
    EXPECT_GT(preemptions, 0);
  }
}

TEST(WorksTest, EachGetsWhatItGetsAlone) { RunRandomMixtures<PagedModel>(40, 0, 1000); }
TEST(WorksTest, AlsoWhereMemoryIsShort) { RunRandomMixtures<PagedModel>(40, 0, 40); }
TEST(WorksTest, AlsoWithThreadsForLooks) { RunRandomMixtures<PagedModel>(20, 2, 40); }
TEST(WorksTest, AlsoWhereTheModelDraws) { RunRandomMixtures<DrawingModel>(20, 0, 40); }
TEST(WorksTest, AlsoWhereTheModelDrawsWithThreads) { RunRandomMixtures<DrawingModel>(10, 2, 40); }

// ---- Ends ----

TEST(WorksTest, ACancelledSamplerEndsAndTheOthersGoOn) {
  int cancelled = 0;
  for (const int look_threads : {0, 2}) {
    for (int steps = 0; steps < 8; ++steps) {
      PagedModel model(200);
      const auto vocabulary = TestVocabulary();
      ThreadPool pool(1);
      BatchEngine engine(model, vocabulary, {}, {.look_threads = look_threads});
      std::mt19937 random(3);
      const Job job = RandomJob(random, 1, 60);
      std::optional<Result<Generation>> text;
      engine.Add(RequestOf(job, [&](Result<Generation> output) { text = std::move(output); }));
      SamplerOptions options;
      options.sampler = SamplerKind::kSmc;
      options.n = options.particles = 4;
      options.max_tokens = 100;
      std::optional<Result<SamplerResult>> result;
      const RequestId id =
          engine.Add(MakeSamplerWork({model, *vocabulary, {kOpen, kShut}, nullptr, pool}, options,
                                     [&](Result<SamplerResult> r) { result = std::move(r); }));
      for (int i = 0; i < steps; ++i) engine.Step();
      const bool before = result.has_value();  // its outputs may have been short
      engine.Cancel(id);
      while (engine.Step()) {
      }
      ASSERT_TRUE(result.has_value());
      EXPECT_EQ(result->ok(), before);
      cancelled += before ? 0 : 1;
      ExpectSame(*text, Alone(job), 0);
      EXPECT_EQ(model.sequences.pool().available(), 200);
    }
  }
  EXPECT_GT(cancelled, 4);
}

TEST(WorksTest, AnEngineThatGoesEndsItsSamplers) {
  for (const int look_threads : {0, 2}) {
    PagedModel model(200);
    const auto vocabulary = TestVocabulary();
    std::vector<std::unique_ptr<ThreadPool>> pools;
    for (int i = 0; i < 3; ++i) pools.push_back(std::make_unique<ThreadPool>(1));
    {
      BatchEngine engine(model, vocabulary, {}, {.look_threads = look_threads});
      SamplerOptions options;
      options.sampler = SamplerKind::kSmc;
      options.n = options.particles = 4;
      options.max_tokens = 100;
      for (const auto& pool : pools) {
        engine.Add(MakeSamplerWork({model, *vocabulary, {kOpen, kShut}, nullptr, *pool}, options,
                                   [](Result<SamplerResult>) {}));
      }
      for (int i = 0; i < 4; ++i) engine.Step();
    }
    EXPECT_EQ(model.sequences.pool().available(), 200);
  }
}

// A prompt that the model fails for, as a whole call and by its logits.
TEST(WorksTest, AFailingModelEndsTheSamplerAlone) {
  for (const TokenId bad : {kDead, kBroken}) {
    PagedModel model(200);
    const auto vocabulary = TestVocabulary();
    ThreadPool pool(1);
    BatchEngine engine(model, vocabulary, {}, {});
    std::mt19937 random(5);
    const Job job = RandomJob(random, 1, 60);
    std::optional<Result<Generation>> text;
    engine.Add(RequestOf(job, [&](Result<Generation> output) { text = std::move(output); }));
    std::optional<Result<SamplerResult>> result;
    engine.Add(MakeSamplerWork({model, *vocabulary, {kOpen, bad}, nullptr, pool}, {},
                               [&](Result<SamplerResult> r) { result = std::move(r); }));
    while (engine.Step()) {
    }
    ASSERT_TRUE(result.has_value());
    ASSERT_FALSE(result->ok());
    EXPECT_EQ(result->error().message, bad == kDead ? "the device is lost" : "not finite");
    ExpectSame(*text, Alone(job), 0);
    EXPECT_EQ(model.sequences.pool().available(), 200);
  }
}

}  // namespace
}  // namespace pawl
