// The keys are those that llama.cpp's converters write, and what they leave out is what llama.cpp
// assumes: which layers of Gemma have a window, RoPE bases of its local layers, the scale of the
// largest ones. Two things differ from the files of the reference implementation: the norms of
// Gemma have their offset of 1 added already, and the rows of q and k of the architecture `llama`
// are in the order of the original Llama code, which rotates neighbours (2i, 2i + 1) where the
// reference rotates halves (i, i + d/2).
#include "src/model/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "src/base/json.h"

namespace pawl {
namespace {

class Keys {
 public:
  Keys(const GgufFile& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  const GgufValue* Find(const std::string& key) {
    used_.insert(prefix_ + key);
    return file_.FindValue(prefix_ + key);
  }
  bool Has(const std::string& key) { return Find(key) != nullptr; }
  int64_t Int(const std::string& key, int64_t high, std::optional<int64_t> otherwise) {
    const GgufValue* value = Find(key);
    if (value == nullptr) {
      if (!otherwise) Fail(ErrorCode::kInvalid, key, "is missing");
      return otherwise.value_or(1);
    }
    using Kind = GgufValue::Kind;
    const auto number = static_cast<int64_t>(value->number);
    if ((value->kind != Kind::kUnsigned && value->kind != Kind::kSigned) || number < 1 ||
        number > high) {
      Fail(ErrorCode::kInvalid, key, "must be an integer from 1 to " + std::to_string(high));
      return 1;
    }
    return number;
  }
  double Positive(const std::string& key, std::optional<double> otherwise) {
    const GgufValue* value = Find(key);
    if (value == nullptr) {
      if (!otherwise) Fail(ErrorCode::kInvalid, key, "is missing");
      return otherwise.value_or(1.0);
    }
    if (value->kind != GgufValue::Kind::kFloat || !std::isfinite(value->real) ||
        !(value->real > 0)) {
      Fail(ErrorCode::kInvalid, key, "must be a finite number above 0");
      return 1.0;
    }
    return value->real;
  }
  std::string String(const std::string& key, std::string otherwise) {
    const GgufValue* value = Find(key);
    if (value == nullptr) return otherwise;
    if (value->kind != GgufValue::Kind::kString) {
      Fail(ErrorCode::kInvalid, key, "must be a string");
      return otherwise;
    }
    return std::string(value->text);
  }
  // A token id; kNoToken when absent.
  TokenId Token(const std::string& key, int64_t vocabulary) {
    const GgufValue* value = Find(key);
    if (value == nullptr) return kNoToken;
    if (value->kind != GgufValue::Kind::kUnsigned ||
        value->number >= static_cast<uint64_t>(vocabulary)) {
      Fail(ErrorCode::kInvalid, key, "must be a token id below " + std::to_string(vocabulary));
      return kNoToken;
    }
    return static_cast<TokenId>(value->number);
  }
  bool Bool(const std::string& key, bool otherwise) {
    const GgufValue* value = Find(key);
    if (value == nullptr) return otherwise;
    if (value->kind != GgufValue::Kind::kBool) Fail(ErrorCode::kInvalid, key, "must be a bool");
    return value->number != 0;
  }
  void Fail(ErrorCode code, const std::string& key, std::string message) {
    if (!error_) error_ = Error{code, std::move(message), file_.path() + ": " + prefix_ + key};
  }
  // Keys of the architecture that nobody asked for would change the result unseen.
  void RefuseTheRest() {
    for (const auto& [key, value] : file_.values()) {
      if (!key.starts_with(prefix_) || used_.contains(key)) continue;
      Fail(ErrorCode::kUnsupported, key.substr(prefix_.size()).substr(0, 200),
           "expected nothing, this setting is not known");
    }
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const GgufFile& file_;
  std::string prefix_;
  std::set<std::string> used_;
  std::optional<Error> error_;
};

RopeConfig ReadRope(Keys& keys, const GgufFile& file, const TransformerConfig& config,
                    double default_theta) {
  RopeConfig rope;
  rope.theta = keys.Positive("rope.freq_base", default_theta);
  const std::string type = keys.String("rope.scaling.type", "none");
  keys.Find("rope.scaling.finetuned");
  const double original = static_cast<double>(
      keys.Int("rope.scaling.original_context_length", kMaxContext, config.context_length));
  const double attention = keys.Positive("rope.scaling.attn_factor", 1.0);
  if (type == "linear") {
    rope.type = RopeType::kLinear;
    rope.factor = keys.Positive("rope.scaling.factor", std::nullopt);
  } else if (type == "yarn") {
    rope.type = RopeType::kYarn;
    rope.factor = keys.Positive("rope.scaling.factor", std::nullopt);
    rope.original_context = original;
    rope.attention_factor = YarnAttentionFactor(rope.factor) * attention;
  } else if (type == "none") {
    keys.Find("rope.scaling.factor");
  } else {
    keys.Fail(ErrorCode::kUnsupported, "rope.scaling.type",
              "is " + json::Quote(type.substr(0, 50)) + "; expected none, linear or yarn");
  }
  // How the rule of Llama 3 is stated.
  if (const TensorView* divisors = file.Find("rope_freqs.weight")) {
    const auto half = static_cast<size_t>(config.head_dim) / 2;
    if (divisors->dtype != "F32" || divisors->shape != std::vector<int64_t>{config.head_dim / 2}) {
      keys.Fail(ErrorCode::kInvalid, "rope.dimension_count",
                "the tensor rope_freqs.weight is " + divisors->dtype + " " +
                    ShapeToString(divisors->shape) + "; expected F32 [" + std::to_string(half) +
                    "]");
      return rope;
    }
    rope.divisors.resize(half);
    std::memcpy(rope.divisors.data(), divisors->data, half * sizeof(float));
    for (const float divisor : rope.divisors) {
      if (!(divisor > 0)) {
        keys.Fail(ErrorCode::kInvalid, "rope.dimension_count",
                  "the tensor rope_freqs.weight holds a number that is not above 0");
      }
    }
  }
  return rope;
}

void ReadGemma(Keys& keys, TransformerConfig& config, bool three, int64_t largest) {
  config.activation = Activation::kGeluTanh;
  config.post_norms = true;
  config.qk_norm = three;
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  if (config.layer_count() == largest) {
    config.attention_scale =
        1.0f / std::sqrt(static_cast<float>(config.hidden) / static_cast<float>(config.heads));
  }
  config.attention_soft_cap =
      static_cast<float>(three ? 0.0 : keys.Positive("attn_logit_softcapping", 50.0));
  config.logit_soft_cap = static_cast<float>(three && !keys.Has("final_logit_softcapping")
                                                 ? 0.0
                                                 : keys.Positive("final_logit_softcapping", 30.0));
  const auto window =
      static_cast<int>(keys.Int("attention.sliding_window", kMaxContext, three ? 1024 : 4096));
  const auto pattern =
      static_cast<int>(keys.Int("attention.sliding_window_pattern", kMaxLayers, three ? 6 : 2));
  if (three) {
    RopeConfig local;
    local.theta = keys.Positive("rope.freq_base_swa", 10000.0);
    config.ropes.push_back(local);
  }
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if ((i + 1) % static_cast<size_t>(pattern) == 0) continue;
    config.layers[i] = {window, three ? 1 : 0};
  }
}

}  // namespace

Result<TransformerConfig> ReadGgufConfig(const GgufFile& file) {
  Keys general(file, "general.");
  const std::string arch = general.String("architecture", "");
  TransformerConfig config;
  const struct {
    const char *arch, *name;
  } kArchitectures[] = {{"llama", "LlamaForCausalLM"},
                        {"qwen2", "Qwen2ForCausalLM"},
                        {"qwen3", "Qwen3ForCausalLM"},
                        {"gemma2", "Gemma2ForCausalLM"},
                        {"gemma3", "Gemma3ForCausalLM"}};
  for (const auto& known : kArchitectures) {
    if (arch == known.arch) config.architecture = known.name;
  }
  if (config.architecture.empty()) {
    general.Fail(ErrorCode::kUnsupported, "architecture",
                 "is " + json::Quote(arch.substr(0, 100)) +
                     "; expected llama, qwen2, qwen3, gemma2 or gemma3");
    return *general.error();
  }
  Keys keys(file, arch + ".");
  config.hidden = static_cast<int>(keys.Int("embedding_length", kMaxWidth, std::nullopt));
  config.intermediate = static_cast<int>(keys.Int("feed_forward_length", kMaxWidth, std::nullopt));
  config.layers.resize(static_cast<size_t>(keys.Int("block_count", kMaxLayers, std::nullopt)));
  config.heads = static_cast<int>(keys.Int("attention.head_count", kMaxWidth, std::nullopt));
  config.kv_heads = static_cast<int>(keys.Int("attention.head_count_kv", kMaxWidth, config.heads));
  config.context_length = static_cast<int>(keys.Int("context_length", kMaxContext, std::nullopt));
  config.norm_epsilon =
      static_cast<float>(keys.Positive("attention.layer_norm_rms_epsilon", std::nullopt));
  config.head_dim = static_cast<int>(
      keys.Int("attention.key_length", kMaxHeadDim, std::max(1, config.hidden / config.heads)));
  for (const char* same : {"attention.value_length", "rope.dimension_count"}) {
    const int64_t value = keys.Int(same, kMaxHeadDim, config.head_dim);
    if (value == config.head_dim) continue;
    keys.Fail(ErrorCode::kUnsupported, same,
              "is " + std::to_string(value) + "; expected the width of a head, " +
                  std::to_string(config.head_dim));
  }
  if (config.head_dim % 2 != 0) {
    keys.Fail(ErrorCode::kUnsupported, "attention.key_length", "heads must have an even width");
  }
  if (config.heads % config.kv_heads != 0) {
    keys.Fail(ErrorCode::kInvalid, "attention.head_count_kv", "must divide attention.head_count");
  }
  if (int64_t{config.heads} * config.head_dim > kMaxWidth) {
    keys.Fail(ErrorCode::kLimit, "attention.head_count", "heads times their width is too large");
  }
  const TensorView* embedding = file.Find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2 || embedding->shape[0] < 1 ||
      embedding->shape[0] > kMaxVocabulary) {
    keys.Fail(ErrorCode::kInvalid, "embedding_length",
              "the file has no matrix token_embd.weight of at most 2^24 rows");
  }
  if (keys.error()) return *keys.error();
  config.vocabulary = static_cast<int>(embedding->shape[0]);
  const int64_t stated = keys.Int("vocab_size", kMaxVocabulary, config.vocabulary);
  if (stated != config.vocabulary) {
    keys.Fail(ErrorCode::kInvalid, "vocab_size",
              "is " + std::to_string(stated) + "; token_embd.weight has " +
                  std::to_string(config.vocabulary) + " rows");
  }
  config.tied_embeddings = file.Find("output.weight") == nullptr;
  config.qkv_bias = file.Find("blk.0.attn_q.bias") != nullptr;
  config.o_bias = file.Find("blk.0.attn_output.bias") != nullptr;
  config.mlp_bias = file.Find("blk.0.ffn_gate.bias") != nullptr;
  config.paired_rotation = arch == "llama";
  config.ropes = {ReadRope(keys, file, config, arch == "gemma3" ? 1e6 : 1e4)};
  if (config.ropes[0].type == RopeType::kYarn) {
    config.context_length = static_cast<int>(
        std::clamp(config.ropes[0].original_context * config.ropes[0].factor,
                   static_cast<double>(config.context_length), static_cast<double>(kMaxContext)));
  }
  if (arch == "qwen3") config.qk_norm = true;
  if (arch == "gemma2") ReadGemma(keys, config, false, 46);
  if (arch == "gemma3") ReadGemma(keys, config, true, 62);
  if (arch == "llama" && keys.Has("attention.sliding_window")) {
    const auto window = static_cast<int>(keys.Int("attention.sliding_window", kMaxContext, 1));
    for (LayerConfig& layer : config.layers) layer.window = window;
  }
  for (LayerConfig& layer : config.layers) {
    if (layer.window >= config.context_length) layer.window = 0;
  }
  keys.RefuseTheRest();
  if (keys.error()) return *keys.error();

