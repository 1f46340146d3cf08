// A tensor is made when the loader asks for it, which checks and converts it like those of any
// file. A hash of the place gives four values of 16 bits: a billion weights take a few seconds.
#include "src/model/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "kernels/cpu/kernels.h"
#include "src/base/pages.h"
#include "src/model/families/family.h"
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

// Makes each tensor when it is asked for with its shape. So a tensor's numbers depend on how many
// were made before it.
class RandomSource final : public TensorSource {
 public:
  enum class Memory {
    kNone,  // matrices have no numbers
    kOne,   // what a call gives is good until the next one
    kEach   // each tensor has its own, for matrices that stay where they are
  };
  RandomSource(WeightType type, uint64_t seed, float norm, Memory memory)
      : type_(type), seed_(seed), norm_(norm), memory_(memory) {}

  const TensorView* Find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second.view;
  }
  const TensorView* FindOfShape(std::string_view name,
                                const std::vector<int64_t>& shape) const override {
    auto found = tensors_.find(name);
    if (found == tensors_.end()) found = Add(std::string(name), shape);
    const Entry& entry = found->second;
    const bool numbers = shape.size() == 1 || memory_ != Memory::kNone;
    if (numbers && (entry.view.data == nullptr || memory_ != Memory::kEach)) Fill(entry);
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

  using Entries = std::map<std::string, Entry, std::less<>>;

  // Matrices: a uniform value in [-a, a] has the variance a^2 / 3.
  Entries::iterator Add(const std::string& name, std::vector<int64_t> shape) const {
    const bool matrix = shape.size() > 1, bias = name.ends_with(".bias");
    const WeightType type = matrix ? type_ : WeightType::kF32;
    const float spread =
        matrix ? std::sqrt(3.0f / static_cast<float>(shape.back())) : (bias ? 0.1f : 0.0f);
    int64_t bytes = WeightBytes(type);
    for (const int64_t size : shape) bytes *= size;
    bytes_ += bytes;
    const char* dtype = type == WeightType::kF32    ? "F32"
                        : type == WeightType::kBf16 ? "BF16"
                                                    : "F16";
    const uint64_t stream = Hash(seed_ + tensors_.size());
    Entry entry = {{dtype, std::move(shape), nullptr, bytes},
                   type,
                   stream,
                   spread,
                   matrix || bias ? 0.0f : norm_};
    return tensors_.emplace(name, std::move(entry)).first;
  }

  std::byte* Allocate(int64_t bytes) const {
    if (memory_ != Memory::kEach) arena_.Clear();
    return arena_.Allocate(bytes);
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
  const float norm_;  // the weights of norms
  const Memory memory_;
  const std::string path_ = "random weights";
  mutable Entries tensors_;
  mutable HugeArena arena_;
  mutable int64_t bytes_ = 0;
};

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
    config.family = FindFamily(shape.architecture);
    config.hidden = shape.hidden;
    config.vocabulary = shape.vocabulary;
    config.context_length = shape.context;
    Attention attention;
    attention.heads = shape.heads;
    attention.kv_heads = shape.kv_heads;
    attention.head_dim = shape.head_dim;
    attention.qkv_bias = shape.qkv_bias;
    config.layers.assign(static_cast<size_t>(shape.layers),
                         {attention, Mlp{.width = shape.intermediate}});
    config.ropes.emplace_back().theta = shape.theta;
    config.tied_embeddings = shape.tied;
    return config;
  }
  return std::nullopt;
}

int64_t RandomModelBytes(const TransformerConfig& config, WeightDtype dtype) {
  const TensorNames names = HuggingFaceNames(config);
  RandomSource source(SourceType(dtype), 0, 1.0f, RandomSource::Memory::kNone);
  // Asks for all tensors.
  (void)PlanTransformerWeights(source, config, names, WeightDtype::kAsStored);
  if (!AreIntegers(dtype)) return source.bytes();
  const std::string outer[] = {names.body + names.embedding + ".weight", names.head + ".weight"};
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
    const TensorNames names = HuggingFaceNames(config);
    auto source = std::make_unique<RandomSource>(
        SourceType(options.dtype), seed, 1.0f - names.norm_offset,
        integers ? RandomSource::Memory::kOne : RandomSource::Memory::kEach);
    Result<TransformerWeights> weights =
        LoadTransformerWeights(std::move(source), config, names, options.progress,
                               integers ? options.dtype : WeightDtype::kAsStored, options.threads);
    if (!weights.ok()) return weights.error();
    return std::unique_ptr<Model>(
        std::make_unique<TransformerCpu>(config, *std::move(weights), *kernels, options.threads));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kLimit, "not enough memory for the model", ""};
  }
}

}  // namespace pawl
