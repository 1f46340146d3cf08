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

TextState::TextState(MonitorSet* set, std::string text, std::string suffix)
    : set_(set),
      text_(std::make_shared<std::string>(std::move(text))),
      suffix_(std::make_shared<const std::string>(std::move(suffix))),
      scan_(set->language()) {
  scan_.Add(*text_);
}

bool TextState::Add(std::string_view bytes, Refusal* refusal) {
  const TextState before = *this;
  for (const char c : bytes) {
    if (!Add(c, refusal)) {
      *this = before;
      return false;
    }
  }
  return true;
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
    const Cursor cursor{.text = *text_, .suffix = *suffix_, .scan = &scan_, .next = c};
    for (const auto& monitor : set_->monitors_) {
      if (!monitor->Triggered(cursor)) continue;
      const auto start = std::chrono::steady_clock::now();
      ++set_->counts_.points;
      Verdict verdict = monitor->Ask(cursor, *set_->analysis_);
      set_->counts_.trigger_seconds +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (set_->counts_.keep_places) {
        set_->counts_.places.push_back(
            {.byte = text_->size(),
             .monitor = monitor->name(),
             .constrained = verdict.refusal.has_value() || verdict.names != nullptr});
      }
      if (verdict.refusal) {
        ++set_->counts_.constrained;
        if (refusal != nullptr) {
          *refusal = std::move(*verdict.refusal);
          refusal->monitor = monitor->name();
        }
        return false;
      }
      if (verdict.names != nullptr) {
        ++set_->counts_.constrained;
        names_ = std::move(verdict.names);
        monitor_ = monitor->name();
        written_ = 0;
        break;
      }
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
  if (text_.use_count() > 1) text_ = std::make_shared<std::string>(*text_);
  *text_ += c;
  scan_.Add(c);
  return true;
}

MonitorSet::~MonitorSet() = default;

TextState MonitorSet::Start(std::string text, std::string suffix) {
  return TextState(this, std::move(text), std::move(suffix));
}

std::optional<Refusal> MonitorSet::Finish(std::string_view text) {
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
