// A forced run of bytes is written in the tokenizer's spelling, up to the last token that text
// behind the run could not change (SpellForced). Where no token is sure and no token that may come
// reaches beyond the run, only spellings differ: the tokenizer's first token is taken.
#include "src/decode/forced_text.h"

#include <algorithm>

#include "src/decode/constraint.h"

namespace pawl {

bool ForcedText::WantsRun(const Mask& mask) const {
  return spelled_.empty() && encode_ && mask.singleton() == kNoToken &&
         mask.count() <= LoopConstraint::kMostSpellings;
}

void ForcedText::Spell(const Mask& mask, const std::string& run) {
  if (run.size() < 2) return;
  spelled_ = SpellForced(vocabulary_, encode_, run);
  if (spelled_.empty()) {
    const bool reaches_beyond = std::ranges::any_of(mask.Tokens(), [&](TokenId token) {
      return vocabulary_.is_special(token) || vocabulary_.bytes(token).size() > run.size();
    });
    if (reaches_beyond) return;
    const std::vector<TokenId> tokens = encode_(run);
    if (!tokens.empty() && run.starts_with(vocabulary_.bytes(tokens[0]))) spelled_ = {tokens[0]};
  }
  std::ranges::reverse(spelled_);
}

TokenId ForcedText::Next(const Mask& mask, const std::function<std::string()>& run) {
  if (spelled_.empty() && mask.singleton() != kNoToken) return mask.singleton();
  if (WantsRun(mask)) Spell(mask, run());
  if (spelled_.empty()) return kNoToken;
  const TokenId token = spelled_.back();
  spelled_.pop_back();
  if (mask.Allows(token)) return token;
  spelled_.clear();
  return mask.singleton();
}

}  // namespace pawl
