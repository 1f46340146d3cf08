// Pages are published when they are full, after the call that filled them has succeeded. If an
// equal page is in the cache already, because two sequences with the same tokens ran side by side,
// the sequence changes over to that one and gives its own back: a row's keys and values are the
// same bits in both, so no output changes, and there is only one chain of pages for one
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

Result<SequenceId> KvSequences::New(int capacity, int adapter) {
  if (capacity < 1)
    return Error{ErrorCode::kInvalid, "a sequence needs a capacity of 1 or more", ""};
  if (capacity > context_length_) {
    return Error{ErrorCode::kLimit,
                 "a capacity of " + std::to_string(capacity) +
                     " positions exceeds the model's context of " + std::to_string(context_length_),
                 ""};
  }
  const int32_t most_state = pool_.states().most();
  if (int64_t{PagesFor(capacity)} + most_state > pool_.pages()) {
    const int64_t pages = std::max(0, pool_.pages() - most_state);
    return Error{ErrorCode::kLimit,
                 "a capacity of " + std::to_string(capacity) +
                     " positions exceeds the key-value memory, which holds " +
                     std::to_string(pages * kPagePositions) +
                     (most_state > 0 ? " next to the state of a sequence" : ""),
                 ""};
  }
  try {
    SequenceState state;
    state.used = true;
    state.adapter = adapter;
    state.capacity = capacity;
    state.pages.reserve(static_cast<size_t>(PagesFor(capacity)));
    state.tokens.reserve(static_cast<size_t>(capacity));
    // Bookkeeping only, so that a step of decoding allocates nothing.
    const int64_t pages =
        int64_t{reserved_pages_} + PagesFor(capacity) + kMaxTreePages + most_state;
    pool_.Reserve(static_cast<int32_t>(std::min<int64_t>(pages, pool_.pages())));
    size_t id = 0;
    while (id < sequences_.size() && sequences_[id].used) ++id;
    if (id == sequences_.size()) sequences_.emplace_back();
    state.recurrent.pages.reserve(static_cast<size_t>(pool_.states().state));
    state.recurrent.row_pages.reserve(static_cast<size_t>(most_state));
    if (!TakeStatePages(state.recurrent, pool_)) {
      return Error{ErrorCode::kLimit,
                   "the key-value memory is full: the state of a sequence needs " +
                       std::to_string(pool_.states().least()) + " pages, but " +
                       std::to_string(pool_.available()) + " of " + std::to_string(pool_.pages()) +
                       " are free",
                   ""};
    }
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
  ReleaseStatePages(state.recurrent, pool_);
  reserved_pages_ = std::max(
      0, reserved_pages_ - PagesFor(state.capacity) - kMaxTreePages - pool_.states().most());
  state = SequenceState();
}

void KvSequences::Truncate(SequenceId sequence, int length) {
  if (!Known(sequence)) return;
  SequenceState& state = At(sequence);
  state.length = std::clamp(length, 0, state.length);
  state.tokens.resize(static_cast<size_t>(state.length));
  state.last_rows = state.whole_rows = 0;
  if (state.length <= state.mixed) state.mixed = std::numeric_limits<int>::max();
  ReleasePages(state, state.length, pool_);
  TruncateState(state.recurrent, state.length);
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
  const std::vector<int32_t> found = FindPages(state, tokens);
  if (found.empty()) return state.length;
  ReleasePages(state, state.length, pool_);
  state.last_rows = state.whole_rows = 0;
  for (const int32_t page : found) {
    const PageTokens next = TokensOfPage(tokens, static_cast<size_t>(state.published));
    pool_.Share(page);
    state.pages.push_back(page);
    state.tokens.insert(state.tokens.end(), next.begin(), next.end());
    state.length += kPagePositions;
    ++state.published;
  }
  return state.length;
}

std::vector<int32_t> KvSequences::FindPages(const SequenceState& state,
                                            std::span<const TokenId> tokens) const {
  std::vector<int32_t> found;
  size_t wanted = 0;
  int32_t parent = state.published == 0 ? KvPool::RootOf(state.adapter)
                                        : state.pages[static_cast<size_t>(state.published - 1)];
  const size_t most = std::min(static_cast<size_t>(state.capacity), tokens.size()) / kPagePositions;
  for (auto nth = static_cast<size_t>(state.published); nth < most; ++nth) {
    parent = pool_.Find(parent, TokensOfPage(tokens, nth));
    if (parent == kNoPage) break;
    found.push_back(parent);
    if (pool_.states().state == 0 || pool_.HasCheckpoint(parent)) wanted = found.size();
  }
  found.resize(wanted);
  return found;
}

std::pair<const SequenceState*, size_t> KvSequences::FindBegun(const SequenceState& state,
                                                               std::span<const TokenId> tokens,
                                                               size_t begin, size_t length) const {
  const size_t page = begin / kPagePositions;
  const size_t most =
      std::min({tokens.size(), static_cast<size_t>(state.capacity), begin + kPagePositions});
  std::pair<const SequenceState*, size_t> best = {nullptr, length};
  for (const SequenceState& other : sequences_) {
    const auto known = static_cast<size_t>(std::min(other.length, other.mixed));
    if (!other.used || &other == &state || known <= best.second) continue;
    if (other.adapter != state.adapter) continue;
    if (other.pages[page] == kNoPage) continue;
    // Pages in the cache are the same where all tokens before are.
    if (page > 0 && other.pages[page - 1] != state.pages[page - 1]) continue;
    size_t at = begin;
    while (at < std::min(known, most) && other.tokens[at] == tokens[at]) ++at;
    if (at > best.second) best = {&other, at};
  }
  return best;
}

int KvSequences::ReuseCopying(SequenceId sequence, std::span<const TokenId> tokens,
                              std::vector<SlotCopy>& copies) {
  copies.clear();
  if (!Known(sequence)) return 0;
  SequenceState& state = At(sequence);
  // The state of recurrent layers is known behind whole pages only.
  const bool plain = pool_.states().state == 0 && state.length <= state.mixed &&
                     static_cast<size_t>(state.length) <= tokens.size() &&
                     std::equal(state.tokens.begin(), state.tokens.end(), tokens.begin());
  if (!plain) return ReusePrefix(sequence, tokens);
  const auto at = static_cast<size_t>(state.length / kPagePositions);
  const auto parent_of = [&](size_t page) {
    return page == 0 ? KvPool::RootOf(state.adapter) : state.pages[page - 1];
  };
  const auto follows = [&](size_t page) {
    return page <= static_cast<size_t>(state.published) &&
           (page == 0 || parent_of(page) != kNoPage);
  };
  // A page that is whole in the cache takes the place of one that has begun.
  int32_t whole = kNoPage;
  if (state.length % kPagePositions != 0 && follows(at) &&
      std::min(tokens.size(), static_cast<size_t>(state.capacity)) >= (at + 1) * kPagePositions) {
    whole = pool_.Find(parent_of(at), TokensOfPage(tokens, at));
  }
  if (whole != kNoPage) {
    pool_.Share(whole);
    Truncate(sequence, static_cast<int>(at) * kPagePositions);
  }
  ReusePrefix(sequence, tokens);
  if (whole != kNoPage) pool_.Release(whole);
  const auto page = static_cast<size_t>(state.length / kPagePositions);
  if (!follows(page)) return state.length;
  const size_t begin = page * kPagePositions;
  const auto [source, end] = FindBegun(state, tokens, begin, static_cast<size_t>(state.length));
  if (source == nullptr) return state.length;
  auto from = static_cast<size_t>(state.length);
  const bool shared = static_cast<size_t>(state.published) > page;
  if (shared || state.pages.size() == page) {
    const int32_t own = pool_.Allocate();
    if (own == kNoPage) return state.length;
    if (shared) ReleasePages(state, static_cast<int>(begin), pool_);
    state.pages.push_back(own);
    from = begin;
  }
  for (size_t p = from; p < end; ++p) {
    const auto position = static_cast<int32_t>(p);
    copies.push_back({source->SlotOf(position), state.SlotOf(position)});
  }
  state.tokens.insert(state.tokens.end(), tokens.begin() + state.length,
                      tokens.begin() + static_cast<ptrdiff_t>(end));
  state.length = static_cast<int>(end);
  state.last_rows = state.whole_rows = 0;
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
  CommitPath(state.recurrent, path, row, state.length);
  // Plain rows were cut off, and there was no tree.
  if (state.published > PagesFor(state.length)) ReleasePages(state, state.length, pool_);
  return {};
}

Status KvSequences::Copy(SequenceId from, SequenceId to, std::vector<SlotCopy>& copies) {
  copies.clear();
  if (!Known(from) || !Known(to) || from == to || At(to).capacity < At(from).length) {
    return Error{ErrorCode::kInvalid, "a sequence cannot be copied to " + std::to_string(to), ""};
  }
  Truncate(to, 0);
  const SequenceState& source = At(from);
  SequenceState& state = At(to);
  if (PagesFor(source.length) > pool_.available()) {
    return Error{ErrorCode::kLimit, "the key-value memory is full", ""};
  }
  for (int page = 0; page < PagesFor(source.length); ++page)
    state.pages.push_back(pool_.Allocate());
  for (int i = 0; i < source.length; ++i) copies.push_back({source.SlotOf(i), state.SlotOf(i)});
  state.length = source.length;
  state.tokens = source.tokens;
  state.mixed = source.mixed;
  return {};
}

Status KvSequences::Plan(std::span<const Row> rows, const PlanLimits& limits, RowPlan& plan) {
  return PlanRows(rows, sequences_, pool_, limits, plan);
}

void KvSequences::Finish(std::span<const Row> rows, RowPlan& plan) {
  for (const RowPlan::Change& change : plan.changes) {
    SequenceState& state = At(change.sequence);
    if (!plan.both_sides || change.failed || plan.partial) state.length = change.base;
    if (change.base <= state.mixed) state.mixed = std::numeric_limits<int>::max();
    state.tokens.resize(static_cast<size_t>(state.length));
    if (change.failed) state.last_rows = state.whole_rows = 0;
  }
  for (const Row& row : rows) {
    if (plan.partial) break;
    const auto sequence = static_cast<size_t>(row.sequence);
    if (row.ancestors != 0 || plan.changes[static_cast<size_t>(plan.change_of[sequence])].failed) {
      continue;
    }
    SequenceState& state = sequences_[sequence];
    if (!row.mix.empty()) state.mixed = std::min(state.mixed, row.position);
    if (row.position < state.length) {
      state.tokens[static_cast<size_t>(row.position)] = row.token;
      continue;
    }
    state.tokens.push_back(row.token);
    ++state.length;
  }
  for (const RowPlan::Change& change : plan.changes) {
    SequenceState& state = At(change.sequence);
    // Committing a tree may still overwrite plain rows. Keys that depend on what stands behind them
    // are of this call alone.
    if (!change.kept && !plan.partial && !plan.both_sides) {
      Publish(state, std::min(state.mixed, change.tree_rows > 0 ? change.base : state.length));
    }
    FinishState(state, static_cast<size_t>(&change - plan.changes.data()), plan, pool_);
  }
}

void KvSequences::PlanAgain(const RowPlan& plan, size_t change, std::vector<Row>& rows,
                            RowPlan& again) const {
  const RowPlan::Change& of = plan.changes[change];
  const SequenceState& state = sequences_[static_cast<size_t>(of.sequence)];
  rows.clear();
  again.rows.clear();
  for (int position = plan.states[change].from; position < of.base; ++position) {
    rows.push_back({.token = state.tokens[static_cast<size_t>(position)],
                    .position = position,
                    .sequence = of.sequence});
    again.rows.push_back({.slot = state.SlotOf(position), .prefix = position + 1});
  }
  again.pages.assign(state.pages.begin(), state.pages.end());
  again.extra.clear();
  again.changes.assign(1, of);
  again.changes[0].base = plan.states[change].from;
  again.changes[0].pages_begin = 0;
  again.change_of.assign(sequences_.size(), 0);
  again.states.resize(1);
  again.states[0] = StateChange();
  again.states[0].from = plan.states[change].from;
  again.states[0].store = false;
}

void KvSequences::Publish(SequenceState& state, int length) {
  while ((state.published + 1) * kPagePositions <= length) {
    const auto i = static_cast<size_t>(state.published);
    const int32_t parent = i == 0 ? KvPool::RootOf(state.adapter) : state.pages[i - 1];
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
    for (const int32_t page : state.recurrent.pages) count(page);
    for (const int32_t page : state.recurrent.row_pages) count(page);
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
