// A request, and steps until it is done.
#include "src/decode/session.h"

#include <optional>
#include <utility>

namespace pawl {

Session::Session(Model& model, std::shared_ptr<const Vocabulary> vocabulary, Encoder encode,
                 std::shared_ptr<Drafter> drafter)
    : engine_(model, std::move(vocabulary), std::move(encode),
              {.max_batch = 1, .drafter = std::move(drafter)}) {}

Result<Generation> Session::Generate(std::span<const TokenId> prompt,
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

}  // namespace pawl
