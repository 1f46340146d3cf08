// Two constraints at once: the intersection.
//
// Masks are intersected word by word. An end token ends the output where both may end. Elsewhere it
// is a token like others, which a grammar may name.
//
// A completion that suits both is a search, since a completion of one is made without the other.
// From a place, the completions of the two take turns: each is followed as far as both take its
// tokens. A grammar with a name of the other constraint inside is closed in two turns: the name is
// finished by one, and what comes behind it by the other. Where that leads nowhere, the same is
// tried behind single tokens, the first places first, up to a number of steps.
#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/constraint.h"
#include "src/decode/constraint.h"

namespace pawl {
namespace {

constexpr int kMostTurns = 8;
// Steps of one search for a completion, and tokens that are tried at a place.
constexpr int kMostSteps = 500;
constexpr size_t kMostTokens = 64;

std::string LongerOf(const std::string& a, const std::string& b) {
  if (a.starts_with(b)) return a;
  if (b.starts_with(a)) return b;
  // What both begin with; behind it nothing follows.
  const auto [end, other] = std::ranges::mismatch(a, b);
  return {a.begin(), end};
}

class BothConstraints final : public Constraint {
 public:
  using One = std::shared_ptr<const Constraint>;
  BothConstraints(One first, One second, std::shared_ptr<const Vocabulary> vocabulary)
      : first_(std::move(first)), second_(std::move(second)), vocabulary_(std::move(vocabulary)) {}

  bool exact() const override { return first_->exact() && second_->exact(); }
  uint64_t key() const override { return MixedKeys(first_->key(), second_->key()); }

  Place Look() const override {
    Place a = first_->Look(), b = second_->Look();
    Place place;
    place.accepting = a.accepting && b.accepting;
    place.mask = MaskOf(a, b);
    place.forced = LongerOf(a.forced, b.forced);
    place.temperature = a.temperature ? a.temperature : b.temperature;
    place.limit = a.limit.empty() ? std::move(b.limit) : std::move(a.limit);
    return place;
  }

  std::shared_ptr<const Constraint> Advance(TokenId token) const override { return Next(token); }

  std::optional<std::vector<TokenId>> Completion(int most) const override {
    std::deque<Route> open = {{std::make_shared<BothConstraints>(*this), {}}};
    for (int steps = kMostSteps; !open.empty() && steps > 0; open.pop_front()) {
      const Route& from = open.front();
      Route to = from;
      if (TakeTurns(most, to, steps)) return std::move(to.tokens);
      Expand(from, most, steps, open);
      // Where the turns ended both may go on in another direction.
      if (to.tokens.size() > from.tokens.size()) Expand(to, most, steps, open);
    }
    return std::nullopt;
  }

 private:
  std::shared_ptr<const BothConstraints> Next(TokenId token) const {
    One first = first_->Advance(token);
    if (first == nullptr) return nullptr;
    One second = second_->Advance(token);
    if (second == nullptr) return nullptr;
    return std::make_shared<BothConstraints>(std::move(first), std::move(second), vocabulary_);
  }

  std::shared_ptr<const Mask> MaskOf(const Place& a, const Place& b) const {
    if (a.mask == nullptr && b.mask == nullptr) return nullptr;
    // The wrapper of the decode loop tells what is wrong with this size.
    if (a.mask == nullptr || b.mask == nullptr) return a.mask != nullptr ? a.mask : b.mask;
    std::vector<uint32_t> words(a.mask->words().begin(), a.mask->words().end());
    if (b.mask->words().size() != words.size()) return b.mask;
    for (size_t i = 0; i < words.size(); ++i) words[i] &= b.mask->words()[i];
    for (const TokenId t : vocabulary_->end_tokens()) {
      uint32_t& word = words[static_cast<size_t>(t) >> 5];
      const uint32_t bit = uint32_t{1} << (t & 31);
      if (a.accepting && b.accepting) word |= bit;
      if (a.accepting == b.accepting || (word & bit) == 0) continue;
      // One takes it as a token in the middle of its texts; so must the one that may end.
      if ((a.accepting ? first_ : second_)->Advance(t) == nullptr) word &= ~bit;
    }
    return std::make_shared<Mask>(0, std::move(words));
  }

  // Tokens, and the place behind them.
  struct Route {
    std::shared_ptr<const BothConstraints> at;
    std::vector<TokenId> tokens;
  };

  // Goes on with the completions of the two in turn. false: they make no progress, or more than
  // `most` tokens.
  static bool TakeTurns(int most, Route& route, int& steps) {
    int idle = 0;  // turns without a token
    for (int turn = 0; turn < kMostTurns && idle < 2; ++turn) {
      if (route.at->Ends()) return true;
      const One& one = turn % 2 == 0 ? route.at->first_ : route.at->second_;
      const auto tokens = one->Completion(most - static_cast<int>(route.tokens.size()));
      const size_t before = route.tokens.size();
      if (tokens) Follow(*tokens, most, route, steps);
      idle = route.tokens.size() == before ? idle + 1 : 0;
    }
    return route.at->Ends();
  }

  // As far as both take the tokens.
  static void Follow(std::span<const TokenId> tokens, int most, Route& route, int& steps) {
    for (const TokenId token : tokens) {
      if (--steps <= 0 || static_cast<int>(route.tokens.size()) >= most) return;
      auto next = route.at->Next(token);
      if (next == nullptr) return;
      route.at = std::move(next);
      route.tokens.push_back(token);
    }
  }

  static void Expand(const Route& from, int most, int& steps, std::deque<Route>& open) {
    if (static_cast<int>(from.tokens.size()) >= most) return;
    for (const TokenId token : from.at->LongestAllowed()) {
      if (--steps <= 0) return;
      auto next = from.at->Next(token);
      if (next == nullptr) continue;
      open.push_back({std::move(next), from.tokens});
      open.back().tokens.push_back(token);
    }
  }

  static bool Accepts(const Constraint& one) {
    const auto* known = dynamic_cast<const LoopConstraint*>(&one);
    return known != nullptr ? known->accepting() : one.Look().accepting;
  }
  bool Ends() const { return Accepts(*first_) && Accepts(*second_); }

  // Some of the tokens that may come next, the longest first.
  std::vector<TokenId> LongestAllowed() const {
    const Place place = Look();
    std::vector<TokenId> tokens;
    if (place.mask == nullptr) return tokens;
    for (const TokenId t : place.mask->Tokens()) {
      if (!vocabulary_->is_special(t)) tokens.push_back(t);
    }
    std::ranges::stable_sort(tokens, std::ranges::greater(),
                             [&](TokenId t) { return vocabulary_->bytes(t).size(); });
    if (tokens.size() > kMostTokens) tokens.resize(kMostTokens);
    return tokens;
  }

  const One first_, second_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
};

}  // namespace

std::shared_ptr<const Constraint> Both(std::shared_ptr<const Constraint> first,
                                       std::shared_ptr<const Constraint> second,
                                       std::shared_ptr<const Vocabulary> vocabulary) {
  return std::make_shared<BothConstraints>(std::move(first), std::move(second),
                                           std::move(vocabulary));
}

}  // namespace pawl
