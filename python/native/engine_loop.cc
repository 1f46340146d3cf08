// The loop takes what has come, makes a step of the engine, and again. It starts with the first
// request, so that an engine that only counts tokens has no thread.
//
// Stop texts. The bytes of an output are looked through as they come. What may be the beginning of
// a stop text is held back until it is known not to be one, so that what was streamed is never
// taken back. The search begins as far back as a stop text could reach over the new bytes.
#include "python/native/engine_loop.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/base/failure.h"
#include "src/decode/stop_strings.h"

namespace pawl::python {
namespace {

std::chrono::duration<double> Seconds(double seconds) {
  return std::chrono::duration<double>(seconds);
}

const Error kClosedError{ErrorCode::kInvalid, "the engine is closed", ""};

}  // namespace

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
  if (!armed_) loop_->ReserveArmed();
  armed_ = true;
  return false;
}

// REQUIRES: mutex_ is held.
void Job::Tell() {
  if (!HasNews()) return;
  changed_.notify_all();
  if (armed_) {
    armed_ = false;
    loop_->Armed(id_);
  }
}

bool Job::AddToken(TokenId token, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (given_up_) return false;
  const size_t before = text_.size();
  text_ += bytes;
  tokens_.push_back(token);
  const StopScan scan = FindStop(options_.stops, text_, before);
  if (scan.which < options_.stops.size()) {
    stop_ = options_.stops[scan.which];
    text_.resize(scan.at);
  }
  released_ = scan.safe;
  Tell();
  return stop_.empty();
}

void Job::End(Result<Generation> output) {
  const std::lock_guard lock(mutex_);
  if (output_.has_value()) return;
  try {
    if (output.ok() && !stop_.empty()) {
      output->text = text_;
    } else if (output.ok()) {
      text_ = output->text;
      if (tokens_.size() != output->tokens.size()) tokens_ = output->tokens;
      released_ = text_.size();
    }
  } catch (...) {
    output = CurrentFailure();
  }
  output_ = std::move(output);
  Tell();
}

EngineLoop::EngineLoop(Engine engine) : engine_(std::move(engine)), process_(::getpid()) {}

bool EngineLoop::forked() const { return ::getpid() != process_; }

std::shared_ptr<EngineLoop> EngineLoop::Share(Engine engine) {
  return {new EngineLoop(std::move(engine)), [](EngineLoop* loop) {
            if (!loop->forked()) delete loop;
          }};
}

EngineLoop::~EngineLoop() { (void)Close(); }

Result<std::shared_ptr<Job>> EngineLoop::Submit(EngineRequest request, JobOptions options) {
  Result<std::vector<TokenId>> prompt = engine_.PromptTokens(request);
  if (!prompt.ok()) return prompt.error();
  if (request.grammar && &request.grammar->vocabulary() != engine_.vocabulary().get()) {
    return Error{ErrorCode::kInvalid,
                 "was compiled for another vocabulary than that of this engine", "grammar"};
  }
  if (!prompt->empty()) {
    request.prompt.clear();
    request.messages.clear();
    request.chat_json.clear();
    request.extract.reset();
    request.tokens = *std::move(prompt);
  }
  auto job = std::make_shared<Job>();
  job->loop_ = this;
  job->options_ = std::move(options);
  job->grammar_ = request.grammar;
  if (job->options_.streams || !job->options_.stops.empty()) {
    request.options.on_token = [job = job.get()](TokenId token, std::string_view bytes) {
      return job->AddToken(token, bytes);
    };
  }
  if (request.options.logprobs >= 0) {
    request.options.on_report = [job = job.get()](const TokenReport& report) {
      job->logs_.push_back({report.token, report.logprob, {report.top.begin(), report.top.end()}});
      return true;
    };
  }
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return kClosedError;
    job->id_ = next_id_++;
    inbox_.push_back({job, std::move(request)});
    if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  }
  wake_.notify_one();
  return job;
}

void EngineLoop::Cancel(const std::shared_ptr<Job>& job) {
  {
    const std::lock_guard lock(job->mutex_);
    if (job->output_.has_value()) return;
    job->given_up_ = true;
  }
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back({job, std::nullopt});
  }
  wake_.notify_one();
}

Status EngineLoop::Close() {
  if (forked()) return {};
  const std::lock_guard closing(close_mutex_);
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  {
    const std::lock_guard lock(armed_mutex_);
    closed_ = true;
  }
  armed_changed_.notify_all();
  return std::exchange(saved_, Status());
}

void EngineLoop::ReserveArmed() {
  const std::lock_guard lock(armed_mutex_);
  const size_t size = armed_.size() + arming_ + 1;
  if (armed_.capacity() < size) armed_.reserve(2 * size);
  ++arming_;
}

void EngineLoop::Armed(int64_t id) {
  {
    const std::lock_guard lock(armed_mutex_);
    --arming_;
    armed_.push_back(id);
  }
  armed_changed_.notify_one();
}

bool EngineLoop::WaitArmed(std::vector<int64_t>& ids) {
  std::unique_lock lock(armed_mutex_);
  armed_changed_.wait(lock, [&] { return closed_ || !armed_.empty(); });
  ids.clear();
  ids.reserve(2 * arming_);
  ids.swap(armed_);
  return !ids.empty() || !closed_;
}

void EngineLoop::Start(Message& message) {
  const std::shared_ptr<Job> job = std::move(message.job);
  if (!message.request) {
    for (const auto& [known, id] : running_) {
      if (known == job) return engine_.Cancel(id);
    }
    return;
  }
  const Result<RequestId> id = Guarded([&]() -> Result<RequestId> {
    if (running_.size() == running_.capacity()) running_.reserve(2 * running_.size() + 8);
    return engine_.Add(*message.request, [this, raw = job.get()](auto output) {
      const auto at = std::find_if(running_.begin(), running_.end(),
                                   [&](const auto& entry) { return entry.first.get() == raw; });
      const std::shared_ptr<Job> ended = std::move(at->first);
      running_.erase(at);
      ended->End(std::move(output));
    });
  });
  if (!id.ok()) return job->End(CopyOf(id.error()));
  running_.emplace_back(job, *id);
  // It was given up before it began.
  const std::lock_guard lock(job->mutex_);
  if (job->given_up_) engine_.Cancel(*id);
}

void EngineLoop::Loop() {
  bool busy = false;
  std::vector<Message> taken;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return busy || stop_ || !inbox_.empty(); });
      if (stop_) break;
      taken.swap(inbox_);
    }
    for (Message& message : taken) Start(message);
    taken.clear();
    busy = engine_.Step();
  }
  for (auto& [job, id] : running_) {
    job->End(kClosedError);
    engine_.Cancel(id);
  }
  // Questions to constraints that are written in Python end while there is an interpreter.
  while (engine_.Step()) {
  }
  for (Message& message : inbox_) {
    if (message.request) message.job->End(kClosedError);
  }
  inbox_.clear();
  saved_ = Guarded([&] { return engine_.SaveDraftHistory(); });
}

}  // namespace pawl::python
