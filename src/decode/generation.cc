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
// so long that finding them is dear: then up to a 32nd as many tokens go on trial before they are
// checked together, and are taken back together where that fails. The callback hears of a token
// when it stays.
//
// Tokens that are the only allowed ones need no logits. They pile up, and their rows run in one
// Forward call together with the next token that does need them. A row's logits do not depend on
// the other rows of its call, so this changes nothing but the time. Forced bytes that several
// tokens could spell are written as the tokenizer writes them (forced_spelling.h).
//
// Between two logits nothing waits for anyone, so the runs of a batch can go on in several threads.
// The callback is the caller's code and is left out of that: Tell calls it.
#include "src/decode/generation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace pawl {
namespace {

constexpr size_t kLongestRun = 256;  // bytes
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
Error Internal(std::string message) { return Error{ErrorCode::kInternal, std::move(message), ""}; }

}  // namespace

Timer::Timer(double& seconds) : seconds_(seconds), start_(Now()) {}
Timer::~Timer() { seconds_ += static_cast<double>(Now() - start_) * 1e-9; }

OutputRun::OutputRun(const OutputTask& task, std::vector<TokenId> prompt,
                     std::shared_ptr<const Constraint> constraint, GenerateOptions options)
    : task_(task),
      vocabulary_(*task.vocabulary),
      prompt_size_(prompt.size()),
      tokens_(std::move(prompt)),
      at_(std::move(constraint)),
      options_(std::move(options)),
      sampler_(options_.sampling),
      closes_(options_.at_budget != AtBudget::kCut),
      watch_(options_) {}

Result<bool> OutputRun::Start() {
  if (Status status = Prepare(); !status.ok()) return status.error();
  return Advance();
}

Status OutputRun::Prepare() {
  if (Status status = CheckSamplingParams(options_.sampling); !status.ok()) return status;
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
  const int context = task_.positions;
  const std::string holder =
      context < task_.model->context_length ? "memory for keys and values" : "context";
  stats_.prompt_tokens = static_cast<int>(prompt_size_);
  if (prompt_size_ == 0) return Error{ErrorCode::kInvalid, "has no tokens", "prompt"};
  if (prompt_size_ >= static_cast<size_t>(context)) {
    return Limit("prompt", "has " + std::to_string(prompt_size_) + " tokens, but the model's " +
                               holder + " holds " + std::to_string(context) + " with the output");
  }
  stats_.budget = std::min(options_.max_tokens, context - stats_.prompt_tokens);
  if (!closes()) return {};
  int close = 0;
  {
    Timer timer(stats_.constraint_seconds);
    close = at_->shortest_close();
  }
  const bool may_cut = options_.at_budget == AtBudget::kCloseOrCut;
  if (close < 0 && may_cut) {
    closes_ = false;
    return {};
  }
  if (close < 0) {
    return Limit("constraint",
                 "no output that fits was found within the limits (which does not prove that "
                 "there is none)");
  }
  if (close > stats_.budget) {
    Timer timer(stats_.constraint_seconds);
    if (const auto found = at_->ClosingWithin(stats_.budget))
      close = static_cast<int>(found->size());
  }
  if (close > stats_.budget && may_cut) {
    closes_ = false;
    return {};
  }
  if (close > stats_.budget) {
    std::string message = "the shortest output that was found takes " + std::to_string(close) +
                          " tokens, but the budget is " + std::to_string(stats_.budget);
    if (stats_.budget < options_.max_tokens) {
      message += " (what a prompt of " + std::to_string(prompt_size_) +
                 " tokens leaves of the model's " + holder + " of " + std::to_string(context) + ")";
    }
    return Limit("max_tokens", std::move(message));
  }
  kept_ = {at_, close};
  return {};
}

// Logits beyond the vocabulary are padding of the weights: no token stands for them.
int OutputRun::KnownTokens() const {
  return std::min(task_.model->vocabulary_size, static_cast<int>(vocabulary_.size()));
}

