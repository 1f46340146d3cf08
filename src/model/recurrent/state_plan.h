// Which state a sequence of a recurrent model has, and what a call does to get the one it needs.
//
// A state is that behind some number of tokens, and it cannot go back. So a sequence keeps its base
// state, that in front of its last call, and the inputs of that call's rows. The rows that are
// committed are the path, and a later call replays it: the same steps give the same bits. Whatever
// part of the last call stays, as a tree that is committed or one that is cut, costs the steps of
// its path.
//
// Further back there are checkpoints: copies of the state behind full pages, kept with these in the
// prefix cache (kv_pool.h). One is made every kCheckpointPositions positions and one near the end
// of a prompt. What lies between the nearest checkpoint and the first row of a call is computed
// again, from tokens that the sequence knows; that changes no bit of keys and values.
//
// A call with more rows of a sequence than kMostStoredRows moves the base state itself.
#ifndef PAWL_SRC_MODEL_RECURRENT_STATE_PLAN_H_
#define PAWL_SRC_MODEL_RECURRENT_STATE_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/model/recurrent/state_pages.h"

namespace pawl {

class KvPool;
struct RowPlan;
struct SequenceState;

constexpr int kCheckpointPositions = 512;
// Prompts, and parts of them, from so many rows on have a checkpoint near their end.
constexpr int kLeastMarkedRows = 16;

struct RecurrentState {
  static constexpr int kNone = -1;
  std::vector<int32_t> pages;      // of the base state
  std::vector<int32_t> row_pages;  // of the inputs of rows
  int position = kNone;            // what they hold is the state behind so many tokens
  int stored = 0;                  // rows of the last call whose inputs are there
  std::array<uint8_t, kMostStoredRows> path = {};  // those that are committed, in order
  int path_count = 0;
  int mark = kNone;       // behind the base, worth a checkpoint when the path is replayed
  int last_mark = kNone;  // has one that the next mark replaces
};

struct StateCheckpoint {
  int position = 0;
  std::vector<int32_t> pages;
};

// What a call does for one of its sequences.
struct StateChange {
  // First: the base state becomes this checkpoint, or the empty one.
  std::vector<int32_t> restore;
  bool empty = false;
  int replay = 0;       // Then so many rows of the path are replayed.
  int from = 0;         // Then positions from here to the base of the call are computed again.
  int rows_before = 0;  // kept ones, which the rows of the call are counted on from
  bool store = true;    // the inputs of its rows; else the base state moves
  std::vector<StateCheckpoint> checkpoints;  // to be made on the way, in ascending order
};

// Once the call has its pages.
void PlanStates(std::span<SequenceState> sequences, KvPool& pool, RowPlan& plan);
// Once it is over, and full pages are published.
void FinishState(SequenceState& state, size_t change, RowPlan& plan, KvPool& pool);
// Takes what every sequence has; false where there is not enough.
bool TakeStatePages(RecurrentState& state, KvPool& pool);
void ReleaseStatePages(RecurrentState& state, KvPool& pool);
void TruncateState(RecurrentState& state, int length);
// The path to a row of the last call, which is committed; the sequence has `length` tokens then.
void CommitPath(RecurrentState& state, uint64_t path, int row, int length);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_RECURRENT_STATE_PLAN_H_
