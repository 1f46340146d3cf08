// GGUF files of every quantized type, of several types, in several parts: each answers as a file
// with the same weights in float, and takes no more memory than it should.
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <span>

#include "src/base/file.h"
#include "src/base/half.h"
#include "src/model/gguf_blocks.h"
#include "src/model/gguf_model.h"
#include "src/model/quantize.h"
#include "src/model/tensor_source.h"
#include "tests/model/gguf_writer.h"
#include "tests/support/kernel_variants.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

struct TypeCase {
  uint32_t id;
  const char* name;
  std::vector<size_t> halves;  // where a block has half-precision numbers: a scale, a minimum
  float minimum = 0;           // in steps, so that weights lie around zero
};
const TypeCase kTypes[] = {{8, "Q8_0", {0}},
                           {6, "Q5_0", {0}},
                           {7, "Q5_1", {0, 2}, -15.5f},
                           {2, "Q4_0", {0}},
                           {3, "Q4_1", {0, 2}, -7.5f},
                           {14, "Q6_K", {208}},
                           {13, "Q5_K", {0, 2}, 15.5f},
                           {12, "Q4_K", {0, 2}, 7.5f},
                           {11, "Q3_K", {108}},
                           {10, "Q2_K", {80, 82}, 1.5f},
                           {20, "IQ4_NL", {0}},
                           {23, "IQ4_XS", {0}},
                           {39, "MXFP4", {}},
                           {40, "NVFP4", {}},
                           {34, "TQ1_0", {52}},
                           {35, "TQ2_0", {64}},
                           {21, "IQ3_S", {0}},
                           {18, "IQ3_XXS", {0}},
                           {22, "IQ2_S", {0}},
                           {17, "IQ2_XS", {0}},
                           {16, "IQ2_XXS", {0}},
                           {29, "IQ1_M", {}},
                           {19, "IQ1_S", {0}}};
const TypeCase& TypeNamed(const std::string& name) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes),
                       [&](const TypeCase& type) { return name == type.name; });
}

std::vector<float> ValuesOf(const TypeCase& type, const std::string& bytes, int64_t count) {
  PackedRow row;
  PackBlocks(type.name, reinterpret_cast<const std::byte*>(bytes.data()), count, row);
  std::vector<float> values(static_cast<size_t>(count));
  ReadPackedRow(*FormatOfBlocks(type.name), row, count, values.data());
  return values;
}

// Any integers and signs; scales so that weights have the size that they have in models.
std::string RandomBlocks(const TypeCase& type, int64_t count, std::mt19937& random) {
  const PackedFormat format = *FormatOfBlocks(type.name);
  const std::string name = type.name;
  std::string out;
  for (int64_t b = 0; b < count / format.block_elements; ++b) {
    std::string block(static_cast<size_t>(format.block_bytes), '\0');
    for (char& byte : block) byte = static_cast<char>(random());
    const auto put = [&](float scale) {
      for (const size_t at : type.halves) {
        const uint16_t half = FloatToHalf(at == type.halves[0] ? scale : scale * type.minimum);
        std::memcpy(block.data() + at, &half, sizeof half);
      }
      const uint16_t half = FloatToHalf(scale);
      for (size_t i = 0; i < 4 && name == "IQ1_M"; ++i) {
        char& byte = block[49 + 2 * i];
        byte = static_cast<char>((byte & 15) | (half >> 4 * i & 15) << 4);
      }
    };
    put(1.0f);
    if (name == "MXFP4") block[0] = static_cast<char>(118 + random() % 4);
    for (size_t i = 0; i < 4 && name == "NVFP4"; ++i) {
      block[i] = static_cast<char>(4 + random() % 12);
    }
    double squares = 0;
    for (const float v : ValuesOf(type, block, format.block_elements)) squares += double{v} * v;
    put(static_cast<float>(0.05 / std::sqrt(squares / static_cast<double>(format.block_elements))));
    out += block;
  }
  return out;
}

