// Adapters from the grammar core's State to the decode loop's Constraint.
//
// What a state was asked is kept with its grammar (grammar/known_answers.h), so that other outputs,
// and this one when it comes by again, know the answer without the lock of the grammar.
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
    const State from = next ? *std::move(next) : state_;
    next = from.Advance(token);
    if (!next.has_value()) return nullptr;
    GrammarAccess::KeepStep(from, token, *next);
    return After(token, *std::move(next));
  }

  bool accepting() const override { return Place().accepting; }
  std::string forced(size_t limit) const override {
    if (limit != kForcedLimit) return state_.forced(limit);
    KnownAnswers::Place place = Answers().Find(Key());
    if (place.forced == nullptr) {
      place = {};
      place.forced = std::make_shared<const std::string>(state_.forced(limit));
      Answers().Keep(Key(), place);
    }
    return *place.forced;
  }
  std::optional<float> temperature() const override { return Place().temperature; }

  std::optional<std::vector<TokenId>> Closing() const override { return state_.CompletionTokens(); }
  std::optional<std::vector<TokenId>> ClosingWithin(int most) const override {
    return CloseWithin(state_, most);
  }

  int shortest_close() const override {
    KnownAnswers::Place place = Answers().Find(Key());
    if (!place.close) {
      place = {};
      place.close = state_.shortest_close();
      Answers().Keep(Key(), place);
    }
    return *place.close;
  }

  Known known() const override {
    if (state_.outgrown()) return {};
    KnownAnswers::Place place = Answers().Find(Key());
    Known known;
    known.mask = place.asked ? GrammarAccess::KnownMask(state_) : nullptr;
    known.place = known.mask != nullptr;
    known.accepting = place.accepting;
    known.temperature = place.temperature;
    known.close = place.close;
    known.forced = std::move(place.forced);
    return known;
  }
  std::shared_ptr<const Constraint> KnownAdvance(TokenId token) const override {
    const Vocabulary& vocabulary = state_.vocabulary();
    if (state_.outgrown() || token < 0 || token >= vocabulary.size()) return nullptr;
    const std::string_view bytes =
        vocabulary.is_special(token) ? std::string_view() : vocabulary.bytes(token);
    const Machine::Key after = Answers().After(Key(), token, bytes);
    return after == Machine::kDead ? nullptr : After(token, GrammarAccess::At(state_, after));
  }
  const void* lane() const override { return GrammarAccess::PlaceOf(state_).lock; }

 private:
  KnownAnswers& Answers() const { return GrammarAccess::KnownOf(state_); }
  Machine::Key Key() const { return GrammarAccess::PlaceOf(state_).key; }
  KnownAnswers::Place Place() const {
    KnownAnswers::Place place = Answers().Find(Key());
    if (place.asked) return place;
    place = GrammarAccess::AskPlace(state_);
    Answers().Keep(Key(), place);
    return place;
  }
  std::shared_ptr<const Constraint> After(TokenId token, State state) const {
    return std::make_shared<GrammarConstraint>(grammar_, std::move(state),
                                               std::make_shared<Trail>(trail_, token));
  }
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
  Known known() const override {
    Known known;
    known.place = known.accepting = true;
    known.close = 0;
    return known;
  }
  std::shared_ptr<const Constraint> KnownAdvance(TokenId token) const override {
    return Advance(token);
  }
};

}  // namespace

std::shared_ptr<const Constraint> MakeConstraint(const Grammar& grammar) {
  return std::make_shared<GrammarConstraint>(grammar, grammar.Start(), nullptr);
}

std::shared_ptr<const Constraint> Unconstrained() { return std::make_shared<Anything>(); }

}  // namespace pawl
