// Of a law the best tokens stay in memory. Near the end of the budget all of them do, because there
// only unlikely ones may leave room for a completion.
#include "src/decode/search/tree_walk.h"

#include <algorithm>

namespace pawl {
namespace {

constexpr size_t kKeptTokens = 256;

}  // namespace

Status TreeWalk::Ask(std::span<const Hypo> of) {
  std::vector<Hypo> unknown;
  for (const Hypo h : of) {
    if (run_.Complete(h) || laws_.contains(h) || std::ranges::find(unknown, h) != unknown.end()) {
      continue;
    }
    unknown.push_back(h);
  }
  if (unknown.empty()) return {};
  Result<std::vector<RankedTokens>> laws = run_.Laws(unknown);
  if (!laws.ok()) return laws.error();
  if (run_.limited()) return {};
  for (size_t i = 0; i < unknown.size(); ++i) {
    RankedTokens& law = (*laws)[i];
    const int left = run_.task().max_tokens - run_.at(unknown[i]).length;
    if (left > static_cast<int>(kKeptTokens)) law.Trim(kKeptTokens);
    laws_.emplace(unknown[i], std::move(law));
  }
  return {};
}

Result<Hypo> TreeWalk::ChildAt(Hypo h, size_t i) {
  const RankedTokens::Item item = LawOf(h).At(i);
  if (const auto found = children_.find({h, item.token}); found != children_.end()) {
    return found->second;
  }
  const Result<Hypo> child = run_.Child(h, item);
  if (!child.ok() || run_.limited()) return child;
  children_[{h, item.token}] = *child;
  return child;
}

Result<Hypo> TreeWalk::Greedy(Hypo h) {
  if (const auto found = greedy_.find(h); found != greedy_.end()) return found->second;
  Hypo best = kNoHypo;
  for (size_t i = 0; best == kNoHypo && i < LawOf(h).size(); ++i) {
    const Result<Hypo> child = ChildAt(h, i);
    if (!child.ok()) return child;
    if (run_.limited()) return kNoHypo;
    best = *child;
  }
  greedy_[h] = best;
  return best;
}

double TreeWalk::EntropyOf(Hypo h) {
  double sum = 0, weighted = 0;
  for (const RankedTokens::Item& item : LawOf(h).items()) {
    const double p = std::exp(item.log_mass);
    sum += p;
    weighted += p * item.log_mass;
  }
  return sum > 0 ? std::log(sum) - weighted / sum : 0;
}

}  // namespace pawl
