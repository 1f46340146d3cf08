// The adapter from a text's state under monitors to a Constraint.
//
// What a mask can say cheaply. At a name of which the possible ones are known: tokens are looked up
// by the paths of those names, so the cost is that of the names and not of the vocabulary. Behind
// the name and everywhere else a token may reach a trigger with its own bytes (").len"): to know
// that for all tokens would mean to parse the text once for each way to go on. So the mask allows
// them, and Advance, which reads a token's bytes one by one, has the last word.
#include "src/completion/monitor_constraint.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "plugins/monitors/work.h"

namespace pawl::completion {
namespace {

void Set(NameTokens::Bits& bits, TokenId token) {
  bits[static_cast<size_t>(token) >> 5] |= uint32_t{1} << (token & 31);
}

}  // namespace

NameTokens::NameTokens(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
  const auto words = static_cast<size_t>(vocabulary.mask_words());
  text_.assign(words, 0);
  no_name_byte_ = no_name_start_ = text_;
  for (TokenId t = 0; t < vocabulary.size(); ++t) {
    const std::string_view bytes = vocabulary.bytes(t);
    if (vocabulary.is_special(t) || bytes.empty()) continue;
    Set(text_, t);
    if (!monitors::NameByte(bytes[0])) Set(no_name_byte_, t);
    if (!monitors::NameStart(bytes[0])) Set(no_name_start_, t);
    size_t name = 0;
    while (name < bytes.size() && monitors::NameByte(bytes[name])) ++name;
    longest_ = std::max(longest_, name);
    if (name > 0) (name == bytes.size() ? whole_ : tail_)[bytes.substr(0, name)].push_back(t);
  }
}

void NameTokens::AddNames(const monitors::Completions& names, std::string_view begun,
                          bool name_first, Bits& bits) const {
  if (begun.empty() && !name_first) {
    for (size_t i = 0; i < bits.size(); ++i) bits[i] |= no_name_start_[i];
  }
  if (begun.empty() && (names.private_free || names.lower_free)) {
    for (TokenId t = 0; t < vocabulary_.size(); ++t) {
      const std::string_view bytes = vocabulary_.bytes(t);
      if (vocabulary_.is_special(t) || bytes.empty()) continue;
      if (monitors::NameStart(bytes[0]) && !names.Judges(bytes[0])) Set(bits, t);
    }
  }
  const auto add = [&](const auto& tokens, std::string_view key, size_t name) {
    const auto found = tokens.find(key);
    if (found == tokens.end()) return;
    for (const TokenId t : found->second) {
      const std::string_view bytes = vocabulary_.bytes(t);
      const bool follows = bytes.size() == name || names.followers.empty() ||
                           names.followers.find(bytes[name]) != std::string::npos;
      if (follows) Set(bits, t);
    }
  };
  std::string_view before;
  auto name = std::lower_bound(names.names.begin(), names.names.end(), begun);
  for (; name != names.names.end() && name->starts_with(begun); ++name) {
    const std::string_view left = std::string_view(*name).substr(begun.size());
    if (left.empty()) {  // it is complete
      for (size_t w = 0; w < bits.size(); ++w) {
        uint32_t word = no_name_byte_[w];
        for (uint32_t bit = 0; !names.followers.empty() && bit < 32; ++bit) {
          if (((word >> bit) & 1) == 0) continue;
          const char first = vocabulary_.bytes(static_cast<TokenId>(w * 32 + bit))[0];
          if (names.followers.find(first) == std::string::npos) word &= ~(uint32_t{1} << bit);
        }
        bits[w] |= word;
      }
      continue;
    }
    // Names are sorted: what this one shares with the one before it is done.
    size_t shared = 0;
    while (shared < left.size() && shared < before.size() && left[shared] == before[shared]) {
      ++shared;
    }
    const size_t longest = std::min(left.size(), longest_);
    for (size_t n = shared + 1; n <= longest; ++n) add(whole_, left.substr(0, n), n);
    if (left.size() <= longest_) add(tail_, left, left.size());
    monitors::Work::Step(1 + (longest > shared ? longest - shared : 0));
    before = left;
  }
}

void NameTokens::AddText(std::string_view text, Bits& bits) const {
  for (TokenId t = 0; t < vocabulary_.size(); ++t) {
    const std::string_view bytes = vocabulary_.bytes(t);
    if (vocabulary_.is_special(t) || bytes.empty()) continue;
    if (text.starts_with(bytes) || bytes.starts_with(text)) Set(bits, t);
  }
}

MonitorHost::MonitorHost(std::unique_ptr<monitors::MonitorSet> set,
                         std::shared_ptr<const Vocabulary> vocabulary)
    : set_(std::move(set)), vocabulary_(std::move(vocabulary)), tokens_(*vocabulary_) {
  if (set_ != nullptr) set_->TextsAreWritten();
}

monitors::MonitorCounts MonitorHost::counts() {
  const std::lock_guard lock(mutex_);
  return set_ != nullptr ? set_->counts() : monitors::MonitorCounts{};
}

std::vector<std::string> MonitorHost::Limits() {
  const std::lock_guard lock(mutex_);
  return set_ != nullptr ? set_->analysis().Limits() : std::vector<std::string>();
}

namespace {

using Counter = std::shared_ptr<std::atomic<uint64_t>>;

// The right to ask the monitors. Questions of this constraint that are given up are counted.
class Asking {
 public:
  Asking(MonitorHost& host, const Counter& given_up)
      : lock_(host.mutex()), host_(host), given_up_(given_up), before_(Now()) {}
  ~Asking() {
    if (given_up_ != nullptr) *given_up_ += Now() - before_;
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

 private:
  uint64_t Now() { return host_.set() != nullptr ? host_.set()->counts().given_up : 0; }
  const std::lock_guard<std::mutex> lock_;
  MonitorHost& host_;
  const Counter& given_up_;
  const uint64_t before_;
};

class Monitored final : public Constraint {
 public:
  // With the host's mutex.
  Monitored(std::shared_ptr<MonitorHost> host, std::optional<monitors::TextState> state,
            std::string must, bool special, Counter given_up)
      : host_(std::move(host)),
        state_(std::move(state)),
        must_(std::move(must)),
        special_(special),
        given_up_(std::move(given_up)) {}
  Monitored(std::shared_ptr<MonitorHost> host, std::optional<monitors::TextState> state,
            std::string must, bool special, Counter given_up, bool name_first,
            std::optional<std::string> member)
      : Monitored(std::move(host), std::move(state), std::move(must), special,
                  std::move(given_up)) {
    name_first_ = name_first;
    member_ = std::move(member);
  }
  ~Monitored() override {
    // States share their texts.
    const std::lock_guard lock(host_->mutex());
    state_.reset();
  }
  Monitored(const Monitored&) = delete;
  Monitored& operator=(const Monitored&) = delete;

