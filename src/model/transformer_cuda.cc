// The forward pass of transformer_cpu.cc in kernels of kernels/cuda: for each layer
//   norm + Q, K, V      one product                 matmul.cuh
//   rotate and store    keys and values to pages    layer.cu
//   attention           by splits, and their join   attention.cu
//   O + residual        a product that adds         matmul.cuh
//   norm + gate . up    one product                 matmul.cuh
//   down + residual     a product that adds         matmul.cuh
// and, behind the graph, the head on the rows that want something (transformer_cuda_head.cc). (Many
// plain rows in a call take another path: transformer_cuda_prefill.cc.) Activations are float, so
// that the CPU's numbers are met up to roundings; keys and values are bf16 unless asked otherwise.
//
// A call is cut into blocks of at most 64 rows. What a block's kernels are told lies in device
// memory at fixed places: rows, page tables, slots of trees. The kernels of a block are therefore
// the same for all blocks of a shape (rows and positions seen, both rounded up to powers of two),
// and are recorded as a graph and replayed. A shape that comes up for the first time runs kernel by
// kernel, which loads their code, and the graph is made the second time. Rows that only fill up a
// shape see nothing and their results go nowhere. Rounding up changes no bit of the others: no
// kernel's arithmetic depends on how many rows or splits there are.
//
// Between blocks the host waits for the device, because the next block's rows go to the same place.
#include "src/model/transformer_cuda.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace pawl::PAWL_GPU {
namespace {

static_assert(kPageSize == kPagePositions);

// Partial results of attention of a block take no more than this, or blocks get fewer rows.
constexpr int64_t kMostPartialBytes = int64_t{256} << 20;
// Shapes are few: seven numbers of rows, a dozen of positions.
constexpr size_t kMostGraphs = 256;
constexpr int kLeastPositions = 256;

int64_t Padded(int64_t floats) { return (floats + 31) / 32 * 32; }

int PowerOfTwo(int n) {
  int power = 1;
  while (power < n) power *= 2;
  return n == 0 ? 0 : power;
}

const char* DtypeName(DeviceWeight type) {
  switch (type) {
    case DeviceWeight::kF32:
      return "fp32";
    case DeviceWeight::kBf16:
      return "bf16";
    case DeviceWeight::kF16:
      return "fp16";
    case DeviceWeight::kFp8:
      return "fp8";
    case DeviceWeight::kI8:
      return "int8";
    case DeviceWeight::kI4:
      return "int4";
  }
  return "";
}

Error Unsupported(std::string message) {
  return {ErrorCode::kUnsupported, std::move(message), "cuda"};
}

}  // namespace

// ---- Loading ----

Result<std::unique_ptr<Model>> TransformerCuda::Make(TransformerConfig config,
                                                     const TransformerWeights& weights,
                                                     const TransformerCudaOptions& options) {
  const Result<DeviceFacts> device = CurrentDevice();
  if (!device.ok()) return device.error();
  const Result<LayerFacts> layers = LayersOnCuda(config);
  if (!layers.ok()) return layers.error();
  std::unique_ptr<TransformerCuda> model(new TransformerCuda(std::move(config), *layers, options));
  Result<Stream> stream = NewStream();
  if (!stream.ok()) return stream.error();
  model->stream_ = *stream;
  stream = NewStream();
  if (!stream.ok()) return stream.error();
  model->uploads_ = *stream;
  Result<Fence> fence = NewFence();
  if (!fence.ok()) return fence.error();
  model->uploaded_ = *fence;
  if (Status status = model->Upload(weights); !status.ok()) return status.error();
  if (Status status = model->AllocateScratch(); !status.ok()) return status.error();
  if (Status status = model->AllocateCache(); !status.ok()) return status.error();
  model->info_.kernels = "cuda, " + device->name;
  return std::unique_ptr<Model>(std::move(model));
}

TransformerCuda::~TransformerCuda() {
  for (const auto& [shape, made] : graphs_) FreeGraph(made.graph);
  for (Buffer* buffer : {&rows_, &tables_, &extra_, &moves_, &logits_, &head_rows_, &head_list_,
                         &head_seen_, &head_answers_, &head_top_, &canvas_rows_}) {
    FreePinned(buffer->pinned);
  }
  FreePrefill();
  FreeFence(uploaded_);
  FreeStream(uploads_);
  FreeStream(stream_);
}

