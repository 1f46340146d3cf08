// States are terms of the arena; a step is a derivative by the representative of the class,
// remembered in the state's row.
//
// Classes. A derivative only asks of a character in which of the expression's sets it lies, so
// characters that lie in the same ones are one class. The code points are cut at all ends of
// ranges; the intervals' classes are then refined set by set.
//
// Emptiness. Without And, Not and lookahead the constructors leave no empty term but kNothing. With
// them a term may be empty without showing it, so Next searches for an accepting state: best first
// by the lower bound on the length that is still needed, newest first among equals. A search that
// ends without one has seen everything reachable: all of it is dead. One that succeeds marks its
// path live, so that walking along finds most answers ready.
#include "grammar/regex/regex_dfa.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "src/base/sorted.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

constexpr char32_t kFirstSurrogate = 0xD800;
constexpr char32_t kAfterSurrogates = 0xE000;

}  // namespace

RegexDfa::RegexDfa(std::shared_ptr<RegexArena> arena, ReId start, const RegexDfaLimits& limits)
    : RegexDfa(std::move(arena), std::span<const ReId>(&start, 1), limits) {}

RegexDfa::RegexDfa(std::shared_ptr<RegexArena> arena, std::span<const ReId> starts,
                   const RegexDfaLimits& limits)
    : arena_(std::move(arena)), limits_(limits) {
  for (const ReId start : starts) starts_.push_back(arena_->Close(start));
  states_.push_back({RegexArena::kNothing, kNoRow, Life::kDead});
  state_of_.emplace(RegexArena::kNothing, kDead);
  FindClasses();
}

void RegexDfa::FindClasses() {
  std::vector<const CodepointSet*> sets;
  for (const ReId start : starts_) {
    const std::vector<const CodepointSet*> more = arena_->Sets(start);
    sets.insert(sets.end(), more.begin(), more.end());
  }
  SortUnique(sets);
  boundaries_ = {0, kFirstSurrogate, kAfterSurrogates};
  for (const CodepointSet* set : sets) {
    for (const CodepointRange& range : set->ranges()) {
      boundaries_.push_back(range.lo);
      if (range.hi < 0x10FFFF) boundaries_.push_back(range.hi + 1);
    }
  }
  SortUnique(boundaries_);
  const auto interval_at = [&](char32_t codepoint) {
    return static_cast<size_t>(std::lower_bound(boundaries_.begin(), boundaries_.end(), codepoint) -
                               boundaries_.begin());
  };
  const auto interval_after = [&](char32_t hi) {
    return hi == 0x10FFFF ? boundaries_.size() : interval_at(hi + 1);
  };
  std::vector<uint32_t> cls(boundaries_.size(), 0);
  std::vector<uint32_t> members{static_cast<uint32_t>(boundaries_.size())};  // intervals of a class
  const auto refine = [&](std::span<const CodepointRange> ranges) {
    std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>>
        inside;  // class -> (new class, count)
    for (int pass = 0; pass < 2; ++pass) {
      for (const CodepointRange& range : ranges) {
        for (size_t i = interval_at(range.lo), end = interval_after(range.hi); i < end; ++i) {
          if (pass == 0) {
            ++inside.try_emplace(cls[i], cls[i], 0).first->second.second;
          } else if (const auto moved = inside.find(cls[i]); moved != inside.end()) {
            cls[i] = moved->second.first;
          }
        }
      }
      if (pass == 1) break;
      std::vector<std::pair<uint32_t, uint32_t>> split;
      for (auto& [old, entry] : inside) {
        if (entry.second < members[old]) split.emplace_back(old, entry.second);
      }
      std::sort(split.begin(), split.end());
      inside.clear();
      for (const auto& [old, count] : split) {
        members[old] -= count;
        inside.emplace(old, std::pair{static_cast<uint32_t>(members.size()), count});
        members.push_back(count);
      }
      if (inside.empty()) break;
    }
  };
  const CodepointRange surrogates{kFirstSurrogate, kAfterSurrogates - 1};
  refine({&surrogates, 1});
  for (const CodepointSet* set : sets) refine(set->ranges());

  // Number the classes by their first code point and choose who stands for them.
  std::vector<uint32_t> number(members.size(), UINT32_MAX);
  for (size_t i = 0; i < boundaries_.size(); ++i) {
    uint32_t& n = number[cls[i]];
    if (n == UINT32_MAX) {
      n = static_cast<uint32_t>(representatives_.size());
      representatives_.push_back(boundaries_[i]);
    }
    if (n > UINT16_MAX) {
      overflow_ = true;
      n = 0;
    }
    interval_class_.push_back(static_cast<uint16_t>(n));
  }
  // Preference: letters and digits, then printable ASCII, then the first code point.
  const auto rank = [](char32_t c) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return 2;
    return c > ' ' && c < 0x7F ? 1 : 0;
  };
  size_t interval = 0;
  for (char32_t c = 0; c < 128; ++c) {
    while (interval + 1 < boundaries_.size() && boundaries_[interval + 1] <= c) ++interval;
    ascii_class_[c] = interval_class_[interval];
    char32_t& chosen = representatives_[ascii_class_[c]];
    if (rank(c) > rank(chosen)) chosen = c;
  }
  surrogate_class_ = interval_class_[interval_at(kFirstSurrogate)];
}

int RegexDfa::ClassOf(char32_t codepoint) const {
  if (codepoint < 128) return ascii_class_[codepoint];
  const auto after = std::upper_bound(boundaries_.begin(), boundaries_.end(), codepoint);
  return interval_class_[static_cast<size_t>(after - boundaries_.begin()) - 1];
}

