// EngineLoop: an Engine that any thread may use. One thread of its own runs the model, so that
// requests of many Python threads, or of many tasks of asyncio, share its calls.
//
//   EngineLoop loop(std::move(engine));
//   std::shared_ptr<Job> job = loop.Submit(request, {.stops = {"\n"}, .streams = true});
//   while (!job->Wait(0.02)) {
//   }
//   job->Take();
//
// Nothing here knows Python: the thread never holds the interpreter's lock and never waits for it.
// Whoever wants to be called when a job has news arms it and listens to WaitArmed.
//
// When memory runs out on the loop's thread the job that wanted it ends with the error of kLimit,
// "memory ran out" (src/decode/batch.h); the others go on. The functions for other threads throw
// std::bad_alloc, which is a MemoryError in Python.
#ifndef PAWL_PYTHON_NATIVE_ENGINE_LOOP_H_
#define PAWL_PYTHON_NATIVE_ENGINE_LOOP_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pawl/engine.h"

namespace pawl::python {

class EngineLoop;

struct JobOptions {
  std::vector<std::string> stops;  // texts at which the output ends, themselves left out
  bool streams = false;            // Take() is asked for before the end
};

// What is known of a token where log-probabilities were asked for.
struct TokenLog {
  TokenId token = kNoToken;
  float logprob = 0;
  std::vector<TokenLogprob> top;
};

// One request and what came of it so far. Thread-safe.
class Job {
 public:
  struct News {
    std::string bytes;  // that will stay
    std::vector<TokenId> tokens;
    bool done = false;
  };

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
  // The stop text that ended the output; empty: none did.
  const std::string& stop() const { return stop_; }
  const std::vector<TokenLog>& logs() const { return logs_; }
  const std::optional<Grammar>& grammar() const { return grammar_; }
  int64_t id() const { return id_; }
  // WaitArmed is to name this job once, when there is news. true: there is already.
  bool Arm();

 private:
  friend class EngineLoop;
  bool HasNews() const { return output_.has_value() || (options_.streams && released_ > taken_); }
  bool AddToken(TokenId token, std::string_view bytes);
  void End(Result<Generation> output);
  void Tell();

  EngineLoop* loop_ = nullptr;
  int64_t id_ = 0;
  JobOptions options_;
  std::vector<TokenLog> logs_;  // written by the loop, read when done
  // Held here, so that the loop's thread is never the last owner of what came from Python.
  std::optional<Grammar> grammar_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::vector<TokenId> tokens_;
  size_t released_ = 0, taken_ = 0;  // bytes of text_ that will stay; those that were taken
  size_t taken_tokens_ = 0;
  std::string stop_;
  std::optional<Result<Generation>> output_;
  bool armed_ = false;
  bool given_up_ = false;
};

class EngineLoop {
 public:
  explicit EngineLoop(Engine engine);
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // Errors of the request itself come at once.
  Result<std::shared_ptr<Job>> Submit(EngineRequest request, JobOptions options);
  // It ends soon, with what it has.
  void Cancel(const std::shared_ptr<Job>& job);
  // Ends all jobs and the thread; later jobs fail. Errors: those of the history of drafts.
  Status Close();
  // The ids of armed jobs that have news since the last call, waiting for the first. false: the
  // loop is closed.
  bool WaitArmed(std::vector<int64_t>& ids);

  // In a process that was forked from the one that made it: there is no thread here, its locks may
  // be held for ever, and nothing may be done with it, not even ending it.
  bool forked() const;
  // Owns a loop, and leaves it alone in such a process.
  static std::shared_ptr<EngineLoop> Share(Engine engine);

  // The const functions of Engine are for any thread.
  const Engine& engine() const { return engine_; }

 private:
  friend class Job;
  struct Message {
    std::shared_ptr<Job> job;
    std::optional<EngineRequest> request;  // none: cancel
  };

  void Loop();
  void Start(Message& message);
  // For an id that Armed is to keep: so that it needs no memory on the loop's thread.
  void ReserveArmed();
  void Armed(int64_t id);

  Engine engine_;
  const int process_;
  std::vector<std::pair<std::shared_ptr<Job>, RequestId>> running_;  // of the thread

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Message> inbox_;
  int64_t next_id_ = 1;
  bool stop_ = false;
  Status saved_;
  std::thread thread_;
  std::mutex close_mutex_;

  std::mutex armed_mutex_;
  std::condition_variable armed_changed_;
  std::vector<int64_t> armed_;
  size_t arming_ = 0;    // ids that will come, under armed_mutex_
  bool closed_ = false;  // under armed_mutex_
};

}  // namespace pawl::python

#endif  // PAWL_PYTHON_NATIVE_ENGINE_LOOP_H_
