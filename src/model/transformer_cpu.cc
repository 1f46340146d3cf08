// The forward pass of the Llama family (Touvron et al., 2023): for each layer
//   x += O * attention(RoPE(Q * norm(x)), RoPE(K * norm(x)), V * norm(x))
//   x += down * (silu(gate * norm(x)) . (up * norm(x)))
// and logits = head * norm(x), with grouped query heads (Ainslie et al., 2023). TransformerConfig
// says what a family adds: windows, norms of queries and keys, norms behind attention and MLP, soft
// caps, another activation, another RoPE for some layers. Activations, keys and values are float.
//
// Keys and values lie in pages (kv_pool.h) of one range of addresses, whose memory the system gives
// when it is touched. All of a page is in one piece, so that what is in use lies close together. A
// window moves the first position that a row sees; where all layers have one, pages that lie before
// it are freed (row_plan.cc).
//
// A call is cut into blocks of kBlockRows rows, which run through all layers one block after the
// other; scratch memory thus has a fixed size. That changes no bit: the kernels give each row the
// same result in any company, and rows only look at rows before them. Where rows see both sides,
// each layer makes the keys and values of all blocks first. Within a block, weights are
// read once for all rows. In the last layer rows whose logits are not wanted stop after their keys
// and values.
//
// Work is cut between threads along outputs, rows and heads, never along a sum. A loop is handed to
// the pool only when it is worth waking a thread: a model of a million parameters decodes on the
// calling thread alone.
#include "src/model/transformer_cpu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "src/base/failure.h"
#include "src/model/draft_head.h"

