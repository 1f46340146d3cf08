// Model folders whose weights are quantized, in the formats that tools write. The goldens are made
// by scripts/make_quantized_goldens.py, which packs by itself and computes the logits in double
// precision.
#include "src/model/quantized_checkpoint.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "src/base/file.h"
#include "src/base/half.h"
#include "src/model/quantize.h"
#include "src/model/transformer_config.h"
#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

const char* const kFormats[] = {"packed4",    "packed4-zeros", "packed8-row", "packed8-zeros",
                                "awq",        "gptq",          "gptq-v2-sym", "gptq8",
                                "float8-row", "float8-tensor", "float8-block"};
const char* const kShown[] = {"self_attn.k_proj", "mlp.down_proj"};

std::string QuantizedFolder(const std::string& name) { return GoldenFolder("quantized/" + name); }

QuantizedCheckpoint OpenQuantized(const std::string& folder) {
  const Result<TransformerConfig> config = ReadTransformerConfig(folder);
  Result<Checkpoint> files = Checkpoint::Open(folder);
  EXPECT_TRUE(config.ok()) << config.error().ToString();
  return QuantizedCheckpoint(*std::move(files), config->quantization);
}

struct Differences {
  double worst = 0;     // of log-probabilities
  double relative = 0;  // of logits
};
// To the golden answer.
Differences DifferencesOf(const std::string& folder, WeightDtype dtype) {
  ModelOptions options;
  options.dtype = dtype;
  Result<std::unique_ptr<Model>> model = LoadModel(folder, options);
  if (!model.ok()) {
    ADD_FAILURE() << model.error().ToString();
    return {1e30, 1e30};
  }
  const Result<SafetensorsFile> golden = SafetensorsFile::Open(folder + "/golden.safetensors");
  std::vector<TokenId> prompt;
  for (const int64_t t : ReadTensor<int64_t>(*golden, "prompt")) {
    prompt.push_back(static_cast<TokenId>(t));
  }
  const std::vector<float> expected = ReadTensor<float>(*golden, "logits");
  const SequenceId sequence = MakeSequence(**model, 64);
  const std::vector<float> got = RunChunk(**model, sequence, 0, prompt);
  const auto words = static_cast<size_t>((*model)->info().vocabulary_size);
  Differences out;
  out.relative = RelativeError(got, expected);
  for (size_t i = 0; i < prompt.size(); ++i) {
    const auto a = LogProbabilities(std::span(got).subspan(i * words, words));
    const auto b = LogProbabilities(std::span(expected).subspan(i * words, words));
    for (size_t t = 0; t < words; ++t) {
      out.worst = std::max(out.worst, std::fabs(a[t] - b[t]));
    }
  }
  return out;
}

TEST(QuantizedCheckpointTest, ModelsAnswerAsTheirWeightsInFloat) {
  for (const char* name : kFormats) {
    const std::string folder = QuantizedFolder(name);
    EXPECT_LT(DifferencesOf(folder, WeightDtype::kFp32).worst, 1e-3) << name;
    // Products with integers round the inputs to eight bits. Measured: 0.015 to 0.019.
    const double relative = DifferencesOf(folder, WeightDtype::kAsStored).relative;
    EXPECT_LT(relative, 0.03) << name;
    RecordProperty(name, std::to_string(relative));
  }
}

