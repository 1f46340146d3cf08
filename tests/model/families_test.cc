// Every model family on a tiny random model (scripts/make_family_goldens.py): the reference
// implementation's answers, and the same description and answers from the folder and from the GGUF
// file that llama.cpp's converter made of it. That rows do not depend on their company is tested in
// rows_test.cc for all families.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "src/base/file.h"
#include "src/model/families/family.h"
#include "src/model/gguf.h"
#include "src/model/gguf_model.h"
#include "src/model/random_weights.h"
#include "src/model/transformer_cpu.h"
#include "tests/model/gguf_writer.h"
#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

// The largest difference of log-probabilities in any row.
double LogDifference(std::span<const float> a, std::span<const float> b, size_t vocabulary) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t row = 0; row + vocabulary <= a.size(); row += vocabulary) {
    const std::vector<double> x = LogProbabilities(a.subspan(row, vocabulary));
    const std::vector<double> y = LogProbabilities(b.subspan(row, vocabulary));
    for (size_t i = 0; i < vocabulary; ++i) {
      const double difference = std::abs(x[i] - y[i]);
      worst = difference > worst || std::isnan(difference) ? difference : worst;
    }
  }
  return worst;
}

class FamilyGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  std::string GgufPath() const { return GoldenFolder(GetParam()) + "/model.gguf"; }
};

TEST_P(FamilyGoldenTest, LogProbabilitiesAreTheReferences) {
  for (const auto& [kernels, bound] :
       {std::pair{KernelVariant::kPortable, 1e-4}, std::pair{KernelVariant::kAuto, 2e-3}}) {
    const std::unique_ptr<Model> model = LoadGolden(GetParam(), 1, kernels);
    ASSERT_NE(model, nullptr);
    // States add up what AMX and BFMMLA round: measured 2.6e-3 at most.
    const bool adds_up = kernels == KernelVariant::kAuto && model->kv_memory().state.state > 0;
    for (const Golden& golden : ReadGoldens(GetParam())) {
      const std::vector<float> logits =
          RunChunk(*model, MakeSequence(*model, 128), 0, golden.prompt);
      EXPECT_LT(
          LogDifference(logits, golden.logits, static_cast<size_t>(model->info().vocabulary_size)),
          adds_up ? 2 * bound : bound)
          << model->info().kernels;
    }
  }
}

class FamilyGgufTest : public FamilyGoldenTest {};

TEST_P(FamilyGgufTest, HasTheSameDescriptionAndAnswersAsTheFolder) {
  const Result<TransformerConfig> folder = ReadTransformerConfig(GoldenFolder(GetParam()));
  const Result<GgufFile> file = GgufFile::Open(GgufPath());
  ASSERT_TRUE(folder.ok() && file.ok());
  const Result<TransformerConfig> gguf = ReadGgufConfig(*file);
  ASSERT_TRUE(gguf.ok()) << gguf.error().ToString();
  EXPECT_EQ(Describe(*folder), Describe(*gguf));
  ModelOptions options;
  options.threads = 1;
  options.kernels = KernelVariant::kPortable;
  // The converter keeps routers in F32, and sums of another type have another order.
  options.dtype = WeightDtype::kFp32;
  const Result<std::unique_ptr<Model>> one = LoadModel(GoldenFolder(GetParam()), options);
  const Result<std::unique_ptr<Model>> other = LoadModel(GgufPath(), options);
  ASSERT_TRUE(one.ok()) << one.error().ToString();
  ASSERT_TRUE(other.ok()) << other.error().ToString();
  for (const Golden& golden : ReadGoldens(GetParam())) {
    const std::vector<float> a = RunChunk(**one, MakeSequence(**one, 128), 0, golden.prompt);
    const std::vector<float> b = RunChunk(**other, MakeSequence(**other, 128), 0, golden.prompt);
    EXPECT_LT(LogDifference(a, b, static_cast<size_t>((*one)->info().vocabulary_size)), 1e-5);
  }
}