// What the next token is drawn with.
float OutputRun::TemperatureAt(const Constraint* at) const {
  const float given = options_.sampling.temperature;
  if (at == nullptr || !options_.grammar_temperature) return given;
  return at->temperature().value_or(given);
}

Result<bool> OutputRun::Take(std::span<const float> logits) { return TakeOrDrafted(logits, {}, 0); }

Result<bool> OutputRun::TakeOrDrafted(std::span<const float> logits,
                                      std::span<const TokenId> drafted, float lossy) {
  TokenId token = kNoToken;
  came_lossy_ = false;
  {
    Timer timer(stats_.sample_seconds);
    sampler_.set_temperature(TemperatureAt(at_.get()));
    std::span<const float> known = logits.first(static_cast<size_t>(KnownTokens()));
    watch_.See(known, mask_.get());
    if (!options_.logit_bias.empty()) known = Biased(known);
    const Result<TokenId> sampled = Draw(known);
    if (!sampled.ok()) return sampled.error();
    token = *sampled;
    if (!drafted.empty() && lossy > 0) {
      const Result<TokenId> probable = sampler_.ProbableDraft(
          known, mask_.get(), {std::span(tokens_).first(prompt_size_), output()}, drafted, lossy);
      if (probable.ok() && *probable != kNoToken && *probable != token) {
        token = *probable;
        behind_ = nullptr;
        came_lossy_ = true;
      }
    }
  }
  return TakeToken(token);
}

// A constraint that is not exact is asked about what was drawn; what it refuses leaves the mask.
// The noise of a token is a function of the position, so this is the token that a mask without the
// refused ones would have given.
Result<TokenId> OutputRun::Draw(std::span<const float> logits) {
  std::shared_ptr<const Mask> mask = mask_;
  for (int refusals = 0;;) {
    Result<TokenId> sampled = sampler_.Sample(logits, mask.get(), size(),
                                              {std::span(tokens_).first(prompt_size_), output()});
    if (!sampled.ok() || at_ == nullptr || at_->exact() || IsEnd(*sampled)) return sampled;
    Timer timer(stats_.constraint_seconds);
    behind_ = at_->Advance(*sampled);
    if (behind_ != nullptr) return sampled;
    mask = Without(*mask, *sampled, ++refusals);
  }
}

std::shared_ptr<const Mask> OutputRun::Without(const Mask& mask, TokenId token, int refusals) {
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

std::span<const float> OutputRun::Biased(std::span<const float> logits) {
  biased_.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : options_.logit_bias) {
    biased_[static_cast<size_t>(token)] += bias;
  }
  return biased_;
}

std::string_view OutputRun::NeedsLogits() const {
  if (at_ != nullptr && !at_->exact()) return "constraint";
  if (!options_.logit_bias.empty()) return "logit_bias";
  return watch_.wants_all_logits() ? "mask_surprise" : "";
}

