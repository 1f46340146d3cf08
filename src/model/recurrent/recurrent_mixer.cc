// The gated delta rule (Yang, Kautz, Hatamizadeh, 2024), the state space of Mamba-2 (Dao, Gu, 2024)
// and short convolutions, token by token. All are a convolution over the last inputs of a token,
// and for the first two a step of a matrix for each head.
//
// A block's rows become steps, those of one sequence a segment. A run of plain rows is a chain. A
// tree is walked in the order of its rows: a row whose state has no later child gives it to this
// child, others keep it in a buffer. So a tree of n rows takes n steps, as a run does. Rows of
// earlier blocks that a row descends from are stepped through once more.
//
// Steps go through three passes for each layer: the convolution of each step on its own, then each
// head with all its steps, then what is kept of the inputs. Heads of different sequences are
// independent of each other, so threads share them.
#include "src/model/recurrent/recurrent_mixer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace pawl {
namespace {

// Steps of a batch. A segment has those of its rows in a block, and those of the stored rows that
// these descend from or that are replayed.
constexpr int32_t kMostSteps = 256;
constexpr float kLengthEpsilon = 1e-6f;

uint64_t RowKey(int32_t change, size_t row) { return static_cast<uint64_t>(change) << 32 | row; }

float Softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }
float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

}  // namespace

RecurrentMixer::RecurrentMixer(std::vector<RecurrentShape> shapes, int64_t page_floats,
                               const KernelSet& kernels, ThreadPool& pool, int64_t worth_threads)
    : shapes_(std::move(shapes)),
      layout_(shapes_, page_floats),
      kernels_(kernels),
      pool_(pool),
      worth_threads_(worth_threads),
      states_(static_cast<size_t>(pool.size())) {
  int keys = 0;
  for (const RecurrentShape& shape : shapes_) {
    widest_ = std::max<int64_t>(widest_, shape.channels);
    most_heads_ = std::max<int64_t>(most_heads_, shape.heads);
    largest_head_ = std::max(largest_head_, shape.head_floats());
    if (shape.delta) keys = shape.keys;
  }
  if (widest_ == 0) return;
  mixed_.resize(static_cast<size_t>(kMostSteps * widest_));
  gates_.resize(static_cast<size_t>(kMostSteps * most_heads_ * 2));
  // So that calls of usual size allocate nothing later.
  steps_.reserve(kMostSteps);
  segment_of_.reserve(kMostSteps);
  segments_.reserve(kMostSteps);
  batches_.reserve(kMostSteps);
  order_.reserve(kMostSteps);
  next_.reserve(kMostSteps);
  replayed_.reserve(kMostSteps);
  // x / sqrt(mean + eps / n) * n^-1/2 = x / sqrt(sum + eps); queries are also scaled by n^-1/2.
  const auto n = static_cast<float>(keys);
  key_norm_.assign(static_cast<size_t>(keys), 1.0f / std::sqrt(n));
  query_norm_.assign(static_cast<size_t>(keys), 1.0f / n);
}

template <typename Body>
void RecurrentMixer::Parallel(int64_t n, int64_t cost, const Body& body) {
  int64_t grain = n;
  if (n * cost >= worth_threads_ && pool_.size() > 1) {
    grain = std::max({n / (int64_t{4} * pool_.size()),
                      worth_threads_ / 4 / std::max<int64_t>(cost, 1), int64_t{1}});
  }
  pool_.ParallelFor(n, grain, body);
}

const SequenceState& RecurrentMixer::StateOf(const Segment& segment) const {
  return sequences_->state(plan_->changes[static_cast<size_t>(segment.change)].sequence);
}

// ---- The steps of a block ----

