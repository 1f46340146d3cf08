// The decode loop, and how it always ends in time.
//
// One step: mask of the constraint -> logits of the model -> sampler -> advance. The budget is kept
// by an invariant that holds before each step:
//
//     tokens of the shortest completion that was found for the current state  <=  tokens left
//
// It is checked once for the start. A sampled token t is kept only when it holds for the state
// after t with one token less; otherwise sampling stops and the completion of the last state for
// which it did hold is emitted whole. A single token can make the completion much longer (the `{`
// of an object with many required keys), so the check runs for every token, unless completions are
// so long that finding them is slow: then up to a 32nd as many tokens go on trial before they are
// checked together, and are taken back together where that fails. The callback hears of a token
// when it stays.
//
// Tokens that are the only allowed ones need no logits. They pile up, and their rows run in one
// Forward call together with the next token that does need them. A row's logits do not depend on
// the other rows of its call, so this changes nothing but the time. Forced bytes that several
// tokens could spell are written as the tokenizer writes them (vocabulary_tables.h).
//
// A look is all that the constraint is asked between two logits. It goes from stage to stage: can
// the constraint end in the budget, follow the token, do the tokens on trial stay, what may come
// next. A stage changes the output only when it has all of its answers. So a look can begin on the
// thread of the model, with what is known, stop at the first answer that is not, and go on from
// there on another thread: which answers were known decides nothing but the time.
//
// Between two logits nothing waits for anyone, so the runs of a batch can go on in several threads.
// The callback is the caller's code and is left out of that: Emit calls it.
#include "src/decode/generation.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "src/decode/check_input.h"

