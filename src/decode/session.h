// Session: one output after another from a model, each under a constraint and within a token
// budget.
//
//   pawl::Session session(*model, vocabulary);
//   auto output = session.Generate(prompt_tokens, pawl::MakeConstraint(grammar), {.max_tokens =
//   200}); std::cout << output->text;
//
// Under a constraint the output is always complete: when the budget is nearly spent it is closed in
// the shortest way that was found instead of being cut (StopReason::kClosed).
#ifndef PAWL_SRC_DECODE_SESSION_H_
#define PAWL_SRC_DECODE_SESSION_H_

#include <memory>
#include <span>

#include "grammar/vocabulary_tables.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/batch.h"
#include "src/decode/constraint.h"
#include "src/decode/generation.h"
#include "src/model/model.h"

namespace pawl {

// A batch of one. What a call leaves in the model's prefix cache serves the next ones, so that
// prompts with a common beginning are not computed twice. One thread at a time; the model must
// outlive it.
class Session {
 public:
  // `vocabulary`: of the model's tokenizer. Logits beyond its size are never chosen. `encode`: the
  // tokenizer's encoding of a piece of text, for forced runs; may be empty.
  Session(Model& model, std::shared_ptr<const Vocabulary> vocabulary, Encoder encode = {},
          std::shared_ptr<Drafter> drafter = nullptr);

  // `constraint` nullptr: none. Errors: kInvalid (sampling parameters, empty prompt, unknown
  // token), kLimit (the prompt does not fit the context, or the shortest output does not fit the
  // budget: the message has both numbers), and what the model reports. Places: "prompt",
  // "constraint", "max_tokens", or the field of the sampling parameters.
  Result<Generation> Generate(std::span<const TokenId> prompt,
                              std::shared_ptr<const Constraint> constraint,
                              const GenerateOptions& options);

 private:
  BatchEngine engine_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SESSION_H_
