// Checkpoints that are damaged, hostile, or not ours: each is refused with the file and the tensor
// or key, whatever its bytes.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <regex>

#include "src/base/file.h"
#include "src/model/transformer_config.h"
#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

class LoadingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "pawl-loading-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void CopyGolden(const std::string& name) {
    for (const auto& entry : fs::directory_iterator(GoldenFolder(name))) {
      fs::copy_file(entry.path(), fs::path(folder_) / entry.path().filename(),
                    fs::copy_options::overwrite_existing);
    }
  }
  std::string Path(const std::string& file) const { return folder_ + "/" + file; }
  std::string Read(const std::string& file) const { return *ReadFile(Path(file)); }
  void Write(const std::string& file, const std::string& content) const {
    ASSERT_TRUE(WriteFile(Path(file), content).ok());
  }
  void Replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = Read(file);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in " << text;
    Write(file, text.replace(at, from.size(), to));
  }
  // A safetensors file of a header and `bytes` bytes of data.
  static std::string Safetensors(const std::string& header, size_t bytes) {
    std::string file(8, '\0');
    for (size_t i = 0; i < 8; ++i) {
      file[i] = static_cast<char>(static_cast<uint64_t>(header.size()) >> 8 * i & 255);
    }
    return file + header + std::string(bytes, '\x3c');
  }

  // Puts a tensor behind the others of model.safetensors.
  void AddTensor(const std::string& name, const std::string& dtype, const std::string& shape,
                 const std::string& bytes) const {
    const std::string file = Read("model.safetensors");
    uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    std::string header = file.substr(8, length);
    header.resize(header.rfind('}'));
    const std::string data = file.substr(8 + length);
    header += ",\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
              ",\"data_offsets\":[" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + bytes.size()) + "]}}";
    Write("model.safetensors", Safetensors(header, 0) + data + bytes);
  }

  void ExpectRefused(ErrorCode code, const std::string& place, const std::string& part) const {
    const Result<std::unique_ptr<Model>> model = LoadModel(folder_);
    ASSERT_FALSE(model.ok()) << part;
    EXPECT_EQ(ErrorCodeName(model.error().code), std::string(ErrorCodeName(code)))
        << model.error().ToString();
    EXPECT_EQ(model.error().place, folder_ + place);
    EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().ToString();
  }

  std::string folder_;
};

TEST_F(LoadingTest, MissingFiles) {
  ExpectRefused(ErrorCode::kIo, "/config.json", "cannot read");
  CopyGolden("llama-fp32-tied");
  fs::remove(Path("model.safetensors"));
  ExpectRefused(ErrorCode::kIo, "", "neither model.safetensors nor");
}

TEST_F(LoadingTest, ConfigKeys) {
  const ErrorCode invalid = ErrorCode::kInvalid, unsupported = ErrorCode::kUnsupported;
  const struct {
    const char *from, *to;
    ErrorCode code;
    const char *place, *part;
  } cases[] = {
      {"\"llama\"", "\"qwen3\"", unsupported, "#/model_type", "the type of LlamaForCausalLM"},
      {"LlamaForCausalLM", "PhiForCausalLM", unsupported, "#/architectures", "PhiForCausalLM"},
      {"\"architectures\"", "\"architecture\"", invalid, "#/architectures", "list of one name"},
      {"\"silu\"", "\"gelu\"", unsupported, "#/hidden_act", "gelu"},
      {"\"hidden_size\": 64", "\"hidden_size\": \"64\"", invalid, "#/hidden_size", "not string"},
      {"\"hidden_size\": 64", "\"hidden_size\": 64.5", invalid, "#/hidden_size", "not 64.5"},
      {"\"hidden_size\": 64", "\"hidden_size\": 0", invalid, "#/hidden_size", "from 1 to"},
      {"\"hidden_size\": 64", "\"hidden_size\": 99999999999999999999", invalid, "#/hidden_size",
       "must be a whole number"},
      {"\"hidden_size\"", "\"hidden\"", invalid, "#/hidden_size", "is missing"},
      {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", invalid, "#/num_key_value_heads",
       "must divide"},
      {"\"head_dim\": 16", "\"head_dim\": 15", unsupported, "#/head_dim", "must be even"},
      {"\"tie_word_embeddings\": true", "\"tie_word_embeddings\": 1", invalid,
       "#/tie_word_embeddings", "true or false"},
      {"\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": -1", invalid, "#/rms_norm_eps",
       "above 0, not -1"},
      {"\"rope_theta\": 10000.0", "\"rope_theta\": null, \"quantization_config\": {}", invalid,
       "#/quantization_config/quant_method", "is missing: the name of a format"},
      {"\"rope_theta\": 10000.0", "\"sliding_window\": 128", unsupported, "#/sliding_window",
       "is 128; expected null or false"},
      {"\"rope_theta\": 10000.0", "\"head_gates\": [1]", unsupported, "#/head_gates",
       "is [1]; expected nothing, this setting is not known for LlamaForCausalLM"},
      {"\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"cubic\", \"factor\": 2}",
       unsupported, "#/rope_scaling/type", "cubic"},
      {"\"rope_scaling\": null", "\"rope_scaling\": {\"rope_type\": \"yarn\"}", invalid,
       "#/rope_scaling/factor", "is missing"},
      {"\"rope_scaling\": null",
       "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2, \"fast\": true}", unsupported,
       "#/rope_scaling/fast", "is true; expected nothing"},
      {"\"rope_scaling\": null", "\"rope_scaling\": {\"rope_type\": \"linear\"}", invalid,
       "#/rope_scaling/factor", "is missing"},
      {"\"rope_scaling\": null", "\"rope_scaling\": {\"factor\": 2}", invalid,
       "#/rope_scaling/rope_type", "is missing"},
      {"\"rope_scaling\": null", "\"rope_scaling\": 7", invalid, "#/rope_scaling",
       "must be an object"},
      {"\"rope_scaling\": null", "\"rope_parameters\": {\"full_attention\": {\"factor\": 2}}",
       unsupported, "#/rope_parameters/full_attention", "expected nothing"},
      {"\"eos_token_id\": 2", "\"eos_token_id\": 257", invalid, "#/eos_token_id",
       "below 257 or a list of them, is 257"},
      {"\"eos_token_id\": 2", "\"eos_token_id\": [2, -1]", invalid, "#/eos_token_id", "is [2,-1]"},
      {"{", "[{", invalid, ": 31:1 (byte 689)", ""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.to);
    CopyGolden("llama-fp32-tied");
    Replace("config.json", c.from, c.to);
    ExpectRefused(c.code, std::string("/config.json") + c.place, c.part);
  }
}