namespace pawl {
namespace {

// One token goes on trial for so many of the completion.
constexpr int kClosingPerTrial = 32;
// After so many refusals of single tokens the constraint is asked about all that are left.
constexpr int kRefusalsBeforeAll = 48;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Error Limit(const char* place, std::string message) {
  return Error{ErrorCode::kLimit, std::move(message), place};
}

}  // namespace

Timer::Timer(double& seconds) : seconds_(seconds), start_(Now()) {}
Timer::~Timer() { seconds_ += static_cast<double>(Now() - start_) * 1e-9; }

OutputBuilder::OutputBuilder(const OutputTask& task, std::vector<TokenId> prompt,
                             std::shared_ptr<const Constraint> constraint, GenerateOptions options)
    : task_(task),
      vocabulary_(*task.vocabulary),
      prompt_size_(prompt.size()),
      tokens_(std::move(prompt)),
      at_(ForLoop(std::move(constraint), *task.vocabulary)),
      foreign_(at_ != nullptr && at_->foreign()),
      prefers_(at_ != nullptr && at_->prefers()),
      options_(std::move(options)),
      sampler_(options_.sampling, task.vocabulary),
      forced_text_(vocabulary_, *task.encode),
      closes_(options_.at_budget != AtBudget::kCut),
      watch_(options_),
      record_filter_(at_ == nullptr ? nullptr : at_->NewRecordFilter()),
      answer_from_(at_ != nullptr && at_->before_answer() ? kNotYet : 0) {}

Result<bool> OutputBuilder::Start() {
  if (Status status = CheckOptions(); !status.ok()) return status.error();
  const int context = task_.positions;
  stats_.prompt_tokens = static_cast<int>(prompt_size_);
  stats_.budget = std::min(options_.max_tokens, context - stats_.prompt_tokens);
  if (at_ != nullptr) known_ = at_->known();
  stage_ = Stage::kPrepare;
  return true;
}

Status OutputBuilder::CheckOptions() const {
  if (Status status = CheckSamplingParams(options_.sampling); !status.ok()) return status;
  if (Status status = RefuseDiffusion(options_.diffusion); !status.ok()) return status;
  if (options_.max_tokens < 0) {
    return Error{ErrorCode::kInvalid, "must be at least 0", "max_tokens"};
  }
  if (options_.logprobs > kMostTopTokens) {
    return Error{ErrorCode::kInvalid, "must be at most " + std::to_string(kMostTopTokens),
                 "logprobs"};
  }
  const int width = task_.model->vocabulary_size;
  for (const auto& [token, bias] : options_.logit_bias) {
    if (token < 0 || token >= KnownTokens() || !std::isfinite(bias)) {
      return Error{
          ErrorCode::kInvalid,
          "has no finite number for a token of the vocabulary at token " + std::to_string(token),
          "logit_bias"};
    }
  }
  for (const TokenId token : tokens_) {
    if (token < 0 || token >= width) {
      return Error{ErrorCode::kInvalid,
                   "has token " + std::to_string(token) + ", but the model's vocabulary ends at " +
                       std::to_string(width - 1),
                   "prompt"};
    }
  }
  const auto context = static_cast<size_t>(task_.positions);
  if (prompt_size_ == 0) return Error{ErrorCode::kInvalid, "has no tokens", "prompt"};
  if (prompt_size_ >= context) {
    return Limit("prompt", "has " + std::to_string(prompt_size_) + " tokens, but the model's " +
                               Holder() + " holds " + std::to_string(context) + " with the output");
  }
  return {};
}

// What the positions of a sequence are bounded by.
std::string OutputBuilder::Holder() const {
  return task_.positions < task_.model->context_length ? "memory for keys and values" : "context";
}

Error OutputBuilder::TooLong(int close) const {
  std::string message = "the shortest output that was found takes " + std::to_string(close) +
                        " tokens, but the budget is " + std::to_string(stats_.budget);
  if (stats_.budget < options_.max_tokens) {
    message += " (what a prompt of " + std::to_string(prompt_size_) +
               " tokens leaves of the model's " + Holder() + " of " +
               std::to_string(task_.positions) + ")";
  }
  return Limit("max_tokens", std::move(message));
}

// What is wrong with a constraint's answers: of a grammar it is a fault of this library, of others
// one of their authors.
Error OutputBuilder::Wrong(std::string message) const {
  if (!foreign_) return Error{ErrorCode::kInternal, std::move(message), ""};
  return Error{ErrorCode::kInvalid, std::move(message), "constraint"};
}

Result<bool> OutputBuilder::Look(bool known_only) {
  if (stage_ == Stage::kNone) return true;
  try {
    return LookOn(known_only);
  } catch (...) {
    return ConstraintFailure(foreign_);
  }
}

Result<bool> OutputBuilder::LookOn(bool known_only) {
  if (stage_ == Stage::kDraw) {
    if (known_only) return true;
    Result<bool> more = DrawAsked();
    if (!more.ok() || !*more) return more;
  }
  if (at_ == nullptr) {
    stage_ = Stage::kNone;
    committed_ = size();
    if (left() <= 0) return Stop(StopReason::kLength);
    return true;
  }
  Timer timer(stats_.constraint_seconds);
  bool waits = false;
  for (;;) {
    std::optional<Result<bool>> ends;
    switch (stage_) {
      case Stage::kPrepare:
        ends = Prepare(known_only, waits);
        break;
      case Stage::kEnter:
        ends = Enter(known_only, waits);
        break;
      case Stage::kKeep:
        ends = KeepOrClose(known_only, waits);
        break;
      case Stage::kPlace:
        ends = AtPlace(known_only, waits);
        break;
      case Stage::kNone:
      case Stage::kDraw:
        return true;
    }
    if (ends) {
      stage_ = Stage::kNone;
      return *std::move(ends);
    }
    if (waits) return true;
  }
}

std::optional<Result<bool>> OutputBuilder::Prepare(bool known_only, bool& waits) {
  if (!closes()) {
    stage_ = Stage::kPlace;
    return std::nullopt;
  }
  if (known_only && !KnowsRoom()) {
    waits = true;
    return std::nullopt;
  }
  const int close = CloseLength(stats_.budget);
  const bool fits = close >= 0;
  if (!fits && options_.at_budget != AtBudget::kCloseOrCut) {
    const int shortest = at_->CompletionLength(std::numeric_limits<int>::max());
    if (shortest >= 0) return TooLong(shortest);
    return Limit("constraint",
                 "no output that fits was found within the limits (which does not prove that "
                 "there is none)");
  }
  closes_ = fits;
  if (fits) kept_ = {at_, close};
  stage_ = Stage::kPlace;
  return std::nullopt;
}

// The constraint follows the token that was appended.
std::optional<Result<bool>> OutputBuilder::Enter(bool known_only, bool& waits) {
  std::shared_ptr<const LoopConstraint> next = std::exchange(behind_, nullptr);
  if (next == nullptr) {
    next = known_only ? at_->KnownNext(entering_) : at_->Next(entering_);
    if (next == nullptr && known_only) {
      waits = true;
      return std::nullopt;
    }
  }
  if (next == nullptr) {
    return Wrong("the mask allows token " + std::to_string(entering_) + ", but Advance refuses it");
  }
  MoveTo(std::move(next), entering_);
  known_ = at_->known();
  entering_ = kNoToken;
  stage_ = Stage::kKeep;
  return std::nullopt;
}

std::optional<Result<bool>> OutputBuilder::KeepOrClose(bool known_only, bool& waits) {
  const bool stays_on_trial = closes() && Uncommitted() <= kept_.close / kClosingPerTrial;
  if (closes() && !stays_on_trial) {
    if (known_only && !KnowsRoom()) {
      waits = true;
      return std::nullopt;
    }
    if (!Keep()) return Close();
  }
  if (!stays_on_trial) committed_ = size();
  stage_ = Stage::kPlace;
  return std::nullopt;
}

// Takes what is forced, until there is a choice or an end.
std::optional<Result<bool>> OutputBuilder::AtPlace(bool known_only, bool& waits) {
  waits = known_only && !known_.place;
  if (waits) return std::nullopt;
  if (!known_.place) {
    known_.at = at_->LookUnforced();
    known_.place = true;
    known_.forced = foreign_;
  }
  mask_ = known_.at.mask;
  accepting_ = known_.at.accepting;
  temperature_ = known_.at.temperature;
  const std::string& limit = known_.at.limit;
  if (!limit.empty()) {
    if (std::ranges::find(notes_, limit) == notes_.end()) notes_.push_back(limit);
    waits = known_only && closes();
    if (waits) return std::nullopt;
    if (closes()) {
      Keep();
      return Close(ClosedBy::kSteps);
    }
  }
  if (options_.close_repetition.value_or(false) && closes() && Repeats()) {
    waits = known_only;
    if (waits) return std::nullopt;
    Keep();
    return Close(ClosedBy::kRepetition);
  }
  if (accepting_ && mask_ != nullptr &&
      mask_->count() <= static_cast<int>(vocabulary_.end_tokens().size())) {
    return Stop(StopReason::kEnd);
  }
  const bool stuck = mask_ != nullptr && mask_->count() == 0;
  if (Uncommitted() > 0 && (stuck || left() <= 0)) {
    waits = known_only;
    if (waits) return std::nullopt;
    if (stuck || !Keep()) return Close();
  }
  if (left() <= 0) {
    if (closes()) closed_by_ = ClosedBy::kBudget;
    return Stop(closes() ? StopReason::kClosed : StopReason::kLength);
  }
  if (stuck && !at_->exact()) return Stop(StopReason::kRefused);
  if (stuck && foreign_) return Wrong("the mask allows no token");
  if (mask_ == nullptr || !options_.skip_forced || !at_->exact()) return true;
  waits = known_only && forced_text_.WantsRun(*mask_) && !known_.forced;
  if (waits) return std::nullopt;
  const TokenId token = forced_text_.Next(*mask_, [this] {
    return known_.forced ? known_.at.forced : at_->forced(LoopConstraint::kForcedLimit);
  });
  if (token == kNoToken) return true;
  ++stats_.forced_tokens;
  Append(token, TokenReport::Source::kForced);
  entering_ = token;
  stage_ = Stage::kEnter;
  return std::nullopt;
}

// Logits beyond the vocabulary are padding of the weights: no token stands for them.
int OutputBuilder::KnownTokens() const {
  return std::min(task_.model->vocabulary_size, static_cast<int>(vocabulary_.size()));
}

// What the next token is drawn with, where the constraint has asked for `asked`.
float OutputBuilder::Temperature(std::optional<float> asked) const {
  const float given = options_.sampling.temperature;
  return options_.grammar_temperature ? asked.value_or(given) : given;
}

Result<bool> OutputBuilder::Take(std::span<const float> logits, const TokenRule* rule) {
  if (at_ != nullptr && !at_->exact()) {
    asked_ = true;
    asked_logits_.assign(logits.begin(), logits.end());
    asked_rule_ = rule;
    stage_ = Stage::kDraw;
    return true;
  }
  const Result<TokenId> token = Choose(logits, rule);
  if (!token.ok()) return token.error();
  return TakeToken(*token);
}

Result<bool> OutputBuilder::DrawAsked() {
  const Result<TokenId> token = Choose(asked_logits_, asked_rule_);
  if (!token.ok()) return token.error();
  if (*token != kNoToken) return TakeToken(*token);
  return Uncommitted() > 0 ? Close() : Stop(StopReason::kRefused);
}

Result<TokenId> OutputBuilder::Choose(std::span<const float> logits, const TokenRule* rule) {
  Timer timer(stats_.sample_seconds);
  sampler_.set_temperature(Temperature(temperature_));
  std::span<const float> known = logits.first(static_cast<size_t>(KnownTokens()));
  watch_.See(known, mask_.get());
  if (!options_.logit_bias.empty()) known = Biased(known);
  if (prefers_) known = Preferred(known);
  Result<TokenId> sampled = Draw(known);
  if (!sampled.ok() || *sampled == kNoToken || rule == nullptr) return sampled;
  Result<TokenId> other = (*rule)(sampler_, known, mask_.get(), History(), *sampled);
  if (!other.ok()) return other;
  if (*other == kNoToken) return sampled;
  behind_ = nullptr;
  return other;
}

// A constraint that is not exact is asked about what was drawn; what it refuses leaves the mask.
// The noise of a token is a function of the position, so this is the token that a mask without the
// refused ones would have given. kNoToken: all were refused.
Result<TokenId> OutputBuilder::Draw(std::span<const float> logits) {
  std::shared_ptr<const Mask> mask = mask_;
  for (int refusals = 0;;) {
    Result<TokenId> sampled = sampler_.Sample(logits, mask.get(), size(), History());
    if (at_ == nullptr || at_->exact() || (sampled.ok() && IsEnd(*sampled))) return sampled;
    if (!sampled.ok() && mask->count() == 0) return kNoToken;
    if (!sampled.ok()) return sampled;
    Timer timer(stats_.constraint_seconds);
    behind_ = at_->Next(*sampled);
    if (behind_ != nullptr) return sampled;
    mask = Without(*mask, *sampled, ++refusals);
  }
}

std::shared_ptr<const Mask> OutputBuilder::Without(const Mask& mask, TokenId token, int refusals) {
  std::vector<uint32_t> words(mask.words().begin(), mask.words().end());
  const auto remove = [&](TokenId t) {
    words[static_cast<size_t>(t) >> 5] &= ~(uint32_t{1} << (t & 31));
  };
  remove(token);
  if (refusals == kRefusalsBeforeAll) {
    for (const TokenId t : Mask(0, words).Tokens()) {
      if (!IsEnd(t) && at_->Advance(t) == nullptr) remove(t);
    }
  }
  return std::make_shared<Mask>(0, std::move(words));
}

std::span<const float> OutputBuilder::Biased(std::span<const float> logits) {
  biased_.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : options_.logit_bias) {
    biased_[static_cast<size_t>(token)] += bias;
  }
  return biased_;
}

