// Hypothesis: a beginning of an output that a search looks at; RankedTokens: what may follow it.
#ifndef PAWL_SRC_DECODE_SEARCH_HYPOTHESIS_H_
#define PAWL_SRC_DECODE_SEARCH_HYPOTHESIS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "pawl/vocabulary.h"
#include "src/decode/constraint.h"
#include "src/decode/sampling/step_law.h"

namespace pawl {

// A number of a search; parents have smaller ones.
using Hypo = int32_t;
inline constexpr Hypo kNoHypo = -1;

// What may follow, and the normaliser: the logit of a token is its log_mass plus this.
struct SearchLaw {
  std::vector<Candidate> allowed;
  double normaliser = 0;
};

// The tokens that may follow a hypothesis, the best first, the lower token among equals. Sorted as
// far as it is asked for.
class RankedTokens {
 public:
  struct Item {
    TokenId token;
    double log_mass;
    double score;  // log_mass with penalties
  };

  RankedTokens() = default;
  explicit RankedTokens(const SearchLaw& law) : normaliser_(law.normaliser) {
    items_.reserve(law.allowed.size());
    for (const Candidate& c : law.allowed) items_.push_back({c.token, c.log_mass, c.log_mass});
  }
  // The model's logit of an item.
  float LogitOf(const Item& item) const { return static_cast<float>(item.log_mass + normaliser_); }
  // Keeps the best ones only.
  void Trim(size_t most) {
    if (items_.size() <= most) return;
    cut_ = std::max(cut_, most > 0 ? At(most - 1).log_mass : kNoCut);
    items_.resize(most);
    items_.shrink_to_fit();
    sorted_ = std::min(sorted_, most);
  }
  // Whether the i-th of all tokens is At(i), or there is none. After Trim it may be one that has
  // gone. REQUIRES: scores are at most log_masses.
  bool Knows(size_t i) { return cut_ == kNoCut || (i < items_.size() && At(i).score >= cut_); }
  // Behind all others; nothing where it is one of them.
  void AddLast(const Item& item) {
    if (std::ranges::find(items_, item.token, &Item::token) == items_.end()) items_.push_back(item);
  }
  size_t size() const { return items_.size(); }
  const Item& At(size_t i) {
    if (i >= sorted_) Sort(i);
    return items_[i];
  }
  const std::vector<Item>& items() const { return items_; }
  // The token; nullptr: it may not follow. To be called before At, while tokens are ascending.
  const Item* Find(TokenId token) const {
    const auto at = std::ranges::lower_bound(items_, token, {}, &Item::token);
    return at != items_.end() && at->token == token ? &*at : nullptr;
  }
  // To be called before At.
  template <typename Score>
  void Rescore(const Score& score_of) {
    for (Item& item : items_) item.score = score_of(item);
    sorted_ = 0;
  }

 private:
  void Sort(size_t i) {
    const size_t end = std::min(items_.size(), std::max({i + 1, 2 * sorted_, size_t{32}}));
    const auto at = [&](size_t n) { return items_.begin() + static_cast<ptrdiff_t>(n); };
    std::partial_sort(at(sorted_), at(end), items_.end(), [](const Item& a, const Item& b) {
      return a.score > b.score || (a.score == b.score && a.token < b.token);
    });
    sorted_ = end;
  }

  static constexpr double kNoCut = -std::numeric_limits<double>::infinity();
  std::vector<Item> items_;
  double normaliser_ = 0;
  double cut_ = kNoCut;  // no token that has gone has more
  size_t sorted_ = 0;
};

// Tokens that the constraint dictates behind a hypothesis, whose rows have run in one call.
struct ForcedRun {
  std::vector<TokenId> tokens;
  std::vector<double> log_masses;
  RankedTokens law;  // behind the last one
};

struct Hypothesis {
  Hypo parent = kNoHypo;
  TokenId token = kNoToken;
  int32_t length = 0;  // tokens, the end token counted
  bool ended = false;  // by the end token
  // Candidates that did not leave room for a completion. After kMostRefused of them only
  // `closing_token` may follow.
  static constexpr int kMostRefused = 64;
  int16_t refused = 0;
  TokenId closing_token = kNoToken;
  // Complete outputs behind it that were refused. After kMostRefusedOutputs of them no more is
  // asked about: each may take a process and seconds.
  static constexpr int kMostRefusedOutputs = 32;
  int16_t refused_outputs = 0;
  double log_probability = 0;  // of all its tokens
  double critic = 0;
  uint64_t text_hash = 1;
  uint32_t text_size = 0;
  std::shared_ptr<const LoopConstraint> at;  // nullptr: no constraint, or dropped
  std::shared_ptr<const ForcedRun> run;      // that it is in
  uint32_t run_at = 0;                       // so many of its tokens are taken
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SEARCH_HYPOTHESIS_H_