// Bug: a number of 400 digits was written out.
TEST_F(LoadingTest, LongNumbersAreCut) {
  CopyGolden("llama-fp32-tied");
  Replace("config.json", "\"hidden_size\": 64", "\"hidden_size\": " + std::string(400, '7'));
  ExpectRefused(ErrorCode::kInvalid, "/config.json#/hidden_size",
                "must be a whole number from 1 to 1048576, not 777");
  EXPECT_LT(LoadModel(folder_).error().message.size(), 100u);
  CopyGolden("llama-fp32-tied");
  Replace("config.json", "1e-06", std::string(400, '7'));
  ExpectRefused(ErrorCode::kInvalid, "/config.json#/rms_norm_eps", "finite number, not 777");
  EXPECT_LT(LoadModel(folder_).error().message.size(), 100u);
}

// What only some families have.
TEST_F(LoadingTest, FamilyKeys) {
  const ErrorCode invalid = ErrorCode::kInvalid, unsupported = ErrorCode::kUnsupported;
  const struct {
    const char *model, *from, *to;
    ErrorCode code;
    const char *place, *part;
  } cases[] = {
      {"gemma3-bf16", "gelu_pytorch_tanh", "gelu", unsupported, "#/hidden_activation",
       "is \"gelu\"; expected \"gelu_pytorch_tanh\""},
      {"gemma3-bf16", "\"full_attention\",", "\"chunked_attention\",", unsupported, "#/layer_types",
       "entry 1 is \"chunked_attention\"; expected"},
      {"gemma3-bf16", "\"full_attention\",", "", invalid, "#/layer_types",
       "a list of num_hidden_layers = 3 names, has 2"},
      {"gemma3-bf16", "\"attn_logit_softcapping\": null", "\"attn_logit_softcapping\": 50",
       unsupported, "#/attn_logit_softcapping", "is 50; expected null"},
      {"gemma3-bf16", "\"use_bidirectional_attention\": false",
       "\"use_bidirectional_attention\": true", unsupported, "#/use_bidirectional_attention",
       "is true; expected null or false"},
      {"gemma3-bf16", "\"rope_type\": \"linear\"", "\"rope_type\": \"round\"", unsupported,
       "#/rope_parameters/full_attention/rope_type", "round"},
      {"gemma2-bf16", "\"final_logit_softcapping\": 20.0", "\"final_logit_softcapping\": -1",
       invalid, "#/final_logit_softcapping", "above 0"},
      {"gemma2-bf16", "\"query_pre_attn_scalar\": 20", "\"query_pre_attn_scalar\": \"20\"", invalid,
       "#/query_pre_attn_scalar", "not string"},
      {"mistral-fp16-window", "\"sliding_window\": 17", "\"sliding_window\": 0", invalid,
       "#/sliding_window", "from 1 to"},
      {"mistral-fp16-window", "\"sliding_window\": 17", "\"attention_bias\": true", unsupported,
       "#/attention_bias", "is true; expected null or false"},
      {"qwen2-bf16-window-yarn", "\"max_window_layers\": 1", "\"max_window_layers\": -1", invalid,
       "#/max_window_layers", "from 0 to"},
      {"qwen3-bf16", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"relu\"", unsupported,
       "#/hidden_act", "is \"relu\"; expected \"silu\""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.to);
    CopyGolden(c.model);
    Replace("config.json", c.from, c.to);
    ExpectRefused(c.code, std::string("/config.json") + c.place, c.part);
  }
}

