// While a device verifies the trees, the processor drafts on (PEARL, arXiv 2408.11850; DuoDecoding,
// arXiv 2503.00784; SpecBranch, arXiv 2506.01979).
//
// A draft model goes on behind the two likeliest leaves of a tree, as if all drafts up to there
// were right: it guesses the token that the call will draw there, then the one behind it, and so
// on. The likeliest place comes first, over all outputs, as in the heap. Where the output comes by,
// the logits are there when the next tree asks for them, and no call is made. Elsewhere they are
// dropped: the draft model's keys and values step back to what it has in common with the output.
//
// A tree then needs one call of the draft model at most before the device can begin, and none where
// the guess was right. Further calls are made in front only where a draft is worth twice their
// time.
#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "src/decode/draft/drafter.h"

namespace pawl {
namespace {

constexpr int kMostStepsBehind = 8;       // a leaf
constexpr size_t kMostTokensBehind = 64;  // a root
constexpr float kLeastChanceBehind = 0.01f;
constexpr double kNewestLateCall = 1.0 / 16;

// The token that the mask allows, where it is the only one.
TokenId OnlyToken(const Mask* mask) {
  if (mask == nullptr || mask->count() != 1) return kNoToken;
  const auto words = mask->words();
  const auto word = std::ranges::find_if(words, [](uint32_t bits) { return bits != 0; });
  if (word == words.end()) return kNoToken;
  return static_cast<TokenId>((word - words.begin()) * 32) + std::countr_zero(*word);
}

}  // namespace

void Drafter::BeginAhead(const DraftTask& task) {
  const RequestDrafts& request = *task.request;
  const std::vector<DraftNode>& nodes = request.tree.nodes;
  if (nodes.empty()) return;
  std::vector<bool> inner(nodes.size(), false);
  for (size_t i = 1; i < nodes.size(); ++i) inner[static_cast<size_t>(nodes[i].parent)] = true;
  std::vector<size_t> leaves;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!inner[i] && nodes[i].legal) leaves.push_back(i);
  }
  std::ranges::stable_sort(leaves, std::greater(), [&](size_t i) { return nodes[i].chance; });
  if (leaves.size() > kForeseenLeaves) {
    leaves.erase(leaves.begin() + kForeseenLeaves, leaves.end());
  }
  for (size_t nth = 0; nth < leaves.size(); ++nth) {
    const DraftNode& leaf = nodes[leaves[nth]];
    std::vector<TokenId> path;
    for (size_t i = leaves[nth]; i > 0; i = static_cast<size_t>(nodes[i].parent)) {
      path.push_back(nodes[i].token);
    }
    std::ranges::reverse(path);
    for (size_t s = 0; s < request.followers_.size(); ++s) {
      if (!request.followers_[s]->foresees()) continue;
      ahead_.push_back({.chance = leaf.chance,
                        .task = &task,
                        .source = s,
                        .nth = static_cast<int>(nth),
                        .depth = leaf.depth,
                        .path = path,
                        .at = leaf.at,
                        .mask = leaf.mask});
    }
  }
}

bool Drafter::Lengthen(Ahead& ahead, TokenId token) const {
  if (IsEnd(token)) return false;
  if (ahead.at != nullptr) {
    ahead.at = ahead.at->Next(token);
    if (ahead.at == nullptr) return false;
    ahead.mask = ahead.at->mask();
  }
  ahead.path.push_back(token);
  // The last token of the budget has no draft behind it.
  return ++ahead.depth < ahead.task->most_depth && ahead.path.size() < kMostTokensBehind;
}

bool Drafter::GoOnAt(Ahead& ahead) {
  if (const TokenId only = OnlyToken(ahead.mask.get()); only != kNoToken) {
    return Lengthen(ahead, only);
  }
  const DraftTask& task = *ahead.task;
  DraftPlace place;
  place.tokens = task.tokens;
  place.prompt = task.prompt;
  place.path = ahead.path;
  place.at = ahead.at.get();
  place.mask = ahead.mask.get();
  place.filtered = setting_.options.filter;
  if (task.target.model != nullptr) place.target = &task.target;
  proposed_.clear();
  const auto begin = std::chrono::steady_clock::now();
  DraftSession& follower = *task.request->followers_[ahead.source];
  const int64_t before = follower.calls().late;
  follower.Foresee(place, ahead.nth, proposed_);
  if (follower.calls().late > before) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    late_seconds_ += (seconds - late_seconds_) *
                     std::max(kNewestLateCall, 1.0 / static_cast<double>(++late_calls_));
  }
  if (proposed_.empty() || ++ahead.steps >= kMostStepsBehind) return false;
  ahead.chance *= ChanceOf(ahead.source, proposed_[0]);
  return Lengthen(ahead, proposed_[0].token);
}

void Drafter::GoOn(std::span<const DraftTask> tasks, const std::function<bool(double)>& has_time) {
  ahead_.clear();
  for (const DraftTask& task : tasks) BeginAhead(task);
  while (!ahead_.empty()) {
    const auto likeliest = std::ranges::max_element(ahead_, {}, &Ahead::chance);
    if (likeliest->chance < kLeastChanceBehind || !has_time(late_seconds_)) break;
    if (GoOnAt(*likeliest)) continue;
    std::swap(*likeliest, ahead_.back());
    ahead_.pop_back();
  }
  ahead_.clear();
}

}  // namespace pawl