std::span<const float> OutputBuilder::Preferred(std::span<const float> logits) {
  const LoopConstraint::Preference preference = at_->preference();
  if (preference.mask == nullptr || mask_ == nullptr) return logits;
  if (logits.data() != biased_.data()) biased_.assign(logits.begin(), logits.end());
  const std::span<const uint32_t> allowed = mask_->words(), preferred = preference.mask->words();
  for (size_t w = 0; w < allowed.size(); ++w) {
    for (uint32_t word = allowed[w] & ~preferred[w]; word != 0; word &= word - 1) {
      const size_t token = w * 32 + static_cast<size_t>(std::countr_zero(word));
      if (token < biased_.size()) biased_[token] -= preference.nats;
    }
  }
  return biased_;
}

std::string_view OutputBuilder::NeedsLogits() const {
  if (at_ != nullptr && !at_->exact()) return "constraint";
  if (!options_.logit_bias.empty()) return "logit_bias";
  if (options_.details) return "details";
  return watch_.wants_all_logits() ? "mask_surprise" : "";
}

SampleRequest OutputBuilder::RequestAt(std::optional<float> temperature,
                                       std::shared_ptr<const Mask> mask) const {
  const SamplingParams& params = options_.sampling;
  SampleRequest request;
  request.mask = std::move(mask);
  request.temperature = Temperature(temperature);
  request.seed = params.seed;
  request.position = size();
  request.top_k = params.top_k;
  request.top_p = params.top_p;
  request.min_p = params.min_p;
  request.penalties = {params.repetition_penalty, params.presence_penalty,
                       params.frequency_penalty};
  request.vocabulary = KnownTokens();
  return request;
}

