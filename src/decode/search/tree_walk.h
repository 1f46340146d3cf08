// TreeWalk: hypotheses that a strategy comes back to, with their laws and children, so that nothing
// is asked twice.
//
//   TreeWalk walk(run, TreeWalk::kWholeLaws);
//   Status status = walk.Ask(open);                   // one call of the model, mostly
//   Result<Hypo> next = walk.Greedy(open[0]);         // the most probable child
//
// Laws take memory: a number for each token of the vocabulary. So the oldest ones go where there
// are many, and what is asked about such a hypothesis again runs its row again. A strategy asks
// before it looks at a law.
//
// With the argument `drafts` a call also has the rows of so many tokens that are likely to follow:
// those that came after the same tokens in the prompt and in what was written before. A law that is
// found so is that of asking for it, so outputs are the same.
#ifndef PAWL_SRC_DECODE_SEARCH_TREE_WALK_H_
#define PAWL_SRC_DECODE_SEARCH_TREE_WALK_H_

#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/decode/draft/suffix_automaton.h"
#include "src/decode/search/search_run.h"

namespace pawl {

class TreeWalk {
 public:
  enum Kept { kBestTokens, kWholeLaws };  // of a law
  static constexpr size_t kMostItems = size_t{1} << 22;
  // `most_items`: tokens of the laws in memory, beyond those of the laws that were asked for last.
  TreeWalk(SearchRun& run, Kept kept, size_t most_items = kMostItems);

  // The laws of those that are not complete, where they are not known. Nothing at a limit.
  Status Ask(std::span<const Hypo> of);
  // REQUIRES: Ask.
  RankedTokens& LawOf(Hypo h) { return laws_.at(h).law; }
  // The child with the i-th best token; kNoHypo: it may not be. The same one each time.
  Result<Hypo> ChildAt(Hypo h, size_t i) { return ChildOf(h, LawOf(h).At(i)); }
  Result<Hypo> ChildOf(Hypo h, const RankedTokens::Item& item);
  // The most probable child that may be; kNoHypo: there is none. Where it is known, no law is
  // needed.
  Result<Hypo> Greedy(Hypo h);
  bool KnowsGreedy(Hypo h) const { return greedy_.contains(h); }
  // No child but these is asked for any more; `best`: the first of them, or kNoHypo.
  void Close(Hypo h, Hypo best);
  size_t law_items() const { return items_; }
  // The probability of the best token among those that may follow.
  double MostOf(Hypo h);
  // Of the tokens that may follow, in nats.
  double EntropyOf(Hypo h);
  // The child that the sampler would draw; of those that may not be the next one. kNoHypo: none.
  Result<Hypo> Draw(Hypo h, uint64_t seed, float temperature);

  // What was written as far as `h`, for drafts.
  void Remember(Hypo h);

  // One output, along the children that `next` chooses. `pauses` of the result: calls of Pause.
  void Pause() { ++pauses_; }
  Result<SearchResult> Follow(const std::function<Result<Hypo>(Hypo)>& next);
  // Takes each path on by tokens that `next` chooses, together, until `ends` says so of it or
  // nothing follows it, at most by so many tokens. Nothing more at a limit.
  Status Extend(std::vector<Hypo>& paths, int most,
                const std::function<Result<Hypo>(size_t path, Hypo)>& next,
                const std::function<bool(Hypo)>& ends);
  // The most probable tokens, to the end of an output.
  Status Complete(std::vector<Hypo>& paths, int most);

 private:
  // Laws that were found with that of a hypothesis; those of its child are from `next` on.
  struct Found {
    std::shared_ptr<SearchRun::Ahead> ahead;
    size_t next = 0;
  };
  struct KeptLaw {
    RankedTokens law;
    std::list<Hypo>::iterator used;
  };
  void Keep(Hypo h, RankedTokens law);
  void Drop(std::unordered_map<Hypo, KeptLaw>::iterator law);
  void Trim(Hypo h, RankedTokens& law) const;
  // Whether the law of a hypothesis was found ahead; it is kept then.
  bool TakeFound(Hypo h);
  void AddFound(Hypo h, Found found);
  std::vector<TokenId> DraftBehind(Hypo h) const;
  void Learn(std::span<const TokenId> tokens);

  SearchRun& run_;
  const Kept kept_;
  const size_t most_items_;
  const size_t draft_;  // tokens of a draft
  SuffixAutomaton text_;
  Result<Hypo> FollowToEnd(const std::function<Result<Hypo>(Hypo)>& next);
  int64_t steps_ = 0, pauses_ = 0;
  bool follows_ = false;  // one output, whose tokens are learned as they come
  std::unordered_map<Hypo, Found> found_;
  std::deque<Hypo> found_order_;
  std::unordered_map<Hypo, KeptLaw> laws_;
  std::list<Hypo> used_;  // the law that was asked for last is the last one
  size_t items_ = 0;
  std::map<std::pair<Hypo, TokenId>, Hypo> children_;
  std::unordered_map<Hypo, Hypo> greedy_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SEARCH_TREE_WALK_H_