Result<void*> TransformerCuda::UploadBytes(const void* data, int64_t bytes) {
  Result<DeviceMemory> memory = DeviceMemory::Make(bytes);
  if (!memory.ok()) return memory.error();
  if (Status status = CopyIn(memory->data(), data, bytes, stream_); !status.ok()) {
    return status.error();
  }
  if (Status status = Synchronize(stream_); !status.ok()) return status.error();
  memory_.push_back(*std::move(memory));
  return memory_.back().data();
}

Status TransformerCuda::CheckPack(const Matrix& matrix, bool exact) const {
  if ((options_.fp8_weights && !exact) || CanPack(matrix)) return {};
  return Unsupported(std::string(pawl::DtypeName(matrix.type)) +
                     " weights with minimums (Q5_1, Q5_K and Q2_K of GGUF files) run on the CPU "
                     "only; load them as bf16, fp16, fp8, int8 or int4 (--dtype)");
}

PackedMatrix TransformerCuda::Pack(const Matrix& matrix, bool exact) const {
  if (!options_.fp8_weights || exact) return PackMatrix(matrix);
  return PackMatrixFp8(matrix, *FindKernels(KernelVariant::kAuto));
}

Result<DeviceMatrix> TransformerCuda::UploadMatrix(const Matrix& matrix, bool exact) {
  if (Status status = CheckPack(matrix, exact); !status.ok()) return status.error();
  const PackedMatrix packed = Pack(matrix, exact);
  DeviceMatrix on_device = packed.shape;
  const auto table = [&](const auto& values, auto& to) -> Status {
    if (values.empty()) return {};
    Result<void*> memory =
        UploadBytes(values.data(), static_cast<int64_t>(values.size() * sizeof values[0]));
    if (!memory.ok()) return memory.error();
    to = static_cast<decltype(values.data())>(*memory);
    return {};
  };
  Result<void*> data = UploadBytes(packed.data.data(), static_cast<int64_t>(packed.data.size()));
  if (!data.ok()) return data.error();
  on_device.data = *data;
  Status status = table(packed.scales, on_device.scales);
  if (status.ok()) status = table(packed.minimums, on_device.minimums);
  if (status.ok()) status = table(packed.row_scales, on_device.row_scales);
  if (!status.ok()) return status.error();
  info_.weight_bytes += packed.bytes();
  return on_device;
}

Result<const float*> TransformerCuda::UploadVector(const std::vector<float>& values) {
  if (values.empty()) return static_cast<const float*>(nullptr);
  std::vector<float> padded = values;
  padded.resize(static_cast<size_t>(Padded(static_cast<int64_t>(values.size()))));
  Result<void*> memory =
      UploadBytes(padded.data(), static_cast<int64_t>(padded.size() * sizeof(float)));
  if (!memory.ok()) return memory.error();
  info_.weight_bytes += static_cast<int64_t>(values.size() * sizeof(float));
  return static_cast<const float*>(*memory);
}

Status TransformerCuda::UploadLinear(const Linear& from, DeviceLinear& to, bool exact) {
  Result<DeviceMatrix> matrix = UploadMatrix(from.w, exact);
  if (!matrix.ok()) return matrix.error();
  to.w = *matrix;
  Result<const float*> bias = UploadVector(from.bias);
  if (!bias.ok()) return bias.error();
  to.bias = *bias;
  return {};
}

