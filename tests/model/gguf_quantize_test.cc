// Files that `pawl quantize` writes: blocks as the reference implementations make them, types as
// llama.cpp mixes them, and nothing half-written under the name of the file.
#include "src/model/gguf_quantize.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/model/gguf.h"
#include "src/model/gguf_blocks.h"
#include "src/model/gguf_encode.h"
#include "src/model/gguf_folder.h"
#include "src/model/gguf_mixture.h"
#include "src/model/gguf_model.h"
#include "src/model/quantize.h"
#include "src/model/transformer_config.h"
#include "src/text/gguf_tokenizer.h"
#include "tests/model/gguf_writer.h"
#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

std::string Encoded(const std::string& type, const std::vector<float>& values) {
  const GgufType& format = *FindGgufType(type);
  const auto count = static_cast<int64_t>(values.size());
  std::string bytes(static_cast<size_t>(count / format.elements * format.bytes), '\0');
  EncodeBlocks(type, values.data(), count, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

std::vector<float> Decoded(const std::string& type, const std::string& bytes, size_t count) {
  const auto cols = static_cast<int64_t>(count);
  PackedRow row;
  PackBlocks(type, reinterpret_cast<const std::byte*>(bytes.data()), cols, row);
  std::vector<float> values(count);
  ReadPackedRow(*FormatOfBlocks(type), row, cols, values.data());
  return values;
}

double SquaredError(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return sum;
}

TEST(GgufEncodeTest, BlocksAreThoseOfTheReference) {
  const Result<SafetensorsFile> golden =
      SafetensorsFile::Open(SourceDir() + "/tests/data/models/gguf_encoded.safetensors");
  const auto floats = ReadTensor<float>(*golden, "floats");
  for (const char* type : {"F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K",
                           "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"}) {
    ASSERT_TRUE(CanEncode(type)) << type;
    const auto expected = ReadTensor<uint8_t>(*golden, type);
    const std::string bytes = Encoded(type, floats);
    const std::string reference(expected.begin(), expected.end());
    if (bytes == reference) continue;
    ASSERT_TRUE(FormatOfBlocks(type)) << type;
    const std::vector<float> ours = Decoded(type, bytes, floats.size());
    const std::vector<float> theirs = Decoded(type, reference, floats.size());
    if (std::string(type) == "IQ4_XS") {
      // The reference looks for the integers with a scale that it has not rounded yet.
      EXPECT_LE(SquaredError(ours, floats), SquaredError(theirs, floats));
    } else {
      // Groups with a scale of 0 may have any integers.
      EXPECT_TRUE(std::string(type).find("_K") != std::string::npos) << type;
      EXPECT_EQ(ours, theirs) << type;
    }
  }
  EXPECT_FALSE(CanEncode("IQ2_XXS"));
}

TEST(GgufEncodeTest, ErrorsOfNormalWeights) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.03f);
  std::vector<float> weights(size_t{256} * 200);
  for (float& w : weights) w = normal(random);
  // In standard deviations.
  const std::pair<const char*, double> bounds[] = {
      {"Q8_0", 0.0055},   {"Q6_K", 0.0180},   {"Q5_K", 0.0366}, {"Q5_1", 0.042},
      {"Q5_0", 0.0436},   {"Q4_K", 0.0725},   {"Q4_1", 0.082},  {"Q4_0", 0.088},
      {"IQ4_NL", 0.0775}, {"IQ4_XS", 0.0782}, {"Q3_K", 0.154},  {"Q2_K", 0.302}};
  for (const auto& [type, bound] : bounds) {
    const std::vector<float> back = Decoded(type, Encoded(type, weights), weights.size());
    const double count = static_cast<double>(weights.size());
    EXPECT_LT(std::sqrt(SquaredError(back, weights) / count) / 0.03, bound) << type;
  }
}

