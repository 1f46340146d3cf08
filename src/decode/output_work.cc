// An output as a work. Its sequence holds a beginning of its tokens (prompt and output); the rest
// is pending, and the logits after its last token are wanted. One pending token is a decode step, a
// few are a forced run, many are a prompt, or what has to be computed again. Rows of drafts come
// behind the last token (draft/verifier.h).
//
// Where the model draws tokens itself, the row of a new token may run before the constraint has
// followed the token (Follow). If the constraint then needs another thread, the token behind that
// row is not drawn, and the row is computed again (Looked).
#include "src/decode/output_work.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/failure.h"
#include "src/base/stop_scope.h"

namespace pawl {
namespace {

// Pending tokens of an output that writes: forced runs are not much longer.
constexpr int kMostWritten = 64;
// The tag of the answer behind its last token; drafts have tags from 0 on.
constexpr int kLastToken = -1;

}  // namespace

OutputWork::OutputWork(const OutputSetting& setting, std::vector<TokenId> prompt,
                       std::shared_ptr<const Constraint> constraint, GenerateOptions options,
                       Callback done)
    : setting_(setting),
      run_(setting.task, std::move(prompt), std::move(constraint), std::move(options)),
      done_(std::move(done)) {}

// ---- Looks ----

Result<bool> OutputWork::Start(bool may_wait) {
  may_wait_ = may_wait;
  Result<bool> wants = run_.Start();
  if (!wants.ok() || !*wants) return wants;
  const StopScope scope(&stop);
  if (setting_.verifier != nullptr) drafts_ = setting_.verifier->New(run_);
  // What drafts ask of a constraint is not known.
  const bool asks_more = drafts_ != nullptr && DraftVerifier::asks_first(*drafts_);
  if (!may_wait && asks_more) return true;
  wants = run_.Look(!may_wait);
  if (wants.ok() && *wants && asks_more) DraftVerifier::Prepare(*drafts_);
  return wants;
}

Result<bool> OutputWork::Begin() {
  begun_ = true;
  const std::string_view lacks = run_.NeedsLogits();
  if (!lacks.empty() && setting_.draws) {
    return Error{ErrorCode::kUnsupported, "is not there where the device draws the tokens",
                 std::string(lacks)};
  }
  if (drafts_ != nullptr) setting_.verifier->Begin(*drafts_);
  return true;
}

Result<bool> OutputWork::Look(bool known_only) {
  const StopScope scope(&stop);
  Result<bool> goes_on = run_.Look(known_only);
  if (!begun_ && drafts_ != nullptr && goes_on.ok() && *goes_on) {
    DraftVerifier::Prepare(*drafts_);
  }
  return goes_on;
}

void OutputWork::Looked() {
  const bool has_run = static_cast<int>(run_.tokens().size()) == length_;
  if (sequence_ >= 0 && has_run) setting_.model->Truncate(sequence_, --length_);
}

// ---- Rows ----

Status OutputWork::Open() {
  const Result<SequenceId> sequence = setting_.model->NewSequence(run_.most_tokens());
  if (!sequence.ok()) return sequence.error();
  sequence_ = *sequence;
  return {};
}

bool OutputWork::writes() const { return run_.asked() && pending() <= kMostWritten; }

Status OutputWork::Reuse() {
  if (pending() <= 1) return {};
  // The last token runs in any case, for its logits.
  const std::span<const TokenId> tokens = run_.tokens();
  const int found = setting_.model->ReusePrefix(sequence_, tokens.first(tokens.size() - 1));
  const int reused = std::max(length_, found);
  if (!run_.asked()) {
    const int prompt = run_.stats().prompt_tokens;
    run_.stats().reused_tokens += std::min(reused, prompt) - std::min(length_, prompt);
  }
  length_ = reused;
  return {};
}

int64_t OutputWork::pages(int headroom, bool looking) const {
  const KvMemory memory = setting_.model->kv_memory();
  // The tokens of one that sits out are not known here.
  const int tokens = looking ? length_ : static_cast<int>(run_.tokens().size());
  const int64_t most = std::min(run_.most_tokens(), tokens + headroom);
  return memory.PagesOf(length_, most) + (sequence_ < 0 ? memory.state.most() : 0);
}

int64_t OutputWork::PagesOf(int rows) const {
  return setting_.model->kv_memory().PagesOf(length_, int64_t{length_} + rows);
}

void OutputWork::Ask(RowSink& sink, int most) {
  const std::span<const TokenId> tokens = run_.tokens();
  const bool last = most == pending();
  rows_ = most;
  output_ = -1;
  unwanted_ = answered_ = false;
  for (int i = 0; i < most; ++i) {
    sink.rows.push_back({.token = tokens[static_cast<size_t>(length_ + i)],
                         .position = length_ + i,
                         .sequence = sequence_});
  }
  if (!last) return;
  output_ = sink.Want(*this, kLastToken);
  sink.rows.back().output = output_;
  if (!sink.draws) sink.rows.back().allowed = run_.allowed();
  if (drafts_ == nullptr) return;
  const int drafts =
      setting_.verifier->AddRows(*drafts_,
                                 {.sequence = sequence_,
                                  .length = length_,
                                  .pending = rows_,
                                  .root_output = output_,
                                  .next_output = static_cast<int32_t>(sink.asking.size()),
                                  .draws = sink.draws},
                                 sink.rows);
  for (int i = 0; i < drafts; ++i) (void)sink.Want(*this, i);
}

void OutputWork::Ran(const CallAnswers& answers, double seconds, bool failed) {
  GenerationStats& stats = run_.stats();
  ++stats.forward_calls;
  (run_.asked() ? stats.decode_seconds : stats.prefill_seconds) += seconds;
  if (failed) return;
  length_ += rows_;
  if (output_ < 0) return;
  answered_ =
      !answers.drawn() || (!unwanted_ && answers.tokens[static_cast<size_t>(output_)] != kNoToken);
}

Result<bool> OutputWork::Take(const CallAnswers& answers, bool later) {
  answered_ = false;
  took_forced_ = false;
  if (drafts_ != nullptr && DraftVerifier::HasTree(*drafts_)) {
    return setting_.verifier->Take(*drafts_, answers, [this] { return Look(!may_wait_); });
  }
  const size_t before = run_.tokens().size();
  Result<bool> wants = answers.drawn()
                           ? run_.TakeToken(answers.tokens[static_cast<size_t>(output_)])
                           : run_.Take(answers.Logits(output_));
  if (wants.ok() && *wants) {
    // The last token of the budget has no row.
    follows_later_ = later && answers.drawn() && run_.tokens_left() > 0;
    if (!follows_later_) wants = Look(!may_wait_);
  }
  took_forced_ = run_.tokens().size() > before + 1;
  return wants;
}

Result<bool> OutputWork::TakeOn(const CallAnswers& answers) {
  return setting_.verifier->TakeOn(*drafts_, answers, [this] { return Look(!may_wait_); });
}

void OutputWork::Settle(const CallAnswers& answers, bool ended) {
  if (drafts_ == nullptr) return;
  length_ = setting_.verifier->Settle(*drafts_, answers, sequence_, length_, ended);
}

void OutputWork::Evict() {
  if (sequence_ >= 0) setting_.model->FreeSequence(sequence_);
  sequence_ = -1;
  length_ = 0;
}

// ---- While the model computes ----

Result<bool> OutputWork::Follow() {
  asked_tokens_ = run_.tokens().size();
  if (!run_.asks()) return true;
  return Look(!may_wait_);
}

Status OutputWork::Request(int tag, bool sits_out, SampleRequest& wanted) {
  if (tag >= 0) {
    DraftVerifier::Ask(*drafts_, tag, wanted);
    return {};
  }
  unwanted_ = wanted.unwanted = sits_out || run_.tokens().size() != asked_tokens_;
  if (unwanted_) return {};
  const Status asked = Guarded([&]() -> Status {
    wanted = run_.Request();
    return {};
  });
  unwanted_ = wanted.unwanted = !asked.ok();
  return asked;
}

void OutputWork::Offer(int rows, bool wanted) {
  if (!wanted && drafts_ != nullptr) DraftVerifier::Drop(*drafts_);
  setting_.verifier->Offer(wanted ? drafts_.get() : nullptr, run_, sequence_, length_, rows);
}

void OutputWork::GiveUpDrafts() {
  if (drafts_ != nullptr) DraftVerifier::GiveUp(*drafts_);
}

// ---- The end ----

void OutputWork::End(bool failed) {
  if (drafts_ == nullptr) return;
  setting_.verifier->End(*drafts_, failed);
  drafts_.reset();
}

void OutputWork::Finish(std::optional<Error> error, int preemptions) {
  if (!done_) return;
  result_ = Guarded([&]() -> Result<Generation> {
    if (error.has_value()) return *std::move(error);
    run_.stats().preemptions = preemptions;
    return run_.Finish();
  });
}

void OutputWork::Done() {
  if (done_ && result_) done_(*std::exchange(result_, std::nullopt));
}

}  // namespace pawl
