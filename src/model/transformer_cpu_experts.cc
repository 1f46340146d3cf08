// Experts (Shazeer et al., "Outrageously Large Neural Networks", 2017): a router scores all experts
// for each row, the best few of them run, and the sum of their answers, each times its weight, is
// the layer's. Rows are sorted by expert, so that each expert in use is read once for all its rows,
// and the others are not read. A row's answers are added in the order of its experts' numbers,
// which does not depend on the other rows.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/model/transformer_cpu.h"

namespace pawl {
namespace {

// Outputs of a product that one thread takes at a time.
constexpr int64_t kExpertPiece = 256;

// (up + 1) g sigmoid(1.702 g) to gate, both clamped.
void ClampedSwiGlu(float clamp, const float* up, int64_t width, float* gate) {
  constexpr float kAlpha = 1.702f;
  for (int64_t i = 0; i < width; ++i) {
    const float g = std::min(gate[i], clamp), u = std::clamp(up[i], -clamp, clamp);
    gate[i] = (u + 1.0f) * (g / (1.0f + std::exp(-kAlpha * g)));
  }
}

// Scores of one row to weights of all experts, but for kSoftmaxOfChosen, where they stay.
void WeighExperts(Experts::Weights kind, std::span<float> scores) {
  if (kind == Experts::Weights::kSoftmaxOfChosen) return;
  if (kind == Experts::Weights::kSigmoid) {
    for (float& score : scores) score = 1.0f / (1.0f + std::exp(-score));
    return;
  }
  const float largest = *std::ranges::max_element(scores);
  double sum = 0;
  for (float& score : scores) sum += score = std::exp(score - largest);
  for (float& score : scores) score = static_cast<float>(score / sum);
}

// Of experts in groups, only those of the best groups can be chosen: a group is worth its two best.
// `worth` is memory that is used again.
void LeaveBestGroups(const Experts& experts, std::span<float> compared,
                     std::vector<std::pair<float, size_t>>& worth) {
  if (experts.groups == 1) return;
  const size_t size = compared.size() / static_cast<size_t>(experts.groups);
  worth.clear();
  for (size_t begin = 0; begin < compared.size(); begin += size) {
    float best = -INFINITY, second = -INFINITY;
    for (const float score : compared.subspan(begin, size)) {
      second = std::max(second, std::min(best, score));
      best = std::max(best, score);
    }
    worth.emplace_back(best + (size > 1 ? second : 0.0f), begin);
  }
  // The first of equal groups comes first.
  std::ranges::sort(worth, [](const auto& a, const auto& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  });
  for (size_t g = static_cast<size_t>(experts.chosen_groups); g < worth.size(); ++g) {
    std::fill_n(compared.begin() + static_cast<std::ptrdiff_t>(worth[g].second), size, -INFINITY);
  }
}

}  // namespace

void TransformerCpu::ChooseExperts(const Experts& experts, const ExpertWeights& weights,
                                   int64_t rows) {
  Pack(weights.router.w.type, normed_.get(), config_.hidden, rows);
  MatMul(weights.router, router_scores_.get(), false, rows);
  const std::vector<float>& choice_bias = weights.choice_bias;
  const auto count = static_cast<size_t>(experts.count), most = static_cast<size_t>(experts.chosen);
  std::vector<float>& compared = compared_;
  std::vector<int32_t>& order = expert_order_;
  compared.resize(count);
  order.resize(count);
  chosen_.clear();
  for (int64_t r = 0; r < rows; ++r) {
    const std::span<float> scores(router_scores_.get() + r * experts.count, count);
    WeighExperts(experts.weights, scores);
    for (size_t e = 0; e < count; ++e) {
      compared[e] = scores[e] + (choice_bias.empty() ? 0.0f : choice_bias[e]);
      order[e] = static_cast<int32_t>(e);
    }
    LeaveBestGroups(experts, compared, group_worth_);
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(most);
    std::partial_sort(order.begin(), end, order.end(), [&](int32_t a, int32_t b) {
      const float x = compared[static_cast<size_t>(a)], y = compared[static_cast<size_t>(b)];
      return x > y || (x == y && a < b);
    });
    double sum = 0;
    const float largest = scores[static_cast<size_t>(order[0])];
    for (size_t i = 0; i < most; ++i) {
      float weight = scores[static_cast<size_t>(order[i])];
      if (experts.weights == Experts::Weights::kSoftmaxOfChosen)
        weight = std::exp(weight - largest);
      sum += weight;
      chosen_.push_back({static_cast<int32_t>(r), order[i], weight});
    }
    const bool divided =
        experts.normalized || experts.weights == Experts::Weights::kSoftmaxOfChosen;
    for (size_t i = chosen_.size() - most; i < chosen_.size(); ++i) {
      if (divided) chosen_[i].weight = static_cast<float>(chosen_[i].weight / sum);
      chosen_[i].weight *= experts.scale;
      if (experts.factors) {
        chosen_[i].weight *= weights.factors[static_cast<size_t>(chosen_[i].expert)];
      }
    }
  }
  std::ranges::sort(chosen_, [](const Choice& a, const Choice& b) {
    return a.expert != b.expert ? a.expert < b.expert : a.row < b.row;
  });
  runs_.clear();
  runs_.reserve(chosen_.size());
  for (size_t i = 0; i < chosen_.size(); ++i) {
    const auto slot = static_cast<int32_t>(i);
    if (runs_.empty() || runs_.back().expert != chosen_[i].expert) {
      runs_.push_back({chosen_[i].expert, slot, slot});
    }
    runs_.back().end = slot + 1;
  }
}

void TransformerCpu::MultiplyRuns(const ExpertWeights& weights,
                                  Linear ExpertWeights::Expert::*linear, const float* x, float* y) {
  // All experts of a layer have weights of one shape; a file may give them different types.
  const Matrix& shape = (weights.experts[0].*linear).w;
  products_.clear();
  product_pieces_.clear();
  products_.reserve(chosen_.size());
  product_pieces_.reserve(chosen_.size() *
                          static_cast<size_t>((shape.rows + kExpertPiece - 1) / kExpertPiece));
  for (const ExpertRun& run : runs_) {
    const Linear& expert = weights.experts[static_cast<size_t>(run.expert)].*linear;
    MatMulArgs args;
    args.w = expert.w;
    args.bias = expert.bias.empty() ? nullptr : expert.bias.data();
    args.x = expert_packed_.get() + run.begin * PackedWidth(shape.cols);
    args.rows = run.end - run.begin;
    args.y = y + run.begin * shape.rows;
    args.y_stride = shape.rows;
    product_bytes_ += MatrixBytes(args.w);
    const auto product = static_cast<int32_t>(products_.size());
    for (int64_t at = 0; at < shape.rows; at += kExpertPiece) {
      product_pieces_.push_back({product, at, std::min(at + kExpertPiece, shape.rows)});
    }
    products_.push_back(args);
  }
  // Packed by the types of the products that follow; a run at a time.
  if (x != nullptr) {
    const auto runs = static_cast<int64_t>(runs_.size());
    const auto slots = static_cast<int64_t>(chosen_.size());
    Parallel(runs, slots * shape.cols / runs, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const ExpertRun& run = runs_[static_cast<size_t>(i)];
        for (int64_t slot = run.begin; slot < run.end; slot += kPackRows) {
          const auto rows = static_cast<int>(std::min<int64_t>(kPackRows, run.end - slot));
          kernels_.pack(products_[static_cast<size_t>(i)].w.type, x + slot * shape.cols, shape.cols,
                        rows, shape.cols, expert_packed_.get() + slot * PackedWidth(shape.cols));
        }
      }
    });
  }
  const auto pieces = static_cast<int64_t>(product_pieces_.size());
  const auto slots = static_cast<int64_t>(chosen_.size());
  const int64_t cost = slots * shape.cols * shape.rows / std::max<int64_t>(pieces, 1);
  Parallel(pieces, cost, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const ProductPiece& piece = product_pieces_[static_cast<size_t>(i)];
      kernels_.matmul(products_[static_cast<size_t>(piece.product)], piece.begin, piece.end);
    }
  });
}