// What an encoder makes of weights that a block holds exactly is that block's worth.
TEST(GgufEncodeTest, SecondRoundingsChangeLittle) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 0.03f);
  std::vector<float> weights(size_t{256} * 50);
  for (float& w : weights) w = normal(random);
  for (const char* type : {"Q8_0", "Q6_K", "Q5_K", "Q5_1", "Q5_0", "Q4_K", "Q4_1", "Q4_0", "IQ4_NL",
                           "IQ4_XS", "Q3_K", "Q2_K"}) {
    const std::vector<float> once = Decoded(type, Encoded(type, weights), weights.size());
    const std::vector<float> twice = Decoded(type, Encoded(type, once), weights.size());
    EXPECT_LT(SquaredError(twice, once), 0.2 * SquaredError(once, weights)) << type;
  }
}

class GgufQuantizeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "pawl-quantize-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Put(const std::string& name, const std::string& bytes) const {
    EXPECT_TRUE(WriteFile(Path(name), bytes).ok());
    return Path(name);
  }
  // Of F32 matrices, with rows of `cols`.
  static GgufWriter Matrices(const std::vector<std::pair<std::string, int64_t>>& matrices,
                             int layers, int heads, int kv_heads,
                             const std::string& arch = "llama") {
    GgufWriter out;
    out.Add("general.architecture", std::string_view(arch));
    out.Add(arch + ".block_count", layers);
    out.Add(arch + ".attention.head_count", heads);
    out.Add(arch + ".attention.head_count_kv", kv_heads);
    for (const auto& [name, cols] : matrices) {
      out.AddTensor(name, 0, {2, cols}, std::string(static_cast<size_t>(cols) * 8, '\0'));
    }
    return out;
  }
  std::map<std::string, std::string> TypesOf(const GgufWriter& writer,
                                             const std::string& type) const {
    const Result<GgufFile> file = GgufFile::Open(Put("types.gguf", writer.File()));
    const GgufMixture mixture(*file, *FindGgufFileType(type));
    std::map<std::string, std::string> types;
    for (const std::string& name : file->Names()) types[name] = mixture.TypeOf(name);
    return types;
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string folder_;
};

// Typed by hand from the rules of llama.cpp for 24 layers.
TEST_F(GgufQuantizeTest, TypesAreMixedAsLlamaCppDoes) {
  std::vector<std::pair<std::string, int64_t>> matrices = {{"token_embd.weight", 512},
                                                           {"output.weight", 512}};
  for (int i = 0; i < 24; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up",
                             "ffn_down", "attn_norm"}) {
      matrices.emplace_back(layer + name + ".weight", 512);
    }
  }
  const GgufWriter writer = Matrices(matrices, 24, 32, 8);
  const std::string more = "0 1 2 5 8 11 14 17 20 21 22 23";  // layers with more bits
  const auto layers = [](const std::map<std::string, std::string>& types, const std::string& name,
                         const std::string& type) {
    std::string found;
    for (int i = 0; i < 24; ++i) {
      if (types.at("blk." + std::to_string(i) + "." + name + ".weight") != type) continue;
      found += (found.empty() ? "" : " ") + std::to_string(i);
    }
    return found;
  };
  auto types = TypesOf(writer, "Q4_K_M");
  EXPECT_EQ(types["output.weight"], "Q6_K");
  EXPECT_EQ(types["token_embd.weight"], "Q4_K");
  EXPECT_EQ(types["blk.3.attn_norm.weight"], "F32");
  EXPECT_EQ(layers(types, "attn_v", "Q6_K"), more);
  EXPECT_EQ(layers(types, "ffn_down", "Q6_K"), more);
  EXPECT_EQ(layers(types, "attn_output", "Q4_K").size(), size_t{61});  // all
  types = TypesOf(writer, "q4_k_s");
  EXPECT_EQ(layers(types, "attn_v", "Q5_K"), "0 1 2 3");
  EXPECT_EQ(layers(types, "ffn_down", "Q5_K"), "0 1 2");
  types = TypesOf(writer, "Q3_K_M");
  EXPECT_EQ(layers(types, "attn_v", "Q5_K"), "0 1");
  EXPECT_EQ(layers(types, "attn_v", "Q4_K").size(), size_t{57});
  EXPECT_EQ(layers(types, "ffn_down", "Q5_K"), "0");
  EXPECT_EQ(layers(types, "ffn_down", "Q4_K").size(), size_t{59});
  EXPECT_EQ(layers(types, "attn_output", "Q4_K").size(), size_t{61});
  EXPECT_EQ(types["blk.7.ffn_up.weight"], "Q3_K");
  types = TypesOf(writer, "Q2_K");
  EXPECT_EQ(types["blk.7.attn_v.weight"], "Q4_K");  // four query heads share one
  EXPECT_EQ(types["blk.7.ffn_down.weight"], "Q3_K");
  EXPECT_EQ(types["blk.7.attn_output.weight"], "Q3_K");
  EXPECT_EQ(types["blk.7.attn_q.weight"], "Q2_K");
  types = TypesOf(writer, "IQ4_XS");
  EXPECT_EQ(types["blk.7.attn_v.weight"], "Q5_K");
  EXPECT_EQ(layers(types, "ffn_down", "Q5_K"), "0 1 2");
  types = TypesOf(writer, "Q8_0");
  EXPECT_EQ(types["output.weight"], "Q8_0");
  types = TypesOf(writer, "F16");
  EXPECT_EQ(types["output.weight"], "F16");
  EXPECT_EQ(types["blk.3.attn_norm.weight"], "F32");
}

