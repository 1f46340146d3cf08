// Weights as integers: rounding within its bound, GGUF's blocks with their exact values, and models
// made of them against models of the same weights in float.
#include "src/model/quantize.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>

#include "kernels/cpu/integers.h"
#include "src/base/file.h"
#include "src/base/half.h"
#include "tests/model/float_weights.h"
#include "tests/model/gguf_writer.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

// A packed matrix that owns its memory.
struct Packed {
  Packed(const PackedFormat& format, int64_t rows, int64_t cols) : m(ShapeOf(format, rows, cols)) {
    memory.resize(static_cast<size_t>(MatrixBytes(m)), std::byte{255});
    PlacePacked(memory.data(), m);
  }
  float Scale(int64_t row, int64_t group) const { return ScaleAt(m, row, group); }
  Matrix m;
  std::vector<std::byte> memory;
};

const KernelSet& Kernels() { return *FindKernels(KernelVariant::kPortable); }

TEST(QuantizeTest, WithinHalfAStep) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const WeightType type : {WeightType::kI8, WeightType::kI4}) {
    for (const int64_t cols : {1, 16, 31, 32, 33, 100, 256}) {
      for (const int64_t rows : {1, 15, 16, 33}) {
        Packed packed({type}, rows, cols);
        std::vector<std::vector<float>> all;
        PackedRow integers;
        for (int64_t r = 0; r < rows; ++r) {
          std::vector<float>& w = all.emplace_back(static_cast<size_t>(cols));
          for (float& value : w) value = normal(random) * 0.02f + 0.01f;
          QuantizeRow(type, w.data(), cols, integers);
          StoreRow(integers, r, packed.m);
        }
        for (int64_t r = 0; r < rows; ++r) {
          const std::vector<float>& w = all[static_cast<size_t>(r)];
          std::vector<float> got(w.size());
          Kernels().read_row(packed.m, r, got.data());
          for (size_t i = 0; i < w.size(); ++i) {
            const float scale = packed.Scale(r, static_cast<int64_t>(i / 32));
            const bool clipped = type == WeightType::kI4 && w[i] / scale > 7.5f;
            const float bound = std::fabs(scale) * (clipped ? 1.01f : 0.5001f) + 1e-6f;
            EXPECT_LE(std::fabs(got[i] - w[i]), bound) << i;
          }
          // The scale is no larger than it must be.
          const auto end = w.begin() + std::min<int64_t>(cols, 32);
          const auto [low, high] = std::minmax_element(w.begin(), end);
          const float range = std::max(-*low, *high) / (type == WeightType::kI8 ? 127 : 8);
          EXPECT_NEAR(std::fabs(packed.Scale(r, 0)), range, range * 0x1p-11f + 0x1p-25f);
        }
      }
    }
  }
}

TEST(QuantizeTest, ConstantGroupsNanAndScalesBeyondHalves) {
  for (const WeightType type : {WeightType::kI8, WeightType::kI4}) {
    Packed packed({type}, 1, 64);
    std::vector<float> w(64, 0.0f), got(64);
    PackedRow integers;
    const auto read = [&] {
      QuantizeRow(type, w.data(), 64, integers);
      StoreRow(integers, 0, packed.m);
      Kernels().read_row(packed.m, 0, got.data());
    };
    read();
    EXPECT_EQ(got, w);
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 1e8f}) {
      w[40] = bad;
      read();
      EXPECT_EQ(got[0], 0.0f);
      EXPECT_TRUE(std::isnan(got[32]) && std::isnan(got[63]));
    }
    w[40] = 1e-9f;
    read();
    EXPECT_EQ(got, std::vector<float>(64, 0.0f));
  }
}

