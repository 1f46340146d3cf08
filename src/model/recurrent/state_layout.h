// Where the state of recurrent layers lies in pages of the key-value memory.
//
// A recurrent layer has a state for each sequence in place of keys and values: the last inputs of
// its convolution, and a matrix for each head. The states of all layers of one sequence fill pages
// that the sequence takes from the same pool as those for its positions, so one budget counts both.
// A piece (a head's matrix, a convolution's inputs) lies in one page.
#ifndef PAWL_SRC_MODEL_RECURRENT_STATE_LAYOUT_H_
#define PAWL_SRC_MODEL_RECURRENT_STATE_LAYOUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "src/model/recurrent/state_pages.h"

namespace pawl {

// A layer: a causal convolution over `channels`, and behind it heads whose state is a matrix
// [keys][values], see StateStepArgs in kernels/cpu/kernels.h. Without heads it is the convolution
// alone.
struct RecurrentShape {
  int channels = 0;  // 0: the layer has no state
  int taps = 0;      // of the convolution: a token's own input and taps - 1 before it
  bool silu = true;  // behind the convolution
  int heads = 0, keys = 0, values = 0;
  int groups = 0;                    // heads / groups neighbours share q and k
  bool delta = false;                // the delta rule; q and k have length 1 then
  int q_at = 0, k_at = 0, v_at = 0;  // where the channels of the first head begin
  float least_time = 0;              // see RecurrentWeights::rates

  // A token's inputs: the channels, then for each head what its decay comes from, and with `delta`
  // what its beta comes from.
  int64_t row_floats() const { return channels + int64_t{heads} * (delta ? 2 : 1); }
  int64_t head_floats() const { return int64_t{keys} * values; }
  int64_t convolution_floats() const { return int64_t{taps - 1} * channels; }

  bool operator==(const RecurrentShape&) const = default;
};

class StateLayout {
 public:
  struct Place {
    int32_t page = 0;  // of the sequence's
    int64_t offset = 0;
  };

  StateLayout() = default;
  // `layers`: all of the model. `page_floats`: what keys and values of a page need.
  StateLayout(std::span<const RecurrentShape> layers, int64_t page_floats);

  // What a page has: more than was asked for where a piece is larger.
  int64_t page_floats() const { return page_floats_; }
  const StatePages& pages() const { return pages_; }
  Place Convolution(int layer) const { return At(layer).convolution; }
  Place Head(int layer, int head) const { return At(layer).heads[static_cast<size_t>(head)]; }
  // The inputs of a stored row, in the pages for rows.
  Place Row(int layer, int row) const;

 private:
  struct Layer {
    Place convolution;
    std::vector<Place> heads;
    int nth = 0;  // among those with a state
  };
  const Layer& At(int layer) const { return layers_[static_cast<size_t>(layer)]; }

  std::vector<Layer> layers_;
  StatePages pages_;
  int64_t page_floats_ = 0;
  int64_t row_piece_ = 0;  // floats
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_RECURRENT_STATE_LAYOUT_H_