std::string FloatBytes(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

struct Shape {
  std::string arch = "llama";
  int hidden = 256, inner = 512, heads = 4, kv_heads = 2, layers = 2, vocabulary = 96;
};

// What a tensor holds: blocks or F32.
struct Bytes {
  uint32_t type;
  std::string bytes;
};
using MakeTensor = std::function<Bytes(const std::string& name, int64_t rows, int64_t cols)>;

// Calls `add` for each tensor of such a model, after the keys.
void WriteModel(const Shape& shape, const MakeTensor& make, GgufWriter& out,
                const std::function<GgufWriter&(const std::string& name)>& part) {
  const std::string a = shape.arch + ".";
  out.Add("general.architecture", std::string_view(shape.arch));
  out.Add(a + "embedding_length", shape.hidden);
  out.Add(a + "feed_forward_length", shape.inner);
  out.Add(a + "block_count", shape.layers);
  out.Add(a + "attention.head_count", shape.heads);
  out.Add(a + "attention.head_count_kv", shape.kv_heads);
  out.Add(a + "context_length", 128);
  out.Add(a + "attention.layer_norm_rms_epsilon", 1e-5f);
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  const auto vector = [&](const std::string& name, int size, float centre) {
    std::vector<float> values(static_cast<size_t>(size));
    for (float& value : values) value = centre + 0.1f * normal(random);
    part(name).AddTensor(name, 0, {size}, FloatBytes(values));
  };
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t cols) {
    Bytes made = make(name, rows, cols);
    part(name).AddTensor(name, made.type, {rows, cols}, std::move(made.bytes));
  };
  matrix("token_embd.weight", shape.vocabulary, shape.hidden);
  vector("output_norm.weight", shape.hidden, 1);
  const int width = shape.hidden / shape.heads, kv_width = shape.kv_heads * width;
  for (int i = 0; i < shape.layers; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    vector(layer + "attn_norm.weight", shape.hidden, 1);
    vector(layer + "ffn_norm.weight", shape.hidden, 1);
    matrix(layer + "attn_q.weight", shape.hidden, shape.hidden);
    matrix(layer + "attn_k.weight", kv_width, shape.hidden);
    matrix(layer + "attn_v.weight", kv_width, shape.hidden);
    matrix(layer + "attn_output.weight", shape.hidden, shape.hidden);
    matrix(layer + "ffn_gate.weight", shape.inner, shape.hidden);
    matrix(layer + "ffn_up.weight", shape.inner, shape.hidden);
    matrix(layer + "ffn_down.weight", shape.hidden, shape.inner);
    if (shape.arch != "qwen2") continue;
    vector(layer + "attn_q.bias", shape.hidden, 0);
    vector(layer + "attn_k.bias", kv_width, 0);
    vector(layer + "attn_v.bias", kv_width, 0);
  }
}

// Both files: the types that `type_of` names, and their values as F32.
struct Twins {
  GgufWriter blocks, floats;
};
Twins MakeTwins(const Shape& shape,
                const std::function<std::string(const std::string& name)>& type_of) {
  Twins twins;
  std::mt19937 random(4);
  std::map<std::string, std::vector<float>> values;
  WriteModel(
      shape,
      [&](const std::string& name, int64_t rows, int64_t cols) -> Bytes {
        const std::string type_name = type_of(name);
        if (type_name == "BF16") {
          std::string bytes;
          for (int64_t i = 0; i < rows * cols; ++i) {
            const float value = std::normal_distribution<float>(0, 0.05f)(random);
            uint32_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            GgufWriter::Append<uint16_t>(bytes, static_cast<uint16_t>(bits >> 16));
            bits &= 0xffff0000u;
            float rounded;
            std::memcpy(&rounded, &bits, sizeof rounded);
            values[name].push_back(rounded);
          }
          return {30, bytes};
        }
        const TypeCase& type = TypeNamed(type_name);
        std::string bytes = RandomBlocks(type, rows * cols, random);
        values[name] = ValuesOf(type, bytes, rows * cols);
        return {type.id, std::move(bytes)};
      },
      twins.blocks, [&](const std::string&) -> GgufWriter& { return twins.blocks; });
  WriteModel(
      shape,
      [&](const std::string& name, int64_t, int64_t) -> Bytes {
        return {0, FloatBytes(values[name])};
      },
      twins.floats, [&](const std::string&) -> GgufWriter& { return twins.floats; });
  return twins;
}

class GgufTypesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "pawl-types-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Put(const std::string& name, const std::string& bytes) const {
    EXPECT_TRUE(WriteFile(folder_ + "/" + name, bytes).ok());
    return folder_ + "/" + name;
  }
  static std::unique_ptr<Model> Load(const std::string& path, int threads = 1,
                                     KernelVariant kernels = KernelVariant::kAuto) {
    ModelOptions options;
    options.threads = threads;
    options.kernels = kernels;
    Result<std::unique_ptr<Model>> model = LoadModel(path, options);
    if (model.ok()) return *std::move(model);
    ADD_FAILURE() << model.error().ToString();
    return nullptr;
  }
  static std::vector<float> Answer(Model& model) {
    return RunChunk(model, MakeSequence(model, 16), 0,
                    std::vector<TokenId>{3, 1, 4, 1, 5, 9, 2, 6});
  }

  std::string folder_;
};

// Inputs are rounded to 8 bits, which is all that may differ. Measured: 0.011 to 0.021.
TEST_F(GgufTypesTest, EveryTypeAnswersAsItsValuesInFloat) {
  for (const TypeCase& type : kTypes) {
    SCOPED_TRACE(type.name);
    const Twins twins = MakeTwins({}, [&](const std::string&) { return type.name; });
    const std::unique_ptr<Model> blocks = Load(Put("blocks.gguf", twins.blocks.File()));
    const std::unique_ptr<Model> floats = Load(Put("floats.gguf", twins.floats.File()));
    ASSERT_TRUE(blocks != nullptr && floats != nullptr);
    const std::vector<float> answer = Answer(*blocks);
    const double error = RelativeError(answer, Answer(*floats));
    EXPECT_LT(error, 0.03);
    RecordProperty(type.name, std::to_string(error));
    // The same bits by every kernel and on several threads.
    for (const KernelVariant kernels : kExactKernels) {
      if (FindKernels(kernels) == nullptr) continue;
      EXPECT_TRUE(SameBits(Answer(*Load(folder_ + "/blocks.gguf", 3, kernels)), answer));
    }
    const Result<WeightPlan> plan = PlanWeights(folder_ + "/blocks.gguf", WeightDtype::kAsStored);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->memory_bytes, blocks->info().weight_bytes);
    EXPECT_EQ(plan->file_bytes, static_cast<int64_t>(twins.blocks.File().size()));
    ASSERT_EQ(plan->types.size(), 1u);
    EXPECT_EQ(plan->types[0].first, type.name);
  }
}

// What a Q4_K_M file has where widths are no multiples of 256, and a matrix in bf16 among them.
TEST_F(GgufTypesTest, TypesOfOneLayerMayDiffer) {
  Shape shape;
  shape.arch = "qwen2";
  shape.hidden = 320;
  shape.inner = 768;
  shape.heads = 5;
  shape.kv_heads = 1;
  const Twins twins = MakeTwins(shape, [](const std::string& name) -> std::string {
    if (name == "token_embd.weight" || name == "blk.0.attn_v.weight") return "Q8_0";
    if (name == "blk.0.ffn_down.weight") return "Q6_K";
    if (name == "blk.1.ffn_down.weight") return "Q4_K";
    if (name == "blk.1.ffn_up.weight" || name == "blk.1.attn_k.weight") return "BF16";
    return name.find("ffn_gate") != std::string::npos ? "Q5_1" : "Q5_0";
  });
  const std::unique_ptr<Model> blocks = Load(Put("blocks.gguf", twins.blocks.File()));
  const std::unique_ptr<Model> floats = Load(Put("floats.gguf", twins.floats.File()));
  ASSERT_TRUE(blocks != nullptr && floats != nullptr);
  const std::vector<TokenId> prompt = {3, 1, 4, 1, 5, 9, 2, 6};
  const std::vector<float> answer = Answer(*blocks);
  EXPECT_LT(RelativeError(answer, Answer(*floats)), 0.03);
  // Row by row, and on three threads: the same bits.
  const std::unique_ptr<Model> threaded = Load(folder_ + "/blocks.gguf", 3);
  EXPECT_TRUE(SameBits(Answer(*threaded), answer));
  const SequenceId one = MakeSequence(*blocks, 16);
  std::vector<float> alone;
  for (int i = 0; i < 8; ++i) {
    const std::vector<float> row =
        RunChunk(*blocks, one, i, std::span(prompt).subspan(static_cast<size_t>(i), 1));
    alone.insert(alone.end(), row.begin(), row.end());
  }
  EXPECT_TRUE(SameBits(alone, answer));
}

