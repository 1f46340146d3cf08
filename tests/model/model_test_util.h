// Shared by the model tests: the golden folders, their tensors, and running rows.
#ifndef PAWL_TESTS_MODEL_MODEL_TEST_UTIL_H_
#define PAWL_TESTS_MODEL_MODEL_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "src/model/model.h"
#include "src/model/safetensors.h"
#include "src/model/transformer_cpu.h"
#include "tests/source_dir.h"
#include "tests/support/kernel_variants.h"

namespace pawl {

inline const std::vector<std::string>& GoldenNames() {
  static const std::vector<std::string> names = {
      "llama-fp32-tied",     "llama-bf16-llama3",      "llama-fp16-headdim-sharded",
      "llama-bf16-dynamic",  "smollm2-bf16",           "mistral-bf16",
      "mistral-fp16-window", "qwen2-bf16-window-yarn", "qwen2-fp32-untied",
      "qwen3-bf16",          "qwen3-fp16-yarn",        "gemma2-bf16",
      "gemma3-bf16",         "gemma3-fp16-pattern"};
  return names;
}

// The name as one of a test.
inline std::string TestNameOf(std::string name) {
  for (char& c : name) {
    if (c == '-' || c == '/') c = '_';
  }
  return name;
}

inline std::string GoldenFolder(const std::string& name) {
  return SourceDir() + "/tests/data/models/" + name;
}

// The folders of scripts/make_family_goldens.py and scripts like it: "families/phi3", ...
inline std::vector<std::string> FamilyGoldenNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenFolder("families"))) {
    if (entry.is_directory()) names.push_back("families/" + entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

template <typename T>
std::vector<T> ReadTensor(const SafetensorsFile& file, const std::string& name) {
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr) {
    ADD_FAILURE() << "no tensor " << name;
    return {};
  }
  std::vector<T> values(static_cast<size_t>(tensor->bytes) / sizeof(T));
  std::memcpy(values.data(), tensor->data, values.size() * sizeof(T));
  return values;
}

struct Golden {
  std::vector<TokenId> prompt, greedy;
  std::vector<float> logits;  // [prompt][vocabulary]
};

inline std::vector<Golden> ReadGoldens(const std::string& name) {
  const Result<SafetensorsFile> file =
      SafetensorsFile::Open(GoldenFolder(name) + "/golden.safetensors");
  std::vector<Golden> goldens;
  if (!file.ok()) {
    ADD_FAILURE() << file.error().ToString();
    return goldens;
  }
  for (int i = 0; file->Find("prompt." + std::to_string(i)) != nullptr; ++i) {
    Golden golden;
    for (const int64_t t : ReadTensor<int64_t>(*file, "prompt." + std::to_string(i))) {
      golden.prompt.push_back(static_cast<TokenId>(t));
    }
    for (const int64_t t : ReadTensor<int64_t>(*file, "greedy." + std::to_string(i))) {
      golden.greedy.push_back(static_cast<TokenId>(t));
    }
    golden.logits = ReadTensor<float>(*file, "logits." + std::to_string(i));
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

// Products with integers round inputs to 8 bits, which the references do not.
inline WeightDtype GoldenDtype(const std::string& name) {
  return name.ends_with("mxfp4") ? WeightDtype::kFp32 : WeightDtype::kAsStored;
}

inline std::unique_ptr<Model> LoadGolden(const std::string& name, int threads = 1,
                                         KernelVariant kernels = KernelVariant::kAuto) {
  ModelOptions options;
  options.threads = threads;
  options.kernels = kernels;
  options.dtype = GoldenDtype(name);
  Result<std::unique_ptr<Model>> model = LoadModel(GoldenFolder(name), options);
  if (!model.ok()) {
    ADD_FAILURE() << model.error().ToString();
    return nullptr;
  }
  return *std::move(model);
}

// Its weights with another description.
inline std::unique_ptr<Model> MakeGolden(const std::string& name, TransformerConfig config,
                                         KernelVariant kernels, int threads = 1,
                                         int64_t worth_threads = kWorthThreads) {
  auto source = std::make_unique<Checkpoint>(*Checkpoint::Open(GoldenFolder(name)));
  const TensorNames names = HuggingFaceNames(config, source.get());
  Result<TransformerWeights> weights =
      LoadTransformerWeights(std::move(source), config, names, nullptr, GoldenDtype(name));
  if (!weights.ok()) {
    ADD_FAILURE() << weights.error().ToString();
    return nullptr;
  }
  return std::make_unique<TransformerCpu>(std::move(config), *std::move(weights),
                                          *FindKernels(kernels), threads, worth_threads);
}

inline std::vector<TokenId> RandomTokens(std::mt19937& random, int vocabulary, int count) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  for (TokenId& token : tokens)
    token = static_cast<TokenId>(random() % static_cast<unsigned>(vocabulary));
  return tokens;
}

inline SequenceId MakeSequence(Model& model, int capacity) {
  const Result<SequenceId> sequence = model.NewSequence(capacity);
  if (!sequence.ok()) {
    ADD_FAILURE() << sequence.error().ToString();
    return -1;
  }
  return *sequence;
}

// Logits of the rows that have an output, poisoned beforehand.
inline std::vector<float> RunRows(Model& model, const std::vector<Row>& rows) {
  int outputs = 0;
  for (const Row& row : rows) outputs = std::max(outputs, row.output + 1);
  std::vector<float> logits(
      static_cast<size_t>(outputs) * static_cast<size_t>(model.info().vocabulary_size),
      std::numeric_limits<float>::quiet_NaN());
  const Status status = model.Forward(rows, logits);
  if (!status.ok()) ADD_FAILURE() << status.error().ToString();
  return logits;
}

// One call for tokens at `position`, ..., every one with an output.
inline std::vector<float> RunChunk(Model& model, SequenceId sequence, int position,
                                   std::span<const TokenId> tokens) {
  std::vector<Row> rows;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto n = static_cast<int32_t>(i);
    rows.push_back({tokens[i], position + n, sequence, 0, n});
  }
  return RunRows(model, rows);
}

inline TokenId Argmax(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  return static_cast<TokenId>(best);
}

// ||a - b|| / ||b||; NaN when any value is.
inline double RelativeError(std::span<const float> a, std::span<const float> b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return std::sqrt(difference / norm);
}

inline std::vector<double> LogProbabilities(std::span<const float> logits) {
  double most = -1e30, sum = 0;
  for (const float x : logits) most = std::max(most, double{x});
  for (const float x : logits) sum += std::exp(x - most);
  std::vector<double> out;
  for (const float x : logits) out.push_back(x - most - std::log(sum));
  return out;
}

inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace pawl

#endif  // PAWL_TESTS_MODEL_MODEL_TEST_UTIL_H_