TEST(QuantizedCheckpointTest, IntegersAndZeroPointsAreThoseOfTheFile) {
  for (const char* name : kFormats) {
    const QuantizedCheckpoint source = OpenQuantized(QuantizedFolder(name));
    const Result<SafetensorsFile> golden =
        SafetensorsFile::Open(QuantizedFolder(name) + "/golden.safetensors");
    for (const char* matrix : kShown) {
      const std::string full = std::string("model.layers.0.") + matrix + ".weight";
      const Result<StoredMatrix>* packed = source.FindPacked(full);
      ASSERT_TRUE(packed != nullptr && packed->ok()) << name;
      const int64_t rows = (*packed)->view.shape[0], cols = (*packed)->view.shape[1];
      if (!(*packed)->integers) continue;
      const std::string of = matrix;
      const auto integers = ReadTensor<uint8_t>(*golden, "integers." + of);
      const auto zeros = ReadTensor<uint8_t>(*golden, "zeros." + of);
      const auto groups = static_cast<int64_t>(zeros.size()) / rows;
      const PackedFormat& format = *(*packed)->integers;
      PackedRow row;
      for (int64_t r = 0; r < rows; ++r) {
        (*packed)->pack(r, row);
        for (int64_t k = 0; k < cols; ++k) {
          const auto at = static_cast<size_t>(k);
          ASSERT_EQ(row.values[at], integers[static_cast<size_t>(r * cols + k)])
              << name << " " << matrix << " " << r << " " << k;
          if (!format.minimums) continue;
          const auto group = static_cast<size_t>(k >> format.group_shift);
          const float zero = zeros[static_cast<size_t>(r * groups + k / (cols / groups))];
          const float steps = -HalfToFloat(row.minimums[group]) / HalfToFloat(row.scales[group]);
          ASSERT_NEAR(steps, zero, 0.01) << name << " " << matrix << " " << r << " " << k;
        }
      }
    }
  }
}

TEST(QuantizedCheckpointTest, WeightsAreWorthWhatTheFormatSays) {
  for (const char* name : kFormats) {
    const QuantizedCheckpoint source = OpenQuantized(QuantizedFolder(name));
    const Result<SafetensorsFile> golden =
        SafetensorsFile::Open(QuantizedFolder(name) + "/golden.safetensors");
    const auto values = ReadTensor<float>(*golden, std::string("values.") + kShown[0]);
    const StoredMatrix& matrix =
        **source.FindPacked(std::string("model.layers.0.") + kShown[0] + ".weight");
    const int64_t rows = matrix.view.shape[0], cols = matrix.view.shape[1];
    float most = 0;
    for (const float value : values) most = std::max(most, std::fabs(value));
    std::vector<float> out(static_cast<size_t>(cols));
    PackedRow row;
    for (int64_t r = 0; r < rows; ++r) {
      if (matrix.integers) {
        matrix.pack(r, row);
        ReadPackedRow(*matrix.integers, row, cols, out.data());
      } else {
        matrix.read(r, out.data());
      }
      for (int64_t k = 0; k < cols; ++k) {
        const float expected = values[static_cast<size_t>(r * cols + k)];
        // Scales and minimums are halves.
        const float bound = matrix.integers ? most / 2048 : std::fabs(expected) * 1e-6f;
        ASSERT_NEAR(out[static_cast<size_t>(k)], expected, bound) << name << " " << r << " " << k;
      }
    }
  }
}

TEST(QuantizedCheckpointTest, Mxfp4Experts) {
  const Result<SafetensorsFile> file = SafetensorsFile::Open(QuantizedFolder("mxfp4.safetensors"));
  // As a folder, which has a file of this name.
  std::string pattern = (fs::temp_directory_path() / "pawl-mxfp4-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  fs::copy_file(QuantizedFolder("mxfp4.safetensors"), pattern + "/model.safetensors");
  {
    const Result<Checkpoint> source = Checkpoint::Open(pattern);
    ASSERT_TRUE(source.ok()) << source.error().ToString();
    const auto values = ReadTensor<float>(*file, "values");
    size_t at = 0;
    for (int64_t expert = 0; expert < 2; ++expert) {
      const Result<StoredMatrix> matrix = Mxfp4Expert(*source, "gate_up_proj", expert);
      ASSERT_TRUE(matrix.ok()) << matrix.error().ToString();
      EXPECT_EQ(matrix->view.shape, (std::vector<int64_t>{16, 96}));
      std::vector<float> out(96);
      PackedRow row;
      for (int64_t r = 0; r < 16; ++r) {
        matrix->pack(r, row);
        ReadPackedRow(*matrix->integers, row, 96, out.data());
        for (const float value : out) ASSERT_EQ(value, values[at++]) << expert << " " << r;
      }
    }
    const Result<StoredMatrix> third = Mxfp4Expert(*source, "gate_up_proj", 2);
    EXPECT_EQ(third.error().message, "has no expert 2");
    const Result<StoredMatrix> other = Mxfp4Expert(*source, "down_proj", 0);
    EXPECT_EQ(other.error().ToString(),
              pattern + "/model.safetensors: tensor \"down_proj_blocks\": is missing");
  }
  fs::remove_all(pattern);
}

class QuantizedFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "pawl-quantized-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A golden folder with one text of a file changed; of model.safetensors into one of the same
  // length, so that the header stays whole.
  void CopyChanged(const std::string& name, const std::string& file, const std::string& from,
                   const std::string& to) const {
    for (const char* each : {"config.json", "model.safetensors", "golden.safetensors"}) {
      std::string text = *ReadFile(QuantizedFolder(name) + "/" + each);
      if (each == file) {
        const size_t at = text.find(from);
        ASSERT_NE(at, std::string::npos) << from;
        text.replace(at, from.size(), to);
      }
      ASSERT_TRUE(WriteFile(folder_ + "/" + each, text).ok());
    }
  }
  std::string ErrorOf() const {
    const Result<std::unique_ptr<Model>> model = LoadModel(folder_);
    if (model.ok()) return "";
    const std::string text = model.error().ToString();
    return text.starts_with(folder_ + "/") ? text.substr(folder_.size() + 1) : text;
  }

  std::string folder_;
};

