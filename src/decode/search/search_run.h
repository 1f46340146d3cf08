// SearchRun: the hypotheses of a search, their laws, and the outputs that it has found. Strategies
// (strategy.h) decide which hypotheses go on.
//
//   SearchRun run(setting);
//   Status status = run.Start();
//   Result<std::vector<RankedTokens>> laws = run.Laws(open);     // one call of the model, mostly
//   if (run.limited()) ...
//   Result<Hypo> child = run.Child(open[0], (*laws)[0].At(0));   // kNoHypo: it may not be
//   run.Offer(*child, score);                                    // a complete output
//
// Hypotheses share pages: each law that is asked for runs on a branch (sampling/branches.h), which
// a child takes over from its parent. A hypothesis whose branch has gone gets another one, with the
// pages that the model still has of its beginning.
#ifndef PAWL_SRC_DECODE_SEARCH_SEARCH_RUN_H_
#define PAWL_SRC_DECODE_SEARCH_SEARCH_RUN_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/result.h"
#include "pawl/sampling.h"
#include "src/decode/sampling/branches.h"
#include "src/decode/sampling/output_so_far.h"
#include "src/decode/search/hypothesis.h"

namespace pawl {

// What a search runs on. All must outlive it.
struct SearchSetting {
  Model& model;
  const Encoder& encode;  // may be an empty function
  std::vector<TokenId> prompt;
  SamplingTask task;
  const SearchOptions& options;
  int capacity = 0;  // positions of a sequence
  // The tokens of SearchOptions::contrast_prompt.
  std::optional<std::vector<TokenId>> contrast = {};
  int contrast_capacity = 0;
  BranchHost* host = nullptr;  // nullptr: the model by itself
  // A token that ends an output as an end token does; kNoToken: none.
  TokenId also_ends = kNoToken;
  bool states = false;  // SearchRun::StatesOf is known
  bool cuts = false;    // as in SearchInput
};

class SearchRun {
 public:
  static constexpr Hypo kRoot = 0;

  explicit SearchRun(const SearchSetting& setting);

  const SearchOptions& options() const { return s_.options; }
  // Of SearchOptions::arguments, or the default.
  double Argument(std::string_view name, double otherwise) const;

  // Computes the prompt. Errors: kLimit with "max_tokens" as place where no output fits.
  Status Start();
  // Old branches stay for hypotheses that are asked about again; at first they do not.
  void KeepBranches() { keeps_ = true; }
  // Checks do not refuse ends: Accepts asks them.
  void LeaveEndsToAccepts() { judges_ends_ = false; }
  Result<bool> Accepts(Hypo h) const;

  const Hypothesis& at(Hypo h) const { return arena_[static_cast<size_t>(h)]; }
  std::vector<TokenId> TokensOf(Hypo h) const;
  std::string TextOf(Hypo h) const;
  // Nothing may follow it: it has ended, or is cut at max_tokens.
  bool Complete(Hypo h) const;