namespace pawl {
namespace {

static_assert(kPagePositions == kKvPage);

// The head is cut into pieces of at most so many tokens, and all of one word of a mask are in one.
constexpr int64_t kHeadPiece = 512;
// Outputs per range of a matrix product are a multiple of this, so that ranges consist of whole
// tiles.
constexpr int64_t kOutputMultiple = 32;

// Calls f(begin, end) for the tokens of each run of words that are not 0; for all when there are no
// words.
template <typename F>
void ForAllowed(std::span<const uint32_t> words, int64_t vocabulary, const F& f) {
  if (words.empty()) return f(int64_t{0}, vocabulary);
  const int64_t count = std::min(static_cast<int64_t>(words.size()), (vocabulary + 31) / 32);
  for (int64_t w = 0; w < count; ++w) {
    if (words[static_cast<size_t>(w)] == 0) continue;
    const int64_t first = w;
    while (w + 1 < count && words[static_cast<size_t>(w) + 1] != 0) ++w;
    f(first * 32, std::min(w * 32 + 32, vocabulary));
  }
}

// What queries are multiplied with at a position.
float GrowthAt(const Attention& attention, int position) {
  const int periods = position / attention.growth_period;
  return 1.0f + attention.growth * std::log(1.0f + static_cast<float>(periods));
}

// A number for a set of layers, 0 for all.
uint64_t KeyOf(std::span<const int> layers) {
  if (layers.empty()) return 0;
  uint64_t key = 0;
  for (const int layer : layers) {
    key = (key ^ (static_cast<uint64_t>(layer) + 1)) * 0x9e3779b97f4a7c15u;
    key ^= key >> 29;
  }
  return key | 1;
}

}  // namespace

// ---- Sequences ----

float* TransformerCpu::CacheAt(int layer, int value, int kv_head) const {
  const KeyPlace& place = cache_at_[static_cast<size_t>(layer)];
  return static_cast<float*>(pages_.data()) + place.at + value * place.half +
         int64_t{kv_head} * kPagePositions * place.head_dim;
}

float* TransformerCpu::CacheAt(int layer, int value, int kv_head, int32_t slot) const {
  const int head_dim = cache_at_[static_cast<size_t>(layer)].head_dim;
  return CacheAt(layer, value, kv_head) + slot / kPagePositions * page_floats_ +
         int64_t{slot % kPagePositions} * head_dim;
}

void TransformerCpu::Copy(std::span<const SlotCopy> copies) {
  for (const SlotCopy& copy : copies) {
    EachKeys(config_, [&](const Attention& attention, int layer, int parts) {
      if (attention.keys_of >= 0) return;
      const size_t bytes = static_cast<size_t>(attention.head_dim) * sizeof(float);
      for (int value = 0; value < parts; ++value) {
        for (int head = 0; head < attention.kv_heads; ++head) {
          std::memcpy(CacheAt(layer, value, head, copy.to), CacheAt(layer, value, head, copy.from),
                      bytes);
        }
      }
    });
    if (heads_.empty()) continue;
    std::copy_n(HeadStatesAt(copy.from), config_.head_state, HeadStatesAt(copy.to));
  }
}

Result<SequenceId> TransformerCpu::NewAdapted(int capacity, int adapter) {
  if (adapter != 0 && !HasAdapter(adapter)) return Model::NewAdapted(capacity, adapter);
  Result<SequenceId> sequence = sequences_.New(capacity, adapter);
  if (!sequence.ok() || capacity <= largest_capacity_) return sequence;
  try {
    int64_t scores = 0;
    EachKeys(config_, [&](const Attention& attention, int, int) {
      const int group = attention.heads / attention.kv_heads;
      scores = std::max(scores, AttentionScratch(int64_t{capacity} + kMaxTreeRows,
                                                 AttentionRows(group), group, attention.head_dim));
    });
    for (std::vector<float>& scratch : attention_scratch_) {
      scratch.resize(static_cast<size_t>(scores));
    }
    for (RopeTable& rope : ropes_) {
      rope.table.resize(static_cast<size_t>(capacity) * static_cast<size_t>(rope.width));
    }
    largest_capacity_ = capacity;
    return sequence;
  } catch (const std::bad_alloc&) {
    sequences_.Free(*sequence);
    return OutOfMemory();
  }
}

void TransformerCpu::FreeSequence(SequenceId sequence) { sequences_.Free(sequence); }

void TransformerCpu::Truncate(SequenceId sequence, int length) {
  sequences_.Truncate(sequence, length);
}

int TransformerCpu::ReusePrefix(SequenceId sequence, std::span<const TokenId> tokens) {
  return sequences_.ReusePrefix(sequence, tokens);
}

int TransformerCpu::ReuseCopying(SequenceId sequence, std::span<const TokenId> tokens) {
  if (config_.both_sides) return ReusePrefix(sequence, tokens);
  const int length = sequences_.ReuseCopying(sequence, tokens, copies_);
  Copy(copies_);
  return length;
}

KvMemory TransformerCpu::kv_memory() const {
  const KvPool& pool = sequences_.pool();
  return {kPagePositions,   pool.pages(),
          pool.available(), page_floats_ * static_cast<int64_t>(sizeof(float)),
          pool.made(),      pool.states()};
}

Status TransformerCpu::CommitTree(SequenceId sequence, int row) {
  Status status = sequences_.CommitTree(sequence, row, copies_);
  if (status.ok()) Copy(copies_);
  return status;
}

Status TransformerCpu::CopySequence(SequenceId from, SequenceId to) {
  if (!config_.both_sides) return Model::CopySequence(from, to);
  Status status = sequences_.Copy(from, to, copies_);
  if (status.ok()) Copy(copies_);
  return status;
}

void TransformerCpu::ExtendRopeTables(int positions) {
  for (; rope_positions_ < positions; ++rope_positions_) {
    for (RopeTable& rope : ropes_) {
      if (rope.rows) rope.rows->Next(rope.table.data() + int64_t{rope_positions_} * rope.width);
    }
  }
}

void TransformerCpu::Rotate(const Attention& attention, int position, int heads, float* x) const {
  if (attention.rope == kNoRope) return;
  const RopeTable& rope = ropes_[static_cast<size_t>(attention.rope)];
  const float* angles = rope.table.data() + int64_t{position} * rope.width;
  if (rope.width == attention.head_dim) return kernels_.rope(x, angles, heads, rope.width);
  for (int h = 0; h < heads; ++h) {
    kernels_.rope(x + int64_t{h} * attention.head_dim, angles, 1, rope.width);
  }
}

// ---- The forward pass ----

void TransformerCpu::Multiply(const MatMulArgs& args) {
  product_bytes_ += MatrixBytes(args.w);
  Parallel(args.w.rows, args.w.cols * args.rows, kOutputMultiple,
           [&](int64_t begin, int64_t end, int) { kernels_.matmul(args, begin, end); });
}

void TransformerCpu::MatMul(const Linear& linear, float* y, bool add, int64_t rows,
                            int64_t stride) {
  if (!PackedAlike(linear.w.type, packed_from_.type)) {
    Pack(linear.w.type, packed_from_.x, linear.w.cols, rows);
  }
  MatMulArgs args;
  args.w = linear.w;
  args.bias = linear.bias.empty() ? nullptr : linear.bias.data();
  args.x = packed_.get();
  args.rows = static_cast<int>(rows);
  args.y = y;
  args.y_stride = stride == 0 ? linear.w.rows : stride;
  args.add = add;
  Multiply(args);
  if (adapted_ && linear.lora != nullptr) AddAdapters(linear, y, args.y_stride);
}

void TransformerCpu::Norm(const std::vector<float>& weight, const std::vector<float>& bias,
                          int64_t rows) {
  const int64_t hidden = config_.hidden;
  if (weight.empty()) {
    std::copy_n(x_.get(), rows * hidden, normed_.get());
    return;
  }
  Parallel(rows, 2 * hidden, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x = x_.get() + r * hidden;
      float* y = normed_.get() + r * hidden;
      if (bias.empty()) {
        kernels_.rmsnorm(x, weight.data(), config_.norm_epsilon, hidden, y);
        continue;
      }
      // A LayerNorm is the RMS norm of what is left without the mean.
      double sum = 0;
      for (int64_t i = 0; i < hidden; ++i) sum += x[i];
      const double mean = sum / static_cast<double>(hidden);
      for (int64_t i = 0; i < hidden; ++i) y[i] = static_cast<float>(x[i] - mean);
      kernels_.rmsnorm(y, weight.data(), config_.norm_epsilon, hidden, y);
      for (int64_t i = 0; i < hidden; ++i) y[i] += bias[static_cast<size_t>(i)];
    }
  });
}

