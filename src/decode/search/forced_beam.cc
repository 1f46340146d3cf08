// Forced phrases by a beam with banks: dynamic beam allocation (Post and Vilar, arXiv 1804.06609).
// The cost of a step does not depend on the number of phrases.
//
// A step. Candidates are, of all beams, the `width` best tokens of each, and the tokens that bring
// a phrase on, at most `width` of them for each beam. The bank of a candidate is the number of
// tokens of phrases that it has (phrases.h). Each bank has an equal share of the beam; what a bank
// cannot fill goes to the bank below it. So beams with few and with many of the phrases go on at
// the same time, and scores are compared within a bank only.
//
// An output that lacks a phrase is kept as well, and is an answer only where none has all of them.
// The constraint has the last word: a phrase that it does not allow at a place is no candidate.
#include <algorithm>
#include <set>
#include <utility>

#include "src/decode/search/phrases.h"
#include "src/decode/search/strategy.h"

namespace pawl {
namespace {

class ForcedBeam {
 public:
  explicit ForcedBeam(SearchRun& run)
      : run_(run),
        width_(static_cast<size_t>(run.options().num_beams)),
        phrases_(
            run.options().force_phrases, run.options().force_ordered, run.options().force_in,
            [&run](std::string_view text) { return run.Spell(text); },
            [&run](TokenId token) { return run.task().BytesOf(token).size(); }) {}

  Result<SearchResult> Go() {
    run_.SetMost(width_);
    live_ = {{SearchRun::kRoot, ForcedPhrases::kStart}};
    while (!live_.empty() && !Done()) {
      std::vector<Hypo> open;
      for (const PhraseBeam& beam : live_) open.push_back(beam.h);
      Result<std::vector<RankedTokens>> laws = run_.Laws(open);
      if (!laws.ok()) return laws.error();
      if (run_.limited()) break;
      if (Status status = Step(*laws); !status.ok()) return status.error();
      if (run_.limited()) break;
    }
    // Outputs that lack a phrase, where there are no others.
    if (run_.found().empty()) {
      std::ranges::stable_sort(lacking_, std::ranges::greater(), &Lacking::met);
      for (const Lacking& one : lacking_) {
        if (one.met == lacking_.front().met) run_.Offer(one.h, one.score);
      }
    }
    std::vector<Hypo> open;
    for (const PhraseBeam& beam : live_) open.push_back(beam.h);
    Result<SearchResult> result = run_.Finish(open);
    if (!result.ok()) return result;
    for (SearchOutput& output : result->outputs) {
      output.missing_phrases = phrases_.Missing(output.text);
    }
    return result;
  }

 private:
  struct PhraseBeam {
    Hypo h;
    int32_t state;
  };
  struct Candidate {
    double score;
    size_t beam;
    RankedTokens::Item item;
    int32_t state;
    bool ends;  // the output
  };
  struct Lacking {
    Hypo h;
    double score;
    size_t met;
  };

  double ScoreOf(Hypo h) const { return run_.at(h).log_probability + run_.at(h).critic; }

  bool Done() const {
    const auto& found = run_.found();
    if (found.size() < width_) return false;
    if (run_.options().early_stopping == EarlyStopping::kTrue) return true;
    double best = kNoMass;
    for (const PhraseBeam& beam : live_) {
      const bool longest = run_.options().early_stopping == EarlyStopping::kNever &&
                           run_.options().length_penalty > 0;
      const int length = longest ? run_.longest() : run_.at(beam.h).length;
      best = std::max(best, run_.Ranked(ScoreOf(beam.h), length));
    }
    return best <= found.back().score;
  }

  void AddCandidates(size_t beam, RankedTokens& law, std::vector<std::vector<Candidate>>& banks) {
    const PhraseBeam& from = live_[beam];
    std::set<TokenId> taken;
    const auto add = [&](const RankedTokens::Item& item) {
      if (!taken.insert(item.token).second) return;
      const bool ends = run_.IsEnd(from.h, item.token);
      const int32_t state =
          ends ? from.state : phrases_.After(from.state, run_.task().BytesOf(item.token));
      banks[static_cast<size_t>(phrases_.progress(state))].push_back(
          {ScoreOf(from.h) + item.score, beam, item, state, ends});
    };
    // Found before the law is sorted.
    std::vector<RankedTokens::Item> forward;
    size_t goes_on = 0;  // 1: the first one goes on with the phrase under way, and always counts
    for (const TokenId token : phrases_.Advancing(from.state)) {
      const RankedTokens::Item* const item = law.Find(token);
      if (item == nullptr) continue;
      if (token == phrases_.GoingOn(from.state)) goes_on = 1;
      forward.push_back(*item);
    }
    std::stable_sort(forward.begin() + static_cast<ptrdiff_t>(goes_on), forward.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
    if (forward.size() > width_) forward.resize(width_);
    for (const RankedTokens::Item& item : forward) add(item);
    for (size_t i = 0; i < std::min(law.size(), width_); ++i) add(law.At(i));
  }

  // How many beams each bank gets.
  std::vector<size_t> Allocate(const std::vector<std::vector<Candidate>>& banks) const {
    std::vector<size_t> sizes(banks.size(), width_ / banks.size());
    sizes.back() += width_ % banks.size();
    size_t over = 0;
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t b = banks.size(); b-- > 0;) {
        const size_t open =
            std::ranges::count_if(banks[b], [](const Candidate& one) { return !one.ends; });
        const size_t wanted = sizes[b] + over;
        sizes[b] = std::min(wanted, open);
        over = wanted - sizes[b];
      }
    }
    return sizes;
  }

