// A law has no mass on tokens that end the output: trees have no such nodes, and a draft that is
// dropped because of what it is would bend the law of the output. Which drafts stand in a tree must
// not depend on what was drawn for them, so their chances are counted by rank and depth alone.
#include "src/decode/draft/guess_drawer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "src/base/random.h"
#include "src/decode/draft/verify/rejection_noise.h"

namespace pawl {

void GuessDrawer::Draw(const DraftPlace& place, std::span<const float> logits,
                       std::vector<TokenId>& guesses) {
  guesses.clear();
  tokens_.assign(place.tokens.begin(), place.tokens.end());
  tokens_.insert(tokens_.end(), place.path.begin(), place.path.end());
  float temperature = options_.sampling.temperature;
  if (place.at != nullptr && options_.grammar_temperature) {
    temperature = place.at->LookUnforced().temperature.value_or(temperature);
  }
  sampler_.set_temperature(temperature);
  const auto known =
      static_cast<size_t>(std::min({static_cast<int>(logits.size()), setting_.vocabulary_size,
                                    static_cast<int>(setting_.vocabulary->size())}));
  const std::span<const TokenId> all = tokens_;
  const TokenHistory history = {all.first(place.prompt), all.subspan(place.prompt)};
  if (setting_.rules.rejects()) return DrawFromLaw(place, logits.first(known), history, guesses);
  (void)sampler_.SampleLanes(logits.first(known), place.mask, tokens_.size() - place.prompt,
                             history, guesses);
}

void GuessDrawer::DrawFromLaw(const DraftPlace& place, std::span<const float> logits,
                              const TokenHistory& history, std::vector<TokenId>& guesses) {
  if (!sampler_.Law(logits, place.mask, history.output.size(), history, masses_).ok()) return;
  std::erase_if(masses_, [&](const TokenMass& one) {
    return !(one.mass > 0) || setting_.vocabulary->is_end(one.token);
  });
  double sum = 0;
  for (const TokenMass& one : masses_) sum += one.mass;
  if (!(sum > 0)) return;
  auto law = std::make_shared<DraftLaw>();
  for (TokenMass& one : masses_) one.mass /= sum;
  const size_t root = place.tokens.size() - place.prompt;
  const int most = setting_.rules.draws(static_cast<int>(place.path.size()));
  std::vector<bool> gone(masses_.size(), false);
  double left = 1;
  for (int i = 0; i < most; ++i) {
    const RejectionNoise noise{options_.sampling.seed, root, source_};
    double point = noise.Uniform(draws_++) * left;
    size_t chosen = masses_.size();
    for (size_t v = 0; v < masses_.size(); ++v) {
      if (gone[v]) continue;
      chosen = v;
      if (point < masses_[v].mass) break;
      point -= masses_[v].mass;
    }
    if (chosen == masses_.size()) break;
    guesses.push_back(masses_[chosen].token);
    if (setting_.rules.replaces()) continue;
    gone[chosen] = true;
    left -= masses_[chosen].mass;
  }
  law->masses = masses_;
  law->drawn = guesses;
  place.law = std::move(law);
}

}  // namespace pawl