void TransformerCpu::Pack(WeightType next, const float* x, int64_t width, int64_t rows) {
  packed_from_ = {next, x};
  const int64_t groups = (rows + kPackRows - 1) / kPackRows;
  Parallel(groups, kPackRows * width, 1, [&](int64_t begin, int64_t end, int) {
    const int64_t first = begin * kPackRows;
    const int64_t count = std::min(end * kPackRows, rows) - first;
    kernels_.pack(next, x + first * width, width, static_cast<int>(count), width,
                  packed_.get() + first * PackedWidth(width));
  });
}

// Neighbours of the same sequence.
void TransformerCpu::FindAttentionChunks(const Attention& attention, size_t first) {
  const int64_t most = AttentionRows(attention.heads / attention.kv_heads);
  attention_chunks_.clear();
  for (int64_t a = 0; a < static_cast<int64_t>(active_.size()); ++a) {
    const size_t row = first + static_cast<size_t>(active_[static_cast<size_t>(a)]);
    const int32_t pages_begin = plan_.rows[row].pages_begin;
    if (attention_chunks_.empty() || attention_chunks_.back().pages_begin != pages_begin ||
        a - attention_chunks_.back().begin == most) {
      attention_chunks_.push_back({a, a, pages_begin});
    }
    ++attention_chunks_.back().end;
  }
}

void TransformerCpu::NormHeads(const Attention& attention, const std::vector<float>& weight,
                               int heads, float* x) const {
  if (attention.qk_norm != QkNorm::kHead) return;
  for (int h = 0; h < heads; ++h) {
    float* head = x + int64_t{h} * attention.head_dim;
    kernels_.rmsnorm(head, weight.data(), config_.norm_epsilon, attention.head_dim, head);
  }
}

void TransformerCpu::NormAndRotate(const Attention& attention, const std::vector<float>& weight,
                                   int position, int heads, float* x) const {
  if (!attention.norm_behind_rope) NormHeads(attention, weight, heads, x);
  Rotate(attention, position, heads, x);
  if (attention.norm_behind_rope) NormHeads(attention, weight, heads, x);
}

void TransformerCpu::Attend(int layer_index, std::span<const Row> rows, size_t first,
                            const AttentionChunk& chunk, int head, int thread) {
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(layer_index)];
  const Attention& attention = config_.layers[static_cast<size_t>(layer_index)].attention();
  const int window = attention.window;
  const int group = attention.heads / attention.kv_heads;
  std::array<AttentionRow, kAttentionQueries> seen_by;
  for (int64_t a = chunk.begin; a < chunk.end; ++a) {
    const auto r = static_cast<size_t>(active_[static_cast<size_t>(a)]);
    const int64_t offset = (a * attention.heads + int64_t{head} * group) * attention.head_dim;
    float* q = q_.get() + offset;
    const int position = rows[r].position;
    NormAndRotate(attention, layer.q_norm, position, group, q);
    if (attention.growth != 0.0f) {
      const float factor = GrowthAt(attention, position);
      for (int64_t i = 0; i < int64_t{group} * attention.head_dim; ++i) q[i] *= factor;
    }
    const PlannedRow& planned = plan_.rows[first + r];
    AttentionRow& row = seen_by[static_cast<size_t>(a - chunk.begin)];
    row.q = q;
    row.out = attended_.get() + offset;
    row.first = window > 0 && position >= window ? position + 1 - window : 0;
    if (IsOfPairs(layer_index)) row.first = 1;
    row.prefix = planned.prefix;
    row.extra = plan_.extra.data() + planned.extra_begin;
    row.extra_count = planned.extra_count;
  }
  AttentionArgs args;
  args.rows = seen_by.data();
  args.row_count = static_cast<int>(chunk.end - chunk.begin);
  args.keys = CacheAt(layer_index, 0, head);
  args.values = CacheAt(layer_index, 1, head);
  args.page_stride = page_floats_;
  args.pages = plan_.pages.data() + chunk.pages_begin;
  args.group = group;
  args.head_dim = attention.head_dim;
  args.scale = attention.scale;
  args.soft_cap = attention.soft_cap;
  if (attention.sinks) args.sinks = layer.sinks.data() + int64_t{head} * group;
  args.scratch = attention_scratch_[static_cast<size_t>(thread)].data();
  kernels_.attention(args);
}

