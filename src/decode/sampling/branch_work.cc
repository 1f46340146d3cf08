// The body of a BranchWork is a function that waits for logits in its middle. It has a thread, of
// which it uses the stack alone: the thread runs only while some other one waits for it in Look.
// A work that ends before its body does (an error of the model, a cancelled request) lets the body
// go on with that error, until it has returned.
#include "src/decode/sampling/branch_work.h"

#include <algorithm>
#include <utility>

#include "src/base/failure.h"
#include "src/base/stop_scope.h"

namespace pawl {
namespace {

// Rows of a work that writes.
constexpr int kMostWrittenRows = 64;

}  // namespace

BranchWork::BranchWork(Model& model, int prompt_tokens, std::function<Status(BranchHost&)> body,
                       std::function<void(Status)> done)
    : model_(model),
      memory_(model.kv_memory()),
      prompt_tokens_(prompt_tokens),
      body_(std::move(body)),
      done_(std::move(done)),
      thread_([this](SideThread&) {
        const StopScope scope(&stop);
        body_status_ = Guarded([this] { return body_(*this); });
        wanted_ = nullptr;
      }) {}

BranchWork::~BranchWork() {
  End(true);
  Evict();
}

// ---- The side of the body ----

void BranchWork::Join(std::shared_ptr<BranchSet> set) {
  const std::lock_guard lock(mutex_);
  sets_.push_back(std::move(set));
}

void BranchWork::Leave(const BranchSet& set) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(sets_, [&](const auto& one) { return &*one == &set; });
  left_.push_back(std::move(*found));
  sets_.erase(found);
}

Status BranchWork::Run(BranchSet& set) {
  if (!answer_.ok()) return CopyOf(answer_.error());
  if (set.done()) return {};
  wanted_ = &set;
  thread_.Pause();
  wanted_ = nullptr;
  if (!answer_.ok()) return CopyOf(answer_.error());
  return {};
}

// ---- Looks ----

Result<bool> BranchWork::Start(bool may_wait) {
  may_wait_ = may_wait;
  return may_wait ? Look(false) : true;
}

Result<bool> BranchWork::Look(bool known_only) {
  if (known_only) return true;
  thread_.Resume();
  asks_ = false;
  if (!thread_.ended()) return true;
  if (!body_status_.ok()) return CopyOf(body_status_.error());
  return false;
}

// ---- Rows ----

void BranchWork::FreeLeft() {
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<BranchSet>& set : left_) set->Evict(model_);
  left_.clear();
}

Status BranchWork::Prepare() {
  FreeLeft();
  return wanted_ == nullptr ? Status() : wanted_->Open(model_);
}

bool BranchWork::writes() const { return ever_answered_ && pending() <= kMostWrittenRows; }

int64_t BranchWork::pages(int headroom, bool looking) const {
  if (!looking && wanted_ != nullptr) {
    pages_ = wanted_->pages(memory_, headroom);
  } else if (!ever_answered_) {
    pages_ = memory_.PagesOf(0, prompt_tokens_ + headroom) + memory_.state.most();
  }
  return pages_;
}

int64_t BranchWork::PagesOf(int rows) const {
  return wanted_ == nullptr ? 0 : wanted_->PagesOf(memory_, rows);
}

void BranchWork::Ask(RowSink& sink, int most) {
  outputs_.clear();
  answered_ = false;
  if (wanted_ == nullptr) return;
  sink.states = sink.states || wanted_->hidden() > 0;
  wanted_->AddRows(most, sink.rows, [&](size_t nth) {
    const int32_t output = sink.Want(*this, static_cast<int>(nth));
    outputs_.push_back({nth, output});
    return output;
  });
}

void BranchWork::Ran(const CallAnswers& answers, double /*seconds*/, bool failed) {
  if (failed) return Forget();
  const auto output_of = [&](size_t nth) {
    return std::ranges::find(outputs_, nth, &std::pair<size_t, int32_t>::first)->second;
  };
  wanted_->Ran([&](size_t nth) { return answers.Logits(output_of(nth)); },
               [&](size_t nth) { return answers.States(output_of(nth)); });
  answered_ = wanted_->done();
}

Result<bool> BranchWork::Take(const CallAnswers& /*answers*/, bool /*later*/) {
  answered_ = false;
  ever_answered_ = true;
  asks_ = true;
  return may_wait_ ? Look(false) : true;
}

void BranchWork::Forget() {
  if (wanted_ != nullptr) wanted_->Forget(model_);
}

void BranchWork::Evict() {
  FreeLeft();
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<BranchSet>& set : sets_) set->Evict(model_);
}

// ---- The end ----

void BranchWork::Cancel() {
  answer_ = Error{ErrorCode::kLimit, "the request was cancelled", ""};
  result_ = answer_;
}

void BranchWork::End(bool failed) {
  if (!thread_.begun() || thread_.ended()) return;
  if (failed && answer_.ok()) answer_ = Error{ErrorCode::kLimit, "the request has ended", ""};
  if (answer_.ok()) answer_ = Error{ErrorCode::kLimit, "the request was cancelled", ""};
  stop = true;
  while (!thread_.ended()) thread_.Resume();
}

void BranchWork::Finish(std::optional<Error> error, int /*preemptions*/) {
  if (error.has_value()) result_ = *std::move(error);
}

void BranchWork::Done() {
  if (done_) done_(result_ ? *std::move(result_) : Status());
}

}  // namespace pawl
