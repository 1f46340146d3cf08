// A model that knows nothing: random walks over the masks of a grammar, with the decode loop and
// the token budget that real models have.
//
//   auto model = std::make_unique<RandomWalkModel>(grammar, /*ending=*/0.1f);
//   Engine engine = EngineAccess::Make({LoadedModel::Of({nullptr, vocabulary}, std::move(model)),
//                                       nullptr}, 1);
//   EngineRequest request;
//   request.tokens = {RandomWalkModel::kPrompt};
//   request.grammar = grammar;
//   request.options.sampling.temperature = 1;
//   auto text = engine.Generate(request);
#ifndef PAWL_SRC_CLI_RANDOM_WALK_H_
#define PAWL_SRC_CLI_RANDOM_WALK_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pawl/grammar.h"
#include "src/model/model.h"

namespace pawl::cli {

// At temperature 1 each allowed token is as probable as any other, but one: the token that the
// shortest completion goes on with (the end of output where the text may end) has at least the
// probability `ending`. One sequence; one thread at a time.
class RandomWalkModel : public Model {
 public:
  // The only prompt it takes: a single token, whatever it means.
  static constexpr TokenId kPrompt = 0;

  // `ending`: 0 to less than 1; 0 makes all allowed tokens alike.
  RandomWalkModel(const Grammar& grammar, float ending);

  const ModelInfo& info() const override { return info_; }
  Result<SequenceId> NewSequence(int /*capacity*/) override { return SequenceId{0}; }
  void FreeSequence(SequenceId sequence) override { Truncate(sequence, 0); }
  void Truncate(SequenceId sequence, int length) override;
  Status Run(const ModelCall& call) override;

 private:
  // A completion that was found at some position, followed from there.
  struct Plan {
    std::shared_ptr<const std::vector<OutputPiece>> parts;  // nullptr: the output has left it
    size_t part = 0, done = 0;     // where the output is in it: a part, and bytes of that
    size_t asked = 0, length = 0;  // where it was found, and how long it was
  };
  // Takes the tokens again where the grammar has started again, see State::stale().
  void Rebuild();
  void Follow(TokenId token, Plan& plan) const;
  void WriteLogits(const State& state, size_t position, Plan& plan, std::span<float> logits) const;

  Grammar grammar_;
  float ending_;
  ModelInfo info_;
  std::vector<State> states_;  // after the token at each position, of which the first is the prompt
  std::vector<TokenId> tokens_;  // after the prompt
  std::vector<Plan> plans_;      // the same
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_RANDOM_WALK_H_
