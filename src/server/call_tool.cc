// Which tool is called, and how, where the model has learned no form of calls.
//
// Token by token the first token of a name decides. A model that does not know the form then takes
// a beginning that many names share, such as `get_`, whatever the request says. The probability of
// the whole beginning of a call tells tools apart much better (bench/tools/). Some names are
// probable behind any request. So the same beginnings are scored behind a baseline, the prompt with
// "(none)" in place of the request, and the tool is taken that the request makes more probable by
// the largest factor (pointwise mutual information, arXiv 2104.08315); above temperature 0 it is
// drawn, the logarithm of the factor standing for the logit. This is done where one call is
// required. The first score puts the list of tools into the cache; the others run together. A list
// of one tool is not scored.
//
// At temperature 0 the call of this tool is then the better one of two beams: one wrong token at
// the beginning of a value is what small models often do, and what follows shows it. Arguments that
// the request has are preferred, and so are the keys that it names (src/engine/tool_copies.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "src/base/failure.h"
#include "src/base/random.h"
#include "src/base/stop_scope.h"
#include "src/decode/text_preference.h"
#include "src/engine/copied_text.h"
#include "src/engine/message_source.h"
#include "src/engine/tool_copies.h"
#include "src/server/call_choice.h"
#include "src/server/server_state.h"

namespace pawl::server {

namespace {

constexpr const char* kNoRequest = "(none)";
constexpr int kBeams = 2;
// Beginnings with more tokens together would keep other requests waiting for seconds; then the call
// is written token by token. Some twenty tools.
constexpr size_t kMostScored = 256;
constexpr const char* kNotScored =
    "the list of tools is long, and the model has learned no form of calls: the tool is chosen by "
    "the first tokens of its name";
// Chosen on bench/tools/dev_requests.json.
constexpr PreferenceNats kPreferRequest = {.begin = 6, .inside = 10};
constexpr float kPreferKeys = 3;
constexpr double kHasPattern = 4, kLacksNeeded = -4;
// Where the noise of the tool's draw stands: no token of an output has this position.
constexpr uint64_t kToolPosition = std::numeric_limits<uint64_t>::max();
// Plain sums of log-probabilities would take an empty text for a long one, and means take what
// repeats itself.
constexpr double kLengthPenalty = 0.5;

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
  return one && !forms.empty() && asked.choice.mode == ToolChoice::Mode::kRequired &&
         (forms.size() == 1 ||
          ((spec_.options.sampling.temperature == 0 || spec_.draws() == 1) &&
           std::ranges::none_of(forms, [](const ToolForm& form) { return form.begin.empty(); })));
}

void Call::PickTool() {
  const size_t tools = plan_.calls.size();
  if (tools == 1) {
    PreferRequest();
    beams_ = MayTakeBeams();
    return Launch();
  }
  size_t scored = 0;
  for (const ToolForm& form : spec_.prompts[0].told_tools.forms) {
    scored += server_->model->tokenizer().Encode(WithoutSpaces(form.begin)).size();
  }
  if (scored > kMostScored) {
    out_.notes.emplace_back(kNotScored);
    if (spec_.prompts[0].prefer_text) out_.ignored.emplace_back("/prefer_text");
    return Launch();
  }
  PrepareBaseline();
  tool_scores_.assign(baseline_.empty() ? tools : 2 * tools,
                      -std::numeric_limits<double>::infinity());
  score_left_ = static_cast<int>(tool_scores_.size());
  ScoreTool(0);
}

// A template may refuse it; then scores are not compared with it.
void Call::PrepareBaseline() {
  PromptSpec other = spec_.prompts[0];
  const auto is_user = [](const json::Value& message) {
    const json::Value* const role = message.Find("role");
    return role != nullptr && role->text == "user";
  };
  const auto last =
      std::find_if(other.messages.items.rbegin(), other.messages.items.rend(), is_user);
  if (last == other.messages.items.rend()) return;
  for (json::Member& member : last->members) {
    if (member.first == "content") {
      member.second = json::Value{json::Type::kString, kNoRequest, {}, {}};
    }
  }
  Result<PreparedPrompt> prompt = PrepareOne(other);
  if (prompt.ok()) baseline_ = std::move(prompt->tokens);
}

// The beginning of a call behind the prompt, or, from the number of tools on, behind the baseline.
void Call::ScoreTool(size_t at) {
  Choice& choice = *choices_[0];
  const size_t tools = plan_.calls.size();
  const std::string& begin = spec_.prompts[0].told_tools.forms[at % tools].begin;
  std::vector<TokenId> tokens = at < tools ? choice.prompt_tokens : baseline_;
  const ScoreOptions options = {.first = tokens.size()};
  for (const TokenId token : server_->model->tokenizer().Encode(WithoutSpaces(begin))) {
    tokens.push_back(token);
  }
  auto done = [self = shared_from_this(), at](Result<TokenScores> scores) {
    const Status told = Guarded([&]() -> Status {
      self->ToolScored(at, scores);
      return {};
    });
    if (!told.ok()) self->GiveUp(FailureError(told.error()));
  };
  Result<AsyncEngine::Id> id = AsyncEngine::Id{0};
  {
    // Locked, so that what follows the score does not set the id first.
    const std::lock_guard lock(mutex_);
    id = server_->engine->SubmitScore(std::move(tokens), options, group_, std::move(done),
                                      spec_.adapter);
    if (id.ok()) choice.id = *id;
  }
  if (!id.ok()) ToolScored(at, id.error());
}

// On the engine's thread. A beginning without a score, one that no longer fits the context say, is
// not chosen.
void Call::ToolScored(size_t at, const Result<TokenScores>& scores) {
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    if (scores.ok()) {
      tool_scores_[at] = std::accumulate(scores->logprobs.begin(), scores->logprobs.end(), 0.0);
    } else if (at == 0) {
      score_left_ = 1;  // nor do the others get one
    }
    last = --score_left_ == 0;
  }
  if (last) {
    server_->workers->Submit([self = shared_from_this()] { self->OnWorker(&Call::LaunchPicked); },
                             size_);
  } else if (at == 0) {
    for (size_t other = 1; other < tool_scores_.size() && !gone_; ++other) ScoreTool(other);
  }
}