// A prefix that another sequence has in memory, or that one had before it ended, has the bits of
// one that is computed anew; and so has a sequence that was cut.
TEST_P(FamilyGoldenTest, ReusedPrefixesHaveTheSameBits) {
  const std::unique_ptr<Model> model = LoadGolden(GetParam());
  ASSERT_NE(model, nullptr);
  std::mt19937 random(5);
  const std::vector<TokenId> tokens = RandomTokens(random, model->info().vocabulary_size, 90);
  const SequenceId first = MakeSequence(*model, 128);
  const std::vector<float> expected = RunChunk(*model, first, 0, tokens);
  const auto rest = [&](SequenceId sequence, int from) {
    const std::vector<float> logits =
        RunChunk(*model, sequence, from, std::span(tokens).subspan(static_cast<size_t>(from)));
    return SameBits(logits, std::span(expected).last(logits.size()));
  };
  const SequenceId fork = MakeSequence(*model, 128);
  const int reused = model->ReusePrefix(fork, std::span(tokens).first(80));
  EXPECT_TRUE(rest(fork, reused));
  model->Truncate(first, 0);
  EXPECT_TRUE(rest(first, 0));
  model->FreeSequence(first);
  model->FreeSequence(fork);
  const SequenceId later = MakeSequence(*model, 128);
  EXPECT_TRUE(rest(later, model->ReusePrefix(later, std::span(tokens).first(80))));
}

INSTANTIATE_TEST_SUITE_P(All, FamilyGoldenTest, testing::ValuesIn(FamilyGoldenNames()),
                         [](const auto& param) { return TestNameOf(param.param); });

// Those that the converter knows.
std::vector<std::string> GgufGoldenNames() {
  std::vector<std::string> names = FamilyGoldenNames();
  std::erase_if(names, [](const std::string& name) {
    return !std::filesystem::exists(GoldenFolder(name) + "/model.gguf");
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, FamilyGgufTest, testing::ValuesIn(GgufGoldenNames()),
                         [](const auto& param) { return TestNameOf(param.param); });

// Each family by name, so that none is without a golden model.
TEST(FamilyListTest, EveryFamilyHasAGoldenModel) {
  std::set<const Family*> tested;
  std::vector<std::string> names = GoldenNames();
  for (const std::string& name : FamilyGoldenNames()) names.push_back(name);
  names.insert(names.end(), {"diffusion/dream", "diffusion/llada"});
  for (const std::string& name : names) {
    const Result<TransformerConfig> config = ReadTransformerConfig(GoldenFolder(name));
    ASSERT_TRUE(config.ok()) << config.error().ToString();
    tested.insert(config->family);
  }
  std::string missing;
  for (const Family* family : AllFamilies()) {
    if (!tested.contains(family)) missing += std::string(NameOf(*family)) + " ";
  }
  EXPECT_EQ(missing, "");
}

// tests/data/models/architectures.txt has the names that other programs know.
TEST(FamilyListTest, EveryOtherArchitectureIsRefusedByName) {
  const Result<std::string> list =
      ReadRegularFile(SourceDir() + "/tests/data/models/architectures.txt");
  ASSERT_TRUE(list.ok());
  const std::string folder = testing::TempDir() + "/architectures";
  std::filesystem::create_directories(folder);
  std::istringstream lines(*list);
  int loads = 0, refused = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string kind, name, verdict;
    words >> kind >> name >> verdict;
    Error error;
    if (kind == "gguf") {
      GgufWriter writer;
      writer.Add("general.architecture", std::string_view(name));
      const std::string bytes = writer.File();
      const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
      error = ReadGgufConfig(*GgufFile::Parse({data, bytes.size()}, "F")).error();
    } else {
      std::ofstream(folder + "/config.json") << R"({"architectures": [")" << name << "\"]}";
      error = ReadTransformerConfig(folder).error();
    }
    const bool by_name = error.code == ErrorCode::kUnsupported &&
                         error.message.find(json::Quote(name)) != std::string::npos;
    EXPECT_EQ(by_name, verdict == "refused") << line << ": " << error.ToString();
    ++(verdict == "refused" ? refused : loads);
  }
  EXPECT_GT(loads, 60);
  EXPECT_GT(refused, 390);
}

