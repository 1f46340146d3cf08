// StopFlag: lets another thread end a compilation that takes too long for whoever wanted it.
//
//   auto stop = std::make_shared<pawl::StopFlag>();
//   auto grammar = compiler.CompileJsonSchema(schema, options, stop);   // kLimit when stopped
//   ...
//   stop->Stop();                                                       // from elsewhere
//
// A flag is for one compilation: once that has succeeded, Stop does nothing any more.
// Thread safety: all methods may be called from several threads at once.
#ifndef PAWL_STOP_FLAG_H_
#define PAWL_STOP_FLAG_H_

#include <atomic>

namespace pawl {

class StopFlag {
 public:
  void Stop() {
    State running = State::kRunning;
    state_.compare_exchange_strong(running, State::kStopped);
  }
  bool stopped() const { return state_.load(std::memory_order_relaxed) == State::kStopped; }
  // For the compiler, at its end. false: it was stopped before.
  bool Finish() {
    State running = State::kRunning;
    return state_.compare_exchange_strong(running, State::kFinished) || running == State::kFinished;
  }

 private:
  enum class State { kRunning, kStopped, kFinished };
  std::atomic<State> state_{State::kRunning};
};

}  // namespace pawl

#endif  // PAWL_STOP_FLAG_H_