// The keys and values of the rows, to their slots.
void TransformerCpu::StoreKeys(int layer_index, std::span<const Row> rows, size_t first) {
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(layer_index)];
  const Attention& attention = config_.layers[static_cast<size_t>(layer_index)].attention();
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t width = int64_t{attention.kv_heads} * attention.head_dim;
  if (attention.keys_of >= 0) return;
  MatMul(layer.k, k_.get(), false, count);
  if (attention.value_is_key) {
    std::copy_n(k_.get(), count * width, v_.get());
  } else {
    MatMul(layer.v, v_.get(), false, count);
  }
  Parallel(count, 4 * width, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const int32_t slot = plan_.rows[first + static_cast<size_t>(r)].slot;
      float* keys = k_.get() + r * width;
      float* values = v_.get() + r * width;
      if (attention.value_norm) {
        for (int64_t at = 0; at < width; at += attention.head_dim) {
          kernels_.rmsnorm(values + at, ones_.data(), config_.norm_epsilon, attention.head_dim,
                           values + at);
        }
      }
      if (attention.qk_norm == QkNorm::kWidth) {
        kernels_.rmsnorm(keys, layer.k_norm.data(), config_.norm_epsilon, width, keys);
      }
      NormAndRotate(attention, layer.k_norm, rows[static_cast<size_t>(r)].position,
                    attention.kv_heads, keys);
      for (int h = 0; h < attention.kv_heads; ++h) {
        const size_t bytes = static_cast<size_t>(attention.head_dim) * sizeof(float);
        const int64_t at = int64_t{h} * attention.head_dim;
        std::memcpy(CacheAt(layer_index, 0, h, slot), keys + at, bytes);
        std::memcpy(CacheAt(layer_index, 1, h, slot), values + at, bytes);
      }
    }
  });
}

void TransformerCpu::AttentionLayer(int layer_index, std::span<const Row> rows, size_t first) {
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(layer_index)];
  const Layer& spec = config_.layers[static_cast<size_t>(layer_index)];
  const Attention& attention = spec.attention();
  const int64_t inputs = layer.q.w.cols;
  const int64_t q_width = int64_t{attention.heads} * attention.head_dim;

  Pack(layer.q.w.type, normed_.get(), inputs, static_cast<int64_t>(rows.size()));
  if (!keys_stored_) StoreKeys(layer_index, rows, first);
  if (KeepsOutputsAfter(layer_index)) {
    KeepRowsWithOutput(rows);
    if (active_.empty()) return;
    Pack(layer.q.w.type, normed_.get(), inputs, static_cast<int64_t>(active_.size()));
  }
  const auto active = static_cast<int64_t>(active_.size());

  MatMul(layer.q, attention.output_gate ? z_.get() : q_.get(), false, active);
  // Each head of queries is followed by its gates.
  const int64_t width = attention.head_dim;
  for (int64_t i = 0; attention.output_gate && i < active * attention.heads; ++i) {
    std::copy_n(z_.get() + 2 * i * width, width, q_.get() + i * width);
  }
  if (attention.qk_norm == QkNorm::kWidth) {
    for (int64_t a = 0; a < active; ++a) {
      float* q = q_.get() + a * q_width;
      kernels_.rmsnorm(q, layer.q_norm.data(), config_.norm_epsilon, q_width, q);
    }
  }
  int64_t seen = 0;
  for (const int32_t r : active_) {
    const int64_t all = int64_t{rows[static_cast<size_t>(r)].position} + 1;
    seen += attention.window > 0 ? std::min<int64_t>(attention.window, all) : all;
  }
  const int group = attention.heads / attention.kv_heads;
  const int64_t cost = 2 * int64_t{group} * attention.head_dim * (seen / active + 1);
  FindAttentionChunks(attention, first);
  const auto items = static_cast<int64_t>(attention_chunks_.size()) * attention.kv_heads;
  const int64_t item_cost = cost * active * attention.kv_heads / items;
  Parallel(items, item_cost, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      Attend(layer_index, rows, first,
             attention_chunks_[static_cast<size_t>(i / attention.kv_heads)],
             static_cast<int>(i % attention.kv_heads), thread);
    }
  });
  for (int64_t i = 0; attention.output_gate && i < active * attention.heads; ++i) {
    float* head = attended_.get() + i * width;
    kernels_.sigmoid_mul(z_.get() + (2 * i + 1) * width, head, width, head);
  }
  Pack(layer.o.w.type, attended_.get(), q_width, active);
  AddToResidual(layer.o, layer.attention_post_norm, spec.scale, active);
}

