// Best-first search (A*) to a near acceptable state, guided by what each regex still needs,
// remembered for every state on the path: those on the path found are live, and when nothing is
// found everything visited is dead. What only the counter still looks at is decided by arithmetic,
// so maxLength may be as large as it likes.
#include "schemas/scalar/string_search.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "schemas/limits.h"
#include "schemas/scalar/settling_tokens.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {
namespace {
constexpr char32_t kSurrogatesBegin = 0xD800, kSurrogatesEnd = 0xDFFF;

bool IsSurrogate(char32_t c) { return c >= kSurrogatesBegin && c <= kSurrogatesEnd; }
}  // namespace

size_t StringSearch::SettlingBytes() const {
  return settling_tokens_ == nullptr ? 0 : settling_tokens_->MemoryBytes();
}

bool StringSearch::Accepts(StateId state) {
  if (At(state).accepts == Verdict::kUnknown) {
    const bool accepted = accept_(state);
    At(state).accepts = accepted ? Verdict::kLive : Verdict::kDead;
  }
  return At(state).accepts == Verdict::kLive;
}

StringSearch::StateId StringSearch::NextOf(StateId state, int cls) {
  const StateId next = program_.NextOnce(state, cls);
  if (!Live(next)) return kNoState;
  return FreedomOf(next) ? next | kFreeFlag : next;
}

StringSearch::StateId* StringSearch::AsciiRow(StateId state) {
  if (state >= rows_.size()) rows_.resize(std::max(program_.size(), size_t{state} + 1), nullptr);
  if (rows_[state] == nullptr) {
    const auto width = static_cast<size_t>(program_.ascii_classes());
    if (row_storage_.empty() || row_storage_.back().size() + width > row_storage_.back().capacity())
      row_storage_.emplace_back().reserve(width * limits::kRowsAtOnce);
    std::vector<StateId>& storage = row_storage_.back();
    storage.resize(storage.size() + width, kUnasked);
    rows_[state] = &storage[storage.size() - width];
  }
  return rows_[state];
}

StringSearch::StateId StringSearch::AskNextAscii(StateId state, uint8_t cls) {
  const StateId next = NextOf(state, program_.ClassOfAsciiClass(cls));
  return AsciiRow(state)[cls] = next;
}

bool StringSearch::AskLivesAfter(StateId state, uint8_t cls) {
  if (!live_ && program_.wide() &&
      program_.Peek(state, program_.ClassOfAsciiClass(cls)) == StringProgram::kPeeked &&
      accept_(StringProgram::kPeeked)) {
    AsciiRow(state)[cls] = kSeen;
    return true;
  }
  return AskNextAscii(state, cls) != kNoState;
}

StringSearch::ClassRow& StringSearch::MakeRow(StateId state) {
  if (state >= class_rows_.size()) class_rows_.resize(static_cast<size_t>(state) + 1, nullptr);
  class_rows_[state] = &class_row_storage_.emplace_back();
  class_rows_[state]->state = state;
  return *class_rows_[state];
}

void StringSearch::AskClass(ClassRow& row, CharClass like) {
  StateId same = kUnasked;
  for (const int cls : program_.ClassesOf(like)) {
    const StateId next = Restarts() ? NextRestarted(row.state, cls) : NextOf(row.state, cls);
    same = same == kUnasked || same == next ? next : kMixed;
    if (same == kMixed) break;
  }
  row.next[like] = same;
  row.asked |= uint64_t{1} << like;
  if ((same & ~kFreeFlag) == row.state) row.loops |= uint64_t{1} << like;
}

StringSearch::StateId StringSearch::NextRestarted(StateId state, int cls) {
  const size_t width = program_.width();
  words_.resize(2 * width);
  program_.CopyKey(state, words_.data());
  program_.StepKey(words_.data(), cls, &words_[width]);
  if (program_.AnyDead(&words_[width])) return kNoState;
  program_.Restart(&words_[width]);
  const StateId next = program_.KeepKey(&words_[width]);
  if (!Live(next)) return kMixed;
  return FreedomOf(next) ? next | kFreeFlag : next;
}

