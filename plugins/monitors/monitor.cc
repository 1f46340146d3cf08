// The state of a text under monitors. Away from triggers a byte costs a step of the scanner and the
// monitors' look at the last bytes. Behind a trigger the state has a set of names, and a byte has
// to go on with one of them or end one.
//
// The text is shared between states that only read it; a state that appends to a text that others
// hold copies it first.
#include "plugins/monitors/monitor.h"

#include <algorithm>
#include <chrono>

namespace pawl::monitors {
namespace {

// Of longer texts nothing is known: they are data.
constexpr size_t kMostBytes = size_t{1} << 20;

}  // namespace

TextState::TextState(MonitorSet* set, std::string text, std::string suffix)
    : set_(set),
      text_(std::make_shared<std::string>(std::move(text))),
      suffix_(std::make_shared<const std::string>(std::move(suffix))),
      scan_(set->language()) {
  scan_.Add(*text_);
  if (text_->find('\0') != std::string::npos) asked_from_ = SIZE_MAX;  // no text
}

// A text that is this state's own is not copied, but cut where the bytes are refused.
bool TextState::Add(std::string_view bytes, Refusal* refusal) {
  const size_t size = text_->size();
  const std::shared_ptr<std::string> shared = text_.use_count() > 1 ? text_ : nullptr;
  TextState before = *this;
  before.text_ = nullptr;
  for (const char c : bytes) {
    if (Add(c, refusal)) continue;
    std::shared_ptr<std::string> text = shared != nullptr ? shared : std::move(text_);
    if (shared == nullptr) text->resize(size);
    *this = std::move(before);
    text_ = std::move(text);
    return false;
  }
  return true;
}

// An error that more text does not mend costs the parser its whole recovery at each trigger. The
// wait belongs to the state, so it is the same however the text came about.
void TextState::Rest(bool unparsed) {
  constexpr uint32_t kPatience = 4;
  constexpr uint32_t kMost = kPatience + 8;
  constexpr size_t kLong = size_t{64} << 10;
  failures_ = unparsed ? std::min(failures_ + 1, kMost) : 0;
  if (failures_ < kPatience) return;
  if (failures_ == kMost && text_->size() > kLong) {
    asked_from_ = SIZE_MAX;  // this is no program
    return;
  }
  asked_from_ =
      text_->size() + std::min<size_t>(size_t{64} << (failures_ - kPatience), text_->size() / 4);
}

TextState::Answer TextState::Ask(char next) {
  if (text_->size() > kMostBytes || text_->size() < asked_from_) return {};
  const Cursor cursor{.text = *text_, .suffix = *suffix_, .scan = &scan_, .next = next};
  MonitorCounts& counts = set_->counts_;
  bool asked = false;
  bool unparsed = false;
  for (const auto& monitor : set_->monitors_) {
    if (!monitor->Triggered(cursor)) continue;
    const auto start = std::chrono::steady_clock::now();
    ++counts.points;
    set_->analysis_->unparsed = false;
    Answer answer{monitor->Ask(cursor, *set_->analysis_), monitor->name()};
    unparsed = set_->analysis_->unparsed;
    counts.trigger_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const bool constrained = answer.verdict.refusal.has_value() || answer.verdict.names != nullptr;
    if (counts.keep_places) {
      counts.places.push_back(
          {.byte = text_->size(), .monitor = monitor->name(), .constrained = constrained});
    }
    if (constrained) {
      answer.asked = true;
      ++counts.constrained;
      return answer;
    }
    asked = true;
  }
  return {.verdict = {}, .monitor = "", .unparsed = unparsed, .asked = asked};
}

// Monitors look at whether the next byte begins a name, not at which one it is.
std::shared_ptr<const Completions> TextState::Expected() {
  if (names_ != nullptr) return names_;
  if (!scan_.in_code()) return nullptr;
  if (!text_->empty() && NameByte(text_->back())) return nullptr;
  if (expected_ == nullptr) expected_ = std::make_shared<Answer>(Ask('a'));
  return expected_->verdict.names;
}

bool TextState::Add(char c, Refusal* refusal) {
  ++set_->counts_.bytes;
  const auto refuse = [&](size_t byte, std::string identifier, std::string message) {
    if (refusal != nullptr) {
      *refusal = Refusal{.byte = byte,
                         .identifier = std::move(identifier),
                         .monitor = monitor_,
                         .message = std::move(message)};
    }
    return false;
  };
  if (names_ == nullptr && scan_.in_code()) {
    const Answer answer = NameStart(c) && expected_ != nullptr ? *expected_ : Ask(c);
    if (answer.asked) Rest(answer.unparsed);
    if (answer.verdict.refusal) {
      if (refusal != nullptr) {
        *refusal = *answer.verdict.refusal;
        refusal->monitor = answer.monitor;
      }
      return false;
    }
    if (answer.verdict.names != nullptr) {
      names_ = answer.verdict.names;
      monitor_ = answer.monitor;
      written_ = 0;
    }
  }
  if (names_ != nullptr && names_->private_free && written_ == 0 && c == '_') names_ = nullptr;
  if (names_ != nullptr) {
    const std::string_view so_far = std::string_view(*text_).substr(text_->size() - written_);
    const auto& names = names_->names;
    if (NameByte(c)) {
      std::string longer(so_far);
      longer += c;
      const auto at = std::lower_bound(names.begin(), names.end(), longer);
      if (at == names.end() || !at->starts_with(longer)) {
        const bool ok =
            refuse(text_->size() - written_, longer, "no name that may stand here begins so");
        if (written_ == 0) names_ = nullptr;
        return ok;
      }
      ++written_;
    } else {
      const bool whole = std::binary_search(names.begin(), names.end(), so_far);
      const bool follows =
          names_->followers.empty() || names_->followers.find(c) != std::string::npos;
      if (!whole || !follows) {
        return refuse(text_->size() - written_, std::string(so_far),
                      "no name that may stand here ends so");
      }
      names_ = nullptr;
    }
  }
  expected_ = nullptr;
  if (text_.use_count() > 1) text_ = std::make_shared<std::string>(*text_);
  *text_ += c;
  if (c == '\0') asked_from_ = SIZE_MAX;
  scan_.Add(c);
  return true;
}

MonitorSet::~MonitorSet() = default;

TextState MonitorSet::Start(std::string text, std::string suffix) {
  return TextState(this, std::move(text), std::move(suffix));
}

std::optional<Refusal> MonitorSet::Finish(std::string_view text) {
  if (text.size() > kMostBytes || text.find('\0') != std::string_view::npos) return std::nullopt;
  auto refusals = analysis_->CheckFinished(text, names_);
  if (refusals.empty()) return std::nullopt;
  return std::move(refusals.front());
}

std::optional<Refusal> MonitorSet::FinishStrict(std::string_view text) {
  auto refusals = analysis_->CheckStrict(text);
  if (refusals.empty()) return std::nullopt;
  return std::move(refusals.front());
}

}  // namespace pawl::monitors