  Keys tokens(file, "tokenizer.ggml.");
  config.bos = tokens.Token("bos_token_id", config.vocabulary);
  for (const char* key : {"eos_token_id", "eot_token_id"}) {
    const TokenId id = tokens.Token(key, config.vocabulary);
    if (id != kNoToken && std::count(config.end_tokens.begin(), config.end_tokens.end(), id) == 0) {
      config.end_tokens.push_back(id);
    }
  }
  if (tokens.error()) return *tokens.error();
  return config;
}

const TensorNames& GgufNames() {
  static constexpr TensorNames kNames = {
      .embedding = "token_embd",
      .head = "output",
      .final_norm = "output_norm",
      .layer = "blk.",
      .attention_norm = "attn_norm",
      .attention_post_norm = "post_attention_norm",
      .mlp_norm = "ffn_norm",
      .mlp_post_norm = "post_ffw_norm",
      .q = "attn_q",
      .k = "attn_k",
      .v = "attn_v",
      .o = "attn_output",
      .q_norm = "attn_q_norm",
      .k_norm = "attn_k_norm",
      .gate = "ffn_gate",
      .up = "ffn_up",
      .down = "ffn_down",
  };
  return kNames;
}

Result<GgufVocabulary> ReadGgufVocabulary(const GgufFile& file) {
  Keys keys(file, "tokenizer.ggml.");
  GgufVocabulary out;
  out.model = keys.String("model", "");
  out.pre = keys.String("pre", "");
  const GgufValue* tokens = keys.Find("tokens");
  if (tokens == nullptr || tokens->kind != GgufValue::Kind::kArray || tokens->strings.empty()) {
    keys.Fail(ErrorCode::kInvalid, "tokens", "must be a list of strings");
    return *keys.error();
  }
  if (tokens->strings.size() > static_cast<size_t>(kMaxVocabulary)) {
    keys.Fail(ErrorCode::kLimit, "tokens", "more than 2^24");
    return *keys.error();
  }
  out.tokens = tokens->strings;
  const auto count = static_cast<int64_t>(out.tokens.size());
  const auto same_length = [&](const char* key, size_t size) {
    if (size == out.tokens.size()) return;
    keys.Fail(ErrorCode::kInvalid, key,
              "has " + std::to_string(size) + " numbers of the kind expected; there are " +
                  std::to_string(count) + " tokens");
  };
  if (const GgufValue* scores = keys.Find("scores")) {
    same_length("scores", scores->reals.size());
    out.scores = scores->reals;
  }
  if (const GgufValue* types = keys.Find("token_type")) {
    same_length("token_type", types->integers.size());
    out.types = types->integers;
  }
  if (const GgufValue* merges = keys.Find("merges")) out.merges = merges->strings;
  out.bos = keys.Token("bos_token_id", count);
  out.unknown = keys.Token("unknown_token_id", count);
  for (const char* key : {"eos_token_id", "eot_token_id"}) {
    const TokenId id = keys.Token(key, count);
    if (id != kNoToken) out.end_tokens.push_back(id);
  }
  out.add_bos = keys.Bool("add_bos_token", out.model == "llama");
  out.add_space_prefix = keys.Bool("add_space_prefix", true);
  if (keys.error()) return *keys.error();
  out.path = file.path();
  return out;
}

}  // namespace pawl