// A tensor that only the family's description asks for.
TEST_F(LoadingTest, FamilyTensors) {
  const struct {
    const char *model, *from, *to, *place, *part;
  } cases[] = {
      {"qwen2-fp32-untied", "1.self_attn.k_proj.bias\"", "1.self_attn.k_proj.bIas\"",
       "1.self_attn.k_proj.bias", "is missing; expected F32, F16 or BF16 [16]"},
      {"qwen3-bf16", "0.self_attn.q_norm", "0.self_attn.q_nOrm", "0.self_attn.q_norm.weight",
       "is missing; expected F32, F16 or BF16 [24]"},
      {"gemma2-bf16", "1.post_feedforward", "1.post_feEdforward",
       "1.post_feedforward_layernorm.weight", "is missing; expected F32, F16 or BF16 [48]"},
  };
  for (const auto& c : cases) {
    CopyGolden(c.model);
    Replace("model.safetensors", c.from, c.to);
    ExpectRefused(ErrorCode::kInvalid,
                  std::string("/model.safetensors: tensor \"model.layers.") + c.place + "\"",
                  c.part);
  }
}

// What a family's files leave out.
TEST_F(LoadingTest, FamilyDefaults) {
  const auto read = [&](const std::string& architecture, const std::string& more) {
    Write("config.json",
          R"({"architectures": [")" + architecture +
              R"("], "hidden_size": 64, "intermediate_size": 8, "num_hidden_layers": 12, )"
              R"("num_attention_heads": 8, "vocab_size": 10)" +
              more + "}");
    const Result<TransformerConfig> config = ReadTransformerConfig(folder_);
    EXPECT_TRUE(config.ok()) << config.error().ToString();
    return *config;
  };
  const TransformerConfig mistral = read("MistralForCausalLM", "");
  EXPECT_EQ(mistral.layers[0].attention().kv_heads, 8);
  EXPECT_EQ(mistral.layers[3].attention().window, 4096);
  EXPECT_EQ(read("MistralForCausalLM", R"(, "sliding_window": null)").layers[3].attention().window,
            0);
  EXPECT_EQ(read("MistralForCausalLM", R"(, "max_position_embeddings": 4096)")
                .layers[3]
                .attention()
                .window,
            0);
  const TransformerConfig qwen2 = read("Qwen2ForCausalLM", R"(, "sliding_window": 100)");
  EXPECT_TRUE(qwen2.layers[0].attention().qkv_bias && !qwen2.layers[0].attention().o_bias &&
              !qwen2.tied_embeddings);
  EXPECT_EQ(qwen2.layers[11].attention().window, 0) << "use_sliding_window is false";
  const TransformerConfig qwen3 = read("Qwen3ForCausalLM", "");
  EXPECT_TRUE(qwen3.layers[0].attention().qk_norm == QkNorm::kHead &&
              !qwen3.layers[0].attention().qkv_bias);
  EXPECT_EQ(qwen3.layers[0].attention().head_dim, 128);
  const TransformerConfig gemma2 = read("Gemma2ForCausalLM", "");
  EXPECT_TRUE(gemma2.tied_embeddings && gemma2.layers[0].post_norms &&
              gemma2.layers[0].attention().qk_norm == QkNorm::kNone);
  EXPECT_EQ(gemma2.layers[0].attention().soft_cap, 50.0f);
  EXPECT_EQ(gemma2.logit_soft_cap, 30.0f);
  EXPECT_EQ(gemma2.embedding_scale, 8.0f);
  EXPECT_EQ(gemma2.layers[0].attention().scale, 0.0f) << "1 / 16, the default of this width";
  EXPECT_EQ(gemma2.layers[4].attention().window, 4096);
  EXPECT_EQ(gemma2.layers[5].attention().window, 0);
  EXPECT_EQ(read("Gemma2ForCausalLM", R"(, "attn_logit_softcapping": null)")
                .layers[0]
                .attention()
                .soft_cap,
            0);
  const TransformerConfig gemma3 = read("Gemma3ForCausalLM", "");
  EXPECT_EQ(gemma3.logit_soft_cap, 0.0f);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(gemma3.layers[i].attention().window, i % 6 == 5 ? 0 : 4096) << i;
    EXPECT_EQ(gemma3.ropes[static_cast<size_t>(gemma3.layers[i].attention().rope)].theta,
              i % 6 == 5 ? 1e6 : 1e4);
  }
  const TransformerConfig yarn =
      read("Qwen2ForCausalLM", R"(, "rope_scaling": {"type": "yarn", "factor": 4.0})");
  EXPECT_EQ(yarn.context_length, 131072);
  EXPECT_EQ(yarn.ropes[0].original_context, 32768.0);
}

