// Trained heads that draft, on the pages of the model that they draft for (draft_head.h).
//
// A page has a head's state of each position next to keys and values, and the keys and values of
// the head's layer as those of one layer more. So prefixes, forks, trees and truncated sequences
// have them like all others, and what was computed once for a prompt is there for the next one. A
// call of the whole model writes them behind its layers: the states of its rows, then the keys and
// values that the layer has for each row's token next to the state in front of it. The layer itself
// runs for drafts alone, in calls of its own.
//
// The pair of a token and the state in front of it has the token's position. The reference
// implementations give it the state's, which is one less throughout, and rotations know differences
// alone. Position 0 has no state in front of it, so no row sees it.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/model/draft_head.h"
#include "src/model/transformer_cpu.h"

namespace pawl {
namespace {

// Rows of a product that are computed together, where some are not wanted.
constexpr int64_t kHeadRows = 32;

}  // namespace

std::unique_ptr<TransformerCpu> TransformerCpu::WithHead(TransformerCpu&& from, DraftHead head) {
  from.pages_ = LazyMemory();
  TransformerConfig config = std::move(from.config_);
  TransformerWeights weights = std::move(from.weights_);
  for (size_t i = 0; i < from.recurrent_.size(); ++i) {
    weights.layers[i].recurrent = std::move(from.recurrent_[i]);
  }
  std::vector<std::shared_ptr<const DraftHead>> heads;
  for (AttachedHead& one : from.heads_) heads.push_back(std::move(one.head));
  config.head_state += config.hidden;
  if (head.layer) {
    Layer layer = *head.layer;
    if (head.rope) {
      layer.attention().rope = static_cast<int>(config.ropes.size());
      config.ropes.push_back(*head.rope);
    }
    config.layers.push_back(layer);
    ++config.head_layers;
    weights.layers.push_back(std::move(head.weights));
  }
  weights.parameters += head.memory.parameters;
  weights.bytes += head.memory.bytes;
  heads.push_back(std::make_shared<const DraftHead>(std::move(head)));
  return std::make_unique<TransformerCpu>(std::move(config), std::move(weights), from.kernels_,
                                          from.pool_.size(), from.worth_threads_, from.kv_, heads);
}

void TransformerCpu::AttachHeads(const std::vector<std::shared_ptr<const DraftHead>>& heads) {
  int layer = config_.layer_count();
  for (const std::shared_ptr<const DraftHead>& head : heads) {
    AttachedHead& one = heads_.emplace_back();
    one.head = head;
    if (head->layer) one.layer = layer++;
    one.state_at = std::ssize(heads_) * config_.hidden - config_.hidden;
  }
}

int64_t TransformerCpu::HeadWidth(const DraftHead& head, int64_t hidden) {
  const int64_t steps = head.kind == DraftHead::Kind::kHydra ? std::ssize(head.steps) + 1 : 2;
  return hidden * std::max<int64_t>(steps, std::ssize(head.taps));
}

int64_t TransformerCpu::HeadsWidth() const {
  int64_t width = 0;
  for (const AttachedHead& one : heads_) {
    width = std::max(width, HeadWidth(*one.head, config_.hidden));
  }
  return width;
}

float* TransformerCpu::HeadStatesAt(int32_t slot) const {
  return static_cast<float*>(pages_.data()) + int64_t{slot / kPagePositions} * page_floats_ +
         head_states_at_ + int64_t{slot % kPagePositions} * config_.head_state;
}

int32_t TransformerCpu::SlotBefore(const Row& row, size_t planned_row) const {
  const PlannedRow& planned = plan_.rows[planned_row];
  if (planned.extra_count >= 2) {
    return plan_.extra[static_cast<size_t>(planned.extra_begin + planned.extra_count - 2)];
  }
  const int32_t position = planned.extra_count == 1 ? planned.prefix - 1 : row.position - 1;
  if (position < 0) return -1;
  const auto page = static_cast<size_t>(planned.pages_begin + position / kPagePositions);
  return plan_.pages[page] * kPagePositions + position % kPagePositions;
}

// ---- In calls of the whole model ----

void TransformerCpu::TapForHeads(int layer) {
  const int64_t hidden = config_.hidden;
  for (const AttachedHead& one : heads_) {
    const auto taps = static_cast<int64_t>(one.head->taps.size());
    for (int64_t t = 0; t < taps; ++t) {
      if (one.head->taps[static_cast<size_t>(t)] != layer) continue;
      for (size_t r = 0; r < active_.size(); ++r) {
        std::copy_n(x_.get() + static_cast<int64_t>(r) * hidden, hidden,
                    one.taps.get() + (static_cast<int64_t>(r) * taps + t) * hidden);
      }
    }
  }
}

void TransformerCpu::TapFinalForHeads() {
  const int64_t hidden = config_.hidden;
  for (const AttachedHead& one : heads_) {
    if (!one.head->reads_final()) continue;
    for (size_t i = 0; i < active_.size(); ++i) {
      std::copy_n(normed_.get() + static_cast<int64_t>(i) * hidden, hidden,
                  one.taps.get() + active_[i] * hidden);
    }
  }
}

bool TransformerCpu::HeadsReadBehind(int layer) const {
  return std::ranges::any_of(heads_, [&](const AttachedHead& one) {
    if (one.head->reads_all_final() && layer == config_.layer_count()) return true;
    return std::ranges::find(one.head->taps, layer) != one.head->taps.end();
  });
}

bool TransformerCpu::IsOfPairs(int layer) const {
  return layer >= config_.layer_count() &&
         std::ranges::any_of(heads_, [&](const AttachedHead& one) {
           return one.layer == layer && one.head->pairs();
         });
}

void TransformerCpu::KeepForHeads(std::span<const Row> rows, size_t first) {
  for (const AttachedHead& one : heads_) {
    BeginBlock(rows);
    KeepForHead(one, rows, first);
  }
}

void TransformerCpu::KeepForHead(const AttachedHead& to, std::span<const Row> rows, size_t first) {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t hidden = config_.hidden;
  const DraftHead& head = *to.head;
  const auto keep = [&](const float* states, int64_t r) {
    std::copy_n(states + r * hidden, hidden,
                HeadStateAt(to, plan_.rows[first + static_cast<size_t>(r)].slot));
  };
  if (head.kind == DraftHead::Kind::kMedusa) {
    // Drafts begin behind rows with an output.
    for (int64_t r = 0; r < count; ++r) {
      if (rows[static_cast<size_t>(r)].output >= 0) keep(to.taps.get(), r);
    }
    return;
  }
  if (head.kind == DraftHead::Kind::kHydra) {
    const std::vector<int> layers = std::exchange(layers_, {to.layer});
    const bool taps = std::exchange(taps_behind_last_, false);
    RunPrefixLayer(to, rows, first);
    layers_ = layers;
    taps_behind_last_ = taps;
    return;
  }
  const float* states = to.taps.get();
  if (head.kind == DraftHead::Kind::kEagle3) {
    Pack(head.fc.w.type, to.taps.get(), head.fc.w.cols, count);
    MatMul(head.fc, x_.get(), false, count);
    states = x_.get();
  }
  for (int64_t r = 0; r < count; ++r) keep(states, r);
  ReadStatesBefore(to, rows, first);
  MakeHeadInputs(head, rows);
  StoreHeadKeys(to, rows, first);
}

void TransformerCpu::StoreHeadKeys(const AttachedHead& to, std::span<const Row> rows,
                                   size_t first) {
  const auto count = static_cast<int64_t>(rows.size());
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(to.layer)];
  if (to.head->kind == DraftHead::Kind::kEagle3) {
    Pack(layer.k.w.type, normed_.get(), int64_t{2} * config_.hidden, count);
    return StoreKeys(to.layer, rows, first);
  }
  Norm(layer.attention_norm, layer.attention_norm_bias, count);
  const Mixer& mixer = config_.layers[static_cast<size_t>(to.layer)].mixer;
  const bool latent = std::holds_alternative<LatentAttention>(mixer);
  Pack((latent ? layer.kv_a : layer.k).w.type, normed_.get(), config_.hidden, count);
  if (latent) return StoreCompressed(to.layer, rows, first);
  StoreKeys(to.layer, rows, first);
}

