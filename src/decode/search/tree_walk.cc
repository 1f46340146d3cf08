// Of a law the best tokens stay in memory, where a strategy needs no more, and the first token of
// the shortest completion: near the end of the budget others may leave no room for one.
#include "src/decode/search/tree_walk.h"

#include <algorithm>
#include <limits>

#include "src/base/random.h"

namespace pawl {
namespace {

constexpr size_t kKeptTokens = 256;
// Of drafts: hypotheses with laws that were found ahead, tokens that are learned, and the fewest
// tokens that have to be the same in front of a draft.
constexpr size_t kMostFound = 64;
constexpr size_t kMostLearned = size_t{1} << 20;
constexpr uint32_t kLeastContext = 2;
constexpr size_t kMostContext = 32;
constexpr TokenId kBetweenTexts = -2;

}  // namespace

TreeWalk::TreeWalk(SearchRun& run, Kept kept, size_t most_items)
    : run_(run),
      kept_(kept),
      most_items_(most_items),
      draft_(run.MayLookAhead() ? static_cast<size_t>(run.Argument("drafts", 0)) : 0) {
  run.KeepBranches();
  if (draft_ > 0) Learn(run.prompt());
}

Status TreeWalk::Ask(std::span<const Hypo> of) {
  std::vector<Hypo> unknown;
  size_t asked = 0;
  for (const Hypo h : of) {
    if (run_.Complete(h)) continue;
    ++asked;
    if (const auto law = laws_.find(h); law != laws_.end()) {
      used_.splice(used_.end(), used_, law->second.used);
      continue;
    }
    if (std::ranges::find(unknown, h) != unknown.end()) continue;
    if (draft_ == 0 || !TakeFound(h)) unknown.push_back(h);
  }
  if (unknown.empty()) return {};
  std::vector<std::vector<TokenId>> drafts;
  std::vector<SearchRun::Ahead> ahead;
  for (const Hypo h : unknown) {
    // The law of the root is there, without a call.
    if (draft_ == 0) break;
    drafts.push_back(h == SearchRun::kRoot ? std::vector<TokenId>() : DraftBehind(h));
  }
  SearchRun::LawOptions options;
  options.drafts = drafts;
  options.ahead = &ahead;
  options.seen = [&](size_t i, RankedTokens& law) { Keep(unknown[i], std::move(law)); };
  const Result<std::vector<RankedTokens>> laws = run_.Laws(unknown, options);
  if (!laws.ok()) return laws.error();
  if (run_.limited()) return {};
  for (size_t i = 0; i < unknown.size(); ++i) {
    if (ahead[i].tokens.empty()) continue;
    for (RankedTokens& law : ahead[i].laws) {
      // Those that may be the law of the last tokens stay as they are.
      const int left = run_.task().max_tokens - run_.at(unknown[i]).length;
      if (kept_ == kBestTokens && left > static_cast<int>(kKeptTokens + draft_)) {
        law.Trim(kKeptTokens);
      }
    }
    AddFound(unknown[i], {std::make_shared<SearchRun::Ahead>(std::move(ahead[i])), 0});
  }
  while (items_ > most_items_ && used_.size() > asked) Drop(laws_.find(used_.front()));
  return {};
}

void TreeWalk::Trim(Hypo h, RankedTokens& law) const {
  if (kept_ == kWholeLaws || law.size() <= kKeptTokens) return;
  const Hypothesis& from = run_.at(h);
  const int left = run_.task().max_tokens - from.length;
  const RankedTokens::Item* closing = nullptr;
  if (run_.closes() && left <= static_cast<int>(kKeptTokens)) {
    const auto completion = from.at->Completion(left);
    if (completion && !completion->empty()) closing = law.Find(completion->front());
  }
  if (closing == nullptr) return law.Trim(kKeptTokens);
  const RankedTokens::Item last = *closing;
  law.Trim(kKeptTokens);
  law.AddLast(last);
}

void TreeWalk::Keep(Hypo h, RankedTokens law) {
  Trim(h, law);
  items_ += law.size();
  laws_.emplace(h, KeptLaw{std::move(law), used_.insert(used_.end(), h)});
}

void TreeWalk::Drop(std::unordered_map<Hypo, KeptLaw>::iterator law) {
  items_ -= law->second.law.size();
  used_.erase(law->second.used);
  laws_.erase(law);
}

void TreeWalk::Close(Hypo h, Hypo best) {
  greedy_[h] = best;
  if (const auto law = laws_.find(h); law != laws_.end()) Drop(law);
  children_.erase(children_.lower_bound({h, std::numeric_limits<TokenId>::min()}),
                  children_.upper_bound({h, std::numeric_limits<TokenId>::max()}));
}

// ---- Drafts ----

bool TreeWalk::TakeFound(Hypo h) {
  if (h == SearchRun::kRoot || run_.at(h).run != nullptr) return false;
  const auto at = found_.find(run_.at(h).parent);
  if (at == found_.end()) return false;
  Found found = at->second;
  if (found.ahead->tokens[found.next] != run_.at(h).token) return false;
  Keep(h, std::move(found.ahead->laws[found.next]));
  found_.erase(at);
  if (++found.next < found.ahead->tokens.size()) AddFound(h, std::move(found));
  return true;
}

void TreeWalk::AddFound(Hypo h, Found found) {
  found_[h] = std::move(found);
  found_order_.push_back(h);
  if (found_order_.size() <= kMostFound) return;
  found_.erase(found_order_.front());
  found_order_.pop_front();
}

// What came most often after the longest end of the text that is known.
std::vector<TokenId> TreeWalk::DraftBehind(Hypo h) const {
  const std::vector<TokenId> output = run_.TokensOf(h);
  const std::span<const TokenId> prompt = run_.prompt();
  SuffixAutomaton::Match at;
  const size_t size = prompt.size() + output.size();
  for (size_t i = size - std::min(size, kMostContext); i < size; ++i) {
    at = text_.Next(at, i < prompt.size() ? prompt[i] : output[i - prompt.size()]);
  }
  std::vector<TokenId> draft;
  while (draft.size() < draft_) {
    TokenId best = kNoToken;
    while (at.length >= kLeastContext && best == kNoToken) {
      uint32_t most = 0;
      text_.ForEachNext(at.state, [&](TokenId token, uint32_t count) {
        if (token >= 0 && count > most) best = token, most = count;
        return true;
      });
      if (best == kNoToken) at = text_.Shorter(at);
    }
    if (best == kNoToken) break;
    draft.push_back(best);
    at = text_.Next(at, best);
  }
  return draft;
}

void TreeWalk::Remember(Hypo h) {
  if (draft_ == 0) return;
  std::vector<TokenId> tokens = run_.TokensOf(h);
  tokens.insert(tokens.begin(), kBetweenTexts);
  Learn(tokens);
}

void TreeWalk::Learn(std::span<const TokenId> tokens) {
  if (text_.size() + tokens.size() + 1 > kMostLearned) return;
  for (const TokenId token : tokens) text_.Append(token);
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
  follows_ = true;
  const Result<Hypo> last = FollowToEnd(next);
  if (!last.ok()) return last.error();
  const bool complete = run_.Complete(*last);
  if (complete) run_.Offer(*last, run_.ScoreOf(*last));
  const Hypo open[] = {*last};
  Result<SearchResult> result = complete ? run_.Finish({}) : run_.Finish(open);
  if (!result.ok()) return result;
  result->steps = steps_;
  result->pauses = pauses_;
  return result;
}

Result<Hypo> TreeWalk::FollowToEnd(const std::function<Result<Hypo>(Hypo)>& next) {
  Hypo at = SearchRun::kRoot;
  while (!run_.Complete(at)) {
    const Hypo open[] = {at};
    if (Status status = Ask(open); !status.ok()) return status.error();
    if (run_.limited()) break;
    const Result<Hypo> child = next(at);
    if (!child.ok()) return child;
    if (run_.limited() || *child == kNoHypo) break;
    ++steps_;
    at = *child;
    const TokenId token[] = {run_.at(at).token};
    if (draft_ > 0) Learn(token);
  }
  return at;
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
  const Status status = Extend(
      paths, most, [this](size_t, Hypo h) { return Greedy(h); }, [](Hypo) { return false; });
  if (!follows_) {
    for (const Hypo h : paths) Remember(h);
  }
  return status;
}

}  // namespace pawl