  Status Step(std::vector<RankedTokens>& laws) {
    std::vector<std::vector<Candidate>> banks(static_cast<size_t>(phrases_.total()) + 1);
    for (size_t beam = 0; beam < laws.size(); ++beam) AddCandidates(beam, laws[beam], banks);
    for (std::vector<Candidate>& bank : banks) {
      std::ranges::stable_sort(bank, [](const Candidate& a, const Candidate& b) {
        return a.score != b.score
                   ? a.score > b.score
                   : std::pair(a.beam, a.item.token) < std::pair(b.beam, b.item.token);
      });
    }
    const std::vector<size_t> sizes = Allocate(banks);
    std::vector<PhraseBeam> next;
    SearchRun::Seen seen;
    bool completed = false;
    for (size_t b = banks.size(); b-- > 0;) {
      size_t taken = 0, rank = 0;
      for (const Candidate& one : banks[b]) {
        if (run_.limited()) return {};
        // Ends come among the best of their bank, as many as there are beams.
        if (one.ends ? rank++ >= width_ : taken >= sizes[b]) continue;
        const Result<Hypo> child = run_.Child(live_[one.beam].h, one.item);
        if (!child.ok()) return child.error();
        if (*child == kNoHypo) continue;
        if (!run_.IsNew(*child, seen)) {
          run_.Drop(*child);
          continue;
        }
        completed |= run_.Complete(*child);
        Keep(*child, one.state, next);
        taken += one.ends ? 0 : 1;
      }
    }
    if (next.empty() && !completed) {
      if (Status status = TakeOthers(laws, next); !status.ok()) return status;
    }
    for (const PhraseBeam& beam : live_) run_.Drop(beam.h);
    live_ = std::move(next);
    return {};
  }

  void Keep(Hypo child, int32_t state, std::vector<PhraseBeam>& next) {
    if (run_.Complete(child)) return Complete(child, state);
    next.push_back({child, state});
  }

  // None of the best tokens leaves room for the closing: of each beam the best token that does.
  Status TakeOthers(std::vector<RankedTokens>& laws, std::vector<PhraseBeam>& next) {
    for (size_t beam = 0; beam < laws.size(); ++beam) {
      const PhraseBeam from = live_[beam];
      for (size_t i = width_; i < laws[beam].size(); ++i) {
        if (run_.limited()) return {};
        const RankedTokens::Item& item = laws[beam].At(i);
        const bool ends = run_.IsEnd(from.h, item.token);
        const Result<Hypo> child = run_.Child(from.h, item);
        if (!child.ok()) return child.error();
        if (*child == kNoHypo) continue;
        Keep(*child,
             ends ? from.state : phrases_.After(from.state, run_.task().BytesOf(item.token)), next);
        break;
      }
    }
    return {};
  }

  void Complete(Hypo h, int32_t state) {
    const double score = run_.Ranked(ScoreOf(h), run_.at(h).length);
    if (phrases_.all_met(state)) return run_.Offer(h, score);
    lacking_.push_back({h, score, phrases_.met_count(state)});
    if (lacking_.size() < 4 * width_) return;
    std::ranges::stable_sort(lacking_, [](const Lacking& a, const Lacking& b) {
      return a.met != b.met ? a.met > b.met : a.score > b.score;
    });
    lacking_.resize(width_);
  }

  SearchRun& run_;
  const size_t width_;
  ForcedPhrases phrases_;
  std::vector<PhraseBeam> live_;
  std::vector<Lacking> lacking_;
};

}  // namespace

Result<SearchResult> SearchForcedBeam(SearchRun& run) { return ForcedBeam(run).Go(); }

}  // namespace pawl