Result<TransformerCuda::DeviceLayer> TransformerCuda::UploadLayer(const TransformerLayer& from,
                                                                  const Layer& spec) {
  DeviceLayer to;
  Status status;
  const auto vector = [&](const std::vector<float>& values, const float*& at) {
    if (!status.ok()) return;
    Result<const float*> uploaded = UploadVector(values);
    if (!uploaded.ok()) {
      status = uploaded.error();
    } else {
      at = *uploaded;
    }
  };
  const auto linear = [&](const Linear& weights, DeviceLinear& at) {
    if (status.ok()) status = UploadLinear(weights, at);
  };
  vector(from.attention_norm, to.attention_norm);
  vector(from.mlp_norm, to.mlp_norm);
  vector(from.q_norm, to.q_norm);
  vector(from.k_norm, to.k_norm);
  vector(from.sinks, to.sinks);
  vector(from.attention_post_norm, to.attention_post_norm);
  vector(from.mlp_post_norm, to.mlp_post_norm);
  linear(from.q, to.q);
  linear(from.k, to.k);
  linear(from.v, to.v);
  linear(from.o, to.o);
  const auto mlp = [&](const Linear& gate, const Linear& up, const Linear& down) {
    linear(gate, to.gate);
    linear(up, to.up);
    linear(down, to.down);
    if (status.ok() && to.gate.w.type != to.up.w.type) {
      status = Unsupported("the gate and the other factor of an MLP have different dtypes");
    }
  };
  if (const auto* const experts = std::get_if<Experts>(&spec.feed_forward)) {
    to.activation = experts->activation;
    to.inner = experts->shared_width;
    const ExpertWeights::Expert& shared = from.experts.shared;
    if (experts->shared_width > 0) mlp(shared.gate, shared.up, shared.down);
    if (status.ok()) status = UploadExperts(from.experts, *experts, to.experts);
  } else {
    to.activation = spec.mlp().activation;
    to.inner = spec.mlp().width;
    mlp(from.gate, from.up, from.down);
  }
  if (!status.ok()) return status.error();
  return to;
}

Status TransformerCuda::Upload(const TransformerWeights& weights) {
  Result<DeviceMatrix> embedding = UploadMatrix(weights.embedding);
  if (!embedding.ok()) return embedding.error();
  embedding_ = head_ = *embedding;
  int64_t idle = 0;  // bytes that a step with one row leaves alone
  if (weights.head.data != weights.embedding.data) {
    idle += info_.weight_bytes;
    Result<DeviceMatrix> head = UploadMatrix(weights.head);
    if (!head.ok()) return head.error();
    head_ = *head;
  }
  Result<const float*> norm = UploadVector(weights.final_norm);
  if (!norm.ok()) return norm.error();
  final_norm_ = *norm;
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const Layer& spec = config_.layers[i];
    Result<DeviceLayer> layer = UploadLayer(weights.layers[i], spec);
    if (!layer.ok()) return layer.error();
    layers_.push_back(*layer);
    if (const auto* const experts = std::get_if<Experts>(&spec.feed_forward)) {
      int64_t of_one = 0;
      for (const ExpertMatrices* all :
           {&layer->experts.gate, &layer->experts.up, &layer->experts.down}) {
        of_one += all->data_stride + 4 * (all->row_scales_stride + all->bias_stride) +
                  all->scales_stride * (all->first.minimums != nullptr ? 4 : 2);
      }
      idle += of_one * (experts->count - experts->chosen);
    }
  }
  FillInfo(weights, idle);
  return {};
}

void TransformerCuda::FillInfo(const TransformerWeights& weights, int64_t idle) {
  const DeviceLayer& first = layers_[0];
  const bool experts = std::holds_alternative<Experts>(config_.layers[0].feed_forward);
  info_.architecture = config_.architecture;
  info_.dtype = DtypeName((experts ? first.experts.up.first : first.up.w).type);
  info_.vocabulary_size = config_.vocabulary;
  info_.head_dim = same_.head_dim;
  const auto count = [&](const Linear& linear) {
    info_.layer_parameters += linear.w.rows * linear.w.cols;
  };
  for (const TransformerLayer& layer : weights.layers) {
    const ExpertWeights& own = layer.experts;
    for (const Linear* matrix :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down, &own.router,
          &own.shared.gate, &own.shared.up, &own.shared.down, &own.shared_weight}) {
      count(*matrix);
    }
    for (const ExpertWeights::Expert& expert : own.experts) {
      count(expert.gate);
      count(expert.up);
      count(expert.down);
    }
  }
  info_.step_bytes = info_.weight_bytes - idle;
  info_.context_length = config_.context_length;
  info_.layers = config_.layer_count();
  info_.hidden = config_.hidden;
  info_.heads = same_.heads;
  info_.kv_heads = same_.kv_heads;
  info_.parameters = weights.parameters;
  info_.end_tokens = config_.end_tokens;
  info_.bos = config_.bos;
}

