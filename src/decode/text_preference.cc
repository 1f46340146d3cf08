// Of a value that has left the text only its end is waited for. The grammar of copied values stands
// where the value begins, takes the shortest value there that it knows, and goes on behind it.
// Where that is not possible, for instance because that value may not come twice, nothing is
// preferred from there on.
#include "src/decode/text_preference.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "grammar/grammar_access.h"
#include "src/base/json.h"
#include "src/base/sync.h"
#include "src/decode/constraint.h"
#include "src/decode/copied_spelling.h"

namespace pawl {
namespace {

constexpr int kMostReplays = 3;

// The string, number or literal with which a text begins.
std::string_view FirstValue(std::string_view text) {
  JsonPlace place;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (place.Feed(text[i])) {
      case JsonPlace::Event::kEnds:
        return text.substr(0, i + 1);
      case JsonPlace::Event::kEndedBefore:
        return text.substr(0, i);
      case JsonPlace::Event::kBegins:
        break;
      case JsonPlace::Event::kNone:
        if (!place.at_value() || text[i] == '[') return {};
        break;
    }
  }
  return text;
}

struct PreferredTokens {
  std::shared_ptr<PreferredTokens> before;
  TokenId token;

  PreferredTokens(std::shared_ptr<PreferredTokens> rest, TokenId last)
      : before(std::move(rest)), token(last) {}
  PreferredTokens(const PreferredTokens&) = delete;
  PreferredTokens& operator=(const PreferredTokens&) = delete;
  ~PreferredTokens() {  // one after the other: there may be many
    std::shared_ptr<PreferredTokens> rest = std::move(before);
    while (rest != nullptr && rest.use_count() == 1) rest = std::move(rest->before);
  }
};

// Where the text of an output is, in a grammar of copied values.
class CopiedPlace {
 public:
  explicit CopiedPlace(State start) : at_(std::move(start)) {}

  const JsonPlace& json() const { return json_; }
  // nullopt: the value is not of the text, or nothing is known any more.
  const std::optional<State>& at() const { return at_; }
  bool lost() const { return (at_ && at_->lost()) || (value_ && value_->lost()) || broken_; }

  void Take(TokenId token, std::string_view bytes) {
    if (at_ && !bytes.empty()) {
      if (std::optional<State> after = at_->Advance(token)) {
        if (!at_->lost()) GrammarAccess::KeepStep(*at_, token, *after);
        return Follow(bytes, *std::move(after));
      }
    }
    for (size_t i = 0; i < bytes.size(); ++i) TakeByte(bytes.substr(i, 1));
  }
  // Take where the state behind the bytes is known.
  void Follow(std::string_view bytes, State after) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const JsonPlace::Event event = json_.Feed(bytes[i]);
      if (event == JsonPlace::Event::kNone) continue;
      const bool begins = event == JsonPlace::Event::kBegins;
      value_ = begins ? at_ : std::nullopt;
      before_value_ = begins ? std::string(bytes.substr(0, i)) : std::string();
    }
    at_ = std::move(after);
  }
  // The value that is being written has left the text.
  void Leave() {
    if (value_) at_.reset();
  }

 private:
  void TakeByte(std::string_view byte) {
    const JsonPlace::Event event = json_.Feed(byte[0]);
    if (event == JsonPlace::Event::kBegins) {
      value_ = at_;
      before_value_.clear();
    }
    if (event == JsonPlace::Event::kEndedBefore) EndValue();
    if (at_) {
      std::optional<State> after = at_->Advance(byte);
      broken_ = broken_ || at_->lost();
      at_ = std::move(after);
    }
    if (event == JsonPlace::Event::kEnds) EndValue();
  }

  void EndValue() {
    if (!at_ && value_) at_ = BehindAnother();
    value_.reset();
  }
  // Behind another value than the one that has left the text.
  std::optional<State> BehindAnother() {
    const std::optional<State> from =
        before_value_.empty() ? value_ : value_->Advance(before_value_);
    if (!from) return std::nullopt;
    const std::optional<std::string> rest = from->CompletionBytes();
    broken_ = broken_ || from->lost();
    const std::string_view other = rest ? FirstValue(*rest) : std::string_view();
    return other.empty() ? std::nullopt : from->Advance(other);
  }

  std::optional<State> at_;
  JsonPlace json_;
  // In front of the value that is being written: a state, and bytes behind it.
  std::optional<State> value_;
  std::string before_value_;
  bool broken_ = false;  // an answer was given by a state that is lost
};

