// Decoder: the one thread that runs the model. Requests come from any thread and share its steps.
//
//   Decoder decoder(*model, vocabulary, encode, {.max_batch = 8});
//   Decoder::Id id = decoder.Add({.prompt = tokens, .constraint = c, .options = o, .done = f});
//   decoder.Cancel(id);                       // f is called with what there is
//
// Callbacks run on the decoder's thread: every microsecond in them is one that all outputs wait. An
// exception on that thread fails the request that it belongs to (batch.h), scores included.
#ifndef PAWL_SRC_SERVER_DECODER_H_
#define PAWL_SRC_SERVER_DECODER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "src/decode/batch.h"
#include "src/model/model.h"

namespace pawl::server {

// What a model thinks of each token of a text that is there already.
struct ScoredTokens {
  // By token; the first has no probability.
  std::vector<float> logprobs;
  std::vector<std::vector<TokenLogprob>> top;
};

struct ScoreRequest {
  std::vector<TokenId> tokens;
  int top = 0;         // how many of the most probable tokens, at each place
  uint64_t group = 0;  // takes turns with other groups; 0: alone
  std::function<void(Result<ScoredTokens> scores)> done;
};

class Decoder {
 public:
  using Id = int64_t;
  struct Options {
    int max_batch = 8;
    int threads = 1;
    std::shared_ptr<Drafter> drafter = nullptr;     // drafts for all outputs; nullptr: none
    std::function<void(double)> on_step = nullptr;  // BatchOptions::on_step, scores included
  };

  // The model must outlive it, and nobody else may run it meanwhile.
  Decoder(Model& model, std::shared_ptr<const Vocabulary> vocabulary, Encoder encode,
          const Options& options);
  // Ends all requests as Cancel does.
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // `done` is called once, and not where Add or Score throws std::bad_alloc.
  Id Add(BatchRequest request);
  // Without memory for the message the request goes on: its callback has to end it.
  void Cancel(Id id) noexcept;
  // In the calls of the outputs.
  Id Score(ScoreRequest request);

  int running() const { return running_; }
  int waiting() const { return waiting_; }
  int64_t steps() const { return steps_; }
  // 0 to 1, of the memory for keys and values.
  double kv_usage() const { return kv_usage_; }
  // Of the pages of keys and values that have memory.
  int64_t kv_bytes() const { return kv_bytes_; }

 private:
  using Done = std::function<void(Result<Generation>)>;
  struct Message {
    Id id = 0;
    enum class Kind { kAdd, kCancel, kScore } kind = Kind::kCancel;
    std::unique_ptr<BatchRequest> request;
    std::shared_ptr<Done> done;  // of the request
    std::shared_ptr<ScoreRequest> score;
  };

  void Send(Message message);
  void Loop();
  void Take(Message message) noexcept;
  std::unique_ptr<Work> ScoringOf(Id id, const std::shared_ptr<ScoreRequest>& request);

  Model& model_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  BatchEngine engine_;
  std::unordered_map<Id, RequestId> ids_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Message> inbox_;  // under mutex_
  bool stop_ = false;           // under mutex_
  Id next_id_ = 1;              // under mutex_

  std::atomic<int> running_{0}, waiting_{0};
  std::atomic<int64_t> steps_{0};
  std::atomic<double> kv_usage_{0};
  std::atomic<int64_t> kv_bytes_{0};
  std::thread thread_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_DECODER_H_
