// The end of an output is a token like any other: the mask allows it where the text is complete,
// the checks are asked about it, and its probability is a factor of the output's. Where an output
// has max_tokens tokens, the end is all that is allowed, and what the model would rather have
// written is mass that this mask takes away. So the law is that of outputs of at most so many
// tokens, and no output is cut.
//
// Most refused tokens share few beginnings: where a regex wants a letter, each token with a digit
// in front is dead at its first byte. So from the second refusal of a step on, a check of bytes is
// also asked about the beginnings of what it refused, shortest first, and what begins like a dead
// beginning is refused without a question. What is drawn, and its weight, stay the same.
#include "src/decode/sampling/output_so_far.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "src/base/stop_scope.h"

namespace pawl {
namespace {

// What the checks of bytes have said about beginnings of tokens at one step.
class Beginnings {
 public:
  explicit Beginnings(const OutputSoFar& output) : output_(output) {}

  bool KnownDead(std::string_view bytes) const {
    if (dead_.empty()) return false;
    for (size_t n = 1; n <= bytes.size(); ++n) {
      if (dead_.contains(bytes.substr(0, n))) return true;
    }
    return false;
  }
  // `bytes` are dead. Errors: those of the checks.
  Status LearnDead(std::string_view bytes, StepCounts& counts) {
    if (bytes.empty()) return {};
    if (refusals_++ > 0) {
      for (size_t n = 1; n < bytes.size(); ++n) {
        const std::string_view beginning = bytes.substr(0, n);
        if (live_.contains(beginning)) continue;
        const Result<bool> live = output_.ChecksAllowBytes(beginning, counts);
        if (!live.ok()) return live.error();
        (*live ? live_ : dead_).insert(beginning);
        if (!*live) return {};
      }
    }
    dead_.insert(bytes);
    return {};
  }

 private:
  const OutputSoFar& output_;
  int64_t refusals_ = 0;
  std::unordered_set<std::string_view> dead_, live_;  // into the vocabulary's bytes
};

// The order of a law with the checks asked, once for each token, and once for all end tokens.
class CheckedOrder : public GumbelOrder {
 public:
  CheckedOrder(const SamplingTask& task, const OutputSoFar& output, const StepLaw& law,
               const Noise& noise, StepDraw& draw)
      : GumbelOrder(law.allowed, law.log_allowed, noise, task.checks.empty() ? 1 : 16),
        task_(task),
        output_(output),
        law_(law),
        draw_(draw),
        unchecked_(task.checks.empty()),
        beginnings_(output) {}

  bool Accepts(int item) {
    if (unchecked_ || failed_) return true;
    const TokenId token = law_.allowed[static_cast<size_t>(item)].token;
    const TokenId key = output_.IsEnd(token) ? kNoToken : token;
    const auto known = verdicts_.find(key);
    if (known != verdicts_.end()) return known->second;
    const std::string_view bytes = key == kNoToken ? std::string_view() : task_.BytesOf(token);
    if (beginnings_.KnownDead(bytes)) return verdicts_.emplace(key, false).first->second;
    bool by_bytes = false;
    const Result<bool> accepted = output_.ChecksAllow(token, draw_.counts, &by_bytes);
    if (!accepted.ok()) return Fail(accepted.error());
    if (by_bytes) {
      const Status learnt = beginnings_.LearnDead(bytes, draw_.counts);
      if (!learnt.ok()) return Fail(learnt.error());
    }
    verdicts_.emplace(key, *accepted);
    return *accepted;
  }
  void Reject(int item) {
    draw_.rejected.push_back(law_.allowed[static_cast<size_t>(item)].token);
    GumbelOrder::Reject(item);
  }
  const std::optional<Error>& failed() const { return failed_; }

 private:
  bool Fail(const Error& error) {
    failed_ = error;
    return true;  // ends the draw soon
  }

