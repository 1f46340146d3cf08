// The keys are those that llama.cpp's converters write, and what they leave out is what llama.cpp
// assumes. Files of a family differ from those of the reference implementation in names and, for
// some, in the order of rows and in what is added to norms: families/.
#include "src/model/gguf_model.h"

#include <algorithm>
#include <cstring>

#include "src/base/json.h"
#include "src/model/families/family.h"
#include "src/model/gguf_keys.h"

namespace pawl {
namespace {

// A tensor of what frequencies are divided by; where there is none, they are not.
void ReadGgufDivisors(GgufKeys& keys, const char* name, int width, std::vector<float>& divisors) {
  const TensorView* const tensor = keys.file().Find(name);
  if (tensor == nullptr) return;
  const std::vector<int64_t> shape = {width / 2};
  const auto fail = [&](const std::string& message) {
    keys.Fail(ErrorCode::kInvalid, "rope.dimension_count",
              "the tensor " + std::string(name) + " " + message);
  };
  if (tensor->dtype != "F32" || tensor->shape != shape) {
    return fail("is " + tensor->dtype + " " + ShapeToString(tensor->shape) + "; expected F32 " +
                ShapeToString(shape));
  }
  divisors.resize(static_cast<size_t>(width) / 2);
  std::memcpy(divisors.data(), tensor->data, divisors.size() * sizeof(float));
  for (const float divisor : divisors) {
    if (!(divisor > 0)) fail("holds a number that is not above 0");
  }
}

RopeConfig ReadGgufRope(GgufKeys& keys, const TransformerConfig& config, int width,
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
    rope.attention_factor = keys.Positive("rope.scaling.yarn_attn_factor",
                                          YarnAttentionFactor(rope.factor) * attention);
    rope.beta_fast = keys.Positive("rope.scaling.yarn_beta_fast", 32.0);
    rope.beta_slow = keys.Positive("rope.scaling.yarn_beta_slow", 1.0);
    if (keys.Has("rope.scaling.yarn_log_multiplier")) {
      const double all = keys.Positive("rope.scaling.yarn_log_multiplier", std::nullopt);
      rope.attention_factor =
          YarnAttentionFactor(rope.factor) / YarnAttentionFactor(rope.factor, all);
    }
  } else if (type == "longrope" || keys.file().Find("rope_factors_long.weight") != nullptr) {
    rope.type = RopeType::kLong;
    rope.original_context = original;
    rope.attention_factor = attention;
    keys.Find("rope.scaling.factor");
    for (const char* name : {"rope_factors_short.weight", "rope_factors_long.weight"}) {
      if (keys.file().Find(name) != nullptr) continue;
      keys.Fail(ErrorCode::kInvalid, "rope.scaling.type",
                "is \"longrope\"; expected a tensor " + std::string(name));
    }
  } else if (type == "none") {
    keys.Find("rope.scaling.factor");
  } else {
    keys.Fail(
        ErrorCode::kUnsupported, "rope.scaling.type",
        "is " + json::Quote(type.substr(0, 50)) + "; expected none, linear, yarn or longrope");
  }
  // How the rule of Llama 3 is stated.
  if (rope.type != RopeType::kLong) {
    ReadGgufDivisors(keys, "rope_freqs.weight", width, rope.divisors);
  } else {
    ReadGgufDivisors(keys, "rope_factors_short.weight", width, rope.divisors);
    ReadGgufDivisors(keys, "rope_factors_long.weight", width, rope.long_divisors);
  }
  return rope;
}

// The rows of the embedding, which count where a file does not say how many tokens there are.
int ReadVocabularySize(GgufKeys& keys) {
  const TensorView* embedding = keys.file().Find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2 || embedding->shape[0] < 1 ||
      embedding->shape[0] > kMaxVocabulary) {
    keys.Fail(ErrorCode::kInvalid, "embedding_length",
              "the file has no matrix token_embd.weight of at most 2^24 rows");
    return 1;
  }
  const int64_t rows = embedding->shape[0];
  const int64_t stated = keys.Int("vocab_size", kMaxVocabulary, rows);
  if (stated != rows) {
    keys.Fail(ErrorCode::kInvalid, "vocab_size",
              "is " + std::to_string(stated) + "; token_embd.weight has " + std::to_string(rows) +
                  " rows");
  }
  return static_cast<int>(rows);
}

