// PrepareWatch: how far CfgMasks::Prepare goes, and where to.
#ifndef PAWL_GRAMMAR_CFG_PREPARE_WATCH_H_
#define PAWL_GRAMMAR_CFG_PREPARE_WATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "grammar/regex/regex_machine.h"

namespace pawl {

// Told of the nodes that walks over the trie look at and of the states in which tokens end. Stops
// the walk when the steps are spent, of which each kind of work costs as many as it takes times
// 5 ns; new states of the regexes too, of which there may be a million. No clock: the same is
// prepared every time.
class PrepareWatch {
 public:
  // A lexeme that has begun: the state of the regexes, and whether it ends where it first matches.
  struct Place {
    uint32_t lexeme;
    bool lazy;
    uint32_t index() const { return lexeme * 2 + (lazy ? 1 : 0); }
  };

  PrepareWatch(const RegexMachine& regexes, uint64_t steps)
      : regexes_(regexes),
        left_(static_cast<int64_t>(std::min<uint64_t>(steps, INT64_MAX))),
        cost_(Cost()) {}

  // A walk begins, within lexemes that are lazy or not.
  void Begin(bool lazy) {
    lazy_ = lazy;
    ++walk_;
    reached_.clear();
  }
  bool Stops() {
    const uint64_t cost = Cost();
    Spend(kNodeSteps + cost - std::exchange(cost_, cost));
    return left_ < 0;
  }
  void Spend(uint64_t steps) { left_ -= static_cast<int64_t>(steps); }
  // So many tokens end in this state.
  void Ends(uint32_t lexeme, size_t tokens) {
    const Place place{lexeme, lazy_};
    const uint32_t index = place.index();
    if (ends_.size() <= index) ends_.resize(std::max<size_t>(index + 1, 2 * ends_.size()));
    ends_[index].tokens += tokens;
    if (std::exchange(ends_[index].walk, walk_) != walk_) reached_.push_back(place);
  }

  // Where tokens of the last walk end, each once.
  const std::vector<Place>& reached() const { return reached_; }
  // The tokens of all walks so far that end there.
  uint64_t TokensTo(Place place) const { return ends_[place.index()].tokens; }

 private:
  struct End {
    uint64_t tokens = 0;
    uint32_t walk = 0;
  };
  static constexpr uint64_t kNodeSteps = 3;
  static constexpr uint64_t kDeriveSteps = 10;  // of a step of the arena
  static constexpr uint64_t kStateSteps = 100;

  uint64_t Cost() const {
    return regexes_.arena()->work() * kDeriveSteps + regexes_.state_count() * kStateSteps;
  }

  const RegexMachine& regexes_;
  int64_t left_;
  uint64_t cost_;  // of the regexes so far
  bool lazy_ = false;
  uint32_t walk_ = 0;
  std::vector<End> ends_;  // by Place::index
  std::vector<Place> reached_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_PREPARE_WATCH_H_
