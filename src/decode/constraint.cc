// Adapters from the grammar core's State to the decode loop's Constraint.
#include "src/decode/constraint.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "grammar/grammar_access.h"
#include "src/decode/closing.h"

namespace pawl {
namespace {

// The tokens that led to a place, the last one first; places share what they have in common.
struct Trail {
  std::shared_ptr<Trail> before;
  TokenId token;

  Trail(std::shared_ptr<Trail> rest, TokenId last) : before(std::move(rest)), token(last) {}
  Trail(const Trail&) = delete;
  Trail& operator=(const Trail&) = delete;
  ~Trail() {  // one after the other: there may be many
    std::shared_ptr<Trail> rest = std::move(before);
    while (rest != nullptr && rest.use_count() == 1) rest = std::move(rest->before);
  }
};

// Tokens that lead to the end, as many of which were taken.
struct FollowedWay {
  std::shared_ptr<const std::vector<TokenId>> tokens = nullptr;
  size_t taken = 0;
  size_t left() const { return tokens == nullptr ? 0 : tokens->size() - taken; }
};

class GrammarConstraint : public Constraint {
 public:
  GrammarConstraint(Grammar grammar, State state, std::shared_ptr<Trail> trail,
                    FollowedWay way = {})
      : grammar_(std::move(grammar)),
        state_(std::move(state)),
        trail_(std::move(trail)),
        way_(std::move(way)) {}

  std::shared_ptr<const Mask> mask() const override {
    return Asked([](const State& at) { return at.mask(); });
  }

  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    std::optional<State> next = Asked([&](const State& at) {
      while (at.outgrown()) {
        const std::optional<State> renewed = Retaken();
        if (!renewed) break;
        std::optional<State> after = renewed->Advance(token);
        if (!renewed->lost()) return after;
      }
      return at.Advance(token);
    });
    if (!next.has_value()) return nullptr;
    FollowedWay way;
    {
      const std::lock_guard lock(mutex_);
      if (way_.left() > kFollowed && (*way_.tokens)[way_.taken] == token)
        way = {way_.tokens, way_.taken + 1};
    }
    return std::make_shared<GrammarConstraint>(
        grammar_, *std::move(next), std::make_shared<Trail>(trail_, token), std::move(way));
  }

  bool accepting() const override {
    return Asked([](const State& at) { return at.accepting(); });
  }
  std::string forced(size_t limit) const override {
    return Asked([&](const State& at) { return at.forced(limit); });
  }
  std::optional<float> temperature() const override {
    return Asked([](const State& at) { return at.temperature(); });
  }

  std::optional<std::vector<TokenId>> Closing() const override {
    const FollowedWay way = WayToTheEnd();
    if (way.tokens == nullptr) return std::nullopt;
    return std::vector<TokenId>(way.tokens->begin() + static_cast<ptrdiff_t>(way.taken),
                                way.tokens->end());
  }
  std::optional<std::vector<TokenId>> ClosingWithin(int most) const override {
    // A way that is followed may be another one than what is found from here.
    {
      const std::lock_guard lock(mutex_);
      if (way_.tokens != nullptr && way_.left() <= static_cast<size_t>(std::max(0, most)))
        return std::vector<TokenId>(way_.tokens->begin() + static_cast<ptrdiff_t>(way_.taken),
                                    way_.tokens->end());
    }
    return Asked([&](const State& at) { return CloseWithin(at, most); });
  }

  int shortest_close() const override {
    const FollowedWay way = WayToTheEnd();
    return way.tokens == nullptr ? -1 : static_cast<int>(way.left());
  }

 private:
  // A completion so long that, as long as tokens follow it, no other is looked for: finding one
  // takes time in proportion to its length, so that one for each token would be quadratic.
  static constexpr size_t kFollowed = 256;
  FollowedWay WayToTheEnd() const {
    {
      const std::lock_guard lock(mutex_);
      if (way_.left() > 0) return way_;
    }
    auto tokens = Asked([](const State& at) { return at.CompletionTokens(); });
    if (!tokens) return {};
    FollowedWay way{std::make_shared<const std::vector<TokenId>>(*std::move(tokens))};
    if (way.left() > kFollowed) {
      const std::lock_guard lock(mutex_);
      way_ = way;
    }
    return way;
  }

  // What `ask` answers of the state, or of the same place in a new machine where the state is lost.
  // What was answered before that is right, so looking afterwards is enough.
  template <typename Ask>
  auto Asked(const Ask& ask) const -> decltype(ask(std::declval<const State&>())) {
    std::optional<State> at;
    {
      const std::lock_guard lock(mutex_);
      at = state_;
    }
    auto answer = ask(*at);
    while (at->lost()) {
      at = Retaken();
      // Only where there is no machine to take the tokens again in; see GrammarKeeper.
      if (!at) break;
      {
        const std::lock_guard lock(mutex_);
        state_ = *at;
      }
      answer = ask(*at);
    }
    return answer;
  }

  // The same place in the grammar as it is now, which lets go what was found before it began anew.
  std::optional<State> Retaken() const {
    std::vector<TokenId> tokens;
    for (const Trail* step = trail_.get(); step != nullptr; step = step->before.get())
      tokens.push_back(step->token);
    return GrammarAccess::Retake(grammar_, std::vector<TokenId>(tokens.rbegin(), tokens.rend()));
  }

  const Grammar grammar_;
  mutable std::mutex mutex_;
  mutable State state_;  // with the mutex; moves only from one that is lost
  const std::shared_ptr<Trail> trail_;
  mutable FollowedWay way_;  // with the mutex; empty where none is followed
};

class Anything : public Constraint {
 public:
  std::shared_ptr<const Mask> mask() const override { return nullptr; }
  std::shared_ptr<const Constraint> Advance(TokenId) const override {
    return std::make_shared<Anything>();
  }
  bool accepting() const override { return true; }
  std::optional<std::vector<TokenId>> Closing() const override { return std::vector<TokenId>{}; }
  int shortest_close() const override { return 0; }
};

}  // namespace

std::shared_ptr<const Constraint> MakeConstraint(const Grammar& grammar) {
  return std::make_shared<GrammarConstraint>(grammar, grammar.Start(), nullptr);
}

std::shared_ptr<const Constraint> Unconstrained() { return std::make_shared<Anything>(); }

}  // namespace pawl