TEST_F(LoadingTest, GenerationConfig) {
  CopyGolden("llama-fp32-tied");
  Write("generation_config.json", R"({"eos_token_id": [5, 6], "bos_token_id": 9})");
  const Result<std::unique_ptr<Model>> model = LoadModel(folder_);
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  EXPECT_EQ((*model)->info().end_tokens, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ((*model)->info().bos, 9);
  Write("generation_config.json", R"({"eos_token_id": "two"})");
  ExpectRefused(ErrorCode::kInvalid, "/generation_config.json#/eos_token_id", "token id");
  fs::remove(Path("generation_config.json"));
  const Result<std::unique_ptr<Model>> without = LoadModel(folder_);
  ASSERT_TRUE(without.ok()) << without.error().ToString();
  EXPECT_EQ((*without)->info().end_tokens, (std::vector<TokenId>{2}));
}

// Both spellings, read to the same numbers.
TEST_F(LoadingTest, RopeSpellings) {
  const std::string base =
      R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 8, "num_hidden_layers": 1,)"
      R"( "num_attention_heads": 4, "vocab_size": 10, )";
  const std::string scaling =
      R"("rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,)"
      R"( "original_max_position_embeddings": 8192})";
  for (const std::string& rope : {R"("rope_theta": 500000.0, "rope_scaling": {)" + scaling,
                                  R"("rope_parameters": {"rope_theta": 500000.0, )" + scaling}) {
    Write("config.json", base + rope + "}");
    const Result<TransformerConfig> config = ReadTransformerConfig(folder_);
    ASSERT_TRUE(config.ok()) << config.error().ToString();
    EXPECT_EQ(config->ropes[0].type, RopeType::kLlama3);
    EXPECT_EQ(config->ropes[0].theta, 500000.0);
    EXPECT_EQ(config->ropes[0].factor, 32.0);
    EXPECT_EQ(config->ropes[0].original_context, 8192.0);
    EXPECT_EQ(config->layers[0].attention().kv_heads, 4);
    EXPECT_EQ(config->layers[0].attention().head_dim, 16);
    EXPECT_EQ(config->context_length, 2048);
  }
  Write("config.json", base + R"("rope_parameters": {"rope_theta": 7.5}})");
  EXPECT_EQ(ReadTransformerConfig(folder_)->ropes[0].theta, 7.5);
  Write("config.json", base + R"("rope_scaling": {"type": "linear", "factor": 4}})");
  EXPECT_EQ(ReadTransformerConfig(folder_)->ropes[0].type, RopeType::kLinear);
  EXPECT_EQ(ReadTransformerConfig(folder_)->ropes[0].factor, 4.0);
}

TEST_F(LoadingTest, TensorsOfTheWrongKind) {
  CopyGolden("llama-fp32-tied");
  Replace("config.json", "\"intermediate_size\": 96", "\"intermediate_size\": 97");
  ExpectRefused(ErrorCode::kInvalid,
                "/model.safetensors: tensor \"model.layers.0.mlp.gate_proj.weight\"",
                "has shape [96, 64]; expected [97, 64]");
  CopyGolden("llama-fp32-tied");
  Replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  ExpectRefused(ErrorCode::kInvalid,
                "/model.safetensors: tensor \"model.layers.2.input_layernorm.weight\"",
                "is missing; expected F32, F16 or BF16 [64]");
  CopyGolden("llama-fp32-tied");
  Replace("config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  ExpectRefused(ErrorCode::kInvalid, "/model.safetensors: tensor \"lm_head.weight\"", "is missing");
  CopyGolden("llama-fp32-tied");
  Replace("model.safetensors", "\"model.norm.weight\":{\"dtype\":\"F32\"",
          "\"model.norm.weight\":{\"dtype\":\"I32\"");
  ExpectRefused(ErrorCode::kUnsupported, "/model.safetensors: tensor \"model.norm.weight\"",
                "has dtype I32; expected F32, F16 or BF16");
}