// Of the tokens that there are, and `path` behind them.
void OutputBuilder::AddSeen(std::span<const TokenId> path, std::vector<SeenToken>& seen) const {
  std::unordered_map<TokenId, int32_t> counts;
  for (size_t i = 0; i < tokens_.size(); ++i) counts[tokens_[i]] += i < prompt_size_ ? 0 : 1;
  for (const TokenId token : path) ++counts[token];
  seen.clear();
  for (const auto& [token, count] : counts) seen.push_back({token, count});
}

SampleRequest OutputBuilder::Request() {
  SampleRequest request = RequestAt(temperature_, mask_);
  if (watch_.wants_logits()) {
    top_.assign(kMostTopTokens, {});
    request.top = top_;
  }
  if (request.penalties.any()) {
    AddSeen({}, seen_);
    request.seen = seen_;
  }
  return request;
}

SampleRequest OutputBuilder::RequestBehind(std::span<const TokenId> path,
                                           std::optional<float> temperature,
                                           std::shared_ptr<const Mask> mask,
                                           std::vector<SeenToken>& seen) const {
  SampleRequest request = RequestAt(temperature, std::move(mask));
  request.position += path.size();
  if (request.penalties.any()) {
    AddSeen(path, seen);
    request.seen = seen;
  }
  return request;
}