bool StringSearch::Loops(ClassRow& row, uint64_t classes) {
  while ((classes & row.asked & ~row.loops) == 0) {
    const uint64_t unasked = classes & ~row.asked;
    if (unasked == 0) return true;
    AskClass(row, static_cast<CharClass>(std::countr_zero(unasked)));
  }
  return false;
}

bool StringSearch::FindAlwaysLive(StateId state) {
  if (one_atom_) return program_.IsSearch(state);
  const StateId ahead = program_.AlwaysAhead(state);
  return ahead != StringProgram::kNoState && Accepts(ahead);
}

bool StringSearch::DecideLive(StateId state) {
  if (At(state).live == Verdict::kUnknown) {
    if (live_) {
      const bool live = live_(state);
      At(state).live = live ? Verdict::kLive : Verdict::kDead;
    } else if (program_.Quiet(state)) {
      DecideByCount(state);
    } else if (one_atom_ && program_.SurelyLive(state)) {
      At(state).live = Verdict::kLive;
    } else if (conjunction_ && program_.SurelyLiveTogether(state)) {
      At(state).live = Verdict::kLive;
    } else if (NeedsSource(state)) {
      DecideBySource(state);
    } else if (one_atom_ && program_.OnlyLiterals()) {
      At(state).live = program_.Begins(state) ? Verdict::kLive : Verdict::kDead;
    } else {
      Decide(state);
    }
  }
  return At(state).live == Verdict::kLive;
}

void StringSearch::DecideByCount(StateId state) {
  const uint64_t count = program_.Count(state);
  Verdict verdict = Accepts(state) ? Verdict::kLive : Verdict::kDead;
  uint64_t skip = 0;
  for (const uint64_t critical : program_.critical_counts()) {
    if (verdict == Verdict::kLive) break;
    if (critical <= count || !Accepts(program_.AtCount(state, critical))) continue;
    verdict = Verdict::kLive;
    skip = critical - count;
  }
  At(state).live = verdict;
  At(state).skip = skip;
}

std::optional<StringSearch::Freedom> StringSearch::FindFreedom(StateId state) {
  if (At(state).free == Verdict::kUnknown) {
    At(state).free = Verdict::kDead;
    if (program_.Quiet(state)) {
      // Acceptance changes at the critical counts only; it has to be one interval.
      const uint64_t count = program_.Count(state);
      Freedom freedom{kUnbounded, kUnbounded};
      bool accepted = Accepts(state), closed = false, interval = true;
      if (accepted) freedom.min = 0;
      for (const uint64_t critical : program_.critical_counts()) {
        if (critical <= count) continue;
        const bool next = Accepts(program_.AtCount(state, critical));
        if (next && !accepted) {
          interval = interval && !closed;
          freedom.min = critical - count;
        } else if (!next && accepted) {
          freedom.max = critical - count - 1;
          closed = true;
        }
        accepted = next;
      }
      if (interval && freedom.min != kUnbounded) {
        At(state).free = Verdict::kLive;
        At(state).freedom = freedom;
      }
    }
  }
  if (At(state).free != Verdict::kLive) return std::nullopt;
  return At(state).freedom;
}

bool StringSearch::HasPath(StateId state) {
  const Info& info = At(state);
  return info.live == Verdict::kLive &&
         (info.via >= 0 || info.accepts == Verdict::kLive || program_.Quiet(state));
}

// Most states are one step away from one that is known, or from an end.
bool StringSearch::OneStep(StateId start) {
  if (Accepts(start)) {
    At(start).live = Verdict::kLive;
    return true;
  }
  for (int i = 0; i < program_.classes(); ++i) {
    const int cls = (last_via_ + i) % program_.classes();
    if (IsSurrogate(program_.Representative(cls))) continue;
    const StateId next = program_.Next(start, cls);
    if (At(next).live == Verdict::kUnknown && program_.Quiet(next)) DecideByCount(next);
    if (!HasPath(next)) continue;
    At(start).live = Verdict::kLive;
    At(start).via = last_via_ = cls;
    return true;
  }
  return false;
}