  bool exact() const override { return false; }

  Place Look() const override {
    const Asking asking(*host_, given_up_);
    if (mask_ == nullptr) mask_ = MakeMask();
    return {.mask = mask_, .accepting = MayEnd()};
  }

  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    const Vocabulary& vocabulary = *host_->vocabulary();
    if (token < 0 || token >= vocabulary.size()) return nullptr;
    const std::string_view bytes = vocabulary.bytes(token);
    if (vocabulary.is_special(token) || bytes.empty()) {
      if (!special_ || !must_.empty()) return nullptr;
      const std::lock_guard lock(host_->mutex());
      return std::make_shared<Monitored>(host_, state_, must_, special_, given_up_);
    }
    if (!must_.starts_with(bytes) && !bytes.starts_with(must_)) return nullptr;
    const Asking asking(*host_, given_up_);
    if (WantsName() && !MayBegin(bytes[0])) return nullptr;
    std::optional<monitors::TextState> next = state_;
    if (next && !next->Add(bytes, nullptr)) {
      host_->Refused();
      return nullptr;
    }
    return std::make_shared<Monitored>(host_, std::move(next),
                                       must_.substr(std::min(must_.size(), bytes.size())), special_,
                                       given_up_);
  }

  std::optional<std::vector<TokenId>> Completion(int most) const override {
    std::string missing = must_;
    {
      const Asking asking(*host_, given_up_);
      if (MayEnd()) return std::vector<TokenId>{};
      if (missing.empty()) missing = Missing();
    }
    std::vector<TokenId> tokens = host_->vocabulary()->FewestTokens(missing);
    if (static_cast<int>(tokens.size()) > most) return std::nullopt;
    std::shared_ptr<const Constraint> at;
    const Constraint* from = this;
    for (const TokenId token : tokens) {
      at = from->Advance(token);
      if (at == nullptr) return std::nullopt;
      from = at.get();
    }
    if (!static_cast<const Monitored*>(from)->Accepts()) return std::nullopt;
    return tokens;
  }