Status OutputBuilder::LawBehind(std::span<const TokenId> path, std::optional<float> temperature,
                                const Mask* mask, std::span<const float> logits,
                                std::vector<TokenMass>& law) const {
  Sampler sampler(options_.sampling, &vocabulary_);
  sampler.set_temperature(Temperature(temperature));
  const std::span<const float> known = logits.first(static_cast<size_t>(KnownTokens()));
  std::vector<float> biased;
  if (!options_.logit_bias.empty()) {
    biased.assign(known.begin(), known.end());
    for (const auto& [token, bias] : options_.logit_bias)
      biased[static_cast<size_t>(token)] += bias;
  }
  std::vector<TokenId> output(this->output().begin(), this->output().end());
  output.insert(output.end(), path.begin(), path.end());
  return sampler.Law(biased.empty() ? known : biased, mask, output.size(),
                     {std::span(tokens_).first(prompt_size_), output, forced_}, law);
}

Result<bool> OutputBuilder::TakeToken(TokenId token) {
  asked_ = true;
  if (!top_.empty()) watch_.SeeTop(std::exchange(top_, {}));
  sampler_.Taken();
  if (IsEnd(token)) return Stop(StopReason::kEnd);
  if (at_ != nullptr && vocabulary_.is_end(token)) {
    if (auto instead = at_->AtEnd()) {
      ++stats_.forced_tokens;
      Append(instead->token, TokenReport::Source::kForced);
      entering_ = instead->token;
      behind_ = std::move(instead->behind);
      stage_ = Stage::kEnter;
      return true;
    }
  }
  ++stats_.sampled_tokens;
  Append(token, TokenReport::Source::kSampled);
  entering_ = token;
  stage_ = Stage::kEnter;
  return true;
}