// What transformers saves for each family, with the members changed that are given as an object.
class DefaultConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<std::string> text =
        ReadRegularFile(SourceDir() + "/tests/data/models/default_configs.json");
    ASSERT_TRUE(text.ok());
    all_ = *json::Parse(*text);
    folder_ = testing::TempDir() + "/default_configs";
    std::filesystem::create_directories(folder_);
  }
  Result<TransformerConfig> Read(const std::string& architecture, const std::string& changes) {
    const json::Value* const found = all_.Find(architecture);
    EXPECT_NE(found, nullptr) << architecture;
    json::Value config = *found;
    const json::Value changed = *json::Parse(changes);
    for (const auto& [key, value] : changed.members) {
      std::erase_if(config.members, [&, name = key](const auto& one) { return one.first == name; });
      config.members.emplace_back(key, value);
    }
    EXPECT_TRUE(WriteFile(folder_ + "/config.json", json::Dump(config)).ok());
    return ReadTransformerConfig(folder_);
  }

  json::Value all_;
  std::string folder_;
};

TEST_F(DefaultConfigTest, AreRead) {
  for (const auto& [name, config] : all_.members) {
    const Result<TransformerConfig> read = Read(name, "{}");
    if (name == "Starcoder2ForCausalLM") {
      // Its end token is behind its vocabulary.
      ASSERT_FALSE(read.ok());
      EXPECT_EQ(read.error().place, folder_ + "/config.json#/eos_token_id");
      continue;
    }
    EXPECT_TRUE(read.ok()) << name << ": " << read.error().ToString();
  }
  // No architecture is without one but those that transformers does not have.
  std::istringstream names(FamilyNames());
  std::string missing;
  for (std::string name; names >> name;) {
    if (name.back() == ',') name.pop_back();
    if (all_.Find(name) == nullptr) missing += name + " ";
  }
  EXPECT_EQ(missing, "DreamModel LLaDAModelLM ");
}

// Members of files on the hub that no class of transformers has.
TEST_F(DefaultConfigTest, WithMembersOfPublishedFiles) {
  const std::pair<const char*, const char*> kCases[] = {
      {"Glm4MoeLiteForCausalLM",
       R"({"topk_method": "noaux_tc", "first_k_dense_replace": 1, "num_nextn_predict_layers": 1,
           "partial_rotary_factor": 1.0, "rope_scaling": null, "rope_theta": 1000000})"},
      {"DeepseekV2ForCausalLM",
       R"({"scoring_func": "softmax", "topk_method": "greedy", "moe_layer_freq": 1})"},
      {"GraniteMoeHybridForCausalLM",
       R"({"normalization_function": "rmsnorm", "init_method": "mup",
           "position_embedding_type": "nope"})"},
      {"HunYuanDenseV1ForCausalLM",
       R"({"anyres_pooling_size": 2, "cla_share_factor": 2, "norm_type": "rms", "pad_id": 3,
           "org_vocab_size": 128167, "pool_type": "last", "dense_list": [4096, 0]})"},
      {"Lfm2VlForConditionalGeneration",
       R"({"do_image_splitting": true, "encoder_patch_size": 16, "max_image_tokens": 256,
           "max_num_patches": 1024, "max_pixels_tolerance": 2.0, "max_tiles": 10,
           "min_image_tokens": 64, "min_tiles": 2, "tile_size": 512, "use_thumbnail": true,
           "use_image_special_tokens": true})"},
  };
  for (const auto& [name, changes] : kCases) {
    const Result<TransformerConfig> read = Read(name, changes);
    EXPECT_TRUE(read.ok()) << name << ": " << read.error().ToString();
  }
  // What transformers saves of EXAONE 4 without windows.
  EXPECT_TRUE(Read("Exaone4ForCausalLM",
                   R"({"sliding_window": null, "sliding_window_pattern": 0, "layer_types": null})")
                  .ok());
  // Layers by names of one length.
  const Result<TransformerConfig> wide =
      Read("Gemma4ForCausalLM",
           R"({"per_layer_config": {"05": {"head_dim": 128}, "11": {"head_dim": 128},
               "17": {"head_dim": 128}, "23": {"head_dim": 128}, "29": {"head_dim": 128}}})");
  ASSERT_TRUE(wide.ok()) << wide.error().ToString();
  EXPECT_EQ(wide->layers[5].attention().head_dim, 128);
  // Without the key the rotation is that of the published models.
  const Result<TransformerConfig> plain = Read("GptOssForCausalLM", "{}"),
                                  bare = Read("GptOssForCausalLM", R"({"rope_parameters": null})");
  ASSERT_TRUE(plain.ok() && bare.ok());
  EXPECT_EQ(Describe(*bare), Describe(*plain));
  // Python's Infinity, which older files have.
  const json::Value config = *all_.Find("NemotronHForCausalLM");
  std::string text = json::Dump(config);
  const std::string tagged = R"({"__float__":"Infinity"})";
  ASSERT_NE(text.find(tagged), std::string::npos) << text;
  text.replace(text.find(tagged), tagged.size(), "Infinity");
  ASSERT_TRUE(WriteFile(folder_ + "/config.json", text).ok());
  EXPECT_TRUE(ReadTransformerConfig(folder_).ok());
}

