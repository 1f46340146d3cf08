// The adapter from the grammar core's State to the decode loop's Constraint.
//
// What a state was asked is kept with its grammar (grammar/known_answers.h), so that other outputs,
// and this one when it comes by again, know the answer without the lock of the grammar.
#include "src/decode/constraint.h"

#include <stdexcept>
#include <utility>

#include "grammar/grammar_access.h"
#include "src/base/sync.h"
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

class GrammarConstraint final : public LoopConstraint {
 public:
  GrammarConstraint(Grammar grammar, State state, std::shared_ptr<Trail> trail)
      : grammar_(std::move(grammar)), state_(std::move(state)), trail_(std::move(trail)) {}

  Place Look() const override {
    Place place = LookUnforced();
    const int allowed = place.mask->count();
    if (allowed > 1 && allowed <= kMostSpellings) place.forced = forced(kForcedLimit);
    return place;
  }
  Place LookUnforced() const override {
    return Asked([](const State& at) {
      Place place{.mask = at.mask()};
      const KnownAnswers::Place known = PlaceOf(at);
      place.accepting = known.accepting;
      place.temperature = known.temperature;
      if (known.limit != nullptr) place.limit = *known.limit;
      return place;
    });
  }

  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    std::optional<State> next = Asked([&](const State& at) {
      while (at.stale()) {
        const std::optional<State> renewed = Retaken();
        if (!renewed) break;
        std::optional<State> after = AfterOf(*renewed, token);
        if (!renewed->lost()) return after;
      }
      return AfterOf(at, token);
    });
    if (!next.has_value()) return nullptr;
    return After(token, *std::move(next));
  }

  std::optional<uint64_t> KeyAfter(TokenId token) const override {
    const State at = Now();
    const std::optional<State> next = at.Advance(token);
    if (at.lost()) return std::nullopt;
    return next ? PlaceKeyOf(*next) : 0;
  }
  std::shared_ptr<const LoopConstraint> NextHere(TokenId token) const override {
    const State at = Now();
    std::optional<State> next = at.Advance(token);
    if (at.lost()) return Next(token);
    return next ? After(token, *std::move(next)) : nullptr;
  }
  bool outdated() const override { return Now().stale(); }
  std::shared_ptr<const LoopConstraint> Renewed() const override {
    if (!outdated()) return nullptr;
    std::optional<State> now = Retaken();
    if (!now || now->lost()) return nullptr;
    return std::make_shared<GrammarConstraint>(grammar_, *std::move(now), trail_);
  }

  void NeedsAll() const override { GrammarAccess::Replayed(Now()); }

  std::shared_ptr<const Mask> mask() const override {
    return Asked([](const State& at) { return at.mask(); });
  }
  bool accepting() const override {
    return Asked([](const State& at) { return PlaceOf(at).accepting; });
  }
  std::string forced(size_t limit) const override {
    return Asked([&](const State& at) {
      if (limit != kForcedLimit) return at.forced(limit);
      return ForcedOf(at, AnswersOf(at).Find(KeyOf(at)).forced);
    });
  }

  std::optional<std::vector<TokenId>> Completion(int most) const override {
    return Asked([&](const State& at) { return CloseWithin(at, most); });
  }

  int CompletionLength(int most) const override {
    return Asked([&](const State& at) {
      KnownAnswers::Place place = AnswersOf(at).Find(KeyOf(at));
      if (!place.close) {
        place = {};
        place.close = at.completion_length();
        Keep(at, place);
      }
      if (*place.close <= most) return *place.close;
      const auto found = CloseWithin(at, most);
      return found ? static_cast<int>(found->size()) : -1;
    });
  }

  Known known() const override {
    const State at = Now();
    if (at.stale()) return {};
    const KnownAnswers::Place place = AnswersOf(at).Find(KeyOf(at));
    Known known;
    known.close = place.close;
    if (place.forced != nullptr) {
      known.forced = true;
      known.at.forced = *place.forced;
    }
    known.at.mask = place.asked ? GrammarAccess::KnownMask(at) : nullptr;
    known.place = known.at.mask != nullptr;
    known.at.accepting = place.accepting;
    known.at.temperature = place.temperature;
    if (place.limit != nullptr) known.at.limit = *place.limit;
    return known;
  }
  std::shared_ptr<const LoopConstraint> KnownNext(TokenId token) const override {
    const State at = Now();
    const Vocabulary& vocabulary = at.vocabulary();
    if (at.stale() || token < 0 || token >= vocabulary.size()) return nullptr;
    const std::string_view bytes =
        vocabulary.is_special(token) ? std::string_view() : vocabulary.bytes(token);
    const Machine::Key after = AnswersOf(at).After(KeyOf(at), token, bytes);
    return after == Machine::kDead ? nullptr : After(token, GrammarAccess::At(at, after));
  }
  std::unique_ptr<RecordFilter> NewRecordFilter() const override {
    const auto& keys = GrammarAccess::RecordKeysOf(grammar_);
    return keys == nullptr ? nullptr : std::make_unique<RecordFilter>(keys);
  }
  const Grammar* grammar() const override { return &grammar_; }
  const void* lane() const override { return GrammarAccess::PlaceOf(Now()).lock; }
  uint64_t key() const override { return PlaceKeyOf(Now()); }

 private:
  static uint64_t PlaceKeyOf(const State& at) {
    const GrammarAccess::Place place = GrammarAccess::PlaceOf(at);
    return MixedKeys(reinterpret_cast<uintptr_t>(place.grammar), place.key);
  }
  static KnownAnswers& AnswersOf(const State& at) { return GrammarAccess::KnownOf(at); }
  static Machine::Key KeyOf(const State& at) { return GrammarAccess::PlaceOf(at).key; }
  // Answers of a state that is lost by now may mean nothing.
  static void Keep(const State& at, const KnownAnswers::Place& place) {
    if (!at.lost()) AnswersOf(at).Keep(KeyOf(at), place);
  }
  static KnownAnswers::Place PlaceOf(const State& at) {
    KnownAnswers::Place place = AnswersOf(at).Find(KeyOf(at));
    if (place.asked) return place;
    place = GrammarAccess::AskPlace(at);
    Keep(at, place);
    return place;
  }
  static std::string ForcedOf(const State& at, std::shared_ptr<const std::string> known) {
    if (known != nullptr) return *known;
    KnownAnswers::Place place;
    place.forced = std::make_shared<const std::string>(at.forced(kForcedLimit));
    Keep(at, place);
    return *place.forced;
  }
  static std::optional<State> AfterOf(const State& at, TokenId token) {
    std::optional<State> after = at.Advance(token);
    if (after && !at.lost()) GrammarAccess::KeepStep(at, token, *after);
    return after;
  }
  std::shared_ptr<const LoopConstraint> After(TokenId token, State state) const {
    return std::make_shared<GrammarConstraint>(grammar_, std::move(state),
                                               std::make_shared<Trail>(trail_, token));
  }

  State Now() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  // What `ask` answers of the state, or of the same place in a new machine where the state is lost.
  // What was answered before that is right, so looking afterwards is enough.
  template <typename Ask>
  auto Asked(const Ask& ask) const -> decltype(ask(std::declval<const State&>())) {
    std::optional<State> at = Now();
    auto answer = ask(*at);
    while (at->lost()) {
      at = Retaken();
      // Only where there is no machine to take the tokens again in; see GrammarOwner.
      if (!at) break;
      {
        const std::lock_guard lock(mutex_);
        state_ = *at;
      }
      answer = ask(*at);
    }
    return answer;
  }

  // The same place in the grammar as it is now, which lets go what was found before it started
  // again.
  std::optional<State> Retaken() const {
    std::vector<TokenId> tokens;
    for (const Trail* step = trail_.get(); step != nullptr; step = step->before.get())
      tokens.push_back(step->token);
    return GrammarAccess::Replay(grammar_, std::vector<TokenId>(tokens.rbegin(), tokens.rend()));
  }

  const Grammar grammar_;
  mutable Mutex mutex_;
  mutable State state_;  // with the mutex; moves only from one that is lost
  const std::shared_ptr<Trail> trail_;
};

}  // namespace

namespace {

// Of a grammar that waits for its text.
class UnboundConstraint : public Constraint {
 public:
  explicit UnboundConstraint(const Grammar& grammar)
      : why_(GrammarAccess::UnboundError(grammar).ToString()) {}
  Place Look() const override { throw std::invalid_argument(why_); }
  std::shared_ptr<const Constraint> Advance(TokenId) const override { return nullptr; }
  std::optional<std::vector<TokenId>> Completion(int) const override {
    throw std::invalid_argument(why_);
  }

 private:
  const std::string why_;
};

}  // namespace

std::shared_ptr<const Constraint> MakeConstraint(const Grammar& grammar) {
  if (!grammar.unbound().empty()) return std::make_shared<UnboundConstraint>(grammar);
  return std::make_shared<GrammarConstraint>(grammar, grammar.Start(), nullptr);
}

}  // namespace pawl
