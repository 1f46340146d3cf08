// Which drafts are taken, and what trees look like: the options draft_verify and draft_shape.
#ifndef PAWL_SRC_DECODE_DRAFT_VERIFY_DRAFT_RULES_H_
#define PAWL_SRC_DECODE_DRAFT_VERIFY_DRAFT_RULES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace pawl {

// rules.h says what each does.
enum class VerifyRule : uint8_t { kCoupled, kToken, kBlock, kRsd, kSpectr, kTraversal };
inline constexpr std::array<const char*, 6> kVerifyRules = {"coupled", "token",  "block",
                                                            "rsd",     "spectr", "traversal"};

inline constexpr int kMostDelay = 62, kMostRollouts = 8;

struct DraftRules {
  VerifyRule rule = VerifyRule::kCoupled;
  // Not negative: a chain of so many drafts, then `rollouts` chains (delayed tree expansion).
  int delay = -1;
  int rollouts = 1;

  bool rejects() const { return rule != VerifyRule::kCoupled; }
  bool chain() const { return rule == VerifyRule::kToken || rule == VerifyRule::kBlock; }
  // Several children are drawn from a law.
  bool branches() const { return rejects() && !chain(); }
  // Siblings are drawn independently.
  bool replaces() const { return rule == VerifyRule::kSpectr; }
  // Children that a node at this depth may have.
  int most_children(int depth) const {
    if (chain()) return 1;
    if (delay < 0) return std::numeric_limits<int>::max();
    return depth == delay ? rollouts : 1;
  }
  // Of these, how many a source draws from a law.
  int draws(int depth) const {
    const int most = most_children(depth);
    return most < kDraws ? most : kDraws;
  }
  // Before it is counted, how often the first draw is taken. Chains are taken as a whole by some
  // rules, so long ones have to be tried.
  float first_chance(float coupled) const { return rejects() ? 0.85f : coupled; }

 private:
  static constexpr int kDraws = 4;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_VERIFY_DRAFT_RULES_H_
