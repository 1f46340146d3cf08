// Three passes. The first checks the rows and notes what they see. The first row of a sequence sets
// its base; plain rows must continue from there position by position; a tree row must name exactly
// the path to its parent. Because a row's ancestors come before it in the call, the parent is the
// highest bit, and by induction the whole path is right if it equals the parent's path plus the
// parent. The second pass counts the pages that are missing and takes them only if there are enough
// for all, so that a call either has its memory or has changed nothing. The third knows the pages
// and writes slots in place of positions.
//
// On the path to a tree row the plain rows come first and stand in consecutive positions behind the
// committed ones, so they only lengthen the prefix; the list of further slots holds tree rows
// alone, in ascending position. Attention thus adds up a path in the same order whether it was
// given as a tree or as a plain run, and whatever pages it lies in.
//
// A page that is in the prefix cache is never written. Where the base stands inside of one, because
// positions went back, the sequence gets a page of its own with a copy of what comes before the
// base. When no page is left and no other sequence uses the one in the cache, it is taken out of
// the cache instead.
#include "src/model/row_plan.h"

#include <algorithm>
#include <bit>
#include <string>

namespace pawl {
namespace {

Error RowError(ErrorCode code, size_t row, std::string message) {
  return {code, std::move(message), "row " + std::to_string(row)};
}

uint64_t Bit(int i) { return uint64_t{1} << i; }

// `nth`: which row of its sequence it is in the call.
Status PlanTreeRow(const Row& row, size_t index, SequenceState& state, int nth,
                   RowPlan::Change& change, RowPlan& plan, PlannedRow& planned) {
  if (nth >= kMaxTreeRows) {
    return RowError(ErrorCode::kLimit, index,
                    "a draft tree has at most " + std::to_string(kMaxTreeRows) + " rows");
  }
  const auto i = static_cast<size_t>(nth);
  if ((row.ancestors >> nth) != 0) {
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
  state.tree_index[i] = change.tree_rows++;
  planned.extra_begin = static_cast<int32_t>(plan.extra.size());
  planned.prefix = state.position[0];
  for (uint64_t left = row.ancestors; left != 0; left &= left - 1) {
    const auto ancestor = static_cast<size_t>(std::countr_zero(left));
    if (state.tree_index[ancestor] < 0) {
      planned.prefix = state.position[ancestor] + 1;
    } else {
      plan.extra.push_back(state.tree_index[ancestor]);
    }
  }
  plan.extra.push_back(state.tree_index[i]);
  planned.extra_count = static_cast<int32_t>(plan.extra.size()) - planned.extra_begin;
  return {};
}

// The first row of a sequence in the call. A tree row goes on from the rows of the last call.
Status BeginChange(const Row& row, size_t index, SequenceState& state, const PlanLimits& limits,
                   RowPlan& plan) {
  if (!limits.keep_tree || row.ancestors == 0) {
    if (row.position > state.length) {
      return RowError(ErrorCode::kInvalid, index,
                      "position " + std::to_string(row.position) +
                          " leaves a gap: its sequence has " + std::to_string(state.length) +
                          " positions");
    }
    const int end = limits.both_sides ? state.length : row.position;
    plan.changes.push_back({row.sequence, row.position, row.position, end, 0, 0});
    state.last_rows = 0;
    state.whole_rows = 0;
    state.layers = limits.layers;
    return {};
  }
  const int rows = std::min(state.last_rows, kMaxTreeRows);
  if (rows > state.whole_rows && state.layers != limits.layers) {
    return RowError(ErrorCode::kInvalid, index,
                    "the rows that are kept ran other layers than this call");
  }
  RowPlan::Change change = {row.sequence, state.length, state.length, state.length, 0, 0};
  change.kept = true;
  for (int i = 0; i < rows; ++i) {
    const auto n = static_cast<size_t>(i);
    change.end = std::max(change.end, state.position[n] + 1);
    change.tree_rows = std::max(change.tree_rows, state.tree_index[n] + 1);
  }
  plan.changes.push_back(change);
  state.layers = limits.layers;
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
  if (row.ancestors != 0 && limits.both_sides) {
    return RowError(ErrorCode::kUnsupported, index,
                    "a model whose rows see both sides has no draft trees");
  }
  if (row.output >= 0 && (int64_t{row.output} + 1) * limits.vocabulary > limits.logits) {
    return RowError(ErrorCode::kInvalid, index,
                    "output " + std::to_string(row.output) + " does not fit the logits given");
  }
  int32_t& change_index = plan.change_of[static_cast<size_t>(row.sequence)];
  if (change_index < 0) {
    if (Status status = BeginChange(row, index, state, limits, plan); !status.ok()) return status;
    change_index = static_cast<int32_t>(plan.changes.size()) - 1;
  }
  RowPlan::Change& change = plan.changes[static_cast<size_t>(change_index)];
  const int nth = state.last_rows;
  const auto i = static_cast<size_t>(nth);
  PlannedRow planned;
  if (row.ancestors != 0) {
    if (Status status = PlanTreeRow(row, index, state, nth, change, plan, planned); !status.ok()) {
      return status;
    }
    if (change.kept && row.position / kPagePositions < state.published) {
      return RowError(ErrorCode::kInvalid, index,
                      "position " + std::to_string(row.position) +
                          " lies in a page that is full: a tree can grow behind it alone");
    }
  } else if (change.kept) {
    return RowError(ErrorCode::kInvalid, index,
                    "a sequence that keeps its tree gets tree rows alone");
  } else {
    const bool kept = limits.both_sides && row.position <= state.length;
    if (kept && row.position > change.length) change.length = row.position;
    if (row.position != change.length) {
      return RowError(ErrorCode::kInvalid, index,
                      "position " + std::to_string(row.position) + " where " +
                          std::to_string(change.length) +
                          " was expected: plain rows of a sequence follow each other");
    }
    planned.prefix = row.position + 1;
    if (nth < kMaxTreeRows) {
      uint64_t path = 0;
      for (int earlier = 0; earlier < nth; ++earlier) {
        if (state.tree_index[static_cast<size_t>(earlier)] < 0) path |= Bit(earlier);
      }
      state.path[i] = path;
      state.tree_index[i] = -1;
    }
    ++change.length;
  }
  change.end = std::max(change.end, row.position + 1);
  if (nth < kMaxTreeRows) {
    state.position[i] = row.position;
    state.token[i] = row.token;
  }
  ++state.last_rows;
  if (limits.layers == 0) state.whole_rows = state.last_rows;
  plan.rows.push_back(planned);
  return {};
}

// ---- Pages ----

void Release(int32_t page, KvPool& pool) {
  if (page != kNoPage) pool.Release(page);
}

// The first page that a row at `base` or behind it sees, or writes.
int32_t FirstPageSeen(int base, const KvPool& pool) {
  if (pool.window() == 0) return 0;
  return std::clamp(base + 1 - pool.window(), 0, base) / kPagePositions;
}

// Whether the pages are there that a call from `base` on looks at.
Status CheckBase(const SequenceState& state, int base, const KvPool& pool) {
  if (base == 0 || FirstPageSeen(base, pool) >= state.dropped) return {};
  return Error{ErrorCode::kInvalid,
               "position " + std::to_string(base) +
                   " is too far back: the sequence can go on from 0, or from " +
                   std::to_string(state.dropped * kPagePositions + pool.window() - 1) +
                   " on, as no window of the model reaches further back",
               "sequence"};
}

// Frees what no window reaches from `base` on, nor from kMaxTreeRows before it, except for the
// page that the next one to be published is the child of.
void DropPages(SequenceState& state, int base, KvPool& pool) {
  const int32_t end = std::min(FirstPageSeen(std::max(0, base - kMaxTreeRows), pool),
                               static_cast<int32_t>(state.published) - 1);
  for (; state.dropped < end; ++state.dropped) {
    int32_t& page = state.pages[static_cast<size_t>(state.dropped)];
    pool.Release(page);
    page = kNoPage;
  }
}

// How many of its pages a sequence goes on with when it is written from `base` on: its own up to
// `end`, and those of the prefix cache that lie before the base or contain it.
int32_t PagesKept(const SequenceState& state, int base, int end) {
  const int32_t before = PagesFor(base);
  if (state.published > before) return before;
  return std::min(static_cast<int32_t>(state.pages.size()), PagesFor(end));
}

// Whether the base stands inside of a published page.
bool MustCopy(const SequenceState& state, int base) {
  return base % kPagePositions != 0 && base / kPagePositions < state.published;
}

// Those for the inputs of the rows that recurrent layers get.
int64_t MissingRowPages(const SequenceState& state, const KvPool& pool) {
  if (pool.states().state == 0 || state.last_rows > kMostStoredRows) return 0;
  return pool.states().ForRows(state.last_rows) -
         static_cast<int64_t>(state.recurrent.row_pages.size());
}

// Pages that the change takes less those that it surely frees.
int64_t MissingPages(const SequenceState& state, const RowPlan::Change& change,
                     const KvPool& pool) {
  const int32_t kept = PagesKept(state, change.base, change.end);
  int64_t missing = PagesFor(change.end) - kept;
  for (size_t i = static_cast<size_t>(kept); i < state.pages.size(); ++i) {
    const int32_t page = state.pages[i];
    if (page != kNoPage && pool.references(page) == 1) --missing;
  }
  if (MustCopy(state, change.base) &&
      pool.references(state.pages[static_cast<size_t>(change.base / kPagePositions)]) > 1) {
    ++missing;
  }
  missing += std::max<int64_t>(0, MissingRowPages(state, pool));
  return missing + PagesFor(change.tree_rows) - state.tree_page_count;
}

void ReleaseForChange(SequenceState& state, const RowPlan::Change& change, KvPool& pool) {
  const auto kept = static_cast<size_t>(PagesKept(state, change.base, change.end));
  while (state.pages.size() > kept) {
    Release(state.pages.back(), pool);
    state.pages.pop_back();
  }
  state.published = std::min(state.published, static_cast<int>(kept));
  state.dropped = std::min(state.dropped, static_cast<int>(kept));
  while (state.tree_page_count > PagesFor(change.tree_rows)) {
    pool.Release(state.tree_pages[static_cast<size_t>(--state.tree_page_count)]);
  }
}

void AllocateForChange(SequenceState& state, const RowPlan::Change& change, KvPool& pool) {
  const auto needed = static_cast<size_t>(PagesFor(change.end));
  while (state.pages.size() < needed) state.pages.push_back(pool.Allocate());
  while (state.tree_page_count < PagesFor(change.tree_rows)) {
    state.tree_pages[static_cast<size_t>(state.tree_page_count++)] = pool.Allocate();
  }
  for (int64_t missing = MissingRowPages(state, pool); missing > 0; --missing) {
    state.recurrent.row_pages.push_back(pool.Allocate());
  }
}

// Gives the sequence a page of its own in place of the published one that the base stands in.
void CopyForChange(SequenceState& state, const RowPlan::Change& change, KvPool& pool,
                   RowPlan& plan) {
  int32_t& page = state.pages[static_cast<size_t>(change.base / kPagePositions)];
  const int32_t own = pool.Allocate();
  if (own == kNoPage) {
    // Then nothing is kept either, and no other sequence refers to this page: none is published
    // behind it.
    pool.Withdraw(page);
  } else {
    for (int32_t i = 0; i < change.base % kPagePositions; ++i) {
      plan.copies.push_back({page * kPagePositions + i, own * kPagePositions + i});
    }
    plan.sources.push_back(page);
    page = own;
  }
  state.published = change.base / kPagePositions;
}

// All or nothing.
Status TakePages(std::span<SequenceState> sequences, KvPool& pool, RowPlan& plan) {
  const auto state_of = [&](const RowPlan::Change& change) -> SequenceState& {
    return sequences[static_cast<size_t>(change.sequence)];
  };
  for (const RowPlan::Change& change : plan.changes) {
    const SequenceState& state = state_of(change);
    if (Status status = CheckBase(state, change.base, pool); !status.ok()) return status;
    if (pool.states().state > 0 && change.tree_rows > 0 && state.last_rows > kMostStoredRows) {
      return Error{ErrorCode::kLimit,
                   "a sequence of a model with recurrent layers has at most " +
                       std::to_string(kMostStoredRows) + " rows in a call with a tree, not " +
                       std::to_string(state.last_rows),
                   "sequence " + std::to_string(change.sequence)};
    }
  }
  for (const RowPlan::Change& change : plan.changes) {
    DropPages(state_of(change), change.base, pool);
  }
  int64_t missing = 0;
  for (const RowPlan::Change& change : plan.changes) {
    missing += MissingPages(state_of(change), change, pool);
  }
  if (missing > pool.available()) {
    return Error{ErrorCode::kLimit,
                 "the key-value memory is full: the call needs " + std::to_string(missing) +
                     " more pages of " + std::to_string(kPagePositions) + " positions, but " +
                     std::to_string(pool.available()) + " of " + std::to_string(pool.pages()) +
                     " are free",
                 ""};
  }
  for (const RowPlan::Change& change : plan.changes) {
    ReleaseForChange(state_of(change), change, pool);
  }
  for (const RowPlan::Change& change : plan.changes) {
    AllocateForChange(state_of(change), change, pool);
  }
  // Copies of pages that others refer to come first: they were counted. For the rest a page is
  // found, or the page itself is taken. A source is released when all is allocated, so that no
  // other gets it before it is copied.
  for (const bool shared : {true, false}) {
    for (const RowPlan::Change& change : plan.changes) {
      SequenceState& state = state_of(change);
      if (!MustCopy(state, change.base)) continue;
      const int32_t page = state.pages[static_cast<size_t>(change.base / kPagePositions)];
      if (shared && pool.references(page) == 1) continue;
      CopyForChange(state, change, pool, plan);
    }
  }
  for (const int32_t source : plan.sources) pool.Release(source);
  plan.sources.clear();
  size_t table = 0;  // with what the sequences may grow to, so that steps allocate once
  for (const RowPlan::Change& change : plan.changes) {
    table += static_cast<size_t>(PagesFor(state_of(change).capacity));
  }
  plan.pages.reserve(table);
  for (RowPlan::Change& change : plan.changes) {
    SequenceState& state = state_of(change);
    state.published = std::min(state.published, change.base / kPagePositions);
    change.pages_begin = static_cast<int32_t>(plan.pages.size());
    plan.pages.insert(plan.pages.end(), state.pages.begin(), state.pages.end());
  }
  PlanStates(sequences, pool, plan);
  return {};
}

void WriteSlots(std::span<const Row> rows, std::span<const SequenceState> sequences,
                RowPlan& plan) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto sequence = static_cast<size_t>(rows[i].sequence);
    const SequenceState& state = sequences[sequence];
    PlannedRow& planned = plan.rows[i];
    const RowPlan::Change& change = plan.changes[static_cast<size_t>(plan.change_of[sequence])];
    planned.pages_begin = change.pages_begin;
    if (plan.both_sides) planned.prefix = change.end;
    if (planned.extra_count == 0) {
      planned.slot = state.SlotOf(rows[i].position);
      continue;
    }
    const auto extra = std::span(plan.extra)
                           .subspan(static_cast<size_t>(planned.extra_begin),
                                    static_cast<size_t>(planned.extra_count));
    for (int32_t& slot : extra) slot = state.TreeSlot(slot);
    planned.slot = extra.back();
  }
}

}  // namespace