// Against the reference implementation, see scripts/make_gguf_goldens.py.
TEST(QuantizeTest, BlocksAreWorthWhatTheReferenceSays) {
  const Result<SafetensorsFile> file =
      SafetensorsFile::Open(SourceDir() + "/tests/data/models/gguf_blocks.safetensors");
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  const struct {
    std::string name;
    double bits;  // of memory for a weight
  } types[] = {{"Q8_0", 8.5},      {"Q5_0", 5.5},      {"Q5_1", 6},      {"Q4_0", 4.5},
               {"Q4_1", 5},        {"Q6_K", 6.625},    {"Q5_K", 5.75},   {"Q4_K", 4.75},
               {"Q3_K", 3.625},    {"Q2_K", 3.25},     {"IQ4_NL", 4.5},  {"IQ4_XS", 4.375},
               {"MXFP4", 4.375},   {"NVFP4", 4.625},   {"TQ1_0", 4.25},  {"TQ2_0", 4.25},
               {"IQ3_S", 4.375},   {"IQ3_XXS", 4.375}, {"IQ2_S", 3.625}, {"IQ2_XS", 3.625},
               {"IQ2_XXS", 3.375}, {"IQ1_M", 3.625},   {"IQ1_S", 3.375}};
  EXPECT_EQ(file->tensors().size(), 2 * std::size(types)) << "every golden type is compared";
  for (const auto& type : types) {
    SCOPED_TRACE(type.name);
    const std::vector<float> expected = ReadTensor<float>(*file, type.name + ".values");
    const auto cols = static_cast<int64_t>(expected.size());
    ASSERT_EQ(cols, 512);
    ASSERT_TRUE(FormatOfBlocks(type.name).has_value());
    const PackedFormat format = *FormatOfBlocks(type.name);
    EXPECT_EQ(file->Find(type.name + ".blocks")->bytes,
              cols / format.block_elements * format.block_bytes);
    Packed packed(format, 1, cols);
    EXPECT_EQ(static_cast<double>(packed.memory.size()) * 8 / static_cast<double>(cols * 16),
              type.bits);
    PackedRow integers;
    PackBlocks(type.name, file->Find(type.name + ".blocks")->data, cols, integers);
    StoreRow(integers, 0, packed.m);
    std::vector<float> got(expected.size()), unpacked(expected.size());
    Kernels().read_row(packed.m, 0, got.data());
    ReadPackedRow(format, integers, cols, unpacked.data());
    EXPECT_EQ(unpacked, got);
    for (size_t i = 0; i < got.size(); ++i) {
      const auto group = static_cast<int64_t>(i) >> format.group_shift;
      const double minimum = MinimumAt(packed.m, 0, group);
      const double product = std::fabs(got[i] - minimum);
      double slack = (product + std::fabs(minimum)) * 0x1p-22;
      // FP4's steps below the smallest half.
      if (type.name == "MXFP4" && std::fabs(expected[i]) < 12 * 0x1p-24f) slack = 0x1p-24;
      ASSERT_NEAR(got[i], expected[i], slack) << i;
    }
  }
  for (const char* none : {"Q8_1", "Q8_K", "Q1_0", "F16", ""}) {
    EXPECT_FALSE(FormatOfBlocks(none).has_value()) << none;
  }
}

// Scales that no half has: far below, weights become zeros; far above, infinities, never other
// numbers.
TEST(QuantizeTest, Mxfp4ExponentsBeyondHalves) {
  for (int exponent = 0; exponent < 256; ++exponent) {
    std::array<std::byte, 17> block;
    block[0] = static_cast<std::byte>(exponent);
    for (size_t i = 0; i < 16; ++i) block[i + 1] = static_cast<std::byte>(i | (15 - i) << 4);
    PackedRow row;
    PackBlocks("MXFP4", block.data(), 32, row);
    std::vector<float> got(32);
    ReadPackedRow(*FormatOfBlocks("MXFP4"), row, 32, got.data());
    for (size_t i = 0; i < 32; ++i) {
      const size_t code = i < 16 ? i : 31 - i;
      constexpr double kSizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
      const double exact = std::ldexp(code < 8 ? kSizes[code] : -kSizes[code - 8], exponent - 127);
      if (exponent > 228) {
        EXPECT_FALSE(std::isfinite(got[i])) << exponent;  // 0 times infinity is no number either
      } else if (exponent < 104) {
        EXPECT_NEAR(got[i], exact, 0x1p-24) << exponent << " " << i;
        EXPECT_TRUE(got[i] == 0 || std::fabs(exact) >= 0x1p-25) << exponent << " " << i;
      } else {
        EXPECT_EQ(got[i], exact) << exponent << " " << i;
      }
    }
  }
}