 private:
  bool Accepts() const {
    const Asking asking(*host_, given_up_);
    return MayEnd();
  }

  // What a begun name lacks at least.
  std::string Missing() const {
    if (!state_ || state_->completions() == nullptr) return "";
    const std::string& text = state_->text();
    const std::string_view begun = std::string_view(text).substr(text.size() - state_->written());
    std::optional<std::string_view> best;
    for (const std::string& name : state_->completions()->names) {
      if (!name.starts_with(begun)) continue;
      const std::string_view left = std::string_view(name).substr(begun.size());
      if (!best || left.size() < best->size()) best = left;
    }
    return std::string(best.value_or(""));
  }

  bool MayEnd() const { return must_.empty() && Missing().empty() && !WantsName(); }

  // Names are known, or the cursor stands behind a point.
  bool WantsName() const { return must_.empty() && (member_ || KnowsNames()); }
  bool KnowsNames() const { return name_first_ && state_ && state_->Expected() != nullptr; }
  bool MayBegin(char first) const {
    return monitors::NameStart(first) ||
           (member_ && !KnowsNames() && member_->find(first) != std::string::npos);
  }

  std::shared_ptr<const Mask> MakeMask() const {
    const NameTokens& tokens = host_->tokens();
    NameTokens::Bits bits(tokens.text().size(), 0);
    const std::shared_ptr<const monitors::Completions> names =
        state_ && must_.empty() ? state_->Expected() : nullptr;
    if (!must_.empty()) {
      tokens.AddText(must_, bits);
    } else if (names != nullptr) {
      const std::string& text = state_->text();
      const size_t written = state_->completions() != nullptr ? state_->written() : 0;
      tokens.AddNames(*names, std::string_view(text).substr(text.size() - written), name_first_,
                      bits);
    } else {
      bits = tokens.text();
      const Vocabulary& all = *host_->vocabulary();
      for (TokenId t = 0; WantsName() && t < all.size(); ++t) {
        const std::string_view bytes = all.bytes(t);
        if (!bytes.empty() && !MayBegin(bytes[0]))
          bits[static_cast<size_t>(t) >> 5] &= ~(uint32_t{1} << (t & 31));
      }
    }
    const Vocabulary& vocabulary = *host_->vocabulary();
    // Only a grammar names special tokens; they are no text.
    for (TokenId t = 0; special_ && must_.empty() && t < vocabulary.size(); ++t) {
      if (vocabulary.is_special(t)) Set(bits, t);
    }
    const bool ends = MayEnd();
    for (const TokenId t : vocabulary.end_tokens()) {
      if (ends) Set(bits, t);
    }
    return std::make_shared<Mask>(0, std::move(bits));
  }

  const std::shared_ptr<MonitorHost> host_;
  mutable std::optional<monitors::TextState> state_;  // under the host's mutex
  const std::string must_;
  const bool special_;
  const Counter given_up_;
  bool name_first_ = false;
  std::optional<std::string> member_;
  mutable std::shared_ptr<const Mask> mask_;  // under the host's mutex
};

}  // namespace

std::shared_ptr<const Constraint> MonitorConstraint(std::shared_ptr<MonitorHost> host,
                                                    const MonitoredText& text) {
  const std::lock_guard lock(host->mutex());
  std::optional<monitors::TextState> state;
  if (host->set() != nullptr) state = host->set()->Start(text.prefix, text.suffix);
  const bool special = text.grammar != nullptr;
  std::shared_ptr<const Constraint> monitored =
      std::make_shared<Monitored>(host, std::move(state), text.must, special, text.given_up,
                                  text.name_first, special ? std::nullopt : text.member);
  if (text.grammar == nullptr) return monitored;
  return Both(text.grammar, std::move(monitored), host->vocabulary());
}

bool MonitorsAllow(MonitorHost& host, const MonitoredText& text) {
  const std::lock_guard lock(host.mutex());
  return host.set() == nullptr ||
         host.set()->Start(text.prefix, text.suffix).Add(text.must, nullptr);
}

}  // namespace pawl::completion
