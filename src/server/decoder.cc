// The loop takes what has come, makes a step of the batch, and then a step of scoring: a chunk of
// rows with the logits of each. So neither waits for the other longer than one call of the model.
// Scorings take turns by chunks: one scoring of a group at a time, and one group after the other.
//
// What constraints are asked and is not known runs on threads of the batch, so a step is short
// however long that takes. Where all outputs wait for such answers the step waits for the first of
// them, and what comes into the inbox wakes it.
#include "src/server/decoder.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "src/base/failure.h"
#include "src/base/thread_name.h"
#include "src/decode/token_watch.h"

namespace pawl::server {
namespace {

constexpr int kScoreRows = 32;  // their logits are in memory at once

}  // namespace

struct Decoder::Scoring {
  Id id = 0;
  ScoreRequest request;
  SequenceId sequence = -1;
  size_t at = 0;  // rows that have run
  ScoredTokens out;
  bool cancelled = false;
  bool lacks_memory = false;  // at its last turn, with others that go on
  std::optional<Error> error;
};

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
  message.score = std::make_unique<ScoreRequest>(std::move(request));
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
      for (const auto& scoring : scoring_) {
        if (scoring->id == message.id) scoring->cancelled = true;
      }
      score_line_.ForEach([&](const auto& scoring) {
        if (scoring->id == message.id) scoring->cancelled = true;
      });
      break;
    case Message::Kind::kScore:
      try {
        auto scoring = std::make_unique<Scoring>();
        scoring->id = message.id;
        const uint64_t group = message.score->group;
        scoring->request = std::move(*message.score);
        try {
          score_line_.Add(std::move(scoring),
                          group != 0 ? group : ~static_cast<uint64_t>(message.id));
        } catch (...) {
          *message.score = std::move(scoring->request);
          throw;
        }
      } catch (...) {
        message.score->done(CurrentFailure());
      }
      break;
  }
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
    busy = ScoreStep() || busy;
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
  for (const auto& scoring : scoring_) scoring->cancelled = true;
  score_line_.ForEach([](const auto& scoring) { scoring->cancelled = true; });
  while (ScoreStep()) {
  }
}

// nullptr: there is none.
Decoder::Scoring* Decoder::NextScoring() {
  const auto being_scored = [this](uint64_t group) {
    return std::ranges::any_of(scoring_, [&](const auto& scoring) {
      return scoring->request.group == group && group != 0;
    });
  };
  const auto waits = [&](uint64_t group) { return !being_scored(group); };
  // What memory does not hold besides others keeps newcomers out until it does.
  const auto lacks_memory = [](const auto& scoring) { return scoring->lacks_memory; };
  while (scoring_.size() < kScoredAtATime && std::ranges::none_of(scoring_, lacks_memory) &&
         score_line_.HasGroup(waits))
    scoring_.push_back(score_line_.Next(being_scored));
  return scoring_.empty() ? nullptr : scoring_.front().get();
}

bool Decoder::ScoreStep() noexcept {
  if (NextScoring() == nullptr) return false;
  Scoring& scoring = *scoring_.front();
  const KvMemory memory = model_.kv_memory();
  const auto goes_on = [](const auto& other) { return other->sequence >= 0; };
  scoring.lacks_memory = !scoring.cancelled && scoring.sequence < 0 &&
                         std::ranges::any_of(scoring_, goes_on) &&
                         static_cast<int64_t>(scoring.request.tokens.size()) >
                             memory.available * memory.page_positions;
  if (scoring.lacks_memory) {
    std::rotate(scoring_.begin(), scoring_.begin() + 1, scoring_.end());
    return true;
  }
  if (!scoring.cancelled) {
    const Status scored = Guarded([&] { return ScoreChunk(scoring); });
    if (!scored.ok()) scoring.error = CopyOf(scored.error());
  }
  const size_t size = scoring.request.tokens.size();
  if (!scoring.cancelled && !scoring.error && scoring.at + 1 < size) {
    std::rotate(scoring_.begin(), scoring_.begin() + 1, scoring_.end());
    return true;
  }
  if (scoring.sequence >= 0) model_.FreeSequence(scoring.sequence);
  const std::unique_ptr<Scoring> ended = std::move(scoring_.front());
  scoring_.pop_front();
  Result<ScoredTokens> scores = Guarded([&]() -> Result<ScoredTokens> {
    if (ended->cancelled) return Error{ErrorCode::kLimit, "the request was given up", ""};
    if (ended->error) return std::move(*ended->error);
    return std::move(ended->out);
  });
  ended->request.done(std::move(scores));
  return !scoring_.empty() || !score_line_.empty();
}

Status Decoder::ScoreChunk(Scoring& scoring) {
  const std::vector<TokenId>& tokens = scoring.request.tokens;
  const auto width = static_cast<size_t>(model_.info().vocabulary_size);
  if (scoring.sequence < 0) {
    scoring.out.logprobs.push_back(0);
    scoring.out.top.emplace_back();
    if (tokens.size() < 2) return {};
    const Result<SequenceId> sequence = model_.NewSequence(static_cast<int>(tokens.size()));
    if (!sequence.ok()) return sequence.error();
    scoring.sequence = *sequence;
  }
  const size_t rows = std::min<size_t>(kScoreRows, tokens.size() - 1 - scoring.at);
  std::vector<Row> chunk;
  for (size_t i = 0; i < rows; ++i) {
    chunk.push_back({.token = tokens[scoring.at + i],
                     .position = static_cast<int32_t>(scoring.at + i),
                     .sequence = scoring.sequence,
                     .output = static_cast<int32_t>(i)});
  }
  if (logits_.size() < width * rows) logits_.resize(width * rows);
  if (Status status = model_.Forward(chunk, logits_); !status.ok()) return status;
  GenerateOptions options;
  options.logprobs = std::max(1, scoring.request.top);
  options.on_report = [](const TokenReport&) { return true; };
  const size_t known = std::min(width, static_cast<size_t>(vocabulary_->size()));
  for (size_t i = 0; i < rows; ++i) {
    TokenWatch watch(options);
    watch.See(std::span(logits_).subspan(i * width, known), nullptr);
    watch.Append(tokens[scoring.at + i + 1], TokenReport::Source::kSampled, -1);
    const TokenReport report = watch.report(0);
    scoring.out.logprobs.push_back(report.logprob);
    const size_t most = std::min(report.top.size(), static_cast<size_t>(scoring.request.top));
    scoring.out.top.emplace_back(report.top.begin(),
                                 report.top.begin() + static_cast<ptrdiff_t>(most));
  }
  scoring.at += rows;
  return {};
}

}  // namespace pawl::server
