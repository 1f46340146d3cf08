// The bridge from a request to the completer of plugins/monitors, so that the rest of the server
// does not know whether there is one.
#include "src/server/code_completion.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#ifdef PAWL_HAVE_MONITORS
#include "plugins/monitors/complete.h"
#include "plugins/monitors/lsp/server.h"
#endif

namespace pawl::server {

#ifndef PAWL_HAVE_MONITORS

std::unique_ptr<CodePlans> MakeCodePlans(std::shared_ptr<const Vocabulary> /*vocabulary*/,
                                         const CodeOptions& /*options*/) {
  return nullptr;
}

std::optional<CodeSpec> ReadCode(const JsonReader& /*in*/) { return std::nullopt; }

#else

namespace {

// What a plan and its outputs refer to.
struct Planned {
  monitors::CompletionRequest request;
  monitors::CompletionPlan plan;
};

class Output : public CodeOutput {
 public:
  explicit Output(std::shared_ptr<const Planned> planned)
      : planned_(std::move(planned)), output_(planned_->request, planned_->plan) {}

  std::shared_ptr<const Constraint> ConstraintWith(
      std::shared_ptr<const Constraint> grammar) override {
    return planned_->plan.ConstraintWith(std::move(grammar), given_up_);
  }
  int more_tokens() const override { return static_cast<int>(planned_->plan.skip); }
  bool Add(std::string_view bytes) override {
    before_ = output_.text().size();
    return output_.Add(bytes);
  }
  std::string_view added() const override {
    return std::string_view(output_.text()).substr(before_);
  }
  bool ended() const override { return output_.ended(); }
  void Finish() override { output_.Finish(); }
  const std::string& text() const override { return output_.text(); }
  bool Parses() const override { return output_.Parses(); }
  uint64_t given_up() const override { return *given_up_; }

 private:
  const std::shared_ptr<std::atomic<uint64_t> > given_up_ =
      std::make_shared<std::atomic<uint64_t> >(0);
  const std::shared_ptr<const Planned> planned_;
  monitors::CompletionOutput output_;
  size_t before_ = 0;
};

class OnePlan : public CodePlan {
 public:
  explicit OnePlan(std::shared_ptr<const Planned> planned) : planned_(std::move(planned)) {}
  const std::string& prefix() const override { return planned_->plan.prefix; }
  std::shared_ptr<CodeOutput> NewOutput() const override {
    return std::make_shared<Output>(planned_);
  }

 private:
  const std::shared_ptr<const Planned> planned_;
};

std::optional<monitors::Language> LanguageOf(const CodeSpec& spec) {
  const auto named = monitors::LanguageNamed(spec.language);
  return named ? named : monitors::LanguageOfFile(spec.file);
}

class Plans : public CodePlans {
 public:
  Plans(std::shared_ptr<const Vocabulary> vocabulary, const CodeOptions& options)
      : options_(options), planner_(std::move(vocabulary), Server(options)) {}

  Result<std::shared_ptr<const CodePlan> > Plan(const CodeSpec& spec, std::string prefix,
                                                std::string suffix) override {
    auto planned = std::make_shared<Planned>();
    monitors::CompletionRequest& request = planned->request;
    request.prefix = std::move(prefix);
    request.suffix = std::move(suffix);
    request.suffix_aware = true;
    request.language = LanguageOf(spec);
    request.repo = options_.repo;
    request.cache = options_.cache;
    request.file = spec.file;
    request.monitors = spec.monitors.empty() ? options_.monitors : spec.monitors;
    request.use_monitors = spec.use_monitors;
    request.heal = !spec.has_grammar;
    Result<monitors::CompletionPlan> plan = planner_.Plan(request);
    if (!plan.ok()) {
      return Error{plan.error().code, plan.error().message, "#/" + plan.error().place};
    }
    planned->plan = *std::move(plan);
    return std::shared_ptr<const CodePlan>(std::make_shared<OnePlan>(std::move(planned)));
  }

 private:
  static std::shared_ptr<monitors::LspServer> Server(const CodeOptions& options) {
    if (options.lsp_server.empty()) return nullptr;
    monitors::LspSetting setting;
    setting.command = options.lsp_server;
    setting.root = options.repo;
    setting.limit_seconds = options.lsp_seconds;
    return std::make_shared<monitors::LspServer>(std::move(setting));
  }

  const CodeOptions options_;
  monitors::CompletionPlanner planner_;
};

}  // namespace

std::unique_ptr<CodePlans> MakeCodePlans(std::shared_ptr<const Vocabulary> vocabulary,
                                         const CodeOptions& options) {
  return std::make_unique<Plans>(std::move(vocabulary), options);
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

#endif

}  // namespace pawl::server
