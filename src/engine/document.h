// A document as a request: a text that is read in chunks, each a request of its own, and one output
// out of theirs.
//
//   auto job = DocumentJob::Start(model, request, door, [](Result<Generation> output) { ... });
//   (*job)->Cancel();
//
// The parts serve callers that ask for chunks themselves:
//
//   DocumentChunks chunks = ChunksOf(text, options, model);
//   DocumentOutput output(schema);
//   while (auto chunk = chunks.Next()) output.Add(*chunk, RecordOf(chunk->TextOf(text)));
//   Result<Generation> whole = output.Take(grammar);
#ifndef PAWL_SRC_ENGINE_DOCUMENT_H_
#define PAWL_SRC_ENGINE_DOCUMENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/engine.h"
#include "src/engine/document_chunks.h"
#include "src/engine/document_merge.h"
#include "src/engine/loaded_model.h"

namespace pawl {

void AddStats(const GenerationStats& stats, GenerationStats& total);

// Errors: kInvalid with "chunk_tokens" or "passes" as place.
Status CheckDocument(const DocumentOptions& options, const LoadedModel& model);
// `text` and `model` outlive the result. REQUIRES: CheckDocument.
DocumentChunks ChunksOf(std::string_view text, const DocumentOptions& options,
                        const LoadedModel& model);
// How many chunks run at a time, and wait for those before them, in an engine of such a batch.
inline int ChunksAhead(int max_batch) { return 2 * max_batch; }
// The output with spans of the document.
void MoveToDocument(const DocumentChunk& chunk, Generation& output);

// The outputs of chunks as one.
class DocumentOutput {
 public:
  // `schema`: JSON, of the records; may be empty.
  explicit DocumentOutput(std::string_view schema) : merge_(schema) {}
  // In the order of the chunks. `output` has details, with spans of the document. A chunk whose
  // text has no span for a field that needs one (kUnsatisfiable) has no record. Errors: those of
  // the output, and kInvalid where it is no JSON; the place has the chunk.
  Status Add(const DocumentChunk& chunk, Result<Generation> output);
  // As `grammar` writes the record; that of a single chunk as it came. With details. Errors: that
  // of the first chunk where none has a record; kInvalid where the merged record does not fit the
  // schema.
  Result<Generation> Take(const Grammar& grammar, std::string_view schema);
  int chunks() const { return sum_.chunks; }

 private:
  DocumentMerge merge_;
  Generation sum_;
  std::string only_;  // the text of the one record, while there is one
  std::optional<Error> first_error_;
};

class DocumentJob : public std::enable_shared_from_this<DocumentJob> {
 public:
  using Done = std::function<void(Result<Generation> output)>;
  // Where the requests of chunks go. `done` of a request is called once, later or on another
  // thread, unless `add` returns an error.
  struct Door {
    std::function<Result<int64_t>(const EngineRequest& request, bool alternatives, Done done)> add;
    std::function<void(int64_t id)> cancel;
    int ahead = 16;
  };

  // `done` is called once, if there is no error. Errors: those of CheckDocument and of the first
  // chunk's request; kUnsupported for what documents do not have.
  static Result<std::shared_ptr<DocumentJob>> Start(const LoadedModel& model,
                                                    const EngineRequest& request, Door door,
                                                    Done done);
  // The output comes soon, of the chunks that have ended, with StopReason::kCancelled.
  void Cancel() noexcept;
  bool ended() const { return ended_; }

 private:
  DocumentJob(const LoadedModel& model, const EngineRequest& request, Door door, Done done);
  struct Slot {
    DocumentChunk chunk;
    int64_t id = 0;
    bool added = false;
    std::optional<Result<Generation>> output;
  };

  // Adds requests while there are places. `first`: the first one, whose error is returned.
  Status Pump(bool first) noexcept;
  void Store(int number, Result<Generation>&& output) noexcept;
  // Tells the caller, where nothing is left to do.
  void Finish() noexcept;

  const std::string text_;
  const bool alternatives_;  // of choices are wanted
  EngineRequest request_;    // of a chunk, but for its text
  const Door door_;

  std::mutex mutex_;
  // All under mutex_.
  Done done_;
  DocumentChunks chunks_;
  DocumentOutput output_;
  std::map<int, Slot> slots_;  // by number: chunks that have begun and are not merged
  int running_ = 0;
  bool at_end_ = false, cancelled_ = false;
  std::atomic<bool> ended_ = false;
  std::optional<Error> failure_;
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_DOCUMENT_H_
