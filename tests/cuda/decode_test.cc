// The decode loop with tokens drawn on the device: the shipped model under grammars gives the
// tokens that it gives on the CPU, in batches, with all ways of sampling, and whether or not masks
// are found while the device computes.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/decode/batch.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/draft/model_source.h"
#include "src/engine/model_files.h"
#include "src/model/safetensors.h"
#include "src/model/transformer_config.h"
#include "src/model/transformer_cuda.h"
#include "src/model/transformer_weights.h"
#include "tests/cuda/model_util.h"
#include "tests/source_dir.h"
#include "tests/support/session.h"

namespace pawl::PAWL_GPU {
namespace {

const std::string kShipped = SourceDir() + "/models/tiny-extract";

class DecodeTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    auto [config, weights] = StoredModelOf(kShipped);
    ASSERT_TRUE(config.ok() && weights.ok());
    TransformerCudaOptions options;
    options.kv_bytes = 4 << 20;
    // Logits as near to the CPU's as they get, so that seeds give the same tokens.
    options.cache = CacheType::kF32;
    Result<std::unique_ptr<Model>> cuda = TransformerCuda::Make(*config, *weights, options);
    ASSERT_TRUE(cuda.ok()) << cuda.error().ToString();
    cuda_ = *std::move(cuda);
    ModelOptions cpu_options;
    cpu_options.threads = 1;
    Result<std::unique_ptr<Model>> cpu = LoadModel(kShipped, cpu_options);
    ASSERT_TRUE(cpu.ok());
    cpu_ = *std::move(cpu);
    tokenizer_ = *LoadTokenizer(kShipped);
    vocabulary_ = *tokenizer_->MakeVocabulary();
    const Compiler compiler(vocabulary_);
    grammar_ = *compiler.CompileJsonSchema(
        R"({"type":"object","properties":{"vendor":{"type":"string","maxLength":20},)"
        R"("total":{"type":"integer"}},"required":["vendor","total"],)"
        R"("additionalProperties":false})");
  }

  // The outputs of the first `count` of four requests: greedy, drawn, drawn with all there is, and
  // without a grammar.
  std::vector<Generation> Run(Model& model, const BatchOptions& options, BatchStats* stats,
                              size_t count = 4, int more_tokens = 0) {
    BatchEngine engine(
        model, vocabulary_, [this](std::string_view text) { return tokenizer_->Encode(text); },
        options);
    std::vector<Generation> outputs(count);
    for (size_t i = 0; i < outputs.size(); ++i) {
      BatchRequest request;
      request.prompt = tokenizer_->Encode("Invoice " + std::to_string(i) + " from Acme");
      if (i != 3) request.constraint = MakeConstraint(*grammar_);
      SamplingParams& p = request.options.sampling;
      p.seed = 100 + i;
      if (i > 0) p.temperature = 0.8f;
      if (i == 2) {
        p.top_k = 50;
        p.top_p = 0.9f;
        p.repetition_penalty = 1.1f;
        p.presence_penalty = 0.1f;
      }
      request.options.max_tokens = (i == 3 ? 6 : 14) + more_tokens;
      request.done = [&outputs, i](Result<Generation> output) {
        ASSERT_TRUE(output.ok()) << output.error().ToString();
        outputs[i] = *std::move(output);
      };
      engine.Add(std::move(request));
    }
    while (engine.Step()) {
    }
    if (stats != nullptr) *stats = engine.stats();
    return outputs;
  }

  std::unique_ptr<Model> cuda_, cpu_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::optional<Grammar> grammar_;
};

TEST_F(DecodeTest, TokensAreTheCpus) {
  const std::vector<Generation> expected = Run(*cpu_, {.max_batch = 4}, nullptr);
  struct Way {
    bool sample_in_model;
    MaskOverlap late;
    int threads;
  };
  for (const Way& way : {Way{true, MaskOverlap::kNever, 1}, Way{true, MaskOverlap::kAlways, 3},
                         Way{false, MaskOverlap::kAuto, 1}}) {
    BatchStats stats;
    const std::vector<Generation> got = Run(*cuda_,
                                            {.max_batch = 4,
                                             .threads = way.threads,
                                             .sample_in_model = way.sample_in_model,
                                             .late_masks = way.late},
                                            &stats);
    EXPECT_EQ(stats.late_steps > 0, way.late == MaskOverlap::kAlways);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].tokens, expected[i].tokens) << got[i].text << " | " << expected[i].text;
      EXPECT_EQ(got[i].stop, expected[i].stop);
      EXPECT_EQ(got[i].stats.sampled_tokens, expected[i].stats.sampled_tokens);
      EXPECT_EQ(got[i].stats.forced_tokens, expected[i].stats.forced_tokens);
    }
  }
}

// The whole loop with draft trees, drawing on the device and on the host: every output is the one
// without drafts, with drafts of all sources and with random ones.
TEST_F(DecodeTest, DraftsChangeNothing) {
  const std::vector<Generation> expected = Run(*cuda_, {.max_batch = 1}, nullptr, 2);
  struct Way {
    bool sample_in_model;
    int batch;
    const char* sources;
  };
  for (const Way& way :
       {Way{true, 1, "auto"}, Way{true, 2, "literals,random"}, Way{false, 2, "auto"}}) {
    DraftSetting setting;
    setting.vocabulary = vocabulary_;
    setting.encode = [this](std::string_view text) { return tokenizer_->Encode(text); };
    setting.vocabulary_size = cuda_->info().vocabulary_size;
    setting.options.sources = way.sources;
    setting.options.nodes = 4;
    setting.options.always = true;
    const auto indices = ParseDraftSources(setting.options);
    ASSERT_TRUE(indices.ok());
    BatchOptions options;
    options.max_batch = way.batch;
    options.sample_in_model = way.sample_in_model;
    options.drafter = *Drafter::Make(std::move(setting), *indices);
    BatchStats stats;
    const std::vector<Generation> got = Run(*cuda_, options, &stats, 2);
    EXPECT_GT(stats.drafts, 0);
    EXPECT_GT(stats.accepted, 0);
    EXPECT_EQ(stats.failed_drafts, 0);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].tokens, expected[i].tokens)
          << way.sources << ": " << got[i].text << " | " << expected[i].text;
      EXPECT_EQ(got[i].stop, expected[i].stop);
    }
  }
}