  // What the model's head reads behind a hypothesis, after Laws; of the root that of all tokens of
  // the prompt. REQUIRES: SearchSetting::states, and no text is forced.
  std::span<const float> StatesOf(Hypo h) const {
    return h == kRoot ? branches_.prompt_states() : std::span<const float>(states_.at(h));
  }
  // Tokens that may follow a hypothesis, and the law behind each of them.
  struct Ahead {
    std::vector<TokenId> tokens;
    std::vector<RankedTokens> laws;
  };
  struct LawOptions {
    // Of each hypothesis, tokens that are likely to follow; their rows run in the same call.
    // `ahead` gets the laws behind them, as far as the constraint allows them and forces no text.
    // Not with another prompt or with states.
    std::span<const std::vector<TokenId>> drafts = {};
    std::vector<Ahead>* ahead = nullptr;
    // All laws together keep about so many tokens, each at least kLeastKept: the best ones
    // (RankedTokens::Trim). WholeLaw has the others.
    size_t most_items = std::numeric_limits<size_t>::max();
    // Called with each law as soon as it is there, before it is cut; it may take the law.
    std::function<void(size_t number, RankedTokens& law)> seen = {};
  };
  static constexpr size_t kMostItems = size_t{1} << 22;
  static constexpr size_t kLeastKept = 256;
  // The laws behind open hypotheses, in their order. Empty at a limit. Errors: those of the model.
  Result<std::vector<RankedTokens>> Laws(std::span<const Hypo> of) { return Laws(of, {}); }
  Result<std::vector<RankedTokens>> Laws(std::span<const Hypo> of, const LawOptions& options);
  // With all tokens that may follow; its row runs again. Empty at a limit.
  Result<RankedTokens> WholeLaw(Hypo h);
  bool MayLookAhead() const { return !others_ && !s_.states; }
  std::span<const TokenId> prompt() const { return s_.prompt; }
  // The laws behind hypotheses of one length, all from one row that reads their last tokens with
  // these weights. REQUIRES: the last call had the hypotheses that they come from; no text is
  // forced, and there is no other prompt. Empty at a limit.
  Result<std::vector<RankedTokens>> MixedLaws(std::span<const Hypo> of,
                                              std::span<const double> weights);
  // The hypothesis with this token behind it; kNoHypo where no completion would fit the budget, or
  // where checks refuse it. Errors: those of checks and critics.
  Result<Hypo> Child(Hypo parent, const RankedTokens::Item& item);
  // It is not expanded any more.
  void Drop(Hypo h);
  // One hypothesis for each text and constraint's key: false where there was one in `seen`. Always
  // true where spellings are not merged.
  using Seen = std::unordered_multimap<uint64_t, Hypo>;
  bool IsNew(Hypo h, Seen& seen) const;

  // A complete output that was found. Keeps the best `most` (SetMost).
  void Offer(Hypo h, double score);
  void SetMost(size_t most) { most_ = most; }
  struct Found {
    Hypo h;
    double score;
  };
  const std::vector<Found>& found() const { return found_; }  // the best first

  // A limit ended the search.
  bool limited() const { return !limit_.empty(); }
  // What was found; at a limit without any output, the shortest completion of the best open one.
  Result<SearchResult> Finish(std::span<const Hypo> open);
  // A hypothesis with these tokens and the shortest completion behind it, not by the model.
  Result<SearchOutput> Closed(Hypo h, std::span<const TokenId> with = {}) const;
  SearchGraph::Node NodeOf(Hypo h) const { return {at(h).log_probability, Complete(h)}; }
  std::string EdgeText(Hypo h) const { return std::string(BytesOf(at(h).token)); }

  // log P / length^length_penalty.
  double Ranked(double log_probability, int length) const {
    return log_probability / std::pow(static_cast<double>(length), options().length_penalty);
  }
  // Of log P and the critic's score.
  double ScoreOf(Hypo h) const {
    return Ranked(at(h).log_probability + at(h).critic,
                  std::max(1, static_cast<int>(at(h).length)));
  }
  // The mean log-probability of the tokens behind `from`, which `to` goes on with.
  double MeanBehind(Hypo from, Hypo to) const {
    return (at(to).log_probability - at(from).log_probability) / (at(to).length - at(from).length);
  }
  // Outputs are complete texts of a constraint; else they are cut at the budget.
  bool closes() const { return s_.task.constraint != nullptr && !s_.cuts; }
  // The most tokens of an output, with its end token where that is counted.
  int longest() const { return s_.task.max_tokens + (closes() ? 1 : 0); }
  size_t end_count() const { return ends_.size(); }
  // Rows that have run behind the prompt, and those that ran again because a branch had lost its
  // pages, those of the prompt too.
  int64_t rows() const { return branches_.rows() + (others_ ? others_->rows() : 0) - prompt_rows_; }
  int64_t rows_left() const { return std::max<int64_t>(0, options().max_rows - rows()); }
  // A limit of the strategy has ended it.
  void EndAtLimit(std::string name) { limit_ = std::move(name); }
  int64_t nodes() const { return static_cast<int64_t>(arena_.size()); }
  const SamplingTask& task() const { return s_.task; }
  bool IsEnd(Hypo h, TokenId token) const { return IsEndAt(at(h).at.get(), token); }
  bool IsEndAt(const LoopConstraint* place, TokenId token) const;
  // The tokens that have to follow, in the tokenizer's spelling. Empty where the completion behind
  // them would not fit the budget.
  std::vector<TokenId> ForcedBehind(const Hypothesis& h) const;
  // In the tokenizer's spelling, or in the fewest tokens. Empty where no tokens spell it.
  std::vector<TokenId> Spell(std::string_view text) const;

