// Two spellings are in use: older files have torch_dtype, rope_theta and rope_scaling {type |
// rope_type, ...}; newer ones dtype and rope_parameters {rope_theta, rope_type, ...}. The dtype is
// read from the tensors themselves.
//
// A key that would change the result and is not implemented is an error that names it, never
// ignored.
//
// RoPE: Su et al., "RoFormer" (2021); linear position interpolation: Chen et al. (2023); the
// Llama 3.1 rule keeps wavelengths below original_context / high_freq_factor, divides those above
// original_context / low_freq_factor, and blends between.
#include "src/model/llama_config.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/model/json_fields.h"

namespace pawl {
namespace {

constexpr int64_t kMaxWidth = int64_t{1} << 20;
constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHeadDim = 1024;
constexpr int64_t kMaxContext = int64_t{1} << 26;

// The first error of a run of reads, so that each read stays one line.
class Reader {
 public:
  explicit Reader(const JsonFields& fields) : fields_(fields) {}

  int RequiredInt(std::string_view key, int64_t high) {
    const std::optional<int64_t> value = Take(fields_.Int(key, 1, high));
    if (!value && !error_) error_ = fields_.ErrorAt(ErrorCode::kInvalid, key, "is missing");
    return static_cast<int>(value.value_or(1));
  }
  int Int(std::string_view key, int64_t high, int64_t otherwise) {
    return static_cast<int>(Take(fields_.Int(key, 1, high)).value_or(otherwise));
  }
  // A number above zero.
  double Positive(std::string_view key, std::optional<double> otherwise) {
    const std::optional<double> value = Take(fields_.Double(key));
    if (value && !(*value > 0)) {
      Fail(ErrorCode::kInvalid, key, "must be above 0");
      return 1.0;
    }
    if (!value && !otherwise) Fail(ErrorCode::kInvalid, key, "is missing");
    return value.value_or(otherwise.value_or(1.0));
  }
  bool Bool(std::string_view key, bool otherwise) {
    return Take(fields_.Bool(key)).value_or(otherwise);
  }
  std::string String(std::string_view key, std::string otherwise) {
    return Take(fields_.String(key)).value_or(std::move(otherwise));
  }
  void Fail(ErrorCode code, std::string_view key, std::string message) {
    if (!error_) error_ = fields_.ErrorAt(code, key, std::move(message));
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  template <typename T>
  std::optional<T> Take(Result<std::optional<T>> result) {
    if (result.ok()) return *result;
    if (!error_) error_ = result.error();
    return std::nullopt;
  }

  const JsonFields& fields_;
  std::optional<Error> error_;
};

Status CheckArchitecture(const JsonFields& fields, LlamaConfig& config) {
  const json::Value* list = fields.Find("architectures");
  if (list == nullptr || list->type != json::Type::kArray || list->items.size() != 1 ||
      list->items[0].type != json::Type::kString) {
    return fields.ErrorAt(ErrorCode::kInvalid, "architectures", "must be a list of one name");
  }
  config.architecture = list->items[0].text;
  if (config.architecture != "LlamaForCausalLM" && config.architecture != "MistralForCausalLM") {
    return fields.ErrorAt(ErrorCode::kUnsupported, "architectures",
                          "the architecture " + json::Quote(config.architecture.substr(0, 100)) +
                              " is not supported; LlamaForCausalLM and MistralForCausalLM are");
  }
  return {};
}

Status ReadRope(const JsonFields& fields, RopeConfig& rope) {
  Reader top(fields);
  rope.theta = top.Positive("rope_theta", 10000.0);
  const char* key = fields.Find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  const json::Value* parameters = fields.Find(key);
  if (top.error()) return *top.error();
  if (parameters == nullptr) return {};
  if (parameters->type != json::Type::kObject) {
    return fields.ErrorAt(ErrorCode::kInvalid, key, "must be an object");
  }
  const JsonFields inner(*parameters, fields.path(), json::PointerJoin("", key));
  Reader reader(inner);
  rope.theta = reader.Positive("rope_theta", rope.theta);
  const char* type_key = inner.Find("rope_type") != nullptr ? "rope_type" : "type";
  const std::string type = reader.String(type_key, "");
  if (type == "default") {
    rope.type = RopeType::kDefault;
  } else if (type == "linear") {
    rope.type = RopeType::kLinear;
    rope.factor = reader.Positive("factor", std::nullopt);
  } else if (type == "llama3") {
    rope.type = RopeType::kLlama3;
    rope.factor = reader.Positive("factor", std::nullopt);
    rope.low_freq_factor = reader.Positive("low_freq_factor", std::nullopt);
    rope.high_freq_factor = reader.Positive("high_freq_factor", std::nullopt);
    rope.original_context = reader.Positive("original_max_position_embeddings", std::nullopt);
    if (!(rope.high_freq_factor > rope.low_freq_factor)) {
      reader.Fail(ErrorCode::kInvalid, "high_freq_factor", "must be above low_freq_factor");
    }
  } else if (type.empty()) {
    // rope_parameters may hold the base alone; a scaling without a type says nothing that could be
    // followed.
    if (std::string_view(key) == "rope_scaling") {
      reader.Fail(ErrorCode::kInvalid, "rope_type", "is missing");
    }
    for (const auto& [name, value] : parameters->members) {
      if (name != "rope_theta" && value.type != json::Type::kNull) {
        reader.Fail(ErrorCode::kUnsupported, name, "RoPE parameters without a rope_type");
      }
    }
  } else {
    reader.Fail(ErrorCode::kUnsupported, type_key,
                "RoPE scaling " + json::Quote(type.substr(0, 50)) +
                    " is not supported; default, linear and llama3 are");
  }
  if (reader.error()) return *reader.error();
  return {};
}

// An id, a list of ids, or nothing.
Status ReadTokens(const JsonFields& fields, std::string_view key, int vocabulary,
                  std::vector<TokenId>& tokens) {
  const json::Value* value = fields.Find(key);
  if (value == nullptr) return {};
  const auto add = [&](const json::Value& item) {
    const std::optional<int64_t> id = AsInt(item);
    if (!id || *id < 0 || *id >= vocabulary) return false;
    tokens.push_back(static_cast<TokenId>(*id));
    return true;
  };
  bool good = true;
  tokens.clear();
  if (value->type == json::Type::kArray) {
    for (const json::Value& item : value->items) good = good && add(item);
  } else {
    good = add(*value);
  }
  if (!good) {
    return fields.ErrorAt(
        ErrorCode::kInvalid, key,
        "must be a token id below " + std::to_string(vocabulary) + " or a list of them");
  }
  return {};
}

Status ReadSpecialTokens(const JsonFields& fields, LlamaConfig& config) {
  if (Status status = ReadTokens(fields, "eos_token_id", config.vocabulary, config.end_tokens);
      !status.ok()) {
    return status;
  }
  std::vector<TokenId> bos;
  if (Status status = ReadTokens(fields, "bos_token_id", config.vocabulary, bos); !status.ok()) {
    return status;
  }
  if (!bos.empty()) config.bos = bos[0];
  return {};
}

Result<json::Value> ReadJsonFile(const std::string& path) {
  Result<std::string> text = ReadFile(path);
  if (!text.ok()) return text.error();
  Result<json::Value> root = json::Parse(*text);
  if (!root.ok()) return Error{root.error().code, root.error().ToString(), path};
  if (root->type != json::Type::kObject) {
    return Error{ErrorCode::kInvalid, "must be a JSON object", path};
  }
  return root;
}

}  // namespace

Result<LlamaConfig> ReadLlamaConfig(const std::string& folder) {
  const std::string path = folder + "/config.json";
  Result<json::Value> root = ReadJsonFile(path);
  if (!root.ok()) return root.error();
  const JsonFields fields(*root, path);
  LlamaConfig config;
  if (Status status = CheckArchitecture(fields, config); !status.ok()) return status.error();

  Reader reader(fields);
  config.hidden = reader.RequiredInt("hidden_size", kMaxWidth);
  config.intermediate = reader.RequiredInt("intermediate_size", kMaxWidth);
  config.layers = reader.RequiredInt("num_hidden_layers", kMaxLayers);
  config.heads = reader.RequiredInt("num_attention_heads", kMaxWidth);
  config.vocabulary = reader.RequiredInt("vocab_size", kMaxVocabulary);
  config.kv_heads = reader.Int("num_key_value_heads", kMaxWidth, config.heads);
  config.head_dim = reader.Int("head_dim", kMaxHeadDim, 0);
  config.context_length = reader.Int("max_position_embeddings", kMaxContext, 2048);
  config.norm_epsilon = static_cast<float>(reader.Positive("rms_norm_eps", 1e-6));
  config.tied_embeddings = reader.Bool("tie_word_embeddings", false);
  config.attention_bias = reader.Bool("attention_bias", false);
  config.mlp_bias = reader.Bool("mlp_bias", false);
  const std::string activation = reader.String("hidden_act", "silu");
  if (activation != "silu") {
    reader.Fail(
        ErrorCode::kUnsupported, "hidden_act",
        "the activation " + json::Quote(activation.substr(0, 50)) + " is not supported; silu is");
  }
  if (fields.Find("quantization_config") != nullptr) {
    reader.Fail(ErrorCode::kUnsupported, "quantization_config",
                "quantized weights are not supported; bf16, fp16 and fp32 are");
  }
  const json::Value* window = fields.Find("sliding_window");
  if (window != nullptr && AsInt(*window).value_or(0) < config.context_length) {
    reader.Fail(ErrorCode::kUnsupported, "sliding_window",
                "attention windows shorter than max_position_embeddings are not supported");
  }
  if (config.head_dim == 0) {
    if (config.hidden % config.heads != 0) {
      reader.Fail(ErrorCode::kInvalid, "num_attention_heads",
                  "must divide hidden_size when there is no head_dim");
    }
    config.head_dim = std::max(1, config.hidden / config.heads);
  }
  if (config.head_dim % 2 != 0 || config.head_dim > kMaxHeadDim) {
    reader.Fail(ErrorCode::kUnsupported, "head_dim",
                "must be even and at most " + std::to_string(kMaxHeadDim) + ", is " +
                    std::to_string(config.head_dim));
  }
  if (config.heads % config.kv_heads != 0) {
    reader.Fail(ErrorCode::kInvalid, "num_key_value_heads", "must divide num_attention_heads");
  }
  if (int64_t{config.heads} * config.head_dim > kMaxWidth) {
    reader.Fail(ErrorCode::kLimit, "num_attention_heads",
                "heads times head_dim exceeds " + std::to_string(kMaxWidth));
  }
  if (reader.error()) return *reader.error();

  if (Status status = ReadRope(fields, config.rope); !status.ok()) return status.error();
  if (Status status = ReadSpecialTokens(fields, config); !status.ok()) return status.error();
  const std::string generation_path = folder + "/generation_config.json";
  struct stat info = {};
  if (::stat(generation_path.c_str(), &info) == 0) {
    Result<json::Value> generation = ReadJsonFile(generation_path);
    if (!generation.ok()) return generation.error();
    if (Status status = ReadSpecialTokens(JsonFields(*generation, generation_path), config);
        !status.ok()) {
      return status.error();
    }
  }
  return config;
}

std::vector<float> RopeFrequencies(const RopeConfig& rope, int head_dim) {
  std::vector<float> frequencies(static_cast<size_t>(head_dim) / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double power = std::pow(rope.theta, 2.0 * static_cast<double>(i) / head_dim);
    double frequency = static_cast<float>(1.0 / power);
    if (rope.type == RopeType::kLinear) {
      frequency /= rope.factor;
    } else if (rope.type == RopeType::kLlama3) {
      const double wavelength = 2.0 * std::numbers::pi / frequency;
      const double turns = rope.original_context / wavelength;
      const double keep = std::clamp(
          (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0,
          1.0);
      frequency = (1.0 - keep) * frequency / rope.factor + keep * frequency;
    }
    frequencies[i] = static_cast<float>(frequency);
  }
  return frequencies;
}

}  // namespace pawl
