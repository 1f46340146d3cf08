// From the rows of a call to where each row's keys and values are stored and what it
// attends to. Backends share this, so that the rules of model.h are checked in one place.
#ifndef PAWL_SRC_MODEL_ROW_PLAN_H_
#define PAWL_SRC_MODEL_ROW_PLAN_H_

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "pawl/result.h"
#include "src/model/kv_pool.h"
#include "src/model/model.h"
#include "src/model/recurrent/state_plan.h"

namespace pawl {

// Pages for the rows of a draft tree.
constexpr int32_t kMaxTreePages = PagesFor(kMaxTreeRows);

// A sequence as the planner sees it.
struct SequenceState {
  bool used = false;
  int adapter = 0;  // that computes its rows (Model::NewAdapted)
  int capacity = 0;
  int length = 0;  // positions 0 .. length-1 are committed

  // Position p is in pages[p / kPagePositions] at offset p % kPagePositions. The first `published`
  // pages are in the prefix cache and must not be written; the others are this sequence's alone.
  // There may be more than `length` needs. The first `dropped` are kNoPage: no window reaches them.
  std::vector<int32_t> pages;
  int published = 0;
  int dropped = 0;
  std::vector<TokenId> tokens;  // the committed ones
  // From here on rows may have read more than their tokens (Row::mix): nothing is published.
  int mixed = std::numeric_limits<int>::max();

  // Tree row j of the last call is in tree_pages[j / kPagePositions].
  std::array<int32_t, kMaxTreePages> tree_pages = {};
  int tree_page_count = 0;

  // The rows of the last call, for CommitTree: the path to row i (itself excluded) as bits, its
  // position, its token, and which tree row it is (-1: a plain one).
  int last_rows = 0;
  // Of these rows, those from `whole_rows` on ran the layers of the set `layers` alone.
  int whole_rows = 0;
  uint64_t layers = 0;
  std::array<uint64_t, kMaxTreeRows> path = {};
  std::array<int32_t, kMaxTreeRows> position = {};
  std::array<TokenId, kMaxTreeRows> token = {};
  std::array<int32_t, kMaxTreeRows> tree_index = {};

  RecurrentState recurrent;  // of a model with recurrent layers

  int32_t SlotOf(int32_t position_in_it) const {
    return pages[static_cast<size_t>(position_in_it / kPagePositions)] * kPagePositions +
           position_in_it % kPagePositions;
  }
  int32_t TreeSlot(int32_t tree_row) const {
    return tree_pages[static_cast<size_t>(tree_row / kPagePositions)] * kPagePositions +
           tree_row % kPagePositions;
  }
};

// The keys and values of a position, in all layers, are copied from one slot to another.
struct SlotCopy {
  int32_t from = 0, to = 0;
};

struct PlannedRow {
  int32_t slot = 0;         // where its keys and values go: page * kPagePositions + offset
  int32_t pages_begin = 0;  // its sequence's pages start here in RowPlan::pages; see `dropped`;
  int32_t prefix = 0;       // it sees the positions 0 .. prefix-1, by these pages,
  int32_t extra_begin = 0;  // and then these of RowPlan::extra
  int32_t extra_count = 0;
};

struct RowPlan {
  std::vector<PlannedRow> rows;
  std::vector<int32_t> pages;  // the page tables of the sequences in the call, one behind the other
  std::vector<int32_t> extra;  // slots
  // To be done before anything is written. No slot is both a source and a destination.
  std::vector<SlotCopy> copies;
  struct Change {
    SequenceId sequence;
    int base;    // the first position of the call
    int length;  // committed positions once the call has succeeded
    int end;     // positions up to the last row's, trees included
    int tree_rows;
    int32_t pages_begin;  // of its page table in `pages`
    bool failed = false;  // for the backend to set: it then ends at `base`
    bool kept = false;    // the rows of the last call stay; `base` is the length
  };
  std::vector<Change> changes;
  std::vector<StateChange> states;  // by change, where the model has recurrent layers

  bool both_sides = false;         // rows see all rows of their sequence in the call
  bool partial = false;            // some layers only: nothing is committed
  std::vector<int32_t> change_of;  // by sequence, -1 where it has none
  std::vector<int32_t> sources;    // pages that were copied from
};

struct PlanLimits {
  int vocabulary = 0;
  int64_t logits = 0;      // how many floats the caller gave room for
  bool keep_tree = false;  // of the call
  bool both_sides = false;
  uint64_t layers = 0;  // tells sets of layers apart; 0: all
};

// Fills `plan`, reusing its memory, and the last-call fields of the sequences, and sees to it that
// they have pages for all rows. Errors: as Model::Run; nothing that matters is changed then.
// KvSequences::Plan is the one to call.
Status PlanRows(std::span<const Row> rows, std::span<SequenceState> sequences, KvPool& pool,
                const PlanLimits& limits, RowPlan& plan);

// Gives the pages back that the positions from `length` on need, the last ones first.
void ReleasePages(SequenceState& state, int length, KvPool& pool);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_ROW_PLAN_H_
