// Each call runs all rows that its masks see, because a row's keys change with every token that is
// committed, in front of it or behind it. Works whose rows do not fit the call wait for the next.
#include "src/decode/diffusion/diffusion_work.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "src/decode/check_input.h"
namespace pawl {
namespace {

constexpr int kBlockWithoutTraining = 32;

std::vector<float> LogLaw(std::span<const float> logits, int width, TokenId mask) {
  std::vector<float> law(logits.begin(), logits.begin() + width);
  if (mask < width) law[static_cast<size_t>(mask)] = -std::numeric_limits<float>::infinity();
  const float most = *std::ranges::max_element(law);
  double sum = 0;
  for (const float x : law) sum += std::exp(static_cast<double>(x - most));
  const float all = most + static_cast<float>(std::log(sum));
  for (float& x : law) x -= all;
  return law;
}

Status CheckDiffusion(const DiffusionOptions& given, const MaskFilling& filling) {
  const auto wrong = [](const char* message, const char* place) {
    return Error{ErrorCode::kInvalid, message, place};
  };
  // Written so that NaN fails.
  if (given.threshold && !(*given.threshold >= 0 && *given.threshold <= 1)) {
    return wrong("must be between 0 and 1", "diffusion.threshold");
  }
  if (given.steps && *given.steps < 1) return wrong("must be at least 1", "diffusion.steps");
  if (given.steps && given.threshold) {
    return wrong("cannot be used with a threshold", "diffusion.steps");
  }
  if (given.block_length && *given.block_length < 1) {
    return wrong("must be at least 1", "diffusion.block_length");
  }
  const std::string &rule = given.remasking, &alg = given.alg;
  // Logits of the row in front are Dream's.
  if (!rule.empty() && filling.shifted) return wrong("is for LLaDA", "diffusion.remasking");
  if (!alg.empty() && !filling.shifted) return wrong("is for Dream", "diffusion.alg");
  if (!rule.empty() && rule != "low_confidence" && rule != "random") {
    return wrong("must be low_confidence or random", "diffusion.remasking");
  }
  if (rule == "random" && !given.steps) return wrong("random needs steps", "diffusion.remasking");
  if (!alg.empty() && alg != "maskgit_plus" && alg != "topk_margin" && alg != "entropy") {
    return wrong("must be maskgit_plus, topk_margin or entropy", "diffusion.alg");
  }
  return {};
}

// REQUIRES: CheckDiffusion.
FillOptions FillOptionsOf(const DiffusionOptions& given, const MaskFilling& filling, int length) {
  FillOptions out;
  const int block = filling.block > 0 ? filling.block : kBlockWithoutTraining;
  out.block_length = std::min(given.block_length.value_or(block), length);
  out.steps = given.steps.value_or(0);
  out.threshold = given.threshold.value_or(out.threshold);
  if (given.remasking == "random") out.confidence = MaskConfidence::kRandom;
  if (given.alg == "topk_margin") out.confidence = MaskConfidence::kMargin;
  if (given.alg == "entropy") out.confidence = MaskConfidence::kEntropy;
  return out;
}

}  // namespace

DiffusionWork::DiffusionWork(Model& model, const MaskFilling& filling, const OutputTask& task,
                             std::vector<TokenId> prompt,
                             std::shared_ptr<const Constraint> constraint, GenerateOptions options,
                             Callback done)
    : model_(model),
      filling_(filling),
      task_(task),
      prompt_(std::move(prompt)),
      constraint_(std::move(constraint)),
      options_(std::move(options)),
      done_(std::move(done)) {}

// What says something about one token after the other has no meaning here.
Status DiffusionWork::CheckOptions() const {
  const auto refuse = [](const char* name) {
    return Error{ErrorCode::kUnsupported, "means nothing for a model that fills masks", name};
  };
  const SamplingParams& s = options_.sampling;
  if (options_.logprobs >= 0) return refuse("logprobs");
  if (options_.details) return refuse("details");
  if (!options_.logit_bias.empty()) return refuse("logit_bias");
  if (s.top_k != 0) return refuse("top_k");
  if (s.top_p != 1) return refuse("top_p");
  if (s.min_p != 0) return refuse("min_p");
  if (s.repetition_penalty != 1) return refuse("repetition_penalty");
  if (s.presence_penalty != 0) return refuse("presence_penalty");
  if (s.frequency_penalty != 0) return refuse("frequency_penalty");
  if (!(s.temperature >= 0) || !std::isfinite(s.temperature)) {
    return Error{ErrorCode::kInvalid, "must be a finite number of at least 0", "temperature"};
  }
  if (options_.max_tokens < 1) {
    return Error{ErrorCode::kInvalid, "must be at least 1", "max_tokens"};
  }
  if (Status status = CheckDiffusion(options_.diffusion, filling_); !status.ok()) return status;
  return CheckTokens(prompt_, model_.info().vocabulary_size, "prompt");
}

Result<bool> DiffusionWork::Start(bool may_wait) {
  may_wait_ = may_wait;
  if (Status status = CheckOptions(); !status.ok()) return status.error();
  const int prompt = static_cast<int>(prompt_.size());
  if (prompt == 0) return Error{ErrorCode::kInvalid, "has no tokens", "prompt"};
  if (prompt >= task_.positions) {
    return Error{ErrorCode::kLimit,
                 "has " + std::to_string(prompt) + " tokens, but the model holds " +
                     std::to_string(task_.positions) + " with the output",
                 "prompt"};
  }
  FillTask fill;
  fill.vocabulary = task_.vocabulary;
  fill.encode = options_.skip_forced ? task_.encode : nullptr;
  fill.constraint = ForLoop(constraint_, *task_.vocabulary);
  fill.rules.width = std::min(task_.vocabulary->size(), model_.info().vocabulary_size);
  const auto add = [&](TokenId token) {
    if (token < fill.rules.width && !fill.rules.IsEnd(token)) fill.rules.ends.push_back(token);
  };
  for (const TokenId token : task_.vocabulary->end_tokens()) add(token);
  for (const TokenId token : model_.info().end_tokens) add(token);
  if (fill.rules.ends.empty()) {
    return Error{ErrorCode::kUnsupported, "a model that fills masks needs an end token", "model"};
  }
  fill.length = std::min(options_.max_tokens, task_.positions - prompt);
  FillOptions how = FillOptionsOf(options_.diffusion, filling_, fill.length);
  how.temperature = static_cast<double>(options_.sampling.temperature);
  how.seed = options_.sampling.seed;
  stats_.prompt_tokens = prompt;
  stats_.budget = fill.length;
  filler_.emplace(std::move(fill), how);
  if (Status status = filler_->Start(); !status.ok()) return status.error();
  return !filler_->done();
}

Status DiffusionWork::Open() {
  const Result<SequenceId> sequence =
      model_.NewSequence(static_cast<int>(prompt_.size()) + stats_.budget);
  if (!sequence.ok()) return sequence.error();
  sequence_ = *sequence;
  return {};
}

int DiffusionWork::canvas_end() const {
  return filling_.block > 0 ? filler_->block_end() : static_cast<int>(filler_->canvas().size());
}

int DiffusionWork::pending() const { return static_cast<int>(prompt_.size()) + canvas_end(); }

int64_t DiffusionWork::pages(int headroom, bool /*looking*/) const {
  return PagesOf(static_cast<int>(prompt_.size()) + headroom);
}

int64_t DiffusionWork::PagesOf(int rows) const { return model_.kv_memory().PagesOf(0, rows); }

void DiffusionWork::Ask(RowSink& sink, int most) {
  asked_ = most >= pending();
  answered_ = false;
  if (!asked_) return;
  const auto prompt = static_cast<int>(prompt_.size());
  const std::span<const TokenId> canvas = filler_->canvas();
  const size_t first = sink.rows.size();
  for (int i = 0; i < pending(); ++i) {
    TokenId token =
        i < prompt ? prompt_[static_cast<size_t>(i)] : canvas[static_cast<size_t>(i - prompt)];
    if (token == kNoToken) token = filling_.mask;
    sink.rows.push_back({.token = token, .position = i, .sequence = sequence_});
  }
  output_ = -1;
  for (const int position : filler_->Wanted()) {
    const int row = prompt + position - (filling_.shifted ? 1 : 0);
    const int32_t output = sink.Want(*this, position);
    if (output_ < 0) output_ = output;
    sink.rows[first + static_cast<size_t>(row)].output = output;
  }
}

void DiffusionWork::Ran(const CallAnswers& /*answers*/, double seconds, bool failed) {
  if (failed || !asked_) return;
  ++stats_.forward_calls;
  stats_.decode_seconds += seconds;
  answered_ = true;
}

Result<bool> DiffusionWork::Take(const CallAnswers& answers, bool /*later*/) {
  answered_ = false;
  scores_.clear();
  const size_t wanted = filler_->Wanted().size();
  const int width = std::min(task_.vocabulary->size(), static_cast<int>(answers.width));
  for (size_t n = 0; n < wanted; ++n) {
    const std::span<const float> logits = answers.Logits(output_ + static_cast<int32_t>(n));
    scores_.push_back(LogLaw(logits, width, filling_.mask));
  }
  if (may_wait_) return Follow();
  asks_ = true;
  return true;
}

Result<bool> DiffusionWork::Look(bool known_only) {
  if (known_only) return true;
  asks_ = false;
  return Follow();
}

Result<bool> DiffusionWork::Follow() {
  if (Status status = filler_->Take(std::move(scores_)); !status.ok()) return status.error();
  return !filler_->done();
}

void DiffusionWork::Forget() {
  if (sequence_ >= 0) model_.Truncate(sequence_, 0);
}

void DiffusionWork::Evict() {
  if (sequence_ >= 0) model_.FreeSequence(sequence_);
  sequence_ = -1;
}

// The committed tokens from the beginning on.
Result<bool> DiffusionWork::Emit() {
  if (!filler_ || asks_ || !options_.on_token) return !stop_.has_value();
  const std::span<const TokenId> output = filler_->output();
  while (told_ < output.size() && !stop_) {
    const TokenId token = output[told_++];
    if (!options_.on_token(token, task_.vocabulary->bytes(token))) stop_ = StopReason::kCancelled;
  }
  return !stop_.has_value();
}

void DiffusionWork::Finish(std::optional<Error> error, int preemptions) {
  if (error.has_value()) {
    result_ = *std::move(error);
    return;
  }
  Generation out;
  if (filler_) {
    std::span<const TokenId> tokens = filler_->output();
    if (stop_ && options_.on_token) tokens = tokens.first(std::min(told_, tokens.size()));
    out.tokens.assign(tokens.begin(), tokens.end());
    out.stop = stop_.value_or(filler_->ended() || constraint_ != nullptr ? StopReason::kEnd
                                                                         : StopReason::kLength);
    stats_.forced_tokens = filler_->forced();
  }
  for (const TokenId token : out.tokens) out.text += task_.vocabulary->bytes(token);
  const std::shared_ptr<const LoopConstraint> root = ForLoop(constraint_, *task_.vocabulary);
  if (root != nullptr) {
    if (const auto filter = root->NewRecordFilter(); filter != nullptr) {
      std::string record = filter->Feed(out.text);
      out.text = record + filter->Finish();
    }
  }
  stats_.output_tokens = static_cast<int>(out.tokens.size());
  stats_.sampled_tokens = stats_.output_tokens - stats_.forced_tokens;
  stats_.preemptions = preemptions;
  out.stats = stats_;
  result_ = std::move(out);
}

std::vector<std::shared_ptr<const Constraint>> DiffusionWork::TakeConstraints() {
  return {std::exchange(constraint_, nullptr)};
}

void DiffusionWork::Done() {
  if (done_) done_(*std::move(result_));
}

}  // namespace pawl