void TransformerCpu::SharedExpert(const Experts& experts, const ExpertWeights& weights,
                                  int64_t rows) {
  const int64_t width = experts.shared_width, hidden = config_.hidden;
  if (experts.gated) MatMul(weights.shared.gate, gate_.get(), false, rows);
  MatMul(weights.shared.up, (experts.gated ? up_ : gate_).get(), false, rows);
  if (experts.shared_gate) MatMul(weights.shared_weight, router_scores_.get(), false, rows);
  for (int64_t r = 0; r < rows; ++r) {
    const float* up = experts.gated ? up_.get() + r * width : ones_.data();
    Activate(experts.activation, gate_.get() + r * width, up, width);
  }
  Pack(weights.shared.down.w.type, gate_.get(), width, rows);
  MatMul(weights.shared.down, answer_.get(), false, rows);
  if (!experts.shared_gate) return;
  for (int64_t r = 0; r < rows; ++r) {
    const float weight = 1.0f / (1.0f + std::exp(-router_scores_[r]));
    for (int64_t i = 0; i < hidden; ++i) answer_[r * hidden + i] *= weight;
  }
}

void TransformerCpu::RunExperts(const Experts& experts, const ExpertWeights& weights) {
  const int64_t hidden = config_.hidden, width = experts.width;
  for (size_t slot = 0; slot < chosen_.size(); ++slot) {
    std::copy_n(normed_.get() + chosen_[slot].row * hidden, hidden,
                expert_rows_.get() + static_cast<int64_t>(slot) * hidden);
  }
  if (experts.gated) {
    MultiplyRuns(weights, &ExpertWeights::Expert::gate, expert_rows_.get(), expert_gate_.get());
  }
  const bool packed = experts.gated && std::ranges::all_of(runs_, [&](const ExpertRun& run) {
                        const ExpertWeights::Expert& expert =
                            weights.experts[static_cast<size_t>(run.expert)];
                        return PackedAlike(expert.gate.w.type, expert.up.w.type);
                      });
  MultiplyRuns(weights, &ExpertWeights::Expert::up, packed ? nullptr : expert_rows_.get(),
               (experts.gated ? expert_up_ : expert_gate_).get());
  Parallel(static_cast<int64_t>(chosen_.size()), 4 * width, 1,
           [&](int64_t begin, int64_t end, int) {
             for (int64_t slot = begin; slot < end; ++slot) {
               float* gate = expert_gate_.get() + slot * width;
               const float* up = experts.gated ? expert_up_.get() + slot * width : ones_.data();
               if (experts.clamp != 0.0f) {
                 ClampedSwiGlu(experts.clamp, up, width, gate);
               } else {
                 Activate(experts.activation, gate, up, width);
               }
             }
           });
  MultiplyRuns(weights, &ExpertWeights::Expert::down, expert_gate_.get(), expert_rows_.get());
  for (size_t slot = 0; slot < chosen_.size(); ++slot) {
    const Choice& choice = chosen_[slot];
    const float* from = expert_rows_.get() + static_cast<int64_t>(slot) * hidden;
    float* to = answer_.get() + choice.row * hidden;
    for (int64_t i = 0; i < hidden; ++i) to[i] += choice.weight * from[i];
  }
}

