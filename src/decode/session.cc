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
// Tokens that are the only allowed ones need no logits. They are collected and their rows run in
// one Forward call together with the next token that does need them. A row's logits do not depend
// on the other rows of its call, so this changes nothing but the time. Forced bytes that several
// tokens could spell are written as the tokenizer writes them (forced_spelling.h).
#include "src/decode/session.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace pawl {
namespace {

// Rows of one Forward call; bounds the memory of activations.
constexpr size_t kChunk = 256;
// A forced run of bytes is looked for where so few tokens are allowed: its prefixes. Where more
// are, tokens reach beyond its end, and the choice is the model's.
constexpr int kMostSpellings = 64;
constexpr size_t kLongestRun = 256;  // bytes
// One token goes on trial for so many of the completion.
constexpr int kClosingPerTrial = 32;

// Adds the time until its destruction to `seconds`.
class Timer {
 public:
  explicit Timer(double& seconds) : seconds_(seconds), start_(std::chrono::steady_clock::now()) {}
  ~Timer() {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    seconds_ += elapsed.count();
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_;
};

Error Limit(const char* place, std::string message) {
  return Error{ErrorCode::kLimit, std::move(message), place};
}
Error Internal(std::string message) { return Error{ErrorCode::kInternal, std::move(message), ""}; }

}  // namespace

// One call of Generate.
class Session::Run {
 public:
  Run(Session& session, std::span<const TokenId> prompt,
      std::shared_ptr<const Constraint> constraint, const GenerateOptions& options)
      : session_(session),
        vocabulary_(*session.vocabulary_),
        prompt_(prompt),
        at_(std::move(constraint)),
        options_(options),
        sampler_(options.sampling) {}

  Result<Generation> Go() {
    if (Status status = Prepare(); !status.ok()) return status.error();
    for (;;) {
      Result<bool> more = Step();
      if (!more.ok()) return more.error();
      if (!*more) break;
    }
    stats().output_tokens = static_cast<int>(out_.tokens.size());
    return std::move(out_);
  }

 private:
  GenerationStats& stats() { return out_.stats; }
  int left() const { return out_.stats.budget - static_cast<int>(out_.tokens.size()); }

  Status Prepare() {
    const int context = session_.model_.info().context_length;
    const int prompt_size = static_cast<int>(prompt_.size());
    stats().prompt_tokens = prompt_size;
    if (prompt_size == 0) return Error{ErrorCode::kInvalid, "has no tokens", "prompt"};
    if (prompt_size >= context) {
      return Limit("prompt", "has " + std::to_string(prompt_size) +
                                 " tokens, but the model's context holds " +
                                 std::to_string(context) + " with the output");
    }
    stats().budget = std::min(options_.max_tokens, context - prompt_size);
    if (at_ != nullptr) {
      int close = 0;
      {
        Timer timer(stats().constraint_seconds);
        close = at_->shortest_close();
      }
      if (close < 0) {
        return Limit("constraint",
                     "no output that fits was found within the limits (which does not prove that "
                     "there is none)");
      }
      if (close > stats().budget) {
        Timer timer(stats().constraint_seconds);
        if (const auto found = at_->ClosingWithin(stats().budget))
          close = static_cast<int>(found->size());
      }
      if (close > stats().budget) {
        std::string message = "the shortest output that was found takes " + std::to_string(close) +
                              " tokens, but the budget is " + std::to_string(stats().budget);
        if (stats().budget < options_.max_tokens) {
          message += " (what a prompt of " + std::to_string(prompt_size) +
                     " tokens leaves of the model's context of " + std::to_string(context) + ")";
        }
        return Limit("max_tokens", std::move(message));
      }
      kept_ = {at_, close};
    }
    if (Status status = session_.Reserve(prompt_size + stats().budget); !status.ok()) return status;
    // What the last call left in the cache counts as far as it agrees; the last token runs again
    // for its logits.
    const auto& cached = session_.cached_;
    const size_t most = std::min(cached.size(), prompt_.size() - 1);
    const size_t common = static_cast<size_t>(
        std::mismatch(cached.begin(), cached.begin() + static_cast<ptrdiff_t>(most),
                      prompt_.begin())
            .first -
        cached.begin());
    session_.model_.Truncate(session_.sequence_, static_cast<int>(common));
    session_.cached_.resize(common);
    stats().reused_tokens = static_cast<int>(common);
    // Not run yet: forced tokens at the beginning of the output go along in the same call.
    pending_.assign(prompt_.begin() + static_cast<ptrdiff_t>(common), prompt_.end());
    return {};
  }

  // Runs the pending tokens through the model.
  Status Flush() {
    if (pending_.empty()) return {};
    Status status = session_.Forward(pending_, &stats().forward_calls);
    pending_.clear();
    return status;
  }