TEST_F(LoadingTest, Truncation) {
  CopyGolden("llama-fp32-tied");
  const std::string whole = Read("model.safetensors");
  for (const size_t size : {size_t{0}, size_t{7}}) {
    Write("model.safetensors", whole.substr(0, size));
    ExpectRefused(ErrorCode::kInvalid, "/model.safetensors", "the header length needs 8");
  }
  for (const size_t size : {size_t{8}, size_t{9}, size_t{500}}) {
    Write("model.safetensors", whole.substr(0, size));
    ExpectRefused(ErrorCode::kInvalid, "/model.safetensors", "truncated");
  }
  Write("model.safetensors", whole.substr(0, whole.size() - 1));
  const Result<std::unique_ptr<Model>> model = LoadModel(folder_);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().message.find("truncated file?"), std::string::npos)
      << model.error().ToString();
  Write("model.safetensors", whole + "x");
  ExpectRefused(ErrorCode::kInvalid, "/model.safetensors", "its tensors need");
}

TEST_F(LoadingTest, HostileHeaders) {
  CopyGolden("llama-fp32-tied");
  const std::string file = "/model.safetensors";
  const std::string tensor = file + ": tensor \"a\"";
  const struct {
    std::string header;
    size_t bytes;
    std::string place, part;
  } cases[] = {
      {"", 0, file, "bad header"},
      {"[]", 0, file, "not a JSON object"},
      {"{\"a\":", 0, file, "bad header"},
      {std::string(5000, '['), 0, file, "bad header"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, file, "bad header"},
      {R"({"a":3})", 0, tensor, "has no dtype"},
      {R"({"a":{"dtype":"F32"}})", 0, tensor, "has no shape"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, tensor, "has no data_offsets"},
      {R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4, tensor,
       "unknown dtype \"F31\"; expected one of F64, I64,"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, tensor,
       "other than sizes: -1"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, tensor,
       "other than sizes"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, tensor,
       "overflows"},
      {R"({"a":{"dtype":"F32","shape":[9223372036854775807],"data_offsets":[0,0]}})", 0, tensor,
       "overflows"},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4, tensor,
       "more than 8 dimensions"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, tensor,
       "are no range: 4 to 0"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, tensor, "are no range"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,1e3]}})", 4, tensor, "are no range"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, tensor, "truncated file?"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, tensor, "needs 8"},
      {R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, file + ": tensor \"", "overlap"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, tensor, "leave a hole"},
      {R"({"__metadata__":{"format":"pt"}})", 1, file, "its tensors need 0"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.header.substr(0, 120));
    Write("model.safetensors", Safetensors(c.header, c.bytes));
    const Result<SafetensorsFile> opened = SafetensorsFile::Open(Path("model.safetensors"));
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().place.substr(0, (folder_ + c.place).size()), folder_ + c.place);
    EXPECT_NE(opened.error().message.find(c.part), std::string::npos) << opened.error().ToString();
  }
  std::string lying(8, '\xff');
  Write("model.safetensors", lying + "{}");
  ExpectRefused(ErrorCode::kInvalid, file, "exceeds the file's 10 bytes");
}

TEST_F(LoadingTest, ShardIndex) {
  const std::string index = "model.safetensors.index.json";
  const ErrorCode invalid = ErrorCode::kInvalid;
  CopyGolden("llama-fp16-headdim-sharded");
  for (const std::string evil : {"../model-00001-of-00003.safetensors", "/etc/passwd", "..", ""}) {
    Write(index, R"({"weight_map": {"model.norm.weight": ")" + evil + "\"}}");
    ExpectRefused(invalid, "/" + index + "#/weight_map/model.norm.weight", "a file in this folder");
  }
  Write(index, R"({"weight_map": []})");
  ExpectRefused(invalid, "/" + index, "no object weight_map");
  Write(index, R"({"weight_map": {"nope": "model-00001-of-00003.safetensors"}})");
  ExpectRefused(invalid, "/model-00001-of-00003.safetensors: tensor \"nope\"", "the file lacks it");
  Write(index, R"({"weight_map": {"nope": "absent.safetensors"}})");
  ExpectRefused(ErrorCode::kIo, "/absent.safetensors", "cannot map");
  ExpectRefused(ErrorCode::kIo, "/absent.safetensors", index + " names it");
  Write(index, R"({"weight_map": {}})");
  ExpectRefused(invalid, "/" + index + ": tensor \"model.embed_tokens.weight\"", "is missing");
}

