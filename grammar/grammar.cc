// State and Grammar: the public face of a Machine bound to a vocabulary.
#include "pawl/grammar.h"

#include "grammar/grammar_access.h"
#include "grammar/grammar_impl.h"
#include "grammar/machine.h"
#include "grammar/record_filter.h"

namespace pawl {

namespace {

std::optional<State> AfterAll(State at, std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    std::optional<State> next = at.Advance(token);
    if (!next) return std::nullopt;
    at = *std::move(next);
  }
  return at;
}

}  // namespace

const GrammarImpl& State::impl() const { return static_cast<const GrammarImpl&>(*grammar_); }

std::optional<State> State::Advance(std::string_view bytes) const {
  Machine::Key key = key_;
  if (impl().Run(key, bytes) != bytes.size()) return std::nullopt;
  grammar_->Take();
  return State(grammar_, key);
}

std::optional<State> State::Advance(TokenId token) const {
  if (token < 0 || token >= impl().vocabulary().size()) return std::nullopt;
  const Machine::Key key = impl().RunToken(key_, token);
  if (key == Machine::kDead) return std::nullopt;
  grammar_->Take();
  return State(grammar_, key);
}

size_t State::MatchedPrefix(std::string_view bytes) const {
  Machine::Key key = key_;
  return impl().Run(key, bytes);
}

std::shared_ptr<const Mask> State::mask() const { return impl().MaskOf(key_); }
int64_t State::CopyKnownMask(std::span<uint32_t> row) const {
  return impl().CopyKnownMask(key_, row);
}
bool State::accepting() const { return impl().Accepting(key_); }
std::string State::forced(size_t limit) const { return impl().Forced(key_, limit); }
std::optional<std::string> State::CompletionBytes() const { return impl().CompletionBytes(key_); }

std::optional<float> State::temperature() const { return impl().Temperature(key_); }

std::optional<std::vector<OutputPiece>> State::Completion() const {
  return impl().Completion(key_);
}

namespace {

std::optional<std::vector<TokenId>> FindCompletion(const State& state, const GrammarImpl& impl) {
  const auto parts = state.Completion();
  if (!parts) return std::nullopt;
  std::vector<TokenId> tokens;
  for (const OutputPiece& part : *parts) {
    if (part.token != kNoToken) {
      tokens.push_back(part.token);
      continue;
    }
    const std::vector<TokenId> spelled = impl.FewestTokens(part.bytes);
    if (spelled.empty()) return std::nullopt;
    tokens.insert(tokens.end(), spelled.begin(), spelled.end());
  }
  // Bytes that complete may be more tokens than a rule may have.
  if (impl.CountsTokens()) {
    const std::optional<State> end = AfterAll(state, tokens);
    if (!end || !end->accepting()) return std::nullopt;
  }
  return tokens;
}

}  // namespace

std::shared_ptr<const std::optional<std::vector<TokenId>>> GrammarAccess::CompletionOf(
    const State& state) {
  const GrammarImpl& impl = state.impl();
  if (auto known = impl.KnownClosing(state.key_, GrammarImpl::kShortest)) return known;
  return impl.KeepClosing(state.key_, GrammarImpl::kShortest, FindCompletion(state, impl));
}

std::optional<std::vector<TokenId>> State::CompletionTokens() const {
  return *GrammarAccess::CompletionOf(*this);
}

int State::completion_length() const {
  const auto tokens = GrammarAccess::CompletionOf(*this);
  return *tokens ? static_cast<int>((*tokens)->size()) : -1;
}

const Vocabulary& State::vocabulary() const { return impl().vocabulary(); }

Grammar::Grammar(std::shared_ptr<Machine> machine, std::shared_ptr<const Vocabulary> vocabulary)
    : keeper_(GrammarOwner::Make({std::move(machine), std::make_shared<MachineLock>()},
                                 std::move(vocabulary),
                                 std::make_shared<MemoryBudget>(MemoryBudget::kDefault), {})) {}