void TransformerCpu::ExpertsLayer(const Layer& spec, const TransformerLayer& layer) {
  const auto& experts = std::get<Experts>(spec.feed_forward);
  const auto rows = static_cast<int64_t>(active_.size());
  ChooseExperts(experts, layer.experts, rows);
  if (experts.shared_width > 0) {
    SharedExpert(experts, layer.experts, rows);
  } else {
    std::fill_n(answer_.get(), rows * config_.hidden, 0.0f);
  }
  RunExperts(experts, layer.experts);
  AddAnswer(layer.mlp_post_norm, spec.scale, rows);
}

// Of Gemma 4: the experts read the residual stream as the MLP does, each through its own norm.
void TransformerCpu::MlpAndExpertsLayer(const Layer& spec, const TransformerLayer& layer) {
  const auto& both = std::get<MlpAndExperts>(spec.feed_forward);
  const ExpertWeights& weights = layer.experts;
  const auto rows = static_cast<int64_t>(active_.size());
  const int64_t hidden = config_.hidden;
  const auto norm = [&](const std::vector<float>& weight, float* x) {
    for (int64_t r = 0; r < rows; ++r) {
      kernels_.rmsnorm(x + r * hidden, weight.data(), config_.norm_epsilon, hidden, x + r * hidden);
    }
  };
  RunMlp(both.mlp, layer);
  MatMul(layer.down, mlp_answer_.get(), false, rows);
  norm(weights.mlp_own_norm, mlp_answer_.get());
  Norm(weights.router_norm, {}, rows);
  ChooseExperts(both.experts, weights, rows);
  Norm(weights.norm, {}, rows);
  std::fill_n(answer_.get(), rows * hidden, 0.0f);
  RunExperts(both.experts, weights);
  norm(weights.own_norm, answer_.get());
  for (int64_t i = 0; i < rows * hidden; ++i) answer_[i] += mlp_answer_[i];
  AddAnswer(layer.mlp_post_norm, spec.scale, rows);
}

}  // namespace pawl
