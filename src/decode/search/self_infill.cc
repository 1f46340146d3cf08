// Self-infilling (Self-Infilling Code Generation, arXiv 2311.17972). A model that can fill gaps
// writes from left to right until it is uncertain. There it writes the end of the text first, then
// the middle, as for a gap of somebody else's text. What it has written so is kept up to the end of
// the middle, and the rest is written again from left to right, which is the next round.
//
// Each round gives a complete candidate: beginning, middle and end. The last one is written from
// left to right to its end. The candidate with the highest mean log-probability behind the prompt
// is the output. Without rounds it is the output of greedy decoding, or with a temperature that of
// plain sampling.
//
// Under a grammar L the end is a text of Endings(L, beginning), and the middle one of Infill(L,
// beginning, end). So every candidate is a text of L, and fits the budget: of what is left the end
// gets a third at most. Where the grammar has no such gap that can be listed, the rounds end.
//
// The prompts for gaps are made of tokens: marker, prompt, beginning, marker, end, marker. The
// model ends an end that it writes by the marker of the middle.
#include "src/decode/search/self_infill.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pawl/combine.h"
#include "src/decode/sampling/asking.h"
#include "src/decode/sampling/step_law.h"
#include "src/decode/search/tree_walk.h"

namespace pawl {
namespace {

constexpr int kScoredTokens = 32;  // whose logits are in memory at a time

using Tokens = std::vector<TokenId>;
using LanguagePtr = std::shared_ptr<const Constraint>;

// A part of a text, as it was written.
struct WrittenPart {
  Tokens tokens;  // without the end token
  TokenId end = kNoToken;
  double log_probability = 0;
  bool interrupted = false, closed = false;
};

class SelfInfill {
 public:
  SelfInfill(const SearchInput& input, const SearchOptions& options, int positions,
             BranchHost* host)
      : input_(input), options_(options), positions_(positions), host_(host) {
    const auto argument = [&](std::string_view name, double otherwise) {
      for (const auto& [given, value] : options.arguments) {
        if (given == name) return value;
      }
      return otherwise;
    };
    loops_ = static_cast<int>(argument("loops", 2));
    threshold_ = argument("threshold", 0.25);
    temperature_ = static_cast<float>(argument("temperature", 0));
    budget_ = std::min(options.max_tokens, positions - Length(input.prompt));
    SplitPrompt();
  }

  Result<SearchResult> Go() {
    for (int round = 0; round < loops_ && !limited(); ++round) {
      const Result<bool> more = Round();
      if (!more.ok()) return more.error();
      if (!*more) break;
    }
    if (!whole_ && !limited()) {
      if (Status status = WriteToTheEnd(); !status.ok()) return status.error();
    }
    if (limited() && candidates_.empty()) {
      if (Status status = CloseBegun(); !status.ok()) return status.error();
    }
    return Best();
  }