// Tokens taken since the last place whose completion is known to fit.
int OutputBuilder::Uncommitted() const {
  return closes() ? static_cast<int>(size() - kept_.tokens) : 0;
}

// Whether the completion from here fits the budget; if so, here is the place to return to.
bool OutputBuilder::Keep() {
  const int close = CloseLength(left());
  if (close < 0) return false;
  kept_ = {at_, close, size(), text_.size(), stats_.forced_tokens, stats_.sampled_tokens};
  return true;
}

// Tokens of a completion of at_ with at most `most`; -1: none was found.
int OutputBuilder::CloseLength(int most) const {
  return known_.close && *known_.close <= most ? *known_.close : at_->CompletionLength(most);
}

// Whether at_ is known to end within the budget.
bool OutputBuilder::KnowsRoom() const {
  return known_.close && *known_.close >= 0 && *known_.close <= left();
}

// Appends the shortest completion of the last state that was kept, instead of what is on trial.
Result<bool> OutputBuilder::Close(ClosedBy why) {
  closed_by_ = why;
  if (Uncommitted() > 0) {
    at_ = kept_.at;
    if (at_->before_answer()) answer_from_ = kNotYet;
    tokens_.resize(prompt_size_ + kept_.tokens);
    forced_.resize(kept_.tokens);
    text_.resize(kept_.text);
    watch_.Cut(kept_.tokens);
    stats_.forced_tokens = kept_.forced;
    stats_.sampled_tokens = kept_.sampled;
  }
  const std::optional<std::vector<TokenId>> closing = at_->Completion(left());
  if (!closing.has_value() || static_cast<int>(closing->size()) > left()) {
    return Wrong("the completion no longer fits the budget");
  }
  for (const TokenId token : *closing) {
    std::shared_ptr<const LoopConstraint> next = at_->Next(token);
    if (next == nullptr) return Wrong("a token of the completion was refused");
    ++stats_.closing_tokens;
    mask_ = nullptr;
    Append(token, TokenReport::Source::kClosing);
    MoveTo(std::move(next), token);
    committed_ = size();
  }
  if (!at_->accepting()) return Wrong("the completion does not complete the output");
  return Stop(StopReason::kClosed);
}

Result<bool> OutputBuilder::Stop(StopReason reason) {
  stop_ = reason;
  committed_ = size();
  return false;
}

// A special token that a model without constraint chooses is a token of the output, but no text.
std::string_view OutputBuilder::BytesOf(TokenId token) const {
  return vocabulary_.is_special(token) ? std::string_view() : vocabulary_.bytes(token);
}

void OutputBuilder::Append(TokenId token, TokenReport::Source source) {
  watch_.Append(token, source, mask_ != nullptr ? mask_->count() : -1);
  tokens_.push_back(token);
  forced_.push_back(source == TokenReport::Source::kForced ? 1 : 0);
  text_ += BytesOf(token);
  for (size_t period = 1; period <= kMostPeriod; ++period) {
    const bool same = size() > period && tokens_[tokens_.size() - 1 - period] == token;
    repeated_[period] = same ? repeated_[period] + 1 : 0;
  }
}