TEST_F(GgufQuantizeTest, RowsThatBlocksDoNotDivideGetOtherTypes) {
  const GgufWriter writer = Matrices({{"token_embd.weight", 576},
                                      {"blk.0.attn_q.weight", 576},
                                      {"blk.0.attn_v.weight", 576},
                                      {"blk.0.ffn_down.weight", 1536},
                                      {"blk.0.ffn_up.weight", 40}},
                                     1, 9, 3);
  const struct {
    const char *type, *embedding, *query, *value, *down;
  } cases[] = {
      {"Q4_K_M", "Q8_0", "Q5_0", "Q8_0", "Q6_K"},       {"Q5_K_S", "Q8_0", "Q5_1", "Q5_1", "Q5_K"},
      {"Q6_K", "Q8_0", "Q8_0", "Q8_0", "Q6_K"},         {"Q3_K_S", "Q8_0", "Q4_0", "Q4_0", "Q3_K"},
      {"IQ4_XS", "Q8_0", "IQ4_NL", "IQ4_NL", "IQ4_XS"}, {"Q4_0", "Q8_0", "Q4_0", "Q4_0", "Q4_0"}};
  for (const auto& c : cases) {
    auto types = TypesOf(writer, c.type);
    // Tied: the embedding is the head.
    EXPECT_EQ(types["token_embd.weight"], c.embedding) << c.type;
    EXPECT_EQ(types["blk.0.attn_q.weight"], c.query) << c.type;
    EXPECT_EQ(types["blk.0.attn_v.weight"], c.value) << c.type;
    EXPECT_EQ(types["blk.0.ffn_down.weight"], c.down) << c.type;
    EXPECT_EQ(types["blk.0.ffn_up.weight"], "F16") << c.type;
  }
  auto types = TypesOf(Matrices({{"blk.0.attn_v.weight", 512}}, 80, 64, 8), "Q4_K_S");
  EXPECT_EQ(types["blk.0.attn_v.weight"], "Q5_K");
  types = TypesOf(Matrices({{"blk.0.attn_v.weight", 512}}, 80, 64, 8), "Q3_K_S");
  EXPECT_EQ(types["blk.0.attn_v.weight"], "Q5_K");  // of a model of 80 layers
}

