// Chunks are merged in their order, so an output that is ready waits for those before it; no more
// chunks than `ahead` have begun. A job may be asked from two threads: that of its caller and
// that of the engine. What it calls, it calls without its lock.
#include "src/engine/document.h"

#include <algorithm>
#include <utility>

#include "src/base/failure.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/engine/schema_view.h"

namespace pawl {
namespace {

constexpr int kMostPasses = 16;
constexpr int kLeastChunk = 16;

std::string PlaceOf(const DocumentChunk& chunk) {
  return "chunk " + std::to_string(chunk.number + 1) + " (characters " +
         std::to_string(chunk.begin_character) + " to " + std::to_string(chunk.end_character) + ")";
}

}  // namespace

void AddStats(const GenerationStats& stats, GenerationStats& total) {
  total.prompt_tokens += stats.prompt_tokens;
  total.reused_tokens += stats.reused_tokens;
  total.output_tokens += stats.output_tokens;
  total.sampled_tokens += stats.sampled_tokens;
  total.forced_tokens += stats.forced_tokens;
  total.closing_tokens += stats.closing_tokens;
  total.reasoning_tokens += stats.reasoning_tokens;
  total.forward_calls += stats.forward_calls;
  total.prefill_seconds += stats.prefill_seconds;
  total.decode_seconds += stats.decode_seconds;
  total.constraint_seconds += stats.constraint_seconds;
  total.sample_seconds += stats.sample_seconds;
  total.mask_surprise += stats.mask_surprise;
  total.drafts.calls += stats.drafts.calls;
  total.drafts.rows += stats.drafts.rows;
  total.drafts.accepted += stats.drafts.accepted;
  total.drafts.expected += stats.drafts.expected;
  total.drafts.lossy += stats.drafts.lossy;
  total.drafts.seconds += stats.drafts.seconds;
  for (const DraftSourceStats& source : stats.drafts.sources) {
    DraftSourceStats* sum = nullptr;
    for (DraftSourceStats& known : total.drafts.sources) {
      if (known.name == source.name) sum = &known;
    }
    if (sum == nullptr) sum = &total.drafts.sources.emplace_back(DraftSourceStats{source.name});
    sum->drafted += source.drafted;
    sum->kept += source.kept;
    sum->accepted += source.accepted;
    sum->model_calls += source.model_calls;
    sum->late_calls += source.late_calls;
    sum->seconds += source.seconds;
  }
}

Status CheckDocument(const DocumentOptions& options, const LoadedModel& model) {
  const int context = model.context_length();
  if (options.chunk_tokens != 0 &&
      (options.chunk_tokens < kLeastChunk || options.chunk_tokens > context)) {
    return Error{ErrorCode::kInvalid,
                 "must be from " + std::to_string(kLeastChunk) + " to the model's context of " +
                     std::to_string(context) + " tokens, not " +
                     std::to_string(options.chunk_tokens),
                 "chunk_tokens"};
  }
  if (options.passes < 1 || options.passes > kMostPasses) {
    return Error{ErrorCode::kInvalid,
                 "must be from 1 to " + std::to_string(kMostPasses) + ", not " +
                     std::to_string(options.passes),
                 "passes"};
  }
  return {};
}

DocumentChunks ChunksOf(std::string_view text, const DocumentOptions& options,
                        const LoadedModel& model) {
  const int most = options.chunk_tokens > 0 ? options.chunk_tokens : model.context_length() / 2;
  return DocumentChunks(
      text, {.max_tokens = static_cast<size_t>(std::max(1, most)), .passes = options.passes},
      [&tokenizer = model.tokenizer()](std::string_view part) {
        return tokenizer.Encode(part).size();
      });
}

void MoveToDocument(const DocumentChunk& chunk, Generation& output) {
  for (ValueDetails& value : output.details) {
    if (!value.span) continue;
    value.span->begin += chunk.begin_character;
    value.span->end += chunk.begin_character;
    value.span->begin_byte += static_cast<int64_t>(chunk.begin);
    value.span->end_byte += static_cast<int64_t>(chunk.begin);
  }
}

// ---- Outputs ----

Status DocumentOutput::Add(const DocumentChunk& chunk, Result<Generation> output) {
  ++sum_.chunks;
  if (!output.ok()) {
    if (!first_error_) first_error_ = output.error();
    if (output.error().code == ErrorCode::kUnsatisfiable) return {};
    return InFile(PlaceOf(chunk), output.error());
  }
  AddStats(output->stats, sum_.stats);
  sum_.stats.budget = std::max(sum_.stats.budget, output->stats.budget);
  if (!output->reasoning.empty()) {
    sum_.reasoning += (sum_.reasoning.empty() ? "" : "\n") + output->reasoning;
  }
  for (std::string& note : output->notes) {
    if (std::ranges::find(sum_.notes, note) == sum_.notes.end()) sum_.notes.push_back(note);
  }
  if (output->stop == StopReason::kClosed && sum_.stop == StopReason::kEnd) {
    sum_.stop = StopReason::kClosed;
    sum_.closed_by = output->closed_by;
  }
  Result<json::Value> record = json::Parse(output->text);
  if (!record.ok()) {
    return Error{ErrorCode::kInvalid,
                 "the output of a chunk is no whole JSON: " + record.error().message,
                 PlaceOf(chunk)};
  }
  only_ = merge_.empty() ? std::move(output->text) : std::string();
  merge_.Add({.record = *std::move(record),
              .details = std::move(output->details),
              .begin = chunk.begin_character,
              .end = chunk.end_character});
  return {};
}

Result<Generation> DocumentOutput::Take(const Grammar& grammar, std::string_view schema) {
  if (merge_.empty()) {
    if (first_error_) return *std::move(first_error_);
    return std::move(sum_);
  }
  MergedRecord merged = merge_.Take();
  sum_.text = std::move(only_);
  if (sum_.text.empty()) {
    const Result<json::Value> tree = json::Parse(schema);
    const Result<std::string> written =
        WriteRecord(grammar, tree.ok() ? *tree : json::Value(), merged.record);
    if (!written.ok()) {
      return Error{ErrorCode::kInvalid, "the merged record of the chunks does not fit the schema",
                   written.error().place};
    }
    sum_.text = grammar.Record(*written);
  }
  sum_.details = std::move(merged.details);
  sum_.conflicts = std::move(merged.conflicts);
  return std::move(sum_);
}

// ---- Jobs ----

DocumentJob::DocumentJob(const LoadedModel& model, const EngineRequest& request, Door door,
                         Done done)
    : text_(request.extract->text),
      alternatives_(request.options.details),
      request_(request),
      door_(std::move(door)),
      done_(std::move(done)),
      chunks_(ChunksOf(text_, *request.document, model)),
      output_(request.extract->schema) {
  request_.document.reset();
  request_.extract->text.clear();
  request_.options.details = true;
  request_.options.on_token = nullptr;
  request_.options.on_report = nullptr;
  request_.options.on_reasoning = nullptr;
}

Result<std::shared_ptr<DocumentJob>> DocumentJob::Start(const LoadedModel& model,
                                                        const EngineRequest& request, Door door,
                                                        Done done) {
  const auto unsupported = [](const char* what, const char* place) {
    return Error{ErrorCode::kUnsupported, what, place};
  };
  if (!request.extract) return unsupported("is for the prompt of extract", "document");
  if (!request.grammar) return unsupported("needs the grammar of the schema", "document");
  if (request.constraint != nullptr) {
    return unsupported("a document's record has no constraint of your own", "constraint");
  }
  if (!request.stops.empty()) return unsupported("are not for documents", "stops");
  if (Status status = CheckDocument(*request.document, model); !status.ok()) return status.error();
  if (Status status = CheckExtractText(request.extract->text); !status.ok()) {
    return InFile("text", status.error());
  }
  std::shared_ptr<DocumentJob> job(
      new DocumentJob(model, request, std::move(door), std::move(done)));
  if (Status status = job->Pump(true); !status.ok()) return status.error();
  (void)job->Pump(false);
  return job;
}

Status DocumentJob::Pump(bool first) noexcept {
  const Status pumped = Guarded([&]() -> Status {
    for (;;) {
      EngineRequest request;
      int number = 0;
      {
        const std::lock_guard lock(mutex_);
        if (ended_ || at_end_ || cancelled_ || failure_) break;
        if (slots_.size() >= static_cast<size_t>(door_.ahead)) break;
        const std::optional<DocumentChunk> chunk = chunks_.Next();
        at_end_ = !chunk.has_value();
        if (at_end_) break;
        number = chunk->number;
        request = request_;
        request.extract->text = chunk->TextOf(text_);
        request.extract->cut_begin = chunk->cut_begin;
        request.extract->cut_end = chunk->cut_end;
        slots_[number].chunk = *chunk;
        ++running_;
      }
      // What is white space to others is no text.
      Result<int64_t> id = Error{ErrorCode::kUnsatisfiable, "holds only white space", "text"};
      if (CheckExtractText(request.extract->text).ok()) {
        id = door_.add(request, alternatives_,
                       [self = shared_from_this(), number](Result<Generation> output) {
                         self->Store(number, std::move(output));
                         (void)self->Pump(false);
                       });
      }
      if (!id.ok()) {
        if (first && id.error().code != ErrorCode::kUnsatisfiable) return id.error();
        Store(number, id.error());
      } else {
        bool cancel = false;
        {
          const std::lock_guard lock(mutex_);
          if (const auto slot = slots_.find(number); slot != slots_.end()) {
            slot->second.id = *id;
            slot->second.added = true;
          }
          cancel = cancelled_ || failure_.has_value();
        }
        if (cancel) door_.cancel(*id);
      }
      if (first) return {};
    }
    return {};
  });
  if (!pumped.ok() && first) return CopyOf(pumped.error());
  if (!pumped.ok()) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = CopyOf(pumped.error());
  }
  Finish();
  return {};
}