StringOutline* StringSearch::Outline() {
  if (!outlined_) {
    outlined_ = true;
    if (conjunction_ && StringOutline::Fits(program_))
      outline_ = std::make_unique<StringOutline>(program_);
  }
  return outline_.get();
}

bool StringSearch::Lost(StateId state) {
  if (hopeless_ && hopeless_(state)) return true;
  StringOutline* const outline = Outline();
  return outline != nullptr && outline->At(state).distance == StringOutline::kNoEnd;
}

bool StringSearch::FollowOutline(StateId start, bool wants_path) {
  StringOutline* const outline = Outline();
  if (outline == nullptr) return false;
  std::vector<std::pair<StateId, int>> path;
  StateId state = start;
  uint32_t before = StringOutline::kUnknown;
  for (;;) {
    if (At(state).live == Verdict::kUnknown && program_.Quiet(state)) DecideByCount(state);
    // A path is to be the shortest, so it goes on to an end of its own.
    if (wants_path ? program_.Quiet(state) && HasPath(state)
                   : At(state).live == Verdict::kLive && state != start)
      break;
    if (At(state).live == Verdict::kDead) return false;
    if (Accepts(state)) {
      At(state).live = Verdict::kLive;
      break;
    }
    const StringOutline::Answer answer = outline->At(state);
    if (answer.live && !wants_path && !program_.counting()) {
      At(state).live = Verdict::kLive;
      break;
    }
    // The path has to get shorter with each step.
    if (answer.via < 0 || answer.distance >= before || SpentAll()) return false;
    if (wants_path && outline->AtLeast(state) != answer.distance) return false;
    before = answer.distance;
    path.emplace_back(state, answer.via);
    program_.spending().steps += program_.StepCost();
    state = program_.NextOnce(state, answer.via);
  }
  const bool has_way = HasPath(state);
  for (const auto& [on, via] : path) {
    At(on).live = Verdict::kLive;
    if (has_way) At(on).via = via;
  }
  return true;
}

void StringSearch::Decide(StateId start) {
  if (hopeless_ && hopeless_(start)) {
    At(start).live = Verdict::kDead;
    return;
  }
  if (SpentAll()) {
    At(start).live = Verdict::kLive;  // undecided
    return;
  }
  if (Outline() != nullptr) {
    if (Lost(start)) {
      At(start).live = Verdict::kDead;
      found_dead_ = true;
      return;
    }
    if (FollowOutline(start, false)) return;
  }
  if (OneStep(start)) return;
  if (!one_atom_ && AlwaysLive(start)) {
    At(start).live = Verdict::kLive;
    return;
  }
  // Once not all states could be decided, only those with few behind them are dead.
  const int64_t fuel = all_asked_ ? small() : std::max(small(), std::min(fuel_, whole() - spent_));
  Outcome outcome = Explore(start, false, false, fuel);
  if (outcome == Outcome::kUndecided && !all_asked_) outcome = Explore(start, true, false, fuel);
  if (outcome == Outcome::kLive || At(start).live == Verdict::kDead) return;
  if (!all_asked_ && !SpentAll()) DecideAll();
  if (At(start).live != Verdict::kUnknown) return;
  At(start).live = Verdict::kLive;  // undecided
}

bool StringSearch::Apart() {
  apart_ = apart_ || (!live_ && !one_atom_ && program_.wide() && !program_.HasSources() &&
                      program_.bytes() > program_.spending().max_bytes);
  return apart_;
}

bool StringSearch::Hopeless(const uint32_t* words) {
  if (found_dead_) {
    const StateId state = program_.FindKey(words);
    const Info* const info = state == kNoState ? nullptr : Known(state);
    if (info != nullptr && info->live != Verdict::kUnknown) return info->live == Verdict::kDead;
  }
  return hopeless_ && hopeless_(program_.PeekKey(words));
}

