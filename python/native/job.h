// Job: a request of Python and what came of it so far. The engine's thread adds to it
// (AsyncEngine), threads of Python take from it.
//
//   Result<std::shared_ptr<Job>> job = Job::Start(*engine, armed, request, false);
//   while (!(*job)->Wait(0.02)) {
//   }
//   (*job)->Take();
//
// Nothing here knows Python: the engine's thread never holds the interpreter's lock and never waits
// for it. A caller that wants to be woken when a job has news arms it and listens to
// ArmedJobs::Wait.
#ifndef PAWL_PYTHON_NATIVE_JOB_H_
#define PAWL_PYTHON_NATIVE_JOB_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/engine.h"
#include "src/engine/async_engine.h"

namespace pawl::python {

// The ids of armed jobs that have news. Thread-safe.
class ArmedJobs {
 public:
  // Memory for an id that Add is to keep, so that the engine's thread needs none.
  void Reserve();
  void Add(int64_t id);
  // Those that were added since the last call, waiting for the first. false: closed.
  bool Wait(std::vector<int64_t>& ids);
  void Close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int64_t> ids_;
  size_t arming_ = 0;  // ids that will come
  bool closed_ = false;
};

// What is known of a token where log-probabilities were asked for.
struct TokenLog {
  TokenId token = kNoToken;
  float logprob = 0;
  std::vector<TokenLogprob> top;
};

// Thread-safe.
class Job {
 public:
  struct News {
    std::string bytes;  // that will stay
    std::vector<TokenId> tokens;
    bool done = false;
  };

  // `streams`: Take() is asked for before the end. Errors: those of AsyncEngine::Submit.
  static Result<std::shared_ptr<Job>> Start(AsyncEngine& engine, std::shared_ptr<ArmedJobs> armed,
                                            EngineRequest request, bool streams);

  // The best output of a search, for the end alone. Errors: those of AsyncEngine::SubmitSearch.
  static Result<std::shared_ptr<Job>> StartSearch(AsyncEngine& engine,
                                                  std::shared_ptr<ArmedJobs> armed,
                                                  const EngineRequest& request,
                                                  SearchOptions options);

  // Waits until there is news: something to take, where it streams, or the end. false: none after
  // that time.
  bool Wait(double seconds);
  // Waits for the end alone.
  bool WaitDone(double seconds);
  // What has come since the last Take.
  News Take();
  bool done() const;
  // REQUIRES: done().
  const Result<Generation>& output() const { return *output_; }
  const std::vector<TokenLog>& logs() const { return logs_; }
  const std::optional<Grammar>& grammar() const { return grammar_; }
  int64_t id() const { return id_; }
  // ArmedJobs is to name this job once, when there is news. true: there is already.
  bool Arm();

 private:
  bool HasNews() const { return output_.has_value() || (streams_ && released_ > taken_); }
  bool AddToken(const OutputToken& token);
  void End(Result<Generation> output) noexcept;
  void Tell();

  std::shared_ptr<ArmedJobs> told_;
  int64_t id_ = 0;
  bool streams_ = false;
  std::vector<TokenLog> logs_;  // written by the engine's thread, read when done
  std::optional<Grammar> grammar_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::vector<TokenId> tokens_;
  size_t released_ = 0, taken_ = 0;  // bytes of text_ that will stay; those that were taken
  size_t taken_tokens_ = 0;
  std::optional<Result<Generation>> output_;
  bool armed_ = false;
};

}  // namespace pawl::python

#endif  // PAWL_PYTHON_NATIVE_JOB_H_