TEST_F(GgufQuantizeTest, WhatIsWrittenAnswersAsItsWeights) {
  const std::string golden = "llama-fp32-tied";
  const TransformerConfig config = *ReadTransformerConfig(GoldenFolder(golden));
  const std::string in = Put("in.gguf", WriteGolden(golden, "llama", config).File());
  const std::vector<TokenId> prompt = ReadGoldens(golden)[2].prompt;
  const std::vector<float> expected = ReadGoldens(golden)[2].logits;
  const std::pair<const char*, double> bounds[] = {
      {"F32", 1e-5}, {"F16", 1e-3},    {"BF16", 1e-2}, {"Q8_0", 0.05},  {"Q6_K", 0.05},
      {"Q5_1", 0.2}, {"Q4_K_M", 0.25}, {"Q4_0", 0.45}, {"IQ4_NL", 0.4}, {"Q2_K", 0.45}};
  for (const auto& [type, bound] : bounds) {
    SCOPED_TRACE(type);
    const Result<QuantizeReport> report = QuantizeGguf(in, Path("out.gguf"), type, {});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_EQ(report->bytes_after, static_cast<int64_t>(fs::file_size(Path("out.gguf"))));
    EXPECT_EQ(report->quantized_before, 0);
    const Result<std::unique_ptr<Model>> model = LoadModel(Path("out.gguf"));
    ASSERT_TRUE(model.ok()) << model.error().ToString();
    const std::vector<float> logits = RunChunk(**model, MakeSequence(**model, 64), 0, prompt);
    EXPECT_LT(RelativeError(logits, expected), bound);
    // All metadata is kept.
    const Result<GgufFile> before = GgufFile::Open(in), after = GgufFile::Open(Path("out.gguf"));
    for (const auto& [key, value] : before->values()) {
      ASSERT_NE(after->FindValue(key), nullptr) << key;
      EXPECT_EQ(after->FindValue(key)->raw, value.raw) << key;
    }
    EXPECT_EQ(after->FindValue("general.file_type")->number, FindGgufFileType(type)->id);
    EXPECT_EQ(after->FindValue("general.quantization_version")->number, 2u);
  }
}

TEST_F(GgufQuantizeTest, ThreadsChangeNoByte) {
  const std::string golden = "llama-fp32-tied";
  const TransformerConfig config = *ReadTransformerConfig(GoldenFolder(golden));
  const std::string in = Put("in.gguf", WriteGolden(golden, "llama", config).File());
  for (const int threads : {1, 4}) {
    const std::string out = Path("out" + std::to_string(threads));
    double last = 0;
    QuantizeOptions options;
    options.threads = threads;
    options.progress = [&last](double share) { last = share; };
    ASSERT_TRUE(QuantizeGguf(in, out, "Q5_0", options).ok());
    EXPECT_EQ(last, 1.0);
  }
  EXPECT_TRUE(*ReadFile(Path("out1")) == *ReadFile(Path("out4")));
  // A file that is quantized already is rounded again, and says so.
  const Result<QuantizeReport> again = QuantizeGguf(Path("out1"), Path("again"), "Q8_0", {});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->quantized_before, 14);
  // To its own type: the same tensors.
  ASSERT_TRUE(QuantizeGguf(Path("out1"), Path("same"), "Q5_0", {}).ok());
  EXPECT_TRUE(*ReadFile(Path("same")) == *ReadFile(Path("out1")));
}