State Grammar::Start() const {
  for (;;) {
    State start(keeper_->Current(), Machine::kDead);
    start.key_ = start.impl().Start();
    if (!start.lost()) return start;
  }
}
const Vocabulary& Grammar::vocabulary() const { return keeper_->vocabulary(); }
const std::vector<std::string>& Grammar::notes() const { return keeper_->notes(); }
const std::string& Grammar::unbound() const { return keeper_->unbound(); }
Result<Grammar> Grammar::Bind(std::string_view text) const {
  if (!keeper_->binder()) return *this;
  return keeper_->binder()(text);
}

std::vector<std::string> Grammar::SampleTexts(size_t bytes) const {
  const State start = Start();
  std::vector<std::string> texts = start.impl().SampleTexts(bytes);
  if (!texts.empty()) return texts;
  if (auto shortest = start.CompletionBytes(); shortest && shortest->size() <= bytes)
    texts.push_back(*std::move(shortest));
  return texts;
}

size_t Grammar::PrepareMasks(std::span<const TokenId> tokens) const {
  // Of what the machine keeps, which tells how much it had to do: with a schema that costs much to
  // look into, what no call may ask for is not looked for.
  constexpr size_t kMostGrowth = size_t{2} << 20;
  std::optional<State> at = Start();
  const size_t most = at->impl().bytes() + kMostGrowth;
  size_t found = 0;
  for (const TokenId token : tokens) {
    (void)at->mask();
    ++found;
    if (at->impl().bytes() > most) return found;
    at = at->Advance(token);
    if (!at) return found;
  }
  (void)at->mask();
  return found + 1;
}

std::string Grammar::Record(std::string_view text) const {
  if (keeper_->record_keys() == nullptr) return std::string(text);
  RecordFilter filter(keeper_->record_keys());
  std::string record = filter.Feed(text);
  return record + filter.Finish();
}

bool Grammar::has_captures() const { return keeper_->has_captures(); }
Result<std::vector<Capture>> Grammar::FindCaptures(std::span<const OutputPiece> output) const {
  if (!has_captures()) return std::vector<Capture>();
  for (;;) {
    const State start = Start();
    auto captures = start.impl().FindCaptures(output);
    if (!start.lost()) return captures;
  }
}

Grammar GrammarAccess::New(std::shared_ptr<Machine> made,
                           std::shared_ptr<const Vocabulary> vocabulary,
                           std::shared_ptr<MemoryBudget> budget, MachineMaker again,
                           size_t source_bytes) {
  return Grammar(GrammarOwner::Make({std::move(made), std::make_shared<MachineLock>()},
                                    std::move(vocabulary), std::move(budget), std::move(again),
                                    source_bytes));
}

const std::shared_ptr<const RecordKeys>& GrammarAccess::RecordKeysOf(const Grammar& grammar) {
  return grammar.keeper_->record_keys();
}

void GrammarAccess::SetRecordKeys(const Grammar& grammar, std::shared_ptr<const RecordKeys> keys) {
  grammar.keeper_->set_record_keys(std::move(keys));
}

void GrammarAccess::SetBinder(const Grammar& grammar, GrammarOwner::Binder binder,
                              std::string place) {
  grammar.keeper_->set_binder(std::move(binder), std::move(place));
}

void GrammarAccess::SetBound(const Grammar& grammar, std::string place) {
  SetBinder(
      grammar,
      [place = std::move(place)](std::string_view) -> Result<Grammar> {
        return Error{ErrorCode::kInvalid,
                     "is copied from another text already; bind the grammar that has none", place};
      },
      "");
}

bool GrammarAccess::HasBinder(const Grammar& grammar) {
  return grammar.keeper_->binder() != nullptr;
}

void GrammarAccess::SetCopier(const Grammar& grammar, GrammarOwner::Binder copier) {
  grammar.keeper_->set_copier(std::move(copier));
}

std::optional<Grammar> GrammarAccess::CopiedFrom(const Grammar& grammar, std::string_view text) {
  const GrammarOwner::Binder& copier = grammar.keeper_->copier();
  if (copier == nullptr) return std::nullopt;
  Result<Grammar> made = copier(text);
  if (!made.ok() || made->Start().completion_length() < 0) return std::nullopt;
  return *std::move(made);
}

Error GrammarAccess::UnboundError(const Grammar& grammar) {
  return {ErrorCode::kInvalid, "needs the text that is copied from (source, or bind)",
          grammar.unbound()};
}