void Call::LaunchPicked() {
  const size_t tools = plan_.calls.size();
  for (size_t other = tools; other < tool_scores_.size(); ++other) {
    if (std::isfinite(tool_scores_[other])) tool_scores_[other - tools] -= tool_scores_[other];
  }
  tool_scores_.resize(tools);
  for (size_t call = 0; call < tools && !gone_; ++call) tool_scores_[call] += EvidenceFor(call);
  if (const SamplingParams& sampling = spec_.options.sampling; sampling.temperature > 0) {
    for (size_t call = 0; call < tools; ++call) {
      tool_scores_[call] = tool_scores_[call] / static_cast<double>(sampling.temperature) +
                           static_cast<double>(GumbelAt(sampling.seed, kToolPosition, call));
    }
  }
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
    PreferRequest();
    beams_ = MayTakeBeams();
  }
  Launch();
}

// A span of the request that fits the pattern of an argument is hardly there by chance, and an
// argument that is needed and has none makes the tool unlikely.
double Call::EvidenceFor(size_t call) {
  const ToolSpec& tool = spec_.asked.tools[plan_.calls[call].tool];
  const PromptSpec& prompt = spec_.prompts[0];
  const Result<json::Value> schema = json::Parse(tool.input.text);
  if (tool.input.kind != ConstraintSpec::Kind::kJsonSchema || !schema.ok() ||
      prompt.prefer_text == 0.0)
    return 0;
  const json::Value* const properties = schema->Find("properties");
  const json::Value* const required = schema->Find("required");
  if (properties == nullptr || required == nullptr) return 0;
  const std::string text =
      CopiedText(server_->model->tokenizer(), SourceOfMessages(prompt.messages)).text();
  LayoutSpec layout = spec_.asked.layout;
  layout.source.clear();
  layout.bind_source = true;
  layout.verbatim = JsonSchemaOptions::Verbatim::kAll;
  double sum = 0;
  for (const json::Value& name : required->items) {
    const json::Value* const property = properties->Find(name.text);
    if (property == nullptr || property->Find("enum") != nullptr) continue;
    const bool pattern = property->Find("pattern") != nullptr;
    const json::Value* const type = property->Find("type");
    const bool number = type != nullptr && (type->text == "integer" || type->text == "number");
    if (!pattern && !number) continue;
    ConstraintSpec alone;
    alone.kind = ConstraintSpec::Kind::kJsonSchema;
    alone.text = json::Dump(*property);
    bool known = false;
    const Result<Grammar> grammar = server_->grammars->Get(alone, layout, known, NewStop());
    if (!grammar.ok()) continue;
    const bool found = grammar->Bind(text).ok();
    sum += !found ? kLacksNeeded : pattern ? kHasPattern : 0;
  }
  return sum;
}

