// The forward pass for many plain rows: products by cuBLASLt on bf16 activations, attention in
// tiles on tensor cores (prefill.cu). Residuals stay float, and weights of other types are unpacked
// to bf16 one matrix at a time, which many rows pay for. What the rows leave in the cache, and
// their logits, differ in bits from what the kernels for few rows give, and the library may choose
// other algorithms for other numbers of rows.
#include <algorithm>
#include <bit>
#include <cstring>

#include "src/model/transformer_cuda.h"

namespace pawl::PAWL_GPU {
namespace {

constexpr int64_t kRows = kMostPrefillRows;
constexpr int64_t kRowBytes = sizeof(DeviceRow) + sizeof(RowRun) + sizeof(int32_t);
// Tiles of queries are for prompts; a batch of sequences with a row or two each is better off with
// the kernels for few rows.
constexpr int kRowsPerRun = 8;

}  // namespace

size_t TransformerCuda::PlainRows(std::span<const Row> rows, size_t first) const {
  size_t count = 0;
  while (first + count < rows.size() && count < kRows && rows[first + count].ancestors == 0)
    ++count;
  return count;
}

bool TransformerCuda::UsesLibrary() {
  // Biases of MLPs would be passes of their own, for families that hardly exist.
  if (!options_.library || facts_.mlp_bias) return false;
  if (!library_tried_) {
    library_tried_ = true;
    Result<std::unique_ptr<Library>> library = OpenLibrary();
    if (!library.ok()) {
      WithoutLibrary(library.error());
      return false;
    }
    library_ = *std::move(library);
    // Memory that is short here leaves the other way, which needs none. That of canvases grows.
    const int64_t rows = config_.both_sides ? kPrefillTile : kRows;
    if (Status status = AllocatePrefill(rows); !status.ok()) WithoutLibrary(status.error());
  }
  return library_ != nullptr;
}

void TransformerCuda::WithoutLibrary(const Error& why) {
  (void)Synchronize(stream_);
  library_.reset();
  FreePrefill();
  GiveUp("cuBLASLt", why);
}

template <typename Visit>
void TransformerCuda::ForPrefillPieces(int64_t rows, const Visit& visit) const {
  int64_t unpacked = 0;
  const auto needs = [&](const DeviceMatrix& w) {
    if (w.type == DeviceWeight::kBf16) return;
    unpacked = std::max(unpacked, int64_t{w.rows} * PaddedColumns(w.columns) * 2);
  };
  for (const DeviceLayer& layer : layers_) {
    for (const DeviceLinear* linear :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      needs(linear->w);
    }
  }
  visit(&Prefill::x, rows * hidden_stride_ * 4);
  visit(&Prefill::qkv, rows * qkv_stride_ * 4);
  visit(&Prefill::gate_up, rows * std::max(inner_stride_, q_stride_) * 4);
  visit(&Prefill::normed, rows * hidden_stride_ * 2);
  visit(&Prefill::attended, rows * q_stride_ * 2);
  visit(&Prefill::answer, Answers() ? rows * hidden_stride_ * 4 : 0);
  visit(&Prefill::unpacked, unpacked);
}

int64_t TransformerCuda::PrefillBytes() const {
  if (!options_.library || facts_.mlp_bias) return 0;
  int64_t bytes = kLibraryBytes + kRows * kRowBytes + ExpertBytes(kRows);
  ForPrefillPieces(kRows, [&](DeviceMemory Prefill::*, int64_t of_piece) { bytes += of_piece; });
  return bytes;
}

void TransformerCuda::FreePrefill() {
  if (prefill_ != nullptr) FreePinned(prefill_->rows.pinned);
  prefill_.reset();
}

Status TransformerCuda::AllocatePrefill(int64_t rows) {
  FreePrefill();
  prefill_ = std::make_unique<Prefill>();
  prefill_->capacity = rows;
  Status status;
  ForPrefillPieces(rows, [&](DeviceMemory Prefill::*piece, int64_t bytes) {
    if (!status.ok()) return;
    Result<DeviceMemory> memory = DeviceMemory::Make(bytes);
    if (memory.ok()) {
      (*prefill_).*piece = *std::move(memory);
    } else {
      status = memory.error();
    }
  });
  if (status.ok()) status = AllocateExperts(rows, prefill_->experts);
  if (status.ok()) status = Grow(prefill_->rows, rows * kRowBytes, true);
  if (!status.ok()) FreePrefill();
  return status;
}

Status TransformerCuda::PrefillProduct(const DeviceMatrix& w, LibraryProduct product) {
  product.w = static_cast<const uint16_t*>(w.data);
  if (w.type != DeviceWeight::kBf16) {
    auto* unpacked = prefill_->unpacked.as<uint16_t>();
    if (Status status = RunUnpack(w, unpacked, stream_); !status.ok()) return status;
    product.w = unpacked;
  }
  product.w_stride = PaddedColumns(w.columns);
  product.outputs = w.rows;
  product.columns = w.columns;
  return library_->Run(product, stream_);
}

Status TransformerCuda::AttendRowByRow(int index, int count, int most_positions) {
  auto* out = prefill_->gate_up.as<float>();  // free at this point of a layer
  const int most = RowsAttended(most_positions);
  Status status;
  for (int first = 0; first < count && status.ok(); first += most) {
    Attention attention;
    attention.q = prefill_->qkv.as<float>() + first * qkv_stride_;
    attention.q_stride = qkv_stride_;
    attention.rows = prefill_->rows.device.as<DeviceRow>() + first;
    attention.count = std::min(count - first, most);
    attention.heads = same_.heads;
    attention.tables = tables_.device.as<int32_t>();
    attention.extra = extra_.device.as<int32_t>();
    attention.cache = CacheOf(index);
    attention.scale = same_.attention_scale;
    attention.soft_cap = same_.attention_soft_cap;
    attention.window = config_.layers[static_cast<size_t>(index)].attention().window;
    attention.sinks = layers_[static_cast<size_t>(index)].sinks;
    attention.most_positions = most_positions;
    attention.partial = partial_.as<float>();
    attention.out = out + first * q_stride_;
    attention.out_stride = q_stride_;
    status = RunAttention(attention, stream_);
  }
  if (!status.ok()) return status;
  ToBf16 round;
  round.x = out;
  round.x_stride = q_stride_;
  round.columns = same_.heads * same_.head_dim;
  round.count = count;
  round.to = prefill_->attended.as<uint16_t>();
  round.to_stride = q_stride_;
  return RunToBf16(round, stream_);
}

// The residuals, normed, as bf16.
Status TransformerCuda::PrefillNorm(const float* weight, int count) {
  ToBf16 args;
  args.x = prefill_->x.as<float>();
  args.x_stride = hidden_stride_;
  args.norm = weight;
  args.epsilon = config_.norm_epsilon;
  args.columns = config_.hidden;
  args.count = count;
  args.to = prefill_->normed.as<uint16_t>();
  args.to_stride = hidden_stride_;
  return RunToBf16(args, stream_);
}

Status TransformerCuda::PrefillBias(const DeviceLinear& linear, float* to, int count) {
  if (linear.bias == nullptr) return {};
  AddBias args;
  args.bias = linear.bias;
  args.columns = linear.w.rows;
  args.count = count;
  args.x = to;
  args.x_stride = hidden_stride_;
  return RunAddBias(args, stream_);
}

// Adds a product, with its own norm where there is one, to the residuals.
Status TransformerCuda::PrefillResidual(const DeviceLinear& linear, const uint16_t* from,
                                        int64_t stride, const float* post_norm, int count) {
  auto* x = prefill_->x.as<float>();
  float* to = post_norm != nullptr ? prefill_->answer.as<float>() : x;
  LibraryProduct product;
  product.x = from;
  product.x_stride = stride;
  product.y = to;
  product.y_stride = hidden_stride_;
  product.rows = count;
  product.add = post_norm == nullptr;
  Status status = PrefillProduct(linear.w, product);
  if (status.ok()) status = PrefillBias(linear, to, count);
  if (!status.ok() || post_norm == nullptr) return status;
  NormAndAdd args;
  args.y = to;
  args.y_stride = args.x_stride = hidden_stride_;
  args.norm = post_norm;
  args.epsilon = config_.norm_epsilon;
  args.columns = config_.hidden;
  args.count = count;
  args.x = x;
  return RunNormAndAdd(args, stream_);
}

// Experts take their rows as floats, and their shared MLP leaves its answer where they look for it.
Status TransformerCuda::PrefillFeedForward(int index, int count) {
  const DeviceLayer& layer = layers_[static_cast<size_t>(index)];
  const bool experts =
      std::holds_alternative<Experts>(config_.layers[static_cast<size_t>(index)].feed_forward);
  auto* gate = prefill_->gate_up.as<uint16_t>();
  uint16_t* up = gate + prefill_->capacity * inner_stride_;
  LibraryProduct product;
  product.rows = count;
  if (layer.inner > 0) {
    if (Status status = PrefillNorm(layer.mlp_norm, count); !status.ok()) return status;
    product.x = prefill_->normed.as<uint16_t>();
    product.x_stride = hidden_stride_;
    product.y_stride = inner_stride_;
    for (const auto& [linear, to] : {std::pair(&layer.gate, gate), std::pair(&layer.up, up)}) {
      product.rounded = to;
      if (Status status = PrefillProduct(linear->w, product); !status.ok()) return status;
    }
    GateRows act;
    act.gate = gate;
    act.up = up;
    act.stride = inner_stride_;
    act.act = layer.activation == Activation::kSilu ? Gate::kSilu : Gate::kGeluTanh;
    act.columns = layer.inner;
    act.count = count;
    act.to = gate;
    if (Status status = RunGateRows(act, stream_); !status.ok()) return status;
  }
  if (!experts) return PrefillResidual(layer.down, gate, inner_stride_, layer.mlp_post_norm, count);
  auto* answer = prefill_->answer.as<float>();
  if (layer.inner > 0) {
    product.x = gate;
    product.x_stride = inner_stride_;
    product.rounded = nullptr;
    product.y = answer;
    product.y_stride = hidden_stride_;
    if (Status status = PrefillProduct(layer.down.w, product); !status.ok()) return status;
  }
  return RunExperts(index, {prefill_->experts, prefill_->rows.device.as<DeviceRow>(), count,
                            prefill_->x.as<float>(), answer});
}

Status TransformerCuda::PrefillLayer(int index, int count, int runs, int most_positions,
                                     bool last) {
  const DeviceLayer& layer = layers_[static_cast<size_t>(index)];
  const pawl::Attention& config = config_.layers[static_cast<size_t>(index)].attention();
  auto* qkv = prefill_->qkv.as<float>();
  const auto* rows = prefill_->rows.device.as<DeviceRow>();
  const int64_t q_width = int64_t{same_.heads} * same_.head_dim;
  const int64_t kv_width = int64_t{same_.kv_heads} * same_.head_dim;
  Status status;
  const auto then = [&](auto&& step) {
    if (status.ok()) status = step();
  };
  then([&] { return PrefillNorm(layer.attention_norm, count); });
  const DeviceLinear* linears[] = {&layer.q, &layer.k, &layer.v};
  const int64_t offsets[] = {0, q_width, q_width + kv_width};
  for (int i = 0; i < 3; ++i) {
    then([&] {
      LibraryProduct product;
      product.x = prefill_->normed.as<uint16_t>();
      product.x_stride = hidden_stride_;
      product.y = qkv + offsets[i];
      product.y_stride = qkv_stride_;
      product.rows = count;
      return PrefillProduct(linears[i]->w, product);
    });
  }
  RotateAndStore rotate;
  rotate.qkv = qkv;
  rotate.stride = qkv_stride_;
  rotate.rows = rows;
  rotate.count = count;
  rotate.heads = same_.heads;
  rotate.q_bias = layer.q.bias;
  rotate.k_bias = layer.k.bias;
  rotate.v_bias = layer.v.bias;
  rotate.q_norm = layer.q_norm;
  rotate.k_norm = layer.k_norm;
  rotate.epsilon = config_.norm_epsilon;
  rotate.rope = rope_tables_[static_cast<size_t>(config.rope)].as<float>();
  rotate.cache = CacheOf(index);
  // Attention in tiles takes its queries where it leaves its results.
  auto* attended = prefill_->attended.as<uint16_t>();
  const bool tiles = runs * kRowsPerRun <= count;
  if (tiles) {
    rotate.rounded = attended;
    rotate.rounded_stride = q_stride_;
  }
  then([&] { return RunRotateAndStore(rotate, stream_); });
  if (last) return status;
  if (tiles) {
    PrefillAttention attention;
    attention.q = attended;
    attention.q_stride = q_stride_;
    attention.rows = rows;
    attention.runs = reinterpret_cast<const RowRun*>(rows + prefill_->capacity);
    attention.run_count = runs;
    attention.heads = same_.heads;
    attention.tables = tables_.device.as<int32_t>();
    attention.cache = rotate.cache;
    attention.scale = same_.attention_scale;
    attention.soft_cap = same_.attention_soft_cap;
    attention.window = config.window;
    attention.both_sides = config_.both_sides;
    attention.sinks = layer.sinks;
    attention.out = attended;
    attention.out_stride = q_stride_;
    then([&] { return RunPrefillAttention(attention, stream_); });
  } else {
    then([&] { return AttendRowByRow(index, count, most_positions); });
  }
  then([&] {
    return PrefillResidual(layer.o, attended, q_stride_, layer.attention_post_norm, count);
  });
  then([&] { return PrefillFeedForward(index, count); });
  return status;
}

Status TransformerCuda::ForwardPrefill(std::span<const Row> rows, size_t first, size_t count,
                                       Wanted& wanted) {
  if (prefill_ == nullptr || static_cast<int64_t>(count) > prefill_->capacity) {
    const auto capacity = static_cast<int64_t>(std::bit_ceil(count));
    if (Status status = AllocatePrefill(capacity); !status.ok()) return status;
  }
  Buffer& buffer = prefill_->rows;
  auto* device_rows = static_cast<DeviceRow*>(buffer.pinned);
  auto* runs = reinterpret_cast<RowRun*>(device_rows + prefill_->capacity);
  auto* listed = reinterpret_cast<int32_t*>(runs + prefill_->capacity);
  const auto rows_count = static_cast<int>(count);
  const auto [outputs, positions] = SendRows(rows, first, count, device_rows, listed);
  int run_count = 0;
  for (size_t i = 0; i < count; ++i) {
    // The rows of a sequence may be scattered over the call.
    if (run_count > 0 && runs[run_count - 1].count < kPrefillTile &&
        rows[first + i - 1].sequence == rows[first + i].sequence) {
      ++runs[run_count - 1].count;
    } else {
      runs[run_count++] = {static_cast<int32_t>(i), 1};
    }
  }
  if (run_count * kRowsPerRun > rows_count) {
    const int64_t partial =
        AttentionWorkspace(RowsAttended(positions), same_.heads, same_.head_dim, positions);
    if (Status status = GrowPartial(partial); !status.ok()) return status;
  }
  Status status = CopyIn(buffer.device.data(), buffer.pinned, buffer.bytes, stream_);
  if (!status.ok()) return status;
  BlockRows all;
  all.count = rows_count;
  all.rows = buffer.device.as<DeviceRow>();
  all.x = prefill_->x.as<float>();
  status = EnqueueEmbedding(all);
  for (int layer = 0; layer < config_.layer_count() && status.ok(); ++layer) {
    const bool last = layer + 1 == config_.layer_count() && outputs.empty();
    status = PrefillLayer(layer, rows_count, run_count, positions, last);
  }
  const auto* device_list = reinterpret_cast<const int32_t*>(
      buffer.device.as<char>() +
      (reinterpret_cast<char*>(listed) - static_cast<char*>(buffer.pinned)));
  return status.ok() ? RunHeads(rows, outputs, all.x, device_list, wanted) : status;
}

}  // namespace pawl::PAWL_GPU
