// The shortest completion in bytes need not be short in tokens: of thirty letters of the reader's
// choice, thirty times "a" is as short as any other, but "aaaa..." has no long tokens and
// "international..." has. So where it takes too many tokens, the way to the end is looked for among
// tokens themselves: of what the mask allows, some of the longest are tried, and the one after
// which the completion takes the fewest tokens is kept, step by step. Every step is one of the
// state's own, so what is found leads to the end; that nothing shorter exists is not claimed.
#include "src/decode/closing.h"

#include <algorithm>
#include <utility>

namespace pawl {
namespace {

constexpr size_t kTried = 32;  // tokens, in each step

// Some of the longest tokens that may come next, the longest first.
std::vector<TokenId> LongestAllowed(const State& state, const Vocabulary& vocabulary) {
  std::vector<TokenId> tokens;
  for (const TokenId token : state.mask()->Tokens()) {
    if (!vocabulary.is_end(token)) tokens.push_back(token);
  }
  const auto longer = [&](TokenId a, TokenId b) {
    const size_t length_a = vocabulary.bytes(a).size(), length_b = vocabulary.bytes(b).size();
    return length_a != length_b ? length_a > length_b : a < b;
  };
  const size_t kept = std::min(kTried, tokens.size());
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(kept), tokens.end(),
                    longer);
  tokens.resize(kept);
  return tokens;
}

}  // namespace

std::optional<std::vector<TokenId>> CloseWithin(const State& state, int most) {
  std::vector<TokenId> taken;
  State at = state;
  auto closing = at.CompletionTokens();
  while (closing && taken.size() < static_cast<size_t>(std::max(0, most))) {
    if (taken.size() + closing->size() <= static_cast<size_t>(most)) break;
    std::optional<State> best;
    TokenId chosen = kNoToken;
    auto best_closing = closing;
    for (const TokenId token : LongestAllowed(at, at.vocabulary())) {
      std::optional<State> next = at.Advance(token);
      if (!next) continue;
      auto rest = next->CompletionTokens();
      if (!rest || rest->size() + 1 > best_closing->size()) continue;
      if (best && rest->size() >= best_closing->size()) continue;
      best = next;
      chosen = token;
      best_closing = std::move(rest);
    }
    if (!best) break;
    taken.push_back(chosen);
    at = *best;
    closing = std::move(best_closing);
  }
  if (!closing || taken.size() + closing->size() > static_cast<size_t>(std::max(0, most)))
    return std::nullopt;
  taken.insert(taken.end(), closing->begin(), closing->end());
  return taken;
}

}  // namespace pawl