// What all families have: a layer as most families repeat it.
void ReadGgufSizes(GgufKeys& keys, const Family& family, TransformerConfig& config) {
  const auto whole = [&](const char* key, int64_t high, std::optional<int64_t> otherwise) {
    return static_cast<int>(keys.Int(key, high, otherwise));
  };
  Attention attention;
  Mlp mlp;
  config.hidden = whole("embedding_length", kMaxWidth, std::nullopt);
  const int layers = whole("block_count", kMaxLayers, std::nullopt);
  // Of the first layer that has one, 0 of others; where layers differ, the family reads them.
  const auto first = [&](const char* key, std::optional<int64_t> otherwise) {
    std::vector<int64_t> all = keys.Ints(key, layers, kMaxWidth, otherwise, 0);
    std::erase(all, 0);
    if (all.empty()) return 1;
    if (!family.gguf_by_layer && std::ranges::count(all, all[0]) != std::ssize(all)) {
      keys.Fail(ErrorCode::kUnsupported, key, "differs by layer, which is not known here");
    }
    return static_cast<int>(all[0]);
  };
  // Files of models whose layers all have experts may lack it.
  const std::optional<int64_t> none =
      keys.Stands("expert_count") ? std::optional<int64_t>(1) : std::nullopt;
  mlp.width = first("feed_forward_length", none);
  attention.heads = whole("attention.head_count", kMaxWidth, std::nullopt);
  attention.kv_heads = first("attention.head_count_kv", attention.heads);
  config.context_length = whole("context_length", kMaxContext, std::nullopt);
  config.norm_epsilon = static_cast<float>(keys.Positive(family.gguf_epsilon_key, std::nullopt));
  attention.head_dim =
      whole("attention.key_length", kMaxHeadDim, std::max(1, config.hidden / attention.heads));
  int64_t value = keys.Int("attention.value_length", kMaxHeadDim, attention.head_dim);
  if (keys.Stands("attention.kv_lora_rank")) value = attention.head_dim;  // families/deepseek_v2.cc
  const int rotated = whole("rope.dimension_count", kMaxHeadDim, attention.head_dim);
  const auto half_even = [&](const char* key, int64_t width) {
    if (width <= attention.head_dim && width % 2 == 0) return;
    keys.Fail(ErrorCode::kUnsupported, key,
              "is " + std::to_string(width) +
                  "; expected an even number, at most the width of a "
                  "head, " +
                  std::to_string(attention.head_dim));
  };
  half_even("attention.key_length", attention.head_dim);
  half_even("rope.dimension_count", rotated);
  if (value != attention.head_dim) {
    keys.Fail(ErrorCode::kUnsupported, "attention.value_length",
              "is " + std::to_string(value) + "; expected the width of a head, " +
                  std::to_string(attention.head_dim));
  }
  if (attention.heads % attention.kv_heads != 0) {
    keys.Fail(ErrorCode::kInvalid, "attention.head_count_kv", "must divide attention.head_count");
  }
  if (int64_t{attention.heads} * attention.head_dim > kMaxWidth) {
    keys.Fail(ErrorCode::kLimit, "attention.head_count", "heads times their width is too large");
  }
  config.vocabulary = ReadVocabularySize(keys);
  keys.Find("pooling_type");  // of embeddings (engine/pooling.h)
  if (keys.error()) return;
  const auto has = [&](const char* tensor) { return keys.file().Find(tensor) != nullptr; };
  config.tied_embeddings = !has("output.weight");
  attention.qkv_bias = has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias");
  attention.o_bias = has("blk.0.attn_output.bias");
  mlp.bias = has("blk.0.ffn_up.bias");
  config.layers.assign(static_cast<size_t>(layers), {attention, mlp});
  RopeConfig rope = ReadGgufRope(keys, config, rotated, family.gguf_theta);
  if (rotated != attention.head_dim) rope.width = rotated;
  if (rope.type == RopeType::kYarn) {
    config.context_length = static_cast<int>(std::clamp(rope.original_context * rope.factor,
                                                        static_cast<double>(config.context_length),
                                                        static_cast<double>(kMaxContext)));
  }
  config.ropes = {std::move(rope)};
}

}  // namespace

Result<TransformerConfig> ReadGgufConfig(const GgufFile& file) {
  GgufKeys general(file, "general.");
  const std::string arch = general.String("architecture", "");
  const Family* const family = FindGgufFamily(arch);
  if (family == nullptr) {
    general.Fail(ErrorCode::kUnsupported, "architecture",
                 "is " + json::Quote(arch.substr(0, 100)) + WhyRefused(arch) +
                     "; expected one of " + FamilyNames(true));
    return *general.error();
  }
  TransformerConfig config;
  config.architecture = NameOf(*family);
  config.family = family;
  GgufKeys keys(file, arch + ".");
  ReadGgufSizes(keys, *family, config);
  if (keys.error()) return *keys.error();
  if (family->read_gguf != nullptr) family->read_gguf(keys, config);
  keys.RefuseTheRest();
  if (keys.error()) return *keys.error();
  Finish(config);

  GgufKeys tokens(file, "tokenizer.ggml.");
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

Result<GgufVocabulary> ReadGgufVocabulary(const GgufFile& file) {
  GgufKeys keys(file, "tokenizer.ggml.");
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
