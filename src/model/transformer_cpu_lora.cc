// LoRA adapters in the forward pass of transformer_cpu.cc: behind a product y = W x, the rows of a
// sequence with an adapter get B (A x) added, in floats. The rows of one adapter are gathered, so
// that its matrices are read once for all of them. Both products are those of the kernels, in which
// the order of a row's additions depends on the length of the sum alone: so a row's bits do not
// depend on the company that it has in the call, nor do those of rows without an adapter.
#include <algorithm>
#include <new>

#include "src/model/lora.h"
#include "src/model/transformer_cpu.h"

namespace pawl {

void TransformerCpu::AllocateAdapters() {
  const auto allocate = [](int64_t floats) {
    Floats out = AllocateFloats(floats);
    if (out == nullptr) throw std::bad_alloc();
    return out;
  };
  const LoraSet& set = *weights_.lora;
  adapter_x_ = allocate(set.most_inputs * kBlockRows);
  adapter_packed_ = allocate(PackedFloats(kBlockRows, std::max(set.most_inputs, set.most_rank)));
  adapter_inner_ = allocate(set.most_rank * kBlockRows);
  for (std::vector<int32_t>* const list : {&adapter_of_, &adapters_, &adapter_rows_}) {
    list->reserve(kBlockRows);
  }
}

void TransformerCpu::FindAdapters(std::span<const Row> rows) {
  adapter_of_.clear();
  adapters_.clear();
  for (const Row& row : rows) {
    const int adapter = sequences_.state(row.sequence).adapter;
    adapter_of_.push_back(adapter);
    if (adapter != 0 && std::ranges::find(adapters_, adapter) == adapters_.end()) {
      adapters_.push_back(adapter);
    }
  }
  adapted_ = !adapters_.empty();
}

void TransformerCpu::AddAdapters(const Linear& linear, float* y, int64_t stride) {
  const auto pack = [&](const float* x, int64_t width, int64_t rows) {
    const int64_t groups = (rows + kPackRows - 1) / kPackRows;
    Parallel(groups, kPackRows * width, 1, [&](int64_t begin, int64_t end, int) {
      const int64_t first = begin * kPackRows;
      const int64_t count = std::min(end * kPackRows, rows) - first;
      kernels_.pack(WeightType::kF32, x + first * width, width, static_cast<int>(count), width,
                    adapter_packed_.get() + first * PackedWidth(width));
    });
  };
  const auto multiply = [&](const MatMulArgs& args) {
    Parallel(args.w.rows, args.w.cols * args.rows, 32,
             [&](int64_t begin, int64_t end, int) { kernels_.matmul(args, begin, end); });
  };
  for (const int32_t adapter : adapters_) {
    const LoraPart& part = linear.lora->of[static_cast<size_t>(adapter) - 1];
    if (part.a.data == nullptr) continue;
    const int64_t inputs = part.a.cols, rank = part.a.rows;
    adapter_rows_.clear();
    for (size_t i = 0; i < active_.size(); ++i) {
      if (adapter_of_[static_cast<size_t>(active_[i])] != adapter) continue;
      std::copy_n(packed_from_.x + static_cast<int64_t>(i) * inputs, inputs,
                  adapter_x_.get() + static_cast<int64_t>(adapter_rows_.size()) * inputs);
      adapter_rows_.push_back(static_cast<int32_t>(i));
    }
    const auto rows = static_cast<int64_t>(adapter_rows_.size());
    if (rows == 0) continue;
    pack(adapter_x_.get(), inputs, rows);
    MatMulArgs args;
    args.w = part.a;
    args.x = adapter_packed_.get();
    args.rows = static_cast<int>(rows);
    args.y = adapter_inner_.get();
    args.y_stride = rank;
    multiply(args);
    pack(adapter_inner_.get(), rank, rows);
    args.w = part.b;
    args.y = y;
    args.y_stride = stride;
    args.y_rows = adapter_rows_.data();
    args.add = true;
    multiply(args);
  }
}

}  // namespace pawl
