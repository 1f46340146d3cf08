// Layers with states in the forward pass of transformer_cpu.cc:
//   gated delta net (Yang, Kautz, Hatamizadeh, 2024, as Qwen3-Next has it)
//     x += O * (silu(z) . norm(S' q)),  q, k, v = silu(convolution(M * norm(x)))
//   Mamba-2 (Dao, Gu, 2024)
//     x += O * norm(silu(z) . (S' c + D u)),  u, b, c = silu(convolution(M * norm(x)))
//   short convolution (LFM2, 2025)
//     x += O * (c . convolution(b . u)),  b, c, u = M * norm(x)
// The steps of the states are in recurrent_mixer.cc.
#include <cstring>
#include <utility>

#include "src/model/transformer_cpu.h"

namespace pawl {

// What a row's answer is multiplied by and normed with, behind the states or the convolution.
void TransformerCpu::FinishMixed(const Layer& spec, const TransformerLayer& layer, int64_t row) {
  if (std::holds_alternative<ShortConvolution>(spec.mixer)) {
    const int64_t width = config_.hidden;
    const float* c = z_.get() + (3 * row + 1) * width;
    float* y = attended_.get() + row * width;
    for (int64_t i = 0; i < width; ++i) y[i] *= c[i];
    return;
  }
  if (const auto* mamba = std::get_if<Mamba2>(&spec.mixer)) {
    const int64_t width = int64_t{mamba->heads} * mamba->head_dim;
    const int64_t group = width / mamba->groups;
    float* y = attended_.get() + row * width;
    kernels_.silu_mul(z_.get() + row * width, y, width, y);
    for (int64_t at = 0; at < width; at += group) {
      kernels_.rmsnorm(y + at, layer.state_norm.data() + at, config_.norm_epsilon, group, y + at);
    }
    return;
  }
  const auto& delta = std::get<GatedDeltaNet>(spec.mixer);
  const int64_t width = int64_t{delta.value_heads} * delta.value_dim;
  float* y = attended_.get() + row * width;
  for (int64_t h = 0; h < width; h += delta.value_dim) {
    kernels_.rmsnorm(y + h, layer.state_norm.data(), config_.norm_epsilon, delta.value_dim, y + h);
  }
  kernels_.silu_mul(z_.get() + row * width, y, width, y);
}

void TransformerCpu::RecurrentLayer(int index, std::span<const Row> rows) {
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const Layer& spec = config_.layers[static_cast<size_t>(index)];
  const RecurrentShape& shape = mixer_.shape(index);
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t hidden = config_.hidden, stride = shape.row_floats();
  Pack(layer.mixed.w.type, normed_.get(), hidden, count);
  if (std::holds_alternative<ShortConvolution>(spec.mixer)) {
    MatMul(layer.mixed, z_.get(), false, count);  // b, c, x
    Parallel(count, hidden, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        const float* b = z_.get() + 3 * r * hidden;
        float* to = mixed_.get() + r * hidden;
        for (int64_t i = 0; i < hidden; ++i) to[i] = b[i] * b[2 * hidden + i];
      }
    });
  } else {
    MatMul(layer.mixed, mixed_.get(), false, count, stride);
    MatMul(layer.decay, mixed_.get() + shape.channels, false, count, stride);
    if (shape.delta) {
      MatMul(layer.beta, mixed_.get() + shape.channels + shape.heads, false, count, stride);
    }
    MatMul(layer.z, z_.get(), false, count);
  }
  mixer_.Mix(index, recurrent_[static_cast<size_t>(index)], mixed_.get(), attended_.get());
  const int64_t width = layer.o.w.cols;
  Parallel(count, 4 * width, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) FinishMixed(spec, layer, r);
  });
  if (KeepsOutputsAfter(index)) {
    KeepRowsWithOutput(rows);
    if (active_.empty()) return;
    for (size_t i = 0; i < active_.size(); ++i) {
      std::memmove(attended_.get() + static_cast<int64_t>(i) * width,
                   attended_.get() + active_[i] * width,
                   static_cast<size_t>(width) * sizeof(float));
    }
  }
  const auto active = static_cast<int64_t>(active_.size());
  Pack(layer.o.w.type, attended_.get(), width, active);
  AddToResidual(layer.o, layer.attention_post_norm, spec.scale, active);
}

void TransformerCpu::PrepareStates() {
  mixer_.Restore(sequences_, plan_, recurrent_);
  for (size_t i = 0; i < plan_.changes.size(); ++i) {
    if (plan_.states[i].from == plan_.changes[i].base) continue;
    sequences_.PlanAgain(plan_, i, again_rows_, again_plan_);
    // All layers, whatever the call runs, and nothing of it is seen.
    const std::vector<int> layers = std::exchange(layers_, {});
    for (int layer = 0; layer < config_.layer_count(); ++layer) layers_.push_back(layer);
    const bool taps = std::exchange(taps_behind_last_, HeadsReadBehind(config_.layer_count()));
    AttachedHead* const head = std::exchange(running_head_, nullptr);
    std::swap(plan_, again_plan_);
    mixer_.BeginRows(sequences_, plan_);
    const std::span<const Row> rows = again_rows_;
    for (size_t first = 0; first < rows.size(); first += kBlockRows) {
      ForwardBlock(ModelCall(),
                   rows.subspan(first, std::min<size_t>(kBlockRows, rows.size() - first)), first);
    }
    std::swap(plan_, again_plan_);
    layers_ = layers;
    taps_behind_last_ = taps;
    running_head_ = head;
  }
  mixer_.BeginRows(sequences_, plan_);
}

}  // namespace pawl