// Headers of other writers end anywhere; the weights then lie at odd addresses.
TEST_F(LoadingTest, UnalignedData) {
  CopyGolden("llama-fp32-tied");
  const std::string whole = Read("model.safetensors");
  size_t header_bytes = 0;
  for (size_t i = 8; i-- > 0;)
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(whole[i]);
  const std::string header = whole.substr(8, header_bytes) + " ";
  std::string shifted = Safetensors(header, 0) + whole.substr(8 + header_bytes);
  Write("model.safetensors", shifted);
  const Result<std::unique_ptr<Model>> model = LoadModel(folder_);
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  const std::unique_ptr<Model> original = LoadGolden("llama-fp32-tied");
  const std::vector<TokenId> tokens = {3, 1, 4, 1, 5};
  EXPECT_TRUE(SameBits(RunChunk(**model, MakeSequence(**model, 8), 0, tokens),
                       RunChunk(*original, MakeSequence(*original, 8), 0, tokens)));
}

// Bug: a head in the file was dropped without a word where tie_word_embeddings is true; the
// reference implementation uses it.
TEST_F(LoadingTest, AHeadInTheFileIsUsedAlsoWhereEmbeddingsAreTied) {
  CopyGolden("llama-fp32-tied");
  const std::vector<TokenId> tokens = {3, 1, 4, 1, 5};
  const size_t vocabulary = 257;
  const std::unique_ptr<Model> tied = LoadGolden("llama-fp32-tied");
  const std::vector<float> expected = RunChunk(*tied, MakeSequence(*tied, 8), 0, tokens);
  std::string head;
  {
    const Result<SafetensorsFile> file = SafetensorsFile::Open(Path("model.safetensors"));
    ASSERT_TRUE(file.ok());
    const TensorView& rows = *file->Find("model.embed_tokens.weight");
    head.assign(reinterpret_cast<const char*>(rows.data), static_cast<size_t>(rows.bytes));
  }
  // The rows, each one further up: so are the logits.
  const size_t row = head.size() / vocabulary;
  AddTensor("lm_head.weight", "F32", "[257,64]", head.substr(row) + head.substr(0, row));
  const Result<std::unique_ptr<Model>> model = LoadModel(folder_);
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  EXPECT_EQ((*model)->info().parameters, tied->info().parameters + 257 * 64);
  EXPECT_EQ((*model)->info().step_bytes, tied->info().step_bytes);
  const std::vector<float> logits = RunChunk(**model, MakeSequence(**model, 8), 0, tokens);
  ASSERT_EQ(logits.size(), expected.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const size_t first = i / vocabulary * vocabulary;
    ASSERT_NEAR(logits[i], expected[first + (i - first + 1) % vocabulary], 1e-4) << i;
  }
}

// Bug: nothing was said of tensors that the configuration has no place for.
TEST_F(LoadingTest, TensorsThatAreNotUsedAreNoted) {
  const auto notes = [&] {
    std::vector<std::string> texts;
    const auto model =
        LoadModel(folder_, {}, [&](const std::string& note) { texts.push_back(note); });
    EXPECT_TRUE(model.ok()) << model.error().ToString();
    return texts;
  };
  for (const std::string& name : GoldenNames()) {
    EXPECT_TRUE(LoadModel(GoldenFolder(name), {}, [&](const std::string& note) {
                  ADD_FAILURE() << name << ": " << note;
                }).ok());
  }
  CopyGolden("llama-fp32-tied");
  AddTensor("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", "[2]", std::string(8, '\0'));
  EXPECT_TRUE(notes().empty()) << "older checkpoints have it, it says nothing";
  AddTensor("model.mtp.norm.weight", "F32", "[2]", std::string(8, '\0'));
  ASSERT_EQ(notes().size(), 1u);
  EXPECT_EQ(notes()[0].find("1 tensor is not used: \"model.mtp.norm.weight\" (the"), 0u)
      << notes()[0];
  // A layer fewer than the file has.
  CopyGolden("llama-fp32-tied");
  Replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
  ASSERT_EQ(notes().size(), 1u);
  EXPECT_EQ(
      notes()[0],
      "9 tensors are not used: \"model.layers.1.input_layernorm.weight\", "
      "\"model.layers.1.mlp.down_proj.weight\", \"model.layers.1.mlp.gate_proj.weight\" and 6 "
      "more (the configuration has 1 layer)");
}

