// The tensors of a configuration are listed under the reference implementation's names with their
// shapes, and filled when the loader asks for them, so that it checks and converts them like those
// of any file. A hash of the place gives four values of 16 bits: a billion weights take a few
// seconds.
#include "src/model/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "kernels/cpu/kernels.h"
#include "src/base/pages.h"
#include "src/model/tensor_source.h"
#include "src/model/transformer_cpu.h"
#include "src/model/transformer_weights.h"

namespace pawl {
namespace {

struct Shape {
  const char* name;
  const char* architecture;
  int hidden, intermediate, layers, heads, kv_heads, head_dim, vocabulary, context;
  double theta;
  bool tied, qkv_bias;
};

constexpr Shape kShapes[] = {
    {"135m", "LlamaForCausalLM", 576, 1536, 30, 9, 3, 64, 49152, 8192, 100000, true, false},
    {"0.5b", "Qwen2ForCausalLM", 896, 4864, 24, 14, 2, 64, 151936, 32768, 1000000, true, true},
    {"1b", "LlamaForCausalLM", 2048, 8192, 16, 32, 8, 64, 128256, 131072, 500000, true, false},
    {"8b", "LlamaForCausalLM", 4096, 14336, 32, 32, 8, 128, 128256, 131072, 500000, false, false}};

// SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
uint64_t Hash(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

uint16_t Brain(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}

// Towards zero, which is all that random numbers need; |value| < 1 here. Below the smallest normal
// half: 0.
uint16_t Half(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const int exponent = static_cast<int>(bits >> 23 & 255) - 112;
  if (exponent <= 0) return 0;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | static_cast<uint32_t>(exponent) << 10 |
                               (bits >> 13 & 1023));
}

class RandomSource final : public TensorSource {
 public:
  // `keep`: each tensor has memory of its own, for matrices that stay where they are. Otherwise
  // what Find gives is good until the next call.
  RandomSource(WeightType type, uint64_t seed, bool keep) : type_(type), seed_(seed), keep_(keep) {}

  void AddMatrix(const std::string& name, int64_t rows, int64_t cols) {
    // A uniform value in [-a, a] has the variance a^2 / 3.
    Add(name, {rows, cols}, type_, std::sqrt(3.0f / static_cast<float>(cols)), 0.0f);
  }
  void AddVector(const std::string& name, int64_t size, float spread, float centre) {
    Add(name, {size}, WeightType::kF32, spread, centre);
  }

  const TensorView* Find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return nullptr;
    const Entry& entry = found->second;
    if (entry.view.data == nullptr || !keep_) Fill(entry);
    return &entry.view;
  }
  const std::string& PathOf(std::string_view) const override { return path_; }
  int64_t bytes() const override { return bytes_; }
  // f(name, shape, bytes) for each tensor.
  template <typename F>
  void ForEach(const F& f) const {
    for (const auto& [name, entry] : tensors_) f(name, entry.view.shape, entry.view.bytes);
  }

 private:
  struct Entry {
    mutable TensorView view;
    WeightType type;
    uint64_t stream;
    float spread, centre;
  };

  void Add(const std::string& name, std::vector<int64_t> shape, WeightType type, float spread,
           float centre) {
    int64_t bytes = WeightBytes(type);
    for (const int64_t size : shape) bytes *= size;
    bytes_ += bytes;
    const char* dtype = type == WeightType::kF32    ? "F32"
                        : type == WeightType::kBf16 ? "BF16"
                                                    : "F16";
    const uint64_t stream = Hash(seed_ + tensors_.size());
    tensors_.emplace(
        name, Entry{{dtype, std::move(shape), nullptr, bytes}, type, stream, spread, centre});
  }

  std::byte* Allocate(int64_t bytes) const {
    if (!keep_) memory_.Clear();
    return memory_.Allocate(bytes);
  }

  void Fill(const Entry& entry) const {
    std::byte* out = Allocate(entry.view.bytes);
    entry.view.data = out;
    const int64_t size = WeightBytes(entry.type), count = entry.view.bytes / size;
    const float unit = entry.spread / 32768.0f;
    for (int64_t first = 0; first < count; first += 4) {
      const uint64_t bits = Hash(entry.stream + static_cast<uint64_t>(first));
      for (int64_t i = first; i < first + 4 && i < count; ++i) {
        const auto draw = static_cast<int16_t>(bits >> (i - first) * 16);
        const float value = entry.centre + unit * static_cast<float>(draw);
        if (entry.type == WeightType::kF32) {
          std::memcpy(out + i * size, &value, sizeof value);
        } else {
          const uint16_t half = entry.type == WeightType::kBf16 ? Brain(value) : Half(value);
          std::memcpy(out + i * size, &half, sizeof half);
        }
      }
    }
  }

