// Adapters from the grammar core's State to the decode loop's Constraint.
#include "src/decode/constraint.h"

#include <utility>

#include "src/decode/closing.h"

namespace pawl {
namespace {

class GrammarConstraint : public Constraint {
 public:
  GrammarConstraint(Grammar grammar, State state) : grammar_(std::move(grammar)), state_(state) {}

  std::shared_ptr<const Mask> mask() const override { return state_.mask(); }

  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    std::optional<State> next = state_.Advance(token);
    if (!next.has_value()) return nullptr;
    return std::make_shared<GrammarConstraint>(grammar_, *next);
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
  Grammar grammar_;
  State state_;
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
  return std::make_shared<GrammarConstraint>(grammar, grammar.Start());
}

std::shared_ptr<const Constraint> Unconstrained() { return std::make_shared<Anything>(); }

}  // namespace pawl
