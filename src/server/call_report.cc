// What a request has cost, summed over its outputs: the `pawl` member of replies and the line of
// the log. And what is wrong with an output, as the client has to read it.
#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

#include "src/base/failure.h"
#include "src/engine/schema_view.h"
#include "src/server/call.h"
#include "src/server/call_choice.h"
#include "src/server/json_writer.h"
#include "src/server/request_span.h"
#include "src/server/server_state.h"

namespace pawl::server {

std::string ReportOf(const CallOut& out, bool together) {
  GenerationStats sum;
  bool closed = false;
  ClosedBy closed_by = ClosedBy::kNothing;
  for (const ChoiceOut& choice : out.choices) {
    closed = closed || choice.closed;
    if (closed_by == ClosedBy::kNothing) closed_by = choice.closed_by;
    sum.sampled_tokens += choice.stats.sampled_tokens;
    sum.forced_tokens += choice.stats.forced_tokens;
    sum.closing_tokens += choice.stats.closing_tokens;
    sum.forward_calls += choice.stats.forward_calls;
    sum.drafts.rows += choice.stats.drafts.rows;
    sum.drafts.accepted += choice.stats.drafts.accepted;
    sum.constraint_seconds += choice.stats.constraint_seconds;
    sum.sample_seconds += choice.stats.sample_seconds;
    sum.prefill_seconds += choice.stats.prefill_seconds;
    sum.decode_seconds += choice.stats.decode_seconds;
    sum.mask_surprise += choice.stats.mask_surprise;
  }
  JsonWriter json;
  json.Object().Key("closed").Bool(closed);
  if (closed) {
    json.Key("closed_by");
    // What a search closes at its limit has another reason, at_limit.
    if (closed_by == ClosedBy::kNothing) {
      json.Null();
    } else {
      json.String(NameOf(closed_by));
    }
  }
  json.Key("sampled_tokens").Int(sum.sampled_tokens);
  json.Key("forced_tokens").Int(sum.forced_tokens);
  json.Key("closing_tokens").Int(sum.closing_tokens);
  json.Key("model_calls").Int(sum.forward_calls);
  if (sum.drafts.rows > 0) {
    json.Key("drafted_tokens").Int(sum.drafts.rows);
    json.Key("accepted_tokens").Int(sum.drafts.accepted);
  }
  for (const ChoiceOut& choice : out.choices) {
    if (!choice.parses) continue;
    json.Key("parses").Bool(*choice.parses);
    uint64_t given_up = 0;
    for (const ChoiceOut& one : out.choices) given_up += one.given_up;
    json.Key("given_up").Int(static_cast<int64_t>(given_up));
    break;
  }
  json.Key("mask_seconds").Number(sum.constraint_seconds);
  json.Key("sample_seconds").Number(sum.sample_seconds);
  json.Key("prompt_seconds").Number(sum.prefill_seconds);
  json.Key("output_seconds").Number(sum.decode_seconds);
  json.Key("mask_surprise").Number(sum.mask_surprise);
  if (out.has_grammar) {
    json.Key("compile_seconds").Number(out.compile_seconds);
    json.Key("grammar_known").Bool(out.grammar_known);
  }
  json.Key("queue_seconds").Number(out.queue_seconds);
  json.Key("first_token_seconds").Number(out.first_token_seconds);
  json.Key("total_seconds").Number(out.total_seconds);
  if (!out.ignored.empty()) {
    json.Key("ignored").Array();
    for (const std::string& pointer : out.ignored) json.String(pointer);
    json.End();
  }
  if (!out.samplers.empty()) json.Key("samplers").String(out.samplers);
  if (together && out.together != nullptr) {
    json.Key(out.together).Array();
    for (const std::string& one : out.together_reports) json.Raw(one.empty() ? "null" : one);
    json.End();
  }
  std::vector<std::string> notes = out.notes;  // each once
  for (const ChoiceOut& choice : out.choices) {
    for (const std::string& note : choice.notes) {
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
    }
  }
  if (!notes.empty()) {
    json.Key("notes").Array();
    for (const std::string& note : notes) json.String(note);
    json.End();
  }
  return json.End().Take();
}

std::string Call::FinishOf(const Choice& choice, StopReason stop, ChoiceOut& out) const {
  if (stop == StopReason::kLength || out.closed) return "length";
  if (choice.stopped && !choice.stop_string.empty() && !out.calls.empty()) {
    const ToolCallOut& last = out.calls.back();
    if (last.custom || !json::Parse(last.arguments).ok()) {
      if (!spec_.stream) out.calls.pop_back();
      return "stop";
    }
  }
  return out.calls.empty() || spec_.asked.choice.named ? "stop" : "tool_calls";
}

void Call::Log(int status) noexcept {
  (void)Guarded([&]() -> Status {
    LogLine(status);
    return {};
  });
}

void Call::LogLine(int status) {
  server_->metrics.CountRequest(spec_.route, status);
  server_->metrics.request.Observe(seconds());
  if (server_->options.trace) {
    const std::string line = SpanLine(
        exchange_->request(), {spec_.route, server_->options.version, status, seconds(), &out_});
    if (!line.empty()) server_->options.trace(line);
  }
  if (!server_->options.log) return;
  JsonWriter json;
  json.Object().Key("event").String("request");
  json.Key("id").String(exchange_->request().id);
  const HttpRequest& request = exchange_->request();
  json.Key("method").String(request.method).Key("route").String(spec_.route);
  json.Key("status").Int(status).Key("peer").String(request.peer);
  if (spec_.key > 0) json.Key("key").Int(spec_.key);
  json.Key("model").String(out_.model).Key("bytes");
  json.Int(static_cast<int64_t>(request.body.size()));
  json.Key("seconds").Number(seconds());
  if (status == 200) {
    json.Key("prompt_tokens").Int(out_.prompt_tokens);
    json.Key("output_tokens").Int(out_.output_tokens);
    json.Key("outputs").Int(static_cast<int64_t>(out_.choices.size()));
    json.Key("report").Raw(ReportOf(out_, false));
  }
  server_->Log(json.End().Take());
}

ApiError OutputError(const Error& error, const CallSpec& spec, size_t prompt,
                     const std::string& constraint) {
  static constexpr const char* kPlaces[] = {
      "prompt", "constraint", "max_tokens", "temperature", "top_k",         "top_p",
      "min_p",  "logit_bias", "logprobs",   "seed",        "mask_surprise", "details"};
  if (IsOutOfMemory(error)) return FromError(error, "");
  // A text in which a field of the schema has no span.
  if (error.place.starts_with('#')) return FromError(error, constraint);
  if (error.place.starts_with("diffusion.")) {
    return FromError({error.code, error.message, "#/diffusion/" + error.place.substr(10)}, "");
  }
  const TogetherSpec& together = spec.together;
  const bool of_member = std::ranges::none_of(
      std::initializer_list<const char*>{"", "model", "prompt", "constraint", "max_tokens"},
      [&](const char* place) { return error.place == place; });
  if (error.code == ErrorCode::kUnsupported && of_member) {
    // What the model has no part for. The probabilities may be those that best_of chooses by.
    const std::string place = together.any()              ? together.PointerOf(error.place)
                              : error.place != "logprobs" ? "#/" + error.place
                              : spec.ranks()              ? "#/best_of"
                                                          : "#/logprobs";
    return FromError({error.code, error.message, place}, "");
  }
  const bool none_found = error.code == ErrorCode::kLimit && error.place == "found";
  // A command of the request that cannot run, or is never in time.
  const bool of_check = (error.code == ErrorCode::kLimit || error.code == ErrorCode::kIo) &&
                        (error.place.starts_with("checks/") || error.place == "critic");
  if (together.any() && (none_found || of_check || error.code == ErrorCode::kInvalid) &&
      !error.place.empty()) {
    const std::string pointer = error.place == "choices" && !constraint.empty()
                                    ? constraint
                                    : together.PointerOf(error.place);
    return FromError(Error{of_check ? ErrorCode::kInvalid : error.code, error.message, pointer},
                     "");
  }
  const bool known = std::any_of(std::begin(kPlaces), std::end(kPlaces),
                                 [&](const char* place) { return error.place == place; });
  ApiError out;
  out.code = ErrorCodeName(error.code);
  out.message = error.message;
  if (!known) {
    // A limit of what the request asks for; the rest is the server's fault.
    out.status = error.code == ErrorCode::kLimit ? 400 : 500;
    if (!error.place.empty()) out.message = error.place + ": " + error.message;
    return out;
  }
  if (error.place == "prompt" && error.code == ErrorCode::kLimit) {
    out.code = "context_length_exceeded";
  }
  const std::string place = error.place == "prompt"       ? spec.prompts[prompt].pointer
                            : error.place == "constraint" ? constraint
                            : error.place == "max_tokens" ? spec.budget_pointer
                                                          : "#/" + error.place;
  if (place.empty()) {
    out.message = error.place + ": " + error.message;
  } else {
    out.param = place.substr(1);
  }
  return out;
}

}  // namespace pawl::server