Status TransformerCuda::AllocateScratch() {
  const int64_t q_width = int64_t{same_.heads} * same_.head_dim;
  const int64_t kv_width = int64_t{same_.kv_heads} * same_.head_dim;
  hidden_stride_ = Padded(config_.hidden);
  q_stride_ = Padded(q_width);
  qkv_stride_ = Padded(q_width + 2 * kv_width);
  inner_stride_ = Padded(facts_.inner);
  scores_stride_ = Padded(facts_.experts + 1);
  expert_stride_ = Padded(facts_.expert_inner);
  logits_stride_ = Padded(config_.vocabulary);
  struct Piece {
    DeviceMemory* memory;
    int64_t floats;  // of a row
  };
  for (const Piece& piece :
       {Piece{&x_, hidden_stride_}, Piece{&qkv_, qkv_stride_}, Piece{&attended_, q_stride_},
        Piece{&inner_, inner_stride_}, Piece{&answer_, Answers() ? hidden_stride_ : 0}}) {
    const int64_t bytes = piece.floats * kMostSkinnyRows * static_cast<int64_t>(sizeof(float));
    Result<DeviceMemory> memory = DeviceMemory::Make(bytes);
    if (!memory.ok()) return memory.error();
    *piece.memory = *std::move(memory);
  }
  if (Status status = AllocateExperts(kMostSkinnyRows, experts_); !status.ok()) return status;
  constexpr int64_t kRowBytes = sizeof(DeviceRow) + sizeof(int32_t);
  if (Status status = Grow(rows_, kMostSkinnyRows * kRowBytes, true); !status.ok()) return status;
  for (const RopeConfig& rope : config_.ropes) {
    rope_rows_.emplace_back(rope, same_.head_dim);
    Result<DeviceMemory> table = DeviceMemory::Make(
        int64_t{config_.context_length} * same_.head_dim * static_cast<int64_t>(sizeof(float)));
    if (!table.ok()) return table.error();
    rope_tables_.push_back(*std::move(table));
  }
  return {};
}

int64_t TransformerCuda::BytesLater() const {
  // Page tables, slots and moves of a call, and what the driver takes for graphs.
  constexpr int64_t kSmallThings = int64_t{8} << 20;
  const int positions = PowerOfTwo(config_.context_length);
  const int64_t partial = AttentionWorkspace(PowerOfTwo(RowsAttended(positions)), same_.heads,
                                             same_.head_dim, positions);
  return partial + HeadBytes() + std::max(PrefillBytes(), CanvasBytes()) + kSmallThings;
}

Status TransformerCuda::Grow(Buffer& buffer, int64_t bytes, bool with_pinned) {
  if (bytes <= buffer.bytes) return {};
  bytes = std::max(bytes, buffer.bytes * 2);
  if (Status status = Synchronize(stream_); !status.ok()) return status;
  DropGraphs(buffer.movable);
  Result<DeviceMemory> memory = DeviceMemory::Make(bytes);
  if (!memory.ok()) return memory.error();
  if (with_pinned) {
    Result<void*> pinned = AllocatePinned(bytes);
    if (!pinned.ok()) return pinned.error();
    FreePinned(buffer.pinned);
    buffer.pinned = *pinned;
  }
  buffer.device = *std::move(memory);
  buffer.bytes = bytes;
  return {};
}

int TransformerCuda::RowsAttended(int positions) const {
  const int64_t of_row = AttentionWorkspace(1, same_.heads, same_.head_dim, positions);
  return static_cast<int>(std::clamp<int64_t>(kMostPartialBytes / of_row, 1, kMostSkinnyRows));
}

Status TransformerCuda::GrowPartial(int64_t bytes) {
  if (bytes <= partial_.bytes()) return {};
  if (Status status = Synchronize(stream_); !status.ok()) return status;
  DropGraphs(kPartial);
  partial_ = DeviceMemory();
  Result<DeviceMemory> memory = DeviceMemory::Make(bytes);
  if (!memory.ok()) return memory.error();
  partial_ = *std::move(memory);
  return {};
}

