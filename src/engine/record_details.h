// What is known of the values of a record that a model has written: where the text has them, how
// sure the model was of each, and of choices the probabilities of all values that may stand there.
//
//   auto of = std::make_shared<DetailsRequest>(DetailsRequest{prompt, grammar, schema, text});
//   AddDetails(batch, model, of, std::move(output), [](Result<Generation> output) {
//     Print(DetailsJson(output->details));
//   });
//
// docs/extraction.md has the definitions.
#ifndef PAWL_SRC_ENGINE_RECORD_DETAILS_H_
#define PAWL_SRC_ENGINE_RECORD_DETAILS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/generation.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/sampling.h"
#include "src/decode/batch.h"
#include "src/engine/loaded_model.h"

namespace pawl {

// What details need of the request of an output.
struct DetailsRequest {
  std::vector<TokenId> prompt = {};
  std::optional<Grammar> grammar = {};  // of the answer
  std::string schema = {};              // JSON; empty: no choices are known
  std::string text = {};                // empty: values have no spans
  uint64_t group = 0;                   // as in BatchRequest
  int adapter = 0;                      // of LoadedModel::AdapterOf
  // The number of each request to the batch before it runs, for who may cancel it.
  std::function<void(RequestId id)> asks = nullptr;
};

// A value that is a choice: behind `prompt` the text goes on with one of `texts`.
struct ChoiceQuestion {
  size_t value = 0;  // of the details
  std::vector<TokenId> prompt;
  std::vector<std::string> texts, values;  // different texts; their values as JSON
};

// The details but for alternatives, and what is to be asked for those.
struct PlannedDetails {
  std::vector<ValueDetails> values;
  std::vector<ChoiceQuestion> questions;
};
// REQUIRES: the output has Generation::figures.
PlannedDetails PlanDetails(const DetailsRequest& request, const Tokenizer& tokenizer,
                           const Vocabulary& vocabulary, const Generation& output);

// Fills in Generation::details. `done` is called once, now or in a later step of the batch, but
// for batches that go before. An output that failed or was cancelled has no alternatives. Call it
// between the steps of the batch, or from its callbacks.
void AddDetails(BatchEngine& batch, const LoadedModel& model,
                std::shared_ptr<const DetailsRequest> request, Result<Generation> output,
                std::function<void(Result<Generation>)> done);

// A record as a line of JSON: that of /v1/extract and of `pawl extract --details`.
struct RecordLine {
  int64_t index = 0;
  std::string_view record;     // JSON
  std::string_view reasoning;  // empty: none
  std::string members;         // more members, as DetailsJson has them
  std::string_view finish_reason;
  bool closed = false;
  ClosedBy closed_by = ClosedBy::kNothing;
  int prompt_tokens = 0, output_tokens = 0;
  std::string Json() const;
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_RECORD_DETAILS_H_
