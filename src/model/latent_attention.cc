// Attention over compressed keys and values (DeepSeek-V2, 2024) in the forward pass of
// transformer_cpu.cc:
//   c = norm(A * norm(x)), r = RoPE(R * norm(x)),  k = [K c, r],  v = V c
// Only c and r are kept of a position, one vector for all heads. With K and V moved to the other
// side of the sums, q k = (K^T q) c + q r, and the sum of weighted values is V times that of
// weighted c. So this is attention with one head of keys that many heads of queries share, whose
// values are its keys, and the kernel is that of transformer_cpu.cc.
#include <algorithm>
#include <array>
#include <cstring>

#include "src/model/transformer_cpu.h"

namespace pawl {
namespace {

// Of norms of what is compressed, whatever the model's other norms have.
constexpr float kLatentEpsilon = 1e-6f;

// Pairs of neighbours become halves, as the kernel rotates them.
void SplitPairs(const float* from, int width, float* to) {
  for (int i = 0; i < width / 2; ++i) {
    to[i] = from[2 * i];
    to[width / 2 + i] = from[2 * i + 1];
  }
}

}  // namespace

void TransformerCpu::StoreCompressed(int index, std::span<const Row> rows, size_t first) {
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const auto& latent = std::get<LatentAttention>(config_.layers[static_cast<size_t>(index)].mixer);
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t width = latent.rank + latent.rope_dim;
  const RopeTable& rope = ropes_[static_cast<size_t>(latent.rope)];
  MatMul(layer.kv_a, k_.get(), false, count);
  Parallel(count, 4 * width, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const int32_t slot = plan_.rows[first + static_cast<size_t>(r)].slot;
      const float* from = k_.get() + r * width;
      float* to = CacheAt(index, 0, 0, slot);
      kernels_.rmsnorm(from, layer.kv_norm.data(), kLatentEpsilon, latent.rank, to);
      SplitPairs(from + latent.rank, latent.rope_dim, to + latent.rank);
      const int position = rows[static_cast<size_t>(r)].position;
      kernels_.rope(to + latent.rank, rope.table.data() + int64_t{position} * rope.width, 1,
                    latent.rope_dim);
    }
  });
}

// y = matrix x for one head of each row, the rows of both `stride` floats apart.
void TransformerCpu::MultiplyHead(const Matrix& matrix, const float* x, int64_t x_stride, float* y,
                                  int64_t y_stride, int64_t rows) {
  packed_from_ = {matrix.type, nullptr};
  kernels_.pack(matrix.type, x, x_stride, static_cast<int>(rows), matrix.cols, packed_.get());
  MatMulArgs args;
  args.w = matrix;
  args.x = packed_.get();
  args.rows = static_cast<int>(rows);
  args.y = y;
  args.y_stride = y_stride;
  Multiply(args);
}

// Queries of active_, to q_: of each head K^T q, and the rotated part.
void TransformerCpu::CompressedQueries(int index, std::span<const Row> rows) {
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const auto& latent = std::get<LatentAttention>(config_.layers[static_cast<size_t>(index)].mixer);
  const auto active = static_cast<int64_t>(active_.size());
  const int64_t head = latent.key_dim + latent.rope_dim, width = latent.rank + latent.rope_dim;
  const int64_t all = latent.heads * head;
  if (latent.query_rank > 0) {
    MatMul(layer.q_a, attended_.get(), false, active);
    for (int64_t a = 0; a < active; ++a) {
      float* row = attended_.get() + a * latent.query_rank;
      kernels_.rmsnorm(row, layer.q_norm.data(), kLatentEpsilon, latent.query_rank, row);
    }
    Pack(layer.q.w.type, attended_.get(), latent.query_rank, active);
  }
  MatMul(layer.q, z_.get(), false, active);
  const RopeTable& rope = ropes_[static_cast<size_t>(latent.rope)];
  for (int64_t a = 0; a < active; ++a) {
    const int position = rows[static_cast<size_t>(active_[static_cast<size_t>(a)])].position;
    for (int64_t h = 0; h < latent.heads; ++h) {
      float* to = q_.get() + (a * latent.heads + h) * width + latent.rank;
      SplitPairs(z_.get() + a * all + h * head + latent.key_dim, latent.rope_dim, to);
      kernels_.rope(to, rope.table.data() + int64_t{position} * rope.width, 1, latent.rope_dim);
    }
  }
  for (int64_t h = 0; h < latent.heads; ++h) {
    MultiplyHead(layer.k_up[static_cast<size_t>(h)], z_.get() + h * head, all, q_.get() + h * width,
                 latent.heads * width, active);
  }
}