void DocumentJob::Store(int number, Result<Generation>&& output) noexcept {
  std::vector<int64_t> to_cancel;
  const Status stored = Guarded([&]() -> Status {
    const std::lock_guard lock(mutex_);
    --running_;
    const auto slot = slots_.find(number);
    if (slot == slots_.end()) return {};
    if (output.ok()) MoveToDocument(slot->second.chunk, *output);
    slot->second.added = false;
    slot->second.output.emplace(std::move(output));
    while (!failure_ && !slots_.empty() && slots_.begin()->second.output) {
      Slot& next = slots_.begin()->second;
      const bool cut = next.output->ok() && (*next.output)->stop == StopReason::kCancelled;
      if (!cut) {
        if (Status added = output_.Add(next.chunk, *std::move(next.output)); !added.ok()) {
          failure_ = added.error();
        }
      }
      slots_.erase(slots_.begin());
    }
    if (!failure_) return {};
    for (const auto& [unused, one] : slots_) {
      if (one.added) to_cancel.push_back(one.id);
    }
    return {};
  });
  if (!stored.ok()) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = CopyOf(stored.error());
  }
  for (const int64_t id : to_cancel) door_.cancel(id);
}

void DocumentJob::Finish() noexcept {
  Done done;
  Result<Generation> output = Error{ErrorCode::kInternal, "the document did not end", ""};
  {
    const std::lock_guard lock(mutex_);
    const bool over = failure_ || cancelled_ || (at_end_ && slots_.empty());
    if (ended_ || running_ > 0 || !over) return;
    ended_ = true;
    done = std::move(done_);
    if (failure_) {
      output = CopyOf(*failure_);
    } else {
      output = Guarded([&] { return output_.Take(*request_.grammar, request_.extract->schema); });
      if (cancelled_ && output.ok()) output->stop = StopReason::kCancelled;
    }
  }
  try {
    if (done) done(std::move(output));
  } catch (...) {  // NOLINT(bugprone-empty-catch): there is no one left to tell
  }
}

void DocumentJob::Cancel() noexcept {
  (void)Guarded([&]() -> Status {
    std::vector<int64_t> ids;
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      for (const auto& [unused, slot] : slots_) {
        if (slot.added) ids.push_back(slot.id);
      }
    }
    for (const int64_t id : ids) door_.cancel(id);
    return {};
  });
  Finish();
}

}  // namespace pawl