  // One token; false when the output has ended.
  Result<bool> Step() {
    std::shared_ptr<const Mask> mask;
    if (at_ != nullptr) {
      Timer timer(stats().constraint_seconds);
      mask = at_->mask();
      if (at_->accepting() && mask != nullptr &&
          mask->count() <= static_cast<int>(vocabulary_.end_tokens().size())) {
        return Stop(StopReason::kEnd);
      }
    }
    const bool stuck = mask != nullptr && mask->count() == 0;
    if (OnTrial() > 0 && (stuck || (left() <= 0 && !Keep()))) return Close();
    if (left() <= 0) return Stop(at_ != nullptr ? StopReason::kClosed : StopReason::kLength);

    TokenId token = mask != nullptr && options_.skip_forced ? Forced(*mask) : kNoToken;
    const bool forced = token != kNoToken;
    if (!forced) {
      Result<TokenId> sampled = Ask(mask.get());
      if (!sampled.ok()) return sampled.error();
      token = *sampled;
      if (IsEnd(token)) return Stop(StopReason::kEnd);
    }
    if (at_ != nullptr) {
      Timer timer(stats().constraint_seconds);
      at_ = at_->Advance(token);
      if (at_ == nullptr) {
        return Internal("the mask allowed token " + std::to_string(token) + ", the state did not");
      }
    }
    ++(forced ? stats().forced_tokens : stats().sampled_tokens);
    Append(token);
    if (at_ == nullptr) return Tell();
    if (OnTrial() <= kept_.close / kClosingPerTrial) return true;
    return Keep() ? Tell() : Close();
  }

  // Tokens taken since the last place whose completion is known to fit.
  int OnTrial() const {
    return at_ == nullptr ? 0 : static_cast<int>(out_.tokens.size() - kept_.tokens);
  }

  // Whether the completion from here fits the budget; if so, here is the place to return to.
  bool Keep() {
    Timer timer(stats().constraint_seconds);
    int close = at_->shortest_close();
    if (close > left()) {
      const auto found = at_->ClosingWithin(left());
      close = found ? static_cast<int>(found->size()) : -1;
    }
    if (close < 0 || close > left()) return false;
    kept_ = {at_,
             close,
             out_.tokens.size(),
             out_.text.size(),
             stats().forced_tokens,
             stats().sampled_tokens};
    return true;
  }

  // The token that has to come next, or kNoToken when the model is to be asked.
  TokenId Forced(const Mask& mask) {
    if (spelled_.empty() && mask.singleton() != kNoToken) return mask.singleton();
    if (spelled_.empty() && session_.encode_ && mask.count() <= kMostSpellings) {
      Timer timer(stats().constraint_seconds);
      const std::string run = at_->forced(kLongestRun);
      if (run.size() > 1) spelled_ = SpellForced(vocabulary_, session_.encode_, run);
      std::reverse(spelled_.begin(), spelled_.end());
    }
    if (spelled_.empty()) return kNoToken;
    const TokenId token = spelled_.back();
    spelled_.pop_back();
    if (mask.Allows(token)) return token;
    spelled_.clear();
    return mask.singleton();
  }

  Result<TokenId> Ask(const Mask* mask) {
    {
      Timer timer(prefilled_ ? stats().decode_seconds : stats().prefill_seconds);
      prefilled_ = true;
      if (Status status = Flush(); !status.ok()) return status.error();
    }
    Timer timer(stats().sample_seconds);
    // Logits beyond the vocabulary are padding of the weights: no token stands for them.
    const std::span<const float> logits = session_.logits_;
    const size_t known = std::min(logits.size(), static_cast<size_t>(vocabulary_.size()));
    return sampler_.Sample(logits.first(known), mask, out_.tokens.size(), {prompt_, out_.tokens});
  }

  // Appends the shortest completion of the last state that was kept, instead of what is on trial.
  Result<bool> Close() {
    if (OnTrial() > 0) {
      at_ = kept_.at;
      out_.tokens.resize(kept_.tokens);
      out_.text.resize(kept_.text);
      stats().forced_tokens = kept_.forced;
      stats().sampled_tokens = kept_.sampled;
    }
    std::optional<std::vector<TokenId>> closing;
    {
      Timer timer(stats().constraint_seconds);
      closing = at_->ClosingWithin(left());
    }
    if (!closing.has_value() || static_cast<int>(closing->size()) > left()) {
      return Internal("the completion no longer fits the budget");
    }
    for (TokenId token : *closing) {
      at_ = at_->Advance(token);
      if (at_ == nullptr) return Internal("a token of the completion was refused");
      ++stats().closing_tokens;
      Append(token);
      Result<bool> more = Tell();
      if (!more.ok() || !*more) return more;
    }
    if (!at_->accepting()) return Internal("the completion does not complete the output");
    return Stop(StopReason::kClosed);
  }

  // A special token that a model without constraint chooses is a token of the output, but no text.
  std::string_view BytesOf(TokenId token) const {
    return vocabulary_.is_special(token) ? std::string_view() : vocabulary_.bytes(token);
  }

