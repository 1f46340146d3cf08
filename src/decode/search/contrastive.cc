// Contrastive search (arXiv 2202.06417): of the most probable tokens the one with the largest
//
//   (1 - alpha) * p(token) - alpha * (the largest cosine of its state with that of an earlier
//   token)
//
// The state of a token is what the model's head reads behind it, of the prompt's tokens as well. So
// a candidate that would say again what stands there loses. Each candidate takes a row, and the row
// of the one that is chosen gives the next law.
//
// p is among the tokens that may follow. Where one token may follow, it is taken without a
// comparison.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/decode/search/strategy.h"
#include "src/decode/search/tree_walk.h"

namespace pawl {
namespace {

class Contrastive {
 public:
  explicit Contrastive(SearchRun& run)
      : run_(run),
        walk_(run, TreeWalk::kWholeLaws),
        alpha_(run.Argument("penalty_alpha", 0.6)),
        most_(static_cast<size_t>(run.Argument("top_k", 4))) {}

  Result<SearchResult> Go() {
    return walk_.Follow([this](Hypo h) -> Result<Hypo> {
      if (alpha_ > 0) Remember(h);
      return alpha_ == 0 || walk_.LawOf(h).size() < 2 ? walk_.Greedy(h) : Choose(h);
    });
  }

 private:
  // The state of the last token, or of all tokens of the prompt, as unit vectors.
  void Remember(Hypo h) {
    const std::span<const float> states = run_.StatesOf(h);
    const size_t hidden = static_cast<size_t>(run_.task().model->hidden);
    for (size_t at = 0; at + hidden <= states.size(); at += hidden) {
      seen_.push_back(Unit(states.subspan(at, hidden)));
    }
  }
  static std::vector<double> Unit(std::span<const float> state) {
    std::vector<double> out(state.begin(), state.end());
    double sum = 0;
    for (const double x : out) sum += x * x;
    if (sum > 0) {
      for (double& x : out) x /= std::sqrt(sum);
    }
    return out;
  }

  Result<Hypo> Choose(Hypo from) {
    double mass = 0;
    for (const RankedTokens::Item& item : walk_.LawOf(from).items()) {
      mass += std::exp(item.log_mass);
    }
    std::vector<Hypo> children;
    for (size_t i = 0; i < walk_.LawOf(from).size() && children.size() < most_; ++i) {
      const Result<Hypo> child = walk_.ChildAt(from, i);
      if (!child.ok() || run_.limited()) return child;
      if (*child != kNoHypo) children.push_back(*child);
    }
    if (children.size() < 2) return children.empty() ? kNoHypo : children[0];
    if (Status status = walk_.Ask(children); !status.ok()) return status.error();
    // Those that the budget ends have a state, too.
    std::vector<Hypo> last;
    for (const Hypo child : children) {
      if (run_.Complete(child) && !run_.at(child).ended) last.push_back(child);
    }
    const auto laws = run_.Laws(last);
    if (!laws.ok()) return laws.error();
    if (run_.limited()) return kNoHypo;
    Hypo best = kNoHypo;
    double most = -std::numeric_limits<double>::infinity();
    for (const Hypo child : children) {
      const double p =
          std::exp(run_.at(child).log_probability - run_.at(from).log_probability) / mass;
      const double score = (1 - alpha_) * p - alpha_ * LikenessOf(child);
      if (best != kNoHypo && score <= most) continue;
      best = child;
      most = score;
    }
    return best;
  }

  // An end has no row, and is like nothing.
  double LikenessOf(Hypo h) const {
    if (run_.at(h).ended) return 0;
    const std::vector<double> state = Unit(run_.StatesOf(h));
    double most = -1;
    for (const std::vector<double>& other : seen_) {
      double product = 0;
      for (size_t i = 0; i < state.size(); ++i) product += state[i] * other[i];
      most = std::max(most, product);
    }
    return most;
  }

  SearchRun& run_;
  TreeWalk walk_;
  const double alpha_;
  const size_t most_;
  std::vector<std::vector<double>> seen_;
};

}  // namespace

Result<SearchResult> SearchContrastive(SearchRun& run) { return Contrastive(run).Go(); }

}  // namespace pawl
