// GGUF files: what a converter writes answers as the folder it was made from, and every damage is
// an error with the byte.
#include "src/model/gguf.h"

#include <unistd.h>

#include <filesystem>
#include <random>

#include "src/base/file.h"
#include "src/model/gguf_model.h"
#include "src/model/transformer_cpu.h"
#include "tests/model/gguf_writer.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

class GgufTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "pawl-gguf-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // In a file, loaded like any model.
  std::unique_ptr<Model> LoadBytes(const std::string& bytes) const {
    const std::string path = folder_ + "/model.gguf";
    EXPECT_TRUE(WriteFile(path, bytes).ok());
    ModelOptions options;
    options.threads = 1;
    Result<std::unique_ptr<Model>> model = LoadModel(path, options);
    if (model.ok()) return *std::move(model);
    ADD_FAILURE() << model.error().ToString();
    return nullptr;
  }

  std::string folder_;
};

Result<GgufFile> ParseBytes(const std::string& bytes) {
  return GgufFile::Parse({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, "F");
}

// The folder's model with the one setting that GGUF files cannot express changed to theirs.
std::unique_ptr<Model> LoadFolder(const std::string& name) {
  TransformerConfig config = *ReadTransformerConfig(GoldenFolder(name));
  for (Layer& layer : config.layers) layer.attention().scale = 0;  // 1 / sqrt(head_dim)
  Result<TransformerWeights> weights =
      LoadTransformerWeights(std::make_unique<Checkpoint>(*Checkpoint::Open(GoldenFolder(name))),
                             config, HuggingFaceNames(config), nullptr);
  return std::make_unique<TransformerCpu>(config, *std::move(weights),
                                          *FindKernels(KernelVariant::kAuto), 1);
}

struct Conversion {
  const char *name, *arch;
  bool exact;  // a rounding of the llama3 divisors is all that may differ
};
const Conversion kConversions[] = {
    {"llama-fp32-tied", "llama", true},   {"llama-bf16-llama3", "llama", false},
    {"smollm2-bf16", "llama", true},      {"llama-fp16-headdim-sharded", "llama", true},
    {"mistral-bf16", "llama", true},      {"mistral-fp16-window", "llama", true},
    {"qwen2-fp32-untied", "qwen2", true}, {"qwen3-bf16", "qwen3", true},
    {"gemma2-bf16", "gemma2", true},      {"gemma3-fp16-pattern", "gemma3", true}};

TEST_F(GgufTest, AnswersAsTheFolderItWasMadeFrom) {
  for (const Conversion& c : kConversions) {
    SCOPED_TRACE(c.name);
    const TransformerConfig config = *ReadTransformerConfig(GoldenFolder(c.name));
    const std::unique_ptr<Model> model = LoadBytes(WriteGolden(c.name, c.arch, config).File());
    ASSERT_NE(model, nullptr);
    const std::unique_ptr<Model> folder = LoadFolder(c.name);
    EXPECT_EQ(model->info().parameters, folder->info().parameters);
    EXPECT_EQ(model->info().end_tokens, config.end_tokens);
    EXPECT_EQ(model->info().bos, config.bos);
    for (const Golden& golden : ReadGoldens(c.name)) {
      const std::vector<float> logits =
          RunChunk(*model, MakeSequence(*model, 128), 0, golden.prompt);
      const std::vector<float> expected =
          RunChunk(*folder, MakeSequence(*folder, 128), 0, golden.prompt);
      EXPECT_LT(RelativeError(logits, expected), 2e-6);
      EXPECT_TRUE(!c.exact || SameBits(logits, expected));
    }
  }
}

TEST_F(GgufTest, YarnIsRead) {
  TransformerConfig config = *ReadTransformerConfig(GoldenFolder("qwen2-bf16-window-yarn"));
  for (Layer& layer : config.layers) layer.attention().window = 0;
  const std::string bytes = WriteGolden("qwen2-bf16-window-yarn", "qwen2", config).File();
  const Result<TransformerConfig> read = ReadGgufConfig(*ParseBytes(bytes));
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(read->ropes[0].type, RopeType::kYarn);
  EXPECT_EQ(read->ropes[0].original_context, 32.0);
  EXPECT_NEAR(read->ropes[0].attention_factor, config.ropes[0].attention_factor, 1e-6);
  EXPECT_EQ(read->context_length, 256);
}

TEST_F(GgufTest, MetadataOfEveryType) {
  GgufWriter writer;
  writer.Add("a.u32", 4000000000u);
  writer.Add("a.float", 0.5f);
  writer.Add("a.bool", true);
  writer.Add("a.text", std::string_view("h\xC3\xA9"));
  writer.Add("a.texts", std::vector<std::string>{"x", "", "yz"});
  writer.AddNumbers<int8_t>("a.i8", 1, {-1, 7});
  writer.AddNumbers<int16_t>("a.i16", 3, {-300});
  writer.AddNumbers<int64_t>("a.i64", 11, {-5000000000});
  writer.AddNumbers<double>("a.f64", 12, {0.25, -2});
  writer.AddNumbers<uint8_t>("a.bools", 7, {});
  const std::string bytes = writer.File();
  const Result<GgufFile> file = ParseBytes(bytes);
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  EXPECT_EQ(file->FindValue("a.u32")->number, 4000000000u);
  EXPECT_EQ(file->FindValue("a.float")->real, 0.5);
  EXPECT_EQ(file->FindValue("a.bool")->number, 1u);
  EXPECT_EQ(file->FindValue("a.text")->text, "h\xC3\xA9");
  EXPECT_EQ(file->FindValue("a.texts")->strings, (std::vector<std::string_view>{"x", "", "yz"}));
  EXPECT_EQ(file->FindValue("a.i8")->integers, (std::vector<int64_t>{-1, 7}));
  EXPECT_EQ(file->FindValue("a.i16")->integers, (std::vector<int64_t>{-300}));
  EXPECT_EQ(file->FindValue("a.i64")->integers, (std::vector<int64_t>{-5000000000}));
  EXPECT_EQ(file->FindValue("a.f64")->reals, (std::vector<float>{0.25f, -2.0f}));
  EXPECT_EQ(file->FindValue("a.bools")->size(), 0u);
  EXPECT_EQ(file->FindValue("b"), nullptr);
}

void ExpectRefused(const std::string& bytes, ErrorCode code, const std::string& place,
                   const std::string& part) {
  SCOPED_TRACE(part);
  const Result<GgufFile> file = ParseBytes(bytes);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(ErrorCodeName(file.error().code), std::string(ErrorCodeName(code)));
  EXPECT_EQ(file.error().place, "F: " + place) << file.error().message;
  EXPECT_NE(file.error().message.find(part), std::string::npos) << file.error().ToString();
}

TEST_F(GgufTest, DamageIsNamedWithItsByte) {
  const ErrorCode invalid = ErrorCode::kInvalid, unsupported = ErrorCode::kUnsupported;
  ExpectRefused("", invalid, "byte 0", "not a GGUF file");
  ExpectRefused("GGML1234", invalid, "byte 0", "not a GGUF file");
  ExpectRefused("GGUF\3", invalid, "byte 4", "ends within the version");
  ExpectRefused(std::string("GGUF\1\0\0\0", 8) + std::string(16, '\0'), unsupported, "byte 4",
                "version 1; expected 2 or 3");
  ExpectRefused(std::string("GGUF\0\0\0\3", 8) + std::string(16, '\0'), unsupported, "byte 4",
                "expected 2 or 3, little-endian");
  ExpectRefused(std::string("GGUF\3\0\0\0", 8) + std::string(8, '\xff'), invalid, "byte 8",
                "more than the 0 bytes");

  GgufWriter one;
  one.Add("k", std::string_view("text"));
  const std::string good = one.File();
  ASSERT_TRUE(ParseBytes(good).ok());
  const auto with = [&](size_t at, const std::string& patch) {
    std::string bytes = good;
    return bytes.replace(at, patch.size(), patch);
  };
  // 24: key length, 32: key, 33: type, 37: string length, 45: text.
  ExpectRefused(with(16, "\x09"), invalid, "byte 16", "number of metadata values is 9");
  ExpectRefused(with(24, std::string(8, '\x7f')), invalid, "byte 24", "a key's length");
  ExpectRefused(with(33, "\x0d"), invalid, "byte 33", "value type 13; expected 0 to 12");
  ExpectRefused(with(37, "\x70"), invalid, "byte 37", "a string's length is 112");
  ExpectRefused(with(33, std::string("\x09\0\0\0\x09", 5)), unsupported, "byte 37",
                "arrays of numbers, bools and strings");

  GgufWriter twice;
  twice.Add("k", 1);
  twice.Add("k", 2);
  ExpectRefused(twice.File(), invalid, "byte 41", "is there twice");
  GgufWriter alignment;
  alignment.Add("general.alignment", 24);
  ExpectRefused(alignment.File(), invalid, "byte 53", "power of two");
  GgufWriter boolean;
  boolean.Add("k", true);
  std::string bytes = boolean.File();
  bytes[37] = 2;
  ExpectRefused(bytes, invalid, "byte 37", "a bool is 2");
}

TEST_F(GgufTest, HostileTensors) {
  const ErrorCode invalid = ErrorCode::kInvalid;
  const auto one = [](uint32_t type, std::vector<int64_t> shape, size_t size) {
    GgufWriter writer;
    writer.AddTensor("t", type, std::move(shape), std::string(size, '\1'));
    return writer.File();
  };
  // 24: name length, 32: name, 33: rank, 37: dimensions.
  ASSERT_TRUE(ParseBytes(one(0, {2, 3}, 24)).ok());
  EXPECT_EQ(ParseBytes(one(0, {2, 3}, 24))->Find("t")->shape, (std::vector<int64_t>{2, 3}));
  ExpectRefused(one(0, {2, 5}, 24), invalid, "byte 24", "truncated file?");
  ExpectRefused(one(0, {1, 1, 1, 1, 1}, 4), ErrorCode::kLimit, "byte 33", "5 dimensions");
  ExpectRefused(one(0, {int64_t{1} << 40, int64_t{1} << 40}, 4), invalid, "byte 37", "overflows");
  ExpectRefused(one(0, {-1}, 4), invalid, "byte 37", "overflows");
  ExpectRefused(one(0, {int64_t{1} << 62}, 4), invalid, "byte 37", "size overflows");
  ExpectRefused(one(99, {4}, 16), ErrorCode::kUnsupported, "byte 45", "tensor type 99");
  ExpectRefused(one(8, {2, 33}, 136), invalid, "byte 37", "tensor \"t\": rows of Q8_0");
  ExpectRefused(one(8, {2, 33}, 136), invalid, "byte 37", "multiple of 32");
  std::string bytes = one(0, {2}, 8);
  bytes[49] = 4;
  ExpectRefused(bytes, invalid, "byte 49", "no multiple of the alignment 32");
  bytes[49] = 0;
  bytes[56] = '\x7f';
  ExpectRefused(bytes, invalid, "byte 24", "truncated file?");
  GgufWriter twice;
  twice.AddTensor("t", 0, {1}, "abcd");
  twice.AddTensor("t", 0, {1}, "abcd");
  ExpectRefused(twice.File(), invalid, "byte 57", "is there twice");
}

// Bug: tensors on top of each other, or with space between them, were taken.
TEST_F(GgufTest, TensorsThatOverlapOrLeaveHoles) {
  GgufWriter writer;
  writer.AddTensor("a", 0, {2}, std::string(8, '\1'));
  writer.AddTensor("b", 0, {10}, std::string(40, '\2'));
  writer.AddTensor("c", 0, {2}, std::string(8, '\3'));
  const std::string good = writer.File();
  ASSERT_TRUE(ParseBytes(good).ok()) << "padding to the alignment is no hole";
  // A tensor is 8 + 1 + 4 + 8 + 4 bytes and its offset, 8.
  const auto with = [&](size_t tensor, uint64_t offset) {
    std::string bytes = good;
    std::memcpy(bytes.data() + 24 + tensor * 33 + 25, &offset, sizeof offset);
    return bytes;
  };
  ASSERT_EQ(with(1, 32), good);
  const ErrorCode invalid = ErrorCode::kInvalid;
  ExpectRefused(
      with(1, 0), invalid, "byte 57",
      "the tensor \"b\" begins 0 bytes into the data where 32 was expected: tensors overlap");
  ExpectRefused(with(2, 64), invalid, "byte 90",
                "the tensor \"c\" begins 64 bytes into the data where 96 was expected");
  ExpectRefused(with(1, 64) + std::string(32, '\0'), invalid, "byte 57", "\"b\" begins 64 bytes");
  // The order of the header is free.
  GgufWriter swapped;
  swapped.AddTensor("a", 0, {2}, std::string(8, '\1'));
  swapped.AddTensor("b", 0, {2}, std::string(8, '\1'));
  std::string bytes = swapped.File();
  bytes[24 + 25] = 32;
  bytes[24 + 33 + 25] = 0;
  const Result<GgufFile> file = ParseBytes(bytes);
  EXPECT_TRUE(file.ok()) << file.error().ToString();
}

TEST_F(GgufTest, SettingsThatAreNotKnownAreNamed) {
  const TransformerConfig config = *ReadTransformerConfig(GoldenFolder("llama-fp32-tied"));
  const auto refused = [&](const std::function<void(GgufWriter&)>& change, const std::string& key,
                           const std::string& part) {
    GgufWriter writer = WriteGolden("llama-fp32-tied", "llama", config);
    change(writer);
    const std::string bytes = writer.File();
    const Result<TransformerConfig> read = ReadGgufConfig(*ParseBytes(bytes));
    ASSERT_FALSE(read.ok()) << key;
    EXPECT_EQ(read.error().place, "F: " + key);
    EXPECT_NE(read.error().message.find(part), std::string::npos) << read.error().message;
  };
  refused([](GgufWriter& w) { w.Add("llama.expert_count", 8); }, "llama.expert_count", "not known");
  refused([](GgufWriter& w) { w.Add("llama.rope.dimension_count", 18); },
          "llama.rope.dimension_count", "is 18; expected an even number, at most the width");
  refused([](GgufWriter& w) { w.Add("llama.rope.scaling.type", std::string_view("longrope")); },
          "llama.rope.scaling.type",
          "is \"longrope\"; expected a tensor rope_factors_short.weight");
  refused([](GgufWriter& w) { w.Add("llama.rope.scaling.type", std::string_view("cubic")); },
          "llama.rope.scaling.type", "is \"cubic\"; expected none, linear, yarn or longrope");
  refused([](GgufWriter& w) { w.Add("llama.vocab_size", 9); }, "llama.vocab_size",
          "is 9; token_embd.weight has 257 rows");
  GgufWriter other;
  other.Add("general.architecture", std::string_view("mamba"));
  const std::string bytes = other.File();
  EXPECT_EQ(ReadGgufConfig(*ParseBytes(bytes)).error().place, "F: general.architecture");
  GgufWriter missing;
  missing.Add("general.architecture", std::string_view("llama"));
  const std::string none = missing.File();
  EXPECT_EQ(ReadGgufConfig(*ParseBytes(none)).error().place, "F: llama.embedding_length");
}

// Damage anywhere in the header: an error or a model, never a crash.
TEST_F(GgufTest, RandomDamage) {
  const TransformerConfig config = *ReadTransformerConfig(GoldenFolder("smollm2-bf16"));
  const std::string whole = WriteGolden("smollm2-bf16", "llama", config).File();
  std::mt19937 random(11);
  int good = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    for (int i = 1 + static_cast<int>(random() % 3); i > 0; --i) {
      bytes[random() % 2400] = static_cast<char>(random() % 2 == 0 ? random() % 40 : random());
    }
    if (round % 10 == 0) bytes.resize(random() % bytes.size());
    const Result<GgufFile> file = ParseBytes(bytes);
    if (!file.ok()) {
      EXPECT_NE(file.error().place.find("F: byte "), std::string::npos) << file.error().ToString();
      continue;
    }
    const Result<TransformerConfig> read = ReadGgufConfig(*file);
    if (!read.ok()) {
      EXPECT_FALSE(read.error().message.empty());
      continue;
    }
    (void)LoadTransformerWeights(std::make_unique<GgufFile>(*ParseBytes(bytes)), *read,
                                 GgufNames(*read), nullptr);
    ++good;
  }
  EXPECT_GT(good, 0);
  EXPECT_LT(good, 1900);
}

}  // namespace
}  // namespace pawl
