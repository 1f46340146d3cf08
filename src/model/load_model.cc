// From a folder or a GGUF file to a running model: the description, the weights it asks for, the
// backend.
#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "src/base/json.h"
#include "src/model/draft_head.h"
#include "src/model/gguf.h"
#include "src/model/gguf_model.h"
#include "src/model/lora.h"
#include "src/model/model.h"
#include "src/model/quantize.h"
#include "src/model/quantized_checkpoint.h"
#include "src/model/safetensors.h"
#include "src/model/transformer_config.h"
#include "src/model/transformer_cpu.h"
#if defined(PAWL_HAVE_CUDA)
#include "src/model/transformer_cuda.h"
#endif
#include "src/model/tensor_source.h"
#include "src/model/transformer_weights.h"

namespace pawl {
namespace {

struct Opened {
  TransformerConfig config;
  TensorNames names;
  std::unique_ptr<TensorSource> source;
};

Result<Opened> OpenFolder(const std::string& folder) {
  Result<TransformerConfig> config = ReadTransformerConfig(folder);
  if (!config.ok()) return config.error();
  Result<Checkpoint> checkpoint = Checkpoint::Open(folder);
  if (!checkpoint.ok()) return checkpoint.error();
  TensorNames names = HuggingFaceNames(*config, &*checkpoint);
  std::unique_ptr<TensorSource> source;
  if (config->quantization.kind == CheckpointFormat::Kind::kFloats) {
    source = std::make_unique<Checkpoint>(*std::move(checkpoint));
  } else {
    source = std::make_unique<QuantizedCheckpoint>(*std::move(checkpoint), config->quantization);
  }
  return Opened{*std::move(config), std::move(names), std::move(source)};
}

Result<Opened> OpenGguf(const std::string& path) {
  Result<GgufFile> file = GgufFile::Open(path);
  if (!file.ok()) return file.error();
  Result<TransformerConfig> config = ReadGgufConfig(*file);
  if (!config.ok()) return config.error();
  TensorNames names = GgufNames(*config);
  return Opened{*std::move(config), std::move(names), std::make_unique<GgufFile>(*std::move(file))};
}

// Few of the names: a layer too many has a dozen tensors.
std::string UnusedTensors(const std::vector<std::string>& names, const TransformerConfig& config) {
  constexpr size_t kShown = 3;
  std::string text = std::to_string(names.size()) +
                     (names.size() == 1 ? " tensor is" : " tensors are") + " not used: ";
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i > 0 ? ", " : "") + json::Quote(names[i].substr(0, 100));
  }
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  const int layers = config.layer_count();
  return text + " (the configuration has " + std::to_string(layers) +
         (layers == 1 ? " layer)" : " layers)");
}

// What the weights will take, where that is worth a word: where it is much, or much more than the
// file has.
std::string WhatWeightsTake(const WeightPlan& plan, WeightDtype dtype) {
  constexpr double kMib = 1 << 20;
  const auto memory = static_cast<double>(plan.memory_bytes);
  const auto file = static_cast<double>(plan.file_bytes);
  const bool more = dtype == WeightDtype::kAsStored && memory > 1.15 * file && memory > file + kMib;
  if (!more && plan.memory_bytes < int64_t{1} << 30) return "";
  const auto size = [](double mib) {
    const bool large = mib >= 1024;
    const auto tenths = static_cast<int64_t>((large ? mib / 1024 : mib) * 10 + 0.5);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
           (large ? " GiB" : " MiB");
  };
  std::string text =
      "the weights take " + size(memory / kMib) + " of memory; the files have " + size(file / kMib);
  if (!more) return text;
  for (const auto& [type, bytes] : plan.types) {
    const std::optional<PackedFormat> format = FormatOfBlocks(type);
    if (!format) continue;
    const Matrix one = ShapeOf(*format, kQuantTile, format->block_elements);
    const double weights = static_cast<double>(kQuantTile * format->block_elements);
    const double bits = static_cast<double>(MatrixBytes(one)) * 8 / weights;
    const auto hundredths = static_cast<int>(bits * 100 + 0.5);
    return text + " (a weight of " + type + " takes " + std::to_string(hundredths / 100) + "." +
           std::to_string(hundredths / 10 % 10) + std::to_string(hundredths % 10) + " bits)";
  }
  return text;
}

#if defined(PAWL_HAVE_CUDA)
constexpr bool kHasCuda = true;
Status FindDevice() {
  Result<cuda::DeviceFacts> device = cuda::CurrentDevice();
  if (!device.ok()) return device.error();
  return {};
}