void TransformerCuda::DropGraphs(unsigned movable) {
  for (auto made = graphs_.begin(); made != graphs_.end();) {
    if ((made->second.names & movable) == 0) {
      ++made;
    } else {
      FreeGraph(made->second.graph);
      made = graphs_.erase(made);
    }
  }
}

Status TransformerCuda::ExtendRopeTables(int positions) {
  if (positions <= rope_positions_) return {};
  const int added = std::min(PowerOfTwo(positions), config_.context_length) - rope_positions_;
  const auto floats = static_cast<size_t>(added) * static_cast<size_t>(same_.head_dim);
  rope_row_.resize(floats);
  for (size_t r = 0; r < rope_rows_.size(); ++r) {
    for (int i = 0; i < added; ++i)
      rope_rows_[r].Next(rope_row_.data() + int64_t{i} * same_.head_dim);
    const int64_t from = int64_t{rope_positions_} * same_.head_dim;
    Status status = CopyIn(rope_tables_[r].as<float>() + from, rope_row_.data(),
                           static_cast<int64_t>(floats * sizeof(float)), stream_);
    if (status.ok()) status = Synchronize(stream_);
    if (!status.ok()) return status;
  }
  rope_positions_ += added;
  return {};
}

// ---- The forward pass ----

Status TransformerCuda::Run(const ModelCall& call) {
  // They would be arguments of the captured graphs.
  const bool mixes =
      std::ranges::any_of(call.rows, [](const Row& row) { return !row.mix.empty(); });
  const char* const lacks = !call.layers.empty() ? "layers"
                            : !call.taps.empty() ? "taps"
                            : call.keep_tree     ? "keep_tree"
                            : mixes              ? "mix"
                                                 : nullptr;
  if (lacks != nullptr) {
    bad_rows_.clear();
    return Error{ErrorCode::kUnsupported, "is not there on CUDA devices", lacks};
  }
  Wanted wanted;
  if (call.draws) {
    wanted.requests = call.requests;
    wanted.tokens = call.tokens.first(std::min(call.tokens.size(), call.requests.size()));
    wanted.sample = true;
    wanted.late = call.late;
  } else {
    wanted.logits = call.logits;
  }
  return RunRows(call.rows, wanted);
}

Status TransformerCuda::RunRows(std::span<const Row> rows, Wanted& wanted) {
  bad_rows_.clear();
  AllowDependentLaunch(options_.dependent_launch);
  PlanLimits limits;
  limits.vocabulary = config_.vocabulary;
  limits.logits = wanted.sample ? static_cast<int64_t>(wanted.tokens.size()) * config_.vocabulary
                                : static_cast<int64_t>(wanted.logits.size());
  limits.both_sides = config_.both_sides;
  if (Status status = sequences_->Plan(rows, limits, plan_); !status.ok()) return status;
  Status status = SendPlan(rows);
  if (status.ok()) {
    status = config_.both_sides ? ForwardCanvases(rows, wanted) : ForwardBlocks(rows, wanted);
  }
  for (const int32_t row : bad_rows_) {
    const auto sequence = static_cast<size_t>(rows[static_cast<size_t>(row)].sequence);
    plan_.changes[static_cast<size_t>(plan_.change_of[sequence])].failed = true;
  }
  if (!status.ok()) {
    // Pinned memory is written again by the next call.
    (void)Synchronize(uploads_);
    (void)Synchronize(stream_);
    bad_rows_.clear();
    for (RowPlan::Change& change : plan_.changes) change.failed = true;
  }
  sequences_->Finish(rows, plan_);
  if (!status.ok() || bad_rows_.empty()) return status;
  return Error{ErrorCode::kInvalid,
               "the logits are not finite numbers (row " + std::to_string(bad_rows_[0]) +
                   "): the weights are damaged or too large for their type, or the "
                   "configuration is not theirs",
               "model"};
}

