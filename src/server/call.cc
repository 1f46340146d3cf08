// Three threads meet here. A worker prepares; the engine's thread appends tokens to a choice under
// the lock, which is held for a few instructions; the connection's thread takes what is there when
// its client can take more, and does all the parsing and formatting. A reply as a whole is the same
// taking, done once at the end, so that a stream and a whole reply cannot differ.
//
// Stop strings are the engine's (AsyncEngine). Where one may have begun at the end of the text,
// these bytes are not handed out yet.
#include "src/server/call.h"

#include <algorithm>
#include <random>
#include <utility>

#include "src/base/failure.h"
#include "src/base/json.h"
#include "src/base/os/random.h"
#include "src/base/stop_scope.h"
#include "src/decode/sampler_stages.h"
#include "src/engine/copied_text.h"
#include "src/engine/message_source.h"
#include "src/server/call_choice.h"
#include "src/server/json_writer.h"
#include "src/server/server_state.h"

namespace pawl::server {
namespace {

std::string RandomName(size_t length) {
  static constexpr char kLetters[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  thread_local std::mt19937_64 random{os::RandomSeed()};
  std::string name;
  for (size_t i = 0; i < length; ++i) name += kLetters[random() % (sizeof kLetters - 1)];
  return name;
}

ApiError Gone(const char* message) { return {.status = 503, .message = message}; }

}  // namespace

Call::Call(std::shared_ptr<ServerState> server, std::shared_ptr<Exchange> exchange, CallSpec spec,
           std::unique_ptr<Formatter> formatter)
    : server_(std::move(server)),
      group_(++server_->last_group),
      exchange_(std::move(exchange)),
      spec_(std::move(spec)),
      formatter_(std::move(formatter)),
      begin_(exchange_->request().received),
      size_(WorkSizeOf(exchange_->request().body.size())) {
  out_.id = RandomName(24);
  out_.created = std::chrono::duration_cast<std::chrono::seconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count();
  out_.model = server_->model->NameOf(spec_.adapter);
  out_.ignored = spec_.ignored;
  const SamplingParams& sampling = spec_.options.sampling;
  if (!spec_.together.any() && !(sampling.stages == SamplerStages()))
    out_.samplers = OrderOf(sampling);
  if (!spec_.ranks()) return;
  // The best ones are chosen by the probabilities of their tokens.
  spec_.want_tokens = true;
  spec_.options.logprobs = std::max(0, spec_.options.logprobs);
}

Call::~Call() {
  {
    const std::lock_guard lock(server_->mutex);
    server_->live.erase(this);
  }
  if (counted_) --server_->calls;
}

double Call::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Call::Start(std::shared_ptr<ServerState> server, std::shared_ptr<Exchange> exchange,
                 CallSpec spec, std::unique_ptr<Formatter> formatter) {
  std::shared_ptr<Call> call(
      new Call(server, std::move(exchange), std::move(spec), std::move(formatter)));
  {
    // Not earlier: others ask it for a pointer to itself.
    const std::lock_guard lock(server->mutex);
    server->live.insert(call.get());
  }
  if (server->draining) {
    ApiError error = Gone("the server is shutting down");
    error.retry_seconds = 1;
    return call->Refuse(error);
  }
  const int most = server->options.max_queue + server->options.max_batch;
  if (server->calls.fetch_add(1) >= most) {
    --server->calls;
    ++server->metrics.refused_full;
    return call->Refuse(
        {.status = 429,
         .message = "the queue is full: " + std::to_string(most) + " requests wait or run",
         .retry_seconds = 1});
  }
  call->counted_ = true;
  call->exchange_->OnGone([weak = call->weak_from_this()] {
    if (const auto alive = weak.lock()) {
      ++alive->server_->metrics.cancelled;
      if (alive->GiveUp(std::nullopt)) alive->Log(499);
    }
  });
  server->workers->Submit([call] { call->OnWorker(&Call::Prepare); }, call->size_);
}

void Call::Refuse(const ApiError& error) noexcept {
  if (answered_.exchange(true)) return;
  try {
    if (!gone_) exchange_->Reply(formatter_->Refuse(error));
  } catch (...) {
    Abandon();
  }
  Log(error.status);
}

void Call::Abandon() noexcept {
  gone_ = true;
  exchange_->Abort();
}

void Call::OnWorker(void (Call::*part)()) noexcept {
  const Status ran = Guarded([&]() -> Status {
    (this->*part)();
    return {};
  });
  if (!ran.ok()) GiveUp(FailureError(ran.error()));
}

bool Call::GiveUp(const std::optional<ApiError>& error) noexcept {
  bool wake = false;
  halt_ = true;
  {
    const std::lock_guard lock(mutex_);
    if (gone_ && !error) return false;
    if (failure_) return false;
    if (error) {
      try {
        failure_ = error;
      } catch (...) {
        failure_ = FailureError(CurrentFailure());
      }
    } else {
      gone_ = true;
    }
    for (const auto& choice : choices_) {
      if (choice->id != 0 && !choice->done) server_->engine->Cancel(choice->id);
    }
    wake = launched_;
    if (stop_ != nullptr) stop_->Stop();
  }
  if (!error) return true;
  if (!wake) {
    Refuse(*error);  // nothing runs yet that would answer
  } else if (spec_.stream) {
    try {
      exchange_->Wake();
    } catch (...) {
      Abandon();
    }
  }
  return true;
}

// ---- On a worker ----

void Call::Prepare() {
  if (gone_) return;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return Refuse(*failure_);
  }
  out_.queue_seconds = seconds();
  server_->Begins("prepare", exchange_->request());
  try {
    PrepareChoices();
  } catch (const Stopped&) {
    // GiveUp has answered, or the client has gone.
  }
}

Result<PreparedPrompt> Call::PrepareOne(const PromptSpec& prompt) {
  const StopScope scope(&halt_);
  StopScope::Check();
  return server_->model->Prepare(prompt);
}

void Call::PrepareChoices() {
  if (const std::optional<ApiError> error = WriteExamples()) return Refuse(*error);
  const int context = server_->model->info().context_length;
  ThinkingStart thinking = ThinkingStart::kOff;
  std::vector<std::unique_ptr<Choice>> choices;
  if (const std::optional<ApiError> error = PlanTools()) return Refuse(*error);
  for (size_t p = 0; p < spec_.prompts.size(); ++p) {
    std::optional<CodePlan> plan;
    std::optional<Error> error;
    PromptSpec asked = spec_.prompts[p];
    if (spec_.code) {
      Result<CodePlan> made = server_->code->Plan(*spec_.code, asked.text, asked.suffix);
      if (!made.ok()) return Refuse(FromError(made.error(), ""));
      plan = *std::move(made);
      asked.text = plan->prefix();
    }
    Result<PreparedPrompt> prompt = PrepareOne(asked);
    if (!prompt.ok()) {
      error = prompt.error();
    } else if (prompt->tokens.empty()) {
      error = Error{ErrorCode::kInvalid, "has no tokens", spec_.prompts[p].pointer};
    } else if (!spec_.prompt_only &&
               static_cast<int>(prompt->tokens.size()) + (spec_.echo || spec_.embeds ? 0 : 1) >
                   context) {
      error = Error{ErrorCode::kLimit,
                    "has " + std::to_string(prompt->tokens.size()) +
                        " tokens, but the model's context holds " + std::to_string(context) +
                        " with the output",
                    spec_.prompts[p].pointer};
    }
    if (error && !spec_.one_by_one) {
      ApiError refusal = FromError(*error, "");
      if (error->code == ErrorCode::kLimit) refusal.code = "context_length_exceeded";
      return Refuse(refusal);
    }
    for (int i = 0; i < spec_.draws(); ++i) {
      auto choice = std::make_unique<Choice>();
      choice->index = static_cast<int>(choices.size());
      choice->prompt = p;
      if (error) choice->refused = OfText(*error);
      if (prompt.ok()) choice->prompt_tokens = prompt->tokens;
      if (plan) choice->code = plan->NewOutput();
      choices.push_back(std::move(choice));
    }
    if (prompt.ok()) thinking = prompt->thinking;
    if (prompt.ok() && p == 0 && !prompt->note.empty()) out_.notes.push_back(prompt->note);
  }
  if (spec_.prompt_only) return ShowPrompts(choices);
  const std::optional<ApiError> error = CompilePlan(thinking);
  if (gone_) return;
  if (error) return Refuse(*error);
  for (auto& choice : choices) choice->parser.emplace(plan_);
  out_.choices.resize(choices.size());
  for (size_t i = 0; i < choices.size(); ++i) out_.choices[i].index = static_cast<int>(i);
  {
    // From here on others look at them: GiveUp, and the threads that answer.
    const std::lock_guard lock(mutex_);
    left_ = choices.size();
    choices_ = std::move(choices);
  }
  if (spec_.echo && (spec_.options.logprobs >= 0)) return ScorePrompts();
  if (PicksTool()) return PickTool();
  Launch();
}

// What may throw comes before `launched_`: from there on the outputs answer, and each one ends.
void Call::Launch() {
  // A long list of texts does not take the queue from everybody else.
  const size_t window = spec_.one_by_one || spec_.embeds
                            ? static_cast<size_t>(2 * server_->options.max_batch)
                            : choices_.size();
  std::vector<Choice*> first;
  first.reserve(std::min(choices_.size(), window));
  for (size_t i = 0; i < std::min(choices_.size(), window); ++i) first.push_back(choices_[i].get());
  HttpReply head;
  Exchange::Pull pull;
  if (spec_.stream) {
    head.content_type = formatter_->StreamType();
    if (spec_.asked.answer.deprecated) head.headers.emplace_back("deprecation", "true");
    pull = [self = shared_from_this()](std::string& text) { return self->PullOrFail(text); };
  }
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return;
    if (failure_) return Refuse(*failure_);
    launched_ = true;
    added_ = first.size();
  }
  if (spec_.stream) {
    answered_ = true;
    try {
      exchange_->Stream(std::move(head), std::move(pull));
    } catch (...) {
      return Abandon();
    }
  }
  for (Choice* choice : first) Begin(*choice);
}