// Hydra's layer: keys and values of all rows, states of those with an output.
void TransformerCpu::RunPrefixLayer(const AttachedHead& to, std::span<const Row> rows,
                                    size_t first) {
  const int64_t hidden = config_.hidden;
  const int index = to.layer;
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(index)];
  std::copy_n(to.taps.get(), static_cast<int64_t>(rows.size()) * hidden, x_.get());
  const auto norm = [&](const std::vector<float>& weight) {
    for (size_t i = 0; i < active_.size(); ++i) {
      const auto at = static_cast<int64_t>(i) * hidden;
      HeadNorm(*to.head, x_.get() + at, weight, normed_.get() + at);
    }
  };
  norm(layer.attention_norm);
  AttentionLayer(index, rows, first);
  if (active_.empty()) return;
  norm(layer.mlp_norm);
  MlpLayer(config_.layers[static_cast<size_t>(index)], layer);
  norm(to.head->final_norm);
  for (size_t i = 0; i < active_.size(); ++i) {
    std::copy_n(normed_.get() + static_cast<int64_t>(i) * hidden, hidden,
                HeadStateAt(to, plan_.rows[first + static_cast<size_t>(active_[i])].slot));
  }
}

// ---- Inputs ----

// The states in front of the rows, to x_.
void TransformerCpu::ReadStatesBefore(const AttachedHead& to, std::span<const Row> rows,
                                      size_t first) {
  const int64_t hidden = config_.hidden;
  for (size_t r = 0; r < rows.size(); ++r) {
    float* const x = x_.get() + static_cast<int64_t>(r) * hidden;
    const int32_t slot = SlotBefore(rows[r], first + r);
    if (slot < 0) {
      std::fill_n(x, hidden, 0.0f);
    } else {
      std::copy_n(HeadStateAt(to, slot), hidden, x);
    }
  }
}