Result<std::unique_ptr<Model>> MakeOnCuda(const TransformerConfig& config,
                                          const TransformerWeights& weights,
                                          const ModelOptions& options) {
  cuda::TransformerCudaOptions cuda_options;
  cuda_options.cache = options.kv_dtype == KvDtype::kFp32  ? cuda::CacheType::kF32
                       : options.kv_dtype == KvDtype::kFp8 ? cuda::CacheType::kFp8
                                                           : cuda::CacheType::kBf16;
  cuda_options.fp8_weights = options.dtype == WeightDtype::kFp8;
  cuda_options.kv_bytes = options.kv_bytes;
  cuda_options.kept_kv_bytes = options.kept_kv_bytes;
  cuda_options.threads = options.threads;
  return cuda::TransformerCuda::Make(config, weights, cuda_options);
}
#else
constexpr bool kHasCuda = false;
Status FindDevice() { return Error{ErrorCode::kUnsupported, "not built with CUDA", "cuda"}; }
Result<std::unique_ptr<Model>> MakeOnCuda(const TransformerConfig&, const TransformerWeights&,
                                          const ModelOptions&) {
  return FindDevice().error();
}
#endif

}  // namespace

bool HasCudaKernels() { return kHasCuda; }

Result<WeightPlan> PlanWeights(const std::string& path, WeightDtype dtype) {
  Result<Opened> opened = LooksLikeGguf(path) ? OpenGguf(path) : OpenFolder(path);
  if (!opened.ok()) return opened.error();
  Result<WeightPlan> plan =
      PlanTransformerWeights(*opened->source, opened->config, opened->names, dtype);
  if (!plan.ok()) return plan;
  plan->page_bytes = TransformerCpu::PageBytes(opened->config);
  plan->context_pages = PagesFor(opened->config.context_length);
  plan->vocabulary_size = opened->config.vocabulary;
  return plan;
}

Result<int> ContextLengthOf(const std::string& path) {
  Result<TransformerConfig> config = Error{};
  if (LooksLikeGguf(path)) {
    Result<GgufFile> file = GgufFile::Open(path);
    if (!file.ok()) return file.error();
    config = ReadGgufConfig(*file);
  } else {
    config = ReadTransformerConfig(path);
  }
  if (!config.ok()) return config.error();
  return config->context_length;
}

Result<std::unique_ptr<Model>> LoadModel(const std::string& path, const ModelOptions& options,
                                         const std::function<void(const std::string&)>& note) {
  const KernelSet* kernels = FindKernels(options.kernels);
  if (kernels == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "this processor lacks the instructions of the kernels asked for", ""};
  }
  Device device = options.device;
  // Before the weights are read: where there is no device it is known at once.
  const auto use_cpu = [&](const Error& why) {
    device = Device::kCpu;
    if (options.on_fallback) options.on_fallback(why.message);
  };
  if (device != Device::kCpu) {
    if (Status found = FindDevice(); !found.ok()) {
      if (device == Device::kCuda) return found.error();
      use_cpu(found.error());
    }
  }
  if (device != Device::kCpu && !options.lora.empty()) {
    const Error why = {ErrorCode::kUnsupported, "LoRA adapters run on the CPU alone", "lora"};
    if (device == Device::kCuda) return why;
    use_cpu(why);
  }
  if (device == Device::kCpu && options.dtype == WeightDtype::kFp8) {
    return Error{ErrorCode::kUnsupported, "fp8 weights are for CUDA devices alone", "dtype"};
  }
  try {
    Result<Opened> opened = LooksLikeGguf(path) ? OpenGguf(path) : OpenFolder(path);
    if (!opened.ok()) return opened.error();
    if (const int64_t page = TransformerCpu::PageBytes(opened->config);
        options.kv_bytes < 0 || (options.kv_bytes > 0 && options.kv_bytes < page)) {
      return Error{ErrorCode::kLimit,
                   "a key-value memory of " + std::to_string(options.kv_bytes) +
                       " bytes does not hold a page of " + std::to_string(page),
                   path};
    }
    if (note) {
      const Result<WeightPlan> plan =
          PlanTransformerWeights(*opened->source, opened->config, opened->names, options.dtype);
      if (!plan.ok()) return plan.error();
      if (const std::string text = WhatWeightsTake(*plan, options.dtype); !text.empty()) note(text);
    }
    Result<TransformerWeights> weights =
        LoadTransformerWeights(std::move(opened->source), opened->config, opened->names,
                               options.progress, options.dtype, options.threads);
    if (!weights.ok()) return weights.error();
    LeaveOutOwnBlock(opened->config, *weights);
    if (note && !weights->unused.empty()) note(UnusedTensors(weights->unused, opened->config));
    if (!options.lora.empty()) {
      Status status =
          LoadAdapters(options.lora, options.lora_bytes, opened->config, opened->names, *weights);
      if (!status.ok()) return status.error();
    }
    if (device != Device::kCpu) {
      Result<std::unique_ptr<Model>> model = MakeOnCuda(opened->config, *weights, options);
      if (model.ok() || device == Device::kCuda || options.dtype == WeightDtype::kFp8) return model;
      use_cpu(model.error());
    }
    return std::unique_ptr<Model>(std::make_unique<TransformerCpu>(
        std::move(opened->config), *std::move(weights), *kernels, options.threads, kWorthThreads,
        KvBytes{options.kv_bytes, options.kept_kv_bytes}));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kLimit, "not enough memory to load the model", path};
  }
}

}  // namespace pawl
