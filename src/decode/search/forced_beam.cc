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
//
// Few beams may all come to places where a phrase has no room any more. Where so no output has all
// phrases, a path to one is looked for without the model (phrase_plan.h). If there is one, the
// search runs once more, and each of its beams has such a path: that of the beam before it, or
// another one. So at least one beam stays in the fullest bank that can be reached.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "src/decode/search/phrase_plan.h"
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
    live_ = {{SearchRun::kRoot, ForcedPhrases::kStart, {}}};
    if (Status status = Steps(); !status.ok()) return status.error();
    if (run_.found().empty() && !run_.limited() && FindPath()) {
      if (Status status = Steps(); !status.ok()) return status.error();
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
    Result<std::optional<SearchOutput>> along = ClosedAlongAPath();
    if (!along.ok()) return along.error();
    Result<SearchResult> result = run_.Finish(open);
    if (!result.ok()) return result;
    if (*along) {
      result->outputs.insert(result->outputs.begin(), **std::move(along));
      result->outputs.resize(
          std::min(result->outputs.size(), static_cast<size_t>(run_.options().n)));
    }
    for (SearchOutput& output : result->outputs) {
      output.missing_phrases = phrases_.Missing(output.text);
    }
    return result;
  }

 private:
  struct PhraseBeam {
    Hypo h;
    int32_t state;
    std::vector<TokenId> path;  // on which the goal is met; empty: it is
  };
  struct Candidate {
    double score;
    size_t beam;
    RankedTokens::Item item;
    int32_t state;
    bool ends;   // the output
    bool first;  // of its bank: a part of an escape of the phrase under path
  };
  struct Lacking {
    Hypo h;
    double score;
    size_t met;
  };

  // Of looking for paths: for the first, and for all others.
  static constexpr int64_t kEffort = 200000;

  Status Steps() {
    while (!live_.empty() && !Done()) {
      std::vector<Hypo> open;
      for (const PhraseBeam& beam : live_) open.push_back(beam.h);
      banks_.assign(static_cast<size_t>(phrases_.total()) + 1, {});
      SearchRun::LawOptions options;
      options.most_items = SearchRun::kMostItems;
      options.seen = [&](size_t beam, RankedTokens& law) { AddCandidates(beam, law); };
      Result<std::vector<RankedTokens>> laws = run_.Laws(open, options);
      if (!laws.ok()) return laws.error();
      if (run_.limited()) return {};
      if (Status status = Step(*laws); !status.ok() || run_.limited()) return status;
    }
    return {};
  }

  // Begins again with a path on which all phrases are met, or more than in any output so far.
  bool FindPath() {
    plan_.emplace(run_, phrases_, kEffort);
    size_t met = 0;
    for (const Lacking& one : lacking_) met = std::max(met, one.met);
    std::optional<PhrasePlan::Path> path =
        plan_->Find(run_.at(SearchRun::kRoot), ForcedPhrases::kStart, phrases_.count());
    if (!path || path->met <= met) return false;
    goal_ = path->met;
    plan_.emplace(run_, phrases_, kEffort);
    live_ = {{SearchRun::kRoot, ForcedPhrases::kStart, std::move(path->tokens)}};
    return true;
  }

  // At a limit without an output that has all phrases: that along a path, where there is one.
  // Checks would have to judge it.
  Result<std::optional<SearchOutput>> ClosedAlongAPath() {
    if (!run_.limited() || all_met_ || !run_.task().checks.empty()) {
      return std::optional<SearchOutput>();
    }
    std::ranges::stable_sort(live_, std::ranges::greater(),
                             [&](const PhraseBeam& beam) { return phrases_.progress(beam.state); });
    live_.push_back({SearchRun::kRoot, ForcedPhrases::kStart, {}});
    plan_.emplace(run_, phrases_, kEffort);
    for (const PhraseBeam& beam : live_) {
      const Hypothesis& from = run_.at(beam.h);
      if (run_.task().constraint != nullptr && from.at == nullptr) continue;
      const std::optional<PhrasePlan::Path> path = plan_->Find(from, beam.state, phrases_.count());
      if (!path || path->met < phrases_.count()) continue;
      Result<SearchOutput> closed = run_.Closed(beam.h, path->tokens);
      if (!closed.ok()) return closed.error();
      return std::optional<SearchOutput>(*std::move(closed));
    }
    return std::optional<SearchOutput>();
  }

  // The path behind a child of this beam; nullopt: none was found.
  std::optional<std::vector<TokenId>> PathTo(const PhraseBeam& from, Hypo child, TokenId token,
                                             int32_t state) {
    if (goal_ == 0 || phrases_.met_count(state) >= goal_) return std::vector<TokenId>();
    if (run_.Complete(child)) return std::nullopt;
    if (!from.path.empty() && from.path[0] == token) {
      return std::vector<TokenId>(from.path.begin() + 1, from.path.end());
    }
    if (plan_->spent()) return std::nullopt;
    std::optional<PhrasePlan::Path> path = plan_->Find(run_.at(child), state, goal_);
    if (!path || path->met < goal_) return std::nullopt;
    return std::move(path->tokens);
  }

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

  void AddCandidates(size_t beam, RankedTokens& law) {
    const PhraseBeam& from = live_[beam];
    std::set<TokenId> taken;
    const auto add = [&](const RankedTokens::Item& item, bool goes_on = false) {
      if (!taken.insert(item.token).second) return;
      const bool ends = run_.IsEnd(from.h, item.token);
      const int32_t state =
          ends ? from.state : phrases_.After(from.state, run_.task().BytesOf(item.token));
      banks_[static_cast<size_t>(phrases_.progress(state))].push_back(
          {ScoreOf(from.h) + item.score, beam, item, state, ends,
           goes_on && phrases_.in_escape(state)});
    };
    // Found before the law is sorted.
    const auto find = [&](TokenId token, std::vector<RankedTokens::Item>& items) {
      const RankedTokens::Item* const item = law.Find(token);
      if (item != nullptr) items.push_back(*item);
    };
    // What goes on with the phrase under path always counts, and so does the path.
    std::vector<RankedTokens::Item> always, forward;
    if (!from.path.empty()) find(from.path[0], always);
    const std::vector<TokenId>& advancing = phrases_.Advancing(from.state);
    const size_t going_on = phrases_.going_on(from.state);
    for (size_t i = 0; i < advancing.size(); ++i)
      find(advancing[i], i < going_on ? always : forward);
    std::ranges::stable_sort(forward, std::ranges::greater(), &RankedTokens::Item::score);
    const size_t room = width_ > always.size() ? width_ - always.size() : 0;
    if (forward.size() > room) forward.resize(room);
    for (const RankedTokens::Item& item : always) add(item, true);
    for (const RankedTokens::Item& item : forward) add(item);
    for (size_t i = 0; i < std::min(law.size(), width_); ++i) add(law.At(i));
  }

  // How many beams each bank gets.
  std::vector<size_t> Allocate() const {
    std::vector<size_t> sizes(banks_.size(), width_ / banks_.size());
    sizes.back() += width_ % banks_.size();
    size_t over = 0;
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t b = banks_.size(); b-- > 0;) {
        const size_t open =
            std::ranges::count_if(banks_[b], [](const Candidate& one) { return !one.ends; });
        const size_t wanted = sizes[b] + over;
        sizes[b] = std::min(wanted, open);
        over = wanted - sizes[b];
      }
    }
    return sizes;
  }

  // The best first. A part of an escape has the bank of what stands before it, and the best one of
  // them leads there.
  void SortBanks() {
    for (std::vector<Candidate>& bank : banks_) {
      std::ranges::stable_sort(bank, [](const Candidate& a, const Candidate& b) {
        return a.score != b.score
                   ? a.score > b.score
                   : std::pair(a.beam, a.item.token) < std::pair(b.beam, b.item.token);
      });
      const auto escape = std::ranges::find(bank, true, &Candidate::first);
      if (escape != bank.end()) std::rotate(bank.begin(), escape, escape + 1);
    }
  }

  Status Step(std::vector<RankedTokens>& laws) {
    SortBanks();
    const std::vector<size_t> sizes = Allocate();
    next_.clear();
    SearchRun::Seen seen;
    completed_ = false;
    size_t over = 0;  // places that the banks above could not fill
    for (size_t b = banks_.size(); b-- > 0;) {
      const size_t places = sizes[b] + over;
      size_t taken = 0, rank = 0;
      for (const Candidate& one : banks_[b]) {
        if (run_.limited()) return {};
        // Ends come among the best of their bank, as many as there are beams.
        if (one.ends ? rank++ >= width_ : taken >= places) continue;
        const Result<bool> kept = Take(one.beam, one.item, one.state, &seen);
        if (!kept.ok()) return kept.error();
        taken += *kept && !one.ends ? 1 : 0;
      }
      over = places - std::min(places, taken);
    }
    if (next_.empty() && !completed_) {
      if (Status status = TakeOthers(laws); !status.ok()) return status;
    }
    for (const PhraseBeam& beam : live_) {
      if (beam.h != SearchRun::kRoot) run_.Drop(beam.h);
    }
    live_ = std::move(next_);
    return {};
  }

  // Makes the child a beam, or an output. false: it may not be, or is there already.
  Result<bool> Take(size_t beam, const RankedTokens::Item& item, int32_t state,
                    SearchRun::Seen* seen) {
    const Result<Hypo> child = run_.Child(live_[beam].h, item);
    if (!child.ok()) return child.error();
    if (*child == kNoHypo) return false;
    std::optional<std::vector<TokenId>> path = PathTo(live_[beam], *child, item.token, state);
    if (!path || (seen != nullptr && !run_.IsNew(*child, *seen))) {
      run_.Drop(*child);
      return false;
    }
    if (run_.Complete(*child)) {
      completed_ = true;
      Complete(*child, state);
    } else {
      next_.push_back({*child, state, *std::move(path)});
    }
    return true;
  }

  // None of the best tokens leaves room for the closing: of each beam the best token that does.
  Status TakeOthers(std::vector<RankedTokens>& laws) {
    for (size_t beam = 0; beam < laws.size(); ++beam) {
      const PhraseBeam from = live_[beam];
      for (size_t i = width_;; ++i) {
        if (!laws[beam].Knows(i)) {
          Result<RankedTokens> whole = run_.WholeLaw(from.h);
          if (!whole.ok()) return whole.error();
          laws[beam] = *std::move(whole);
        }
        if (run_.limited()) return {};
        if (i >= laws[beam].size()) break;
        const RankedTokens::Item item = laws[beam].At(i);
        const bool ends = run_.IsEnd(from.h, item.token);
        const int32_t state =
            ends ? from.state : phrases_.After(from.state, run_.task().BytesOf(item.token));
        const Result<bool> kept = Take(beam, item, state, nullptr);
        if (!kept.ok()) return kept.error();
        if (*kept) break;
      }
    }
    return {};
  }

  void Complete(Hypo h, int32_t state) {
    const double score = run_.Ranked(ScoreOf(h), run_.at(h).length);
    if (phrases_.all_met(state)) {
      all_met_ = true;
      return run_.Offer(h, score);
    }
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
  std::vector<PhraseBeam> live_, next_;
  std::vector<std::vector<Candidate>> banks_;  // of a step
  bool completed_ = false;                     // an output, at this step
  bool all_met_ = false;                       // by an output
  std::vector<Lacking> lacking_;
  std::optional<PhrasePlan> plan_;
  size_t goal_ = 0;  // phrases that the paths of beams meet; 0: beams have none
};

}  // namespace

Result<SearchResult> SearchForcedBeam(SearchRun& run) { return ForcedBeam(run).Go(); }

}  // namespace pawl