Grammar GrammarAccess::Nothing(const Grammar& grammar) {
  return Grammar(GrammarOwner::Make({}, grammar.keeper_->shared_vocabulary(),
                                    std::make_shared<MemoryBudget>(MemoryBudget::kDefault), {}));
}

void GrammarAccess::AddNotes(const Grammar& grammar, const std::vector<std::string>& notes) {
  grammar.keeper_->AddNotes(notes);
}

GrammarAccess GrammarAccess::Of(const Grammar& grammar) {
  const State start = grammar.Start();
  return {start.impl().machine(), start.impl().lock(), grammar.keeper_->shared_vocabulary(),
          grammar.keeper_->budget()};
}

Grammar GrammarAccess::Make(std::shared_ptr<Machine> made, MachineMaker again) const {
  return Grammar(GrammarOwner::Make({std::move(made), lock}, vocabulary, budget, std::move(again)));
}

GrammarAccess::Place GrammarAccess::PlaceOf(const State& state) {
  return {state.impl().lock().get(), &state.impl(), state.key_};
}

bool GrammarAccess::NamesEndTokens(const State& state) { return state.impl().NamesEndTokens(); }
std::string GrammarAccess::LimitNote(const State& state) {
  return state.impl().LimitNote(state.key_);
}
MasksMade GrammarAccess::MasksMadeBy(const State& state) { return state.impl().masks_made(); }

std::optional<State> GrammarAccess::Replay(const Grammar& grammar,
                                           std::span<const TokenId> tokens) {
  for (;;) {
    const State start = grammar.Start();
    const std::optional<State> at = AfterAll(start, tokens);
    if (start.lost()) continue;
    if (at) Replayed(*at);
    return at;
  }
}

std::shared_ptr<const std::optional<std::vector<TokenId>>> GrammarAccess::KnownClosing(
    const State& state, int most) {
  return state.impl().KnownClosing(state.key_, most);
}

void GrammarAccess::KeepClosing(const State& state, int most,
                                const std::optional<std::vector<TokenId>>& closing) {
  state.impl().KeepClosing(state.key_, most, closing);
}

void GrammarAccess::Replayed(const State& state) { state.impl().Replayed(); }

bool GrammarAccess::MakeMasks(const GrammarImpl* grammar, std::span<const Machine::Key> keys,
                              std::span<std::shared_ptr<const Mask>> masks) {
  const bool soon = grammar->MakeMasks(keys, masks);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (masks[i] == nullptr) masks[i] = grammar->MaskOf(keys[i]);
  }
  return soon;
}

KnownAnswers& GrammarAccess::KnownOf(const State& state) { return state.impl().known(); }

std::shared_ptr<const Mask> GrammarAccess::KnownMask(const State& state) {
  return state.impl().KnownMask(state.key_);
}

State GrammarAccess::At(const State& state, Machine::Key key) {
  state.grammar_->Take();
  return State(state.grammar_, key);
}

KnownAnswers::Place GrammarAccess::AskPlace(const State& state) {
  const GrammarImpl& impl = state.impl();
  KnownAnswers::Place place;
  place.asked = true;
  place.accepting = impl.Accepting(state.key_);
  // Where a limit is reached, a token begins in another state than its bytes do.
  if (std::string note = impl.LimitNote(state.key_); !note.empty())
    place.limit = std::make_shared<const std::string>(std::move(note));
  place.by_bytes = place.limit == nullptr && !impl.CountsTokens() && !impl.TakesTokens(state.key_);
  place.temperature = impl.Temperature(state.key_);
  return place;
}

void GrammarAccess::KeepStep(const State& from, TokenId token, const State& to) {
  const GrammarImpl& impl = from.impl();
  const std::string_view bytes = impl.vocabulary().bytes(token);
  const bool special = impl.vocabulary().is_special(token);
  if (special || bytes.empty() || !impl.known().Find(from.key_).by_bytes)
    return impl.known().KeepStep(from.key_, token, to.key_);
  const std::vector<Machine::Key> path = impl.Path(from.key_, bytes);
  if (path.size() == bytes.size()) impl.known().KeepPath(from.key_, bytes, path);
}

}  // namespace pawl
