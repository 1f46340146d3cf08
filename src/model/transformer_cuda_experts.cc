// Experts on a device: of each linear layer the matrices of all experts lie in one piece of memory,
// and a row's experts are chosen, run and added by kernels alone (kernels/cuda/experts.cu), so the
// host does not wait within a layer, and a graph serves any choice. Activations are float, for few
// rows and for many.
#include <algorithm>
#include <type_traits>

#include "src/model/transformer_cuda.h"

namespace pawl::PAWL_GPU {
namespace {

constexpr int64_t kAlignment = 256;  // of a matrix
int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

ScoreKind KindOf(Experts::Weights weights) {
  switch (weights) {
    case Experts::Weights::kSoftmax:
      return ScoreKind::kSoftmax;
    case Experts::Weights::kSigmoid:
      return ScoreKind::kSigmoid;
    case Experts::Weights::kSoftmaxOfChosen:
      break;
  }
  return ScoreKind::kSoftmaxOfChosen;
}

// The parts of ExpertScratch::numbers.
struct Numbers {
  float* weights;
  int32_t *experts, *slots, *rows;
  ExpertRun* runs;
  int32_t* run_count;
  Numbers(const DeviceMemory& memory, int64_t slot_count, int64_t run_limit) {
    weights = memory.as<float>();
    experts = reinterpret_cast<int32_t*>(weights + slot_count);
    slots = experts + slot_count;
    rows = slots + slot_count;
    runs = reinterpret_cast<ExpertRun*>(rows + slot_count);
    run_count = reinterpret_cast<int32_t*>(runs + run_limit);
  }
  static int64_t Bytes(int64_t slot_count, int64_t run_limit) {
    static_assert(sizeof(float) == 4 && sizeof(ExpertRun) == 12);
    return 16 * slot_count + 12 * run_limit + 4;
  }
};

}  // namespace

// With room for all of them, when the first is there.
Status TransformerCuda::UploadOne(const PackedMatrix& packed, int64_t expert, int64_t count,
                                  ExpertMatrices& to) {
  DeviceMatrix& first = to.first;
  const DeviceMatrix& shape = packed.shape;
  const auto scales = static_cast<int64_t>(packed.scales.size());
  const auto row_scales = static_cast<int64_t>(packed.row_scales.size());
  if (expert == 0) {
    first = shape;
    to.data_stride = Aligned(static_cast<int64_t>(packed.data.size()));
    to.scales_stride = scales;
    to.row_scales_stride = row_scales;
    const auto make = [&](int64_t size, auto& at) -> Status {
      if (size == 0) return {};
      Result<DeviceMemory> memory = DeviceMemory::Make(count * size);
      if (!memory.ok()) return memory.error();
      memory_.push_back(*std::move(memory));
      at = static_cast<std::remove_reference_t<decltype(at)>>(memory_.back().data());
      return {};
    };
    Status status = make(to.data_stride, first.data);
    if (status.ok()) status = make(2 * scales, first.scales);
    if (status.ok() && !packed.minimums.empty()) status = make(2 * scales, first.minimums);
    if (status.ok()) status = make(4 * row_scales, first.row_scales);
    if (!status.ok()) return status;
  } else if (shape.type != first.type || shape.groups != first.groups ||
             shape.group_shift != first.group_shift ||
             packed.minimums.empty() != (first.minimums == nullptr)) {
    return Error{ErrorCode::kUnsupported, "the experts of a layer have different dtypes", "cuda"};
  }
  const auto copy = [&](const void* base, int64_t stride, const auto& values) -> Status {
    if (values.empty()) return {};
    return CopyIn(static_cast<char*>(const_cast<void*>(base)) + expert * stride, values.data(),
                  static_cast<int64_t>(values.size() * sizeof values[0]), stream_);
  };
  Status status = copy(first.data, to.data_stride, packed.data);
  if (status.ok()) status = copy(first.scales, 2 * scales, packed.scales);
  if (status.ok()) status = copy(first.minimums, 2 * scales, packed.minimums);
  if (status.ok()) status = copy(first.row_scales, 4 * row_scales, packed.row_scales);
  info_.weight_bytes += packed.bytes();
  return status;
}

// As many experts at a time as there are threads.
Result<ExpertMatrices> TransformerCuda::UploadEach(const ExpertWeights& from,
                                                   Linear ExpertWeights::Expert::*one,
                                                   ThreadPool& pool) {
  ExpertMatrices to;
  const auto count = static_cast<int64_t>(from.experts.size());
  const auto expert = [&](int64_t e) -> const Linear& {
    return from.experts[static_cast<size_t>(e)].*one;
  };
  std::vector<float> biases;
  for (int64_t first = 0; first < count; first += pool.size()) {
    std::vector<PackedMatrix> packed(
        static_cast<size_t>(std::min<int64_t>(pool.size(), count - first)));
    const auto here = static_cast<int64_t>(packed.size());
    for (int64_t i = 0; i < here; ++i) {
      const Linear& linear = expert(first + i);
      if (Status status = CheckPack(linear.w, false); !status.ok()) return status.error();
      biases.insert(biases.end(), linear.bias.begin(), linear.bias.end());
    }
    pool.ParallelFor(here, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        packed[static_cast<size_t>(i)] = Pack(expert(first + i).w, false);
      }
    });
    Status status;
    for (int64_t i = 0; i < here && status.ok(); ++i) {
      status = UploadOne(packed[static_cast<size_t>(i)], first + i, count, to);
    }
    // Host memory goes when it has been read.
    const Status read = Synchronize(stream_);
    if (status.ok()) status = read;
    if (!status.ok()) return status.error();
  }
  Result<const float*> bias = UploadVector(biases);
  if (!bias.ok()) return bias.error();
  to.bias = *bias;
  to.bias_stride = static_cast<int64_t>(biases.size()) / count;
  return to;
}

