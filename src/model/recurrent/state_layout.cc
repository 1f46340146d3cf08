// Pieces are placed one behind the other, in the order of layers and heads; one that does not fit
// what is left of a page begins the next page. All pieces begin at a cache line.
#include "src/model/recurrent/state_layout.h"

#include <algorithm>

namespace pawl {
namespace {

constexpr int64_t kLineFloats = 16;

int64_t WholeLines(int64_t floats) {
  return (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
}

}  // namespace

StateLayout::StateLayout(std::span<const RecurrentShape> layers, int64_t page_floats) {
  for (const RecurrentShape& shape : layers) {
    if (shape.channels == 0) continue;
    row_piece_ = std::max(row_piece_, WholeLines(shape.row_floats()));
    page_floats = std::max({page_floats, row_piece_, WholeLines(shape.convolution_floats()),
                            WholeLines(shape.head_floats())});
  }
  page_floats_ = page_floats;
  if (row_piece_ == 0) return;
  int64_t used = page_floats_;  // of the last page
  const auto place = [&](int64_t floats) {
    floats = WholeLines(floats);
    if (used + floats > page_floats_) {
      ++pages_.state;
      used = 0;
    }
    used += floats;
    return Place{pages_.state - 1, used - floats};
  };
  layers_.resize(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const RecurrentShape& shape = layers[i];
    if (shape.channels == 0) continue;
    Layer& layer = layers_[i];
    layer.nth = pages_.row_pieces++;
    layer.convolution = place(shape.convolution_floats());
    for (int h = 0; h < shape.heads; ++h) layer.heads.push_back(place(shape.head_floats()));
  }
  pages_.pieces_in_page = static_cast<int32_t>(page_floats_ / row_piece_);
}

StateLayout::Place StateLayout::Row(int layer, int row) const {
  const int32_t piece = row * pages_.row_pieces + At(layer).nth;
  return {piece / pages_.pieces_in_page, piece % pages_.pieces_in_page * row_piece_};
}

}  // namespace pawl
