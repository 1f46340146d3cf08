// Inputs of layers (Gemma 4): next to the residual stream each layer reads a few numbers of a row's
// token, from an embedding of its own and from a projection of the first residual stream.
#include <cmath>

#include "src/model/transformer_cpu.h"

namespace pawl {

void TransformerCpu::FindLayerInputs(std::span<const Row> rows) {
  const int64_t width = config_.layer_input_width, all = width * config_.layer_count();
  const auto count = static_cast<int64_t>(rows.size());
  Pack(weights_.layer_projection.w.type, x_.get(), config_.hidden, count);
  MatMul(weights_.layer_projection, layer_inputs_.get(), false, count);
  const float projected = 1.0f / std::sqrt(static_cast<float>(config_.hidden));
  const float embedded = std::sqrt(static_cast<float>(width));
  constexpr float kHalfRoot = 0.70710678f;
  for (int64_t r = 0; r < count; ++r) {
    kernels_.read_row(weights_.layer_embedding, rows[static_cast<size_t>(r)].token,
                      layer_input_row_.data());
    for (int64_t at = 0; at < all; at += width) {
      float* input = layer_inputs_.get() + r * all + at;
      for (int64_t i = 0; i < width; ++i) input[i] *= projected;
      kernels_.rmsnorm(input, weights_.layer_projection_norm.data(), config_.norm_epsilon, width,
                       input);
      for (int64_t i = 0; i < width; ++i) {
        const float of_token = layer_input_row_[static_cast<size_t>(at + i)] * embedded;
        input[i] = (input[i] + of_token) * kHalfRoot;
      }
    }
  }
}

void TransformerCpu::AddLayerInput(int index, const TransformerLayer& layer) {
  const int64_t width = config_.layer_input_width, all = width * config_.layer_count();
  const auto rows = static_cast<int64_t>(active_.size());
  Pack(layer.input_gate.w.type, x_.get(), config_.hidden, rows);
  MatMul(layer.input_gate, gate_.get(), false, rows);
  for (int64_t a = 0; a < rows; ++a) {
    const float* input =
        layer_inputs_.get() + active_[static_cast<size_t>(a)] * all + index * width;
    Activate(Activation::kGeluTanh, gate_.get() + a * width, input, width);
  }
  Pack(layer.input_projection.w.type, gate_.get(), width, rows);
  AddToResidual(layer.input_projection, layer.input_norm, 1.0f, rows);
}

}  // namespace pawl