bool StringSearch::SpentAll() const {
  const SearchSpending& spending = program_.spending();
  return spending.work > limits::kSearchWorkEver || spending.steps > spending.max_steps ||
         program_.bytes() > spending.max_bytes;
}

void StringSearch::FindPath(StateId start) {
  if (At(start).sought) return;
  if (NeedsSource(start)) return DecideBySource(start);
  if (one_atom_ && program_.OnlyLiterals()) {
    At(start).via = program_.ClassTowardsShortest(start);
    return;
  }
  if (FollowOutline(start, true) || OneStep(start)) return;
  const int64_t fuel = std::max(small(), std::min(fuel_, whole() - spent_));
  if (Explore(start, false, true, fuel) == Outcome::kLive ||
      Explore(start, true, true, fuel) == Outcome::kLive)
    return;
  // Once nothing is searched any more, what was left undecided counts as live, and stays that.
  if (!all_asked_ && !SpentAll()) DecideAll();
  At(start).sought = At(start).via < 0;
}

StringSearch::Outcome StringSearch::Explore(StateId start, bool apart, bool wants_path,
                                            int64_t fuel) {
  struct Visit {
    StateId from;
    int via;
  };
  std::unordered_map<StateId, Visit> visited = {{start, {start, -1}}};
  // Nearest first by steps taken plus steps still needed; of equals the deepest, so that long
  // literals are walked straight. Where parts hinder each other that looks at nearly all
  // states before it is through, so `apart` goes for what is still needed alone.
  struct Entry {
    uint64_t total;
    uint64_t depth;
    StateId state;
    bool operator<(const Entry& other) const {
      if (total != other.total) return total > other.total;
      return depth != other.depth ? depth < other.depth : state > other.state;
    }
  };
  std::priority_queue<Entry> queue;
  StringOutline* const outline = Outline();
  const auto push = [&](StateId state, uint64_t depth) {
    uint64_t needed = program_.Distance(state, apart);
    if (outline != nullptr) {
      const uint32_t shown = wants_path ? outline->AtLeast(state) : outline->At(state).distance;
      if (shown < StringOutline::kUnknown) needed = std::max<uint64_t>(needed, shown);
    }
    if (const uint64_t count = program_.Count(state); count < least_)
      needed = std::max(needed, least_ - count);
    queue.push({(apart ? 0 : depth) + needed, depth, state});
  };
  push(start, 0);
  const auto mark_path = [&](StateId end) {
    const bool has_way = HasPath(end);
    for (StateId s = end; s != start;) {
      const Visit visit = visited.at(s);
      At(visit.from).live = Verdict::kLive;
      if (has_way) At(visit.from).via = visit.via;
      s = visit.from;
    }
  };
  const int64_t cost = program_.classes() * program_.StepCost();
  const uint64_t work_before = program_.work();
  const bool later = program_.spending().work > limits::kSearchWorkOfAll;
  int64_t left = fuel;
  bool known_dead = false;
  Outcome outcome = Outcome::kDead;
  while (!queue.empty()) {
    const auto [total, depth, state] = queue.top();
    queue.pop();
    if (At(state).live == Verdict::kUnknown && program_.Quiet(state)) DecideByCount(state);
    if (wants_path ? HasPath(state) : At(state).live == Verdict::kLive && state != start) {
      mark_path(state);
      outcome = Outcome::kLive;
      break;
    }
    if (At(state).live == Verdict::kDead) {
      known_dead = known_dead || !(program_.Quiet(state) || Lost(state));
      continue;
    }
    if (Lost(state)) {
      At(state).live = Verdict::kDead;
      continue;
    }
    if (Accepts(state)) {
      At(state).live = Verdict::kLive;
      mark_path(state);
      outcome = Outcome::kLive;
      break;
    }
    const bool dear =
        later ? program_.work() - work_before > limits::kSearchWorkLater
              : fuel - left > small() && program_.work() - work_before > limits::kSearchWork;
    if ((left -= cost) <= 0 || dear || SpentAll() || program_.spending().Stopped()) {
      outcome = Outcome::kUndecided;
      break;
    }
    for (int cls = 0; cls < program_.classes(); ++cls) {
      if (IsSurrogate(program_.Representative(cls))) continue;
      const StateId next = program_.Next(state, cls);
      StopScope::Step();
      if (visited.contains(next)) continue;
      visited.emplace(next, Visit{state, cls});
      push(next, depth + 1);
    }
  }
  const int64_t used = fuel - left;
  if (used > small()) spent_ += used;
  program_.spending().steps += used;
  program_.spending().work += program_.work() - work_before;
  if (outcome != Outcome::kDead || wants_path) return outcome;
  // Nothing can be reached; whether that may be said does not depend on what was known before.
  if (used <= small() && (!known_dead || Close(start))) {
    for (const auto& [state, visit] : visited) At(state).live = Verdict::kDead;
    found_dead_ = true;
  }
  return outcome;
}

