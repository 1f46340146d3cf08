// From the rows of a Forward call to where each row's keys and values are stored and what it
// attends to. Both backends share this, so that the rules of model.h are checked in one place.
#ifndef PAWL_SRC_MODEL_ROW_PLAN_H_
#define PAWL_SRC_MODEL_ROW_PLAN_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "pawl/result.h"
#include "src/model/model.h"

namespace pawl {

// A sequence as the planner sees it. Its storage has capacity + kMaxTreeRows slots: slot p <
// capacity is position p, slot capacity + i belongs to row i of a draft tree.
struct SequenceState {
  bool used = false;
  int capacity = 0;
  int length = 0;  // positions 0 .. length-1 are committed

  // The rows of the last call, for CommitTree: the path to row i (itself excluded) as bits, its
  // position, and its slot.
  int tree_rows = 0;
  std::array<uint64_t, kMaxTreeRows> path = {};
  std::array<int32_t, kMaxTreeRows> position = {};
  std::array<int32_t, kMaxTreeRows> slot = {};
};

struct PlannedRow {
  int32_t slot = 0;         // where its keys and values go
  int32_t prefix = 0;       // it sees the slots 0 .. prefix-1
  int32_t extra_begin = 0;  // and these of RowPlan::extra
  int32_t extra_count = 0;
};

struct RowPlan {
  std::vector<PlannedRow> rows;
  std::vector<int32_t> extra;
  struct Change {
    SequenceId sequence;
    int base;    // the first position of the call
    int length;  // committed positions once the call has succeeded
  };
  std::vector<Change> changes;

  std::vector<int32_t> change_of;  // by sequence, -1 between calls
};

struct PlanLimits {
  int vocabulary = 0;
  int64_t logits = 0;  // how many floats the caller gave room for
};

// Fills `plan`, reusing its memory, and the last-call fields of the sequences. Errors: as
// Model::Forward; nothing that matters is changed then. The lengths of the sequences are the
// caller's to change.
Status PlanRows(std::span<const Row> rows, std::span<SequenceState> sequences,
                const PlanLimits& limits, RowPlan& plan);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_ROW_PLAN_H_
