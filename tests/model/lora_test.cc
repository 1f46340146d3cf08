// LoRA adapters next to the weights: the answers of merged weights, in every family; the bits of
// each sequence alone in calls of several adapters; and files that are refused.
#include "src/model/lora.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <random>

#include "src/model/adapted_model.h"
#include "tests/model/model_test_util.h"
#include "tests/support/lora_files.h"

namespace pawl {
namespace {

std::string LoraTemp(const std::string& name) {
  std::string folder = testing::TempDir() + "/lora-" + TestNameOf(name);
  std::filesystem::create_directories(folder);
  return folder;
}

// Modules of checkpoints that are linear layers with an input of their own, by the end of their
// names: written down apart from the loader's table.
bool IsLinear(const std::string& name) {
  static const char* const kEnds[] = {"self_attn.q_proj",   "self_attn.k_proj",
                                      "self_attn.v_proj",   "self_attn.o_proj",
                                      "self_attn.qkv_proj", "self_attn.q_a_proj",
                                      "self_attn.q_b_proj", "self_attn.dense",
                                      "mlp.gate_proj",      "mlp.up_proj",
                                      "mlp.down_proj",      "mlp.gate_up_proj",
                                      "mlp.c_fc",           "mlp.c_proj",
                                      "self_attn.out_proj", "self_attn.kv_a_proj_with_mqa",
                                      "mixer.q_proj",       "mixer.k_proj",
                                      "mixer.v_proj",       "mixer.o_proj",
                                      "mixer.up_proj",      "mixer.down_proj"};
  if (name.find(".layers.") == std::string::npos) return false;
  for (const char* const end : kEnds) {
    if (name.ends_with(std::string(".") + end + ".weight")) return true;
  }
  return false;
}

TestLora RandomLora(const FloatTensors& weights, uint32_t seed, bool root) {
  std::mt19937 random(seed);
  TestLora lora;
  lora.rank = 3 + static_cast<int>(random() % 6);
  lora.alpha = 4 + static_cast<double>(random() % 9);
  lora.root = root;
  int n = 0;
  for (const auto& [name, tensor] : weights) {
    if (tensor.shape.size() != 2 || !IsLinear(name)) continue;
    const std::string module = name.substr(0, name.size() - std::string(".weight").size());
    if (++n % 3 == 0) lora.ranks[module] = 1 + static_cast<int>(random() % 20);
    if (n % 4 == 0) lora.alphas[module] = 1.5;
    lora.Add(module, tensor.shape[0], tensor.shape[1], random);
  }
  return lora;
}

std::unique_ptr<Model> LoadWith(const std::string& path, std::vector<LoraAdapter> adapters,
                                WeightDtype dtype, KernelVariant kernels = KernelVariant::kAuto) {
  ModelOptions options;
  options.threads = 1;
  options.dtype = dtype;
  options.kernels = kernels;
  options.lora = std::move(adapters);
  Result<std::unique_ptr<Model>> model = LoadModel(path, options);
  if (!model.ok()) {
    ADD_FAILURE() << model.error().ToString();
    return nullptr;
  }
  return *std::move(model);
}

SequenceId Adapted(Model& model, int adapter, int capacity = 128) {
  const Result<SequenceId> sequence = model.NewAdapted(capacity, adapter);
  EXPECT_TRUE(sequence.ok());
  return sequence.ok() ? *sequence : -1;
}

double LargestDifference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(double{a[i]} - b[i]);
    worst = difference > worst || std::isnan(difference) ? difference : worst;
  }
  return worst;
}

std::vector<std::string> LoraGoldenNames() {
  std::vector<std::string> names = GoldenNames();
  for (const std::string& name : FamilyGoldenNames()) names.push_back(name);
  // Its experts are packed in four bits, which the merged folder would have to be as well.
  std::erase_if(names, [](const std::string& name) { return name.ends_with("mxfp4"); });
  return names;
}

class LoraGoldenTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Result<Checkpoint> checkpoint = Checkpoint::Open(GoldenFolder(GetParam()));
    ASSERT_TRUE(checkpoint.ok());
    weights_ = ReadFloats(*checkpoint);
    for (int i = 0; i < 2; ++i) {
      adapters_.push_back(RandomLora(weights_, 7 + static_cast<uint32_t>(i), i == 1));
      const std::string folder = LoraTemp(GetParam() + std::to_string(i));
      adapters_.back().Write(folder);
      paths_.push_back({i == 0 ? "one" : "two", folder});
    }
  }

  FloatTensors weights_;
  std::vector<TestLora> adapters_;
  std::vector<LoraAdapter> paths_;
};

TEST_P(LoraGoldenTest, EqualsMergedWeights) {
  ASSERT_GE(adapters_[0].tensors.size(), 4u) << "no module of this family is known here";
  const std::unique_ptr<Model> model =
      LoadWith(GoldenFolder(GetParam()), paths_, WeightDtype::kFp32, KernelVariant::kPortable);
  ASSERT_NE(model, nullptr);
  std::mt19937 random(3);
  const std::vector<TokenId> tokens = RandomTokens(random, model->info().vocabulary_size, 40);
  const std::vector<float> base = RunChunk(*model, Adapted(*model, 0), 0, tokens);
  const std::string gguf = GoldenFolder(GetParam()) + "/model.gguf";
  for (int i = 0; i < 2; ++i) {
    FloatTensors merged = weights_;
    adapters_[static_cast<size_t>(i)].MergeInto(merged);
    const std::string folder = LoraTemp(GetParam() + "-merged" + std::to_string(i));
    WriteSafetensors(folder + "/model.safetensors", merged);
    std::filesystem::copy_file(GoldenFolder(GetParam()) + "/config.json", folder + "/config.json",
                               std::filesystem::copy_options::overwrite_existing);
    const std::unique_ptr<Model> whole =
        LoadWith(folder, {}, WeightDtype::kFp32, KernelVariant::kPortable);
    ASSERT_NE(whole, nullptr);
    const std::vector<float> expected = RunChunk(*whole, Adapted(*whole, 0), 0, tokens);
    const std::vector<float> found = RunChunk(*model, Adapted(*model, i + 1), 0, tokens);
    EXPECT_LT(LargestDifference(found, expected), 1e-4);
    EXPECT_GT(LargestDifference(found, base), 1e-2) << "the adapter changes nothing";
    // The same adapter next to the file that llama.cpp's converter made.
    if (i == 1 || !std::filesystem::exists(gguf)) continue;
    const std::unique_ptr<Model> other =
        LoadWith(gguf, paths_, WeightDtype::kFp32, KernelVariant::kPortable);
    ASSERT_NE(other, nullptr);
    EXPECT_LT(LargestDifference(RunChunk(*other, Adapted(*other, 1), 0, tokens), found), 1e-4);
  }
}