void RecurrentMixer::Restore(const KvSequences& sequences, const RowPlan& plan,
                             std::span<const RecurrentWeights> weights) {
  if (!has_states()) return;
  sequences_ = &sequences;
  plan_ = &plan;
  steps_.clear();
  segments_.clear();
  segment_of_.clear();
  const auto bytes = static_cast<size_t>(layout_.page_floats()) * sizeof(float);
  for (size_t i = 0; i < plan.changes.size(); ++i) {
    const StateChange& change = plan.states[i];
    const RecurrentState& state = sequences.state(plan.changes[i].sequence).recurrent;
    for (size_t page = 0; page < state.pages.size(); ++page) {
      float* to = Page(state.pages, {static_cast<int32_t>(page), 0});
      if (change.empty) std::memset(to, 0, bytes);
      if (!change.restore.empty())
        std::memcpy(to, Page(change.restore, {static_cast<int32_t>(page), 0}), bytes);
    }
    if (change.replay == 0) continue;
    // What Mix does, where all layers run and the path leads to the base.
    if (!plan.partial && change.from == plan.changes[i].base) continue;
    Segment segment = {static_cast<int32_t>(i), static_cast<int32_t>(steps_.size())};
    AddReplay(segment.change);
    Close(segment);
  }
  step_count_ += static_cast<int64_t>(steps_.size());
  MakeBatches();
  for (size_t layer = 0; layer < shapes_.size() && !segments_.empty(); ++layer) {
    if (shapes_[layer].channels > 0) {
      Mix(static_cast<int>(layer), weights[layer], nullptr, nullptr);
    }
  }
}

void RecurrentMixer::BeginRows(const KvSequences& sequences, RowPlan& plan) {
  sequences_ = &sequences;
  plan_ = &plan;
  next_.clear();
  replayed_.clear();
  for (size_t i = 0; i < plan.changes.size(); ++i) {
    const StateChange& change = plan.states[i];
    next_.push_back(change.rows_before);
    replayed_.push_back(plan.partial || change.from != plan.changes[i].base ? 1 : 0);
  }
}

int32_t RecurrentMixer::CheckpointAt(int32_t change, int position) const {
  const std::vector<StateCheckpoint>& all = plan_->states[static_cast<size_t>(change)].checkpoints;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].position == position) return static_cast<int32_t>(i);
  }
  return -1;
}

// Moves the base state along the path.
void RecurrentMixer::AddReplay(int32_t change) {
  const auto i = static_cast<size_t>(change);
  const RecurrentState& state = sequences_->state(plan_->changes[i].sequence).recurrent;
  for (int row = 0; row < plan_->states[i].replay; ++row) {
    Step step;
    step.stored = state.path[static_cast<size_t>(row)];
    step.parent = row == 0 ? -1 : static_cast<int32_t>(steps_.size()) - 1;
    step.to = kBase;
    step.checkpoint = CheckpointAt(change, state.position + row + 1);
    steps_.push_back(step);
  }
}

// Rows whose inputs are stored: they descend from the base state, which stays.
void RecurrentMixer::AddTree(int32_t change, std::span<const uint64_t> rows) {
  const auto nth_change = static_cast<size_t>(change);
  const SequenceState& state = sequences_->state(plan_->changes[nth_change].sequence);
  const auto before = static_cast<int32_t>(steps_.size()) - 1;
  const auto base_step =
      std::exchange(replayed_[nth_change], uint8_t{1}) == 0 && plan_->states[nth_change].replay > 0
          ? before
          : -1;
  const int first = next_[nth_change];
  next_[nth_change] += static_cast<int32_t>(rows.size());
  uint64_t needed = 0;
  for (int i = first; i < next_[nth_change]; ++i) {
    needed |= state.path[static_cast<size_t>(i)] | uint64_t{1} << i;
  }
  const auto parent_of = [&](int i) {
    return 63 - std::countl_zero(state.path[static_cast<size_t>(i)]);  // -1: none
  };
  std::array<int32_t, kMostStoredRows> last_child, step_of;
  last_child.fill(-1);
  for (uint64_t left = needed; left != 0; left &= left - 1) {
    const int i = std::countr_zero(left);
    if (parent_of(i) >= 0) last_child[static_cast<size_t>(parent_of(i))] = i;
  }
  uint64_t used = 0;  // buffers
  for (uint64_t left = needed; left != 0; left &= left - 1) {
    const int i = std::countr_zero(left);
    const int parent = parent_of(i);
    Step step;
    step.stored = i;
    if (i >= first) step.row = static_cast<int32_t>(rows[static_cast<size_t>(i - first)]);
    step.parent = parent < 0 ? base_step : step_of[static_cast<size_t>(parent)];
    if (parent >= 0) step.from = steps_[static_cast<size_t>(step.parent)].to;
    const bool last = parent >= 0 && last_child[static_cast<size_t>(parent)] == i;
    if (last_child[static_cast<size_t>(i)] < 0) {
      if (last) used &= ~(uint64_t{1} << step.from);
    } else if (last) {
      step.to = step.from;
    } else {
      step.to = std::countr_one(used);
      used |= uint64_t{1} << step.to;
      buffers_ = std::max(buffers_, step.to + 1);
    }
    step_of[static_cast<size_t>(i)] = static_cast<int32_t>(steps_.size());
    steps_.push_back(step);
  }
}