// What all blocks of a call need.
Status TransformerCuda::SendPlan(std::span<const Row> rows) {
  if (Status status = Copy(plan_.copies); !status.ok()) return status;
  int positions = 0;
  for (const Row& row : rows) positions = std::max(positions, row.position + 1);
  if (Status status = ExtendRopeTables(positions); !status.ok()) return status;
  const auto upload = [&](Buffer& buffer, const std::vector<int32_t>& values) -> Status {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(int32_t));
    // Never without memory: kernels are given its address.
    if (Status status = Grow(buffer, std::max<int64_t>(bytes, 1024), true); !status.ok()) {
      return status;
    }
    if (bytes == 0) return {};
    std::memcpy(buffer.pinned, values.data(), static_cast<size_t>(bytes));
    return CopyIn(buffer.device.data(), buffer.pinned, bytes, stream_);
  };
  if (Status status = upload(tables_, plan_.pages); !status.ok()) return status;
  return upload(extra_, plan_.extra);
}

size_t TransformerCuda::RowsOfBlock(std::span<const Row> rows) const {
  int positions = kLeastPositions;
  for (size_t i = 0; i < rows.size(); ++i) {
    positions = std::max({positions, rows[i].position + 1, plan_.rows[i].prefix});
  }
  return static_cast<size_t>(RowsAttended(PowerOfTwo(positions)));
}

Status TransformerCuda::ForwardBlocks(std::span<const Row> rows, Wanted& wanted) {
  const size_t most = RowsOfBlock(rows);
  for (size_t first = 0; first < rows.size();) {
    size_t count = PlainRows(rows, first);
    Status status;
    if (count > kMostSkinnyRows && UsesLibrary()) {
      status = ForwardPrefill(rows, first, count, wanted);
      if (!status.ok() && status.error().code == ErrorCode::kUnsupported) {
        // Nothing has come out yet, and what was written will be written again.
        WithoutLibrary(status.error());
        continue;
      }
    } else {
      count = std::min(most, rows.size() - first);
      status = ForwardBlock(rows, first, count, wanted);
    }
    if (!status.ok()) return status;
    first += count;
  }
  return {};
}

TransformerCuda::SentRows TransformerCuda::SendRows(std::span<const Row> rows, size_t first,
                                                    size_t count, DeviceRow* to,
                                                    int32_t* listed) const {
  SentRows sent;
  for (size_t i = 0; i < count; ++i) {
    const Row& row = rows[first + i];
    const PlannedRow& planned = plan_.rows[first + i];
    to[i] = {row.token,           row.position,        planned.slot,        planned.prefix,
             planned.extra_begin, planned.extra_count, planned.pages_begin, row.output};
    sent.positions = std::max({sent.positions, row.position + 1, planned.prefix});
    if (row.output < 0) continue;
    listed[sent.outputs.size()] = static_cast<int32_t>(i);
    sent.outputs.push_back(first + i);
  }
  return sent;
}

Status TransformerCuda::ForwardBlock(std::span<const Row> rows, size_t first, size_t count,
                                     Wanted& wanted) {
  auto* device_rows = static_cast<DeviceRow*>(rows_.pinned);
  const auto [outputs, positions] = SendRows(
      rows, first, count, device_rows, reinterpret_cast<int32_t*>(device_rows + kMostSkinnyRows));
  Shape shape;
  shape.rows = PowerOfTwo(static_cast<int>(count));
  shape.outputs = !outputs.empty();
  shape.positions = std::max(PowerOfTwo(positions), kLeastPositions);
  for (size_t i = count; i < static_cast<size_t>(shape.rows); ++i) device_rows[i] = DeviceRow();

  const int64_t partial =
      AttentionWorkspace(shape.rows, same_.heads, same_.head_dim, shape.positions);
  if (Status status = GrowPartial(partial); !status.ok()) return status;
  if (Status status = CopyIn(rows_.device.data(), rows_.pinned, rows_.bytes, stream_);
      !status.ok()) {
    return status;
  }

  auto found = graphs_.find(shape);
  const bool first_time = run_before_.insert(shape).second;
  if (found == graphs_.end() && options_.graphs && !first_time) found = Capture(shape);
  Status status = found != graphs_.end() ? Replay(found->second.graph, stream_) : Enqueue(shape);
  if (!status.ok()) return status;
  const auto* list =
      reinterpret_cast<const int32_t*>(rows_.device.as<DeviceRow>() + kMostSkinnyRows);
  return RunHead(rows, outputs, x_.as<float>(), list, wanted);
}