// What would change the answers and is not computed.
TEST_F(DefaultConfigTest, SettingsThatAreRefused) {
  const char* kCases[][3] = {
      {"Gemma4ForCausalLM", R"({"rope_parameters": {"full_attention": "x"}})",
       "rope_parameters/full_attention"},
      {"Gemma4ForCausalLM", R"({"rope_parameters": {"full_attention": []}})",
       "rope_parameters/full_attention"},
      {"Gemma4ForCausalLM", R"({"rope_parameters": {"full_attention": 0}})",
       "rope_parameters/full_attention"},
      {"Gemma4ForCausalLM", R"({"rope_parameters": {"rope_theta": 5, "rope_type": "default"}})",
       "rope_parameters/rope_theta"},
      {"Gemma4ForCausalLM", R"({"rope_parameters": {"other_attention": {"rope_theta": 5}}})",
       "rope_parameters/other_attention"},
      {"Gemma4ForCausalLM",
       R"({"rope_parameters": {"full_attention": {"rope_type": "proportional",
           "partial_rotary_factor": 4096}}})",
       "rope_parameters/full_attention/partial_rotary_factor"},
      {"Gemma4ForCausalLM", R"({"per_layer_config": {"99": {"head_dim": 64}}})",
       "per_layer_config/99"},
      {"Gemma4ForCausalLM", R"({"per_layer_config": {"05": {"head_dim": 64}}})",
       "per_layer_config"},
      {"Qwen3ForCausalLM", R"({"rms_norm_eps": 1e30})", "rms_norm_eps"},
      {"GraniteMoeHybridForCausalLM", R"({"time_step_limit": [0.0, 0.01]})", "time_step_limit"},
      {"GraniteMoeHybridForCausalLM", R"({"time_step_limit": [0.5, 10]})", "time_step_limit"},
      {"GraniteMoeHybridForCausalLM", R"({"time_step_limit": "x"})", "time_step_limit"},
      {"GraniteMoeHybridForCausalLM", R"({"time_step_limit": [0]})", "time_step_limit"},
      {"GraniteMoeHybridForCausalLM", R"({"position_embedding_type": "alibi"})",
       "position_embedding_type"},
      {"GraniteMoeHybridForCausalLM", R"({"normalization_function": "layernorm"})",
       "normalization_function"},
      {"DeepseekV2ForCausalLM", R"({"scoring_func": "sigmoid"})", "scoring_func"},
      {"DeepseekV2ForCausalLM", R"({"moe_layer_freq": 2})", "moe_layer_freq"},
      {"Glm4MoeLiteForCausalLM", R"({"scoring_func": "softmax"})", "scoring_func"},
      {"Glm4MoeLiteForCausalLM", R"({"topk_method": "greedy"})", "topk_method"},
      {"Glm4MoeLiteForCausalLM", R"({"mlp_layer_types": -1})", "mlp_layer_types"},
      {"Glm4MoeLiteForCausalLM", R"({"mlp_layer_types": "x"})", "mlp_layer_types"},
      {"Glm4MoeLiteForCausalLM", R"({"mlp_layer_types": ["dense"]})", "mlp_layer_types"},
      {"Glm4MoeLiteForCausalLM", R"({"num_hidden_layers": 1, "mlp_layer_types": ["x"]})",
       "mlp_layer_types"},
      {"Qwen3MoeForCausalLM", R"({"num_experts": 4, "num_local_experts": 8})", "num_local_experts"},
      {"GptOssForCausalLM", R"({"num_local_experts": null})", "num_local_experts"},
      {"LlamaForCausalLM", R"({"model_type": "qwen3"})", "model_type"},
  };
  for (const auto& [name, changes, place] : kCases) {
    const Result<TransformerConfig> read = Read(name, changes);
    ASSERT_FALSE(read.ok()) << name << ": " << changes;
    EXPECT_EQ(read.error().place, folder_ + "/config.json#/" + place) << read.error().ToString();
  }
}

