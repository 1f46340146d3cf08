// What rows read. Inputs of layers (Gemma 4): next to the residual stream each layer reads a few
// numbers of a row's token, from an embedding of its own and from a projection of the first
// residual stream. And mixes: a row that reads several tokens.
#include <algorithm>
#include <cmath>
#include <string>

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

void TransformerCpu::EmbedMix(std::span<const TokenWeight> mix, float* x) {
  std::fill_n(x, config_.hidden, 0.0f);
  for (const TokenWeight& part : mix) {
    kernels_.read_row(weights_.embedding, part.token, mixed_row_.data());
    for (int64_t i = 0; i < config_.hidden; ++i) {
      x[i] += part.weight * mixed_row_[static_cast<size_t>(i)];
    }
  }
}

Status TransformerCpu::CheckMixes(std::span<const Row> rows) {
  for (size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].mix.empty()) continue;
    // What belongs to a token alone: inputs of layers, and rows that are computed again by tokens.
    if (config_.layer_input_width > 0 || mixer_.has_states() || config_.both_sides) {
      return Error{ErrorCode::kUnsupported, "this model reads one token a row", "mix"};
    }
    const std::string place = "row " + std::to_string(r);
    if (rows[r].ancestors != 0) {
      return Error{ErrorCode::kInvalid, "a row of a tree has no mix", place};
    }
    for (const TokenWeight& part : rows[r].mix) {
      if (part.token >= 0 && part.token < config_.vocabulary && std::isfinite(part.weight)) {
        continue;
      }
      return Error{ErrorCode::kInvalid, "its mix has a token or a weight that there is not", place};
    }
    mixed_row_.resize(static_cast<size_t>(config_.hidden));
  }
  return {};
}

}  // namespace pawl