// The last kRepeatedTokens tokens or more are one period, kRounds times or more.
bool OutputBuilder::Repeats() const {
  for (size_t period = 1; period <= kMostPeriod; ++period) {
    if (repeated_[period] + period >= std::max(kRepeatedTokens, kRounds * period)) return true;
  }
  return false;
}

// To the place behind the last token.
void OutputBuilder::MoveTo(std::shared_ptr<const LoopConstraint> next, TokenId token) {
  if (answer_from_ == kNotYet && !next->before_answer()) {
    answer_from_ = size() - at_->AnswerTokens(token);
  }
  at_ = std::move(next);
}

// What the token emitted last adds to the text. Thoughts before the record stay as they are.
std::string OutputBuilder::RecordPiece() {
  std::string piece(BytesOf(output()[emitted_ - 1]));
  if (emitted_ > answer_from_) {
    // The beginning of a record may have been told before it was known to be no thought.
    filtered_ = std::max(filtered_, answer_from_);
    while (filtered_ < emitted_) piece = record_filter_->Feed(BytesOf(output()[filtered_++]));
  }
  record_ += piece;
  return piece;
}

bool OutputBuilder::Emit() {
  while (emitted_ < committed_) {
    const TokenId token = output()[emitted_++];
    told_bytes_ += BytesOf(token).size();
    std::string_view bytes = BytesOf(token);
    std::string piece;
    if (record_filter_ != nullptr) bytes = piece = RecordPiece();
    bool goes_on = true;
    if (options_.on_report) {
      TokenReport report = watch_.report(emitted_ - 1);
      report.bytes = bytes;
      goes_on = options_.on_report(report);
    }
    if (goes_on && options_.on_token) goes_on = options_.on_token(token, bytes);
    if (!goes_on) {
      Cancel();
      return false;
    }
  }
  return true;
}

void OutputBuilder::Cancel() {
  stage_ = Stage::kNone;
  tokens_.resize(prompt_size_ + emitted_);
  forced_.resize(emitted_);
  text_.resize(told_bytes_);
  committed_ = emitted_;
  stop_ = StopReason::kCancelled;
}

Generation OutputBuilder::Finish() {
  Generation out;
  stats_.output_tokens = static_cast<int>(size());
  out.tokens.assign(output().begin(), output().end());
  out.text = std::move(text_);
  if (record_filter_ != nullptr) {
    out.text = record_ + record_filter_->Finish();
    if (record_filter_->failed())
      notes_.emplace_back("the record is the text as it was written: keys could not be left out");
  }
  out.stop = stop_;
  out.closed_by = stop_ == StopReason::kClosed ? closed_by_ : ClosedBy::kNothing;
  out.notes = std::move(notes_);
  stats_.mask_surprise = watch_.surprise_sum();
  for (size_t i = answer_from_; options_.details && i < out.tokens.size(); ++i) {
    const TokenReport report = watch_.report(i);
    out.figures.push_back(
        {report.logprob, report.surprise, report.source == TokenReport::Source::kClosing});
  }
  out.stats = stats_;
  return out;
}

std::vector<std::shared_ptr<const Constraint>> OutputBuilder::TakeConstraints() {
  return {std::exchange(at_, nullptr), std::exchange(kept_.at, nullptr),
          std::exchange(behind_, nullptr)};
}

bool OutputBuilder::IsEnd(TokenId token) const {
  // Under a constraint the mask knows where the end may be, and it knows the vocabulary's end
  // tokens only: to stop at another one would cut the output. Where the end may not be, a grammar
  // may still name such a token in the middle of its texts.
  if (at_ != nullptr) return vocabulary_.is_end(token) && accepting_;
  if (vocabulary_.is_end(token)) return true;
  const auto& ends = task_.model->end_tokens;
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

}  // namespace pawl