void Call::Begin(Choice& choice) noexcept {
  const Status added = Guarded([&]() -> Status {
    Submit(choice);
    return {};
  });
  if (!added.ok()) Done(choice, CopyOf(added.error()));
}

void Call::Submit(Choice& choice) {
  if (choice.refused) return Done(choice, *choice.refused);
  if (spec_.embeds) return SubmitEmbedding(choice);
  if (spec_.prompts[choice.prompt].document) return SubmitDocument(choice);
  // The first one of a prompt stands for all of them.
  if (spec_.together.any() && choice.index % spec_.n != 0) return;
  BatchRequest request;
  request.prompt = choice.prompt_tokens;
  std::optional<Grammar> bound;
  if (!grammars_.empty()) {
    // What a text needs goes with its output.
    Result<Grammar> made = BoundFor(choice);
    if (!made.ok()) {
      choice.refused = made.error();
      return Done(choice, made.error());
    }
    bound = *std::move(made);
    request.constraint = ConstraintOf(choice, *bound);
  }
  const int room =
      server_->model->info().context_length - static_cast<int>(choice.prompt_tokens.size());
  auto constraint =
      WithThoughts(server_->model->loaded(), thoughts_, std::move(request.constraint),
                   std::min(spec_.options.max_tokens, room), !grammars_.empty(), &choice.note);
  if (!constraint.ok()) return Done(choice, constraint.error());
  request.constraint = *std::move(constraint);
  if (choice.code != nullptr && !spec_.together.self_infills() && !spec_.together.sampler) {
    request.constraint = choice.code->ConstraintWith(std::move(request.constraint));
  }
  if (spec_.together.any()) return SubmitTogether(choice, std::move(request.constraint), bound);
  if (beams_) return SubmitBeams(choice, std::move(request.constraint));
  request.options = spec_.options;
  if (choice.code != nullptr) {
    // Under a grammar it is closed, which also finds ways out where the two leave no token.
    if (grammars_.empty()) request.options.at_budget = AtBudget::kCut;
    request.options.max_tokens += choice.code->more_tokens();
  }
  request.options.sampling.seed += static_cast<uint64_t>(choice.index % std::max(1, spec_.draws()));
  const auto self = shared_from_this();
  if (spec_.echo && spec_.options.max_tokens == 0) {
    Generation nothing;
    nothing.stop = StopReason::kLength;
    nothing.stats.prompt_tokens = static_cast<int>(request.prompt.size());
    return Done(choice, std::move(nothing));
  }
  request.group = group_;
  UseAdapter(server_->model->loaded(), spec_.adapter, request);
  Delivery delivery;
  delivery.details = DetailsOf(choice, bound);
  delivery.stops = spec_.stop;
  delivery.include_stop = spec_.include_stop;
  delivery.reports = spec_.want_tokens || spec_.options.mask_surprise;
  delivery.text_of = [self, &choice](TokenId token, std::string_view bytes) {
    return self->TextOf(choice, token, bytes);
  };
  delivery.on_token = [self, &choice](const OutputToken& token) {
    return self->Told(choice, token);
  };
  delivery.done = [self, &choice](Result<Generation> output) {
    self->Done(choice, std::move(output));
  };
  const Result<AsyncEngine::Id> id =
      server_->engine->Submit(std::move(request), std::move(delivery));
  Submitted(choice, id);
}