Status TransformerCuda::UploadExperts(const ExpertWeights& from, const Experts& spec,
                                      DeviceExperts& to) {
  // A few numbers decide which experts run.
  if (Status status = UploadLinear(from.router, to.router, true); !status.ok()) return status;
  if (spec.shared_gate) {
    Status status = UploadLinear(from.shared_weight, to.shared_weight, true);
    if (!status.ok()) return status;
  }
  for (const auto& [values, at] :
       {std::pair(&from.choice_bias, &to.choice_bias), std::pair(&from.factors, &to.factors)}) {
    Result<const float*> vector = UploadVector(*values);
    if (!vector.ok()) return vector.error();
    *at = *vector;
  }
  ThreadPool pool(options_.threads);
  using Expert = ExpertWeights::Expert;
  for (const auto& [one, at] : {std::pair(&Expert::gate, &to.gate), std::pair(&Expert::up, &to.up),
                                std::pair(&Expert::down, &to.down)}) {
    Result<ExpertMatrices> all = UploadEach(from, one, pool);
    if (!all.ok()) return all.error();
    *at = *all;
  }
  if (to.gate.first.type != to.up.first.type) {
    return Error{ErrorCode::kUnsupported,
                 "the gate and the other factor of experts have different dtypes", "cuda"};
  }
  return {};
}

template <typename Visit>
void TransformerCuda::ForExpertPieces(int64_t rows, const Visit& visit) const {
  if (facts_.experts == 0) return;
  const int64_t slots = rows * facts_.chosen;
  visit(&ExpertScratch::scores, rows * scores_stride_ * 4);
  visit(&ExpertScratch::numbers, Numbers::Bytes(slots, facts_.experts));
  visit(&ExpertScratch::inner, slots * expert_stride_ * 4);
  visit(&ExpertScratch::answers, slots * hidden_stride_ * 4);
}

int64_t TransformerCuda::ExpertBytes(int64_t rows) const {
  int64_t bytes = 0;
  ForExpertPieces(rows,
                  [&](DeviceMemory ExpertScratch::*, int64_t of_piece) { bytes += of_piece; });
  return bytes;
}

Status TransformerCuda::AllocateExperts(int64_t rows, ExpertScratch& scratch) const {
  Status status;
  ForExpertPieces(rows, [&](DeviceMemory ExpertScratch::*piece, int64_t bytes) {
    if (!status.ok()) return;
    Result<DeviceMemory> memory = DeviceMemory::Make(bytes);
    if (memory.ok()) {
      scratch.*piece = *std::move(memory);
    } else {
      status = memory.error();
    }
  });
  return status;
}