// Does every token of `some` stand in `all`?
bool Covers(const Mask& all, const Mask& some) {
  const std::span<const uint32_t> a = all.words(), b = some.words();
  for (size_t i = 0; i < b.size(); ++i) {
    if ((b[i] & ~a[i]) != 0) return false;
  }
  return true;
}

// The tokens that are preferred, by place. What is known here is told without work.
class PreferredMasks {
 public:
  std::shared_ptr<const Mask> Known(const State& at) {
    const std::lock_guard lock(mutex_);
    const GrammarAccess::Place place = GrammarAccess::PlaceOf(at);
    if (!last_ || GrammarAccess::PlaceOf(*last_).grammar != place.grammar) return nullptr;
    const auto found = masks_.find(place);
    return found == masks_.end() ? nullptr : found->second;
  }
  void Keep(const State& at, std::shared_ptr<const Mask> mask) {
    const std::lock_guard lock(mutex_);
    const GrammarAccess::Place place = GrammarAccess::PlaceOf(at);
    const bool other = last_ && GrammarAccess::PlaceOf(*last_).grammar != place.grammar;
    if (other || masks_.size() == kMostMasks) masks_.clear();
    last_ = at;  // its grammar is not made anew in the same place
    masks_[place] = std::move(mask);
  }

 private:
  static constexpr size_t kMostMasks = 64;
  Mutex mutex_;
  std::optional<State> last_;
  std::map<GrammarAccess::Place, std::shared_ptr<const Mask>> masks_;
};

struct PreferenceParts {
  PreferenceParts(const Grammar& of, TextPreference what)
      : copied(of),
        preference(std::move(what)),
        spelling(preference.encode, preference.text, copied.vocabulary()) {}

  Grammar copied;
  TextPreference preference;
  CopiedSpelling spelling;
  mutable PreferredMasks masks;
};

class PreferringConstraint final : public LoopConstraint {
 public:
  using Parts = std::shared_ptr<const PreferenceParts>;
  using Tokens = std::shared_ptr<PreferredTokens>;
  PreferringConstraint(std::shared_ptr<const LoopConstraint> of, Parts parts, CopiedPlace place,
                       Tokens tokens)
      : of_(std::move(of)),
        parts_(std::move(parts)),
        place_(std::move(place)),
        tokens_(std::move(tokens)),
        nats_(NatsAt(parts_->preference, place_)) {}

  Place Look() const override {
    FindPreferred();
    return of_->Look();
  }
  Place LookUnforced() const override {
    FindPreferred();
    return of_->LookUnforced();
  }
  std::shared_ptr<const Mask> mask() const override { return of_->mask(); }
  bool accepting() const override { return of_->accepting(); }
  std::string forced(size_t limit) const override { return of_->forced(limit); }