// NVFP4's number for a whole tensor multiplies all of it.
TEST_F(GgufTypesTest, ScaleOfATensor) {
  std::vector<std::vector<float>> answers;
  for (const bool beside : {false, true}) {
    Twins twins = MakeTwins({}, [](const std::string&) { return "NVFP4"; });
    if (beside) {
      twins.blocks.AddTensor("blk.0.ffn_up.scale", 0, {1}, FloatBytes(std::vector<float>{4.0f}));
      twins.blocks.AddTensor("blk.0.ffn_down.scale", 0, {1}, FloatBytes(std::vector<float>{0.25f}));
      twins.blocks.AddTensor("blk.0.ffn_down.input_scale", 0, {1},
                             FloatBytes(std::vector<float>{7.0f}));
    }
    std::vector<std::string> notes;
    const std::string path = Put("blocks.gguf", twins.blocks.File());
    ASSERT_TRUE(LoadModel(path, {}, [&](const std::string& note) { notes.push_back(note); }).ok());
    EXPECT_TRUE(notes.empty()) << notes[0];
    answers.push_back(Answer(*Load(path)));
  }
  // Four times as much, and a quarter of it.
  EXPECT_LT(RelativeError(answers[1], answers[0]), 1e-4);
  Twins twins = MakeTwins({}, [](const std::string&) { return "NVFP4"; });
  twins.blocks.AddTensor("blk.0.ffn_up.scale", 0, {1}, FloatBytes(std::vector<float>{4.0f}));
  EXPECT_GT(RelativeError(Answer(*Load(Put("blocks.gguf", twins.blocks.File()))), answers[0]), 0.1);
}

TEST_F(GgufTypesTest, Version2) {
  const Twins twins = MakeTwins({}, [](const std::string&) { return "Q5_0"; });
  std::string bytes = twins.blocks.File();
  const std::vector<float> answer = Answer(*Load(Put("model.gguf", bytes)));
  bytes[4] = 2;
  EXPECT_TRUE(SameBits(Answer(*Load(Put("model.gguf", bytes))), answer));
}

// ---- Several files ----

// The same model in three files; `change` may spoil the writers.
std::vector<std::string> MakeParts(const std::function<void(std::vector<GgufWriter>&)>& change) {
  std::vector<GgufWriter> parts(3);
  std::mt19937 random(4);
  size_t tensors = 0;
  WriteModel(
      {},
      [&](const std::string&, int64_t rows, int64_t cols) -> Bytes {
        return {6, RandomBlocks(TypeNamed("Q5_0"), rows * cols, random)};
      },
      parts[0],
      [&](const std::string& name) -> GgufWriter& {
        ++tensors;
        return parts[name.starts_with("blk.0") ? 1 : name.starts_with("blk.1") ? 2 : 0];
      });
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].Add("split.no", static_cast<uint16_t>(i));
    parts[i].Add("split.count", static_cast<uint16_t>(3));
    parts[i].Add("split.tensors.count", static_cast<int>(tensors));
  }
  change(parts);
  std::vector<std::string> files;
  for (const GgufWriter& part : parts) files.push_back(part.File());
  return files;
}

TEST_F(GgufTypesTest, PartsOfASplitModel) {
  const auto put = [&](const std::vector<std::string>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      Put("m-0000" + std::to_string(i + 1) + "-of-00003.gguf", parts[i]);
    }
    return folder_ + "/m-00001-of-00003.gguf";
  };
  const std::string first = put(MakeParts([](auto&) {}));
  const std::vector<float> answer = Answer(*Load(first));
  const Twins whole = MakeTwins({}, [](const std::string&) { return "Q5_0"; });
  EXPECT_TRUE(SameBits(Answer(*Load(Put("whole.gguf", whole.blocks.File()))), answer));
  const Result<GgufFile> file = GgufFile::Open(first);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->PathOf("blk.1.attn_q.weight"), folder_ + "/m-00003-of-00003.gguf");
  EXPECT_EQ(file->PathOf("output_norm.weight"), first);
  EXPECT_EQ(*ContextLengthOf(first), 128);

  const auto refused = [&](const std::string& path, const std::string& place,
                           const std::string& part) {
    SCOPED_TRACE(part);
    const Result<std::unique_ptr<Model>> model = LoadModel(path);
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().place, place);
    EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
  };
  const std::string second = folder_ + "/m-00002-of-00003.gguf";
  const std::string third = folder_ + "/m-00003-of-00003.gguf";
  refused(second, second, "is part 2 of 3; the model is named by its first part");
  fs::copy_file(first, folder_ + "/other.gguf");
  refused(folder_ + "/other.gguf", folder_ + "/other.gguf",
          "its name ends in -00001-of-00003.gguf");
  fs::rename(second, folder_ + "/away");
  refused(first, second, "part 2 of 3: ");
  fs::copy_file(third, second);
  refused(first, second + ": split.no", "is not part 2 of 3");
  put(MakeParts([](std::vector<GgufWriter>& parts) {
    parts[2].AddTensor("output_norm.weight", 0, {1}, "abcd");
  }));
  refused(first, third, "\"output_norm.weight\" is in an earlier part too");
  put(MakeParts(
      [](std::vector<GgufWriter>& parts) { parts[1].AddTensor("more", 0, {1}, "abcd"); }));
  refused(first, first + ": split.tensors.count", "is 20; the parts have 21 tensors");
}