// A model under the name of another one, or with a setting that leaves a part of its layers out:
// its answers would be wrong.
TEST_F(LoadingTest, TensorsOfLayersThatAreNotUsed) {
  // Except for biases of zeros.
  CopyGolden("llama-fp32-tied");
  AddTensor("model.layers.0.self_attn.q_proj.bias", "F32", "[2]", std::string(8, '\0'));
  EXPECT_TRUE(LoadModel(folder_).ok());
  AddTensor("model.layers.0.self_attn.k_proj.bias", "F32", "[2]", std::string(8, '\1'));
  EXPECT_FALSE(LoadModel(folder_).ok());
  const auto refused = [&](const std::string& place) {
    const Result<std::unique_ptr<Model>> model = LoadModel(folder_);
    ASSERT_FALSE(model.ok()) << place;
    EXPECT_EQ(model.error().place.find(folder_ + place), 0u) << model.error().ToString();
    EXPECT_EQ(model.error().code, ErrorCode::kUnsupported);
  };
  const std::string layer = "/model.safetensors: tensor \"model.layers.0.";
  CopyGolden("qwen3-bf16");
  Replace("config.json", "Qwen3ForCausalLM", "SmolLM3ForCausalLM");
  refused("/config.json#/model_type");
  Replace("config.json", "\"model_type\"", "\"_model_type\"");
  refused(layer + "self_attn.k_norm.weight");
  CopyGolden("qwen2-fp32-untied");
  Replace("config.json", "Qwen2ForCausalLM", "SmolLM3ForCausalLM");
  Replace("config.json", "\"model_type\"", "\"_model_type\"");
  refused(layer + "self_attn.k_proj.bias");
  CopyGolden("families/starcoder2");
  Replace("config.json", "\"use_bias\": true", "\"use_bias\": false");
  refused(layer + "mlp.c_fc.bias");
  CopyGolden("families/granite4_h-experts");
  Replace("config.json", "\"num_local_experts\": 6", "\"num_local_experts\": 0");
  refused(layer + "block_sparse_moe.");
  CopyGolden("families/gemma4-experts");
  Replace("config.json", "\"enable_moe_block\": true", "\"enable_moe_block\": false");
  refused(layer);
  CopyGolden("families/qwen3_moe");
  Write("model.gguf", std::regex_replace(Read("model.gguf"), std::regex("qwen3moe"), "qwen2moe"));
  const Result<std::unique_ptr<Model>> model = LoadModel(Path("model.gguf"));
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().ToString().find("\"blk.0."), std::string::npos)
      << model.error().ToString();
}

// Matrices that read the same input may have any dtypes: inputs are packed again where the kernels
// want them otherwise. Bug: bf16 next to others was refused.
TEST_F(LoadingTest, DtypesOfOneLayerMayDiffer) {
  const std::vector<TokenId> prompt = {3, 1, 4, 1, 5, 9, 2, 6};
  const auto logits = [&] {
    ModelOptions options;
    options.threads = 1;
    Result<std::unique_ptr<Model>> model = LoadModel(folder_, options);
    EXPECT_TRUE(model.ok()) << model.error().ToString();
    return RunChunk(**model, MakeSequence(**model, 16), 0, prompt);
  };
  // Zeros are the same number in every dtype. The query of one layer, the other factor of the
  // other.
  const std::pair<std::string, std::string> changed[] = {
      {"model.layers.0.self_attn.q_proj.weight", "model.layers.9.self_attn.q_proj.weight"},
      {"model.layers.1.mlp.up_proj.weight", "model.layers.9.mlp.up_proj.weight"}};
  const std::string shapes[] = {"[64,64]", "[96,64]"};
  std::vector<std::vector<float>> answers;
  for (const auto& [dtype, bytes] :
       {std::pair<std::string, size_t>{"F32", 4}, {"BF16", 2}, {"F16", 2}}) {
    CopyGolden("llama-fp32-tied");
    for (size_t i = 0; i < 2; ++i) {
      Replace("model.safetensors", changed[i].first, changed[i].second);
      AddTensor(changed[i].first, dtype, shapes[i],
                std::string(size_t{i == 0 ? 64u : 96u} * 64 * bytes, '\0'));
    }
    answers.push_back(logits());
  }
  EXPECT_LT(RelativeError(answers[1], answers[0]), 1e-5);
  EXPECT_LT(RelativeError(answers[2], answers[0]), 1e-5);
  for (const WeightDtype dtype : {WeightDtype::kBf16, WeightDtype::kFp32, WeightDtype::kFp16,
                                  WeightDtype::kInt8, WeightDtype::kInt4}) {
    ModelOptions options;
    options.dtype = dtype;
    EXPECT_TRUE(LoadModel(folder_, options).ok());
  }
}