bool StringSearch::Close(StateId start) {
  std::unordered_set<StateId> seen = {start};
  std::vector<StateId> open = {start};
  const int64_t cost = program_.classes() * program_.StepCost();
  int64_t left = small();
  while (!open.empty()) {
    const StateId state = open.back();
    open.pop_back();
    if (program_.Quiet(state) || Lost(state)) continue;
    if ((left -= cost) <= 0) return false;
    for (int cls = 0; cls < program_.classes(); ++cls) {
      if (IsSurrogate(program_.Representative(cls))) continue;
      const StateId next = program_.Next(state, cls);
      StopScope::Step();
      if (seen.insert(next).second) open.push_back(next);
    }
  }
  return true;
}

// Forwards from the start to everything, then backwards from the ends: what was not met is dead.
void StringSearch::DecideAll() {
  all_asked_ = true;
  std::unordered_map<StateId, uint32_t> place = {{program_.start(), 0}};
  std::vector<StateId> states = {program_.start()};
  std::vector<std::pair<uint32_t, uint32_t>> steps;  // (to, from), as places
  const auto decided = [&](StateId state) {
    if (program_.Quiet(state)) {
      DecideByCount(state);
    } else if (Lost(state)) {
      At(state).live = Verdict::kDead;
    } else {
      return false;
    }
    return true;
  };
  const int64_t cost = program_.classes() * program_.StepCost();
  const int64_t fuel = whole();
  int64_t left = fuel;
  StringProgram::Met met;
  uint64_t work = 0;
  const uint64_t work_before = program_.work();
  struct Account {
    ~Account() { done(); }
    std::function<void()> done;
  } const account{[&] {
    program_.spending().steps += fuel - left;
    program_.spending().work += program_.work() - work_before;
  }};
  for (uint32_t at = 0; at < states.size(); ++at) {
    if (SpentAll()) return;
    if (decided(states[at])) continue;
    if ((left -= cost) <= 0 || program_.spending().Stopped()) return;
    const size_t begin = steps.size();
    for (int cls = 0; cls < program_.classes(); ++cls) {
      if (IsSurrogate(program_.Representative(cls))) continue;
      const StateId next = program_.Next(states[at], cls);
      StopScope::Step();
      const auto [it, fresh] = place.try_emplace(next, static_cast<uint32_t>(states.size()));
      if (fresh) states.push_back(next);
      steps.emplace_back(it->second, at);
    }
    if ((work += program_.FreshWork(states[at], met)) > limits::kSearchWork) return;
    std::sort(steps.begin() + static_cast<ptrdiff_t>(begin), steps.end());
    steps.erase(std::unique(steps.begin() + static_cast<ptrdiff_t>(begin), steps.end()),
                steps.end());
  }
  std::vector<uint32_t> first(states.size() + 1, 0), from(steps.size());
  for (const auto& [to, at] : steps) ++first[to + 1];
  for (size_t i = 0; i < states.size(); ++i) first[i + 1] += first[i];
  std::vector<uint32_t> fill(first.begin(), first.end() - 1);
  for (const auto& [to, at] : steps) from[fill[to]++] = at;
  std::vector<bool> reached(states.size());
  std::vector<uint32_t> queue;
  for (uint32_t i = 0; i < states.size(); ++i) {
    if (SpentAll()) return;  // what makes an end may be slow to find out
    const bool known =
        program_.Quiet(states[i]) ? At(states[i]).live == Verdict::kLive : Accepts(states[i]);
    if (!known) continue;
    reached[i] = true;
    queue.push_back(i);
  }
  for (size_t head = 0; head < queue.size(); ++head) {
    for (uint32_t k = first[queue[head]]; k < first[queue[head] + 1]; ++k) {
      if (reached[from[k]]) continue;
      reached[from[k]] = true;
      queue.push_back(from[k]);
      const StateId state = states[from[k]];
      for (int cls = 0; At(state).via < 0 && cls < program_.classes(); ++cls) {
        if (!IsSurrogate(program_.Representative(cls)) &&
            program_.Next(state, cls) == states[queue[head]])
          At(state).via = cls;
      }
    }
  }
  for (uint32_t i = 0; i < states.size(); ++i)
    At(states[i]).live = reached[i] ? Verdict::kLive : Verdict::kDead;
  found_dead_ = true;
}