// Scores of the router and, behind them, of the shared MLP; each row's experts; slots by experts.
Status TransformerCuda::RouteExperts(const DeviceLayer& layer, const Experts& spec,
                                     const ExpertRows& rows) {
  auto* scores = rows.scratch.scores.as<float>();
  const int slot_count = rows.count * spec.chosen;
  const Numbers numbers(rows.scratch.numbers, slot_count, spec.count);
  const DeviceLinear* linears[] = {&layer.experts.router, &layer.experts.shared_weight};
  for (int first = 0; first < rows.count; first += kMostSkinnyRows) {
    MatMul product;
    product.x = rows.x + first * hidden_stride_;
    product.x_stride = hidden_stride_;
    product.rows = std::min(rows.count - first, kMostSkinnyRows);
    product.norm = layer.mlp_norm;
    product.epsilon = config_.norm_epsilon;
    product.part_count = 0;
    for (int i = 0; i < (spec.shared_gate ? 2 : 1); ++i) {
      MatMulPart& part = product.parts[product.part_count++];
      part.w = linears[i]->w;
      part.bias = linears[i]->bias;
      part.y = scores + first * scores_stride_ + (i == 0 ? 0 : spec.count);
      part.y_stride = scores_stride_;
      // One launch for both where they are of one type.
      if (i == 0 && spec.shared_gate && linears[1]->w.type == part.w.type) continue;
      if (Status status = RunMatMul(product, stream_); !status.ok()) return status;
      product.part_count = 0;
    }
  }
  ChooseExperts choose;
  choose.scores = scores;
  choose.scores_stride = scores_stride_;
  choose.rows = rows.rows;
  choose.count = rows.count;
  choose.experts = spec.count;
  choose.chosen = spec.chosen;
  choose.kind = KindOf(spec.weights);
  choose.normalized = spec.normalized;
  choose.scale = spec.scale;
  choose.factors = layer.experts.factors;
  choose.choice_bias = layer.experts.choice_bias;
  choose.groups = spec.groups;
  choose.chosen_groups = spec.chosen_groups;
  choose.slot_experts = numbers.experts;
  choose.slot_weights = numbers.weights;
  if (Status status = RunChooseExperts(choose, stream_); !status.ok()) return status;
  GroupSlots group;
  group.slot_experts = numbers.experts;
  group.count = slot_count;
  group.experts = spec.count;
  group.chosen = spec.chosen;
  group.runs = numbers.runs;
  group.run_count = numbers.run_count;
  group.slots = numbers.slots;
  group.rows = numbers.rows;
  return RunGroupSlots(group, stream_);
}

Status TransformerCuda::RunExperts(int index, const ExpertRows& rows) {
  const DeviceLayer& layer = layers_[static_cast<size_t>(index)];
  const auto& spec = std::get<Experts>(config_.layers[static_cast<size_t>(index)].feed_forward);
  if (Status status = RouteExperts(layer, spec, rows); !status.ok()) return status;
  const int slot_count = rows.count * spec.chosen;
  const Numbers numbers(rows.scratch.numbers, slot_count, spec.count);
  ExpertProducts product;
  product.w = layer.experts.gate;
  product.up = layer.experts.up;
  product.x = rows.x;
  product.x_stride = hidden_stride_;
  product.x_rows = numbers.rows;
  product.runs = numbers.runs;
  product.run_count = numbers.run_count;
  product.slots = numbers.slots;
  product.most_runs = std::min(spec.count, slot_count);
  // An expert has a row but once.
  product.slots_a_run = std::min(rows.count, (slot_count + spec.count - 1) / spec.count);
  product.norm = layer.mlp_norm;
  product.epsilon = config_.norm_epsilon;
  product.gate = layer.activation == Activation::kSilu ? Gate::kSilu : Gate::kGeluTanh;
  product.clamp = spec.clamp;
  product.y = rows.scratch.inner.as<float>();
  product.y_stride = expert_stride_;
  if (Status status = RunExpertProducts(product, stream_); !status.ok()) return status;
  product.w = layer.experts.down;
  product.up = ExpertMatrices();
  product.x = product.y;
  product.x_stride = expert_stride_;
  product.x_rows = numbers.slots;
  product.norm = nullptr;
  product.gate = Gate::kNone;
  product.y = rows.scratch.answers.as<float>();
  product.y_stride = hidden_stride_;
  if (Status status = RunExpertProducts(product, stream_); !status.ok()) return status;

  AddExperts add;
  add.slot_experts = numbers.experts;
  add.slot_weights = numbers.weights;
  add.count = rows.count;
  add.chosen = spec.chosen;
  add.y = product.y;
  add.y_stride = hidden_stride_;
  if (spec.shared_width > 0) add.shared = rows.answer;
  add.shared_stride = add.to_stride = hidden_stride_;
  if (spec.shared_gate) add.shared_scores = rows.scratch.scores.as<float>() + spec.count;
  add.shared_scores_stride = scores_stride_;
  add.columns = config_.hidden;
  add.add = layer.mlp_post_norm == nullptr;
  add.to = add.add ? rows.x : rows.answer;
  Status status = RunAddExperts(add, stream_);
  if (!status.ok() || add.add) return status;
  NormAndAdd norm;
  norm.y = rows.answer;
  norm.y_stride = norm.x_stride = hidden_stride_;
  norm.norm = layer.mlp_post_norm;
  norm.epsilon = config_.norm_epsilon;
  norm.columns = config_.hidden;
  norm.count = rows.count;
  norm.x = rows.x;
  return RunNormAndAdd(norm, stream_);
}

}  // namespace pawl::PAWL_GPU
