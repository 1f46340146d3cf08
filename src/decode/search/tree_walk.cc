// Of a law the best tokens stay in memory. Near the end of the budget all of them do, because there
// only unlikely ones may leave room for a completion.
#include "src/decode/search/tree_walk.h"

#include <algorithm>

#include "src/base/random.h"

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

Result<Hypo> TreeWalk::ChildOf(Hypo h, const RankedTokens::Item& item) {
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

double TreeWalk::MostOf(Hypo h) {
  double sum = 0;
  for (const RankedTokens::Item& item : LawOf(h).items()) sum += std::exp(item.log_mass);
  return sum > 0 ? std::exp(LawOf(h).At(0).log_mass) / sum : 1;
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

Result<Hypo> TreeWalk::Draw(Hypo h, uint64_t seed, float temperature) {
  RankedTokens& law = LawOf(h);
  const auto position = static_cast<uint64_t>(run_.at(h).length);
  std::vector<std::pair<float, size_t>> order;
  for (size_t i = 0; i < law.size(); ++i) {
    const RankedTokens::Item& item = law.At(i);
    const float noise = GumbelAt(seed, position, static_cast<uint64_t>(item.token));
    order.push_back({Perturbed(law.LogitOf(item), temperature, noise), i});
  }
  std::ranges::stable_sort(order, [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : law.At(a.second).token < law.At(b.second).token;
  });
  for (const auto& [value, i] : order) {
    const Result<Hypo> child = ChildAt(h, i);
    if (!child.ok() || run_.limited() || *child != kNoHypo) return child;
  }
  return kNoHypo;
}

Result<SearchResult> TreeWalk::Follow(const std::function<Result<Hypo>(Hypo)>& next) {
  Hypo at = SearchRun::kRoot;
  while (!run_.Complete(at)) {
    const Hypo open[] = {at};
    if (Status status = Ask(open); !status.ok()) return status.error();
    if (run_.limited()) return run_.Finish(open);
    const Result<Hypo> child = next(at);
    if (!child.ok()) return child.error();
    if (run_.limited() || *child == kNoHypo) return run_.Finish(open);
    at = *child;
  }
  run_.Offer(at, run_.ScoreOf(at));
  return run_.Finish({});
}

Status TreeWalk::Extend(std::vector<Hypo>& paths, int most,
                        const std::function<Result<Hypo>(size_t path, Hypo)>& next,
                        const std::function<bool(Hypo)>& ends) {
  std::vector<size_t> open;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!run_.Complete(paths[i]) && !ends(paths[i])) open.push_back(i);
  }
  for (int step = 0; step < most && !open.empty(); ++step) {
    std::vector<Hypo> asked;
    for (const size_t i : open) asked.push_back(paths[i]);
    if (Status status = Ask(asked); !status.ok() || run_.limited()) return status;
    std::vector<size_t> still;
    for (const size_t i : open) {
      const Result<Hypo> child = next(i, paths[i]);
      if (!child.ok()) return child.error();
      if (run_.limited()) return {};
      if (*child == kNoHypo) continue;
      paths[i] = *child;
      if (!run_.Complete(*child) && !ends(*child)) still.push_back(i);
    }
    open = std::move(still);
  }
  return {};
}

Status TreeWalk::Complete(std::vector<Hypo>& paths, int most) {
  return Extend(
      paths, most, [this](size_t, Hypo h) { return Greedy(h); }, [](Hypo) { return false; });
}

}  // namespace pawl