  bool prefers() const override { return true; }
  // A preference decides between drafts, and a draft needs none. Those of a new text are not known.
  std::shared_ptr<const LoopConstraint> for_drafts() const override { return of_; }
  Preference preference() const override {
    if (nats_ == 0) return {};
    FindPreferred();
    const std::lock_guard lock(mutex_);
    return {preferred_, nats_};
  }

  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    std::shared_ptr<const LoopConstraint> next = of_->Next(token);
    if (next == nullptr) return nullptr;
    auto tokens = std::make_shared<PreferredTokens>(tokens_, token);
    CopiedPlace place = place_;
    place.Take(token, BytesOf(token));
    if (Leaves(token)) place.Leave();
    if (place.lost()) place = Retaken(tokens);
    return std::make_shared<PreferringConstraint>(std::move(next), parts_, std::move(place),
                                                  std::move(tokens));
  }
  std::shared_ptr<const LoopConstraint> KnownNext(TokenId token) const override {
    std::shared_ptr<const LoopConstraint> next = of_->KnownNext(token);
    if (next == nullptr || !place_.at() || place_.at()->stale()) return nullptr;
    const State& at = *place_.at();
    const std::string_view bytes = BytesOf(token);
    const Machine::Key after =
        GrammarAccess::KnownOf(at).After(GrammarAccess::PlaceOf(at).key, token, bytes);
    if (after == Machine::kDead || (nats_ != 0 && !KnowsPreferred())) return nullptr;
    CopiedPlace place = place_;
    place.Follow(bytes, GrammarAccess::At(at, after));
    if (Leaves(token)) place.Leave();
    return std::make_shared<PreferringConstraint>(
        std::move(next), parts_, std::move(place),
        std::make_shared<PreferredTokens>(tokens_, token));
  }
  Known known() const override {
    Known known = of_->known();
    if (nats_ == 0 || !known.place) return known;
    known.place = KnowsPreferred();
    return known;
  }

  std::optional<std::vector<TokenId>> Completion(int most) const override {
    return of_->Completion(most);
  }
  int CompletionLength(int most) const override { return of_->CompletionLength(most); }
  bool exact() const override { return of_->exact(); }
  bool foreign() const override { return of_->foreign(); }
  uint64_t key() const override {
    if (!place_.at()) return of_->key();
    return MixedKeys(of_->key(), GrammarAccess::PlaceOf(*place_.at()).key);
  }
  void NeedsAll() const override { of_->NeedsAll(); }
  const void* lane() const override { return of_->lane(); }
  const Grammar* grammar() const override { return of_->grammar(); }
  std::unique_ptr<RecordFilter> NewRecordFilter() const override { return of_->NewRecordFilter(); }
  bool before_answer() const override { return of_->before_answer(); }

 private:
  static float NatsAt(const TextPreference& preference, const CopiedPlace& place) {
    if (!place.at()) return 0;
    if (!place.json().at_value()) return preference.keys;
    const PreferenceNats nats = preference.Of(place.json().Field());
    return place.json().inside() ? nats.inside : nats.begin;
  }
  std::string_view BytesOf(TokenId token) const {
    const Vocabulary& vocabulary = parts_->copied.vocabulary();
    if (token < 0 || token >= vocabulary.size() || vocabulary.is_special(token)) return {};
    return vocabulary.bytes(token);
  }
  // Where what is preferred is known without work, it is there then.
  bool KnowsPreferred() const {
    const std::lock_guard lock(mutex_);
    if (preferred_ == nullptr && !place_.at()->stale())
      preferred_ = parts_->masks.Known(*place_.at());
    return preferred_ != nullptr;
  }
  // A copy that goes on in another spelling than the tokenizer's is none.
  bool Leaves(TokenId token) const {
    if (nats_ == 0 || !parts_->preference.encode) return false;
    FindPreferred();
    const std::lock_guard lock(mutex_);
    return preferred_ != nullptr && !preferred_->Allows(token);
  }
  // The same place in the grammar as it is now: what was asked of a grammar may end with an
  // exception, and its states then answer nothing.
  CopiedPlace Retaken(const Tokens& last) const {
    std::vector<TokenId> tokens;
    for (const PreferredTokens* step = last.get(); step != nullptr; step = step->before.get())
      tokens.push_back(step->token);
    std::ranges::reverse(tokens);
    for (int tries = 1;; ++tries) {
      CopiedPlace place(parts_->copied.Start());
      for (const TokenId token : tokens) place.Take(token, BytesOf(token));
      if (!place.lost() || tries == kMostReplays) return place;
    }
  }
  void FindPreferred() const {
    if (nats_ == 0) return;
    if (KnowsPreferred()) return;
    std::optional<State> at = place_.at();
    std::shared_ptr<const Mask> mask = PreferredAt(*at);
    for (int tries = 0; at->lost() && tries < kMostReplays; ++tries) {
      at = Retaken(tokens_).at();
      if (!at) return;
      mask = PreferredAt(*at);
    }
    if (!at->lost()) parts_->masks.Keep(*at, mask);
    const std::lock_guard lock(mutex_);
    preferred_ = std::move(mask);
  }
  std::shared_ptr<const Mask> PreferredAt(const State& at) const {
    constexpr std::string_view kBegins = "\"-0123456789";
    const bool has_value = !place_.json().at_value() || !place_.json().before() ||
                           std::ranges::any_of(kBegins, [&at](const char& byte) {
                             return at.Advance(std::string_view(&byte, 1)).has_value();
                           });
    std::shared_ptr<const Mask> all = of_->mask();
    if (!has_value) return all;
    std::shared_ptr<const Mask> copies = at.mask();
    if (Covers(*copies, *all)) return copies;
    if (!place_.json().at_value()) return copies;
    return parts_->spelling.Of(at, std::move(copies), place_.json().value());
  }

  const std::shared_ptr<const LoopConstraint> of_;
  const Parts parts_;
  const CopiedPlace place_;
  const Tokens tokens_;
  const float nats_;
  mutable Mutex mutex_;
  mutable std::shared_ptr<const Mask> preferred_;  // with the mutex
};

}  // namespace

