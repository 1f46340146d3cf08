// Draws what a model with logits of its own guesses at a node of a tree.
//
// Under the rule "coupled" a guess is the token that the target would draw from these logits, with
// its noise: where both think alike, both draw alike, also at high temperatures (Daliri et al.,
// arXiv 2408.07978). Under a rule of rejection a guess is drawn from the law of the logits with
// noise that nothing else uses, and the law goes with the node.
#ifndef PAWL_SRC_DECODE_DRAFT_GUESS_DRAWER_H_
#define PAWL_SRC_DECODE_DRAFT_GUESS_DRAWER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "src/decode/draft/source.h"
#include "src/decode/sampler.h"

namespace pawl {

// One thread at a time.
class GuessDrawer {
 public:
  // `setting` outlives it. `source`: another number for each source that draws.
  GuessDrawer(const DraftSetting& setting, const GenerateOptions& options, uint64_t source)
      : setting_(setting), options_(options), sampler_(options_.sampling), source_(source) {}

  // `logits`: behind the place. The guesses in falling order of their chance, or as drawn.
  void Draw(const DraftPlace& place, std::span<const float> logits, std::vector<TokenId>& guesses);

 private:
  void DrawFromLaw(const DraftPlace& place, std::span<const float> logits,
                   const TokenHistory& history, std::vector<TokenId>& guesses);

  const DraftSetting& setting_;
  const GenerateOptions options_;
  Sampler sampler_;
  const uint64_t source_;
  uint64_t draws_ = 0;
  std::vector<TokenId> tokens_;
  std::vector<TokenMass> masses_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_GUESS_DRAWER_H_