void Call::Submitted(Choice& choice, const Result<AsyncEngine::Id>& id) {
  if (!id.ok()) return Done(choice, id.error());
  bool cancel = false;
  {
    const std::lock_guard lock(mutex_);
    choice.id = *id;
    cancel = gone_ || failure_.has_value();
  }
  if (cancel) server_->engine->Cancel(*id);
}

// ---- On the engine's thread ----

bool Call::Told(Choice& choice, const OutputToken& token) {
  if (first_token_ == 0) {
    first_token_ = seconds();
    server_->metrics.first_token.Observe(first_token_);
  }
  const bool goes_on = token.stop.empty() && choice.code_goes_on;
  {
    const std::lock_guard lock(mutex_);
    if (gone_ || failure_) return false;
    choice.text += token.bytes;
    if (spec_.want_tokens) {
      TokenEntry entry;
      entry.token = token.token;
      entry.bytes = token.bytes;
      if (const TokenReport* const report = token.report) {
        entry.source = report->source;
        entry.allowed = report->allowed;
        entry.logprob = report->logprob;
        entry.surprise = report->surprise;
        entry.top.assign(report->top.begin(), report->top.end());
      }
      choice.entries.push_back(std::move(entry));
    }
    choice.lengths.push_back(static_cast<uint32_t>(token.bytes.size()));
    if (!token.stop.empty()) {
      choice.stop_string = token.stop;
      choice.stopped = true;
    }
    choice.text.resize(token.size);
    choice.safe = token.safe;
  }
  if (spec_.stream && goes_on) exchange_->Wake();
  return goes_on;
}