void ReleasePages(SequenceState& state, int length, KvPool& pool) {
  const auto kept = static_cast<size_t>(PagesFor(length));
  while (state.pages.size() > kept) {
    Release(state.pages.back(), pool);
    state.pages.pop_back();
  }
  state.published = std::min(state.published, static_cast<int>(kept));
  state.dropped = std::min(state.dropped, static_cast<int>(kept));
  while (state.tree_page_count > 0) {
    pool.Release(state.tree_pages[static_cast<size_t>(--state.tree_page_count)]);
  }
}

Status PlanRows(std::span<const Row> rows, std::span<SequenceState> sequences, KvPool& pool,
                const PlanLimits& limits, RowPlan& plan) {
  plan.rows.clear();
  plan.pages.clear();
  plan.extra.clear();
  plan.copies.clear();
  plan.changes.clear();
  plan.partial = limits.layers != 0;
  plan.both_sides = limits.both_sides;
  plan.change_of.assign(sequences.size(), -1);
  Status status;
  for (size_t i = 0; i < rows.size() && status.ok(); ++i) {
    status = PlanRow(rows[i], i, sequences, limits, plan);
  }
  if (status.ok()) status = TakePages(sequences, pool, plan);
  if (status.ok()) {
    WriteSlots(rows, sequences, plan);
    return {};
  }
  // A failed call leaves no tree to commit.
  for (const RowPlan::Change& change : plan.changes) {
    SequenceState& state = sequences[static_cast<size_t>(change.sequence)];
    state.last_rows = state.whole_rows = 0;
  }
  return status;
}

}  // namespace pawl
