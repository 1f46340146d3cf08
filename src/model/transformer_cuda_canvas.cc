// The forward pass of a model whose rows see both sides. A row looks at rows behind it, so a layer
// has the keys and values of all rows of a canvas before one of them looks. Few rows are a block,
// whose kernels do that anyway. More rows go through the library and attention in tiles
// (transformer_cuda_prefill.cc). Without the library, blocks of a layer follow each other.
//
// Which way a canvas goes is decided by its own rows, and its products by the library are its
// alone. So no other sequence of the call changes a bit of its logits.
#include <algorithm>
#include <numeric>
#include <utility>

#include "src/model/transformer_cuda.h"

namespace pawl::PAWL_GPU {

int64_t TransformerCuda::CanvasBytes() const {
  if (!config_.both_sides) return 0;
  return kMostPrefillRows * (hidden_stride_ + qkv_stride_) * static_cast<int64_t>(sizeof(float));
}

Status TransformerCuda::ForwardCanvases(std::span<const Row> rows, Wanted& wanted) {
  const auto sequence_of = [&](size_t i) {
    return static_cast<size_t>(plan_.change_of[static_cast<size_t>(rows[i].sequence)]);
  };
  std::vector<size_t> rows_of(plan_.changes.size());
  for (size_t i = 0; i < rows.size(); ++i) ++rows_of[sequence_of(i)];
  // The rows of a sequence become neighbours, behind those of sequences that fit a block.
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) {
    return std::pair(rows_of[sequence_of(i)] > kMostSkinnyRows, sequence_of(i));
  });
  std::vector<Row> sorted;
  std::vector<PlannedRow> planned;
  for (const size_t i : order) {
    sorted.push_back(rows[i]);
    planned.push_back(plan_.rows[i]);
  }
  plan_.rows = std::move(planned);
  const size_t most = RowsOfBlock(sorted);
  const auto count_from = [&](size_t i) {
    return i < order.size() ? rows_of[sequence_of(order[i])] : most + 1;
  };
  for (size_t first = 0; first < sorted.size();) {
    size_t count = count_from(first);
    Status status;
    if (count > kMostSkinnyRows && UsesLibrary()) {
      status = ForwardPrefill(sorted, first, count, wanted);
      if (!status.ok() && status.error().code == ErrorCode::kUnsupported) {
        WithoutLibrary(status.error());
        continue;
      }
    } else {
      while (count + count_from(first + count) <= most) count += count_from(first + count);
      status = count <= most ? ForwardBlock(sorted, first, count, wanted)
                             : ForwardLayers(sorted, first, count, wanted);
    }
    if (!status.ok()) return status;
    first += count;
  }
  for (int32_t& row : bad_rows_) row = static_cast<int32_t>(order[static_cast<size_t>(row)]);
  std::ranges::sort(bad_rows_);
  return {};
}

Status TransformerCuda::ForwardLayers(std::span<const Row> rows, size_t first, size_t count,
                                      Wanted& wanted) {
  const auto floats = [&](int64_t stride) {
    return static_cast<int64_t>(count) * stride * static_cast<int64_t>(sizeof(float));
  };
  Status status = Grow(canvas_x_, floats(hidden_stride_), false);
  if (status.ok()) status = Grow(canvas_qkv_, floats(qkv_stride_), false);
  const auto bytes = static_cast<int64_t>(count * (sizeof(DeviceRow) + sizeof(int32_t)));
  if (status.ok()) status = Grow(canvas_rows_, bytes, true);
  if (!status.ok()) return status;
  auto* pinned = static_cast<DeviceRow*>(canvas_rows_.pinned);
  const auto [outputs, positions] =
      SendRows(rows, first, count, pinned, reinterpret_cast<int32_t*>(pinned + count));
  const int most = RowsAttended(positions);
  status = GrowPartial(AttentionWorkspace(most, same_.heads, same_.head_dim, positions));
  if (status.ok()) status = CopyIn(canvas_rows_.device.data(), pinned, bytes, stream_);
  const auto* device_rows = canvas_rows_.device.as<DeviceRow>();
  BlockRows all = {static_cast<int>(count), positions, device_rows, canvas_x_.device.as<float>(),
                   canvas_qkv_.device.as<float>()};
  if (status.ok()) status = EnqueueEmbedding(all);
  const auto blocks = [&](int layer, Status (TransformerCuda::*run)(const BlockRows&, int)) {
    for (int at = 0; at < all.count && status.ok(); at += most) {
      status = (this->*run)({std::min(most, all.count - at), all.positions, all.rows + at,
                             all.x + at * hidden_stride_, all.qkv + at * qkv_stride_},
                            layer);
    }
  };
  for (int layer = 0; layer < config_.layer_count(); ++layer) {
    blocks(layer, &TransformerCuda::EnqueueKeys);
    if (layer + 1 == config_.layer_count() && outputs.empty()) break;
    blocks(layer, &TransformerCuda::EnqueueRest);
  }
  const auto* list = reinterpret_cast<const int32_t*>(device_rows + count);
  return status.ok() ? RunHeads(rows, outputs, all.x, list, wanted) : status;
}

Status TransformerCuda::RunHeads(std::span<const Row> rows, std::span<const size_t> outputs,
                                 const float* x, const int32_t* list, Wanted& wanted) {
  Status status;
  // Without outputs, once: it waits.
  for (size_t at = 0; (at == 0 || at < outputs.size()) && status.ok(); at += kMostSkinnyRows) {
    const auto some = outputs.subspan(at, std::min<size_t>(outputs.size() - at, kMostSkinnyRows));
    status = RunHead(rows, some, x, list + at, wanted);
  }
  return status;
}

}  // namespace pawl::PAWL_GPU
