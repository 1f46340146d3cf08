// A trained head that drafts, on the pages of the model that it drafts for (draft_head.h).
//
// A page has the head's state of each position next to keys and values, and the keys and values of
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
  config.head_state = config.hidden;
  if (head.layer) {
    Layer layer = *head.layer;
    layer.attention().rope = static_cast<int>(config.ropes.size());
    config.ropes.push_back(head.rope);
    config.layers.push_back(layer);
    config.head_layers = 1;
    weights.layers.push_back(std::move(head.weights));
  }
  weights.parameters += head.memory.parameters;
  weights.bytes += head.memory.bytes;
  return std::make_unique<TransformerCpu>(std::move(config), std::move(weights), from.kernels_,
                                          from.pool_.size(), from.worth_threads_, from.kv_,
                                          std::make_shared<const DraftHead>(std::move(head)));
}

int64_t TransformerCpu::HeadWidth() const {
  if (head_ == nullptr) return 0;
  const int64_t steps = head_->kind == DraftHead::Kind::kHydra ? std::ssize(head_->steps) + 1 : 2;
  return int64_t{config_.hidden} * std::max<int64_t>(steps, std::ssize(head_->taps));
}

float* TransformerCpu::HeadStateAt(int32_t slot) const {
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

void TransformerCpu::TapForHead(int layer) {
  const int64_t hidden = config_.hidden;
  const auto taps = static_cast<int64_t>(head_->taps.size());
  for (int64_t t = 0; t < taps; ++t) {
    if (head_->taps[static_cast<size_t>(t)] != layer) continue;
    for (size_t r = 0; r < active_.size(); ++r) {
      std::copy_n(x_.get() + static_cast<int64_t>(r) * hidden, hidden,
                  head_taps_.get() + (static_cast<int64_t>(r) * taps + t) * hidden);
    }
  }
}

void TransformerCpu::TapFinalForHead() {
  if (!head_->reads_final()) return;
  const int64_t hidden = config_.hidden;
  for (size_t i = 0; i < active_.size(); ++i) {
    std::copy_n(normed_.get() + static_cast<int64_t>(i) * hidden, hidden,
                head_taps_.get() + active_[i] * hidden);
  }
}

bool TransformerCpu::HeadReadsBehind(int layer) const {
  if (head_ == nullptr) return false;
  if (head_->kind == DraftHead::Kind::kHydra) return layer == config_.layer_count();
  return std::ranges::find(head_->taps, layer) != head_->taps.end();
}

void TransformerCpu::KeepForHead(std::span<const Row> rows, size_t first) {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t hidden = config_.hidden;
  if (head_->kind == DraftHead::Kind::kMedusa) {
    // Drafts begin behind rows with an output.
    for (int64_t r = 0; r < count; ++r) {
      if (rows[static_cast<size_t>(r)].output < 0) continue;
      std::copy_n(head_taps_.get() + r * hidden, hidden,
                  HeadStateAt(plan_.rows[first + static_cast<size_t>(r)].slot));
    }
    return;
  }
  if (head_->kind == DraftHead::Kind::kHydra) {
    const std::vector<int> layers = std::exchange(layers_, {config_.layer_count()});
    const bool taps = std::exchange(taps_behind_last_, false);
    RunPrefixLayer(rows, first);
    layers_ = layers;
    taps_behind_last_ = taps;
    return;
  }
  Pack(head_->fc.w.type, head_taps_.get(), head_->fc.w.cols, count);
  MatMul(head_->fc, x_.get(), false, count);
  for (int64_t r = 0; r < count; ++r) {
    std::copy_n(x_.get() + r * hidden, hidden,
                HeadStateAt(plan_.rows[first + static_cast<size_t>(r)].slot));
  }
  ReadStatesBefore(rows, first);
  MakeHeadInputs(rows);
  const int layer = config_.layer_count();
  Pack(weights_.layers[static_cast<size_t>(layer)].k.w.type, normed_.get(), 2 * hidden, count);
  StoreKeys(layer, rows, first);
}

// Hydra's layer: keys and values of all rows, states of those with an output.
void TransformerCpu::RunPrefixLayer(std::span<const Row> rows, size_t first) {
  const int64_t hidden = config_.hidden;
  const int index = config_.layer_count();
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(index)];
  std::copy_n(head_taps_.get(), static_cast<int64_t>(rows.size()) * hidden, x_.get());
  const auto norm = [&](const std::vector<float>& weight) {
    for (size_t i = 0; i < active_.size(); ++i) {
      const auto at = static_cast<int64_t>(i) * hidden;
      HeadNorm(x_.get() + at, weight, normed_.get() + at);
    }
  };
  norm(layer.attention_norm);
  AttentionLayer(index, rows, first);
  if (active_.empty()) return;
  norm(layer.mlp_norm);
  MlpLayer(config_.layers[static_cast<size_t>(index)], layer);
  norm(head_->final_norm);
  for (size_t i = 0; i < active_.size(); ++i) {
    std::copy_n(normed_.get() + static_cast<int64_t>(i) * hidden, hidden,
                HeadStateAt(plan_.rows[first + static_cast<size_t>(active_[i])].slot));
  }
}