// Names that people ask for say what is missing, and names that only begin like them do not say the
// same.
TEST(FamilyListTest, RefusalsSayWhatIsMissing) {
  for (const char* name :
       {"Gemma3nForConditionalGeneration", "gemma3n", "PhiForCausalLM", "GraniteMoeForCausalLM",
        "GraniteSWAForCausalLM", "Lfm3ForCausalLM", "Glm4MoeForCausalLM", "FalconForCausalLM",
        "FalconH1ForCausalLM", "GPTBigCodeForCausalLM", "Cohere2ForCausalLM",
        "MuseGlimmerForConditionalGeneration", "ApertusForCausalLM", "BitNetForCausalLM",
        "command-r", "falcon-h1", "DiffusionGemmaForBlockDiffusion"}) {
    EXPECT_NE(WhyRefused(name).find("; it needs "), std::string::npos) << name;
  }
  const std::string parallel = WhyRefused("PhiForCausalLM");
  for (const char* name : {"PhimoeForCausalLM", "Phi4MultimodalForCausalLM",
                           "FalconMambaForCausalLM", "FalconH1ForCausalLM"}) {
    EXPECT_NE(WhyRefused(name), parallel) << name;
    EXPECT_NE(WhyRefused(name), "") << name;
  }
  EXPECT_EQ(WhyRefused("NobodyKnowsForCausalLM"), "");
  EXPECT_NE(FamilyNames().find("Gemma4ForConditionalGeneration"), std::string::npos);
  EXPECT_NE((FamilyNames(true) + ",").find(" nemotron_h,"), std::string::npos);
}

// Of experts, a call reads the ones that its rows have chosen.
TEST(ExpertsTest, OnlyTheChosenOnesAreRead) {
  for (const char* name : {"families/qwen3_moe", "families/gpt_oss"}) {
    const std::unique_ptr<Model> model = LoadGolden(name);
    ASSERT_NE(model, nullptr);
    const auto& cpu = dynamic_cast<const TransformerCpu&>(*model);
    const SequenceId sequence = MakeSequence(*model, 64);
    RunChunk(*model, sequence, 0, std::vector<TokenId>{5});
    const int64_t one = cpu.product_bytes();
    // All but norms, biases and the embedding.
    EXPECT_LE(one, model->info().step_bytes) << name;
    EXPECT_GT(one, model->info().step_bytes * 95 / 100 - 4096) << name;
    std::mt19937 random(3);
    RunChunk(*model, sequence, 1, RandomTokens(random, model->info().vocabulary_size, 40));
    EXPECT_GT(cpu.product_bytes(), one) << name << ": more rows choose more experts";
    EXPECT_LE(cpu.product_bytes(), model->info().weight_bytes) << name;
  }
}

// The proportions of Qwen3-30B-A3B: 8 of 128 experts, a sixteenth of the weights.
TEST(ExpertsTest, AStepReadsWhatTheChosenOnesWeigh) {
  TransformerConfig config = *ShapeNamed("135m");
  config.family = FindFamily("Qwen3MoeForCausalLM");
  config.hidden = 256;
  config.vocabulary = 100;
  config.layers.resize(2);
  Experts experts;
  experts.count = 128;
  experts.chosen = 8;
  experts.width = 96;
  experts.normalized = true;
  for (Layer& layer : config.layers) {
    layer.attention().qk_norm = QkNorm::kHead;
    layer.attention().heads = 4;
    layer.attention().kv_heads = 1;
    layer.feed_forward = experts;
  }
  ModelOptions options;
  options.threads = 1;
  options.dtype = WeightDtype::kInt4;
  const Result<std::unique_ptr<Model>> model = RandomModel(config, options, 1);
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  const auto& cpu = dynamic_cast<const TransformerCpu&>(**model);
  RunChunk(**model, MakeSequence(**model, 8), 0, std::vector<TokenId>{5});
  const int64_t read = cpu.product_bytes(), expected = (*model)->info().step_bytes;
  EXPECT_NEAR(static_cast<double>(read) / static_cast<double>(expected), 1.0, 0.05);
  EXPECT_LT(read * 4, (*model)->info().weight_bytes);
}

}  // namespace
}  // namespace pawl