void Call::Done(Choice& choice, Result<Generation> output) noexcept {
  bool last = false;
  Choice* next = nullptr;
  if (output.ok()) {
    const GenerationStats& stats = output->stats;
    Metrics& metrics = server_->metrics;
    metrics.prompt_tokens += stats.prompt_tokens;
    metrics.reused_tokens += stats.reused_tokens;
    metrics.output_tokens += stats.output_tokens;
    metrics.sampled_tokens += stats.sampled_tokens;
    metrics.forced_tokens += stats.forced_tokens;
    metrics.closing_tokens += stats.closing_tokens;
    metrics.mask_micros += static_cast<int64_t>(stats.constraint_seconds * 1e6);
    metrics.prefill_micros += static_cast<int64_t>(stats.prefill_seconds * 1e6);
    metrics.decode_micros += static_cast<int64_t>(stats.decode_seconds * 1e6);
  }
  {
    const std::lock_guard lock(mutex_);
    if (choice.code != nullptr && output.ok()) {
      const Status finished = Guarded([&]() -> Status {
        choice.code->Finish();
        return {};
      });
      if (!finished.ok()) output = CopyOf(finished.error());
      // Of a stream the tail is gone already.
      if (!spec_.stream && choice.code->text().size() < choice.text.size()) {
        choice.text.resize(choice.code->text().size());
      }
      choice.stopped = choice.stopped || choice.code->ended();
    }
    choice.output.emplace(std::move(output));
    choice.safe = choice.text.size();
    choice.done = true;
    last = --left_ == 0;
    if (!gone_ && !failure_ && added_ < choices_.size()) next = choices_[added_++].get();
    // Those that will never begin.
    if (gone_ || failure_) {
      left_ -= choices_.size() - added_;
      added_ = choices_.size();
      last = left_ == 0;
    }
  }
  if (next != nullptr) Begin(*next);
  if (gone_) return;
  try {
    if (spec_.stream) return exchange_->Wake();
    if (last) exchange_->Post([self = shared_from_this()] { self->WholeOrRefuse(); });
  } catch (...) {
    Abandon();
  }
}