// Rows that move the base state.
void RecurrentMixer::AddRun(int32_t change, std::span<const uint64_t> rows) {
  const auto nth_change = static_cast<size_t>(change);
  int32_t& next = next_[nth_change];
  const bool behind =
      std::exchange(replayed_[nth_change], uint8_t{1}) == 0 && plan_->states[nth_change].replay > 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    Step step;
    step.row = static_cast<int32_t>(rows[i]);
    step.parent = i > 0 || behind ? static_cast<int32_t>(steps_.size()) - 1 : -1;
    step.to = kBase;
    step.checkpoint = CheckpointAt(change, plan_->changes[nth_change].base + ++next);
    steps_.push_back(step);
  }
}

void RecurrentMixer::Close(Segment segment) {
  segment.end = static_cast<int32_t>(steps_.size());
  for (int32_t i = segment.begin; i < segment.end; ++i) {
    if (steps_[static_cast<size_t>(i)].to == kBase) segment.moved = i;
  }
  segment_of_.resize(steps_.size(), static_cast<int32_t>(segments_.size()));
  segments_.push_back(segment);
}

void RecurrentMixer::MakeBatches() {
  batches_.clear();
  for (int32_t i = 0; i < static_cast<int32_t>(segments_.size()); ++i) {
    const Segment& segment = segments_[static_cast<size_t>(i)];
    const bool fits =
        !batches_.empty() &&
        segment.end - segments_[static_cast<size_t>(batches_.back().begin)].begin <= kMostSteps;
    if (!fits) batches_.push_back({i, i});
    batches_.back().end = i + 1;
  }
  for (std::vector<float>& state : states_) {
    const auto wanted = static_cast<size_t>(buffers_ * largest_head_);
    if (state.size() < wanted) state.resize(wanted);
  }
}

void RecurrentMixer::BeginBlock(std::span<const Row> rows) {
  if (!has_states()) return;
  order_.clear();
  steps_.clear();
  segments_.clear();
  segment_of_.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    order_.push_back(RowKey(plan_->change_of[static_cast<size_t>(rows[i].sequence)], i));
  }
  std::sort(order_.begin(), order_.end());
  for (size_t begin = 0; begin < order_.size();) {
    const auto change = static_cast<int32_t>(order_[begin] >> 32);
    size_t end = begin;
    for (; end < order_.size() && static_cast<int32_t>(order_[end] >> 32) == change; ++end) {
      order_[end] &= 0xffffffffu;
    }
    Segment segment = {change, static_cast<int32_t>(steps_.size())};
    if (replayed_[static_cast<size_t>(change)] == 0) AddReplay(change);
    const std::span<const uint64_t> of_change = std::span(order_).subspan(begin, end - begin);
    if (plan_->states[static_cast<size_t>(change)].store) {
      AddTree(change, of_change);
    } else {
      AddRun(change, of_change);
    }
    Close(segment);
    begin = end;
  }
  step_count_ += static_cast<int64_t>(steps_.size());
  MakeBatches();
}

// ---- A layer ----

const float* RecurrentMixer::InputOf(int layer, const Segment& segment, const Step& step,
                                     const float* inputs) const {
  if (step.row >= 0) return inputs + step.row * shape(layer).row_floats();
  return Page(StateOf(segment).recurrent.row_pages, layout_.Row(layer, step.stored));
}