// ---- Inputs ----

// The states in front of the rows, to x_.
void TransformerCpu::ReadStatesBefore(std::span<const Row> rows, size_t first) {
  const int64_t hidden = config_.hidden;
  for (size_t r = 0; r < rows.size(); ++r) {
    float* const x = x_.get() + static_cast<int64_t>(r) * hidden;
    const int32_t slot = SlotBefore(rows[r], first + r);
    if (slot < 0) {
      std::fill_n(x, hidden, 0.0f);
    } else {
      std::copy_n(HeadStateAt(slot), hidden, x);
    }
  }
}

void TransformerCpu::HeadNorm(const float* x, const std::vector<float>& weight, float* y) const {
  kernels_.rmsnorm(x, weight.data(), head_->epsilon, config_.hidden, y);
}

// Of each row the normed embedding of its token and the normed state of x_, to normed_.
void TransformerCpu::MakeHeadInputs(std::span<const Row> rows) {
  const int64_t hidden = config_.hidden;
  const Matrix& embedding = head_->embedding ? *head_->embedding : weights_.embedding;
  Parallel(static_cast<int64_t>(rows.size()), 4 * hidden, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      float* const input = normed_.get() + r * 2 * hidden;
      kernels_.read_row(embedding, rows[static_cast<size_t>(r)].token, input);
      HeadNorm(input, head_->input_norm, input);
      HeadNorm(x_.get() + r * hidden, head_->hidden_norm, input + hidden);
    }
  });
}

// ---- Calls of the head ----

Status TransformerCpu::PrepareHead(const ModelCall& call) {
  const int layer = config_.layer_count();
  layers_ = {layer};
  taps_behind_last_ = true;
  const size_t floats = call.rows.size() * static_cast<size_t>(config_.hidden);
  const auto needs = [&](const char* place, size_t has) {
    return Error{ErrorCode::kInvalid,
                 "has " + std::to_string(has) + " floats for the draft head, but the rows need " +
                     std::to_string(floats),
                 place};
  };
  const bool chained = head_->kind == DraftHead::Kind::kEagle3;
  if (!call.inputs.empty() && (!chained || call.inputs.size() < floats)) {
    return needs("inputs", call.inputs.size());
  }
  for (const ModelTap& tap : call.taps) {
    if (tap.layer != layer + 1 || !chained) {
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
  if (!head_->steps.empty()) return RunSteps(call, rows, first);
  const int64_t hidden = config_.hidden;
  const auto count = static_cast<int64_t>(rows.size());
  if (call.inputs.empty()) {
    ReadStatesBefore(rows, first);
  } else {
    std::copy_n(call.inputs.data() + first * static_cast<size_t>(hidden), count * hidden, x_.get());
  }
  MakeHeadInputs(rows);
  if (head_->norm_before_residual) {
    for (int64_t r = 0; r < count; ++r) {
      std::copy_n(normed_.get() + (2 * r + 1) * hidden, hidden, x_.get() + r * hidden);
    }
  }
  const int index = config_.layer_count();
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(index)];
  AttentionLayer(index, rows, first);
  const auto norm = [&](const std::vector<float>& weight) {
    for (int64_t r = 0; r < count; ++r) {
      HeadNorm(x_.get() + r * hidden, weight, normed_.get() + r * hidden);
    }
  };
  norm(layer.mlp_norm);
  MlpLayer(config_.layers[static_cast<size_t>(index)], layer);
  Tap(call, index + 1, x_.get(), rows.size(), first);
  norm(head_->final_norm);
  if (outputs_.size() < active_.size()) KeepRowsWithOutput(rows);
  if (!active_.empty()) HeadLogits(head_->head, normed_.get(), call.logits);
}

// Row i of a sequence in the call is the step i of the heads, on the state in front of its first
// row.
void TransformerCpu::RunSteps(const ModelCall& call, std::span<const Row> rows, size_t first) {
  const auto hidden = static_cast<size_t>(config_.hidden);
  const bool hydra = head_->kind == DraftHead::Kind::kHydra;
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
    if (step >= head_->steps.size() || slot < 0) {
      std::fill_n(logits, vocabulary_width(), kNoHeadLogit);
      continue;
    }
    const DraftHead::Step& weights = head_->steps[step];
    float* const x = x_.get();
    std::copy_n(HeadStateAt(slot), hidden, x);
    for (const Linear& block : weights.blocks) {
      const bool wide = hydra && &block == weights.blocks.data();
      float* const input = wide ? head_taps_.get() : x;
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
    HeadLogits(weights.head, x, call.logits);
    for (size_t t = 0; t < weights.bias.size(); ++t) logits[t] += weights.bias[t];
    std::swap(outputs_[0], outputs_[nth]);
    std::swap(allowed_[0], allowed_[nth]);
  }
}

// Of the rows of active_, which are in x. Tokens that the head does not have get kNoHeadLogit.
void TransformerCpu::HeadLogits(const Matrix& matrix, const float* x, std::span<float> logits) {
  const std::vector<TokenId>& targets = head_->targets;
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