std::unique_ptr<Model> LoadAs(const std::string& path, WeightDtype dtype, int threads = 1) {
  ModelOptions options;
  options.threads = threads;
  options.dtype = dtype;
  Result<std::unique_ptr<Model>> model = LoadModel(path, options);
  if (model.ok()) return *std::move(model);
  ADD_FAILURE() << model.error().ToString();
  return nullptr;
}

// Bounds for whole models, on the norm of the logits of a position, against the goldens: the
// rounding of weights, and with integers that of inputs. Tiny random models suffer more than
// trained ones. Measured: 2e-6, 0.0013, 0.0094, 0.045 and 0.43 at
// most.
TEST(QuantizeTest, ModelsStayNearTheirWeights) {
  const struct {
    WeightDtype dtype;
    const char* name;
    double bound;
  } cases[] = {{WeightDtype::kFp32, "fp32", 2e-5},
               {WeightDtype::kFp16, "fp16", 0.005},
               {WeightDtype::kBf16, "bf16", 0.02},
               {WeightDtype::kInt8, "int8", 0.06},
               {WeightDtype::kInt4, "int4", 0.6}};
  for (const std::string& name : GoldenNames()) {
    for (const auto& c : cases) {
      const std::unique_ptr<Model> model = LoadAs(GoldenFolder(name), c.dtype);
      ASSERT_NE(model, nullptr);
      EXPECT_EQ(model->info().dtype, c.name);
      const Golden golden = ReadGoldens(name)[1];
      const std::vector<float> logits =
          RunChunk(*model, MakeSequence(*model, 32), 0, golden.prompt);
      EXPECT_LT(RelativeError(logits, golden.logits), c.bound) << name << " " << c.name;
      RecordProperty(name + "_" + c.name, std::to_string(RelativeError(logits, golden.logits)));
    }
  }
}

// What the rounding of inputs to 8 bits costs alone (measured: 0.031 at most): against the same
// weights in float, whose own arithmetic is within 2e-5 of double precision (golden_test).
TEST(QuantizeTest, IntegersAnswerAsTheirValuesInFloat) {
  for (const std::string& name : GoldenNames()) {
    for (const WeightDtype dtype : {WeightDtype::kInt8, WeightDtype::kInt4}) {
      const std::unique_ptr<Model> integers = LoadAs(GoldenFolder(name), dtype);
      const FloatModel floats = LoadInFloat(name, dtype);
      const std::vector<TokenId> prompt = ReadGoldens(name)[1].prompt;
      const std::vector<float> got = RunChunk(*integers, MakeSequence(*integers, 32), 0, prompt);
      const std::vector<float> expected =
          RunChunk(*floats.model, MakeSequence(*floats.model, 32), 0, prompt);
      EXPECT_LT(RelativeError(got, expected), 0.05) << name << " " << integers->info().dtype;
      RecordProperty(name + "_" + integers->info().dtype,
                     std::to_string(RelativeError(got, expected)));
    }
  }
}

