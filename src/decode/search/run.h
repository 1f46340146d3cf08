// A search from what a caller has: a model, a prompt, a constraint, options.
#ifndef PAWL_SRC_DECODE_SEARCH_RUN_H_
#define PAWL_SRC_DECODE_SEARCH_RUN_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/result.h"
#include "pawl/sampling.h"
#include "src/decode/constraint.h"
#include "src/decode/sampling/branches.h"
#include "src/decode/work.h"
#include "src/model/model.h"

namespace pawl {

// Prompts of gaps: prefix, text before it, suffix, text behind it, middle.
struct InfillMarks {
  TokenId prefix = kNoToken, suffix = kNoToken, middle = kNoToken;
  TokenId begin = kNoToken;  // of every prompt; kNoToken: none
};

// What it refers to outlives the search.
struct SearchInput {
  Model& model;
  const Vocabulary& vocabulary;
  Encoder encode;  // may be an empty function
  std::vector<TokenId> prompt;
  std::shared_ptr<const Constraint> constraint;  // nullptr: none
  // The tokens of SearchOptions::contrast_prompt; nullopt: there is none.
  std::optional<std::vector<TokenId>> contrast = {};
  // Of self-infill: the grammar that `constraint` follows, and how the model marks a gap.
  std::optional<Grammar> grammar = {};
  std::optional<InfillMarks> infill = {};
  // Of a classification: a choice is the beginning of a text that goes on, and no end is looked
  // for. REQUIRES: no choice begins with another.
  bool choices_go_on = false;
  // Outputs are cut at max_tokens and need not be complete, as without a constraint.
  bool cuts = false;
};

// Errors: kInvalid with the option as place; kLimit for a prompt that is too long ("prompt") and
// for a budget that is too small ("max_tokens"); those of the model and the checks. `host` nullptr:
// the model by itself.
Result<SearchResult> RunSearch(const SearchInput& input, const SearchOptions& options,
                               BranchHost* host = nullptr);
// `input` has no constraint.
Result<ClassifyResult> RunClassify(const SearchInput& input, const ClassifyOptions& options,
                                   BranchHost* host = nullptr);

// A place of a text at which more than one token may follow.
struct EntropyPlace {
  double entropy = 0;  // of the tokens that may follow, in nats
  bool wrong = false;  // the most probable one is not that of the text
};
// Of all places of a text behind the prompt, in order. Errors: those of the model; "text" as place
// for a text that the constraint does not allow, or that is too long.
Result<std::vector<EntropyPlace>> EntropiesOf(const SearchInput& input,
                                              std::span<const TokenId> text);

// The same as a work of a batch (BatchEngine::Add), whose calls it shares. Checks are called on a
// thread of the work, `done` on the thread of the batch.
std::unique_ptr<Work> MakeSearchWork(SearchInput input, SearchOptions options,
                                     std::function<void(Result<SearchResult>)> done);
std::unique_ptr<Work> MakeSearchWork(SearchInput input, ClassifyOptions options,
                                     std::function<void(Result<ClassifyResult>)> done);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SEARCH_RUN_H_