 private:
  static int Length(const Tokens& tokens) { return static_cast<int>(tokens.size()); }
  bool limited() const { return !result_.at_limit.empty(); }
  int left() const { return budget_ - Length(begun_); }
  // Those of the first prompt are free.
  int64_t rows_left() const {
    return std::max<int64_t>(0, options_.max_rows - (result_.model_rows - prompt_rows_));
  }
  std::string TextOf(const Tokens& tokens) const {
    std::string text;
    for (const TokenId token : tokens) {
      if (!input_.vocabulary.is_special(token)) text += input_.vocabulary.bytes(token);
    }
    return text;
  }
  static Tokens Joined(Tokens first, const Tokens& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  // The prompt as that of a gap: what stands before the text, the text, and what stands behind the
  // gap where the prompt has one already.
  void SplitPrompt() {
    const InfillMarks& marks = *input_.infill;
    const Tokens& prompt = input_.prompt;
    const auto prefix = std::ranges::find(prompt, marks.prefix);
    const auto suffix = std::find(prefix, prompt.end(), marks.suffix);
    const auto middle = std::find(suffix, prompt.end(), marks.middle);
    if (middle != prompt.end()) {
      before_.assign(prompt.begin(), middle);
      after_.assign(suffix + 1, middle);
      before_.resize(before_.size() - after_.size() - 1);
      return;
    }
    before_ = prompt;
    const bool begins = !prompt.empty() && prompt.front() == marks.begin;
    before_.insert(before_.begin() + (begins ? 1 : 0), marks.prefix);
  }

  struct Wish {
    Tokens prompt;
    LanguagePtr language;  // nullptr: any text
    int most = 0;          // tokens
    double threshold = 0;
    TokenId also_ends = kNoToken;
  };
  // Errors: kLimit with "max_tokens" as place where nothing of the language fits.
  Result<WrittenPart> Write(const Wish& wish) {
    SearchOptions own = options_;
    own.checks.clear();
    own.critic = nullptr;
    const bool first = result_.model_calls == 0;
    own.max_rows = rows_left() - (first ? 0 : Length(wish.prompt));
    if (own.max_rows < 1) {
      result_.at_limit = "rows";
      return WrittenPart();
    }
    own.max_nodes = std::max<int64_t>(1, options_.max_nodes - result_.nodes);
    own.max_tokens = wish.most;
    SamplingTask task;
    task.model = &input_.model.info();
    task.vocabulary = &input_.vocabulary;
    task.constraint = wish.language;
    task.max_tokens = std::min(wish.most, positions_ - Length(wish.prompt));
    if (task.max_tokens < 0) {
      return Error{ErrorCode::kLimit, "the prompt of a gap is too long for the model", "prompt"};
    }
    SearchRun run({input_.model, input_.encode, wish.prompt, task, own,
                   std::min(positions_, Length(wish.prompt) + task.max_tokens + 1), std::nullopt, 0,
                   host_, wish.also_ends});
    if (Status status = run.Start(); !status.ok()) return status.error();
    Result<WrittenPart> part = Walk(run, wish.threshold);
    if (first) prompt_rows_ = result_.model_rows - run.rows();
    return part;
  }

  Result<WrittenPart> Walk(SearchRun& run, double threshold) {
    TreeWalk walk(run, TreeWalk::kWholeLaws);
    WrittenPart part;
    Hypo at = SearchRun::kRoot;
    while (!run.Complete(at) && !part.interrupted) {
      const Hypo open[] = {at};
      if (Status status = walk.Ask(open); !status.ok()) return status.error();
      if (run.limited()) break;
      part.interrupted = walk.LawOf(at).size() > 1 && walk.MostOf(at) < threshold;
      if (part.interrupted) break;
      const Result<Hypo> child =
          temperature_ > 0 ? walk.Draw(at, options_.seed, temperature_) : walk.Greedy(at);
      if (!child.ok()) return child.error();
      if (run.limited() || *child == kNoHypo) break;
      at = *child;
    }
    part.tokens = run.TokensOf(at);
    part.log_probability = run.at(at).log_probability;
    if (run.at(at).ended) {
      part.end = part.tokens.back();
      part.tokens.pop_back();
    }
    const Result<SearchResult> end = run.Finish(open_of(at));
    if (!end.ok()) return end.error();
    result_.model_calls += end->model_calls;
    result_.model_rows += end->model_rows;
    result_.nodes += end->nodes;
    if (!run.limited()) return part;
    result_.at_limit = end->at_limit;
    if (part.end == kNoToken && !end->outputs.empty()) {
      part.tokens = end->outputs[0].tokens;
      part.closed = end->outputs[0].closed;
    }
    return part;
  }
  std::span<const Hypo> open_of(Hypo at) {
    last_ = at;
    return {&last_, 1};
  }

  // The language of what follows the beginning.
  Result<LanguagePtr> Behind(const Tokens& beginning) const {
    LanguagePtr at = input_.constraint;
    for (size_t i = 0; at != nullptr && i < beginning.size(); ++i) {
      at = at->Advance(beginning[i]);
      if (at == nullptr) {
        return Error{ErrorCode::kInternal, "the constraint refuses what it has allowed", ""};
      }
    }
    return at;
  }

  // false: there are no more rounds.
  Result<bool> Round() {
    const Result<LanguagePtr> language = Behind(begun_);
    if (!language.ok()) return language.error();
    Result<WrittenPart> first =
        Write({Joined(input_.prompt, begun_), *language, left(), threshold_});
    if (!first.ok()) return first.error();
    if (!first->interrupted) {
      AddCandidate(*std::move(first));
      whole_ = true;
      return false;
    }
    begun_ = Joined(begun_, first->tokens);
    log_begun_ += first->log_probability;
    const Result<std::optional<Tokens>> middle = FillIn();
    if (!middle.ok()) return middle.error();
    if (!*middle) return false;
    begun_ = Joined(begun_, **middle);
    filled_ = true;
    return true;
  }

  // The end behind what has begun, and the middle, which is the result. nullopt: there is none.
  Result<std::optional<Tokens>> FillIn() {
    const InfillMarks& marks = *input_.infill;
    const std::optional<Tokens> none;
    const std::string beginning = TextOf(begun_);
    LanguagePtr ends;
    if (input_.grammar) {
      const Result<Grammar> grammar = Endings(*input_.grammar, beginning);
      if (!grammar.ok()) return none;
      ends = MakeConstraint(*grammar);
    }
    Tokens before = Joined(before_, begun_);
    before.push_back(marks.suffix);
    const Result<WrittenPart> end = Write({before, ends, std::max(1, left() / 3), 0, marks.middle});
    if (!end.ok()) return Fits(end.error()) ? none : Result<std::optional<Tokens>>(end.error());
    if (limited()) return none;
    LanguagePtr gap;
    if (input_.grammar) {
      const Result<Grammar> grammar =
          Infill(*input_.grammar, {.prefix = beginning, .after = {TextOf(end->tokens)}});
      if (!grammar.ok()) return none;
      gap = MakeConstraint(*grammar);
    }
    Tokens prompt = Joined(Joined(std::move(before), end->tokens), after_);
    prompt.push_back(marks.middle);
    Result<WrittenPart> middle = Write({prompt, gap, left() - Length(end->tokens), 0});
    if (!middle.ok()) {
      return Fits(middle.error()) ? none : Result<std::optional<Tokens>>(middle.error());
    }
    if (limited()) return none;
    if (!input_.grammar) DropRepeated(middle->tokens, end->tokens);
    WrittenPart all;
    all.tokens = Joined(middle->tokens, end->tokens);
    // Of the first end token of the vocabulary, which the model has not written.
    const auto ends_of = input_.vocabulary.end_tokens();
    const bool ended = input_.grammar || end->end != kNoToken;
    if (ended && !ends_of.empty()) all.end = ends_of.front();
    // The next round would be that of this one.
    const bool same = std::ranges::any_of(candidates_, [&](const WrittenPart& one) {
      return one.tokens == Joined(begun_, all.tokens);
    });
    if (same) return none;
    AddCandidate(std::move(all));
    return std::optional<Tokens>(std::move(middle->tokens));
  }

  // An error that leaves the text from left to right as it is: a gap or an end that does not fit.
  static bool Fits(const Error& error) {
    return error.code == ErrorCode::kLimit &&
           (error.place == "max_tokens" || error.place == "constraint" || error.place == "prompt");
  }

  // Tokens at the end of the middle with which the end begins.
  void DropRepeated(Tokens& middle, const Tokens& end) const {
    for (size_t n = std::min(middle.size(), end.size()); n > 0; --n) {
      if (!std::equal(middle.end() - static_cast<ptrdiff_t>(n), middle.end(), end.begin())) {
        continue;
      }
      middle.resize(middle.size() - n);
      return;
    }
  }

  Status WriteToTheEnd() {
    const Result<LanguagePtr> language = Behind(begun_);
    if (!language.ok()) return language.error();
    Result<WrittenPart> rest = Write({Joined(input_.prompt, begun_), *language, left(), 0});
    // Where the rest does not fit, there is a candidate that does.
    if (!rest.ok() && Fits(rest.error()) && !candidates_.empty()) return {};
    if (!rest.ok()) return rest.error();
    AddCandidate(*std::move(rest));
    return {};
  }

  // At a limit: what was written from left to right, and the shortest completion.
  Status CloseBegun() {
    const Result<LanguagePtr> language = Behind(begun_);
    if (!language.ok()) return language.error();
    WrittenPart rest;
    rest.closed = true;
    if (*language != nullptr) {
      const auto closing = ForLoop(*language, input_.vocabulary)->Completion(left());
      if (!closing) return {};
      rest.tokens = *closing;
    }
    AddCandidate(std::move(rest));
    return {};
  }

  // What follows the beginning.
  void AddCandidate(WrittenPart rest) {
    rest.tokens = Joined(begun_, rest.tokens);
    rest.log_probability += log_begun_;
    candidates_.push_back(std::move(rest));
  }

  // ---- The choice

  // log P of the tokens behind the prompt.
  Status Score(WrittenPart& one) {
    Tokens tokens = one.tokens;
    if (one.end != kNoToken) tokens.push_back(one.end);
    if (Length(input_.prompt) + Length(tokens) > rows_left()) {
      result_.at_limit = "rows";
      return {};
    }
    Branches branches(host_, input_.model, input_.prompt,
                      std::min(positions_, Length(input_.prompt) + Length(tokens) + 1));
    if (Status status = branches.Start(); !status.ok()) return status;
    const Result<int> branch = branches.New();
    if (!branch.ok()) return branch.error();
    double sum = 0;
    std::vector<float> before(branches.prompt_logits().begin(), branches.prompt_logits().end());
    for (size_t done = 0; done < tokens.size();) {
      const size_t count = std::min<size_t>(kScoredTokens, tokens.size() - done);
      for (size_t i = 0; i < count; ++i) branches.Append(*branch, tokens[done + i]);
      const int which[] = {*branch};
      const int answers[] = {static_cast<int>(count)};
      if (Status status = branches.RunTails(which, answers); !status.ok()) return status;
      for (size_t i = 0; i < count; ++i) {
        const std::span<const float> logits = i == 0 ? before : branches.logits(i - 1);
        const Result<StepLaw> law = MakeStepLaw(logits, 1, nullptr, 0);
        if (!law.ok()) return law.error();
        sum += law->LogProbability(logits, tokens[done + i]);
      }
      before.assign(branches.logits(count - 1).begin(), branches.logits(count - 1).end());
      done += count;
    }
    one.log_probability = sum;
    result_.model_calls += branches.calls();
    result_.model_rows += branches.rows();
    return {};
  }

  Result<SearchResult> Best() {
    std::optional<double> most;
    for (WrittenPart& one : candidates_) {
      int64_t asked = 0;
      const Result<bool> accepted = MayEnd(options_.checks, TextOf(one.tokens), one.tokens, asked);
      if (!accepted.ok()) return accepted.error();
      if (!*accepted) continue;
      if (filled_ && !limited()) {
        if (Status status = Score(one); !status.ok()) return status.error();
      }
      const int length = Length(one.tokens) + (one.end != kNoToken ? 1 : 0);
      const double mean = one.log_probability / std::max(1, length);
      if (most && mean <= *most) continue;
      most = mean;
      SearchOutput output;
      output.text = TextOf(one.tokens);
      output.tokens = one.tokens;
      output.ended = one.end != kNoToken;
      if (output.ended) output.tokens.push_back(one.end);
      output.closed = one.closed;
      output.log_probability = one.log_probability;
      output.score = mean;
      result_.outputs = {std::move(output)};
    }
    return std::move(result_);
  }

  const SearchInput& input_;
  const SearchOptions& options_;
  const int positions_;
  BranchHost* const host_;
  int loops_ = 0, budget_ = 0;
  double threshold_ = 0;
  float temperature_ = 0;
  Tokens before_, after_;  // of the prompts of gaps
  Tokens begun_;           // the beginning that is kept
  double log_begun_ = 0;   // while it was written from left to right
  bool filled_ = false;    // a middle is part of it
  bool whole_ = false;     // the last candidate was written from left to right to its end
  std::vector<WrittenPart> candidates_;
  Hypo last_ = kNoHypo;
  int64_t prompt_rows_ = 0;  // of the first prompt
  SearchResult result_;
};

}  // namespace

Result<SearchResult> RunSelfInfill(const SearchInput& input, const SearchOptions& options,
                                   int positions, BranchHost* host) {
  if (!input.infill) {
    return Error{ErrorCode::kUnsupported,
                 "self-infill needs a model with markers for a gap, the prefix first", "strategy"};
  }
  if (input.constraint != nullptr && !input.grammar) {
    return Error{ErrorCode::kUnsupported, "self-infill needs a grammar, not a constraint of code",
                 "constraint"};
  }
  if (input.contrast) {
    return Error{ErrorCode::kUnsupported, "cannot be used with self-infill", "contrast_prompt"};
  }
  return SelfInfill(input, options, positions, host).Go();
}

}  // namespace pawl
