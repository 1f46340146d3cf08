// The loop takes what has come and makes a step of the batch. Scores are works of the batch
// (score_work.h): a chunk of their rows runs in the calls of the outputs.
//
// What constraints are asked and is not known runs on threads of the batch, so a step is short
// however long that takes. Where all outputs wait for such answers the step waits for the first of
// them, and what comes into the inbox wakes it.
#include "src/server/decoder.h"

#include <algorithm>
#include <utility>

#include "src/base/failure.h"
#include "src/base/thread_name.h"
#include "src/decode/score_work.h"
#include "src/decode/token_watch.h"

namespace pawl::server {
Decoder::Decoder(Model& model, std::shared_ptr<const Vocabulary> vocabulary, Encoder encode,
                 const Options& options)
    : model_(model),
      vocabulary_(std::move(vocabulary)),
      engine_(model, vocabulary_, std::move(encode),
              {.max_batch = options.max_batch,
               .max_rows = std::max(256, 2 * options.max_batch),
               .threads = options.threads,
               .look_threads = std::max(2, options.threads),
               .drafter = options.drafter,
               .on_step = options.on_step}),
      thread_([this] {
        NameThread("pawl-decoder");
        Loop();
      }) {}

Decoder::~Decoder() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  engine_.Wake();
  thread_.join();
}

void Decoder::Send(Message message) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(message));
  }
  wake_.notify_one();
  engine_.Wake();
}

Decoder::Id Decoder::Add(BatchRequest request) {
  Message message;
  message.kind = Message::Kind::kAdd;
  message.done = std::make_shared<Done>(std::move(request.done));
  message.request = std::make_unique<BatchRequest>(std::move(request));
  Id id;
  {
    const std::lock_guard lock(mutex_);
    id = message.id = next_id_++;
    inbox_.push_back(std::move(message));
    ++waiting_;
  }
  wake_.notify_one();
  engine_.Wake();
  return id;
}

Decoder::Id Decoder::Score(ScoreRequest request) {
  Message message;
  message.kind = Message::Kind::kScore;
  message.score = std::make_shared<ScoreRequest>(std::move(request));
  Id id;
  {
    const std::lock_guard lock(mutex_);
    id = message.id = next_id_++;
    inbox_.push_back(std::move(message));
  }
  wake_.notify_one();
  engine_.Wake();
  return id;
}

void Decoder::Cancel(Id id) noexcept {
  Message message;
  message.id = id;
  try {
    Send(std::move(message));
  } catch (...) {  // NOLINT(bugprone-empty-catch): see the header
  }
}

void Decoder::Take(Message message) noexcept {
  switch (message.kind) {
    case Message::Kind::kAdd: {
      const Id id = message.id;
      const std::shared_ptr<Done> done = std::move(message.done);
      try {
        ids_[id] = -1;
        message.request->done = [this, id, done](Result<Generation> output) {
          ids_.erase(id);
          if (*done) (*done)(std::move(output));
        };
        ids_[id] = engine_.Add(std::move(*message.request));
      } catch (...) {
        ids_.erase(id);
        if (*done) (*done)(CurrentFailure());
      }
      break;
    }
    case Message::Kind::kCancel:
      if (const auto found = ids_.find(message.id); found != ids_.end()) {
        engine_.Cancel(found->second);
      }
      break;
    case Message::Kind::kScore: {
      const Id id = message.id;
      const std::shared_ptr<ScoreRequest> request = std::move(message.score);
      try {
        ids_[id] = -1;
        ids_[id] = engine_.Add(ScoringOf(id, request), request->group);
      } catch (...) {
        ids_.erase(id);
        request->done(CurrentFailure());
      }
      break;
    }
  }
}

std::unique_ptr<Work> Decoder::ScoringOf(Id id, const std::shared_ptr<ScoreRequest>& request) {
  const auto scores = std::make_shared<ScoredTokens>();
  scores->logprobs.push_back(0);
  scores->top.emplace_back();
  GenerateOptions options;
  options.logprobs = std::max(1, request->top);
  options.on_report = [](const TokenReport&) { return true; };
  const auto see = [this, request, scores, options](size_t i, std::span<const float> logits) {
    const size_t known = std::min(logits.size(), static_cast<size_t>(vocabulary_->size()));
    TokenWatch watch(options);
    watch.See(logits.first(known), nullptr);
    watch.Append(request->tokens[i], TokenReport::Source::kSampled, -1);
    const TokenReport report = watch.report(0);
    scores->logprobs.push_back(report.logprob);
    const size_t most = std::min(report.top.size(), static_cast<size_t>(request->top));
    scores->top.emplace_back(report.top.begin(), report.top.begin() + static_cast<ptrdiff_t>(most));
    return Status();
  };
  const auto done = [this, id, request, scores](const Status& ended) {
    ids_.erase(id);
    if (!ended.ok()) return request->done(CopyOf(ended.error()));
    request->done(std::move(*scores));
  };
  return std::make_unique<ScoreWork>(model_, request->tokens, 1, see, done);
}

void Decoder::Loop() {
  bool busy = false;
  std::vector<Message> taken;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return busy || stop_ || !inbox_.empty(); });
      if (stop_) break;
      taken.swap(inbox_);
    }
    for (Message& message : taken) Take(std::move(message));
    taken.clear();
    busy = engine_.Step();
    running_ = engine_.running();
    waiting_ = engine_.waiting();
    steps_ = engine_.stats().steps;
    const KvMemory memory = model_.kv_memory();
    kv_usage_ = 1.0 - static_cast<double>(memory.available) / static_cast<double>(memory.pages);
    kv_bytes_ = memory.made * memory.page_bytes;
  }
  for (Message& message : inbox_) {
    if (message.kind != Message::Kind::kCancel) Take(std::move(message));
  }
  for (const auto& [id, request] : ids_) engine_.Cancel(request);
  while (engine_.Step()) {
  }
}

}  // namespace pawl::server