TEST_F(GgufQuantizeTest, PartsOfASplitModelBecomeOneFile) {
  const auto part = [](int number) {
    GgufWriter out;
    if (number == 0) out.Add("general.architecture", std::string_view("llama"));
    out.Add("split.no", static_cast<uint16_t>(number));
    out.Add("split.count", uint16_t{2});
    const std::vector<float> values(64, static_cast<float>(number + 1));
    out.AddTensor("blk." + std::to_string(number) + ".ffn_up.weight", 0, {2, 32},
                  std::string(reinterpret_cast<const char*>(values.data()), 256));
    return out.File();
  };
  const std::string in = Put("m-00001-of-00002.gguf", part(0));
  Put("m-00002-of-00002.gguf", part(1));
  ASSERT_TRUE(QuantizeGguf(in, Path("one.gguf"), "Q8_0", {}).ok());
  const Result<GgufFile> one = GgufFile::Open(Path("one.gguf"));
  ASSERT_TRUE(one.ok()) << one.error().ToString();
  EXPECT_EQ(one->FindValue("split.count"), nullptr);
  ASSERT_NE(one->Find("blk.1.ffn_up.weight"), nullptr);
  EXPECT_EQ(one->Find("blk.1.ffn_up.weight")->dtype, "Q8_0");
  const Result<QuantizeReport> onto = QuantizeGguf(in, Path("m-00002-of-00002.gguf"), "Q8_0", {});
  EXPECT_EQ(onto.error().ToString(), Path("m-00002-of-00002.gguf") + ": is a file that is read");
}

TEST_F(GgufQuantizeTest, ErrorsLeaveNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto file = [&](float bad) {
    GgufWriter out;
    out.Add("general.architecture", std::string_view("llama"));
    std::vector<float> values(size_t{64} * 4096, 0.5f);
    values[size_t{3} * 4096 + 7] = bad;
    const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * 4);
    out.AddTensor("blk.0.ffn_up.weight", 0, {64, 4096}, bytes);
    return Put("in.gguf", out.File());
  };
  const auto error = [&](const std::string& in, const std::string& out, const char* type) {
    const Result<QuantizeReport> report = QuantizeGguf(in, out, type, {});
    return report.ok() ? std::string() : report.error().ToString();
  };
  const std::string in = file(nan), out = Path("out.gguf");
  const std::string place = in + ": tensor \"blk.0.ffn_up.weight\": row 3 has a weight that ";
  const std::string end = " cannot hold: an infinity, NaN, or more than 65504";
  EXPECT_EQ(error(in, out, "Q4_0"), place + "Q4_0" + end);
  file(std::numeric_limits<float>::infinity());
  EXPECT_EQ(error(in, out, "BF16"), place + "BF16" + end);
  file(70000.0f);
  EXPECT_EQ(error(in, out, "F16"), place + "F16" + end);
  EXPECT_EQ(Files(), std::vector<std::string>{"in.gguf"});
  EXPECT_EQ(error(in, out, "BF16"), "");
  fs::remove(out);
  file(0.5f);
  EXPECT_EQ(error(in, out, "Q9"), "type: is \"Q9\"; expected one of " + GgufFileTypeNames());
  EXPECT_EQ(error(in, in, "Q8_0"), in + ": is a file that is read");
  EXPECT_EQ(error(in, Path("none/out.gguf"), "Q8_0"),
            Path("none/out.gguf") + ": cannot be written: No such file or directory");
  fs::create_directory(Path("folder"));
  EXPECT_EQ(error(in, Path("folder"), "Q8_0"),
            Path("folder") + ": cannot be written: is no regular file");
  fs::remove(Path("folder"));
  // A disk that is full, as a limit on the size of files: known before anything is written.
  struct rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 100000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string full = error(in, out, "Q8_0");
  setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old);
  EXPECT_TRUE(full.starts_with(out + ": cannot be written: File too large")) << full;
  EXPECT_EQ(Files(), std::vector<std::string>{"in.gguf"});
}