void TransformerCuda::GiveUp(const std::string& what, const Error& why) {
  if (!given_up_.empty()) given_up_ += "; ";
  given_up_ += what + ": " + why.message;
}

std::map<TransformerCuda::Shape, TransformerCuda::MadeGraph>::iterator TransformerCuda::Capture(
    const Shape& shape) {
  if (graphs_.size() >= kMostGraphs) {
    FreeGraph(graphs_.begin()->second.graph);
    graphs_.erase(graphs_.begin());
  }
  // Once more without dependent launches, whose edges the driver may not know, and then no more:
  // the same launches one by one work as well, or say what is wrong with them.
  for (;;) {
    Status status = BeginCapture(stream_);
    if (status.ok()) {
      status = Enqueue(shape);
      const Result<Graph> graph = EndCapture(stream_);
      if (status.ok() && graph.ok()) {
        ++graphs_made_;
        return graphs_.emplace(shape, MadeGraph{*graph, named_}).first;
      }
      if (graph.ok()) FreeGraph(*graph);
      if (status.ok()) status = graph.error();
    }
    const char* given_up = options_.dependent_launch ? "dependent launches" : "graphs";
    GiveUp(given_up, status.error());
    if (!options_.dependent_launch) {
      options_.graphs = false;
      return graphs_.end();
    }
    options_.dependent_launch = false;
    AllowDependentLaunch(false);
  }
}

Status TransformerCuda::Enqueue(const Shape& shape) {
  named_ = kNothing;
  const BlockRows block = {shape.rows, shape.positions, rows_.device.as<DeviceRow>(),
                           x_.as<float>(), qkv_.as<float>()};
  if (Status status = EnqueueEmbedding(block); !status.ok()) return status;
  for (int layer = 0; layer < config_.layer_count(); ++layer) {
    if (Status status = EnqueueKeys(block, layer); !status.ok()) return status;
    // In the last layer keys and values are all that rows without logits leave.
    if (layer + 1 == config_.layer_count() && !shape.outputs) return {};
    if (Status status = EnqueueRest(block, layer); !status.ok()) return status;
  }
  return {};
}

Status TransformerCuda::EnqueueEmbedding(const BlockRows& block) {
  Embed embed;
  embed.table = embedding_;
  embed.rows = block.rows;
  embed.count = block.count;
  embed.scale = config_.embedding_scale;
  embed.x = block.x;
  embed.x_stride = hidden_stride_;
  return RunEmbed(embed, stream_);
}

Status TransformerCuda::EnqueueKeys(const BlockRows& block, int index) {
  const DeviceLayer& layer = layers_[static_cast<size_t>(index)];
  const int rope = config_.layers[static_cast<size_t>(index)].attention().rope;
  const int64_t q_width = int64_t{same_.heads} * same_.head_dim;
  const int64_t kv_width = int64_t{same_.kv_heads} * same_.head_dim;
  MatMul product;
  product.x = block.x;
  product.x_stride = hidden_stride_;
  product.rows = block.count;
  product.norm = layer.attention_norm;
  product.epsilon = config_.norm_epsilon;
  product.part_count = 0;
  const DeviceLinear* linears[] = {&layer.q, &layer.k, &layer.v};
  const int64_t offsets[] = {0, q_width, q_width + kv_width};
  for (int i = 0; i < 3; ++i) {
    // One launch for those of one type; a GGUF file may keep the values in another.
    MatMulPart& part = product.parts[product.part_count++];
    part.w = linears[i]->w;
    part.bias = linears[i]->bias;
    part.y = block.qkv + offsets[i];
    part.y_stride = qkv_stride_;
    if (i < 2 && linears[i + 1]->w.type == part.w.type) continue;
    if (Status status = RunMatMul(product, stream_); !status.ok()) return status;
    product.part_count = 0;
  }
  RotateAndStore rotate;
  rotate.qkv = block.qkv;
  rotate.stride = qkv_stride_;
  rotate.rows = block.rows;
  rotate.count = block.count;
  rotate.heads = same_.heads;
  rotate.q_norm = layer.q_norm;
  rotate.k_norm = layer.k_norm;
  rotate.epsilon = config_.norm_epsilon;
  rotate.rope = rope_tables_[static_cast<size_t>(rope)].as<float>();
  rotate.cache = CacheOf(index);
  return RunRotateAndStore(rotate, stream_);
}

