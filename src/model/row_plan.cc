// One pass. The first row of a sequence sets its base; plain rows must continue from there position
// by position; a tree row must name exactly the path to its parent. Because a row's ancestors come
// before it in the call, the parent is the highest bit, and by induction the whole path is right if
// it equals the parent's path plus the parent.
//
// On the path to a tree row the plain rows come first and lie in consecutive slots behind the
// committed positions, so they only lengthen the prefix; the list of further slots holds tree rows
// alone, in ascending position. Attention thus adds up a path in the same order whether it was
// given as a tree or as a plain run.
#include "src/model/row_plan.h"

#include <bit>
#include <string>

namespace pawl {
namespace {

Error RowError(ErrorCode code, size_t row, std::string message) {
  return {code, std::move(message), "row " + std::to_string(row)};
}

uint64_t Bit(int i) { return uint64_t{1} << i; }

Status PlanTreeRow(const Row& row, size_t index, SequenceState& state, int tree_index,
                   RowPlan& plan, PlannedRow& planned) {
  if (tree_index >= kMaxTreeRows) {
    return RowError(ErrorCode::kLimit, index,
                    "a draft tree has at most " + std::to_string(kMaxTreeRows) + " rows");
  }
  const auto i = static_cast<size_t>(tree_index);
  if ((row.ancestors >> tree_index) != 0) {
    return RowError(ErrorCode::kInvalid, index, "ancestors must be earlier rows of its sequence");
  }
  const int parent = 63 - std::countl_zero(row.ancestors | 1);  // not 0: | 1 tells the compiler
  const auto p = static_cast<size_t>(parent);
  if (row.ancestors != (state.path[p] | Bit(parent))) {
    return RowError(ErrorCode::kInvalid, index,
                    "ancestors must be its parent, row " + std::to_string(parent) +
                        " of the sequence in this call, and all ancestors of that");
  }
  if (row.position != state.position[p] + 1) {
    return RowError(ErrorCode::kInvalid, index,
                    "position " + std::to_string(row.position) + " does not follow its parent's " +
                        std::to_string(state.position[p]));
  }
  state.path[i] = row.ancestors;
  planned.slot = state.capacity + tree_index;
  planned.extra_begin = static_cast<int32_t>(plan.extra.size());
  planned.prefix = state.position[0];
  for (uint64_t left = row.ancestors; left != 0; left &= left - 1) {
    const int32_t slot = state.slot[static_cast<size_t>(std::countr_zero(left))];
    if (slot < state.capacity) {
      planned.prefix = slot + 1;
    } else {
      plan.extra.push_back(slot);
    }
  }
  plan.extra.push_back(planned.slot);
  planned.extra_count = static_cast<int32_t>(plan.extra.size()) - planned.extra_begin;
  return {};
}

Status PlanRow(const Row& row, size_t index, std::span<SequenceState> sequences,
               const PlanLimits& limits, RowPlan& plan) {
  if (row.sequence < 0 || static_cast<size_t>(row.sequence) >= sequences.size() ||
      !sequences[static_cast<size_t>(row.sequence)].used) {
    return RowError(ErrorCode::kInvalid, index,
                    "there is no sequence " + std::to_string(row.sequence));
  }
  SequenceState& state = sequences[static_cast<size_t>(row.sequence)];
  if (row.token < 0 || row.token >= limits.vocabulary) {
    return RowError(ErrorCode::kInvalid, index,
                    "token " + std::to_string(row.token) + " is outside the vocabulary of " +
                        std::to_string(limits.vocabulary));
  }
  if (row.position < 0) return RowError(ErrorCode::kInvalid, index, "negative position");
  if (row.position >= state.capacity) {
    return RowError(ErrorCode::kLimit, index,
                    "position " + std::to_string(row.position) + " exceeds the capacity of " +
                        std::to_string(state.capacity) + " positions of its sequence");
  }
  if (row.output >= 0 && (int64_t{row.output} + 1) * limits.vocabulary > limits.logits) {
    return RowError(ErrorCode::kInvalid, index,
                    "output " + std::to_string(row.output) + " does not fit the logits given");
  }
  int32_t& change_index = plan.change_of[static_cast<size_t>(row.sequence)];
  if (change_index < 0) {
    if (row.position > state.length) {
      return RowError(ErrorCode::kInvalid, index,
                      "position " + std::to_string(row.position) +
                          " leaves a gap: its sequence has " + std::to_string(state.length) +
                          " positions");
    }
    change_index = static_cast<int32_t>(plan.changes.size());
    plan.changes.push_back({row.sequence, row.position, row.position});
    state.tree_rows = 0;
  }
  RowPlan::Change& change = plan.changes[static_cast<size_t>(change_index)];
  const int tree_index = state.tree_rows;
  PlannedRow planned;
  if (row.ancestors != 0) {
    if (Status status = PlanTreeRow(row, index, state, tree_index, plan, planned); !status.ok()) {
      return status;
    }
  } else {
    if (row.position != change.length) {
      return RowError(ErrorCode::kInvalid, index,
                      "position " + std::to_string(row.position) + " where " +
                          std::to_string(change.length) +
                          " was expected: plain rows of a sequence follow each other");
    }
    planned.slot = row.position;
    planned.prefix = row.position + 1;
    if (tree_index < kMaxTreeRows) {
      uint64_t path = 0;
      for (int i = 0; i < tree_index; ++i) {
        if (state.slot[static_cast<size_t>(i)] < state.capacity) path |= Bit(i);
      }
      state.path[static_cast<size_t>(tree_index)] = path;
    }
    ++change.length;
  }
  if (tree_index < kMaxTreeRows) {
    state.position[static_cast<size_t>(tree_index)] = row.position;
    state.slot[static_cast<size_t>(tree_index)] = planned.slot;
  }
  ++state.tree_rows;
  plan.rows.push_back(planned);
  return {};
}

}  // namespace

Status PlanRows(std::span<const Row> rows, std::span<SequenceState> sequences,
                const PlanLimits& limits, RowPlan& plan) {
  plan.rows.clear();
  plan.extra.clear();
  plan.changes.clear();
  plan.change_of.resize(sequences.size(), -1);
  Status status;
  for (size_t i = 0; i < rows.size() && status.ok(); ++i) {
    status = PlanRow(rows[i], i, sequences, limits, plan);
  }
  for (const RowPlan::Change& change : plan.changes) {
    plan.change_of[static_cast<size_t>(change.sequence)] = -1;
    // A failed call leaves no tree to commit.
    if (!status.ok()) sequences[static_cast<size_t>(change.sequence)].tree_rows = 0;
  }
  return status;
}

}  // namespace pawl