// A model that tells when the device is at work, or how many of its calls begin meanwhile.
class WatchedModel final : public Model {
 public:
  struct Watch {
    bool at_work = false;
    int64_t calls = 0, late = 0;  // of models that do not draw
  };
  WatchedModel(Model& of, Watch& watch) : of_(of), watch_(watch) {}
  const ModelInfo& info() const override { return of_.info(); }
  Result<SequenceId> NewSequence(int capacity) override { return of_.NewSequence(capacity); }
  void FreeSequence(SequenceId sequence) override { of_.FreeSequence(sequence); }
  void Truncate(SequenceId sequence, int length) override { of_.Truncate(sequence, length); }
  int ReusePrefix(SequenceId sequence, std::span<const TokenId> tokens) override {
    return of_.ReusePrefix(sequence, tokens);
  }
  int ReuseCopying(SequenceId sequence, std::span<const TokenId> tokens) override {
    return of_.ReuseCopying(sequence, tokens);
  }
  KvMemory kv_memory() const override { return of_.kv_memory(); }
  bool samples() const override { return of_.samples(); }
  std::span<const int32_t> bad_rows() const override { return of_.bad_rows(); }
  Status CommitTree(SequenceId sequence, int row) override { return of_.CommitTree(sequence, row); }
  Status Run(const ModelCall& call) override {
    if (!of_.samples()) {
      ++watch_.calls;
      watch_.late += watch_.at_work ? 1 : 0;
      return of_.Run(call);
    }
    ModelCall watched = call;
    if (call.late) {
      watched.late = [&] {
        watch_.at_work = true;
        call.late();
        watch_.at_work = false;
      };
    }
    return of_.Run(watched);
  }

 private:
  Model& of_;
  Watch& watch_;
};

// The draft model has the weights of the target, but computes on the CPU.
TEST_F(DecodeTest, DraftModelsGoOnWhileTheDeviceVerifies) {
  constexpr int kMoreTokens = 14;
  const std::vector<Generation> expected = Run(*cuda_, {.max_batch = 2}, nullptr, 2, kMoreTokens);
  struct Way {
    int batch;
    bool always;
  };
  for (const Way& way : {Way{2, true}, Way{1, false}}) {
    WatchedModel::Watch watch;
    WatchedModel target(*cuda_, watch);
    DraftSetting setting;
    setting.vocabulary = vocabulary_;
    setting.encode = [this](std::string_view text) { return tokenizer_->Encode(text); };
    setting.vocabulary_size = cuda_->info().vocabulary_size;
    setting.options.sources = "forced";
    setting.options.nodes = 4;
    setting.options.always = way.always;
    const auto indices = ParseDraftSources(setting.options);
    ASSERT_TRUE(indices.ok());
    const DraftSetting kept = setting;
    std::vector<Drafter::Named> more;
    more.emplace_back("model",
                      MakeModelSourceFrom(kept, std::make_unique<WatchedModel>(*cpu_, watch)));
    BatchOptions options;
    options.max_batch = way.batch;
    options.drafter = *Drafter::Make(std::move(setting), *indices, std::move(more));
    BatchStats stats;
    const std::vector<Generation> got = Run(target, options, &stats, 2, kMoreTokens);
    int64_t calls = 0, late = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].tokens, expected[i].tokens) << got[i].text << " | " << expected[i].text;
      EXPECT_EQ(got[i].stop, expected[i].stop);
      ASSERT_EQ(got[i].stats.drafts.sources.size(), 2u);
      calls += got[i].stats.drafts.sources[1].model_calls;
      late += got[i].stats.drafts.sources[1].late_calls;
    }
    EXPECT_EQ(calls, watch.calls);
    EXPECT_EQ(late, watch.late);
    EXPECT_EQ(stats.failed_drafts, 0);
    if (!way.always) continue;  // then it is the clock's choice
    EXPECT_GT(stats.accepted, 0);
    EXPECT_GE(2 * watch.late, watch.calls);
    RecordProperty("calls", static_cast<int>(watch.calls));
    RecordProperty("late", static_cast<int>(watch.late));
  }
}

TEST_F(DecodeTest, SessionDrawsOnTheDevice) {
  Session on_cpu(*cpu_, vocabulary_), on_device(*cuda_, vocabulary_);
  const std::vector<TokenId> prompt = tokenizer_->Encode("From Acme, 30 EUR");
  GenerateOptions options;
  options.max_tokens = 16;
  const Result<Generation> expected = on_cpu.Generate(prompt, MakeConstraint(*grammar_), options);
  const Result<Generation> got = on_device.Generate(prompt, MakeConstraint(*grammar_), options);
  ASSERT_TRUE(expected.ok() && got.ok());
  EXPECT_EQ(got->tokens, expected->tokens);
  EXPECT_EQ(got->stats.sample_seconds, 0);  // no logits came to the host
}

}  // namespace
}  // namespace pawl::PAWL_GPU