void TransformerCpu::HeadNorm(const DraftHead& head, const float* x,
                              const std::vector<float>& weight, float* y) const {
  kernels_.rmsnorm(x, weight.data(), head.epsilon, config_.hidden, y);
}

// Of each row the normed embedding of its token and the normed state of x_, to normed_. Of a block
// of the model's own, what its linear map makes of them, to x_.
void TransformerCpu::MakeHeadInputs(const DraftHead& head, std::span<const Row> rows) {
  const int64_t hidden = config_.hidden;
  const Matrix& embedding = head.embedding ? *head.embedding : weights_.embedding;
  Parallel(static_cast<int64_t>(rows.size()), 4 * hidden, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      float* const input = normed_.get() + r * 2 * hidden;
      kernels_.read_row(embedding, rows[static_cast<size_t>(r)].token, input);
      HeadNorm(head, input, head.input_norm, input);
      HeadNorm(head, x_.get() + r * hidden, head.hidden_norm, input + hidden);
    }
  });
  if (head.kind != DraftHead::Kind::kMtp) return;
  Pack(head.fc.w.type, normed_.get(), 2 * hidden, static_cast<int64_t>(rows.size()));
  MatMul(head.fc, x_.get(), false, static_cast<int64_t>(rows.size()));
}

// ---- Calls of the head ----

TransformerCpu::AttachedHead* TransformerCpu::HeadOf(const ModelCall& call) {
  if (call.layers.size() != 1) return nullptr;
  const int64_t number = int64_t{call.layers[0]} - config_.layer_count();
  if (number < 0 || number >= std::ssize(heads_)) return nullptr;
  return &heads_[static_cast<size_t>(number)];
}