 private:
  // Of a row, and of the same row behind the other prompt; empty: there is no other prompt.
  struct RowLogits {
    std::span<const float> own, other;
  };
  struct Slot {
    int branch = -1, other = -1;
    Hypo owner = kNoHypo;
    uint64_t used = 0;
  };
  struct Asked {
    Hypo h = kNoHypo;
    std::vector<TokenId> forced;
    size_t place = 0;  // in the answer of Laws
    std::vector<TokenId> draft = {};
    // Rows whose logits it needs; those of the prompt are there.
    int answers() const {
      return static_cast<int>(forced.size() + draft.size()) + (h == kRoot ? 0 : 1);
    }
  };

  Result<SearchLaw> LawAt(Hypo h, const LoopConstraint* at, std::span<const TokenId> behind,
                          RowLogits logits);
  RowLogits PromptLogits() const {
    return {branches_.prompt_logits(),
            others_ ? others_->prompt_logits() : std::span<const float>()};
  }
  // The logits with contrast, until the next call of this function.
  std::span<const float> Contrasted(RowLogits logits, const Mask* mask);
  // Without what the constraint's preference takes away, until the same call.
  std::span<const float> Preferred(std::span<const float> logits, const LoopConstraint* place,
                                   const Mask& mask);
  void BanRepeats(Hypo h, std::span<const TokenId> behind, std::vector<Candidate>& law) const;
  std::vector<TokenId> DraftBehind(Hypo h, std::span<const TokenId> draft) const;
  // Where the laws of a call go.
  struct LawSink {
    std::vector<RankedTokens>& laws;
    std::vector<Ahead>* ahead = nullptr;
    size_t keep = std::numeric_limits<size_t>::max();  // tokens of a law
    const std::function<void(size_t, RankedTokens&)>* seen = nullptr;
  };
  Status Ask(std::span<Asked> asked, const LawSink& sink);
  Status RunRows(std::span<const Asked> run, std::span<const int> branches,
                 std::span<const int> others);
  Status TakeLaws(const Asked& one, size_t& answer, const LawSink& sink);
  RankedTokens Kept(size_t place, RankedTokens law, const LawSink& sink) const;
  Status Place(std::span<Asked> asked, std::vector<int>& branches, std::vector<int>& others);
  size_t SlotOf(Hypo h) const;
  Result<size_t> FreeSlot();
  bool LeavesRoom(Hypo parent, TokenId token, const LoopConstraint& next, int length);
  Result<bool> ChecksAllow(Hypo parent, TokenId token, bool end) const;
  Result<std::optional<double>> Judge(Hypo made);
  SearchOutput OutputOf(Hypo h, double score) const;
  std::string_view BytesOf(TokenId token) const { return s_.task.BytesOf(token); }

  const SearchSetting s_;
  Branches branches_;
  std::optional<Branches> others_;  // behind the other prompt
  std::vector<float> contrasted_;
  std::unordered_map<Hypo, std::vector<float>> states_;
  std::vector<TokenId> ends_;
  std::shared_ptr<const Mask> ends_mask_;
  std::vector<Hypothesis> arena_;
  std::vector<Slot> slots_;
  std::unordered_map<Hypo, size_t> slot_of_;  // by owner
  size_t most_slots_ = 1;
  uint64_t now_ = 0;
  bool keeps_ = false, judges_ends_ = true;
  bool judges_outputs_ = false;  // a check or the critic may take long for a complete output
  int mixed_branch_ = -1;        // of MixedLaws
  int64_t prompt_rows_ = 0;
  std::vector<Found> found_;
  size_t most_ = 1;
  std::string limit_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SEARCH_SEARCH_RUN_H_
