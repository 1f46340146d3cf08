// Session: one output after another from a model of a test, each in a batch of its own.
//
//   pawl::Session session(*model, vocabulary);
//   auto output = session.Generate(prompt_tokens, pawl::MakeConstraint(grammar), {.max_tokens =
//   200}); std::cout << output->text;
#ifndef PAWL_TESTS_SUPPORT_SESSION_H_
#define PAWL_TESTS_SUPPORT_SESSION_H_

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "grammar/vocabulary_tables.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/batch.h"
#include "src/decode/constraint.h"
#include "src/decode/generation.h"
#include "src/model/model.h"

namespace pawl {

// What a call leaves in the model's prefix cache serves the next ones. One thread at a time; the
// model must outlive it.
class Session {
 public:
  Session(Model& model, std::shared_ptr<const Vocabulary> vocabulary, Encoder encode = {},
          std::shared_ptr<Drafter> drafter = nullptr)
      : engine_(model, std::move(vocabulary), std::move(encode),
                {.max_batch = 1, .drafter = std::move(drafter)}) {}

  Result<Generation> Generate(std::span<const TokenId> prompt,
                              std::shared_ptr<const Constraint> constraint,
                              const GenerateOptions& options) {
    std::optional<Result<Generation>> answer;
    engine_.Add({.prompt = {prompt.begin(), prompt.end()},
                 .constraint = std::move(constraint),
                 .options = options,
                 .done = [&answer](Result<Generation> output) { answer = std::move(output); }});
    while (engine_.Step()) {
    }
    return *std::move(answer);
  }

 private:
  BatchEngine engine_;
};

}  // namespace pawl

#endif  // PAWL_TESTS_SUPPORT_SESSION_H_
