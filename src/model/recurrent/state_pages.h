// How many pages of the key-value memory the state of a sequence takes.
#ifndef PAWL_SRC_MODEL_RECURRENT_STATE_PAGES_H_
#define PAWL_SRC_MODEL_RECURRENT_STATE_PAGES_H_

#include <algorithm>
#include <cstdint>

namespace pawl {

// The inputs of a call's rows are kept until the next call, so that a part of them can be taken
// back. A sequence has room for those of so many rows; a call with more of them takes more pages.
constexpr int kStoredRows = 24;
// The most rows whose inputs are kept, those of a tree.
constexpr int kMostStoredRows = 64;

struct StatePages {
  int32_t state = 0;           // 0: the model has no recurrent layers
  int32_t row_pieces = 0;      // pieces that the inputs of a row are
  int32_t pieces_in_page = 1;  // of these

  int32_t ForRows(int rows) const {
    return (std::max(rows, kStoredRows) * row_pieces + pieces_in_page - 1) / pieces_in_page;
  }
  // What every sequence has.
  int32_t least() const { return state + ForRows(0); }
  // What it has at most.
  int32_t most() const { return state + ForRows(kMostStoredRows); }
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_RECURRENT_STATE_PAGES_H_
