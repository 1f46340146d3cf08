// A monitor's check keeps the text that it was asked about last, because the next one mostly goes
// on with it. Texts that are too long, or nested too deeply, are not judged.
#include "src/completion/code_check.h"

#include <mutex>
#include <optional>
#include <utility>

#include "plugins/monitors/monitor.h"
#include "plugins/monitors/syntax.h"
#include "src/base/file.h"

namespace pawl::completion {
namespace {

constexpr size_t kMostCode = size_t{1} << 20;

class SyntaxCheck : public Check {
 public:
  explicit SyntaxCheck(monitors::Language language) : language_(language) {}
  CheckGranularity granularity() const override { return CheckGranularity::kComplete; }
  Result<Verdict> Judge(const CheckQuestion& question) const override {
    if (!question.ended) return Verdict::kLive;
    if (question.text.size() > kMostCode) return Verdict::kUnknown;
    monitors::Parser parser(language_);
    const std::unique_ptr<monitors::Tree> tree = parser.Parse(std::string(question.text));
    if (tree->cut()) return Verdict::kUnknown;
    if (!tree->broken()) return Verdict::kAccept;
    if (question.why != nullptr) *question.why = "does not parse";
    return Verdict::kDead;
  }

 private:
  const monitors::Language language_;
};

class MonitorCheck : public Check {
 public:
  explicit MonitorCheck(std::unique_ptr<monitors::MonitorSet> set)
      : set_(std::move(set)), last_(set_->Start("")) {}
  CheckGranularity granularity() const override { return CheckGranularity::kToken; }
  Result<Verdict> Judge(const CheckQuestion& question) const override {
    if (question.text.size() > kMostCode) return Verdict::kUnknown;
    const std::lock_guard lock(mutex_);
    if (!question.text.starts_with(last_.text())) last_ = set_->Start("");
    monitors::Refusal refusal;
    const std::string_view more = question.text.substr(last_.text().size());
    if (!last_.Add(more, &refusal)) return Refused(question, refusal);
    if (!question.ended) return Verdict::kLive;
    const std::optional<monitors::Refusal> end = set_->Finish(question.text);
    return end ? Refused(question, *end) : Verdict::kAccept;
  }

 private:
  static Verdict Refused(const CheckQuestion& question, const monitors::Refusal& refusal) {
    if (refusal.monitor == monitors::kLimits) return Verdict::kUnknown;
    if (question.why != nullptr) *question.why = refusal.monitor + ": " + refusal.message;
    return Verdict::kDead;
  }

  mutable std::mutex mutex_;
  const std::unique_ptr<monitors::MonitorSet> set_;
  mutable monitors::TextState last_;
};

}  // namespace

Result<std::shared_ptr<const Check>> MakeCodeCheck(const std::string& spec) {
  const auto bad = [&](std::string message) {
    return Error{ErrorCode::kInvalid, std::move(message), spec};
  };
  const size_t colon = spec.find(':');
  const std::string kind = spec.substr(0, colon);
  if (colon == std::string::npos) return bad("is not syntax:LANGUAGE or monitor:LANGUAGE");
  if (kind.find('@') != std::string::npos) {
    return bad(kind.starts_with("syntax") ? "has a granularity: complete outputs alone are parsed"
                                          : "has a granularity: a monitor is asked at each token");
  }
  const std::optional<monitors::Language> language =
      monitors::LanguageNamed(spec.substr(colon + 1));
  if (!language || !monitors::HasGrammar(*language)) {
    return bad("names none of the languages typescript, java, python, cpp");
  }
  if (kind == "syntax")
    return std::shared_ptr<const Check>(std::make_shared<SyntaxCheck>(*language));
  Result<std::unique_ptr<monitors::MonitorSet>> set = monitors::MonitorSet::Make(*language, {});
  if (!set.ok()) return InFile(spec, set.error());
  return MakeCachedCheck(std::make_shared<MonitorCheck>(*std::move(set)));
}

}  // namespace pawl::completion