Status TransformerCpu::PrepareHead(const ModelCall& call) {
  layers_ = {running_head_->layer};
  taps_behind_last_ = true;
  const auto hidden = static_cast<size_t>(config_.hidden);
  const size_t floats = call.rows.size() * hidden;
  const auto needs = [&](const char* place, size_t has) {
    return Error{ErrorCode::kInvalid,
                 "has " + std::to_string(has) + " floats for the draft head, but the rows need " +
                     std::to_string(floats),
                 place};
  };
  const bool chained = running_head_->head->pairs();
  const size_t given = call.inputs.size();
  if (given > 0 && (!chained || given > floats || given % hidden != 0)) {
    return needs("inputs", given);
  }
  for (const ModelTap& tap : call.taps) {
    if (tap.layer != call.layers[0] + 1 || !chained) {
      return Error{ErrorCode::kInvalid,
                   "has layer " + std::to_string(tap.layer) + ", which does not run", "taps"};
    }
    if (tap.states.size() < floats) return needs("taps", tap.states.size());
  }
  for (size_t i = 0; i < call.rows.size(); ++i) {
    if (call.rows[i].position > 0) continue;
    return Error{ErrorCode::kInvalid, "position 0 has no state in front of it",
                 "row " + std::to_string(i)};
  }
  return {};
}

void TransformerCpu::RunHead(const ModelCall& call, std::span<const Row> rows, size_t first) {
  const AttachedHead& to = *running_head_;
  const DraftHead& head = *to.head;
  if (!head.steps.empty()) return RunSteps(call, rows, first);
  const auto hidden = static_cast<size_t>(config_.hidden);
  ReadStatesBefore(to, rows, first);
  const size_t without = call.rows.size() - call.inputs.size() / hidden;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (first + r < without) continue;
    std::copy_n(call.inputs.data() + (first + r - without) * hidden, hidden, x_.get() + r * hidden);
  }
  MakeHeadInputs(head, rows);
  if (head.kind == DraftHead::Kind::kMtp) {
    RunLayer(to.layer, rows, first);
  } else {
    RunEagleLayer(to, rows, first);
  }
  if (!head.normed_states) Tap(call, call.layers[0] + 1, x_.get(), rows.size(), first);
  for (size_t r = 0; r < rows.size(); ++r) {
    HeadNorm(head, x_.get() + r * hidden, head.final_norm, normed_.get() + r * hidden);
  }
  if (head.normed_states) Tap(call, call.layers[0] + 1, normed_.get(), rows.size(), first);
  if (outputs_.size() < active_.size()) KeepRowsWithOutput(rows);
  if (!active_.empty()) HeadLogits(head, head.head, normed_.get(), call.logits);
}

void TransformerCpu::RunEagleLayer(const AttachedHead& to, std::span<const Row> rows,
                                   size_t first) {
  const int64_t hidden = config_.hidden;
  const auto count = static_cast<int64_t>(rows.size());
  if (to.head->norm_before_residual) {
    for (int64_t r = 0; r < count; ++r) {
      std::copy_n(normed_.get() + (2 * r + 1) * hidden, hidden, x_.get() + r * hidden);
    }
  }
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(to.layer)];
  AttentionLayer(to.layer, rows, first);
  for (int64_t r = 0; r < count; ++r) {
    HeadNorm(*to.head, x_.get() + r * hidden, layer.mlp_norm, normed_.get() + r * hidden);
  }
  MlpLayer(config_.layers[static_cast<size_t>(to.layer)], layer);
}

// Row i of a sequence in the call is the step i of the heads, on the state in front of its first
// row.
void TransformerCpu::RunSteps(const ModelCall& call, std::span<const Row> rows, size_t first) {
  const AttachedHead& to = *running_head_;
  const DraftHead& head = *to.head;
  const auto hidden = static_cast<size_t>(config_.hidden);
  const bool hydra = head.kind == DraftHead::Kind::kHydra;
  size_t given = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].output < 0) continue;
    size_t root = r;
    while (root > 0 && rows[root - 1].sequence == rows[r].sequence) --root;
    const auto step = static_cast<size_t>(rows[r].position - rows[root].position);
    float* const logits =
        call.logits.data() + static_cast<size_t>(rows[r].output) * vocabulary_width();
    const size_t nth = given++;
    const int32_t slot = SlotBefore(rows[root], first + root);
    if (step >= head.steps.size() || slot < 0) {
      std::fill_n(logits, vocabulary_width(), kNoHeadLogit);
      continue;
    }
    const DraftHead::Step& weights = head.steps[step];
    float* const x = x_.get();
    std::copy_n(HeadStateAt(to, slot), hidden, x);
    for (const Linear& block : weights.blocks) {
      const bool wide = hydra && &block == weights.blocks.data();
      float* const input = wide ? to.taps.get() : x;
      if (wide) {
        std::copy_n(x, hidden, input);
        for (size_t i = 0; i <= step; ++i) {
          kernels_.read_row(weights_.embedding, rows[root + i].token, input + (i + 1) * hidden);
        }
      }
      Pack(block.w.type, input, block.w.cols, 1);
      MatMul(block, normed_.get(), false, 1);
      if (wide) MatMul(weights.residual, x, false, 1);
      for (size_t i = 0; i < hidden; ++i) x[i] += normed_[i] / (1.0f + std::exp(-normed_[i]));
    }
    std::swap(outputs_[0], outputs_[nth]);
    std::swap(allowed_[0], allowed_[nth]);
    active_.assign(1, static_cast<int32_t>(r));
    HeadLogits(head, weights.head, x, call.logits);
    for (size_t t = 0; t < weights.bias.size(); ++t) logits[t] += weights.bias[t];
    std::swap(outputs_[0], outputs_[nth]);
    std::swap(allowed_[0], allowed_[nth]);
  }
}