TEST_F(LoadingTest, NotANumberIsReported) {
  CopyGolden("llama-fp32-tied");
  const Result<SafetensorsFile> file = SafetensorsFile::Open(Path("model.safetensors"));
  ASSERT_TRUE(file.ok());
  std::string whole = Read("model.safetensors");
  // One weight of the last norm: every logit of every row becomes NaN.
  const size_t data = whole.size() - static_cast<size_t>([&] {
                        int64_t total = 0;
                        for (const auto& [name, tensor] : file->tensors()) total += tensor.bytes;
                        return total;
                      }());
  const std::byte* start = nullptr;
  for (const auto& [name, tensor] : file->tensors()) {
    if (start == nullptr || tensor.data < start) start = tensor.data;
  }
  const auto offset = static_cast<size_t>(file->Find("model.norm.weight")->data - start);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(whole.data() + data + offset, &nan, sizeof nan);
  Write("model.safetensors", whole);
  const Result<std::unique_ptr<Model>> model = LoadModel(folder_);
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  const SequenceId sequence = MakeSequence(**model, 8);
  std::vector<float> logits(257);
  const std::vector<Row> rows = {{1, 0, sequence, 0, -1}, {2, 1, sequence, 0, 0}};
  const Status status = (*model)->Forward(rows, logits);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(status.error().place, "model");
  EXPECT_NE(status.error().message.find("or the configuration is not theirs"), std::string::npos);
  EXPECT_NE(status.error().message.find("row 1"), std::string::npos) << status.error().message;
  // Nothing was committed.
  const Status gap = (*model)->Forward(std::vector<Row>{{1, 1, sequence, 0, -1}}, logits);
  ASSERT_FALSE(gap.ok());
  EXPECT_NE(gap.error().message.find("gap"), std::string::npos);
}

// Random damage to the header: any answer but a crash.
TEST_F(LoadingTest, RandomDamage) {
  CopyGolden("mistral-bf16");
  const std::string whole = Read("model.safetensors");
  const std::string config = Read("config.json");
  std::mt19937 random(7);
  int loaded = 0;
  for (int round = 0; round < 400; ++round) {
    std::string damaged = round % 2 == 0 ? whole : config;
    const size_t range = round % 2 == 0 ? 2600 : damaged.size();
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < changes; ++i) {
      damaged[random() % range] = static_cast<char>(
          random() % 2 == 0 ? '0' + static_cast<char>(random() % 10) : static_cast<char>(random()));
    }
    Write("model.safetensors", round % 2 == 0 ? damaged : whole);
    Write("config.json", round % 2 == 0 ? config : damaged);
    Result<std::unique_ptr<Model>> model = LoadModel(folder_);
    if (!model.ok()) {
      EXPECT_FALSE(model.error().message.empty());
      continue;
    }
    ++loaded;
    const Result<SequenceId> sequence = (*model)->NewSequence(4);
    if (!sequence.ok()) continue;
    std::vector<float> logits(static_cast<size_t>((*model)->info().vocabulary_size));
    (void)(*model)->Forward(std::vector<Row>{{1, 0, *sequence, 0, 0}}, logits);
  }
  EXPECT_GT(loaded, 0) << "some damage is harmless";
  EXPECT_LT(loaded, 400);
}

// A model of text and images: its text model, under either of the prefixes that such files have.
TEST_F(LoadingTest, TextPartOfAModelOfTextAndImages) {
  for (const std::string prefix : {"language_model.model.", "model.language_model."}) {
    CopyGolden("gemma3-bf16");
    const std::string config = Read("config.json");
    const std::string text =
        std::regex_replace(config, std::regex("\"architectures\": \\[[^\\]]*\\],"), "");
    Write("config.json",
          "{\"architectures\": [\"Gemma3ForConditionalGeneration\"], \"text_config\": " + text +
              ", \"vision_config\": {\"hidden_size\": 7}, \"image_token_index\": 129, "
              "\"eos_token_id\": [2, 5]}");
    const std::string file = Read("model.safetensors");
    uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    const std::string header =
        std::regex_replace(file.substr(8, length), std::regex("\"model\\."), "\"" + prefix);
    Write("model.safetensors", Safetensors(header, 0) + file.substr(8 + length));
    const Result<TransformerConfig> read = ReadTransformerConfig(folder_);
    ASSERT_TRUE(read.ok()) << read.error().ToString();
    const Result<std::unique_ptr<Model>> model = LoadModel(folder_);
    ASSERT_TRUE(model.ok()) << model.error().ToString();
    const auto alone = LoadGolden("gemma3-bf16");
    const auto logits = [](Model& m) {
      const std::vector<TokenId> tokens = {3, 10, 17, 24, 31};
      return RunChunk(m, MakeSequence(m, 8), 0, tokens);
    };
    EXPECT_EQ(logits(**model), logits(*alone)) << prefix;
    Replace("config.json", "\"hidden_size\": 48", "\"hidden_size\": 0");
    ExpectRefused(ErrorCode::kInvalid, "/config.json#/text_config/hidden_size", "must be");
    Write("config.json",
          "{\"architectures\": [\"Gemma3ForConditionalGeneration\"], \"text_config\": 7}");
    ExpectRefused(ErrorCode::kInvalid, "/config.json#/text_config", "must be an object");
  }
}

}  // namespace
}  // namespace pawl