// Whether the rest of the pass is for the rows with an output alone.
bool TransformerCpu::KeepsOutputsAfter(int layer) const {
  return layer == layers_.back() && !taps_behind_last_ && outputs_.size() < active_.size();
}

void TransformerCpu::KeepRowsWithOutput(std::span<const Row> rows) {
  const int64_t hidden = config_.hidden;
  size_t kept = 0;
  for (const int32_t r : active_) {
    if (rows[static_cast<size_t>(r)].output < 0) continue;
    const auto to = static_cast<int64_t>(kept);
    if (to != r) {
      std::copy_n(x_.get() + r * hidden, hidden, x_.get() + to * hidden);
      std::copy_n(normed_.get() + r * hidden, hidden, normed_.get() + to * hidden);
    }
    active_[kept++] = r;
  }
  active_.resize(kept);
}

void TransformerCpu::AddToResidual(const Linear& linear, const std::vector<float>& post_norm,
                                   float scale, int64_t rows) {
  if (post_norm.empty() && scale == 1.0f) return MatMul(linear, x_.get(), true, rows);
  MatMul(linear, answer_.get(), false, rows);
  AddAnswer(post_norm, scale, rows);
}

void TransformerCpu::AddAnswer(const std::vector<float>& post_norm, float scale, int64_t rows) {
  const int64_t hidden = config_.hidden;
  Parallel(rows, 3 * hidden, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      float* answer = answer_.get() + r * hidden;
      if (!post_norm.empty()) {
        kernels_.rmsnorm(answer, post_norm.data(), config_.norm_epsilon, hidden, answer);
      }
      float* sum = x_.get() + r * hidden;
      for (int64_t i = 0; i < hidden; ++i) sum[i] += scale * answer[i];
    }
  });
}

void TransformerCpu::Activate(Activation activation, float* gate, const float* up,
                              int64_t width) const {
  if (activation == Activation::kSquaredRelu) {
    for (int64_t i = 0; i < width; ++i) {
      const float positive = std::max(gate[i], 0.0f);
      gate[i] = positive * positive * up[i];
    }
    return;
  }
  const auto times = activation == Activation::kSilu ? kernels_.silu_mul : kernels_.gelu_mul;
  times(gate, up, width, gate);
}

void TransformerCpu::MlpLayer(const Layer& spec, const TransformerLayer& layer) {
  RunMlp(spec.mlp(), layer);
  AddToResidual(layer.down, layer.mlp_post_norm, spec.scale, static_cast<int64_t>(active_.size()));
}

void TransformerCpu::RunMlp(const Mlp& mlp, const TransformerLayer& layer) {
  const auto rows = static_cast<int64_t>(active_.size());
  Pack(layer.up.w.type, normed_.get(), config_.hidden, rows);
  if (mlp.gated) MatMul(layer.gate, gate_.get(), false, rows);
  MatMul(layer.up, (mlp.gated ? up_ : gate_).get(), false, rows);
  const int64_t width = mlp.width;
  Parallel(rows, 4 * width, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const float* up = mlp.gated ? up_.get() + r * width : ones_.data();
      Activate(mlp.activation, gate_.get() + r * width, up, width);
    }
  });
  Pack(layer.down.w.type, gate_.get(), width, rows);
}

