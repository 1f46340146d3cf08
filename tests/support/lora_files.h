// Adapters and checkpoints for tests: folders as PEFT and Hugging Face save them.
#ifndef PAWL_TESTS_SUPPORT_LORA_FILES_H_
#define PAWL_TESTS_SUPPORT_LORA_FILES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "src/model/safetensors.h"

namespace pawl {

struct FloatTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using FloatTensors = std::map<std::string, FloatTensor>;

inline void WriteText(const std::string& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

inline void WriteSafetensors(const std::string& file, const FloatTensors& tensors) {
  std::string header = "{", data;
  for (const auto& [name, tensor] : tensors) {
    if (header.size() > 1) header += ",";
    header += "\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[";
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      header += (i > 0 ? "," : "") + std::to_string(tensor.shape[i]);
    }
    const size_t begin = data.size(), bytes = tensor.values.size() * sizeof(float);
    data.resize(begin + bytes);
    std::memcpy(data.data() + begin, tensor.values.data(), bytes);
    header +=
        "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
  }
  header += "}";
  while (header.size() % 8 != 0) header += ' ';
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> 8 * i);
  WriteText(file, length + header + data);
}

// All tensors of a folder that are floats.
inline FloatTensors ReadFloats(const Checkpoint& checkpoint) {
  FloatTensors tensors;
  for (const std::string& name : checkpoint.Names()) {
    const TensorView& view = *checkpoint.Find(name);
    const WeightType type = view.dtype == "BF16"  ? WeightType::kBf16
                            : view.dtype == "F16" ? WeightType::kF16
                                                  : WeightType::kF32;
    FloatTensor& tensor = tensors[name];
    tensor.shape = view.shape;
    size_t size = 1;
    for (const int64_t extent : view.shape) size *= static_cast<size_t>(extent);
    tensor.values.resize(size);
    std::vector<float> aligned(static_cast<size_t>(view.bytes) / 4 + 1);
    std::memcpy(aligned.data(), view.data, static_cast<size_t>(view.bytes));
    FindKernels(KernelVariant::kPortable)
        ->to_float(aligned.data(), type, static_cast<int64_t>(size), tensor.values.data());
  }
  return tensors;
}

// A random adapter of some modules of a checkpoint.
struct TestLora {
  int rank = 4;
  double alpha = 8;
  bool root = false;
  std::map<std::string, int> ranks;  // rank_pattern, by the whole name of a module
  std::map<std::string, double> alphas;
  FloatTensors tensors;

  static std::string NameOf(const std::string& module, char which) {
    return "base_model.model." + module + ".lora_" + which + ".weight";
  }
  int RankOf(const std::string& module) const {
    const auto found = ranks.find(module);
    return found == ranks.end() ? rank : found->second;
  }
  double ScaleOf(const std::string& module) const {
    const auto found = alphas.find(module);
    const double r = RankOf(module);
    return (found == alphas.end() ? alpha : found->second) / (root ? std::sqrt(r) : r);
  }

  void Add(const std::string& module, int64_t outputs, int64_t inputs, std::mt19937& random) {
    const auto fill = [&](int64_t rows, int64_t cols, char which) {
      FloatTensor& tensor = tensors[NameOf(module, which)];
      tensor.shape = {rows, cols};
      std::normal_distribution<float> normal(0, 0.15f);
      for (int64_t i = 0; i < rows * cols; ++i) tensor.values.push_back(normal(random));
    };
    fill(RankOf(module), inputs, 'A');
    fill(outputs, RankOf(module), 'B');
  }

  std::string ConfigJson() const {
    std::string text = "{\"peft_type\":\"LORA\",\"r\":" + std::to_string(rank) +
                       ",\"lora_alpha\":" + std::to_string(alpha) +
                       ",\"use_rslora\":" + (root ? "true" : "false") +
                       ",\"bias\":\"none\",\"use_dora\":false,\"modules_to_save\":null," +
                       "\"task_type\":\"CAUSAL_LM\",\"rank_pattern\":{";
    for (const auto& [module, r] : ranks) {
      if (text.back() != '{') text += ",";
      text += "\"" + module + "\":" + std::to_string(r);
    }
    text += "},\"alpha_pattern\":{";
    for (const auto& [module, a] : alphas) {
      if (text.back() != '{') text += ",";
      text += "\"" + module + "\":" + std::to_string(a);
    }
    return text + "}}";
  }

  void Write(const std::string& folder) const {
    std::filesystem::create_directories(folder);
    WriteText(folder + "/adapter_config.json", ConfigJson());
    WriteSafetensors(folder + "/adapter_model.safetensors", tensors);
  }

  // W + s B A, in place.
  void MergeInto(FloatTensors& weights) const {
    for (const auto& [name, b] : tensors) {
      const std::string prefix = "base_model.model.", suffix = ".lora_B.weight";
      if (!name.ends_with(suffix)) continue;
      const std::string module =
          name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
      const FloatTensor& a = tensors.at(NameOf(module, 'A'));
      FloatTensor& w = weights.at(module + ".weight");
      const int64_t inputs = w.shape[1];
      const auto r = static_cast<int64_t>(RankOf(module));
      for (size_t i = 0; i < w.values.size(); ++i) {
        const int64_t row = static_cast<int64_t>(i) / inputs,
                      col = static_cast<int64_t>(i) % inputs;
        double sum = 0;
        for (int64_t k = 0; k < r; ++k) {
          sum += double{b.values[static_cast<size_t>(row * r + k)]} *
                 a.values[static_cast<size_t>(k * inputs + col)];
        }
        w.values[i] = static_cast<float>(w.values[i] + ScaleOf(module) * sum);
      }
    }
  }
};

}  // namespace pawl

#endif  // PAWL_TESTS_SUPPORT_LORA_FILES_H_
