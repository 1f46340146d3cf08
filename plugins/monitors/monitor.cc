// The state of a text under monitors. Away from triggers a byte costs a step of the scanner and the
// monitors' look at the last bytes. Behind a trigger the state has a set of names, and a byte has
// to go on with one of them or end one.
//
// The text is shared between states that only read it; a state that appends to a text that others
// hold copies it first.
#include "plugins/monitors/monitor.h"

#include <algorithm>
#include <chrono>

#include "plugins/monitors/lsp/server.h"
#include "plugins/monitors/work.h"
#include "src/base/stop_scope.h"

namespace pawl::monitors {

namespace {

// Of longer texts nothing is known: they are data.
constexpr size_t kMostBytes = size_t{1} << 20;

}  // namespace

TextState::TextState(MonitorSet* set, std::string text, std::string suffix)
    : set_(set),
      text_(std::make_shared<std::string>(std::move(text))),
      suffix_(std::make_shared<const std::string>(std::move(suffix))),
      scan_(set->language(), set->limits().brackets) {
  Work::Count(text_->size());
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

// A question that gives up may have left anything behind in the analysis. A text of which several
// questions give up is not asked about any more, so that it costs no more than those.
Verdict TextState::AskOne(const Monitor& monitor, const Cursor& cursor) {
  MonitorCounts& counts = set_->counts_;
  const MonitorLimits& limits = set_->limits_;
  if (spent_ > limits.text_steps) {
    ++counts.given_up;
    return {};
  }
  uint64_t used = limits.question_steps;
  Verdict verdict;
  try {
    const Work question(limits, limits.question_steps);
    verdict = monitor.Ask(cursor, *set_->analysis_);
    used = question.used();
  } catch (const GaveUp& why) {
    set_->analysis_->Drop(false);
    verdict = {};
    ++counts.given_up;
    ++given_up_;
    const bool deep = why.why() == GaveUp::Why::kDepth;
    if (deep) too_deep_ = std::min<size_t>(why.byte(), text_->size());
    if (deep || given_up_ >= limits.most_given_up) asked_from_ = SIZE_MAX;
  } catch (const Stopped&) {
    set_->analysis_->Drop(false);
    throw;
  } catch (...) {
    set_->analysis_->Drop(true);
    throw;
  }
  spent_ += used;
  counts.steps += used;
  return verdict;
}

void TextState::Fit(Verdict& verdict) const {
  if (verdict.names == nullptr) return;
  const Completions& names = *verdict.names;
  if (!set_->written_) {
    if (names.only_written) verdict.names = nullptr;
    return;
  }
  if (!names.private_free && names.hidden.empty()) return;
  auto proposed = std::make_shared<Completions>(names);
  std::erase_if(proposed->names, [&](const std::string& name) {
    return std::ranges::binary_search(names.hidden, name);
  });
  proposed->private_unknown = names.private_free;
  proposed->private_free = false;
  verdict.names = std::move(proposed);
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
    Answer answer{AskOne(*monitor, cursor), monitor->name()};
    Fit(answer.verdict);
    unparsed = set_->analysis_->unparsed;
    counts.trigger_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const bool answered = answer.verdict.refusal.has_value() || answer.verdict.names != nullptr;
    const bool constrained =
        answered && (answer.verdict.names == nullptr || answer.verdict.names->Judges(next));
    if (counts.keep_places) {
      counts.places.push_back(
          {.byte = text_->size(), .monitor = monitor->name(), .constrained = constrained});
    }
    if (answered) {
      answer.asked = true;
      counts.constrained += constrained ? 1 : 0;
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
  if (expected_ == nullptr) {
    Answer answer = Ask('a');
    // Names of which only some are judged are no set to choose from.
    if (answer.verdict.names != nullptr && answer.verdict.names->lower_free) answer.verdict = {};
    expected_ = std::make_shared<Answer>(std::move(answer));
  }
  return expected_->verdict.names;
}

std::string TextState::WhyOpen() {
  if (text_->size() > kMostBytes) return "the text has more than 1 MiB, which counts as data";
  if (text_->find('\0') != std::string::npos) return "the text has a zero byte";
  if (too_deep() != SIZE_MAX) return TooDeepAt(*text_, too_deep()).message;
  if (!scan_.in_code()) return "the place is in a comment or a string";
  if (set_->monitors_.empty()) return "no monitors are on";
  const uint64_t before = set_->counts_.given_up;
  if (Expected() != nullptr) return "";
  if (set_->counts_.given_up > before || given_up_ > 0)
    return "a limit of the monitors was reached";
  if (too_deep() != SIZE_MAX) return TooDeepAt(*text_, too_deep()).message;
  if (expected_ == nullptr) return "a name stands before the place";
  if (expected_->unparsed) return "the code around the place does not parse";
  if (expected_->asked) return "other names may stand here than those that are known";
  return "the monitors know names only where a member is named";
}

void TextState::Within(const std::function<void(Analysis&)>& ask) {
  try {
    const Work question(set_->limits_, set_->limits_.question_steps);
    ask(*set_->analysis_);
  } catch (const GaveUp&) {
    set_->analysis_->Drop(false);
    ++set_->counts_.given_up;
  } catch (const Stopped&) {
    set_->analysis_->Drop(false);
    throw;
  } catch (...) {
    set_->analysis_->Drop(true);
    throw;
  }
}

std::vector<std::string> TextState::Known() {
  std::vector<std::string> names;
  if (Expected() != nullptr || expected_ == nullptr || !expected_->asked || expected_->unparsed)
    return names;
  const Cursor cursor{.text = *text_, .suffix = *suffix_, .scan = &scan_, .next = 'a'};
  for (const auto& monitor : set_->monitors_) {
    if (!monitor->Triggered(cursor)) continue;
    Within([&](Analysis& analysis) { monitor->Known(cursor, analysis, names); });
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<NameDetail> TextState::Details(std::span<const std::string> names) {
  std::vector<NameDetail> details(names.size());
  const bool known = Expected() != nullptr;
  if (!known && (expected_ == nullptr || !expected_->asked || expected_->unparsed)) return details;
  const std::string_view asked = !known ? "" : names_ != nullptr ? monitor_ : expected_->monitor;
  const Cursor cursor{.text = *text_, .suffix = *suffix_, .scan = &scan_, .next = 'a'};
  for (const auto& monitor : set_->monitors_) {
    if (known ? monitor->name() != asked : !monitor->Triggered(cursor)) continue;
    Within([&](Analysis& analysis) { monitor->Details(cursor, analysis, names, details); });
    break;
  }
  return details;
}

bool TextState::Add(char c, Refusal* refusal) {
  ++set_->counts_.bytes;
  Work::Count(1);
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
  if (names_ != nullptr && written_ >= set_->limits_.name_bytes) names_ = nullptr;
  if (names_ != nullptr && written_ == 0 && !names_->Judges(c)) {
    names_ = nullptr;
    MonitorCounts& counts = set_->counts_;
    if (counts.keep_places && !counts.places.empty() &&
        counts.places.back().byte == text_->size()) {
      counts.places.back().constrained = false;  // the name is not judged
    }
  }
  // A name may be written with escapes (Java, TypeScript), which are not followed.
  if (c == '\\' && !set_->written_ && set_->language() != Language::kPython) names_ = nullptr;
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

Refusal TooDeepAt(std::string_view text, size_t byte) {
  byte = std::min(byte, text.size());
  const std::string_view before = text.substr(0, byte);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t newline = before.rfind('\n');
  const size_t column = newline == std::string_view::npos ? byte + 1 : byte - newline;
  return Refusal{
      .byte = byte,
      .monitor = kLimits,
      .message = "too deep to analyse at " + std::to_string(line) + ":" + std::to_string(column),
      .at_end = true};
}

std::optional<Refusal> MonitorSet::FinishWith(std::string_view text, bool strict) {
  Scan scan(language_, limits_.brackets);
  Work::Count(text.size());
  scan.Add(text);
  if (scan.too_deep() != SIZE_MAX) return TooDeepAt(text, scan.too_deep());
  std::vector<Refusal> refusals;
  try {
    const Work question(limits_,
                        limits_.finish_steps + limits_.finish_steps_per_byte * text.size());
    refusals = strict ? analysis_->CheckStrict(text) : analysis_->CheckFinished(text, names_);
    counts_.steps += question.used();
  } catch (const GaveUp& why) {
    analysis_->Drop(false);
    ++counts_.given_up;
    if (why.why() == GaveUp::Why::kDepth) return TooDeepAt(text, why.byte());
    return std::nullopt;
  } catch (...) {
    analysis_->Drop(true);
    throw;
  }
  if (refusals.empty()) return std::nullopt;
  return std::move(refusals.front());
}

std::optional<Refusal> MonitorSet::Finish(std::string_view text) {
  if (text.size() > kMostBytes || text.find('\0') != std::string_view::npos) return std::nullopt;
  return FinishWith(text, false);
}

std::optional<Refusal> MonitorSet::FinishStrict(std::string_view text) {
  return FinishWith(text, true);
}

// The list of monitors. A new one is a class of its own and a line in the function of its language.

namespace {

// Of a language of which only a language server knows something.
class NoAnalysis : public Analysis {
 public:
  std::vector<Refusal> CheckFinished(std::string_view, const std::vector<std::string>&) override {
    return {};
  }
};

}  // namespace

Result<std::unique_ptr<MonitorSet>> MonitorSet::Make(Language language,
                                                     const MonitorOptions& options) {
  std::unique_ptr<MonitorSet> set(new MonitorSet(language, options.limits));
  std::vector<std::unique_ptr<Monitor>> all;
  switch (language) {
    case Language::kTypeScript:
      set->analysis_ = MakeTypeScriptAnalysis(options);
      all = TypeScriptMonitors();
      break;
    case Language::kJava:
      set->analysis_ = MakeJavaAnalysis(options);
      all = JavaMonitors();
      break;
    case Language::kPython:
      set->analysis_ = MakePythonAnalysis(options);
      all = PythonMonitors();
      break;
    default:
      set->analysis_ = std::make_unique<NoAnalysis>();
      if (options.server != nullptr) break;
      return Error{ErrorCode::kUnsupported,
                   std::string("there are no monitors for ") + LanguageName(language), "language"};
  }
  if (!options.file.empty()) set->analysis_->SetFile(options.file);
  // Where a monitor of our own knows something, the server is not asked.
  if (options.server != nullptr) {
    all.push_back(MakeLspMonitor(options.server, language, options.file));
  }
  for (const std::string& wanted : options.monitors) {
    if (std::none_of(all.begin(), all.end(), [&](const auto& m) { return m->name() == wanted; })) {
      std::string known;
      for (const auto& m : all) known += (known.empty() ? "" : ", ") + std::string(m->name());
      return Error{ErrorCode::kInvalid,
                   "no monitor is called \"" + wanted + "\"; there are: " + known, "monitors"};
    }
  }
  for (auto& m : all) {
    const bool chosen = options.monitors.empty() ||
                        std::find(options.monitors.begin(), options.monitors.end(), m->name()) !=
                            options.monitors.end();
    if (!chosen) continue;
    set->names_.emplace_back(m->name());
    set->monitors_.push_back(std::move(m));
  }
  return set;
}

}  // namespace pawl::monitors