bool StringSearch::LiveWithin(StateId state, char32_t lo, char32_t hi) {
  if (one_atom_ && program_.OnlySource()) {
    SourceTrie& trie = program_.only_source();
    const uint32_t node = program_.SourceNode(state);
    return node != SourceTrie::kNone && trie.GoesOn(trie.at(node), lo, hi);
  }
  if (SourceTable* const table = source_table()) {
    return table->Live(state) && table->LiveWithin(table->At(state), lo, hi);
  }
  if (lo < kSurrogatesBegin && hi > kSurrogatesEnd) {
    return LiveWithin(state, lo, kSurrogatesBegin - 1) || LiveWithin(state, kSurrogatesEnd + 1, hi);
  }
  if (IsSurrogate(lo)) lo = kSurrogatesEnd + 1;
  if (IsSurrogate(hi)) hi = kSurrogatesBegin - 1;
  return lo <= hi &&
         program_.AnyClassIn(lo, hi, [&](int cls) { return Live(program_.Next(state, cls)); });
}

std::optional<StringSearch::StateId> StringSearch::Next(StateId state, char32_t c) {
  const int cls = program_.ClassOf(c);
  const StateId next =
      program_.HasSources() ? program_.NextOnce(state, cls) : program_.Next(state, cls);
  if (!Live(next)) return std::nullopt;
  return next;
}

std::optional<std::u32string> StringSearch::Shortest(StateId state, size_t max_length) {
  if (!Live(state)) return std::nullopt;
  if (IsSource()) {
    const std::u32string_view rest = program_.only_source().ToEnd(program_.SourceNode(state));
    if (rest.size() > max_length) return std::nullopt;
    return std::u32string(rest);
  }
  if (SourceTable* const table = source_table()) {
    const auto rest = table->ToEnd(state);
    if (!rest || rest->size() > max_length) return std::nullopt;
    return std::u32string(*rest);
  }
  if (beside_spans_ && Table() != nullptr && NeedsSource(state)) {
    auto other = Shortest(BesideSpans(state), max_length);
    const auto rest = table_->ToEnd(state);
    if (!rest || rest->size() > max_length) return other;
    return other && other->size() <= rest->size() ? other : std::u32string(*rest);
  }
  std::u32string out;
  while (!Accepts(state)) {
    if (program_.Quiet(state)) {
      if (out.size() + At(state).skip > max_length) return std::nullopt;
      return out.append(At(state).skip, U'a');
    }
    if (At(state).via < 0) FindPath(state);  // live, but the path was not asked for yet
    if (At(state).via < 0 || out.size() >= max_length) return std::nullopt;
    const int via = At(state).via;
    out.push_back(program_.Representative(via));
    state = program_.Next(state, via);
    if (!Live(state)) return std::nullopt;
  }
  return out;
}

}  // namespace pawl::schema