void TransformerCpu::RunLayer(int index, std::span<const Row> rows, size_t first) {
  const Layer& spec = config_.layers[static_cast<size_t>(index)];
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(index)];
  if (std::holds_alternative<Attention>(spec.mixer)) {
    Norm(layer.attention_norm, layer.attention_norm_bias, static_cast<int64_t>(rows.size()));
    AttentionLayer(index, rows, first);
  } else if (std::holds_alternative<LatentAttention>(spec.mixer)) {
    Norm(layer.attention_norm, layer.attention_norm_bias, static_cast<int64_t>(rows.size()));
    LatentLayer(index, rows, first);
  } else if (mixer_.shape(index).channels > 0) {
    Norm(layer.attention_norm, layer.attention_norm_bias, static_cast<int64_t>(rows.size()));
    RecurrentLayer(index, rows);
  }
  if (active_.empty()) return;
  if (std::holds_alternative<Mlp>(spec.feed_forward)) {
    Norm(layer.mlp_norm, layer.mlp_norm_bias, static_cast<int64_t>(active_.size()));
    MlpLayer(spec, layer);
  } else if (std::holds_alternative<Experts>(spec.feed_forward)) {
    Norm(layer.mlp_norm, layer.mlp_norm_bias, static_cast<int64_t>(active_.size()));
    ExpertsLayer(spec, layer);
  } else if (std::holds_alternative<MlpAndExperts>(spec.feed_forward)) {
    Norm(layer.mlp_norm, layer.mlp_norm_bias, static_cast<int64_t>(active_.size()));
    MlpAndExpertsLayer(spec, layer);
  }
  if (config_.layer_input_width > 0) AddLayerInput(index, layer);
  if (spec.factor) {
    const int64_t floats = static_cast<int64_t>(active_.size()) * config_.hidden;
    for (int64_t i = 0; i < floats; ++i) x_[i] *= layer.factor;
  }
}

// Rows of the head that no row of the block wants are not read.
void TransformerCpu::FindHeadPieces() {
  head_pieces_.clear();
  std::span<const uint32_t> words;
  const bool all = std::ranges::any_of(allowed_, [](const auto& row) { return row.empty(); });
  if (!all && allowed_.size() == 1) words = allowed_[0];
  if (!all && allowed_.size() > 1) {
    allowed_by_any_.assign(static_cast<size_t>(config_.vocabulary + 31) / 32, 0);
    for (const std::span<const uint32_t>& row : allowed_) {
      const size_t count = std::min(row.size(), allowed_by_any_.size());
      for (size_t w = 0; w < count; ++w) allowed_by_any_[w] |= row[w];
    }
    words = allowed_by_any_;
  }
  ForAllowed(words, config_.vocabulary, [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += kHeadPiece) {
      head_pieces_.push_back({begin, std::min(begin + kHeadPiece, end)});
    }
  });
}

// What is normed stands in normed_.
void TransformerCpu::Head(size_t first, std::span<float> logits) {
  const auto rows = static_cast<int64_t>(active_.size());
  if (config_.logit_scale != 1.0f) {
    for (int64_t i = 0; i < rows * config_.hidden; ++i) normed_[i] *= config_.logit_scale;
  }
  Pack(weights_.head.type, normed_.get(), config_.hidden, rows);
  MatMulArgs args;
  args.w = weights_.head;
  args.x = packed_.get();
  args.rows = static_cast<int>(rows);
  args.y = logits.data();
  args.y_stride = config_.vocabulary;
  args.y_rows = outputs_.data();
  FindHeadPieces();
  const auto pieces = static_cast<int64_t>(head_pieces_.size());
  for (const HeadPiece& piece : head_pieces_) {
    product_bytes_ += MatrixBytes(args.w) / args.w.rows * (piece.end - piece.begin);
  }
  Parallel(pieces, config_.hidden * args.rows * kHeadPiece, 1, [&](int64_t from, int64_t to, int) {
    for (int64_t i = from; i < to; ++i) {
      const HeadPiece& piece = head_pieces_[static_cast<size_t>(i)];
      kernels_.matmul(args, piece.begin, piece.end);
    }
  });
  for (size_t i = 0; i < active_.size(); ++i) {
    float* out = logits.data() + int64_t{outputs_[i]} * config_.vocabulary;
    bool finite = true;
    ForAllowed(allowed_[i], config_.vocabulary, [&](int64_t begin, int64_t end) {
      if (config_.logit_soft_cap > 0.0f) {
        kernels_.soft_cap(out + begin, config_.logit_soft_cap, end - begin);
      }
      finite = finite && kernels_.all_finite(out + begin, end - begin);
    });
    if (!finite) bad_rows_.push_back(static_cast<int32_t>(first) + active_[i]);
  }
}

void TransformerCpu::Tap(const ModelCall& call, int layer, const float* states, size_t rows,
                         size_t first) const {
  const auto hidden = static_cast<size_t>(config_.hidden);
  for (const ModelTap& tap : call.taps) {
    if (tap.layer != layer) continue;
    std::copy_n(states, rows * hidden, tap.states.data() + first * hidden);
  }
}