  void Append(TokenId token) {
    out_.tokens.push_back(token);
    out_.text += BytesOf(token);
    pending_.push_back(token);
  }

  // Calls back for the tokens that nobody was told of; false when that stops the generation.
  Result<bool> Tell() {
    while (told_ < out_.tokens.size()) {
      const TokenId token = out_.tokens[told_++];
      told_bytes_ += BytesOf(token).size();
      if (options_.on_token && !options_.on_token(token, BytesOf(token))) {
        out_.tokens.resize(told_);
        out_.text.resize(told_bytes_);
        out_.stop = StopReason::kCancelled;
        return false;
      }
    }
    return true;
  }

  Result<bool> Stop(StopReason reason) {
    Result<bool> more = Tell();
    if (more.ok() && *more) out_.stop = reason;
    return false;
  }

  bool IsEnd(TokenId token) const {
    // Under a constraint the mask knows where the end may be, and it knows the vocabulary's end
    // tokens only: to stop at another one would cut the output.
    if (vocabulary_.is_end(token) || at_ != nullptr) return vocabulary_.is_end(token);
    const auto& ends = session_.model_.info().end_tokens;
    return std::find(ends.begin(), ends.end(), token) != ends.end();
  }

  Session& session_;
  const Vocabulary& vocabulary_;
  std::span<const TokenId> prompt_;
  std::shared_ptr<const Constraint> at_;
  const GenerateOptions& options_;
  Sampler sampler_;
  std::vector<TokenId> spelled_;  // of a forced run, not yet taken, the next one last
  std::vector<TokenId> pending_;  // of the prompt and the output, not yet seen by the model
  bool prefilled_ = false;
  struct Kept {
    std::shared_ptr<const Constraint> at;
    int close = 0;                // tokens of its completion
    size_t tokens = 0, text = 0;  // of the output
    int forced = 0, sampled = 0;
  };
  Kept kept_;  // the last place whose completion is known to fit the budget
  size_t told_ = 0, told_bytes_ = 0;
  Generation out_;
};

Session::Session(Model& model, std::shared_ptr<const Vocabulary> vocabulary, Encoder encode)
    : model_(model), vocabulary_(std::move(vocabulary)), encode_(std::move(encode)) {}

Session::~Session() {
  if (sequence_ >= 0) model_.FreeSequence(sequence_);
}

Result<Generation> Session::Generate(std::span<const TokenId> prompt,
                                     std::shared_ptr<const Constraint> constraint,
                                     const GenerateOptions& options) {
  if (Status status = CheckSamplingParams(options.sampling); !status.ok()) return status.error();
  if (options.max_tokens < 0) {
    return Error{ErrorCode::kInvalid, "must be at least 0", "max_tokens"};
  }
  const int width = model_.info().vocabulary_size;
  for (TokenId token : prompt) {
    if (token < 0 || token >= width) {
      return Error{ErrorCode::kInvalid,
                   "has token " + std::to_string(token) + ", but the model's vocabulary ends at " +
                       std::to_string(width - 1),
                   "prompt"};
    }
  }
  return Run(*this, prompt, std::move(constraint), options).Go();
}

Status Session::Reserve(int positions) {
  if (positions <= capacity_) return {};
  // A new sequence starts empty, so growing doubles: calls that get longer and longer rarely lose
  // the cache.
  positions = std::max(positions, std::min(2 * capacity_, model_.info().context_length));
  if (sequence_ >= 0) model_.FreeSequence(sequence_);
  sequence_ = -1;
  capacity_ = 0;
  cached_.clear();
  Result<SequenceId> sequence = model_.NewSequence(positions);
  if (!sequence.ok()) return sequence.error();
  sequence_ = *sequence;
  capacity_ = positions;
  return {};
}

Status Session::Forward(std::span<const TokenId> tokens, int* calls) {
  logits_.resize(static_cast<size_t>(model_.info().vocabulary_size));
  std::vector<Row> rows;
  for (size_t begin = 0; begin < tokens.size(); begin += kChunk) {
    const size_t end = std::min(begin + kChunk, tokens.size());
    rows.clear();
    for (size_t i = begin; i < end; ++i) {
      const auto position = static_cast<int32_t>(cached_.size() + (i - begin));
      rows.push_back({.token = tokens[i],
                      .position = position,
                      .sequence = sequence_,
                      .ancestors = 0,
                      .output = i + 1 == tokens.size() ? 0 : -1});
    }
    ++*calls;
    if (Status status = model_.Forward(rows, logits_); !status.ok()) {
      // What the failed call wrote is unknown.
      model_.Truncate(sequence_, static_cast<int>(cached_.size()));
      return status;
    }
    cached_.insert(cached_.end(), tokens.begin() + static_cast<ptrdiff_t>(begin),
                   tokens.begin() + static_cast<ptrdiff_t>(end));
  }
  return {};
}

}  // namespace pawl