TEST_F(QuantizedFolderTest, TensorsThatDoNotFitAreNamed) {
  const std::string layer = "model.safetensors: tensor \"model.layers.0.self_attn.q_proj.";
  const struct {
    const char *name, *file, *from, *to, *part, *message;
  } cases[] = {
      {"packed4", "model.safetensors", "q_proj.weight_scale", "q_proj.weight_scalX",
       "weight_scale\"", "is missing"},
      {"packed4", "model.safetensors", "\"I32\",\"shape\":[64,8]", "\"I32\",\"shape\":[8,64]",
       "weight_packed\"", "has shape [8, 64], which is not that of [64, 64] weights of 4 bits"},
      {"packed4", "model.safetensors", "\"I32\",\"shape\":[64,8]", "\"F32\",\"shape\":[64,8]",
       "weight_packed\"", "has dtype F32; expected I32"},
      {"packed4", "config.json", "\"group_size\": 32", "\"group_size\": 64", "weight_scale\"",
       "has shape [64, 2]; expected [64, 1]"},
      {"packed4", "config.json", "\"group_size\": 32", "\"group_size\": 48", "weight_packed\"",
       "has 64 inputs, which groups of 48 do not divide"},
      {"packed4", "config.json", "\"group_size\": 32", "\"group_size\": 16", "weight_packed\"",
       "has groups of 16; expected a multiple of 32"},
      {"packed4", "config.json", "\"symmetric\": true", "\"symmetric\": false",
       "weight_zero_point\"", "is missing"},
      {"packed4", "config.json", "\"num_bits\": 4", "\"num_bits\": 8", "weight_packed\"",
       "has shape [64, 8], which is not that of [64, 64] weights of 8 bits"},
      {"awq", "model.safetensors", "q_proj.qzeros", "q_proj.qzeroX", "qzeros\"", "is missing"},
      {"awq", "model.safetensors", "\"F16\",\"shape\":[2,64]", "\"F16\",\"shape\":[64,2]",
       "scales\"", "has shape [64, 2]; expected [2, 64]"},
      {"gptq", "model.safetensors", "q_proj.scales", "q_proj.scaleX", "scales\"", "is missing"},
      {"float8-block", "model.safetensors", "q_proj.weight_scale_inv", "q_proj.weight_scale_inX",
       "weight_scale_inv\"", "is missing"},
      {"float8-block", "config.json", "48,\n   40", "48,\n   64", "weight_scale_inv\"",
       "has shape [2, 2]; expected [2, 1]"},
  };
  for (const auto& c : cases) {
    CopyChanged(c.name, c.file, c.from, c.to);
    EXPECT_EQ(ErrorOf(), layer + c.part + ": " + c.message) << c.from;
  }
}

