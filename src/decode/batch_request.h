// A request of a BatchEngine, for the files that the engine consists of.
#ifndef PAWL_SRC_DECODE_BATCH_REQUEST_H_
#define PAWL_SRC_DECODE_BATCH_REQUEST_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "src/base/failure.h"
#include "src/decode/batch.h"

namespace pawl {

struct BatchEngine::Request {
  Request(RequestId id_in, const OutputTask& task, BatchRequest from)
      : id(id_in),
        group(from.group != 0 ? from.group : ~static_cast<uint64_t>(id_in)),
        run(task, std::move(from.prompt), std::move(from.constraint), std::move(from.options)),
        done(std::move(from.done)) {}

  int pending() const { return static_cast<int>(run.tokens().size()) - length; }
  void Fail(Error why) noexcept {
    error = std::move(why);
    ended = true;
  }
  // What a step of the run has answered.
  void Take(const Result<bool>& wants) noexcept {
    if (!wants.ok()) return Fail(CopyOf(wants.error()));
    ended = !*wants;
  }

  RequestId id;
  const uint64_t group;
  int64_t age = 0;  // grows with each request whose turn has come
  OutputRun run;
  std::function<void(Result<Generation>)> done;
  bool started = false;  // its turn has come once
  bool begun = false;    // what comes before its first logits is done
  bool cancelled = false;
  bool follows_later = false;  // its look is to be done while the model runs
  int preemptions = 0;

  // While another thread looks (batch_looks.cc), `run` is that thread's alone.
  bool looking = false;
  bool late = false;              // and Step no longer waits for it
  std::atomic<bool> stop{false};  // ends the look
  std::atomic<bool> looked{false};
  Result<bool> answer = true;  // of the look, when `looked`
  SequenceId sequence = -1;
  int length = 0;                 // tokens that the sequence holds
  const float* logits = nullptr;  // of its last token, or
  TokenId drawn = kNoToken;       // what the model has drawn after it
  bool ended = false;
  std::optional<Error> error;

  std::unique_ptr<OutputDrafts> drafts;  // nullptr: none for this request
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_BATCH_REQUEST_H_
