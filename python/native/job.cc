// What comes of a request is kept until a thread of Python takes it: the text as far as it stays,
// the tokens, and the output at the end.
#include "python/native/job.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/base/failure.h"

namespace pawl::python {
namespace {

std::chrono::duration<double> Seconds(double seconds) {
  return std::chrono::duration<double>(seconds);
}

}  // namespace

void ArmedJobs::Reserve() {
  const std::lock_guard lock(mutex_);
  const size_t size = ids_.size() + arming_ + 1;
  if (ids_.capacity() < size) ids_.reserve(2 * size);
  ++arming_;
}

void ArmedJobs::Add(int64_t id) {
  {
    const std::lock_guard lock(mutex_);
    --arming_;
    ids_.push_back(id);
  }
  changed_.notify_one();
}

bool ArmedJobs::Wait(std::vector<int64_t>& ids) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || !ids_.empty(); });
  ids.clear();
  ids.reserve(2 * arming_);
  ids.swap(ids_);
  return !ids.empty() || !closed_;
}

void ArmedJobs::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

Result<std::shared_ptr<Job>> Job::Start(AsyncEngine& engine, std::shared_ptr<ArmedJobs> armed,
                                        EngineRequest request, bool streams) {
  auto job = std::make_shared<Job>();
  job->told_ = std::move(armed);
  job->streams_ = streams;
  job->grammar_ = request.grammar;
  Delivery delivery;
  delivery.reports = request.options.logprobs >= 0;
  if (streams || delivery.reports || !request.stops.empty()) {
    delivery.on_token = [job](const OutputToken& token) { return job->AddToken(token); };
  }
  delivery.done = [job](Result<Generation> output) { job->End(std::move(output)); };
  const Result<AsyncEngine::Id> id = engine.Submit(request, std::move(delivery));
  if (!id.ok()) return id.error();
  const std::lock_guard lock(job->mutex_);
  job->id_ = *id;
  return job;
}

Result<std::shared_ptr<Job>> Job::StartSearch(AsyncEngine& engine, std::shared_ptr<ArmedJobs> armed,
                                              const EngineRequest& request, SearchOptions options) {
  auto job = std::make_shared<Job>();
  job->told_ = std::move(armed);
  job->grammar_ = request.grammar;
  const auto done = [job](Result<SearchResult> found) {
    job->End(Guarded([&]() -> Result<Generation> {
      if (!found.ok()) return CopyOf(found.error());
      if (found->outputs.empty()) {
        return Error{ErrorCode::kLimit, "no record was found within the limits", ""};
      }
      const SearchOutput& output = found->outputs.front();
      Generation out;
      out.tokens = output.tokens;
      out.text = job->grammar_ ? job->grammar_->Record(output.text) : output.text;
      out.stop = output.closed ? StopReason::kClosed : StopReason::kEnd;
      out.stats.output_tokens = static_cast<int>(output.tokens.size());
      out.stats.forward_calls = static_cast<int>(found->model_calls);
      return out;
    }));
  };
  const Result<AsyncEngine::Id> id = engine.SubmitSearch(request, std::move(options), done);
  if (!id.ok()) return id.error();
  const std::lock_guard lock(job->mutex_);
  job->id_ = *id;
  return job;
}

bool Job::Wait(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, Seconds(seconds), [&] { return HasNews(); });
}

bool Job::WaitDone(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, Seconds(seconds), [&] { return output_.has_value(); });
}

Job::News Job::Take() {
  const std::lock_guard lock(mutex_);
  News news;
  news.bytes = text_.substr(taken_, released_ - taken_);
  taken_ = released_;
  news.tokens.assign(tokens_.begin() + static_cast<ptrdiff_t>(taken_tokens_), tokens_.end());
  taken_tokens_ = tokens_.size();
  news.done = output_.has_value();
  return news;
}

bool Job::done() const {
  const std::lock_guard lock(mutex_);
  return output_.has_value();
}

bool Job::Arm() {
  const std::lock_guard lock(mutex_);
  if (HasNews()) return true;
  if (!armed_) told_->Reserve();
  armed_ = true;
  return false;
}

// REQUIRES: mutex_ is held.
void Job::Tell() {
  if (!HasNews()) return;
  changed_.notify_all();
  if (armed_) {
    armed_ = false;
    told_->Add(id_);
  }
}

bool Job::AddToken(const OutputToken& token) {
  const std::lock_guard lock(mutex_);
  if (const TokenReport* const report = token.report) {
    logs_.push_back({report->token, report->logprob, {report->top.begin(), report->top.end()}});
  }
  text_ += token.bytes;
  text_.resize(token.size);
  if (token.token != kNoToken) tokens_.push_back(token.token);
  released_ = token.safe;
  Tell();
  return true;
}

void Job::End(Result<Generation> output) noexcept {
  const std::lock_guard lock(mutex_);
  const Status kept = Guarded([&]() -> Status {
    if (!output.ok()) return {};
    text_ = output->text;
    if (tokens_.size() != output->tokens.size()) tokens_ = output->tokens;
    released_ = text_.size();
    return {};
  });
  if (!kept.ok()) output = CopyOf(kept.error());
  output_ = std::move(output);
  Tell();
}

}  // namespace pawl::python