TEST(QuantizeTest, RowsOfQuantizedModelsAreIndependent) {
  std::mt19937 random(5);
  for (const std::string& name : GoldenNames()) {
    for (const WeightDtype dtype : {WeightDtype::kInt8, WeightDtype::kInt4}) {
      const std::unique_ptr<Model> model = LoadAs(GoldenFolder(name), dtype);
      const std::unique_ptr<Model> threaded = LoadAs(GoldenFolder(name), dtype, 3);
      std::vector<TokenId> tokens;
      for (int i = 0; i < 40; ++i) tokens.push_back(static_cast<TokenId>(random() % 100));
      const SequenceId one = MakeSequence(*model, 64);
      std::vector<float> alone;
      for (int i = 0; i < 40; ++i) {
        const std::vector<float> row =
            RunChunk(*model, one, i, std::span(tokens).subspan(static_cast<size_t>(i), 1));
        alone.insert(alone.end(), row.begin(), row.end());
      }
      EXPECT_TRUE(SameBits(RunChunk(*model, MakeSequence(*model, 64), 0, tokens), alone)) << name;
      EXPECT_TRUE(SameBits(RunChunk(*threaded, MakeSequence(*threaded, 64), 0, tokens), alone))
          << name;
    }
  }
}

// Blocks in a GGUF file against the same weights in float in another: inputs are rounded to 8 bits.
TEST(QuantizeTest, GgufBlocksAnswerAsTheirValuesInFloat) {
  std::string pattern = (std::filesystem::temp_directory_path() / "pawl-quant-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::string path = pattern + "/model.gguf";
  // hidden 64, inner 96: whole blocks of 32.
  const TransformerConfig config = *ReadTransformerConfig(GoldenFolder("llama-fp32-tied"));
  const auto q8 = [](std::span<const float> values) {
    std::string out;
    for (size_t b = 0; b < values.size(); b += 32) {
      GgufWriter::Append<uint16_t>(out, 0x2000);  // 2^-7
      for (size_t i = b; i < b + 32; ++i) {
        const long q = std::clamp(std::lround(values[i] * 128), -127l, 127l);
        GgufWriter::Append<int8_t>(out, static_cast<int8_t>(q));
      }
    }
    return out;
  };
  const auto q8_values = [](std::span<const float> values) {
    std::string out;
    for (const float v : values) {
      const long q = std::clamp(std::lround(v * 128), -127l, 127l);
      GgufWriter::Append<float>(out, static_cast<float>(q) / 128);
    }
    return out;
  };
  const auto q4 = [](std::span<const float> values) {
    std::string out;
    for (size_t b = 0; b < values.size(); b += 32) {
      GgufWriter::Append<uint16_t>(out, 0x3000);  // 2^-3
      const auto q = [&](size_t i) {
        return static_cast<uint8_t>(std::clamp(std::lround(values[b + i] * 8) + 8, 0l, 15l));
      };
      for (size_t i = 0; i < 16; ++i) {
        GgufWriter::Append<uint8_t>(out, static_cast<uint8_t>(q(i) | q(i + 16) << 4));
      }
    }
    return out;
  };
  const auto q4_values = [](std::span<const float> values) {
    std::string out;
    for (const float v : values) {
      const long q = std::clamp(std::lround(v * 8) + 8, 0l, 15l);
      GgufWriter::Append<float>(out, static_cast<float>(q - 8) / 8);
    }
    return out;
  };
  const std::pair<GgufEncoding, GgufEncoding> pairs[] = {{{8, q8}, {0, q8_values}},
                                                         {{2, q4}, {0, q4_values}}};
  for (const auto& [blocks, floats] : pairs) {
    std::vector<std::vector<float>> answers;
    for (const GgufEncoding& encoding : {blocks, floats}) {
      ASSERT_TRUE(
          WriteFile(path, WriteGolden("llama-fp32-tied", "llama", config, &encoding).File()).ok());
      const std::unique_ptr<Model> model = LoadAs(path, WeightDtype::kAsStored);
      ASSERT_NE(model, nullptr);
      answers.push_back(RunChunk(*model, MakeSequence(*model, 16), 0,
                                 std::vector<TokenId>{3, 1, 4, 1, 5, 9, 2, 6}));
    }
    EXPECT_LT(RelativeError(answers[0], answers[1]), 0.05);
    RecordProperty("type_" + std::to_string(blocks.type),
                   std::to_string(RelativeError(answers[0], answers[1])));
  }
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace pawl