// A tokenizer.json with a token for each byte, in the spelling of byte-level BPE, and two more.
std::string ByteTokenizer(const std::string& pre_tokenizer) {
  std::string words;
  uint32_t others = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool shown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    std::string text;
    AppendUtf8(shown ? byte : others++, text);
    words += (byte == 0 ? "" : ",") + json::Quote(text) + ":" + std::to_string(byte);
  }
  return R"({"added_tokens":[{"id":256,"content":"<s>","special":true},
            {"id":257,"content":"<own>","special":false}],"normalizer":null,"pre_tokenizer":)" +
         pre_tokenizer + R"(,"post_processor":null,"decoder":{"type":"ByteLevel"},
            "model":{"type":"BPE","vocab":{)" +
         words + R"(},"merges":[]}})";
}

constexpr const char* kGpt2Words =
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";

// The file says what the folder says: settings, tokens, template, and every logit.
TEST_F(GgufQuantizeTest, FoldersBecomeFiles) {
  fs::copy(GoldenFolder("llama-bf16-llama3"), Path("model"));
  Put("model/tokenizer.json", ByteTokenizer(kGpt2Words));
  Put("model/tokenizer_config.json", R"({"chat_template":"{{ messages[0].content }}"})");
  const std::string in = Path("model"), out = Path("out.gguf");
  const Result<QuantizeReport> done = QuantizeGguf(in, out, "BF16", {});
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  const Result<GgufFile> file = GgufFile::Open(out);
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  EXPECT_EQ(file->FindValue("tokenizer.ggml.pre")->text, "gpt-2");
  EXPECT_EQ(file->FindValue("tokenizer.chat_template")->text, "{{ messages[0].content }}");
  const GgufValue* types = file->FindValue("tokenizer.ggml.token_type");
  EXPECT_EQ(types->integers[255], 1);
  EXPECT_EQ(types->integers[256], 3);
  EXPECT_EQ(types->integers[257], 4);
  EXPECT_EQ(types->integers[258], 5);
  EXPECT_EQ(file->Find("output_norm.weight")->dtype, "F32");
  ASSERT_NE(file->Find("rope_freqs.weight"), nullptr);
  const auto tokens = ReadGgufVocabulary(*file);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ((*MakeGgufTokenizer(*tokens))->Encode("a b"), (std::vector<TokenId>{97, 32, 98}));

  const std::vector<TokenId> ids = {5, 17, 200, 3, 99, 42, 7};
  const auto logits = [&ids](const std::string& path) {
    Result<std::unique_ptr<Model>> model = LoadModel(path);
    EXPECT_TRUE(model.ok()) << path;
    return RunChunk(**model, *(*model)->NewSequence(64), 0, ids);
  };
  const std::vector<float> of_folder = logits(in), of_file = logits(out);
  ASSERT_EQ(of_folder.size(), of_file.size());
  for (size_t i = 0; i < of_file.size(); ++i) ASSERT_NEAR(of_file[i], of_folder[i], 1e-4) << i;
  // Rows of queries change their places in other types as well.
  const std::string small = Path("small.gguf");
  ASSERT_TRUE(QuantizeGguf(in, small, "Q8_0", {}).ok());
  const std::vector<float> rounded = logits(small);
  double off = 0, all = 0;
  for (size_t i = 0; i < rounded.size(); ++i) {
    off += std::pow(rounded[i] - of_folder[i], 2);
    all += std::pow(of_folder[i], 2);
  }
  EXPECT_LT(off, 1e-2 * all);
}