// ---- Memory ----

TEST_F(GgufTypesTest, WhatWeightsTakeIsSaidBeforeTheyAreRead) {
  Shape large;
  large.vocabulary = 20000;
  std::vector<std::string> notes;
  const Twins twins = MakeTwins(large, [](const std::string&) { return "IQ1_S"; });
  const std::string path = Put("model.gguf", twins.blocks.File());
  ASSERT_TRUE(LoadModel(path, {}, [&](const std::string& note) { notes.push_back(note); }).ok());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0],
            "the weights take 2.5 MiB of memory; the files have 1.2 MiB (a weight of IQ1_S takes "
            "3.38 bits)");
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Of this process, in bytes: the most since the last call with `reset`.
int64_t PeakResident(bool reset) {
  if (reset) std::ofstream("/proc/self/clear_refs") << "5";
  std::ifstream status("/proc/self/status");
  int64_t kib = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) kib = std::stoll(line.substr(6));
  }
  return kib * 1024;
}

// Pages of the file are freed as they are unpacked. They stayed, and a file took its size
// twice.
TEST_F(GgufTypesTest, LoadingTakesLittleMoreThanTheFile) {
  Shape large;
  large.hidden = 1024;
  large.inner = 2816;
  large.heads = 16;
  large.layers = 4;
  large.vocabulary = 32768;
  for (const char* name : {"Q4_0", "Q4_K", "Q6_K", "IQ4_XS"}) {
    SCOPED_TRACE(name);
    const TypeCase& type = TypeNamed(name);
    std::mt19937 random(4);
    const std::string some = RandomBlocks(type, 16384, random);
    std::string path;
    int64_t file_bytes = 0;
    {
      GgufWriter writer;
      WriteModel(
          large,
          [&](const std::string&, int64_t rows, int64_t cols) -> Bytes {
            std::string bytes;
            for (int64_t i = 0; i < rows * cols / 16384; ++i) bytes += some;
            return {type.id, std::move(bytes)};
          },
          writer, [&](const std::string&) -> GgufWriter& { return writer; });
      const std::string bytes = writer.File();
      file_bytes = static_cast<int64_t>(bytes.size());
      path = Put("model.gguf", bytes);
    }
    const Result<GgufFile> opened = GgufFile::Open(path);
    ASSERT_TRUE(opened.ok());
    const Result<TransformerConfig> config = ReadGgufConfig(*opened);
    ASSERT_TRUE(config.ok());
    auto source = std::make_unique<GgufFile>(*GgufFile::Open(path));
#if defined(__GLIBC__)
    (void)::malloc_trim(0);  // what writing the file took would count as taken before
#endif
    const int64_t before = PeakResident(true);
    const Result<TransformerWeights> weights = LoadTransformerWeights(
        std::move(source), *config, GgufNames(*config), nullptr, WeightDtype::kAsStored, 2);
    ASSERT_TRUE(weights.ok()) << weights.error().ToString();
    const int64_t took = PeakResident(false) - before;
    EXPECT_LT(static_cast<double>(took), 1.15 * static_cast<double>(file_bytes));
    EXPECT_GT(static_cast<double>(took), 0.9 * static_cast<double>(file_bytes)) << "the measure";
    RecordProperty(name,
                   std::to_string(static_cast<double>(took) / static_cast<double>(file_bytes)));
  }
}
#endif

}  // namespace
}  // namespace pawl
