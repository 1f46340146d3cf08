// Pages are published when they are full, after the call that filled them has succeeded. If an
// equal page is in the cache already, because two sequences with the same tokens ran side by side,
// the sequence changes over to that one and gives its own back: a row's keys and values are the
// same bits whoever computed them, so nobody can tell, and there is only one chain of pages for one
// prefix.
#include "src/model/kv_sequences.h"

#include <algorithm>
#include <new>

#include "src/base/failure.h"

namespace pawl {
namespace {

PageTokens TokensOfPage(std::span<const TokenId> tokens, size_t page) {
  return tokens.subspan(page * kPagePositions).first<kPagePositions>();
}

}  // namespace

KvSequences::KvSequences(const KvLimits& limits, int context_length)
    : pool_(limits), context_length_(context_length) {}

bool KvSequences::Known(SequenceId sequence) const {
  return sequence >= 0 && static_cast<size_t>(sequence) < sequences_.size() &&
         sequences_[static_cast<size_t>(sequence)].used;
}

Result<SequenceId> KvSequences::New(int capacity) {
  if (capacity < 1)
    return Error{ErrorCode::kInvalid, "a sequence needs a capacity of 1 or more", ""};
  if (capacity > context_length_) {
    return Error{ErrorCode::kLimit,
                 "a capacity of " + std::to_string(capacity) +
                     " positions exceeds the model's context of " + std::to_string(context_length_),
                 ""};
  }
  if (PagesFor(capacity) > pool_.pages()) {
    return Error{ErrorCode::kLimit,
                 "a capacity of " + std::to_string(capacity) +
                     " positions exceeds the key-value memory, which holds " +
                     std::to_string(int64_t{pool_.pages()} * kPagePositions),
                 ""};
  }
  try {
    SequenceState state;
    state.used = true;
    state.capacity = capacity;
    state.pages.reserve(static_cast<size_t>(PagesFor(capacity)));
    state.tokens.reserve(static_cast<size_t>(capacity));
    // Bookkeeping only, so that a step of decoding allocates nothing.
    const int64_t pages = int64_t{reserved_pages_} + PagesFor(capacity) + kMaxTreePages;
    pool_.Reserve(static_cast<int32_t>(std::min<int64_t>(pages, pool_.pages())));
    size_t id = 0;
    while (id < sequences_.size() && sequences_[id].used) ++id;
    if (id == sequences_.size()) sequences_.emplace_back();
    sequences_[id] = std::move(state);
    reserved_pages_ = static_cast<int32_t>(std::min<int64_t>(pages, kMostPages));
    return static_cast<SequenceId>(id);
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

void KvSequences::Free(SequenceId sequence) {
  if (!Known(sequence)) return;
  SequenceState& state = At(sequence);
  ReleasePages(state, 0, pool_);
  reserved_pages_ = std::max(0, reserved_pages_ - PagesFor(state.capacity) - kMaxTreePages);
  state = SequenceState();
}

void KvSequences::Truncate(SequenceId sequence, int length) {
  if (!Known(sequence)) return;
  SequenceState& state = At(sequence);
  state.length = std::clamp(length, 0, state.length);
  state.tokens.resize(static_cast<size_t>(state.length));
  state.last_rows = state.whole_rows = 0;
  ReleasePages(state, state.length, pool_);
}

int KvSequences::ReusePrefix(SequenceId sequence, std::span<const TokenId> tokens) {
  if (!Known(sequence)) return 0;
  SequenceState& state = At(sequence);
  const auto size = static_cast<size_t>(state.length);
  if (state.published * kPagePositions != state.length || size > tokens.size() ||
      !std::equal(state.tokens.begin(), state.tokens.end(), tokens.begin()) ||
      (state.published > 0 && state.pages[static_cast<size_t>(state.published - 1)] == kNoPage)) {
    return state.length;
  }
  const int most =
      std::min(state.capacity,
               static_cast<int>(std::min<size_t>(tokens.size(), static_cast<size_t>(INT32_MAX))));
  bool first = true;
  while (state.length + kPagePositions <= most) {
    const int32_t parent =
        state.published == 0 ? kNoPage : state.pages[static_cast<size_t>(state.published - 1)];
    const PageTokens next = TokensOfPage(tokens, static_cast<size_t>(state.published));
    const int32_t page = pool_.Find(parent, next);
    if (page == kNoPage) break;
    if (first) ReleasePages(state, state.length, pool_);
    if (first) state.last_rows = state.whole_rows = 0;
    first = false;
    pool_.Share(page);
    state.pages.push_back(page);
    state.tokens.insert(state.tokens.end(), next.begin(), next.end());
    state.length += kPagePositions;
    ++state.published;
  }
  return state.length;
}

Status KvSequences::CommitTree(SequenceId sequence, int row, std::vector<SlotCopy>& copies) {
  copies.clear();
  if (!Known(sequence)) {
    return Error{ErrorCode::kInvalid, "there is no sequence " + std::to_string(sequence), ""};
  }
  SequenceState& state = At(sequence);
  if (row < 0 || row >= std::min(state.whole_rows, kMaxTreeRows)) {
    return Error{ErrorCode::kInvalid,
                 "the last call with this sequence had no row " + std::to_string(row), ""};
  }
  const uint64_t path = state.path[static_cast<size_t>(row)] | uint64_t{1} << row;
  state.tokens.resize(static_cast<size_t>(state.position[0]));
  for (int i = 0; i <= row; ++i) {
    const auto nth = static_cast<size_t>(i);
    if ((path >> i & 1) == 0) continue;
    state.tokens.push_back(state.token[nth]);
    if (state.tree_index[nth] < 0) continue;
    copies.push_back({state.TreeSlot(state.tree_index[nth]), state.SlotOf(state.position[nth])});
  }
  state.length = state.position[static_cast<size_t>(row)] + 1;
  state.last_rows = state.whole_rows = 0;
  // Plain rows were cut off, and there was no tree.
  if (state.published > PagesFor(state.length)) ReleasePages(state, state.length, pool_);
  return {};
}

Status KvSequences::Plan(std::span<const Row> rows, const PlanLimits& limits, RowPlan& plan) {
  return PlanRows(rows, sequences_, pool_, limits, plan);
}

void KvSequences::Finish(std::span<const Row> rows, const RowPlan& plan) {
  for (const RowPlan::Change& change : plan.changes) {
    SequenceState& state = At(change.sequence);
    state.length = change.base;
    state.tokens.resize(static_cast<size_t>(change.base));
    if (change.failed) state.last_rows = state.whole_rows = 0;
  }
  if (plan.partial) return;
  for (const Row& row : rows) {
    const auto sequence = static_cast<size_t>(row.sequence);
    if (row.ancestors != 0 || plan.changes[static_cast<size_t>(plan.change_of[sequence])].failed) {
      continue;
    }
    sequences_[sequence].tokens.push_back(row.token);
    ++sequences_[sequence].length;
  }
  for (const RowPlan::Change& change : plan.changes) {
    SequenceState& state = At(change.sequence);
    // Committing a tree may still overwrite plain rows.
    if (!change.kept) Publish(state, change.tree_rows > 0 ? change.base : state.length);
  }
}

void KvSequences::Publish(SequenceState& state, int length) {
  while ((state.published + 1) * kPagePositions <= length) {
    const auto i = static_cast<size_t>(state.published);
    const int32_t parent = i == 0 ? kNoPage : state.pages[i - 1];
    const PageTokens tokens = TokensOfPage(state.tokens, i);
    const int32_t same = pool_.Find(parent, tokens);
    if (same != kNoPage) {
      pool_.Share(same);
      pool_.Release(state.pages[i]);
      state.pages[i] = same;
    } else {
      pool_.Publish(state.pages[i], parent, tokens);
    }
    ++state.published;
  }
}

std::string KvSequences::Check() const {
  std::vector<int32_t> references;
  const auto count = [&](int32_t page) {
    const auto i = static_cast<size_t>(page);
    if (i >= references.size()) references.resize(i + 1, 0);
    ++references[i];
  };
  for (const SequenceState& state : sequences_) {
    for (const int32_t page : state.pages) {
      if (page != kNoPage) count(page);
    }
    for (int i = 0; i < state.tree_page_count; ++i) {
      count(state.tree_pages[static_cast<size_t>(i)]);
    }
  }
  for (size_t id = 0; id < sequences_.size(); ++id) {
    const SequenceState& state = sequences_[id];
    const std::string name = "sequence " + std::to_string(id);
    if (!state.used && !state.pages.empty()) return name + " is free but has pages";
    if (static_cast<int>(state.tokens.size()) != state.length) return name + ": tokens, length";
    if (static_cast<int32_t>(state.pages.size()) < PagesFor(state.length)) {
      return name + " has too few pages";
    }
    if (state.published > PagesFor(state.length)) return name + " has published too much";
    for (size_t i = 0; i < state.pages.size(); ++i) {
      const bool dropped = static_cast<int>(i) < state.dropped;
      if ((state.pages[i] == kNoPage) != dropped) return name + ": a page is not there";
      if (dropped) continue;
      const bool published = static_cast<int>(i) < state.published;
      if (pool_.published(state.pages[i]) != published) return name + ": a page is not published";
      if (!published && references[static_cast<size_t>(state.pages[i])] != 1) {
        return name + " shares a page that it may write";
      }
    }
  }
  return pool_.Check(references);
}

}  // namespace pawl