  const WeightType type_;
  const uint64_t seed_;
  const bool keep_;
  const std::string path_ = "random weights";
  std::map<std::string, Entry, std::less<>> tensors_;
  mutable HugeArena memory_;
  int64_t bytes_ = 0;
};

// Every tensor that LoadTransformerWeights asks for.
void AddTensors(const TransformerConfig& config, RandomSource& source) {
  const TensorNames& names = HuggingFaceNames(config);
  const int64_t hidden = config.hidden, inner = config.intermediate;
  const int64_t q_width = int64_t{config.heads} * config.head_dim;
  const int64_t kv_width = int64_t{config.kv_heads} * config.head_dim;
  const auto norm = [&](const std::string& name, int64_t size) {
    source.AddVector(name + ".weight", size, 0.0f, 1.0f - config.norm_offset);
  };
  const auto linear = [&](const std::string& name, int64_t outputs, int64_t inputs, bool bias) {
    source.AddMatrix(name + ".weight", outputs, inputs);
    if (bias) source.AddVector(name + ".bias", outputs, 0.1f, 0.0f);
  };
  source.AddMatrix(std::string(names.embedding) + ".weight", config.vocabulary, hidden);
  if (!config.tied_embeddings) linear(names.head, config.vocabulary, hidden, false);
  norm(names.final_norm, hidden);
  for (int i = 0; i < config.layer_count(); ++i) {
    const std::string prefix = names.layer + std::to_string(i) + ".";
    norm(prefix + names.attention_norm, hidden);
    norm(prefix + names.mlp_norm, hidden);
    if (config.post_norms) {
      norm(prefix + names.attention_post_norm, hidden);
      norm(prefix + names.mlp_post_norm, hidden);
    }
    if (config.qk_norm) {
      norm(prefix + names.q_norm, config.head_dim);
      norm(prefix + names.k_norm, config.head_dim);
    }
    linear(prefix + names.q, q_width, hidden, config.qkv_bias);
    linear(prefix + names.k, kv_width, hidden, config.qkv_bias);
    linear(prefix + names.v, kv_width, hidden, config.qkv_bias);
    linear(prefix + names.o, hidden, q_width, config.o_bias);
    linear(prefix + names.gate, inner, hidden, config.mlp_bias);
    linear(prefix + names.up, inner, hidden, config.mlp_bias);
    linear(prefix + names.down, hidden, inner, config.mlp_bias);
  }
}

bool AreIntegers(WeightDtype dtype) {
  return dtype == WeightDtype::kInt8 || dtype == WeightDtype::kInt4;
}

// Of the matrices that are made; integers are rounded from bf16.
WeightType SourceType(WeightDtype dtype) {
  return dtype == WeightDtype::kFp32   ? WeightType::kF32
         : dtype == WeightDtype::kFp16 ? WeightType::kF16
                                       : WeightType::kBf16;
}

}  // namespace

const std::vector<std::string>& ShapeNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Shape& shape : kShapes) all.emplace_back(shape.name);
    return all;
  }();
  return names;
}

std::optional<TransformerConfig> ShapeNamed(std::string_view name) {
  for (const Shape& shape : kShapes) {
    if (name != shape.name) continue;
    TransformerConfig config;
    config.architecture = shape.architecture;
    config.hidden = shape.hidden;
    config.intermediate = shape.intermediate;
    config.heads = shape.heads;
    config.kv_heads = shape.kv_heads;
    config.head_dim = shape.head_dim;
    config.vocabulary = shape.vocabulary;
    config.context_length = shape.context;
    config.layers.resize(static_cast<size_t>(shape.layers));
    config.ropes.emplace_back().theta = shape.theta;
    config.tied_embeddings = shape.tied;
    config.qkv_bias = shape.qkv_bias;
    return config;
  }
  return std::nullopt;
}

int64_t RandomModelBytes(const TransformerConfig& config, WeightDtype dtype) {
  RandomSource source(SourceType(dtype), 0, false);
  AddTensors(config, source);
  if (!AreIntegers(dtype)) return source.bytes();
  const TensorNames& names = HuggingFaceNames(config);
  const std::string outer[] = {names.embedding + std::string(".weight"),
                               names.head + std::string(".weight")};
  int64_t total = 0, largest = 0;  // one matrix is made at a time
  source.ForEach([&](const std::string& name, const std::vector<int64_t>& shape, int64_t bytes) {
    largest = std::max(largest, bytes);
    if (shape.size() == 1) {
      total += bytes;
      return;
    }
    const bool byte = dtype == WeightDtype::kInt8 || name == outer[0] || name == outer[1];
    Matrix matrix;
    matrix.type = byte ? WeightType::kI8 : WeightType::kI4;
    matrix.rows = shape[0];
    matrix.cols = shape[1];
    matrix.groups = QuantBlocks(matrix.cols);
    total += MatrixBytes(matrix);
  });
  return total + largest;
}

Result<std::unique_ptr<Model>> RandomModel(const TransformerConfig& config,
                                           const ModelOptions& options, uint64_t seed) {
  const KernelSet* kernels = FindKernels(options.kernels);
  if (kernels == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "this processor lacks the instructions of the kernels asked for", ""};
  }
  const bool integers = AreIntegers(options.dtype);
  try {
    auto source = std::make_unique<RandomSource>(SourceType(options.dtype), seed, !integers);
    AddTensors(config, *source);
    Result<TransformerWeights> weights = LoadTransformerWeights(
        std::move(source), config, HuggingFaceNames(config), options.progress,
        integers ? options.dtype : WeightDtype::kAsStored, options.threads);
    if (!weights.ok()) return weights.error();
    return std::unique_ptr<Model>(
        std::make_unique<TransformerCpu>(config, *std::move(weights), *kernels, options.threads));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kLimit, "not enough memory for the model", ""};
  }
}

}  // namespace pawl