// Rows of random sequences in random calls, with prefixes taken from the cache: the bits of each
// sequence are those that it has alone, and without an adapter those of a model that has none.
TEST_P(LoraGoldenTest, MixedCallsHaveTheBitsOfEachAlone) {
  const std::unique_ptr<Model> mixed =
      LoadWith(GoldenFolder(GetParam()), paths_, WeightDtype::kAsStored);
  const std::unique_ptr<Model> alone =
      LoadWith(GoldenFolder(GetParam()), paths_, WeightDtype::kAsStored);
  const std::unique_ptr<Model> plain =
      LoadWith(GoldenFolder(GetParam()), {}, WeightDtype::kAsStored);
  ASSERT_TRUE(mixed != nullptr && alone != nullptr && plain != nullptr);
  std::mt19937 random(11);
  const int vocabulary = mixed->info().vocabulary_size;
  const auto width = static_cast<size_t>(vocabulary);
  const std::vector<TokenId> tokens = RandomTokens(random, vocabulary, 60);
  std::vector<std::vector<float>> expected;  // by adapter
  for (int adapter = 0; adapter < 3; ++adapter) {
    Model& model = adapter == 0 ? *plain : *alone;
    const SequenceId sequence = Adapted(model, adapter);
    expected.push_back(RunChunk(model, sequence, 0, tokens));
    model.FreeSequence(sequence);
  }
  int reused = 0;
  for (int round = 0; round < 3; ++round) {
    struct Going {
      int adapter;
      SequenceId sequence;
      int at;
    };
    std::vector<Going> all;
    for (int i = 0; i < 5; ++i) {
      const int adapter = (i + round) % 3;
      const SequenceId sequence = Adapted(*mixed, adapter);
      const int at = mixed->ReusePrefix(sequence, std::span(tokens).first(50));
      reused += at;
      all.push_back({adapter, sequence, at});
    }
    for (bool more = true; more;) {
      more = false;
      std::vector<Row> rows;
      std::vector<std::pair<int, int>> want;  // adapter, position
      std::shuffle(all.begin(), all.end(), random);
      for (Going& going : all) {
        const int left = static_cast<int>(tokens.size()) - going.at;
        const int take = std::min(left, 1 + static_cast<int>(random() % 25));
        for (int i = 0; i < take; ++i) {
          const auto position = static_cast<size_t>(going.at);
          rows.push_back(
              {tokens[position], going.at, going.sequence, 0, static_cast<int32_t>(want.size())});
          want.emplace_back(going.adapter, going.at++);
        }
        more = more || going.at < static_cast<int>(tokens.size());
      }
      if (rows.empty()) break;
      const std::vector<float> logits = RunRows(*mixed, rows);
      for (size_t i = 0; i < want.size(); ++i) {
        const auto& of = expected[static_cast<size_t>(want[i].first)];
        ASSERT_TRUE(
            SameBits(std::span(logits).subspan(i * width, width),
                     std::span(of).subspan(static_cast<size_t>(want[i].second) * width, width)))
            << "adapter " << want[i].first << ", position " << want[i].second;
      }
    }
    for (const Going& going : all) mixed->FreeSequence(going.sequence);
    if (auto* const cpu = dynamic_cast<TransformerCpu*>(mixed.get())) {
      EXPECT_EQ(cpu->sequences().Check(), "");
    }
  }
  EXPECT_GT(reused, 0);
}

INSTANTIATE_TEST_SUITE_P(All, LoraGoldenTest, testing::ValuesIn(LoraGoldenNames()),
                         [](const auto& param) { return TestNameOf(param.param); });

// ---- Files that are refused ----

class LoraFilesTest : public testing::Test {
 protected:
  static constexpr const char* kModel = "llama-fp32-tied";
  LoraFilesTest() {
    weights_ = ReadFloats(*Checkpoint::Open(GoldenFolder(kModel)));
    lora_ = RandomLora(weights_, 5, false);
    lora_.ranks.clear();
    lora_.alphas.clear();
    lora_.tensors.clear();
    std::mt19937 random(2);
    lora_.Add(kModule, OutputsOf(kModule), InputsOf(kModule), random);
    folder_ = LoraTemp("files");
    lora_.Write(folder_);
  }
  int64_t OutputsOf(const std::string& module) { return weights_.at(module + ".weight").shape[0]; }
  int64_t InputsOf(const std::string& module) { return weights_.at(module + ".weight").shape[1]; }

  std::string LoadError(int64_t most_bytes = int64_t{1} << 30, const std::string& dir = "") {
    ModelOptions options;
    options.threads = 1;
    options.lora = {{"x", dir.empty() ? folder_ : dir}};
    options.lora_bytes = most_bytes;
    Result<std::unique_ptr<Model>> model = LoadModel(GoldenFolder(kModel), options);
    return model.ok() ? "" : model.error().ToString();
  }
  std::string ConfigError(const std::string& from, const std::string& to) {
    std::string text = lora_.ConfigJson();
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    WriteText(folder_ + "/adapter_config.json", text);
    const std::string error = LoadError();
    lora_.Write(folder_);
    return error;
  }
  std::string TensorError(const std::function<void(FloatTensors&)>& change) {
    TestLora other = lora_;
    change(other.tensors);
    other.Write(folder_);
    const std::string error = LoadError();
    lora_.Write(folder_);
    return error;
  }

