// RegexDfa: the deterministic automaton of one regular expression, built as far as it is walked.
//
//   RegexDfa dfa(arena, id);
//   uint32_t state = dfa.Start();
//   for (char32_t c : text) state = dfa.Next(state, dfa.ClassOf(c));
//   bool matches = dfa.Accepting(state);
//
// Thread safety: none, and it grows its arena: the caller locks both.
#ifndef PAWL_GRAMMAR_REGEX_REGEX_DFA_H_
#define PAWL_GRAMMAR_REGEX_REGEX_DFA_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/regex/codepoint_set.h"
#include "grammar/regex/regex_arena.h"
#include "src/base/memory_size.h"

namespace pawl {

struct RegexDfaLimits {
  // States, those that only the search for emptiness saw included.
  int64_t max_states = 1 << 20;
  // Steps of the arena (RegexArena::work) that this DFA may cause in all; about 50 ns each.
  uint64_t max_work = 1u << 28;
  // The same, beyond which nothing is searched for emptiness any more: what is undecided is kept.
  uint64_t max_search_work = 1u << 28;
  // The same of the steps of these searches alone, beyond twice those of everything else: a DFA
  // that is in use for long has searched a lot, and each new state is to be searched all the same.
  uint64_t max_emptiness_work = 1u << 28;
  // States that one search for an accepted string may look at before it gives up.
  int emptiness_fuel = 4000;
  // States looked at by all searches that ran out of it; above this, what is undecided is kept
  // without a search. Else a long chain of undecided states would be searched from each of them.
  int64_t max_undecided = 1'000'000;
};

class RegexDfa {
 public:
  static constexpr uint32_t kDead = 0;

  // REQUIRES: start is an id of *arena.
  RegexDfa(std::shared_ptr<RegexArena> arena, ReId start, const RegexDfaLimits& limits = {});
  // The automaton of several expressions, whose states are shared: StartOf tells where each begins.
  RegexDfa(std::shared_ptr<RegexArena> arena, std::span<const ReId> starts,
           const RegexDfaLimits& limits = {});

  // kDead when nothing is accepted at all.
  uint32_t Start() { return StartOf(0); }
  // The same for the expression with that number.
  uint32_t StartOf(size_t number);

  // Code points that no state can tell apart share a class. boundaries()[i] is the first code point
  // of interval i (boundaries()[0] == 0) and interval_class()[i] its class. Surrogates have a class
  // of their own, which leads to kDead.
  std::span<const char32_t> boundaries() const { return boundaries_; }
  std::span<const uint16_t> interval_class() const { return interval_class_; }
  int classes() const { return static_cast<int>(representatives_.size()); }
  int ClassOf(char32_t codepoint) const;
  // A member of the class; a printable ASCII character where there is one.
  char32_t Representative(int cls) const { return representatives_[cls]; }

  // kDead when no accepted string can follow. Exact, but where the search for an accepted string of
  // a Boolean expression runs out of fuel the state is kept.
  uint32_t Next(uint32_t state, int cls) {
    const State& from = states_[state];
    if (from.row != kNoRow) {
      const uint32_t cell = cells_[from.row * representatives_.size() + static_cast<size_t>(cls)];
      if (cell == kDead || (cell & kLiveFlag) != 0) return cell & ~kLiveFlag;
    }
    return FindNext(state, cls);
  }
  // The states that one code point leads to, each with those that do.
  std::map<uint32_t, CodepointSet> Steps(uint32_t state);
  // The same without a search: perhaps no accepted string can follow.
  uint32_t NextPerhapsDead(uint32_t state, int cls) {
    const uint32_t next = RawNext(state, cls);
    return states_[next].life == Life::kDead ? kDead : next;
  }
  // Some accepted string can follow, or a search for one would take too long; see Next.
  bool Lives(uint32_t state) { return IsLive(state); }
  // The same without a search: whether that is known.
  bool KnownLive(uint32_t state) const { return states_[state].life == Life::kLive; }
  // States that all searches without an answer looked at.
  int64_t undecided() const { return undecided_; }
  bool Accepting(uint32_t state) const { return arena_->Nullable(states_[state].term); }
  ReId Term(uint32_t state) const { return states_[state].term; }
  // RegexArena::MayBeEmpty of what is left.
  bool MayBeEmpty(uint32_t state) const { return arena_->MayBeEmpty(states_[state].term); }
  // RegexArena::IsSearch of what is left.
  bool IsSearch(uint32_t state, bool then_anything) const {
    return arena_->IsSearch(states_[state].term, then_anything);
  }
  // The state from where everything is accepted.
  uint32_t Anything() { return Intern(RegexArena::kAnything); }
  // No code point leads away from the state (nor from kDead).
  bool Absorbing(uint32_t state);
  // Lower bound of the number of characters up to acceptance.
  uint32_t MinLength(uint32_t state) const { return arena_->MinLength(states_[state].term); }

  // Steps of the arena that what is known of the steps from this state took.
  uint32_t WorkAt(uint32_t state) const { return states_[state].work; }

  int64_t StateCount() const { return static_cast<int64_t>(states_.size()) - 1; }
  void SetStateLimit(int64_t max_states) { limits_.max_states = max_states; }
  // A limit was reached; Next has answered kDead where it could not go on.
  bool overflow() const { return overflow_ || arena_->overflow(); }
  // The arena aside, which others may share.
  size_t MemoryBytes() const {
    return HeapBytes(starts_, boundaries_, interval_class_, representatives_, states_, cells_,
                     state_of_);
  }
  size_t GrowthHint() const {
    return states_.size() * (sizeof(State) + 40) + cells_.size() * sizeof(uint32_t);
  }
  const RegexArena& arena() const { return *arena_; }
  const std::shared_ptr<RegexArena>& shared_arena() const { return arena_; }

 private:
  enum class Life : uint8_t { kUnknown, kLive, kDead };
  struct State {
    ReId term;
    uint32_t row;  // in cells_, kNoRow until the first step
    Life life;
    int8_t absorbing = -1;  // unknown
    uint32_t work = 0;
  };

  static constexpr uint32_t kNoRow = UINT32_MAX;
  // In a cell: the state is known to be live. Unknown cells are that without the flag.
  static constexpr uint32_t kLiveFlag = uint32_t{1} << 31, kUnknownCell = kLiveFlag - 1;

  uint32_t Intern(ReId term);
  uint32_t FindNext(uint32_t state, int cls);
  uint32_t RawNext(uint32_t state, int cls);
  bool IsLive(uint32_t state);
  bool SearchLive(uint32_t state);
  void FindClasses();

  std::shared_ptr<RegexArena> arena_;
  RegexDfaLimits limits_;
  std::vector<ReId> starts_;
  std::vector<char32_t> boundaries_;
  std::vector<uint16_t> interval_class_;
  std::vector<char32_t> representatives_;
  uint16_t ascii_class_[128];
  int surrogate_class_ = 0;
  std::vector<State> states_;
  std::vector<uint32_t> cells_;
  std::unordered_map<ReId, uint32_t> state_of_;
  uint64_t work_ = 0, emptiness_work_ = 0;
  int64_t undecided_ = 0;  // states of searches without an answer
  bool overflow_ = false;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_REGEX_REGEX_DFA_H_