void RecurrentMixer::Inputs(int layer, const Segment& segment, int32_t step, const float* inputs,
                            std::span<const float*> out) const {
  const int channels = shape(layer).channels;
  const float* before = Page(StateOf(segment).recurrent.pages, layout_.Convolution(layer));
  int left = static_cast<int>(out.size());
  for (; left > 0 && step >= 0; step = steps_[static_cast<size_t>(step)].parent) {
    out[static_cast<size_t>(--left)] =
        InputOf(layer, segment, steps_[static_cast<size_t>(step)], inputs);
  }
  // The last of the base state's inputs come right before the first step.
  const int entries = shape(layer).taps - 1;
  for (int i = 0; i < left; ++i) {
    out[static_cast<size_t>(i)] = before + int64_t{entries - left + i} * channels;
  }
}

void RecurrentMixer::Convolve(int layer, const RecurrentWeights& weights, const Segment& segment,
                              int32_t index, const float* inputs, float* answers) {
  const RecurrentShape& shape = shapes_[static_cast<size_t>(layer)];
  const Step& step = steps_[static_cast<size_t>(index)];
  if (shape.heads == 0 && step.row < 0) return;
  std::array<const float*, kMostTaps> taps;
  const std::span<const float*> used = std::span(taps).first(static_cast<size_t>(shape.taps));
  Inputs(layer, segment, index, inputs, used);
  const int64_t in_batch = index - batch_first_;
  float* mixed = mixed_.data() + in_batch * widest_;
  ConvolutionArgs args;
  args.inputs = used.data();
  args.weights = weights.convolution.data();
  args.bias = weights.convolution_bias.empty() ? nullptr : weights.convolution_bias.data();
  args.y = shape.heads == 0 ? answers + int64_t{step.row} * shape.channels : mixed;
  args.taps = shape.taps;
  args.channels = shape.channels;
  args.silu = shape.silu;
  kernels_.convolution(args);
  if (shape.heads == 0) return;
  if (shape.delta) {
    const float epsilon = kLengthEpsilon / static_cast<float>(shape.keys);
    for (int g = 0; g < shape.groups; ++g) {
      float* q = mixed + shape.q_at + int64_t{g} * shape.keys;
      float* k = mixed + shape.k_at + int64_t{g} * shape.keys;
      kernels_.rmsnorm(q, query_norm_.data(), epsilon, shape.keys, q);
      kernels_.rmsnorm(k, key_norm_.data(), epsilon, shape.keys, k);
    }
  }
  const float* own = used.back() + shape.channels;
  float* gates = gates_.data() + in_batch * most_heads_ * 2;
  for (int h = 0; h < shape.heads; ++h) {
    const float t =
        std::max(Softplus(own[h] + weights.biases[static_cast<size_t>(h)]), shape.least_time);
    gates[2 * h] = std::exp(weights.rates[static_cast<size_t>(h)] * t);
    gates[2 * h + 1] = shape.delta ? Sigmoid(own[shape.heads + h]) : t;
  }
}

void RecurrentMixer::RunHead(int layer, const RecurrentWeights& weights, const Segment& segment,
                             int head, float* answers, int thread) {
  const RecurrentShape& shape = shapes_[static_cast<size_t>(layer)];
  const StateLayout::Place place = layout_.Head(layer, head);
  float* base = Page(StateOf(segment).recurrent.pages, place);
  float* buffers = states_[static_cast<size_t>(thread)].data();
  const auto at = [&](int32_t buffer) {
    return buffer == kBase ? base : buffers + buffer * largest_head_;
  };
  const int64_t group = weights.tiled ? head % shape.groups : head / (shape.heads / shape.groups);
  for (int32_t i = segment.begin; i < segment.end; ++i) {
    const Step& step = steps_[static_cast<size_t>(i)];
    const int64_t in_batch = i - batch_first_;
    const float* mixed = mixed_.data() + in_batch * widest_;
    const float* gates = gates_.data() + (in_batch * most_heads_ + head) * 2;
    StateStepArgs args;
    args.from = at(step.from);
    args.to = step.to == kNowhere ? nullptr : at(step.to);
    args.q = mixed + shape.q_at + group * shape.keys;
    args.k = mixed + shape.k_at + group * shape.keys;
    args.v = mixed + shape.v_at + int64_t{head} * shape.values;
    if (step.row >= 0) {
      args.out = answers + (int64_t{step.row} * shape.heads + head) * shape.values;
    }
    args.keys = shape.keys;
    args.values = shape.values;
    args.decay = gates[0];
    args.beta = gates[1];
    args.delta = shape.delta;
    kernels_.state_step(args);
    if (args.out != nullptr && !weights.skips.empty()) {
      const float skip = weights.skips[static_cast<size_t>(head)];
      for (int c = 0; c < shape.values; ++c) args.out[c] += skip * args.v[c];
    }
    if (step.checkpoint >= 0) {
      const StateChange& change = plan_->states[static_cast<size_t>(segment.change)];
      std::copy_n(base, shape.head_floats(),
                  Page(change.checkpoints[static_cast<size_t>(step.checkpoint)].pages, place));
    }
  }
}