void TransformerCpu::BeginBlock(std::span<const Row> rows) {
  if (weights_.lora != nullptr) FindAdapters(rows);
  active_.clear();
  outputs_.clear();
  allowed_.clear();
  for (size_t r = 0; r < rows.size(); ++r) {
    active_.push_back(static_cast<int32_t>(r));
    if (rows[r].output >= 0) {
      outputs_.push_back(rows[r].output);
      allowed_.push_back(rows[r].allowed);
    }
  }
}

void TransformerCpu::Embed(const ModelCall& call, std::span<const Row> rows, size_t first) {
  const int64_t hidden = config_.hidden;
  if (!call.inputs.empty()) {
    const auto width = static_cast<size_t>(hidden);
    std::copy_n(call.inputs.data() + first * width, rows.size() * width, x_.get());
    return Tap(call, 0, x_.get(), rows.size(), first);
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    float* x = x_.get() + static_cast<int64_t>(r) * hidden;
    if (rows[r].mix.empty()) {
      kernels_.read_row(weights_.embedding, rows[r].token, x);
    } else {
      EmbedMix(rows[r].mix, x);
    }
    if (config_.embedding_scale != 1.0f) {
      for (int64_t i = 0; i < hidden; ++i) x[i] *= config_.embedding_scale;
    }
  }
  if (config_.layer_input_width > 0) FindLayerInputs(rows);
  Tap(call, 0, x_.get(), rows.size(), first);
}

void TransformerCpu::ForwardBlock(const ModelCall& call, std::span<const Row> rows, size_t first) {
  mixer_.BeginBlock(rows);
  BeginBlock(rows);
  if (running_head_ != nullptr) return RunHead(call, rows, first);
  Embed(call, rows, first);
  RunLayers(call, rows, first);
  if (call.layers.empty()) KeepForHeads(rows, first);
}

void TransformerCpu::RunLayers(const ModelCall& call, std::span<const Row> rows, size_t first) {
  for (const int layer : layers_) {
    RunLayer(layer, rows, first);
    if (active_.empty()) return;
    Tap(call, layer + 1, x_.get(), active_.size(), first);
    TapForHeads(layer + 1);
  }
  FinishBlock(call, rows, first);
}

void TransformerCpu::ForwardBothSides(const ModelCall& call) {
  const auto hidden = static_cast<size_t>(config_.hidden);
  stream_.resize(call.rows.size() * hidden);
  const auto each_block = [&](const auto& f) {
    for (size_t first = 0; first < call.rows.size(); first += kBlockRows) {
      const auto rows =
          call.rows.subspan(first, std::min<size_t>(kBlockRows, call.rows.size() - first));
      BeginBlock(rows);
      f(rows, first);
    }
  };
  const auto load = [&](std::span<const Row> rows, size_t first) {
    std::copy_n(stream_.data() + first * hidden, rows.size() * hidden, x_.get());
  };
  const auto keep = [&](std::span<const Row> rows, size_t first) {
    std::copy_n(x_.get(), rows.size() * hidden, stream_.data() + first * hidden);
  };
  each_block([&](std::span<const Row> rows, size_t first) {
    Embed(call, rows, first);
    keep(rows, first);
  });
  for (const int layer : layers_) {
    const TransformerLayer& weights = weights_.layers[static_cast<size_t>(layer)];
    keys_stored_ = false;
    each_block([&](std::span<const Row> rows, size_t first) {
      load(rows, first);
      Norm(weights.attention_norm, weights.attention_norm_bias, static_cast<int64_t>(rows.size()));
      Pack(weights.q.w.type, normed_.get(), config_.hidden, static_cast<int64_t>(rows.size()));
      StoreKeys(layer, rows, first);
    });
    keys_stored_ = true;
    each_block([&](std::span<const Row> rows, size_t first) {
      load(rows, first);
      RunLayer(layer, rows, first);
      if (active_.empty()) return;
      Tap(call, layer + 1, x_.get(), active_.size(), first);
      if (layer == layers_.back()) {
        FinishBlock(call, rows, first);
      } else {
        keep(rows, first);
      }
    });
  }
  keys_stored_ = false;
}

void TransformerCpu::FinishBlock(const ModelCall& call, std::span<const Row> rows, size_t first) {
  Norm(weights_.final_norm, weights_.final_norm_bias, static_cast<int64_t>(active_.size()));
  Tap(call, ModelTap::kFinal, normed_.get(), active_.size(), first);
  TapFinalForHeads();
  if (outputs_.size() < active_.size()) KeepRowsWithOutput(rows);
  if (!active_.empty()) Head(first, call.logits);
}

