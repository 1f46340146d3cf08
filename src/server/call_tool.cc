// Which tool is called, where the model has learned no form of calls.
//
// Token by token the first token of a name decides. A model that does not know the form then takes
// a beginning that many names share, such as `get_`, whatever the request says. The probability of
// the whole beginning of a call tells tools apart much better (bench/tools/). So where one call is
// required at temperature 0, the beginnings are scored behind the prompt, and the most probable one
// is written. The first score puts the prompt into the cache; the others run together.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "src/base/failure.h"
#include "src/base/stop_scope.h"
#include "src/server/call_choice.h"
#include "src/server/server_state.h"

namespace pawl::server {

namespace {

// A token may join the space at the end with what follows.
std::string_view WithoutSpaces(std::string_view text) {
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace

bool Call::PicksTool() const {
  const RequestConstraints& asked = spec_.asked;
  if (spec_.prompts.size() != 1 || spec_.together.any() || thoughts_.splits) return false;
  const std::vector<ToolForm>& forms = spec_.prompts[0].told_tools.forms;
  const bool plain = plan_.format == PlainTraits().format;
  const bool one = !asked.parallel || (plain && !asked.asked_parallel);
  return one && forms.size() > 1 && asked.choice.mode == ToolChoice::Mode::kRequired &&
         spec_.options.sampling.temperature == 0 &&
         std::ranges::none_of(forms, [](const ToolForm& form) { return form.begin.empty(); });
}

void Call::PickTool() {
  tool_scores_.assign(plan_.calls.size(), -std::numeric_limits<double>::infinity());
  score_left_ = static_cast<int>(tool_scores_.size());
  ScoreTool(0);
}

void Call::ScoreTool(size_t tool) {
  Choice& choice = *choices_[0];
  const std::string& begin = spec_.prompts[0].told_tools.forms[tool].begin;
  std::vector<TokenId> tokens = choice.prompt_tokens;
  for (const TokenId token : server_->model->tokenizer().Encode(WithoutSpaces(begin))) {
    tokens.push_back(token);
  }
  auto done = [self = shared_from_this(), tool](Result<TokenScores> scores) {
    const Status told = Guarded([&]() -> Status {
      self->ToolScored(tool, scores);
      return {};
    });
    if (!told.ok()) self->GiveUp(FailureError(told.error()));
  };
  Result<AsyncEngine::Id> id = AsyncEngine::Id{0};
  {
    // Locked, so that what follows the score does not set the id first.
    const std::lock_guard lock(mutex_);
    const ScoreOptions options = {.first = choice.prompt_tokens.size()};
    id = server_->engine->SubmitScore(std::move(tokens), options, group_, std::move(done),
                                      spec_.adapter);
    if (id.ok()) choice.id = *id;
  }
  if (!id.ok()) ToolScored(tool, id.error());
}

// On the engine's thread. A beginning without a score, one that no longer fits the context say, is
// not chosen.
void Call::ToolScored(size_t tool, const Result<TokenScores>& scores) {
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    if (scores.ok()) {
      tool_scores_[tool] = std::accumulate(scores->logprobs.begin(), scores->logprobs.end(), 0.0);
    } else if (tool == 0) {
      score_left_ = 1;  // nor do the others get one
    }
    last = --score_left_ == 0;
  }
  if (last) {
    server_->workers->Submit([self = shared_from_this()] { self->OnWorker(&Call::LaunchPicked); },
                             size_);
  } else if (tool == 0) {
    for (size_t other = 1; other < tool_scores_.size() && !gone_; ++other) ScoreTool(other);
  }
}

void Call::LaunchPicked() {
  const auto best = std::ranges::max_element(tool_scores_);
  if (!gone_ && *best > -std::numeric_limits<double>::infinity()) {
    RequestConstraints& asked = spec_.asked;
    const auto call = static_cast<size_t>(best - tool_scores_.begin());
    asked.choice.allowed = {plan_.calls[call].tool};
    asked.choice.as_one_of = true;
    Result<OutputPlan> plan = MakePlan(asked, server_->model->traits(), ThinkingStart::kOff);
    if (!plan.ok()) return Refuse(CompileError(plan.error()));
    plan_.grammar = std::move(plan->grammar);
    plan_.calls = std::move(plan->calls);
    try {
      const StopScope scope(&halt_);
      Result<Grammar> grammar = CompileOne();
      if (!grammar.ok()) return Refuse(CompileError(grammar.error()));
      grammars_.assign(1, *std::move(grammar));
    } catch (const Stopped&) {
      return;  // GiveUp has answered, or the client has gone
    }
    for (const auto& choice : choices_) choice->parser.emplace(plan_);
  }
  Launch();
}

}  // namespace pawl::server
