// Without a cache each call runs all rows that its masks see, because a row's keys change with
// every token that is committed, in front of it or behind it. Works whose rows do not fit the call
// wait for the next. Guidance runs a second canvas, whose prompt is masked (LLaDA). Drafted
// canvases are those of "Self Speculative Decoding for Diffusion Large Language Models" (arXiv
// 2510.04147).
#include "src/decode/diffusion/diffusion_work.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "src/decode/check_input.h"
#include "src/decode/diffusion/canvas_options.h"
#include "src/decode/diffusion/gap_canvas.h"

namespace pawl {
namespace {

constexpr float kMostLogit = 1e30f;  // with guidance

// Log-probabilities; where they are asked for by a lattice, up to a constant of the position, which
// changes no share: each path has one token there.
std::vector<float> LogLaw(std::span<const float> logits, int width, TokenId mask, bool lattice) {
  std::vector<float> law(logits.begin(), logits.begin() + width);
  if (mask < width) law[static_cast<size_t>(mask)] = -std::numeric_limits<float>::infinity();
  if (lattice) return law;
  const float most = *std::ranges::max_element(law);
  double sum = 0;
  for (const float x : law) sum += std::exp(static_cast<double>(x - most));
  const float all = most + static_cast<float>(std::log(sum));
  for (float& x : law) x -= all;
  return law;
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

Result<bool> DiffusionWork::Start(bool may_wait) {
  may_wait_ = may_wait;
  if (Status status = CheckCanvasOptions(options_, filling_); !status.ok()) return status.error();
  const Status tokens = CheckTokens(prompt_, model_.info().vocabulary_size, "prompt");
  if (!tokens.ok()) return tokens.error();
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
  constrained_ = constraint_ != nullptr;
  fill.constraint = ForLoop(std::move(constraint_), *task_.vocabulary);
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
  if (!options_.diffusion.gaps.empty()) {
    const Status laid = LayOutGaps(options_, *task_.encode, task_.positions - prompt, fill);
    if (!laid.ok()) return laid.error();
  }
  stats_.prompt_tokens = prompt;
  stats_.budget = fill.length;
  if (constrained_) {
    if (fill.constraint->before_answer() && fill.constraint->NewRecordFilter() != nullptr) {
      return Error{ErrorCode::kUnsupported,
                   "is not for models that fill masks where keys may be left out: every key has to "
                   "be required, or only the required ones asked for (keys: required)",
                   "free_first"};
    }
    filter_ = fill.constraint->NewRecordFilter();
    whole_filter_ = fill.constraint->NewRecordFilter();
  }
  const FillOptions how = FillOptionsOf(options_, filling_, fill.length);
  drafts_ = how.schedule == FillOptions::Schedule::kSsd;
  most_drafts_ = static_cast<size_t>(how.drafts);
  lanes_.reserve(most_drafts_ + 1);  // references to lanes stay good
  lanes_.push_back({.filler = MaskFiller(std::move(fill), how),
                    .cache = CacheOf(options_.diffusion, prompt, filling_.shifted)});
  if (Status status = lanes_[0].filler.Start(); !status.ok()) return status.error();
  return !lanes_[0].filler.done();
}

Status DiffusionWork::OpenLane(Lane& lane) {
  while (static_cast<int>(lane.sequences.size()) < canvases()) {
    const Result<SequenceId> sequence =
        model_.NewSequence(static_cast<int>(prompt_.size()) + stats_.budget);
    if (!sequence.ok()) return sequence.error();
    lane.sequences.push_back(*sequence);
  }
  return {};
}

Status DiffusionWork::Open() { return OpenLane(lanes_[0]); }

CanvasWindow DiffusionWork::WindowOf(const MaskFiller& filler) const {
  const int last =
      filling_.block > 0 ? filler.block_end() : static_cast<int>(filler.canvas().size());
  return {filler.block_begin(), filler.block_end(), last};
}

int DiffusionWork::pending() const {
  const MaskFiller& filler = lanes_[0].filler;
  return canvases() *
         static_cast<int>(lanes_[0].cache.Rows(filler.canvas(), WindowOf(filler)).size());
}

int64_t DiffusionWork::pages(int headroom, bool /*looking*/) const {
  return canvases() * model_.kv_memory().PagesOf(0, static_cast<int>(prompt_.size()) + headroom);
}

int64_t DiffusionWork::PagesOf(int /*rows*/) const {
  const int rows = static_cast<int>(prompt_.size()) + WindowOf(lanes_[0].filler).last;
  return canvases() * model_.kv_memory().PagesOf(std::min(held_, rows), rows);
}

Status DiffusionWork::Prepare() {
  if (std::exchange(resized_, false)) Restart();
  return {};
}

void DiffusionWork::Ask(RowSink& sink, int most) {
  asked_ = most >= pending();
  answered_ = false;
  asked_drafts_ = 0;
  if (!asked_) return;
  AskLane(lanes_[0], sink);
  if (drafts_ && drafts_allowed_) AskDrafts(sink);
}

void DiffusionWork::AskLane(Lane& lane, RowSink& sink) {
  const auto prompt = static_cast<int>(prompt_.size());
  const std::span<const TokenId> canvas = lane.filler.canvas();
  lane.rows = lane.cache.Rows(canvas, WindowOf(lane.filler));
  lane.outputs.clear();
  const std::vector<int> wanted = lane.filler.Wanted();
  for (size_t nth = 0; nth < lane.sequences.size(); ++nth) {
    const size_t first = sink.rows.size();
    for (const int row : lane.rows) {
      const auto i = static_cast<size_t>(row);
      TokenId token = row < prompt ? prompt_[i] : canvas[i - prompt_.size()];
      if (token == kNoToken || (row < prompt && nth > 0)) token = filling_.mask;
      sink.rows.push_back({.token = token, .position = row, .sequence = lane.sequences[nth]});
    }
    for (const int position : wanted) {
      const int row = prompt + position - (filling_.shifted ? 1 : 0);
      const int32_t output = sink.Want(*this, position);
      if (position == wanted[0]) lane.outputs.push_back(output);
      const auto at = std::ranges::lower_bound(lane.rows, row) - lane.rows.begin();
      sink.rows[first + static_cast<size_t>(at)].output = output;
    }
  }
}

void DiffusionWork::AskDrafts(RowSink& sink) {
  const MaskFiller& now = lanes_[0].filler;
  // Behind a call of all rows a cache holds what the call makes.
  if (lanes_[0].cache.kept() && lanes_[0].cache.Refreshes(WindowOf(now))) return;
  MaskFiller next = now;
  for (size_t nth = 1; nth <= most_drafts_; ++nth) {
    std::vector<std::vector<float>> scores;
    for (const int position : next.Wanted()) {
      const auto i = static_cast<size_t>(position);
      if (i >= last_.size() || last_[i].empty()) return;
      scores.push_back(last_[i]);
    }
    if (!next.Take(std::move(scores)).ok() || next.done()) return;
    lanes_[0].filler.Renew();  // the draft may have had its grammar rebuilt
    if (next.block_begin() != now.block_begin() || !AskDraft(next, nth, sink)) return;
    asked_drafts_ = nth;
  }
}

bool DiffusionWork::AskDraft(const MaskFiller& filler, size_t nth, RowSink& sink) {
  const CanvasWindow window = WindowOf(filler);
  if (lanes_.size() <= nth) {
    const KvMemory memory = model_.kv_memory();
    const int rows = static_cast<int>(prompt_.size()) + window.last;
    // Others grow in the same call.
    if (memory.available < 2 * canvases() * memory.PagesOf(0, rows)) return false;
    lanes_.push_back({.filler = filler, .cache = lanes_[0].cache});
  }
  Lane& lane = lanes_[nth];
  lane.filler = filler;
  lane.filler.TakeConstraint();  // its canvas is all that is needed
  lane.cache = lanes_[0].cache;
  for (size_t call = 0; call < nth; ++call) lane.cache.Skip();
  if (lane.cache.kept() && lane.cache.Refreshes(window)) return false;
  if (!OpenLane(lane).ok()) return false;
  for (size_t i = 0; lane.cache.kept() && i < lane.sequences.size(); ++i) {
    if (!model_.CopySequence(lanes_[0].sequences[i], lane.sequences[i]).ok()) return false;
  }
  AskLane(lane, sink);
  return true;
}

void DiffusionWork::Ran(const CallAnswers& /*answers*/, double seconds, bool failed) {
  if (failed || !asked_) return;
  ++stats_.forward_calls;
  stats_.decode_seconds += seconds;
  answered_ = drafts_allowed_ = true;
  for (size_t nth = 0; nth <= asked_drafts_; ++nth) {
    Lane& lane = lanes_[nth];
    lane.cache.Ran(lane.filler.canvas(), WindowOf(lane.filler));
  }
  held_ = static_cast<int>(prompt_.size()) + WindowOf(lanes_[0].filler).last;
}

void DiffusionWork::ReadScores(Lane& lane, const CallAnswers& answers) const {
  lane.scores.clear();
  const int width = std::min(task_.vocabulary->size(), static_cast<int>(answers.width));
  const size_t wanted = lane.filler.Wanted().size();
  const bool lattice = constrained_;
  for (size_t n = 0; n < wanted; ++n) {
    const auto logits_of = [&](size_t nth) {
      return answers.Logits(lane.outputs[nth] + static_cast<int32_t>(n));
    };
    if (lane.outputs.size() == 1) {
      lane.scores.push_back(LogLaw(logits_of(0), width, filling_.mask, lattice));
      continue;
    }
    const std::span<const float> with = logits_of(0), without = logits_of(1);
    const auto scale = static_cast<float>(*options_.diffusion.cfg_scale) + 1;
    std::vector<float> guided(static_cast<size_t>(width));
    for (size_t t = 0; t < guided.size(); ++t) {
      const float logit = without[t] + scale * (with[t] - without[t]);
      const bool near = logit >= -kMostLogit && logit <= kMostLogit;
      guided[t] = near ? logit : logit > 0 ? kMostLogit : -kMostLogit;  // no number: the least
    }
    lane.scores.push_back(LogLaw(guided, width, filling_.mask, lattice));
  }
}

Result<bool> DiffusionWork::Take(const CallAnswers& answers, bool /*later*/) {
  answered_ = false;
  for (size_t nth = 0; nth <= asked_drafts_; ++nth) ReadScores(lanes_[nth], answers);
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
  MaskFiller& filler = lanes_[0].filler;
  for (size_t nth = 0; nth <= asked_drafts_ && !filler.done(); ++nth) {
    Lane& lane = lanes_[nth];
    if (nth > 0) {
      // The steps have led to what was drafted, so its call is the next one.
      if (!std::ranges::equal(filler.canvas(), lane.filler.canvas())) break;
      std::swap(lanes_[0].sequences, lane.sequences);
      lanes_[0].cache = lane.cache;
    }
    if (drafts_) {
      last_.assign(filler.canvas().size(), {});
      const std::vector<int> wanted = filler.Wanted();
      for (size_t n = 0; n < wanted.size(); ++n) {
        last_[static_cast<size_t>(wanted[n])] = lane.scores[n];
      }
    }
    const size_t length = filler.canvas().size();
    if (Status status = filler.Take(std::move(lane.scores)); !status.ok()) return status.error();
    // What stands behind a mask that was taken out has moved.
    resized_ |= filler.canvas().size() != length;
  }
  return !filler.done();
}

void DiffusionWork::Forget() {
  Restart();
  drafts_allowed_ = false;  // they may be what the memory lacked
}

void DiffusionWork::Restart() {
  FreeDrafts();
  for (const SequenceId sequence : lanes_[0].sequences) model_.Truncate(sequence, 0);
  lanes_[0].cache.Forget();
  held_ = 0;
}

void DiffusionWork::FreeDrafts() {
  for (size_t nth = 1; nth < lanes_.size(); ++nth) {
    for (const SequenceId sequence : lanes_[nth].sequences) model_.FreeSequence(sequence);
    lanes_[nth].sequences.clear();
  }
}

void DiffusionWork::Evict() {
  if (lanes_.empty()) return;
  FreeDrafts();
  for (const SequenceId sequence : lanes_[0].sequences) model_.FreeSequence(sequence);
  lanes_[0].sequences.clear();
  lanes_[0].cache.Forget();
  held_ = 0;
}

// The committed tokens from the beginning on.
Result<bool> DiffusionWork::Emit() {
  if (lanes_.empty() || asks_) return !stop_.has_value();
  if (options_.diffusion.on_canvas && told_calls_ < stats_.forward_calls) {
    told_calls_ = stats_.forward_calls;
    options_.diffusion.on_canvas(lanes_[0].filler.canvas());
  }
  if (!options_.on_token) return !stop_.has_value();
  const std::span<const TokenId> output = lanes_[0].filler.output();
  while (told_ < output.size() && !stop_) {
    const TokenId token = output[told_++];
    std::string piece(task_.vocabulary->bytes(token));
    if (filter_ != nullptr) piece = filter_->Feed(piece);
    if (!options_.on_token(token, piece)) stop_ = StopReason::kCancelled;
  }
  return !stop_.has_value();
}

void DiffusionWork::Finish(std::optional<Error> error, int preemptions) {
  if (error.has_value()) {
    result_ = *std::move(error);
    return;
  }
  Generation out;
  if (!lanes_.empty()) {
    const MaskFiller& filler = lanes_[0].filler;
    std::span<const TokenId> tokens = filler.output();
    if (stop_ && options_.on_token) tokens = tokens.first(std::min(told_, tokens.size()));
    out.tokens.assign(tokens.begin(), tokens.end());
    out.stop =
        stop_.value_or(filler.ended() || constrained_ ? StopReason::kEnd : StopReason::kLength);
    stats_.forced_tokens = filler.forced();
    for (const std::vector<TokenId>& fill : filler.fills()) {
      out.gaps.emplace_back();
      for (const TokenId token : fill) out.gaps.back() += task_.vocabulary->bytes(token);
    }
  }
  for (const TokenId token : out.tokens) out.text += task_.vocabulary->bytes(token);
  if (options_.details) {
    // Tokens are not drawn one behind the other, so none has the figures of one that is.
    constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
    out.figures.assign(out.tokens.size(), {kUnknown, kUnknown, /*closing=*/true});
  }
  if (whole_filter_ != nullptr) {
    const std::string record = whole_filter_->Feed(out.text);
    out.text = record + whole_filter_->Finish();
  }
  stats_.output_tokens = static_cast<int>(out.tokens.size());
  stats_.sampled_tokens = stats_.output_tokens - stats_.forced_tokens;
  stats_.preemptions = preemptions;
  out.stats = stats_;
  result_ = std::move(out);
}

std::vector<std::shared_ptr<const Constraint>> DiffusionWork::TakeConstraints() {
  std::vector<std::shared_ptr<const Constraint>> out;
  if (constraint_ != nullptr) out.push_back(std::exchange(constraint_, nullptr));
  for (Lane& lane : lanes_) {
    if (auto at = lane.filler.TakeConstraint()) out.push_back(std::move(at));
  }
  return out;
}

void DiffusionWork::Done() {
  if (done_) done_(*std::move(result_));
}

}  // namespace pawl