// ---- On the connection's thread ----

std::vector<Delta> Call::TakeFrom(Choice& choice, size_t& first_token) {
  ChoiceOut& out = out_.choices[static_cast<size_t>(choice.index)];
  first_token = out.tokens.size();
  std::string bytes;
  std::vector<uint32_t> lengths;
  std::vector<TokenEntry> entries;
  bool done = false;
  {
    const std::lock_guard lock(mutex_);
    done = choice.done;
    size_t end = choice.taken;
    size_t tokens = choice.tokens_taken;
    while (tokens < choice.lengths.size()) {
      // Of a stop string's token only what stands before it is left.
      const size_t length = std::min<size_t>(choice.lengths[tokens], choice.text.size() - end);
      if (end + length > choice.safe) break;
      lengths.push_back(static_cast<uint32_t>(length));
      if (spec_.want_tokens && (length > 0 || choice.lengths[tokens] == 0)) {
        entries.push_back(choice.entries[tokens]);
      }
      end += length;
      ++tokens;
    }
    bytes = choice.text.substr(choice.taken, end - choice.taken);
    choice.taken = end;
    choice.tokens_taken = tokens;
  }
  std::vector<Delta> deltas;
  const auto add = [&](std::vector<Delta> more) {
    for (Delta& delta : more) {
      if (!deltas.empty() && deltas.back().kind == delta.kind && deltas.back().call == delta.call &&
          delta.kind != Delta::Kind::kCallBegin) {
        deltas.back().text += delta.text;
      } else {
        deltas.push_back(std::move(delta));
      }
    }
  };
  const bool by_token = spec_.want_tokens || plan_.thinking != ThinkingStart::kOff;
  if (by_token) {
    size_t at = 0, entry = 0;
    for (const uint32_t length : lengths) {
      const bool before = choice.parser->in_content();
      std::vector<Delta> more = choice.parser->Feed(std::string_view(bytes).substr(at, length));
      at += length;
      bool reasoning = false, content = before;
      for (const Delta& delta : more) {
        reasoning = reasoning || delta.kind == Delta::Kind::kReasoning;
        content = content || delta.kind == Delta::Kind::kContent;
      }
      if (!before && !content) ++out.reasoning_tokens;
      if (reasoning) content = false;
      if (entry < entries.size()) entries[entry++].in_content = content;
      add(std::move(more));
    }
  } else {
    add(choice.parser->Feed(bytes));
  }
  for (TokenEntry& one : entries) out.tokens.push_back(std::move(one));
  if (done) add(choice.parser->Finish());
  Apply(choice, deltas);
  if (done) EndOf(choice);
  return deltas;
}

void Call::Apply(Choice& choice, std::span<const Delta> deltas) {
  ChoiceOut& out = out_.choices[static_cast<size_t>(choice.index)];
  for (const Delta& delta : deltas) {
    switch (delta.kind) {
      case Delta::Kind::kReasoning:
        out.reasoning += delta.text;
        break;
      case Delta::Kind::kContent:
        out.content += delta.text;
        break;
      case Delta::Kind::kCallBegin:
        out.calls.push_back({"call_" + RandomName(24), delta.text, "", plan_.custom[delta.tool]});
        break;
      case Delta::Kind::kArguments:
        out.calls.back().arguments += delta.text;
        break;
      case Delta::Kind::kCallEnd:
        break;
    }
  }
}