  static constexpr const char* kModule = "model.layers.1.self_attn.q_proj";
  FloatTensors weights_;
  TestLora lora_;
  std::string folder_;
};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(LoraFilesTest, SettingsThatAreNotUnderstoodAreRefusedByName) {
  EXPECT_EQ(LoadError(), "");
  EXPECT_SAYS(ConfigError("\"LORA\"", "\"IA3\""), "peft_type");
  EXPECT_SAYS(ConfigError("\"bias\":\"none\"", "\"bias\":\"all\""), "/bias");
  EXPECT_SAYS(ConfigError("\"use_dora\":false", "\"use_dora\":true"), "DoRA");
  EXPECT_SAYS(ConfigError("\"modules_to_save\":null", "\"modules_to_save\":[\"lm_head\"]"),
              "modules_to_save: is [\"lm_head\"]");
  EXPECT_SAYS(ConfigError("\"task_type\"", "\"init_lora_weights\":\"pissa\",\"task_type\""),
              "init_lora_weights");
  EXPECT_SAYS(ConfigError("\"task_type\"", "\"new_setting\":7,\"task_type\""), "new_setting: is 7");
  EXPECT_EQ(ConfigError("\"task_type\"", "\"new_setting\":false,\"task_type\""), "");
  EXPECT_SAYS(ConfigError("\"task_type\"", "\"kasa_config\":{\"a\":1},\"task_type\""),
              "kasa_config");
  // As PEFT 0.21 writes it.
  EXPECT_EQ(ConfigError("\"task_type\"",
                        "\"qalora_group_size\":16,\"megatron_core\":\"megatron.core\",\"loftq_"
                        "config\":{},\"ensure_weight_tying\":false,\"task_type\""),
            "");
  EXPECT_SAYS(ConfigError("\"rank_pattern\":{", "\"rank_pattern\":{\".*q_proj\":2"),
              "regular expression");
  EXPECT_SAYS(ConfigError("\"r\":" + std::to_string(lora_.rank), "\"r\":0"), "#/r");
  EXPECT_SAYS(ConfigError("\"peft_type\"", "\"target_modules\":[\"k_proj\"],\"peft_type\""),
              "has no tensor of \"k_proj\"");
  EXPECT_SAYS(ConfigError("{\"peft", "{{\"peft"), "adapter_config.json");
}