  const SamplingTask& task_;
  const OutputSoFar& output_;
  const StepLaw& law_;
  StepDraw& draw_;
  bool unchecked_;
  Beginnings beginnings_;
  std::unordered_map<TokenId, bool> verdicts_;
  std::optional<Error> failed_;
};

}  // namespace

int SamplingTask::known() const { return std::min(model->vocabulary_size, vocabulary->size()); }

void SamplingTask::CheckTime() const {
  StopScope::Check();
  if (deadline && std::chrono::steady_clock::now() >= *deadline) throw OutOfTime();
}

void SamplingTask::ExcludeControlTokens() {
  if (constraint != nullptr || checks.empty()) return;
  std::vector<uint32_t> words(static_cast<size_t>(vocabulary->mask_words()), 0);
  const auto& ends = model->end_tokens;
  for (TokenId t = 0; t < vocabulary->size(); ++t) {
    const bool end = vocabulary->is_end(t) || std::find(ends.begin(), ends.end(), t) != ends.end();
    if (end || !vocabulary->is_special(t)) words[static_cast<size_t>(t) / 32] |= 1u << t % 32;
  }
  unconstrained = std::make_shared<Mask>(0, std::move(words));
}

std::string_view SamplingTask::BytesOf(TokenId token) const {
  return vocabulary->is_special(token) ? std::string_view() : vocabulary->bytes(token);
}

bool OutputSoFar::IsEnd(TokenId token) const {
  if (at_ != nullptr) return task_->vocabulary->is_end(token) && at_->accepting();
  if (task_->vocabulary->is_end(token)) return true;
  const auto& ends = task_->model->end_tokens;
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

Allowed OutputSoFar::AllowedNext() const {
  if (!at_budget()) {
    Allowed allowed{at_ != nullptr ? at_->mask() : task_->unconstrained, false};
    allowed.dead = allowed.mask != nullptr && allowed.mask->count() == 0;
    return allowed;
  }
  if (at_ != nullptr && !at_->accepting()) return {nullptr, true};
  std::vector<uint32_t> words(static_cast<size_t>(task_->vocabulary->mask_words()), 0);
  bool any = false;
  const auto allow = [&](TokenId token) {
    if (token < 0 || token >= task_->known()) return;
    words[static_cast<size_t>(token) / 32] |= 1u << token % 32;
    any = true;
  };
  for (const TokenId token : task_->vocabulary->end_tokens()) allow(token);
  if (at_ == nullptr) {
    for (const TokenId token : task_->model->end_tokens) allow(token);
  }
  return {std::make_shared<Mask>(0, std::move(words)), !any};
}

Result<bool> OutputSoFar::ChecksAllow(TokenId token, StepCounts& counts, bool* by_bytes) const {
  if (IsEnd(token)) return MayEnd(task_->checks, text_, tokens_, counts.asked);
  return MayGoOn(task_->checks, text_, tokens_, token, task_->BytesOf(token), counts.asked,
                 by_bytes);
}

Result<bool> OutputSoFar::ChecksAllowBytes(std::string_view bytes, StepCounts& counts) const {
  return BytesMayGoOn(task_->checks, text_, tokens_, bytes, counts.asked);
}

bool OutputSoFar::Append(TokenId token, double log_probability_of_it) {
  const bool end = IsEnd(token);
  if (!end && at_ != nullptr) {
    at_ = at_->Next(token);
    if (at_ == nullptr) return false;
  }
  ended_ = end;
  tokens_.push_back(token);
  text_ += task_->BytesOf(token);
  log_probability += log_probability_of_it;
  return true;
}

Result<StepLaw> LawOf(const SamplingTask& task, std::span<const float> logits,
                      const Allowed& allowed) {
  return MakeStepLaw(logits, task.temperature, allowed.mask.get(), allowed.dead ? 0 : task.known());
}

Result<StepDraw> DrawStep(const SamplingTask& task, const OutputSoFar& output, const StepLaw& law,
                          const StepLaw* proposal, const Noise& noise) {
  StepDraw draw;
  if (law.allowed.empty()) return draw;
  const StepLaw& from = proposal != nullptr ? *proposal : law;
  CheckedOrder order(task, output, from, noise, draw);
  Drawn<double> drawn;
  if (task.checks.empty()) {
    drawn.item = order.Next().value_or(-1);
    drawn.weight = from.log_allowed;
  } else {
    drawn = DrawAccepted(order, task.estimator, task.limits);
  }
  if (order.failed().has_value()) return *order.failed();
  draw.counts.draws = drawn.looks;
  if (drawn.item < 0 || drawn.weight == kNoMass) return draw;
  const Candidate& chosen = from.allowed[static_cast<size_t>(drawn.item)];
  draw.token = chosen.token;
  draw.log_weight = drawn.weight;
  draw.log_probability = chosen.log_mass;
  if (proposal != nullptr) {
    const auto it =
        std::lower_bound(law.allowed.begin(), law.allowed.end(), chosen.token,
                         [](const Candidate& c, TokenId token) { return c.token < token; });
    const bool found = it != law.allowed.end() && it->token == chosen.token;
    // A token that the model never writes has weight 0.
    if (!found) return StepDraw{.counts = draw.counts, .rejected = std::move(draw.rejected)};
    draw.log_probability = it->log_mass;
    draw.log_weight += it->log_mass - chosen.log_mass;
  }
  return draw;
}

}  // namespace pawl