void Call::EndOf(Choice& choice) {
  ChoiceOut& out = out_.choices[static_cast<size_t>(choice.index)];
  if (out.ended) return;
  out.ended = true;
  const Result<Generation>& output = *choice.output;
  if (!output.ok()) {
    out.error = OutputError(output.error(), spec_, choice.prompt, plan_.grammar.pointer);
    if (choice.refused) out.error = FromError(output.error(), "");
    out.finish = "error";
    return;
  }
  CopyOutput(*output, out);
  out.embedding = std::move(choice.embedding);
  if (choice.code != nullptr) {
    out.parses = choice.code->Parses();
    out.given_up = choice.code->given_up();
  }
  if (!choice.note.empty()) out.notes.push_back(choice.note);
  NoteEnd(output->stop, out);
  out.finish = FinishOf(choice, output->stop, out);
  out.stop_string = choice.stopped ? choice.stop_string : "";
  if (plan_.thinking == ThinkingStart::kOff) out.reasoning_tokens = 0;
}

void Call::SumUp() {
  std::vector<bool> seen(spec_.prompts.size(), false);
  for (const auto& choice : choices_) {
    const ChoiceOut& out = out_.choices[static_cast<size_t>(choice->index)];
    if (!seen[choice->prompt]) {
      out_.prompt_tokens += PromptSize(*choice);
      out_.reused_tokens += out.stats.reused_tokens;
      seen[choice->prompt] = true;
    }
    out_.output_tokens += out.stats.output_tokens;
    out_.reasoning_tokens += out.reasoning_tokens;
  }
  out_.first_token_seconds = first_token_;
  out_.total_seconds = seconds();
}

// What an exception has left half written is not sent; the client hears of the failure instead.
bool Call::PullOrFail(std::string& text) noexcept {
  const size_t before = text.size();
  if (gone_) return true;  // the connection is about to be closed
  try {
    return Pull(text);
  } catch (...) {
    const ApiError error = FailureError(CurrentFailure());
    text.resize(before);
    GiveUp(error);
    try {
      formatter_->Fail(error, text);
    } catch (...) {
      // An end in the middle, which is not to look like a good one.
      text.resize(before);
      Abandon();
    }
    Log(error.status);
    return gone_;
  }
}

bool Call::Pull(std::string& text) {
  if (MarkAbsent() && !begun_) return true;
  if (!begun_) {
    begun_ = true;
    formatter_->Begin(out_, text);
  }
  std::optional<ApiError> failure;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
  }
  bool all = true;
  for (const auto& choice : choices_) {
    ChoiceOut& out = out_.choices[static_cast<size_t>(choice->index)];
    if (failure || out.ended) continue;
    size_t first_token = 0;
    const std::vector<Delta> deltas = TakeFrom(*choice, first_token);
    if (out.error && !spec_.one_by_one) {
      failure = out.error;
      GiveUp(failure);
      break;
    }
    if (!deltas.empty() || first_token < out.tokens.size()) {
      formatter_->Add(out_, out, deltas, first_token, text);
    }
    if (out.ended) formatter_->EndChoice(out_, out, text);
    all = all && out.ended;
  }
  if (failure) {
    formatter_->Fail(*failure, text);
    Log(failure->status);
    return false;
  }
  if (!all) return true;
  SumUp();
  formatter_->End(out_, text);
  Log(200);
  return false;
}

void Call::WholeOrRefuse() noexcept {
  try {
    Whole();
  } catch (...) {
    Refuse(FailureError(CurrentFailure()));
  }
}

void Call::Whole() {
  if (gone_ || answered_) return;
  for (const auto& choice : choices_) {
    if (choice->done) {
      size_t first_token = 0;
      TakeFrom(*choice, first_token);
    }
  }
  std::optional<ApiError> failure;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
  }
  if (failure) return Refuse(*failure);
  for (ChoiceOut& out : out_.choices) {
    if (out.error && !spec_.one_by_one) return Refuse(*out.error);
  }
  if (spec_.echo) EchoPrompts();
  SumUp();
  KeepBest();
  HttpReply reply = formatter_->Whole(out_);
  if (spec_.asked.answer.deprecated) reply.headers.emplace_back("deprecation", "true");
  const int status = reply.status;
  if (answered_.exchange(true)) return;
  try {
    exchange_->Reply(std::move(reply));
  } catch (...) {
    Abandon();
  }
  Log(status);
}

}  // namespace pawl::server
