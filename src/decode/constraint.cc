// Adapters from the grammar core's State to the decode loop's Constraint.
#include "src/decode/constraint.h"

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

class GrammarConstraint : public Constraint {
 public:
  GrammarConstraint(Grammar grammar, State state, std::shared_ptr<Trail> trail)
      : grammar_(std::move(grammar)), state_(std::move(state)), trail_(std::move(trail)) {}

  std::shared_ptr<const Mask> mask() const override { return state_.mask(); }

  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    std::optional<State> next = state_.outgrown() ? Renewed() : std::nullopt;
    next = (next ? *next : state_).Advance(token);
    if (!next.has_value()) return nullptr;
    return std::make_shared<GrammarConstraint>(grammar_, *std::move(next),
                                               std::make_shared<Trail>(trail_, token));
  }

  bool accepting() const override { return state_.accepting(); }
  std::string forced(size_t limit) const override { return state_.forced(limit); }
  std::optional<float> temperature() const override { return state_.temperature(); }

  std::optional<std::vector<TokenId>> Closing() const override { return state_.CompletionTokens(); }
  std::optional<std::vector<TokenId>> ClosingWithin(int most) const override {
    return CloseWithin(state_, most);
  }

  int shortest_close() const override { return state_.shortest_close(); }

 private:
  // The same place in the grammar as it is now, which lets go what was found before it began anew.
  std::optional<State> Renewed() const {
    std::vector<TokenId> tokens;
    for (const Trail* step = trail_.get(); step != nullptr; step = step->before.get())
      tokens.push_back(step->token);
    return GrammarAccess::Retake(grammar_, std::vector<TokenId>(tokens.rbegin(), tokens.rend()));
  }

  Grammar grammar_;
  State state_;
  std::shared_ptr<Trail> trail_;
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
