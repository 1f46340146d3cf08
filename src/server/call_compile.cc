// The constraint of a call, into the grammars of its outputs. One grammar serves all prompts whose
// bound on strings is the same; where the texts of prompts bound them, each length has its own.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/stop_scope.h"
#include "src/decode/closing.h"
#include "src/engine/loaded_model.h"
#include "src/server/call.h"
#include "src/server/server_state.h"

namespace pawl::server {

// What bounds strings when neither the schema nor the request does: as in `pawl extract`, the
// length of the prompt's longest text.
static int LongestString(const PromptSpec& prompt) {
  constexpr int64_t kMost = 1 << 30;
  int64_t longest = MaxStringFor(prompt.text);
  for (const json::Value& message : prompt.messages.items) {
    const json::Value* content = message.Find("content");
    if (content != nullptr && content->type == json::Type::kString) {
      longest = std::max(longest, MaxStringFor(content->text));
    }
  }
  return static_cast<int>(std::min(longest, kMost));
}

std::optional<ApiError> Call::CompilePlan(ThinkingStart thinking) {
  const StopScope scope(&halt_);
  LayoutSpec& layout = spec_.asked.layout;
  std::vector<int> longest;  // by prompt, where it is not the same for all
  if (layout.max_string < 0) {
    for (const PromptSpec& prompt : spec_.prompts) longest.push_back(LongestString(prompt));
    layout.max_string = *std::ranges::max_element(longest);
    if (!spec_.one_by_one) longest.clear();
  }
  PlanOptions options;
  options.thinking_tokens = spec_.thinking_tokens;
  Result<OutputPlan> plan = MakePlan(spec_.asked, server_->model->traits(), thinking, options);
  if (!plan.ok()) {
    // A place in the request, of what no part of it has by itself.
    if (plan.error().place.starts_with("#/tool_choice")) {
      return FromError(Error{plan.error().code, plan.error().message, ""}, plan.error().place);
    }
    return CompileError(plan.error());
  }
  plan_ = *std::move(plan);
  names_specials_ =
      plan_.grammar.kind == ConstraintSpec::Kind::kStructuralTag &&
      (!plan_.calls.empty() || plan_.thinking != ThinkingStart::kOff || plan_.marked());
  if (plan_.grammar.kind == ConstraintSpec::Kind::kNone) return std::nullopt;
  out_.has_grammar = true;
  out_.grammar_known = true;
  if (longest.empty()) longest.assign(spec_.prompts.size(), layout.max_string);
  std::map<int, Grammar> by_length;
  const double begin = seconds();
  for (const int length : longest) {
    if (!by_length.contains(length)) {
      layout.max_string = length;
      Result<Grammar> grammar = CompileOne();
      if (!grammar.ok()) return CompileError(grammar.error());
      if (spec_.options.at_budget == AtBudget::kClose && grammar->Start().completion_length() < 0) {
        return FromError(NoValueFits("#"), plan_.grammar.pointer);
      }
      by_length.emplace(length, *std::move(grammar));
    }
    grammars_.push_back(by_length.at(length));
  }
  out_.compile_seconds = seconds() - begin;
  server_->metrics.compile.Observe(out_.compile_seconds);
  return std::nullopt;
}

Result<Grammar> Call::CompileOne() {
  bool known = false;
  Result<Grammar> grammar =
      server_->grammars->Get(plan_.grammar, spec_.asked.layout, known, NewStop());
  out_.grammar_known = out_.grammar_known && known;
  return grammar;
}

std::shared_ptr<StopFlag> Call::NewStop() {
  const std::lock_guard lock(mutex_);
  stop_ = std::make_shared<StopFlag>();
  if (gone_ || failure_) stop_->Stop();
  return stop_;
}

// In one grammar for everything places mean nothing to a client: the parts are tried one by one.
ApiError Call::CompileError(const Error& error) {
  const auto fails = [&](const ConstraintSpec& part) -> std::optional<ApiError> {
    if (part.kind == ConstraintSpec::Kind::kNone) return std::nullopt;
    bool known = false;
    const Result<Grammar> alone =
        server_->grammars->Get(part, spec_.asked.layout, known, NewStop());
    if (alone.ok()) return std::nullopt;
    return FromError(alone.error(), part.pointer);
  };
  if (std::optional<ApiError> found = fails(spec_.asked.answer)) return *found;
  for (const ToolSpec& tool : spec_.asked.tools) {
    if (std::optional<ApiError> found = fails(tool.input)) return *found;
  }
  Error whole = error;
  whole.message = error.ToString();
  whole.place.clear();
  return FromError(whole, plan_.grammar.pointer);
}

}  // namespace pawl::server