void RecurrentMixer::Store(int layer, const Segment& segment, const float* inputs) {
  const RecurrentShape& shape = shapes_[static_cast<size_t>(layer)];
  const SequenceState& state = StateOf(segment);
  std::array<const float*, kMostTaps> taps;
  const std::span<const float*> used = std::span(taps).first(static_cast<size_t>(shape.taps) - 1);
  // Entries only move to the front, so none is overwritten before it is read.
  const auto write = [&](int32_t step, float* to) {
    Inputs(layer, segment, step, inputs, used);
    for (size_t i = 0; i < used.size(); ++i, to += shape.channels) {
      std::memmove(to, used[i], static_cast<size_t>(shape.channels) * sizeof(float));
    }
  };
  const StateLayout::Place place = layout_.Convolution(layer);
  for (int32_t i = segment.begin; i < segment.end; ++i) {
    const int32_t checkpoint = steps_[static_cast<size_t>(i)].checkpoint;
    if (checkpoint < 0) continue;
    const StateChange& change = plan_->states[static_cast<size_t>(segment.change)];
    write(i, Page(change.checkpoints[static_cast<size_t>(checkpoint)].pages, place));
  }
  if (segment.moved >= 0) write(segment.moved, Page(state.recurrent.pages, place));
  for (int32_t i = segment.begin; i < segment.end; ++i) {
    const Step& step = steps_[static_cast<size_t>(i)];
    if (step.row < 0 || step.stored < 0) continue;
    std::copy_n(inputs + step.row * shape.row_floats(), shape.row_floats(),
                Page(state.recurrent.row_pages, layout_.Row(layer, step.stored)));
  }
}

void RecurrentMixer::Mix(int layer, const RecurrentWeights& weights, const float* inputs,
                         float* answers) {
  const RecurrentShape& shape = shapes_[static_cast<size_t>(layer)];
  for (const Batch& batch : batches_) {
    const int32_t first = batch_first_ = segments_[static_cast<size_t>(batch.begin)].begin;
    const int32_t end = segments_[static_cast<size_t>(batch.end) - 1].end;
    Parallel(end - first, 4 * shape.taps * shape.channels, [&](int64_t from, int64_t to, int) {
      for (int64_t i = from; i < to; ++i) {
        const auto step = static_cast<int32_t>(first + i);
        const int32_t segment = segment_of_[static_cast<size_t>(step)];
        Convolve(layer, weights, segments_[static_cast<size_t>(segment)], step, inputs, answers);
      }
    });
    const int64_t heads = int64_t{batch.end - batch.begin} * shape.heads;
    const int64_t cost =
        heads == 0 ? 0 : 3 * shape.head_floats() * (end - first) / (batch.end - batch.begin);
    Parallel(heads, cost, [&](int64_t from, int64_t to, int thread) {
      for (int64_t i = from; i < to; ++i) {
        RunHead(layer, weights, segments_[static_cast<size_t>(batch.begin + i / shape.heads)],
                static_cast<int>(i % shape.heads), answers, thread);
      }
    });
    for (int32_t i = batch.begin; i < batch.end; ++i) {
      Store(layer, segments_[static_cast<size_t>(i)], inputs);
    }
  }
}

}  // namespace pawl