// Of the rows of active_, which are in x. Tokens that the head does not have get kNoHeadLogit.
void TransformerCpu::HeadLogits(const DraftHead& head, const Matrix& matrix, const float* x,
                                std::span<float> logits) {
  const std::vector<TokenId>& targets = head.targets;
  const auto rows = static_cast<int64_t>(active_.size());
  Pack(matrix.type, x, config_.hidden, rows);
  MatMulArgs args;
  args.w = matrix;
  args.x = packed_.get();
  args.rows = static_cast<int>(rows);
  if (!targets.empty()) head_logits_.resize(static_cast<size_t>(rows * matrix.rows));
  args.y = targets.empty() ? logits.data() : head_logits_.data();
  args.y_stride = targets.empty() ? config_.vocabulary : matrix.rows;
  args.y_rows = targets.empty() ? outputs_.data() : nullptr;
  const auto wanted = [&](int64_t token) {
    const auto t =
        static_cast<size_t>(targets.empty() ? token : targets[static_cast<size_t>(token)]);
    for (int64_t i = 0; i < rows; ++i) {
      const std::span<const uint32_t> words = allowed_[static_cast<size_t>(i)];
      if (words.empty() || (t / 32 < words.size() && (words[t / 32] >> t % 32 & 1) != 0)) {
        return true;
      }
    }
    return false;
  };
  head_pieces_.clear();
  for (int64_t begin = 0; begin < matrix.rows; begin += kHeadRows) {
    const int64_t end = std::min(begin + kHeadRows, matrix.rows);
    bool any = false;
    for (int64_t token = begin; token < end && !any; ++token) any = wanted(token);
    if (!any) continue;
    if (!head_pieces_.empty() && head_pieces_.back().end == begin &&
        begin - head_pieces_.back().begin < 8 * kHeadRows) {
      head_pieces_.back().end = end;
    } else {
      head_pieces_.push_back({begin, end});
    }
  }
  const auto pieces = static_cast<int64_t>(head_pieces_.size());
  Parallel(pieces, int64_t{config_.hidden} * rows * 8 * kHeadRows, 1,
           [&](int64_t from, int64_t to, int) {
             for (int64_t i = from; i < to; ++i) {
               const HeadPiece& piece = head_pieces_[static_cast<size_t>(i)];
               kernels_.matmul(args, piece.begin, piece.end);
             }
           });
  if (targets.empty()) return;
  for (int64_t i = 0; i < rows; ++i) {
    float* const out =
        logits.data() + static_cast<size_t>(outputs_[static_cast<size_t>(i)]) * vocabulary_width();
    std::fill_n(out, vocabulary_width(), kNoHeadLogit);
    for (const HeadPiece& piece : head_pieces_) {
      for (int64_t token = piece.begin; token < piece.end; ++token) {
        out[targets[static_cast<size_t>(token)]] =
            head_logits_[static_cast<size_t>(i * matrix.rows + token)];
      }
    }
  }
}

}  // namespace pawl
