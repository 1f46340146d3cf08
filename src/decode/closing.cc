// The shortest completion in bytes need not be short in tokens: of thirty letters of the reader's
// choice, thirty times "a" is as short as any other, but "aaaa..." has no long tokens and
// "international..." has. So where it takes too many tokens, the way to the end is looked for among
// tokens themselves: of what the mask allows, some of the longest are tried, and the one after
// which the completion takes the fewest tokens is kept, step by step. Every step is one of the
// state's own, so what is found leads to the end; that nothing shorter exists is not claimed.
//
// A completion takes time in proportion to its length, so one after every token of a long text
// would make that quadratic. A token that was good is therefore taken again, twice as often each
// time, as long as each one brings the end nearer by as much as the first. And the search ends when
// all the completions together have become so long that it has taken long: a hundred keys that are
// missing have no shorter path among their tokens. It does not begin where even the longest tokens
// of the vocabulary, as many as there may be, have fewer bytes than the completion. What was found,
// and that nothing was, is kept with the grammar: the next output under it asks the same.
#include "src/decode/closing.h"

#include <algorithm>
#include <utility>

#include "grammar/grammar_access.h"
#include "grammar/vocabulary_tables.h"

namespace pawl {
namespace {

constexpr size_t kTried = 32;  // tokens, in each step
// Tokens of completions, in all: so many times those of the first one and this many more.
constexpr size_t kMostTimes = 64, kAsIfMore = 256;
// Where the first completion is longer than that, each is slow: fewer are tried.
constexpr size_t kSmall = 1000, kTriedOfLarge = 8, kMostTimesOfLarge = 24;

// The completion was the shortest in bytes that was found, and so many tokens have fewer.
bool OutOfReach(const Vocabulary& vocabulary, const std::vector<TokenId>& completion, int most) {
  size_t bytes = 0;
  for (const TokenId token : completion) bytes += vocabulary.bytes(token).size();
  return bytes / static_cast<size_t>(TrieOf(vocabulary).max_depth()) >
         static_cast<size_t>(std::max(0, most));
}

// Some of the longest tokens that may come next, the longest first.
std::vector<TokenId> LongestAllowed(const State& state, size_t most) {
  const Vocabulary& vocabulary = state.vocabulary();
  std::vector<TokenId> tokens;
  for (const TokenId token : state.mask()->Tokens()) {
    if (!vocabulary.is_end(token)) tokens.push_back(token);
  }
  const auto longer = [&](TokenId a, TokenId b) {
    const size_t length_a = vocabulary.bytes(a).size(), length_b = vocabulary.bytes(b).size();
    return length_a != length_b ? length_a > length_b : a < b;
  };
  const size_t kept = std::min(most, tokens.size());
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(kept), tokens.end(),
                    longer);
  tokens.resize(kept);
  return tokens;
}

// Takes the last of `taken` again, up to the point where the whole has `most` tokens. `saved`: by
// how many fewer the whole had after the last one.
void Repeat(size_t most, size_t saved, std::vector<TokenId>& taken, State& at,
            std::vector<TokenId>& closing, size_t& seen) {
  const TokenId token = taken.back();
  for (size_t times = 1; saved > 0; times *= 2) {
    const size_t total = taken.size() + closing.size();
    if (total <= most) return;
    times = std::min(times, (total - most - 1) / saved + 1);
    if (times * saved > total) return;
    std::optional<State> next = at;
    for (size_t i = 0; i < times && next; ++i) next = next->Advance(token);
    if (!next) return;
    auto rest = next->CompletionTokens();
    seen += rest ? rest->size() : 0;
    if (!rest || taken.size() + times + rest->size() > total - times * saved) return;
    taken.insert(taken.end(), times, token);
    at = *next;
    closing = *std::move(rest);
  }
}

}  // namespace

namespace {

std::optional<std::vector<TokenId>> FindClosing(const State& state, int most) {
  std::vector<TokenId> taken;
  State at = state;
  auto closing = at.CompletionTokens();
  if (!closing || OutOfReach(state.vocabulary(), *closing, most)) return std::nullopt;
  const bool small = closing->size() <= kSmall;
  const size_t most_seen = (small ? kMostTimes : kMostTimesOfLarge) * (closing->size() + kAsIfMore);
  size_t seen = 0;
  while (closing && taken.size() < static_cast<size_t>(std::max(0, most)) && seen < most_seen) {
    if (taken.size() + closing->size() <= static_cast<size_t>(most)) break;
    std::optional<State> best;
    TokenId chosen = kNoToken;
    auto best_closing = closing;
    for (const TokenId token : LongestAllowed(at, small ? kTried : kTriedOfLarge)) {
      std::optional<State> next = at.Advance(token);
      if (!next) continue;
      auto rest = next->CompletionTokens();
      seen += rest ? rest->size() : 0;
      if (!rest || rest->size() + 1 > best_closing->size()) continue;
      if (best && rest->size() >= best_closing->size()) continue;
      best = next;
      chosen = token;
      best_closing = std::move(rest);
    }
    if (!best) break;
    const size_t saved = closing->size() - best_closing->size() - 1;
    taken.push_back(chosen);
    at = *best;
    closing = std::move(best_closing);
    Repeat(static_cast<size_t>(most), saved, taken, at, *closing, seen);
  }
  if (!closing || taken.size() + closing->size() > static_cast<size_t>(std::max(0, most)))
    return std::nullopt;
  taken.insert(taken.end(), closing->begin(), closing->end());
  return taken;
}

}  // namespace

std::optional<std::vector<TokenId>> CloseWithin(const State& state, int most) {
  most = std::max(0, most);
  if (const auto known = GrammarAccess::KnownClosing(state, most)) return *known;
  auto closing = FindClosing(state, most);
  GrammarAccess::KeepClosing(state, most, closing);
  return closing;
}

Error NoValueFits(std::string place) {
  return Error{ErrorCode::kLimit,
               "no value that fits was found within the limits (which does not prove that there is "
               "none)",
               std::move(place)};
}

}  // namespace pawl