Status TransformerCpu::PrepareLayers(const ModelCall& call) {
  const int count = config_.layer_count();
  running_head_ = HeadOf(call);
  if (running_head_ != nullptr) return PrepareHead(call);
  layers_.assign(call.layers.begin(), call.layers.end());
  if (layers_.empty()) {
    for (int i = 0; i < count; ++i) layers_.push_back(i);
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i] >= 0 && layers_[i] < count && (i == 0 || layers_[i] > layers_[i - 1])) continue;
    return Error{ErrorCode::kInvalid,
                 "must be ascending numbers from 0 to " + std::to_string(count - 1) + ", not " +
                     std::to_string(layers_[i]) + " at place " + std::to_string(i),
                 "layers"};
  }
  for (const int layer : layers_) {
    const auto* const attention =
        std::get_if<Attention>(&config_.layers[static_cast<size_t>(layer)].mixer);
    if (attention == nullptr || attention->keys_of < 0 ||
        std::ranges::find(layers_, attention->keys_of) != layers_.end()) {
      continue;
    }
    return Error{ErrorCode::kInvalid,
                 "has layer " + std::to_string(layer) + " without layer " +
                     std::to_string(attention->keys_of) + ", whose keys it reads",
                 "layers"};
  }
  const size_t floats = call.rows.size() * static_cast<size_t>(config_.hidden);
  if (!call.inputs.empty()) {
    if (config_.layer_input_width > 0) {
      return Error{ErrorCode::kUnsupported, "layers of this model also read the embedding",
                   "inputs"};
    }
    if (call.layers.empty() || call.inputs.size() < floats) {
      return Error{ErrorCode::kInvalid,
                   "has " + std::to_string(call.inputs.size()) + " floats for " +
                       std::to_string(call.layers.size()) + " layers, but the rows need " +
                       std::to_string(floats) + " and at least one layer",
                   "inputs"};
    }
  }
  taps_behind_last_ = call.layers.empty() && HeadsReadBehind(count);
  for (const ModelTap& tap : call.taps) {
    const bool runs = tap.layer == 0 || tap.layer == ModelTap::kFinal ||
                      std::ranges::find(layers_, tap.layer - 1) != layers_.end();
    if (!runs || tap.layer < ModelTap::kFinal) {
      return Error{ErrorCode::kInvalid,
                   "has layer " + std::to_string(tap.layer) + ", which does not run", "taps"};
    }
    if (tap.states.size() < floats) {
      return Error{ErrorCode::kInvalid,
                   "has " + std::to_string(tap.states.size()) + " floats for layer " +
                       std::to_string(tap.layer) + ", but the rows need " + std::to_string(floats),
                   "taps"};
    }
    taps_behind_last_ |= tap.layer == ModelTap::kFinal || tap.layer == layers_.back() + 1;
  }
  return {};
}

Status TransformerCpu::Run(const ModelCall& call) {
  const std::span<const Row> rows = call.rows;
  bad_rows_.clear();
  product_bytes_ = 0;
  if (call.draws) return Error{ErrorCode::kUnsupported, "this backend does not sample", ""};
  if (Status status = PrepareLayers(call); !status.ok()) return status;
  if (Status status = CheckMixes(rows); !status.ok()) return status;
  PlanLimits limits;
  limits.vocabulary = config_.vocabulary;
  limits.logits = static_cast<int64_t>(call.logits.size());
  limits.keep_tree = call.keep_tree;
  limits.both_sides = config_.both_sides;
  limits.layers = KeyOf(call.layers);
  if (Status status = sequences_.Plan(rows, limits, plan_); !status.ok()) return status;
  Copy(plan_.copies);
  for (const Row& row : rows) ExtendRopeTables(row.position + 1);
  if (mixer_.has_states()) PrepareStates();
  const bool both_sides = config_.both_sides && rows.size() > kBlockRows;
  if (both_sides) ForwardBothSides(call);
  for (size_t first = 0; !both_sides && first < rows.size(); first += kBlockRows) {
    ForwardBlock(call, rows.subspan(first, std::min<size_t>(kBlockRows, rows.size() - first)),
                 first);
  }
  for (const int32_t row : bad_rows_) {
    const auto sequence = static_cast<size_t>(rows[static_cast<size_t>(row)].sequence);
    plan_.changes[static_cast<size_t>(plan_.change_of[sequence])].failed = true;
  }
  sequences_.Finish(rows, plan_);
  if (bad_rows_.empty()) return {};
  return Error{ErrorCode::kInvalid,
               "the logits are not finite numbers (row " + std::to_string(bad_rows_[0]) +
                   "): the weights are damaged or too large for their type, or the "
                   "configuration is not theirs",
               "model"};
}

}  // namespace pawl
