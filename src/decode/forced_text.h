// ForcedText: the tokens that a constraint dictates, one after the other. The decode loop and
// searches take them from here, so that both write forced text alike.
//
//   ForcedText forced(vocabulary, encode);
//   for (;;) {
//     const TokenId token = forced.Next(*place->mask(), [&] { return place->forced(limit); });
//     if (token == kNoToken) break;                    // the model is to be asked
//     place = place->Next(token);
//   }
//
// Thread safety: none; one output each.
#ifndef PAWL_SRC_DECODE_FORCED_TEXT_H_
#define PAWL_SRC_DECODE_FORCED_TEXT_H_

#include <functional>
#include <string>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/grammar.h"
#include "pawl/vocabulary.h"

namespace pawl {

class ForcedText {
 public:
  // Both outlive it. `encode` may be an empty function.
  ForcedText(const Vocabulary& vocabulary, const Encoder& encode)
      : vocabulary_(vocabulary), encode_(encode) {}

  // Whether Next calls `run` at a place with this mask.
  bool WantsRun(const Mask& mask) const;
  // The token that has to come where the mask is this one; kNoToken: there is a choice. `run` has
  // the bytes that have to come.
  TokenId Next(const Mask& mask, const std::function<std::string()>& run);

 private:
  void Spell(const Mask& mask, const std::string& run);

  const Vocabulary& vocabulary_;
  const Encoder& encode_;
  std::vector<TokenId> spelled_;  // of a run, not yet taken, the next one last
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_FORCED_TEXT_H_
