// Where a call finds its base state. The usual case is that the base state and the path reach the
// first row of the call: nothing is read but these. Otherwise the last checkpoint in front of that
// row is taken, if it is nearer.
//
// Pages for new checkpoints are taken first, as that may give up old ones, and what is restored is
// chosen then.
#include "src/model/recurrent/state_plan.h"

#include <algorithm>
#include <bit>

#include "src/model/kv_pool.h"
#include "src/model/row_plan.h"

namespace pawl {
namespace {

void ReleaseAll(std::vector<int32_t>& pages, size_t keep, KvPool& pool) {
  while (pages.size() > keep) {
    pool.Release(pages.back());
    pages.pop_back();
  }
}

// Where base state and path reach, at most `base`; kNone where they have nothing of it.
int ReachOf(const RecurrentState& state, int base) {
  if (state.position == RecurrentState::kNone || state.position > base) {
    return RecurrentState::kNone;
  }
  return std::min(base, state.position + state.path_count);
}

// The last position of a page in front of `end` that ends before it; 0: none.
int MarkBefore(int end) { return (end - 1) / kPagePositions * kPagePositions; }

// Where memory for it can be had, and it is not there yet.
void AddCheckpoint(const SequenceState& state, int position, KvPool& pool, StateChange& change) {
  const auto page = static_cast<size_t>(position / kPagePositions) - 1;
  if (page < static_cast<size_t>(state.published) && pool.HasCheckpoint(state.pages[page])) return;
  StateCheckpoint made = {position, {}};
  while (made.pages.size() < static_cast<size_t>(pool.states().state)) {
    const int32_t next = pool.Allocate();
    if (next == kNoPage) return ReleaseAll(made.pages, 0, pool);
    made.pages.push_back(next);
  }
  change.checkpoints.push_back(std::move(made));
}

// `partial`: the rows of the call are not committed, but the path in front of them is.
void AddCheckpoints(const SequenceState& state, const RowPlan::Change& change, KvPool& pool,
                    bool partial, StateChange& states) {
  if (pool.states().state > pool.kept_limit()) return;
  const RecurrentState& recurrent = state.recurrent;
  const auto between = [&](int from, int to, int mark) {  // from < position <= to
    for (int p = from / kPagePositions * kPagePositions + kPagePositions; p <= to;
         p += kPagePositions) {
      if (p % kCheckpointPositions == 0 || p == mark) AddCheckpoint(state, p, pool, states);
    }
  };
  if (ReachOf(recurrent, change.base) == change.base) {
    between(recurrent.position, change.base, recurrent.mark);
  }
  if (!states.store && !partial) between(change.base, change.length, MarkBefore(change.length));
}

// The position of the last checkpoint up to `base` and behind `reach`; 0: none.
int FindCheckpoint(const SequenceState& state, int base, int reach, const KvPool& pool) {
  for (int page = std::min(state.published, base / kPagePositions);
       page > 0 && page * kPagePositions > reach; --page) {
    if (pool.HasCheckpoint(state.pages[static_cast<size_t>(page) - 1])) {
      return page * kPagePositions;
    }
  }
  return 0;
}

void ChooseStart(const SequenceState& state, int base, KvPool& pool, StateChange& change) {
  const int reach = ReachOf(state.recurrent, base);
  const int checkpoint = reach == base ? 0 : FindCheckpoint(state, base, reach, pool);
  if (checkpoint > 0) {
    pool.UseCheckpoint(state.pages[static_cast<size_t>(checkpoint / kPagePositions) - 1],
                       change.restore);
    change.from = checkpoint;
  } else if (reach != RecurrentState::kNone) {
    change.replay = reach - state.recurrent.position;
    change.from = reach;
  } else {
    change.empty = true;
    change.from = 0;
  }
}

// Of what was made, that behind a page of the prefix cache is its checkpoint from now on.
void KeepCheckpoints(SequenceState& state, std::vector<StateCheckpoint>& made, KvPool& pool) {
  RecurrentState& recurrent = state.recurrent;
  for (StateCheckpoint& checkpoint : made) {
    const int pages = checkpoint.position / kPagePositions;
    const int32_t page =
        pages <= state.published ? state.pages[static_cast<size_t>(pages) - 1] : kNoPage;
    if (page == kNoPage || pool.HasCheckpoint(page)) {
      ReleaseAll(checkpoint.pages, 0, pool);
      continue;
    }
    pool.AddCheckpoint(page, checkpoint.pages);
    if (checkpoint.position % kCheckpointPositions == 0) continue;
    const int last = recurrent.last_mark / kPagePositions;
    if (recurrent.last_mark > 0 && recurrent.last_mark < checkpoint.position &&
        last <= state.published) {
      const int32_t before = state.pages[static_cast<size_t>(last) - 1];
      if (pool.references(before) == 1) pool.DropCheckpoint(before);
    }
    recurrent.last_mark = checkpoint.position;
  }
  made.clear();
}

}  // namespace

void PlanStates(std::span<SequenceState> sequences, KvPool& pool, RowPlan& plan) {
  if (pool.states().state == 0) return;
  plan.states.resize(std::max(plan.states.size(), plan.changes.size()));
  const auto state_of = [&](const RowPlan::Change& change) -> SequenceState& {
    return sequences[static_cast<size_t>(change.sequence)];
  };
  for (size_t i = 0; i < plan.changes.size(); ++i) {
    const RowPlan::Change& change = plan.changes[i];
    const SequenceState& state = state_of(change);
    StateChange& states = plan.states[i];
    states.restore.clear();
    states.checkpoints.clear();
    states.empty = false;
    states.replay = 0;
    states.from = change.base;
    states.rows_before = change.kept ? state.recurrent.stored : 0;
    states.store = state.last_rows <= kMostStoredRows;
    if (!change.kept) AddCheckpoints(state, change, pool, plan.partial, states);
  }
  for (size_t i = 0; i < plan.changes.size(); ++i) {
    const RowPlan::Change& change = plan.changes[i];
    if (!change.kept) ChooseStart(state_of(change), change.base, pool, plan.states[i]);
  }
}

void FinishState(SequenceState& state, size_t index, RowPlan& plan, KvPool& pool) {
  if (pool.states().state == 0) return;
  const RowPlan::Change& change = plan.changes[index];
  StateChange& states = plan.states[index];
  RecurrentState& recurrent = state.recurrent;
  KeepCheckpoints(state, states.checkpoints, pool);
  const bool committed = !change.failed && !plan.partial;
  recurrent.mark = RecurrentState::kNone;
  if (recurrent.last_mark > state.length) recurrent.last_mark = RecurrentState::kNone;
  if (!states.store) {
    recurrent.position = committed ? change.length : RecurrentState::kNone;
    recurrent.stored = recurrent.path_count = 0;
  } else if (change.kept) {
    if (!change.failed) recurrent.stored = state.last_rows;
  } else {
    recurrent.position = change.base;
    recurrent.stored = state.last_rows;
    recurrent.path_count = 0;
    for (int i = 0; i < state.last_rows && committed; ++i) {
      if (state.tree_index[static_cast<size_t>(i)] >= 0) continue;
      recurrent.path[static_cast<size_t>(recurrent.path_count++)] = static_cast<uint8_t>(i);
    }
    if (change.tree_rows == 0 && change.length - change.base >= kLeastMarkedRows) {
      recurrent.mark = MarkBefore(change.length);
    }
  }
  ReleaseAll(recurrent.row_pages, static_cast<size_t>(pool.states().ForRows(recurrent.stored)),
             pool);
}

bool TakeStatePages(RecurrentState& state, KvPool& pool) {
  const StatePages& states = pool.states();
  if (states.state == 0) return true;
  if (states.least() > pool.available()) return false;
  while (state.pages.size() < static_cast<size_t>(states.state)) {
    state.pages.push_back(pool.Allocate());
  }
  while (state.row_pages.size() < static_cast<size_t>(states.ForRows(0))) {
    state.row_pages.push_back(pool.Allocate());
  }
  return true;
}

void ReleaseStatePages(RecurrentState& state, KvPool& pool) {
  ReleaseAll(state.row_pages, 0, pool);
  ReleaseAll(state.pages, 0, pool);
}

void TruncateState(RecurrentState& state, int length) {
  if (state.position > length) state.position = RecurrentState::kNone;
  if (state.position == RecurrentState::kNone) {
    state.path_count = 0;
  } else {
    state.path_count = std::min(state.path_count, length - state.position);
  }
  if (state.mark > length) state.mark = RecurrentState::kNone;
  if (state.last_mark > length) state.last_mark = RecurrentState::kNone;
}

void CommitPath(RecurrentState& state, uint64_t path, int row, int length) {
  if (row >= state.stored) return TruncateState(state, length);
  state.mark = RecurrentState::kNone;
  state.path_count = 0;
  for (; path != 0; path &= path - 1) {
    state.path[static_cast<size_t>(state.path_count++)] =
        static_cast<uint8_t>(std::countr_zero(path));
  }
}

}  // namespace pawl
