// Adapters through the engine: requests of several share the calls, the prefix cache and the
// drafts, and each gets what it gets alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/engine.h"
#include "src/engine/engine_parts.h"
#include "src/engine/lora_names.h"
#include "tests/source_dir.h"
#include "tests/support/lora_files.h"

namespace pawl {
namespace {

const std::string kLoraModel = SourceDir() + "/models/tiny-extract";

// Two random adapters of the model that ships.
const std::vector<LoraAdapter>& TwoAdapters() {
  static const std::vector<LoraAdapter> adapters = [] {
    std::vector<LoraAdapter> made;
    const FloatTensors weights = ReadFloats(*Checkpoint::Open(kLoraModel));
    for (int i = 0; i < 2; ++i) {
      std::mt19937 random(static_cast<uint32_t>(i) + 1);
      TestLora lora;
      lora.alpha = 6 + 6 * i;
      for (const auto& [name, tensor] : weights) {
        const bool attention = name.find("_proj.weight") != std::string::npos;
        if (tensor.shape.size() != 2 || !attention) continue;
        lora.Add(name.substr(0, name.size() - 7), tensor.shape[0], tensor.shape[1], random);
      }
      const std::string folder = testing::TempDir() + "/engine-lora-" + std::to_string(i);
      lora.Write(folder);
      made.push_back({i == 0 ? "one" : "two", folder});
    }
    return made;
  }();
  return adapters;
}

Engine LoadWithAdapters(std::vector<LoraAdapter> adapters, const char* drafts = "off",
                        int max_batch = 6) {
  EngineOptions options;
  options.model.threads = 1;
  options.model.lora = std::move(adapters);
  options.max_batch = max_batch;
  options.drafts.sources = drafts;
  options.drafts.always = true;
  Result<Engine> engine = Engine::Load(kLoraModel, options);
  EXPECT_TRUE(engine.ok()) << engine.error().ToString();
  return *std::move(engine);
}

std::vector<EngineRequest> MixedRequests(const Engine& engine, int count) {
  Compiler compiler(engine.vocabulary());
  const Grammar grammar = *compiler.CompileRegex("[A-Z][a-z]{2,9} [A-Z][a-z]+, (mr|ms|dr) [0-9]+");
  std::vector<EngineRequest> requests;
  for (int i = 0; i < count; ++i) {
    EngineRequest request;
    request.prompt = "Ann Lee lives in Porto and works at Harrow Ltd. since " +
                     std::to_string(1990 + i % 3) + ". Her phone is 020 7946 0018. Write: ";
    request.lora = i % 3 == 0 ? "" : i % 3 == 1 ? "one" : "two";
    if (i % 2 == 0) request.grammar = grammar;
    request.options.max_tokens = 30;
    request.options.sampling = {.temperature = i % 4 == 0 ? 0.0f : 1.0f,
                                .seed = static_cast<uint64_t>(i)};
    requests.push_back(std::move(request));
  }
  return requests;
}

TEST(LoraEngineTest, MixedRequestsEqualEachAlone) {
  Engine mixed = LoadWithAdapters(TwoAdapters(), "all");
  Engine base = LoadWithAdapters({});
  Engine one = LoadWithAdapters({TwoAdapters()[0]});
  Engine two = LoadWithAdapters({TwoAdapters()[1]});
  const std::vector<EngineRequest> requests = MixedRequests(mixed, 12);
  int64_t drafted = 0, reused = 0;
  std::vector<std::string> texts;
  for (int round = 0; round < 2; ++round) {
    const std::vector<Result<Generation>> outputs = mixed.GenerateAll(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_TRUE(outputs[i].ok()) << outputs[i].error().ToString();
      EngineRequest request = requests[i];
      Engine& alone = i % 3 == 0 ? base : i % 3 == 1 ? one : two;
      if (request.grammar) {
        request.grammar = *Compiler(alone.vocabulary())
                               .CompileRegex("[A-Z][a-z]{2,9} [A-Z][a-z]+, (mr|ms|dr) [0-9]+");
      }
      const Result<Generation> expected = alone.Generate(request);
      ASSERT_TRUE(expected.ok()) << expected.error().ToString();
      EXPECT_EQ(outputs[i]->tokens, expected->tokens) << i << " " << request.lora;
      drafted += outputs[i]->stats.drafts.rows;
      reused += outputs[i]->stats.reused_tokens;
      texts.push_back(outputs[i]->text);
    }
  }
  EXPECT_GT(drafted, 0);
  EXPECT_GT(reused, 0);
  EXPECT_FALSE(texts[1] == texts[4] && texts[2] == texts[5]);
}

TEST(LoraEngineTest, SamplersSearchesAndScoresHaveTheAdapter) {
  Engine both = LoadWithAdapters(TwoAdapters());
  Engine two = LoadWithAdapters({TwoAdapters()[1]});
  EngineRequest request;
  request.prompt = "Ann Lee lives in ";
  request.lora = "two";
  const std::vector<TokenId> tokens = both.Encode("Porto, ");
  const Result<std::vector<double>> score = both.Score(request, tokens);
  ASSERT_TRUE(score.ok()) << score.error().ToString();
  EXPECT_EQ(*score, *two.Score(request, tokens));
  EngineRequest plain = request;
  plain.lora.clear();
  EXPECT_NE(*score, *both.Score(plain, tokens));
  SearchOptions search;
  search.strategy = "beam";
  search.num_beams = 2;
  search.max_tokens = 6;
  request.options.at_budget = AtBudget::kCut;
  const auto texts = [&](Engine& engine) {
    std::vector<std::string> out;
    const Result<SearchResult> found = engine.Search(request, search);
    EXPECT_TRUE(found.ok()) << found.error().ToString();
    for (const auto& one : found->outputs) out.push_back(one.text);
    return out;
  };
  EXPECT_EQ(texts(both), texts(two));
  ClassifyOptions classify;
  classify.choices = {"Porto", "Leeds"};
  classify.exact_rows = 60;
  EXPECT_EQ(both.Classify(request, classify)->choices[0].log_probability,
            two.Classify(request, classify)->choices[0].log_probability);
  SamplerOptions sampler;
  sampler.sampler = SamplerKind::kAsap;
  sampler.n = 2;
  sampler.max_tokens = 8;
  sampler.seed = 3;
  request.grammar = *Compiler(both.vocabulary()).CompileRegex("[a-z]{1,3}");
  const Result<SamplerResult> samples = both.Sample(request, sampler);
  ASSERT_TRUE(samples.ok()) << samples.error().ToString();
  // Learnt of one adapter: none of it is asked for the other.
  EngineRequest other = request;
  other.lora = "one";
  ASSERT_TRUE(both.Sample(other, sampler).ok());
  request.grammar = *Compiler(two.vocabulary()).CompileRegex("[a-z]{1,3}");
  const Result<SamplerResult> alone = two.Sample(request, sampler);
  ASSERT_EQ(samples->outputs.size(), alone->outputs.size());
  for (size_t i = 0; i < samples->outputs.size(); ++i) {
    EXPECT_EQ(samples->outputs[i].tokens, alone->outputs[i].tokens);
  }
}

TEST(LoraEngineTest, NamesAreChecked) {
  Engine engine = LoadWithAdapters(TwoAdapters());
  EXPECT_EQ(engine.info().lora, (std::vector<std::string>{"one", "two"}));
  EngineRequest request;
  request.prompt = "Ann";
  request.lora = "three";
  const Result<Generation> output = engine.Generate(request);
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().place, "lora");
  EXPECT_NE(output.error().message.find("it has one, two"), std::string::npos);
  EXPECT_EQ(engine.Search(request, {}).error().place, "lora");
  EXPECT_EQ(engine.Sample(request, {}).error().place, "lora");
  EXPECT_EQ(engine.Score(request, engine.Encode("x")).error().place, "lora");
  EXPECT_EQ(ParseLoraAdapter("a=b/c")->path, "b/c");
  EXPECT_EQ(ParseLoraAdapter("b/c/")->name, "c");
  const std::string odd = testing::TempDir() + "/odd=name";
  std::filesystem::create_directories(odd);
  EXPECT_EQ(ParseLoraAdapter(odd)->path, odd);
  EXPECT_FALSE(ParseLoraAdapter("=x").ok());
  EXPECT_FALSE(ParseLoraAdapter("x=").ok());
}

// Drafts of one adapter learn from its own outputs, also those in files of earlier runs.
TEST(LoraEngineTest, DraftsHaveOwnersByAdapter) {
  Engine first = LoadWithAdapters(TwoAdapters());
  Engine second = LoadWithAdapters({TwoAdapters()[1], TwoAdapters()[0]});
  const auto owner = [](const Engine& engine, const char* lora, uint64_t own) {
    const LoadedModel& model = EngineAccess::ModelOf(engine);
    BatchRequest request;
    request.options.draft_owner = own;
    UseAdapter(model, *model.AdapterOf(lora), request);
    return request.options.draft_owner;
  };
  EXPECT_EQ(owner(first, "", 5), 5u);
  EXPECT_EQ(owner(first, "one", 5), owner(second, "one", 5));
  EXPECT_NE(owner(first, "one", 5), owner(first, "two", 5));
  EXPECT_NE(owner(first, "one", 5), owner(first, "one", 6));
  EXPECT_NE(owner(first, "one", 0), 0u);
}

}  // namespace
}  // namespace pawl
