// The list of monitors. A new one is a class of its own and a line in the function of its language.
#include <algorithm>

#include "plugins/monitors/lsp/server.h"
#include "plugins/monitors/monitor.h"

namespace pawl::monitors {
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