bool TextPreference::any() const {
  return nats.any() ||
         std::ranges::any_of(by_field, [](const auto& one) { return one.second.any(); });
}

PreferenceNats TextPreference::Of(std::string_view field) const {
  const auto found = by_field.find(field);
  return found == by_field.end() ? nats : found->second;
}

JsonPlace::Event JsonPlace::Feed(char byte) {
  const bool space = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
  if (mode_ == Mode::kString || mode_ == Mode::kKey) {
    const bool ends = byte == '"' && !escaped_;
    escaped_ = byte == '\\' && !escaped_;
    const bool value = mode_ == Mode::kString;
    if (!value && !ends) levels_.back().key += byte;
    if (value && value_.size() < kMostValue) value_ += byte;
    if (!ends) return Event::kNone;
    mode_ = Mode::kAfter;
    return value ? Event::kEnds : Event::kNone;
  }
  if (mode_ == Mode::kPlain) {
    if (!space && byte != ',' && byte != ']' && byte != '}') {
      if (value_.size() < kMostValue) value_ += byte;
      return Event::kNone;
    }
    mode_ = Mode::kAfter;
    Structure(byte);
    return Event::kEndedBefore;
  }
  const bool structure = byte == '{' || byte == '[' || byte == ']' || byte == '}';
  if (space || structure || mode_ == Mode::kAfter) {
    Structure(byte);
    return Event::kNone;
  }
  mode_ = byte == '"' ? Mode::kString : Mode::kPlain;
  value_ = byte;
  return Event::kBegins;
}

void JsonPlace::Structure(char byte) {
  switch (byte) {
    case '{':
    case '[':
      levels_.push_back({.list = byte == '[', .key = {}});
      mode_ = byte == '[' ? Mode::kBefore : Mode::kAfter;
      return;
    case '}':
    case ']':
      if (!levels_.empty()) levels_.pop_back();
      mode_ = Mode::kAfter;
      return;
    case ',':
      mode_ = !levels_.empty() && levels_.back().list ? Mode::kBefore : Mode::kAfter;
      return;
    case ':':
      mode_ = Mode::kBefore;
      return;
    case '"':
      if (levels_.empty()) return;
      levels_.back().key.clear();
      mode_ = Mode::kKey;
      return;
    default:
      return;
  }
}

std::string JsonPlace::Field() const {
  std::string out;
  for (const Level& level : levels_) {
    std::string token = level.list ? "*" : level.key;
    if (token.find('\\') != std::string::npos) {
      if (const Result<json::Value> key = json::Parse('"' + token + '"'); key.ok())
        token = key->text;
    }
    out = json::PointerJoin(out, token);
  }
  return out;
}

std::shared_ptr<const Constraint> PreferText(std::shared_ptr<const Constraint> constraint,
                                             const Grammar& copied, TextPreference preference) {
  State start = copied.Start();
  if (!preference.any() || start.completion_length() < 0) return constraint;
  std::shared_ptr<const LoopConstraint> of = ForLoop(std::move(constraint), copied.vocabulary());
  return std::make_shared<PreferringConstraint>(
      std::move(of), std::make_shared<const PreferenceParts>(copied, std::move(preference)),
      CopiedPlace(std::move(start)), nullptr);
}

}  // namespace pawl
