// A context that is long and was followed by one token alone predicts well; one token of context
// hardly does. So a bucket is a length and a share. Shares are of what the grammar allows: where
// all that followed the longest context is refused, shorter contexts may still know.
#include "src/decode/draft/suffix_proposals.h"

#include <algorithm>

namespace pawl {
namespace {

constexpr size_t kProposed = 4;
constexpr int kContexts = 12, kFollowers = 48;

int LengthClass(uint32_t length) {
  constexpr uint32_t kUpTo[] = {1, 2, 3, 5, 8, 16, 40};
  int c = 0;
  while (c < 7 && length > kUpTo[c]) ++c;
  return c;
}

}  // namespace

void ProposeFrom(const SuffixAutomaton& text, DraftCursor cursor, const DraftPlace& place,
                 std::vector<DraftProposal>& out) {
  struct Follower {
    TokenId token;
    uint32_t count;
  };
  const size_t first = out.size();
  SuffixAutomaton::Match at = MatchOf(cursor);
  float left = 1;  // what longer contexts leave to shorter ones
  for (int i = 0; i < kContexts && at.state != SuffixAutomaton::kRoot; ++i) {
    Follower best[kFollowers];
    int n = 0, refused = 0;
    uint64_t total = 0;
    text.ForEachNext(at.state, [&](TokenId token, uint32_t count) {
      if (token >= 0 && place.Allows(token)) {
        best[n++] = {token, count};
        total += count;
      } else if (token >= 0) {
        ++refused;
      }
      return n < kFollowers;
    });
    // Those that would have been among the first.
    place.refused += std::min(refused, static_cast<int>(kProposed));
    const auto shown = std::min<ptrdiff_t>(n, static_cast<ptrdiff_t>(kProposed));
    std::partial_sort(best, best + shown, best + n, [](const Follower& a, const Follower& b) {
      return a.count != b.count ? a.count > b.count : a.token < b.token;
    });
    bool any = false;
    for (ptrdiff_t k = 0; k < shown; ++k) {
      const TokenId token = best[k].token;
      const bool known = std::any_of(out.begin() + static_cast<ptrdiff_t>(first), out.end(),
                                     [&](const DraftProposal& p) { return p.token == token; });
      if (known) continue;
      any = true;
      const float share = static_cast<float>(best[k].count) / static_cast<float>(total);
      const int level = share > 0.9f   ? (best[k].count > 2 ? 0 : 1)
                        : share > 0.6f ? 2
                        : share > 0.3f ? 3
                        : share > 0.1f ? 4
                                       : 5;
      const int length = LengthClass(at.length);
      const float trust = static_cast<float>(length + 1) / static_cast<float>(length + 2);
      out.push_back({token, static_cast<uint8_t>(length * 6 + level), left * share * trust});
      if (out.size() - first >= kProposed) return;
    }
    if (any) left *= 0.4f;
    at = text.Shorter(at);
  }
}

}  // namespace pawl