// Rows that are turned for GGUF, rows that are so in the folder, and norms behind the layers alone.
TEST_F(GgufQuantizeTest, FoldersOfOtherFamiliesBecomeFiles) {
  for (const std::string name : {"ernie4_5", "olmo2", "smollm3", "hunyuan", "seed_oss"}) {
    const std::string in = Path(name), out = Path(name + ".gguf");
    fs::copy(GoldenFolder("families/" + name), in);
    fs::remove(in + "/model.gguf");
    std::string tokenizer = R"({"pre_tokenizer":)" + std::string(kGpt2Words) +
                            R"(,"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{)";
    for (int i = 0; i < 96; ++i) {
      tokenizer += (i > 0 ? "," : "") +
                   json::Quote(i < 94 ? std::string(1, char('!' + i)) : "a" + std::to_string(i)) +
                   ":" + std::to_string(i);
    }
    Put(name + "/tokenizer.json", tokenizer + R"(},"merges":[]}})");
    const Result<QuantizeReport> done = QuantizeGguf(in, out, "F32", {});
    ASSERT_TRUE(done.ok()) << name << ": " << done.error().ToString();
    const std::vector<TokenId> ids = {5, 17, 90, 3, 9, 42, 7};
    std::vector<float> logits[2];
    for (const std::string& path : {in, out}) {
      Result<std::unique_ptr<Model>> model = LoadModel(path);
      ASSERT_TRUE(model.ok()) << model.error().ToString();
      logits[path == out] = RunChunk(**model, *(*model)->NewSequence(64), 0, ids);
    }
    ASSERT_EQ(logits[0].size(), logits[1].size());
    for (size_t i = 0; i < logits[0].size(); ++i)
      ASSERT_NEAR(logits[1][i], logits[0][i], 2e-3) << name;
  }
}

TEST_F(GgufQuantizeTest, FoldersThatFilesCannotSay) {
  const auto error = [this](const std::string& model) {
    const Result<QuantizeReport> done = QuantizeGguf(Path(model), Path("out.gguf"), "Q8_0", {});
    EXPECT_FALSE(fs::exists(Path("out.gguf")));
    return done.ok() ? "" : done.error().ToString();
  };
  fs::copy(GoldenFolder("llama-bf16-llama3"), Path("words"));
  Put("words/tokenizer.json", ByteTokenizer(R"({"type":"Sequence","pretokenizers":[
      {"type":"Split","pattern":{"Regex":"x+"},"behavior":"Isolated","invert":false},)" +
                                            std::string(kGpt2Words) + "]}"));
  EXPECT_EQ(error("words"), Path("words/tokenizer.json") +
                                ": cuts words in a way that GGUF has no name for; this is not "
                                "written to GGUF files here");
  fs::copy(GoldenFolder("gemma2-bf16"), Path("gemma"));
  Put("gemma/tokenizer.json", ByteTokenizer(kGpt2Words));
  EXPECT_EQ(error("gemma"), Path("gemma") +
                                ": is of the family Gemma2ForCausalLM; this is not written to GGUF "
                                "files here");
  // More tokens than the embedding has rows.
  fs::copy(GoldenFolder("smollm2-bf16"), Path("few"));
  Put("few/tokenizer.json", ByteTokenizer(kGpt2Words));
  EXPECT_EQ(error("few"), Path("few/tokenizer.json") +
                              ": has tokens without a row of the embedding; this is not written to "
                              "GGUF files here");
  // The weights that are read are not written over.
  fs::copy(GoldenFolder("llama-bf16-llama3"), Path("own"));
  Put("own/tokenizer.json", ByteTokenizer(kGpt2Words));
  const std::string weights = Path("own/model.safetensors");
  EXPECT_EQ(QuantizeGguf(Path("own"), weights, "Q8_0", {}).error().ToString(),
            weights + ": is a file that is read");
}

TEST_F(GgufQuantizeTest, OldFilesStayUntilNewOnesAreWhole) {
  GgufWriter writer = Matrices({{"blk.0.ffn_up.weight", 64}}, 1, 1, 1);
  const std::string in = Put("in.gguf", writer.File());
  const std::string out = Put("out.gguf", "old");
  std::vector<std::string> seen;
  QuantizeOptions options;
  options.progress = [&](double) { seen.push_back(*ReadFile(out)); };
  ASSERT_TRUE(QuantizeGguf(in, out, "Q8_0", options).ok());
  EXPECT_EQ(seen, std::vector<std::string>{"old"});
  EXPECT_TRUE(GgufFile::Open(out).ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"in.gguf", "out.gguf"}));
}

}  // namespace
}  // namespace pawl