// REQUIRES: plan_ has the tool alone.
void Call::PreferRequest() {
  const PromptSpec& prompt = spec_.prompts[0];
  if (prompt.prefer_text == 0.0) return;
  const std::string text = SourceOfMessages(prompt.messages);
  RequestConstraints asked = spec_.asked;
  ToolSpec& tool = asked.tools[plan_.calls[0].tool];
  if (tool.input.kind != ConstraintSpec::Kind::kJsonSchema) return;
  const std::optional<std::string> schema = SchemaAsRequested(tool.input.text, text);
  if (!schema || !asked.layout.source.empty()) return;
  tool.input.text = *schema;
  asked.layout.verbatim = JsonSchemaOptions::Verbatim::kAll;
  const Result<OutputPlan> plan = MakePlan(asked, server_->model->traits(), ThinkingStart::kOff);
  if (!plan.ok()) return;
  bool known = false;
  const Result<Grammar> grammar =
      server_->grammars->Get(plan->grammar, asked.layout, known, NewStop());
  if (!grammar.ok()) return;
  copied_.text = CopiedText(server_->model->tokenizer(), text).text();
  Result<Grammar> bound = grammar->Bind(copied_.text);
  if (bound.ok()) copied_.grammar = *std::move(bound);
}

std::shared_ptr<const Constraint> Call::WithRequestPreferred(
    std::shared_ptr<const Constraint> constraint) const {
  TextPreference preference = {.nats = kPreferRequest,
                               .by_field = {},
                               .keys = kPreferKeys,
                               .encode = server_->model->loaded().encoder(),
                               .text = copied_.text};
  if (spec_.prompts[0].prefer_text) {
    const auto nats = static_cast<float>(*spec_.prompts[0].prefer_text);
    preference.nats = {nats, std::max(nats, kPreferRequest.inside)};
    preference.keys = nats;
  }
  return PreferText(std::move(constraint), *copied_.grammar, std::move(preference));
}

// Nothing is asked for that a search does not do.
bool Call::MayTakeBeams() const {
  const GenerateOptions& options = spec_.options;
  SamplingParams greedy;
  greedy.seed = options.sampling.seed;
  greedy.draft_lanes = options.sampling.draft_lanes;
  const SamplingParams& asked = options.sampling;
  return asked.temperature == 0 && choices_.size() == 1 && spec_.stop.empty() &&
         !spec_.want_tokens && !spec_.echo && options.logit_bias.empty() && options.logprobs < 0 &&
         !options.mask_surprise && !options.details &&
         asked.repetition_penalty == greedy.repetition_penalty && asked.presence_penalty == 0 &&
         asked.frequency_penalty == 0 && asked.stages == SamplerStages();
}

void Call::SubmitBeams(Choice& choice, std::shared_ptr<const Constraint> constraint) {
  beams_begin_ = seconds();
  EngineRequest request;
  request.tokens = choice.prompt_tokens;
  request.group = group_;
  request.lora = server_->model->LoraOf(spec_.adapter);
  choice.records = ForLoop(constraint, *server_->model->vocabulary());
  request.constraint = std::move(constraint);
  request.options.at_budget = spec_.options.at_budget;
  SearchOptions options;
  options.num_beams = kBeams;
  options.length_penalty = kLengthPenalty;
  options.max_tokens = spec_.options.max_tokens;
  options.skip_forced = spec_.options.skip_forced;
  options.max_rows = server_->options.search_rows;
  options.max_nodes = std::min(options.max_nodes, server_->options.search_nodes);
  const Result<AsyncEngine::Id> id = server_->engine->SubmitSearch(
      request, std::move(options),
      [self = shared_from_this(), &choice](Result<SearchResult> found) {
        const Status told = Guarded([&]() -> Status {
          self->BeamsFound(choice, found);
          return {};
        });
        if (!told.ok()) self->GiveUp(FailureError(told.error()));
      });
  if (!id.ok()) return BeamsFound(choice, id.error());
  Submitted(choice, id);
}

// Where the search cannot run, or has come to its limit, the call is written token by token.
void Call::BeamsFound(Choice& choice, const Result<SearchResult>& found) {
  if (found.ok() && !found->outputs.empty() && found->at_limit.empty()) {
    Generation output = OutputOf(choice, std::move(ResultOf(*found, "beam").outputs.front()));
    output.stats.sampled_tokens = output.stats.output_tokens;
    output.stats.forward_calls = static_cast<int>(found->model_calls);
    output.stats.decode_seconds = seconds() - beams_begin_;
    return Done(choice, std::move(output));
  }
  beams_ = false;
  Begin(choice);
}

}  // namespace pawl::server
