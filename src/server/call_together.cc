// Outputs of a call that come together. The first choice of each prompt hands the search in; when
// it has ended, each choice gets its output as if the engine had told its tokens one by one. So
// what parses and formats outputs is the same for all of them.
#include <algorithm>
#include <utility>

#include "src/server/call_choice.h"
#include "src/server/code_completion.h"
#include "src/server/json_writer.h"
#include "src/server/server_state.h"

namespace pawl::server {

namespace {

// Self-infilling of code, which the parser judges. Where no candidate lets the file parse it is the
// ordinary completion, under the monitors.
template <typename Found>
Result<AsyncEngine::Id> InfillCode(AsyncEngine& engine, CodeOutput& code, EngineRequest request,
                                   SearchOptions options, const Found& found) {
  SearchOptions plain = options;
  plain.strategy = "beam";
  plain.arguments.clear();
  plain.num_beams = 1;
  for (const auto& [name, value] : options.arguments) {
    if (name != "temperature" || value == 0) continue;
    plain.strategy = "cntp";
    plain.arguments = {{"max_trials", 1}, {name, value}};
  }
  options.checks.push_back(code.ParseCheck());
  EngineRequest monitored = request;
  monitored.constraint = code.ConstraintWith(request.constraint);
  const auto tell = [found](const std::string& strategy, int64_t calls, int64_t rows) {
    return [=](Result<SearchResult> result) {
      if (result.ok()) {
        result->model_calls += calls;
        result->model_rows += rows;
      }
      found(result, [&](const SearchResult& one) { return ResultOf(one, strategy); });
    };
  };
  return engine.SubmitSearch(
      request, std::move(options),
      [&engine, monitored = std::move(monitored), plain = std::move(plain),
       tell](Result<SearchResult> result) {
        if (!result.ok() || !result->outputs.empty()) {
          return tell("self-infill", 0, 0)(std::move(result));
        }
        const auto rest = tell(plain.strategy, result->model_calls, result->model_rows);
        SearchOptions what_is_left = plain;
        what_is_left.max_rows = std::max<int64_t>(1, plain.max_rows - result->model_rows);
        const Result<AsyncEngine::Id> id =
            engine.SubmitSearch(monitored, std::move(what_is_left), rest);
        if (!id.ok()) rest(id.error());
      });
}

// As EngineRequest::chat_json has it.
std::string ChatJsonOf(const PromptSpec& prompt) {
  JsonWriter json;
  json.Object().Key("messages").Raw(json::Dump(prompt.messages));
  if (prompt.arguments.type == json::Type::kObject) {
    json.Key("chat_template_kwargs").Raw(json::Dump(prompt.arguments));
  }
  return json.End().Take();
}

}  // namespace

// Of the parts of a prompt the engine makes the other prompt of a contrast as well.
Status Call::TakeParts(const PromptSpec& prompt, EngineRequest& request) const {
  const bool extracts = prompt.kind == PromptSpec::Kind::kExtract;
  if (!extracts && prompt.kind != PromptSpec::Kind::kChat) return {};
  const auto wrong = [](const char* message) {
    return Error{ErrorCode::kUnsupported, message, "contrast_prompt"};
  };
  request.tokens.clear();
  request.now = LocalTime();
  if (extracts) {
    request.extract.emplace(ExtractInput{.schema = prompt.schema,
                                         .text = prompt.text,
                                         .instruction = prompt.instruction,
                                         .examples = prompt.examples,
                                         .view = prompt.view,
                                         .record = prompt.record,
                                         .problem = prompt.problem});
    request.thinking = prompt.thinking;
    return {};
  }
  if (prompt.tools.type != json::Type::kNull || !prompt.told_tools.empty()) {
    return wrong("cannot be used with tools");
  }
  if (!server_->model->has_chat()) return wrong("needs a model with a chat template");
  request.chat_json = ChatJsonOf(prompt);
  request.thinking = spec_.thinking;
  return {};
}

void Call::SubmitTogether(Choice& choice, std::shared_ptr<const Constraint> constraint,
                          const std::optional<Grammar>& grammar) {
  EngineRequest request;
  request.tokens = choice.prompt_tokens;
  request.group = group_;
  request.lora = server_->model->LoraOf(spec_.adapter);
  const PromptSpec& prompt = spec_.prompts[choice.prompt];
  if (spec_.together.search && spec_.together.search->contrast_prompt) {
    if (Status status = TakeParts(prompt, request); !status.ok()) {
      return Found(choice, status.error());
    }
  }
  const auto self = shared_from_this();
  // What an exception leaves undone ends the call.
  const auto found = [self, &choice](const auto& result, const auto& made) {
    const Status told = Guarded([&]() -> Status {
      if (!result.ok()) {
        self->Found(choice, result.error());
      } else {
        self->Found(choice, made(*result));
      }
      return {};
    });
    if (!told.ok()) self->GiveUp(FailureError(told.error()));
  };
  Result<AsyncEngine::Id> id = AsyncEngine::Id{0};
  AsyncEngine& engine = *server_->engine;
  const TogetherSpec& spec = spec_.together;
  if (spec.sampler && spec_.code && spec_.code->use_monitors) {
    return Found(
        choice,
        Error{ErrorCode::kUnsupported,
              "does not follow the monitors of code; \"monitors\": false is without", "sampler"});
  }
  std::vector<std::shared_ptr<const Check>> checks;
  std::shared_ptr<const Critic> critic;
  const auto& vocabulary = server_->model->loaded().vocabulary();
  if (Status made = AddChecks(spec.checks, vocabulary, 1, checks, critic); !made.ok()) {
    // A file that the client has named.
    Error wrong = made.error();
    if (wrong.code == ErrorCode::kIo) wrong.code = ErrorCode::kInvalid;
    return Found(choice, std::move(wrong));
  }
  if (spec.classify) {
    id = engine.SubmitClassify(request, *spec.classify, [=](Result<ClassifyResult> result) {
      found(result, [&](const ClassifyResult& choices) {
        const auto best =
            std::ranges::max_element(choices.choices, {}, &ChoiceProbability::log_probability);
        return ResultOf(choices, self->server_->model->tokenizer().Encode(best->text, {}));
      });
    });
  } else {
    choice.records = ForLoop(constraint, *server_->model->vocabulary());
    if (spec.self_infills() && grammar) {
      request.grammar = grammar;
    } else {
      request.constraint = std::move(constraint);
    }
    if (spec.search) {
      const std::string strategy = spec.search->strategy;
      SearchOptions options = *spec.search;
      options.checks = std::move(checks);
      options.critic = std::move(critic);
      if (choice.code != nullptr) {
        options.max_tokens += choice.code->more_tokens();
        if (!grammar) request.options.at_budget = AtBudget::kCut;
      }
      if (choice.code != nullptr && spec.self_infills()) {
        id = InfillCode(engine, *choice.code, std::move(request), std::move(options), found);
      } else {
        id = engine.SubmitSearch(request, std::move(options), [=](Result<SearchResult> result) {
          found(result, [&](const SearchResult& one) { return ResultOf(one, strategy); });
        });
      }
    } else {
      SamplerOptions options = *spec.sampler;
      options.checks = std::move(checks);
      options.critic = std::move(critic);
      if (choice.code != nullptr) options.max_tokens += choice.code->more_tokens();
      id = engine.SubmitSampler(
          request, std::move(options), nullptr, [=](Result<SamplerResult> result) {
            found(result, [](const SamplerResult& one) { return ResultOf(one); });
          });
    }
  }
  if (!id.ok()) return Found(choice, id.error());
  Submitted(choice, id);
}

// Where the search has fewer outputs than were asked for, the other choices are absent. Where it
// has none the request has failed.
void Call::Found(Choice& first, Result<TogetherResult> found) {
  if (found.ok() && !found->why_none.empty()) {
    found = Error{ErrorCode::kLimit, found->why_none, "found"};
  }
  const auto index = static_cast<size_t>(first.index);
  const auto n = static_cast<size_t>(spec_.n);
  if (found.ok()) {
    const std::lock_guard lock(mutex_);
    const TogetherSpec& spec = spec_.together;
    out_.together = spec.search ? "search" : spec.sampler ? "sampler" : "classify";
    out_.together_reports.resize(spec_.prompts.size());
    out_.together_reports[first.prompt] = found->report;
    for (size_t i = found->outputs.size(); i < n; ++i) choices_[index + i]->absent = true;
  }
  for (size_t i = 0; i < n; ++i) {
    Choice& choice = *choices_[index + i];
    if (!found.ok()) {
      Done(choice, CopyOf(found.error()));
      continue;
    }
    Generation output;
    if (i < found->outputs.size()) {
      choice.records = first.records;
      output = OutputOf(choice, std::move(found->outputs[i]));
    } else {
      output.stats.prompt_tokens = static_cast<int>(choice.prompt_tokens.size());
    }
    if (i == 0 && found->outputs.size() < n) {
      output.notes.insert(output.notes.begin(), "of " + std::to_string(n) + " outputs " +
                                                    std::to_string(found->outputs.size()) +
                                                    " were found");
    }
    Done(choice, std::move(output));
  }
}

// As the engine would have told it.
Generation Call::OutputOf(Choice& choice, TogetherOutput found) {
  Generation output;
  Fill(choice, found);
  output.stop = found.stop;
  if (!found.note.empty()) output.notes.push_back(std::move(found.note));
  output.stats.prompt_tokens = static_cast<int>(choice.prompt_tokens.size());
  output.stats.output_tokens = static_cast<int>(found.tokens.size());
  output.tokens = std::move(found.tokens);
  output.text = choice.text;
  return output;
}

void Call::Fill(Choice& choice, const TogetherOutput& output) {
  const Vocabulary& vocabulary = *server_->model->vocabulary();
  const std::unique_ptr<RecordFilter> filter =
      choice.records == nullptr ? nullptr : choice.records->NewRecordFilter();
  for (const TokenId token : output.tokens) {
    const bool special = vocabulary.is_special(token);
    std::string_view bytes =
        TextOf(choice, token, special ? std::string_view() : vocabulary.bytes(token));
    const std::string record = filter == nullptr ? std::string() : filter->Feed(bytes);
    if (filter != nullptr) bytes = record;
    const std::lock_guard lock(mutex_);
    choice.text += bytes;
    choice.lengths.push_back(static_cast<uint32_t>(bytes.size()));
    if (spec_.want_tokens) {
      TokenEntry& entry = choice.entries.emplace_back();
      entry.token = token;
      entry.bytes = bytes;
    }
    // Code ends with its statement.
    if (choice.code != nullptr && !choice.code_goes_on) break;
  }
  if (filter == nullptr) return;
  const std::lock_guard lock(mutex_);
  const std::string rest = filter->Finish();
  choice.text += rest;
  if (!choice.lengths.empty()) choice.lengths.back() += static_cast<uint32_t>(rest.size());
}

// Of choices that come together: whether none has come yet. Those that never will count as ended.
bool Call::MarkAbsent() {
  if (!spec_.together.any()) return false;
  const std::lock_guard lock(mutex_);
  bool waits = !failure_;
  for (const auto& choice : choices_) {
    waits = waits && !choice->done;
    ChoiceOut& out = out_.choices[static_cast<size_t>(choice->index)];
    if (choice->absent) out.absent = out.ended = true;
  }
  return waits;
}

// Of best_of outputs those with the highest mean log-probability, the best one first. The tokens of
// the others count all the same. Absent choices go.
void Call::KeepBest() {
  MarkAbsent();
  out_.fewer = std::erase_if(out_.choices, [](const ChoiceOut& one) { return one.absent; }) > 0;
  const auto draws = static_cast<size_t>(spec_.draws()), n = static_cast<size_t>(spec_.n);
  if (!spec_.ranks()) return;
  const auto mean = [](const ChoiceOut& choice) {
    double sum = 0;
    size_t count = 0;
    for (const TokenEntry& entry : choice.tokens) {
      if (entry.in_prompt) continue;
      sum += double{entry.logprob};
      ++count;
    }
    return sum / static_cast<double>(std::max<size_t>(1, count));
  };
  std::vector<ChoiceOut> kept;
  for (size_t begin = 0; begin < out_.choices.size(); begin += draws) {
    const auto first = out_.choices.begin() + static_cast<ptrdiff_t>(begin);
    std::ranges::stable_sort(first, first + static_cast<ptrdiff_t>(draws), std::ranges::greater(),
                             mean);
    for (size_t i = 0; i < n; ++i) {
      kept.push_back(std::move(first[static_cast<ptrdiff_t>(i)]));
      kept.back().index = static_cast<int>(kept.size()) - 1;
    }
  }
  out_.choices = std::move(kept);
}

}  // namespace pawl::server