Status TransformerCuda::EnqueueRest(const BlockRows& block, int layer) {
  if (Status status = EnqueueAttention(block, layer); !status.ok()) return status;
  return EnqueueFeedForward(block, layer);
}

Status TransformerCuda::EnqueueAttention(const BlockRows& block, int index) {
  const DeviceLayer& layer = layers_[static_cast<size_t>(index)];
  named_ |= kTables | kExtra | kPartial;
  Attention attention;
  attention.q = block.qkv;
  attention.q_stride = qkv_stride_;
  attention.rows = block.rows;
  attention.count = block.count;
  attention.heads = same_.heads;
  attention.tables = tables_.device.as<int32_t>();
  attention.extra = extra_.device.as<int32_t>();
  attention.cache = CacheOf(index);
  attention.scale = same_.attention_scale;
  attention.soft_cap = same_.attention_soft_cap;
  attention.window = config_.layers[static_cast<size_t>(index)].attention().window;
  attention.sinks = layer.sinks;
  attention.most_positions = block.positions;
  attention.partial = partial_.as<float>();
  attention.out = attended_.as<float>();
  attention.out_stride = q_stride_;
  if (Status status = RunAttention(attention, stream_); !status.ok()) return status;
  return AddToResidual(block, layer.o, attended_.as<float>(), q_stride_, layer.attention_post_norm);
}

Status TransformerCuda::EnqueueFeedForward(const BlockRows& block, int index) {
  const DeviceLayer& layer = layers_[static_cast<size_t>(index)];
  const bool experts =
      std::holds_alternative<Experts>(config_.layers[static_cast<size_t>(index)].feed_forward);
  MatMul product;
  product.rows = block.count;
  if (layer.inner > 0) {
    product.parts[0].w = layer.gate.w;
    product.parts[0].bias = layer.gate.bias;
    product.parts[0].up = layer.up.w;
    product.parts[0].up_bias = layer.up.bias;
    product.parts[0].y = inner_.as<float>();
    product.parts[0].y_stride = inner_stride_;
    product.x = block.x;
    product.x_stride = hidden_stride_;
    product.norm = layer.mlp_norm;
    product.epsilon = config_.norm_epsilon;
    product.gate = layer.activation == Activation::kSilu ? Gate::kSilu : Gate::kGeluTanh;
    if (Status status = RunMatMul(product, stream_); !status.ok()) return status;
  }
  if (!experts) {
    return AddToResidual(block, layer.down, inner_.as<float>(), inner_stride_, layer.mlp_post_norm);
  }
  if (layer.inner > 0) {
    product = MatMul();
    product.parts[0].w = layer.down.w;
    product.parts[0].y = answer_.as<float>();
    product.parts[0].y_stride = hidden_stride_;
    product.x = inner_.as<float>();
    product.x_stride = inner_stride_;
    product.rows = block.count;
    if (Status status = RunMatMul(product, stream_); !status.ok()) return status;
  }
  return RunExperts(index, {experts_, block.rows, block.count, block.x, answer_.as<float>()});
}

Status TransformerCuda::AddToResidual(const BlockRows& block, const DeviceLinear& linear,
                                      const float* x, int64_t x_stride, const float* post_norm) {
  MatMul product;
  product.parts[0].w = linear.w;
  product.parts[0].bias = linear.bias;
  product.parts[0].y = post_norm != nullptr ? answer_.as<float>() : block.x;
  product.parts[0].y_stride = hidden_stride_;
  product.x = x;
  product.x_stride = x_stride;
  product.rows = block.count;
  product.add = post_norm == nullptr;
  if (Status status = RunMatMul(product, stream_); !status.ok() || post_norm == nullptr) {
    return status;
  }
  NormAndAdd norm;
  norm.y = answer_.as<float>();
  norm.y_stride = norm.x_stride = hidden_stride_;
  norm.norm = post_norm;
  norm.epsilon = config_.norm_epsilon;
  norm.columns = config_.hidden;
  norm.count = block.count;
  norm.x = block.x;
  return RunNormAndAdd(norm, stream_);
}

}  // namespace pawl::PAWL_GPU