void TransformerCpu::LatentLayer(int index, std::span<const Row> rows, size_t first) {
  const TransformerLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const Layer& spec = config_.layers[static_cast<size_t>(index)];
  const auto& latent = std::get<LatentAttention>(spec.mixer);
  const int64_t hidden = config_.hidden, width = latent.rank + latent.rope_dim;
  const Linear& down = latent.query_rank > 0 ? layer.q_a : layer.q;
  Pack(layer.kv_a.w.type, normed_.get(), hidden, static_cast<int64_t>(rows.size()));
  StoreCompressed(index, rows, first);
  if (KeepsOutputsAfter(index)) {
    KeepRowsWithOutput(rows);
    if (active_.empty()) return;
  }
  const auto active = static_cast<int64_t>(active_.size());
  Pack(down.w.type, normed_.get(), hidden, active);
  CompressedQueries(index, rows);
  const Attention shape = SharedKeys(latent);
  FindAttentionChunks(shape, first);
  int64_t seen = 0;
  for (const int32_t r : active_) seen += rows[static_cast<size_t>(r)].position + 1;
  const auto chunks = static_cast<int64_t>(attention_chunks_.size());
  Parallel(chunks, 2 * latent.heads * width * seen / chunks, 1,
           [&](int64_t begin, int64_t end, int thread) {
             for (int64_t i = begin; i < end; ++i) {
               AttendCompressed(index, first, attention_chunks_[static_cast<size_t>(i)], thread);
             }
           });
  const int64_t values = int64_t{latent.heads} * latent.value_dim;
  for (int64_t h = 0; h < latent.heads; ++h) {
    MultiplyHead(layer.v_up[static_cast<size_t>(h)], attended_.get() + h * width,
                 latent.heads * width, z_.get() + h * latent.value_dim, values, active);
  }
  Pack(layer.o.w.type, z_.get(), values, active);
  AddToResidual(layer.o, layer.attention_post_norm, spec.scale, active);
}

void TransformerCpu::AttendCompressed(int index, size_t first, const AttentionChunk& chunk,
                                      int thread) {
  const auto& latent = std::get<LatentAttention>(config_.layers[static_cast<size_t>(index)].mixer);
  const int width = latent.rank + latent.rope_dim;
  std::array<AttentionRow, kAttentionQueries> seen_by;
  for (int64_t a = chunk.begin; a < chunk.end; ++a) {
    const auto r = static_cast<size_t>(active_[static_cast<size_t>(a)]);
    const PlannedRow& planned = plan_.rows[first + r];
    AttentionRow& row = seen_by[static_cast<size_t>(a - chunk.begin)];
    row.q = q_.get() + a * latent.heads * width;
    row.out = attended_.get() + a * latent.heads * width;
    if (IsOfPairs(index)) row.first = 1;
    row.prefix = planned.prefix;
    row.extra = plan_.extra.data() + planned.extra_begin;
    row.extra_count = planned.extra_count;
  }
  AttentionArgs args;
  args.rows = seen_by.data();
  args.row_count = static_cast<int>(chunk.end - chunk.begin);
  args.keys = args.values = CacheAt(index, 0, 0);
  args.page_stride = page_floats_;
  args.pages = plan_.pages.data() + chunk.pages_begin;
  args.group = latent.heads;
  args.head_dim = width;
  args.scale = latent.scale;
  args.scratch = attention_scratch_[static_cast<size_t>(thread)].data();
  kernels_.attention(args);
}

}  // namespace pawl