TEST_F(QuantizedFolderTest, ActOrderInATensorIsRefused) {
  CopyChanged("gptq", "config.json", "\"group_size\": 64", "\"group_size\": 64");
  std::string file = *ReadFile(folder_ + "/model.safetensors");
  // The first matrix's g_idx: 64 zeros.
  const size_t name = file.find("q_proj.g_idx");
  const size_t offsets = file.find("data_offsets\":[", name) + 15;
  uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  file[8 + header + std::stoul(file.substr(offsets))] = 1;
  ASSERT_TRUE(WriteFile(folder_ + "/model.safetensors", file).ok());
  EXPECT_EQ(ErrorOf(),
            "model.safetensors: tensor \"model.layers.0.self_attn.q_proj.g_idx\": is act-order, "
            "which is not supported");
}

TEST_F(QuantizedFolderTest, FormatsThatAreNotReadAreRefusedByName) {
  const std::string end =
      " are not supported; compressed-tensors (pack-quantized, float-quantized), awq, gptq without "
      "act-order, fp8 and mxfp4 are read";
  const struct {
    const char *name, *from, *to, *place, *format;
  } cases[] = {
      {"gptq", "\"desc_act\": false", "\"desc_act\": true", "desc_act", "GPTQ with act-order"},
      {"gptq", "\"bits\": 4", "\"bits\": 3", "bits", "GPTQ with 3 bits"},
      {"gptq", "\"gptq\",\n  \"bits\"", "\"bitsandbytes\",\n  \"bits\"", "quant_method",
       "\"bitsandbytes\""},
      {"gptq", "\"gptq\",\n  \"bits\"", "\"modelopt\", \"quant_algo\": \"NVFP4\",\n  \"bits\"",
       "quant_method", "\"modelopt NVFP4\""},
      {"awq", "\"gemm\"", "\"gemv\"", "version", "AWQ \"gemv\""},
      {"packed4", "\"pack-quantized\"", "\"nvfp4-pack-quantized\"", "format",
       "compressed-tensors \"nvfp4-pack-quantized\""},
      {"packed4", "\"dynamic\": false", "\"actorder\": \"group\"",
       "config_groups/group_0/weights/actorder",
       "compressed-tensors pack-quantized with act-order"},
      {"packed4", "\"kv_cache_scheme\": null", "\"sparsity_config\": {\"format\": \"dense\"}",
       "sparsity_config", "compressed-tensors with sparsity_config"},
      {"float8-block", "\"e4m3\"", "\"e5m2\"", "fmt", "fp8 \"e5m2\""},
  };
  for (const auto& c : cases) {
    CopyChanged(c.name, "config.json", c.from, c.to);
    EXPECT_EQ(ErrorOf(), std::string("config.json#/quantization_config/") + c.place +
                             ": weights in the format " + c.format + end);
  }
}

TEST_F(QuantizedFolderTest, WhatWeightsTakeIsKnown) {
  const Result<WeightPlan> plan = PlanWeights(QuantizedFolder("awq"), WeightDtype::kAsStored);
  ASSERT_TRUE(plan.ok()) << plan.error().ToString();
  EXPECT_EQ(plan->types[0].first, "AWQ");
  const Result<std::unique_ptr<Model>> model = LoadModel(QuantizedFolder("awq"));
  EXPECT_EQ(plan->memory_bytes, (*model)->info().weight_bytes);
  // No part of a matrix is a tensor that is not used.
  std::string notes;
  ASSERT_TRUE(LoadModel(QuantizedFolder("float8-tensor"), ModelOptions(), [&](const auto& note) {
                notes += note;
              }).ok());
  EXPECT_EQ(notes, "");
}

TEST_F(QuantizedFolderTest, RandomDamageIsAnErrorOrAModel) {
  std::mt19937 random(5);
  for (const char* name : {"packed4-zeros", "awq", "gptq", "float8-block"}) {
    const std::string whole = *ReadFile(QuantizedFolder(name) + "/model.safetensors");
    CopyChanged(name, "config.json", "\"model_type\"", "\"model_type\"");
    uint64_t header = 0;
    std::memcpy(&header, whole.data(), sizeof header);
    for (int i = 0; i < 150; ++i) {
      std::string file = whole;
      for (int n = 0; n < 3; ++n) {
        file[8 + random() % header] = static_cast<char>('0' + random() % 10);
      }
      ASSERT_TRUE(WriteFile(folder_ + "/model.safetensors", file).ok());
      ErrorOf();
    }
  }
}

}  // namespace
}  // namespace pawl