TEST_F(LoraFilesTest, TensorsThatDoNotFitAreRefusedWithBothShapes) {
  const std::string a = TestLora::NameOf(kModule, 'A'), b = TestLora::NameOf(kModule, 'B');
  const std::string wrong = TensorError([&](FloatTensors& tensors) {
    FloatTensor& tensor = tensors[a];
    tensor.shape[1] -= 1;
    tensor.values.resize(static_cast<size_t>(tensor.shape[0] * tensor.shape[1]));
  });
  EXPECT_SAYS(wrong, "has shape [" + std::to_string(lora_.rank) + ", " +
                         std::to_string(InputsOf(kModule) - 1) + "]; expected [" +
                         std::to_string(lora_.rank) + ", " + std::to_string(InputsOf(kModule)) +
                         "]");
  EXPECT_SAYS(ConfigError("\"r\":" + std::to_string(lora_.rank), "\"r\":99"), "expected [99, ");
  EXPECT_SAYS(TensorError([&](FloatTensors& tensors) { tensors.erase(b); }), "has no lora_B");
  EXPECT_SAYS(TensorError([&](FloatTensors& tensors) { tensors[b].values[5] = NAN; }),
              "not finite (number 5)");
  const auto renamed = [&](const std::string& to) {
    return TensorError([&](FloatTensors& tensors) {
      for (const char which : {'A', 'B'}) {
        tensors[TestLora::NameOf(to, which)] = tensors[TestLora::NameOf(kModule, which)];
        tensors.erase(TestLora::NameOf(kModule, which));
      }
    });
  };
  EXPECT_SAYS(renamed("model.layers.77.self_attn.q_proj"), "is of layer 77, but the model has");
  EXPECT_SAYS(renamed("model.layers.0.mlp.experts.3.up_proj"), "adapters can change");
  EXPECT_SAYS(renamed("lm_head"), "is of \"lm_head\"");
  EXPECT_SAYS(TensorError([&](FloatTensors& tensors) {
                tensors["base_model.model.model.embed_tokens.lora_embedding_A"] = tensors[a];
              }),
              "embedding");
  EXPECT_SAYS(TensorError([&](FloatTensors& tensors) {
                tensors[std::string("base_model.model.") + kModule + ".lora_magnitude_vector"] =
                    tensors[a];
              }),
              "DoRA");
  EXPECT_SAYS(TensorError([&](FloatTensors& tensors) {
                tensors[std::string("base_model.model.") + kModule + ".lora_A.default.weight"] =
                    tensors[a];
              }),
              "stands for what another tensor has");
  EXPECT_SAYS(TensorError([](FloatTensors& tensors) { tensors.clear(); }), "has no tensors");
}

TEST_F(LoraFilesTest, MissingFilesNamesAndMemory) {
  EXPECT_SAYS(LoadError(1 << 30, folder_ + "/nothing"), "adapter_config.json");
  std::filesystem::remove(folder_ + "/adapter_model.safetensors");
  EXPECT_SAYS(LoadError(), "adapter_model.safetensors");
  lora_.Write(folder_);
  EXPECT_SAYS(LoadError(100), "lora_bytes");
  ModelOptions options;
  options.lora = {{"x", folder_}, {"x", folder_}};
  EXPECT_SAYS(LoadModel(GoldenFolder(kModel), options).error().ToString(), "\"x\" twice");
  options.lora = {{"x", folder_}};
  options.device = Device::kCuda;
  const Result<std::unique_ptr<Model>> cuda = LoadModel(GoldenFolder(kModel), options);
  ASSERT_FALSE(cuda.ok());
  EXPECT_EQ(cuda.error().code, ErrorCode::kUnsupported);
}

// Int8 and int4 next to an adapter in floats: the difference from the base is that of floats.
TEST_F(LoraFilesTest, RoundedWeightsStayAsTheyAre) {
  for (const WeightDtype dtype : {WeightDtype::kInt8, WeightDtype::kInt4, WeightDtype::kBf16}) {
    const std::unique_ptr<Model> with = LoadWith(GoldenFolder(kModel), {{"x", folder_}}, dtype);
    const std::unique_ptr<Model> without = LoadWith(GoldenFolder(kModel), {}, dtype);
    ASSERT_TRUE(with != nullptr && without != nullptr);
    EXPECT_GT(with->info().weight_bytes, without->info().weight_bytes);
    ASSERT_EQ(with->info().adapters.size(), 1u);
    EXPECT_NE(with->info().adapters[0].key, 0u);
    std::mt19937 random(1);
    const std::vector<TokenId> tokens = RandomTokens(random, with->info().vocabulary_size, 20);
    const std::vector<float> base = RunChunk(*without, Adapted(*without, 0), 0, tokens);
    EXPECT_TRUE(SameBits(RunChunk(*with, Adapted(*with, 0), 0, tokens), base));
    EXPECT_FALSE(SameBits(RunChunk(*with, Adapted(*with, 1), 0, tokens), base));
    EXPECT_FALSE(without->NewAdapted(10, 1).ok());
    EXPECT_FALSE(with->NewAdapted(10, 2).ok());
  }
}

}  // namespace
}  // namespace pawl
