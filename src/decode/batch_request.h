// A request of a BatchEngine, for the files that the engine consists of.
#ifndef PAWL_SRC_DECODE_BATCH_REQUEST_H_
#define PAWL_SRC_DECODE_BATCH_REQUEST_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/failure.h"
#include "src/decode/batch.h"

namespace pawl {

// Pages that so many positions of a KV cache take.
inline int64_t Pages(int64_t positions, int page) { return (positions + page - 1) / page; }

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
  uint64_t fingerprint = 0;    // of the constraint, for drafts
  SequenceId sequence = -1;
  int length = 0;                 // tokens that the sequence holds
  const float* logits = nullptr;  // of its last token, or
  TokenId drawn = kNoToken;       // what the model has drawn after it
  bool ended = false;
  std::optional<Error> error;

  // Drafts. In a call they stand behind the pending rows: the likeliest chain as plain rows, so
  // that nothing is moved when it comes, then the rest as a tree.
  std::unique_ptr<DraftedRequest> drafted;  // nullptr: none for this request
  int draft_rows = 0;                       // in the call that was made last
  int plain_rows = 0;                       // of its sequence in that call, pending ones included
  struct NodeRow {
    int row = 0;        // which of its sequence
    uint64_t path = 0;  // as ancestors
    int32_t output = -1;
    std::vector<SeenToken> seen;   // what the request of a backend that draws refers to
    std::optional<Error> failure;  // no request could be made
  };
  std::vector<NodeRow> node_rows;  // by node of the tree
  bool took_drafted = false;       // what follows is of the last call
  int reached = 0;                 // the node from which the output goes on
  // Nodes that the output came by, each with the token after it.
  std::vector<std::pair<int, TokenId>> visited;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_BATCH_REQUEST_H_
