// What the engines share: loading a model with its drafter, and requests of the public engine as
// requests of the batch. Engine runs them on the caller's thread (engine.cc), AsyncEngine on a
// thread of its own (async_engine.h). And an Engine around parts that the caller has loaded:
//
//   Engine engine = EngineAccess::Make({*std::move(model), drafter}, 1);
//   Result<Generation> output = engine.Generate({.tokens = prompt, .grammar = grammar});
//
// Thread safety: all functions may be called from several threads.
#ifndef PAWL_SRC_ENGINE_ENGINE_PARTS_H_
#define PAWL_SRC_ENGINE_ENGINE_PARTS_H_

#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pawl/engine.h"
#include "src/base/sync.h"
#include "src/decode/batch.h"
#include "src/decode/sampling/prefix_trie.h"
#include "src/decode/search/run.h"
#include "src/decode/stop_strings.h"
#include "src/engine/loaded_model.h"
#include "src/engine/record_details.h"
#include "src/engine/thinking.h"

namespace pawl {

struct EngineParts {
  std::unique_ptr<LoadedModel> model;
  std::shared_ptr<Drafter> drafter;  // nullptr where drafts are off
};
// Errors: those of Engine::Load.
Result<EngineParts> LoadEngineParts(const std::string& path, const EngineOptions& options);
// Batches of at most `max_batch` requests of the model.
BatchOptions BatchOptionsFor(const LoadedModel& model, int max_batch,
                             std::shared_ptr<Drafter> drafter);

EngineInfo InfoOf(const LoadedModel& model);
// The request has this adapter (LoadedModel::AdapterOf), and learns from no drafts of others.
void UseAdapter(const LoadedModel& model, int adapter, BatchRequest& request);
// Errors: those of Engine::PromptTokens.
Result<std::vector<TokenId>> PromptTokensOf(const EngineRequest& request, const LoadedModel& model);
// Errors: kUnsupported for a model that only classifies.
Status CheckWrites(const LoadedModel& model);
// The constraint of the request; nullptr: none. Errors: kInvalid for a grammar of another
// vocabulary.
Result<std::shared_ptr<const Constraint>> ConstraintOf(const EngineRequest& request,
                                                       const LoadedModel& model);
// The same for samplers. Errors: also kUnsupported for a constraint that is not exact.
Result<std::shared_ptr<const Constraint>> SamplerConstraintOf(const EngineRequest& request,
                                                              const LoadedModel& model);
// What a search runs on, but for its options. Errors: those of PromptTokensOf and ConstraintOf, and
// kUnsupported for thoughts and free text. Of a classification: kInvalid for a grammar or a
// constraint.
Result<SearchInput> SearchInputOf(const EngineRequest& request, const LoadedModel& model);
// With the tokens of SearchOptions::contrast_prompt, which stands for the text of an extraction or
// the last message of the user. Errors: also kInvalid with "contrast_prompt" as place.
Result<SearchInput> SearchInputOf(const EngineRequest& request, const SearchOptions& options,
                                  const LoadedModel& model);
Result<SearchInput> ClassifyInputOf(const EngineRequest& request, const LoadedModel& model);
// A request laid out: without `done`, and without the callbacks of `text`.
struct LaidOut {
  BatchRequest request;
  // nullptr: the output has no thoughts. Else Follow takes the callbacks' texts apart, and Into the
  // output's.
  std::shared_ptr<ThoughtText> text;
  std::vector<std::string> notes;  // of the output
  // With GenerateOptions::details: what AddDetails is asked with when the output has ended.
  std::shared_ptr<DetailsRequest> details;
};
// `thoughts`: nullptr: those that the request's chat or text asks for. Errors: those of
// Engine::Add.
Result<LaidOut> LayOut(const EngineRequest& request, const LoadedModel& model,
                       const ThoughtPlan* thoughts = nullptr);
// The texts of an output that has ended, told apart. `text` may be nullptr.
void TellApart(ThoughtText* text, const std::vector<std::string>& notes,
               Result<Generation>& output);
// The batch knows constraints; the caller gave a grammar alone.
Result<Generation> ForCaller(Result<Generation> output);
// What a stop string that was found changes in its output, whose text is cut to `text_size`.
void CutAtStop(const StopStrings& stops, size_t text_size, Generation& output);

// For the commands and code completion, which look at a model before its weights are read.
class EngineAccess {
 public:
  // No one waits for an output but the thread that calls Step, so this thread finds the masks.
  static Engine Make(EngineParts parts, int max_batch);
  static const LoadedModel& ModelOf(const Engine& engine);
  // As Engine::Generate, for a request of tokens whose prompt was a chat.
  static Result<Generation> Generate(Engine& engine, const EngineRequest& request,
                                     const ThoughtPlan& thoughts);
  // As Engine::Add of a chunk of a document. `alternatives`: those of its details are wanted.
  static Result<RequestId> AddChunk(Engine& engine, const EngineRequest& request, bool alternatives,
                                    Engine::Done done);
  // As Engine::Sample, with a proposal that needs no tokenizer (nullptr: none) and a trie that the
  // caller keeps (nullptr: for this run alone).
  static Result<SamplerResult> Sample(Engine& engine, const EngineRequest& request,
                                      const SamplerOptions& options, Model* proposal,
                                      PrefixTrie* trie);
};

// Tries of samplers (prefix_trie.h) that are kept between calls, the one used last first.
class CachedTries {
 public:
  // What a trie is of. Grammar and constraint are kept, so that others cannot be at their
  // addresses.
  struct Key {
    std::vector<TokenId> prompt;
    std::optional<Grammar> grammar;
    std::shared_ptr<const Constraint> constraint;
    double temperature;
    int max_tokens;
    std::string lora;
    bool adaptive;
    std::vector<std::shared_ptr<const Check>> checks;

    bool operator==(const Key& other) const;
  };
  // A trie in use: by one sampler at a time.
  struct Known {
    Key key;
    PrefixTrie trie;
  };

  explicit CachedTries(size_t max_bytes) : max_bytes_(max_bytes) {}

  static Key KeyOf(std::span<const TokenId> prompt, const EngineRequest& request,
                   const SamplerOptions& options);
  // The known trie, out of the list, or a new one. A trie that is not put back is forgotten.
  std::list<Known> Take(Key key);
  // REQUIRES: the list has the one trie that Take returned.
  void PutBack(std::list<Known> trie) noexcept;

 private:
  const size_t max_bytes_;
  Mutex mutex_;
  std::list<Known> tries_;  // under mutex_
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_ENGINE_PARTS_H_
