// Writes GGUF files for tests: by hand, value by value, and from a model folder as a converter
// would.
#ifndef PAWL_TESTS_MODEL_GGUF_WRITER_H_
#define PAWL_TESTS_MODEL_GGUF_WRITER_H_

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/model/safetensors.h"
#include "src/model/transformer_config.h"
#include "src/model/transformer_weights.h"
#include "tests/model/model_test_util.h"

namespace pawl {

class GgufWriter {
 public:
  template <typename T>
  static void Append(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static void AppendString(std::string& out, std::string_view text) {
    Append<uint64_t>(out, text.size());
    out += text;
  }

  void Add(const std::string& key, uint32_t value) { Put<uint32_t>(key, 4, value); }
  void Add(const std::string& key, int value) {
    Put<uint32_t>(key, 4, static_cast<uint32_t>(value));
  }
  void Add(const std::string& key, uint16_t value) { Put<uint16_t>(key, 2, value); }
  void Add(const std::string& key, float value) { Put<float>(key, 6, value); }
  void Add(const std::string& key, bool value) { Put<uint8_t>(key, 7, value ? 1 : 0); }
  void Add(const std::string& key, std::string_view value) {
    Key(key, 8);
    AppendString(values_, value);
  }
  void Add(const std::string& key, const std::vector<std::string>& list) {
    Key(key, 9);
    Append<uint32_t>(values_, 8);
    Append<uint64_t>(values_, list.size());
    for (const std::string& text : list) AppendString(values_, text);
  }
  template <typename T>
  void AddNumbers(const std::string& key, uint32_t type, const std::vector<T>& list) {
    Key(key, 9);
    Append<uint32_t>(values_, type);
    Append<uint64_t>(values_, list.size());
    for (const T value : list) Append<T>(values_, value);
  }
  // `shape`: rows first. `type`: ggml's number.
  void AddTensor(std::string name, uint32_t type, std::vector<int64_t> shape, std::string bytes) {
    tensors_.push_back({std::move(name), type, std::move(shape), std::move(bytes)});
  }

  std::string File(uint64_t alignment = 32) const {
    std::string out = "GGUF";
    Append<uint32_t>(out, 3);
    Append<uint64_t>(out, tensors_.size());
    Append<uint64_t>(out, count_);
    out += values_;
    std::string data;
    for (const Tensor& tensor : tensors_) {
      AppendString(out, tensor.name);
      Append<uint32_t>(out, static_cast<uint32_t>(tensor.shape.size()));
      for (size_t d = tensor.shape.size(); d-- > 0;) {
        Append<uint64_t>(out, static_cast<uint64_t>(tensor.shape[d]));
      }
      Append<uint32_t>(out, tensor.type);
      Append<uint64_t>(out, data.size());
      data += tensor.bytes;
      data.resize((data.size() + alignment - 1) / alignment * alignment);
    }
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data;
  }

 private:
  struct Tensor {
    std::string name;
    uint32_t type;
    std::vector<int64_t> shape;
    std::string bytes;
  };
  void Key(const std::string& key, uint32_t type) {
    AppendString(values_, key);
    Append<uint32_t>(values_, type);
    ++count_;
  }
  template <typename T>
  void Put(const std::string& key, uint32_t type, T value) {
    Key(key, type);
    Append<T>(values_, value);
  }

  std::string values_;
  uint64_t count_ = 0;
  std::vector<Tensor> tensors_;
};

// Turns the floats of a matrix into blocks of a type; nullptr keeps the file's own dtype.
struct GgufEncoding {
  uint32_t type;
  std::function<std::string(std::span<const float>)> encode;
};

// The GGUF file of a golden folder whose description is `config`, as a converter for `arch` writes
// it: norms as F32 with their offset, q and k of llama in pairs.
inline GgufWriter WriteGolden(const std::string& name, const std::string& arch,
                              const TransformerConfig& config,
                              const GgufEncoding* encoding = nullptr) {
  GgufWriter out;
  const std::string a = arch + ".";
  const Attention& attention = config.layers[0].attention();
  out.Add("general.architecture", std::string_view(arch));
  out.Add(a + "embedding_length", config.hidden);
  out.Add(a + "feed_forward_length", config.layers[0].mlp().width);
  out.Add(a + "block_count", config.layer_count());
  out.Add(a + "attention.head_count", attention.heads);
  out.Add(a + "attention.head_count_kv", attention.kv_heads);
  out.Add(a + "attention.key_length", attention.head_dim);
  out.Add(a + "attention.value_length", attention.head_dim);
  out.Add(a + "context_length", config.context_length);
  out.Add(a + "attention.layer_norm_rms_epsilon", config.norm_epsilon);
  const RopeConfig& rope = config.ropes[0];
  out.Add(a + "rope.freq_base", static_cast<float>(rope.theta));
  if (rope.type == RopeType::kLinear || rope.type == RopeType::kYarn) {
    out.Add(a + "rope.scaling.type",
            std::string_view(rope.type == RopeType::kLinear ? "linear" : "yarn"));
    out.Add(a + "rope.scaling.factor", static_cast<float>(rope.factor));
    out.Add(a + "rope.scaling.original_context_length", static_cast<int>(rope.original_context));
  }
  if (rope.type == RopeType::kLlama3) {
    RopeConfig plain;
    plain.theta = rope.theta;
    std::vector<float> unscaled, scaled;
    RopeFrequencies(plain, attention.head_dim, 0, unscaled);
    RopeFrequencies(rope, attention.head_dim, 0, scaled);
    std::string divisors;
    for (size_t i = 0; i < scaled.size(); ++i) {
      GgufWriter::Append<float>(divisors, unscaled[i] / scaled[i]);
    }
    out.AddTensor("rope_freqs.weight", 0, {attention.head_dim / 2}, divisors);
  }
  int window = 0;
  for (const Layer& layer : config.layers) window = std::max(window, layer.attention().window);
  if (window > 0) out.Add(a + "attention.sliding_window", window);
  if (attention.soft_cap > 0) out.Add(a + "attn_logit_softcapping", attention.soft_cap);
  if (config.logit_soft_cap > 0) out.Add(a + "final_logit_softcapping", config.logit_soft_cap);
  if (arch == "gemma3") {
    out.Add(a + "attention.sliding_window_pattern", 2);
    out.Add(a + "rope.freq_base_swa", static_cast<float>(config.ropes[1].theta));
  }
  if (config.bos != kNoToken) out.Add("tokenizer.ggml.bos_token_id", config.bos);
  for (size_t i = 0; i < config.end_tokens.size() && i < 2; ++i) {
    out.Add(i == 0 ? "tokenizer.ggml.eos_token_id" : "tokenizer.ggml.eot_token_id",
            config.end_tokens[i]);
  }

  const Result<Checkpoint> checkpoint = Checkpoint::Open(GoldenFolder(name));
  const KernelSet& kernels = *FindKernels(KernelVariant::kPortable);
  const auto put = [&](const std::string& from, const std::string& to, float offset, int heads) {
    const TensorView* tensor = checkpoint->Find(from);
    if (tensor == nullptr) return;
    const bool vector = tensor->shape.size() == 1;
    const WeightType type = tensor->dtype == "F32"    ? WeightType::kF32
                            : tensor->dtype == "BF16" ? WeightType::kBf16
                                                      : WeightType::kF16;
    const int64_t rows = tensor->shape[0], cols = vector ? 1 : tensor->shape[1];
    std::vector<float> floats(static_cast<size_t>(rows * cols));
    // Files place tensors anywhere.
    std::vector<std::byte> aligned(tensor->data, tensor->data + tensor->bytes);
    kernels.to_float(aligned.data(), type, rows * cols, floats.data());
    std::string bytes(reinterpret_cast<const char*>(tensor->data),
                      static_cast<size_t>(tensor->bytes));
    uint32_t id = type == WeightType::kF32 ? 0 : type == WeightType::kF16 ? 1 : 30;
    if (vector || encoding != nullptr) {
      for (float& value : floats) value += offset;
      id = vector ? 0 : encoding->type;
      bytes = vector ? std::string(reinterpret_cast<const char*>(floats.data()), floats.size() * 4)
                     : encoding->encode(floats);
    }
    if (heads > 0 && arch == "llama") {
      const auto row_bytes = bytes.size() / static_cast<size_t>(rows);
      const int64_t dim = rows / heads, half = dim / 2;
      std::string paired = bytes;
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t within = r % dim;
        const int64_t to_row = r - within + (within % half) * 2 + within / half;
        std::memcpy(paired.data() + static_cast<size_t>(to_row) * row_bytes,
                    bytes.data() + static_cast<size_t>(r) * row_bytes, row_bytes);
      }
      bytes = paired;
    }
    out.AddTensor(to, id, tensor->shape, bytes);
  };
  const TensorNames hf = HuggingFaceNames(config);
  const float offset = hf.norm_offset;
  put("model.embed_tokens.weight", "token_embd.weight", 0, 0);
  put("lm_head.weight", "output.weight", 0, 0);
  put("model.norm.weight", "output_norm.weight", offset, 0);
  for (int i = 0; i < config.layer_count(); ++i) {
    const std::string from = "model.layers." + std::to_string(i) + ".";
    const std::string to = "blk." + std::to_string(i) + ".";
    const std::pair<const char*, const char*> norms[] = {
        {hf.attention_norm, "attn_norm"},
        {config.layers[0].post_norms ? hf.attention_post_norm : "", "post_attention_norm"},
        {hf.mlp_norm, "ffn_norm"},
        {hf.mlp_post_norm, "post_ffw_norm"},
        {hf.q_norm, "attn_q_norm"},
        {hf.k_norm, "attn_k_norm"}};
    for (const auto& [theirs, ours] : norms) {
      put(from + theirs + ".weight", to + ours + ".weight", offset, 0);
    }
    const struct {
      const char *theirs, *ours;
      int heads;
    } linears[] = {{hf.q, "attn_q", attention.heads},
                   {hf.k, "attn_k", attention.kv_heads},
                   {hf.v, "attn_v", 0},
                   {hf.o, "attn_output", 0},
                   {hf.gate, "ffn_gate", 0},
                   {hf.up, "ffn_up", 0},
                   {hf.down, "ffn_down", 0}};
    for (const auto& l : linears) {
      put(from + l.theirs + ".weight", to + l.ours + ".weight", 0, l.heads);
      put(from + l.theirs + ".bias", to + l.ours + ".bias", 0, l.heads);
    }
  }
  return out;
}

}  // namespace pawl

#endif  // PAWL_TESTS_MODEL_GGUF_WRITER_H_