uint32_t RegexDfa::Intern(ReId term) {
  const auto known = state_of_.find(term);
  if (known != state_of_.end()) return known->second;
  if (StateCount() >= limits_.max_states) {
    overflow_ = true;
    return kDead;
  }
  const uint32_t state = static_cast<uint32_t>(states_.size());
  const bool live = !arena_->MayBeEmpty(term) || arena_->Nullable(term);
  states_.push_back({term, kNoRow, live ? Life::kLive : Life::kUnknown});
  state_of_.emplace(term, state);
  return state;
}

uint32_t RegexDfa::StartOf(size_t number) {
  const uint32_t state = Intern(starts_[number]);
  return IsLive(state) ? state : kDead;
}

uint32_t RegexDfa::RawNext(uint32_t state, int cls) {
  if (state == kDead || cls == surrogate_class_) return kDead;
  if (states_[state].row == kNoRow) {
    states_[state].row = static_cast<uint32_t>(cells_.size() / representatives_.size());
    cells_.resize(cells_.size() + representatives_.size(), kUnknownCell);
  }
  const size_t cell = size_t{states_[state].row} * representatives_.size() + cls;
  if (cells_[cell] == kUnknownCell) {
    if (work_ > limits_.max_work || arena_->overflow()) {
      overflow_ = true;
      return kDead;
    }
    const uint64_t before = arena_->work();
    const ReId term = arena_->Derive(states_[state].term, representatives_[cls]);
    const uint64_t work = arena_->work() - before;
    work_ += work;
    states_[state].work = static_cast<uint32_t>(
        std::min<uint64_t>(uint64_t{states_[state].work} + work, UINT32_MAX / 2));
    if (arena_->derive_failed()) overflow_ = true;
    if (overflow()) return kDead;
    const uint32_t next = Intern(term);
    if (next == kDead && term != RegexArena::kNothing) return kDead;  // the limit: not remembered
    cells_[cell] = next;
  }
  return cells_[cell] & ~kLiveFlag;
}

uint32_t RegexDfa::FindNext(uint32_t state, int cls) {
  const uint32_t next = RawNext(state, cls);
  if (next == kDead) return kDead;
  const bool live = IsLive(next);
  // Of what only a limit makes live nothing is remembered.
  if (overflow()) return live ? next : kDead;
  cells_[states_[state].row * representatives_.size() + static_cast<size_t>(cls)] =
      live ? next | kLiveFlag : kDead;
  return live ? next : kDead;
}

bool RegexDfa::IsLive(uint32_t state) {
  if (states_[state].life != Life::kUnknown) return states_[state].life == Life::kLive;
  if (undecided_ > limits_.max_undecided || work_ > limits_.max_search_work ||
      emptiness_work_ > limits_.max_emptiness_work + 2 * (work_ - emptiness_work_)) {
    states_[state].life = Life::kLive;
    return true;
  }
  const uint64_t before = work_;
  const bool live = SearchLive(state);
  emptiness_work_ += work_ - before;
  return live;
}

bool RegexDfa::SearchLive(uint32_t state) {
  using Entry = std::tuple<uint32_t, int64_t, uint32_t>;  // length still needed, -age, state
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::unordered_map<uint32_t, uint32_t> parent;  // also what has been seen
  std::vector<uint32_t> seen{state};
  parent.emplace(state, kDead);
  open.emplace(MinLength(state), 0, state);
  int64_t age = 0;
  while (!open.empty()) {
    if (static_cast<int>(seen.size()) > limits_.emptiness_fuel || overflow()) {
      undecided_ += static_cast<int64_t>(seen.size());
      states_[state].life = Life::kLive;  // undecided: kept
      return true;
    }
    const uint32_t at = std::get<2>(open.top());
    open.pop();
    for (int cls = 0; cls < classes(); ++cls) {
      StopScope::Step();
      const uint32_t next = RawNext(at, cls);
      if (next == kDead || states_[next].life == Life::kDead) continue;
      if (states_[next].life == Life::kLive) {
        for (uint32_t s = at; s != kDead; s = parent[s]) states_[s].life = Life::kLive;
        return true;
      }
      if (!parent.emplace(next, at).second) continue;
      seen.push_back(next);
      open.emplace(MinLength(next), --age, next);
    }
  }
  if (overflow()) return true;
  for (const uint32_t s : seen) states_[s].life = Life::kDead;
  return false;
}

std::map<uint32_t, CodepointSet> RegexDfa::Steps(uint32_t state) {
  std::map<uint32_t, std::vector<CodepointRange>> ranges;
  for (size_t i = 0; i < boundaries_.size(); ++i) {
    const uint32_t next = Next(state, interval_class_[i]);
    if (next == kDead) continue;
    const char32_t last = i + 1 < boundaries_.size() ? boundaries_[i + 1] - 1 : kMaxCodepoint;
    ranges[next].push_back({boundaries_[i], last});
  }
  std::map<uint32_t, CodepointSet> steps;
  for (const auto& [next, of] : ranges) steps.emplace(next, CodepointSet::FromRanges(of));
  return steps;
}

bool RegexDfa::Absorbing(uint32_t state) {
  if (state == kDead) return true;
  if (states_[state].absorbing < 0) {
    // What does not accept and yet counts as live has an end that no search has found.
    bool absorbing = Accepting(state);
    for (int cls = 0; absorbing && cls < classes(); ++cls) {
      absorbing = cls == surrogate_class_ || Next(state, cls) == state;
    }
    states_[state].absorbing = absorbing;
  }
  return states_[state].absorbing == 1;
}

}  // namespace pawl