SampleRequest OutputRun::RequestAt(const Constraint* at, std::shared_ptr<const Mask> mask) const {
  const SamplingParams& params = options_.sampling;
  SampleRequest request;
  request.mask = std::move(mask);
  request.temperature = TemperatureAt(at);
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
void OutputRun::AddSeen(std::span<const TokenId> path, std::vector<SeenToken>& seen) const {
  std::unordered_map<TokenId, int32_t> counts;
  for (size_t i = 0; i < tokens_.size(); ++i) counts[tokens_[i]] += i < prompt_size_ ? 0 : 1;
  for (const TokenId token : path) ++counts[token];
  seen.clear();
  for (const auto& [token, count] : counts) seen.push_back({token, count});
}

SampleRequest OutputRun::Request() {
  SampleRequest request = RequestAt(at_.get(), mask_);
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

SampleRequest OutputRun::RequestBehind(std::span<const TokenId> path, const Constraint* at,
                                       std::shared_ptr<const Mask> mask,
                                       std::vector<SeenToken>& seen) const {
  SampleRequest request = RequestAt(at, std::move(mask));
  request.position += path.size();
  if (request.penalties.any()) {
    AddSeen(path, seen);
    request.seen = seen;
  }
  return request;
}

Result<bool> OutputRun::TakeToken(TokenId token, bool later) {
  asked_ = true;
  if (!top_.empty()) watch_.SeeTop(std::exchange(top_, {}));
  if (IsEnd(token)) return Stop(StopReason::kEnd);
  // The last token of the budget has no row.
  if (later && left() > 1) {
    ++stats_.sampled_tokens;
    Append(token, TokenReport::Source::kSampled);
    late_ = token;
    return true;
  }
  Result<bool> more = Add(token, false);
  if (!more.ok() || !*more) return more;
  return Advance();
}

Result<bool> OutputRun::Follow() {
  if (late_ == kNoToken) return true;
  Result<bool> more = Enter(std::exchange(late_, kNoToken));
  if (!more.ok() || !*more) return more;
  return Advance();
}

// Takes what is forced, until there is a choice or an end.
Result<bool> OutputRun::Advance() {
  for (;;) {
    mask_ = nullptr;
    if (at_ != nullptr) {
      Timer timer(stats_.constraint_seconds);
      mask_ = at_->mask();
    }
    if (at_ != nullptr && AtLimit() && closes()) {
      Keep();
      return Close();
    }
    if (at_ != nullptr) {
      Timer timer(stats_.constraint_seconds);
      if (at_->accepting() && mask_ != nullptr &&
          mask_->count() <= static_cast<int>(vocabulary_.end_tokens().size())) {
        return Stop(StopReason::kEnd);
      }
    }
    const bool stuck = mask_ != nullptr && mask_->count() == 0;
    if (OnTrial() > 0 && (stuck || (left() <= 0 && !Keep()))) return Close();
    if (left() <= 0) return Stop(closes() ? StopReason::kClosed : StopReason::kLength);
    const bool may_force = mask_ != nullptr && options_.skip_forced && at_->exact();
    const TokenId token = may_force ? Forced(*mask_) : kNoToken;
    if (token == kNoToken) return true;
    Result<bool> more = Add(token, true);
    if (!more.ok() || !*more) return more;
  }
}

// false when the output has ended.
Result<bool> OutputRun::Add(TokenId token, bool forced) {
  ++(forced ? stats_.forced_tokens : stats_.sampled_tokens);
  Append(token, forced ? TokenReport::Source::kForced : TokenReport::Source::kSampled);
  return Enter(token);
}

// The constraint follows the token that was appended.
Result<bool> OutputRun::Enter(TokenId token) {
  if (at_ != nullptr) {
    Timer timer(stats_.constraint_seconds);
    at_ = behind_ != nullptr ? std::exchange(behind_, nullptr) : at_->Advance(token);
    if (at_ == nullptr) {
      return Internal("the mask allowed token " + std::to_string(token) + ", the state did not");
    }
  }
  if (closes()) {
    if (OnTrial() <= kept_.close / kClosingPerTrial) return true;
    if (!Keep()) return Close();
  }
  sure_ = size();
  return true;
}

// Tokens taken since the last place whose completion is known to fit.
int OutputRun::OnTrial() const { return closes() ? static_cast<int>(size() - kept_.tokens) : 0; }

// Whether the constraint has reached a limit; if so, the output says why.
bool OutputRun::AtLimit() {
  std::string note = at_->limit_note();
  if (note.empty()) return false;
  if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(std::move(note));
  return true;
}

// Whether the completion from here fits the budget; if so, here is the place to return to.
bool OutputRun::Keep() {
  Timer timer(stats_.constraint_seconds);
  int close = at_->shortest_close();
  if (close > left()) {
    const auto found = at_->ClosingWithin(left());
    close = found ? static_cast<int>(found->size()) : -1;
  }
  if (close < 0 || close > left()) return false;
  kept_ = {at_, close, size(), text_.size(), stats_.forced_tokens, stats_.sampled_tokens};
  return true;
}

// The token that has to come next, or kNoToken when the model is to be asked.
TokenId OutputRun::Forced(const Mask& mask) {
  if (spelled_.empty() && mask.singleton() != kNoToken) return mask.singleton();
  if (spelled_.empty() && *task_.encode && mask.count() <= kMostSpellings) {
    Timer timer(stats_.constraint_seconds);
    const std::string run = at_->forced(kLongestRun);
    if (run.size() > 1) spelled_ = SpellForced(vocabulary_, *task_.encode, run);
    std::reverse(spelled_.begin(), spelled_.end());
  }
  if (spelled_.empty()) return kNoToken;
  const TokenId token = spelled_.back();
  spelled_.pop_back();
  if (mask.Allows(token)) return token;
  spelled_.clear();
  return mask.singleton();
}

// Appends the shortest completion of the last state that was kept, instead of what is on trial.
Result<bool> OutputRun::Close() {
  if (OnTrial() > 0) {
    at_ = kept_.at;
    tokens_.resize(prompt_size_ + kept_.tokens);
    text_.resize(kept_.text);
    watch_.Cut(kept_.tokens);
    stats_.forced_tokens = kept_.forced;
    stats_.sampled_tokens = kept_.sampled;
  }
  std::optional<std::vector<TokenId>> closing;
  {
    Timer timer(stats_.constraint_seconds);
    closing = at_->ClosingWithin(left());
  }
  if (!closing.has_value() || static_cast<int>(closing->size()) > left()) {
    return Internal("the completion no longer fits the budget");
  }
  for (const TokenId token : *closing) {
    at_ = at_->Advance(token);
    if (at_ == nullptr) return Internal("a token of the completion was refused");
    ++stats_.closing_tokens;
    mask_ = nullptr;
    Append(token, TokenReport::Source::kClosing);
    sure_ = size();
  }
  if (!at_->accepting()) return Internal("the completion does not complete the output");
  return Stop(StopReason::kClosed);
}

Result<bool> OutputRun::Stop(StopReason reason) {
  stop_ = reason;
  sure_ = size();
  return false;
}

// A special token that a model without constraint chooses is a token of the output, but no text.
std::string_view OutputRun::BytesOf(TokenId token) const {
  return vocabulary_.is_special(token) ? std::string_view() : vocabulary_.bytes(token);
}

void OutputRun::Append(TokenId token, TokenReport::Source source) {
  watch_.Append(token, source, mask_ != nullptr ? mask_->count() : -1);
  tokens_.push_back(token);
  text_ += BytesOf(token);
}

bool OutputRun::Tell() {
  while (told_ < sure_) {
    const TokenId token = output()[told_++];
    told_bytes_ += BytesOf(token).size();
    bool goes_on = true;
    if (options_.on_report) {
      TokenReport report = watch_.report(told_ - 1);
      report.bytes = BytesOf(token);
      goes_on = options_.on_report(report);
    }
    if (goes_on && options_.on_token) goes_on = options_.on_token(token, BytesOf(token));
    if (!goes_on) {
      Cancel();
      return false;
    }
  }
  return true;
}

void OutputRun::Cancel() {
  tokens_.resize(prompt_size_ + told_);
  text_.resize(told_bytes_);
  sure_ = told_;
  stop_ = StopReason::kCancelled;
}

Generation OutputRun::Finish() {
  Generation out;
  stats_.output_tokens = static_cast<int>(size());
  out.tokens.assign(output().begin(), output().end());
  out.text = std::move(text_);
  out.stop = stop_;
  out.notes = std::move(notes_);
  stats_.mask_surprise = watch_.surprise_sum();
  out.stats = stats_;
  return out;
}

bool OutputRun::IsEnd(TokenId token) const {
  // Under a constraint the mask knows where the end may be, and it knows the vocabulary's end
  // tokens only: to stop at another one would cut the output. Where the end may not be, a grammar
  // may still name such a token in the middle of its texts.
  if (at_ != nullptr) return vocabulary_.is_end(token) && at_->accepting();
  if (vocabulary_.is_end(token)) return true;
  const auto& ends = task_.model->end_tokens;
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

}  // namespace pawl
