// Golden models whose weights are integers, as models with the same weights in float: the reference
// for arithmetic on integers, without the rounding of weights.
#ifndef PAWL_TESTS_MODEL_FLOAT_WEIGHTS_H_
#define PAWL_TESTS_MODEL_FLOAT_WEIGHTS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/model/safetensors.h"
#include "src/model/transformer_config.h"
#include "src/model/transformer_cpu.h"
#include "src/model/transformer_weights.h"
#include "tests/model/model_test_util.h"

namespace pawl {

// A model and the floats that its matrices point into.
struct FloatModel {
  std::vector<std::vector<float>> floats;
  std::unique_ptr<Model> model;
};

// The golden model `name` with the weights that `dtype` rounds it to, computed in float.
inline FloatModel LoadInFloat(const std::string& name, WeightDtype dtype) {
  FloatModel out;
  const std::string folder = GoldenFolder(name);
  Result<TransformerConfig> config = ReadTransformerConfig(folder);
  Result<Checkpoint> checkpoint = Checkpoint::Open(folder);
  EXPECT_TRUE(config.ok() && checkpoint.ok());
  auto source = std::make_unique<Checkpoint>(*std::move(checkpoint));
  const TensorNames& names = HuggingFaceNames(*config, source.get());
  Result<TransformerWeights> weights =
      LoadTransformerWeights(std::move(source), *config, names, nullptr, dtype);
  EXPECT_TRUE(weights.ok());
  const KernelSet& kernels = *FindKernels(KernelVariant::kPortable);
  const auto widen = [&](Matrix& matrix) {
    if (!IsQuantized(matrix.type)) return;
    std::vector<float>& values = out.floats.emplace_back(static_cast<size_t>(matrix.rows) *
                                                         static_cast<size_t>(matrix.cols));
    for (int64_t r = 0; r < matrix.rows; ++r) {
      kernels.read_row(matrix, r, values.data() + r * matrix.cols);
    }
    matrix = {values.data(), WeightType::kF32, matrix.rows, matrix.cols};
  };
  widen(weights->embedding);
  widen(weights->head);
  for (TransformerLayer& layer : weights->layers) {
    for (Linear* linear :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      widen(linear->w);
    }
    ExpertWeights& experts = layer.experts;
    widen(experts.router.w);
    widen(experts.shared_weight.w);
    experts.experts.push_back(std::move(experts.shared));
    for (ExpertWeights::Expert& expert : experts.experts) {
      for (Linear* linear : {&expert.gate, &expert.up, &expert.down}) widen(linear->w);
    }
    experts.shared = std::move(experts.experts.back());
    experts.experts.pop_back();
  }
  out.model = std::make_unique<TransformerCpu>(*std::move(config), *std::move(weights), kernels, 1,
                                               kWorthThreads, KvBytes{1 << 24, 0});
  return out;
}

}  // namespace pawl

#endif  // PAWL_TESTS_MODEL_FLOAT_WEIGHTS_H_
