// From a request to a completion plan and to what a model writes under it, so that the rest of the
// server includes nothing of the monitors.
#include "src/server/code_completion.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "plugins/monitors/lsp/server.h"
#include "src/completion/code_check.h"
#include "src/completion/completion.h"
#include "src/decode/sampling/check_spec.h"

namespace pawl::server {

// What a plan and its outputs refer to.
struct PlannedCode {
  completion::CompletionRequest request;
  completion::CompletionPlan plan;
};

struct CodeOutput::Parts {
  explicit Parts(std::shared_ptr<const PlannedCode> from)
      : planned(std::move(from)), output(planned->request, planned->plan) {}
  const std::shared_ptr<std::atomic<uint64_t>> given_up =
      std::make_shared<std::atomic<uint64_t>>(0);
  const std::shared_ptr<const PlannedCode> planned;
  completion::CompletionOutput output;
  size_t before = 0;  // bytes of the text before the last Add
};

CodeOutput::CodeOutput(std::shared_ptr<const PlannedCode> planned)
    : parts_(std::make_unique<Parts>(std::move(planned))) {}
CodeOutput::~CodeOutput() = default;

std::shared_ptr<const Constraint> CodeOutput::ConstraintWith(
    std::shared_ptr<const Constraint> grammar) {
  return parts_->planned->plan.ConstraintWith(std::move(grammar), parts_->given_up);
}
std::shared_ptr<const Check> CodeOutput::ParseCheck() const {
  const auto judge = [planned = parts_->planned](const CheckQuestion& question) {
    completion::CompletionOutput output(planned->request, planned->plan);
    (void)output.Add(question.text);
    output.Finish();
    return Result<Verdict>(output.ParsesWhole() ? Verdict::kAccept : Verdict::kDead);
  };
  return MakeCheck(CheckGranularity::kComplete, judge);
}

int CodeOutput::more_tokens() const { return static_cast<int>(parts_->planned->plan.skip); }
bool CodeOutput::Add(std::string_view bytes) {
  parts_->before = parts_->output.text().size();
  return parts_->output.Add(bytes);
}
std::string_view CodeOutput::added() const {
  return std::string_view(parts_->output.text()).substr(parts_->before);
}
bool CodeOutput::ended() const { return parts_->output.ended(); }
void CodeOutput::Finish() { parts_->output.Finish(); }
const std::string& CodeOutput::text() const { return parts_->output.text(); }
bool CodeOutput::Parses() const { return parts_->output.Parses(); }
uint64_t CodeOutput::given_up() const { return *parts_->given_up; }

const std::string& CodePlan::prefix() const { return planned_->plan.prefix; }

namespace {

std::optional<monitors::Language> LanguageOf(const CodeSpec& spec) {
  const auto named = monitors::LanguageNamed(spec.language);
  return named ? named : monitors::LanguageOfFile(spec.file);
}

std::shared_ptr<monitors::LspServer> LanguageServer(const CodeOptions& options) {
  if (options.lsp_server.empty()) return nullptr;
  monitors::LspSetting setting;
  setting.command = options.lsp_server;
  setting.root = options.repo;
  setting.limit_seconds = options.lsp_seconds;
  return std::make_shared<monitors::LspServer>(std::move(setting));
}

}  // namespace

struct CodePlans::Parts {
  const CodeOptions options;
  completion::CompletionPlanner planner;
};

CodePlans::CodePlans(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
CodePlans::~CodePlans() = default;

std::unique_ptr<CodePlans> CodePlans::Make(std::shared_ptr<const Vocabulary> vocabulary,
                                           const CodeOptions& options) {
  OfferCodeChecks(completion::MakeCodeCheck);
  return std::unique_ptr<CodePlans>(new CodePlans(std::unique_ptr<Parts>(new Parts{
      options, completion::CompletionPlanner(std::move(vocabulary), LanguageServer(options))})));
}

Result<CodePlan> CodePlans::Plan(const CodeSpec& spec, std::string prefix, std::string suffix) {
  auto planned = std::make_shared<PlannedCode>();
  completion::CompletionRequest& request = planned->request;
  request.prefix = std::move(prefix);
  request.suffix = std::move(suffix);
  request.suffix_aware = true;
  request.language = LanguageOf(spec);
  request.repo = parts_->options.repo;
  request.cache = parts_->options.cache;
  request.java_home = parts_->options.java_home;
  request.file = spec.file;
  request.monitors = spec.monitors.empty() ? parts_->options.monitors : spec.monitors;
  request.use_monitors = spec.use_monitors;
  request.heal = !spec.has_grammar;
  Result<completion::CompletionPlan> plan = parts_->planner.Plan(request);
  if (!plan.ok()) {
    return Error{plan.error().code, plan.error().message, "#/" + plan.error().place};
  }
  planned->plan = *std::move(plan);
  return CodePlan(std::move(planned));
}

std::optional<CodeSpec> ReadCode(const JsonReader& in) {
  CodeSpec spec;
  in["language"].Read(spec.language);
  in["filename"].Read(spec.file);
  const JsonReader monitors = in["monitors"];
  if (monitors.present() && monitors.value()->is_bool()) {
    spec.use_monitors = monitors.Bool();
  } else {
    monitors.ReadStrings(spec.monitors, 64);
  }
  if (!in.ok()) return std::nullopt;
  if (!spec.language.empty() && !monitors::LanguageNamed(spec.language)) {
    // Editors name languages that have no monitors.
    spec.language.clear();
  }
  if (!LanguageOf(spec)) return std::nullopt;
  return spec;
}

}  // namespace pawl::server
