// Answers that need no output of the model: what it is, how it goes, tokens of texts, and whether a
// constraint compiles.
#include "src/server/api_plain.h"

#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/base/stop_scope.h"
#include "src/server/api.h"
#include "src/server/heap_trim.h"
#include "src/server/playground.h"

namespace pawl::server {
namespace {

HttpReply JsonReply(std::string body) {
  HttpReply reply;
  reply.body = std::move(body);
  return reply;
}

// What the process takes of the machine, and how much of it is in use.
void WriteMemory(std::string& out) {
  if (const int64_t resident = ResidentBytes(); resident > 0) {
    WriteMetric("process_resident_memory_bytes", "gauge", "Memory of the process.",
                static_cast<double>(resident), out);
  }
  const struct mallinfo2 heap = mallinfo2();
  WriteMetric("pawl_heap_used_bytes", "gauge", "Memory that was asked for and not given back.",
              static_cast<double>(heap.uordblks + heap.hblkhd), out);
  WriteMetric("pawl_heap_free_bytes", "gauge", "Memory that was given back, and may be used again.",
              static_cast<double>(heap.fordblks), out);
}

}  // namespace

Result<HttpReply> Models(ServerState& server, const PlainRequest&) {
  const ServedModel& model = *server.model;
  JsonWriter json;
  json.Object().Key("object").String("list").Key("data").Array().Object();
  json.Key("id").String(model.name()).Key("object").String("model").Key("created").Int(0);
  json.Key("owned_by").String("pawl").Key("max_model_len").Int(model.info().context_length);
  return JsonReply(json.End().End().End().Take());
}

Result<HttpReply> OllamaTags(ServerState& server, const PlainRequest&) {
  const ServedModel& model = *server.model;
  JsonWriter json;
  json.Object().Key("models").Array().Object();
  json.Key("name").String(model.name()).Key("model").String(model.name());
  json.Key("modified_at").String("1970-01-01T00:00:00Z");
  json.Key("size").Int(model.info().weight_bytes).Key("digest").String("");
  json.Key("details").Object().Key("format").String("safetensors");
  json.Key("family").String(model.info().architecture).End();
  return JsonReply(json.End().End().End().Take());
}

Result<HttpReply> Health(ServerState& server, const PlainRequest&) {
  if (server.ready && !server.draining) return JsonReply(R"({"status":"ok"})");
  ApiError error{.status = 503,
                 .message = server.draining ? "the server is shutting down" : "Loading model"};
  error.retry_seconds = 1;
  return error.ToReply();
}

Result<HttpReply> MetricsPage(ServerState& server, const PlainRequest&) {
  std::string out;
  const Metrics& m = server.metrics;
  const auto count = [&](const char* name, const char* help, double value) {
    WriteMetric(name, "counter", help, value, out);
  };
  const auto gauge = [&](const char* name, const char* help, double value) {
    WriteMetric(name, "gauge", help, value, out);
  };
  m.WriteRequests(out);
  count("pawl_prompt_tokens_total", "Tokens of prompts.", static_cast<double>(m.prompt_tokens));
  count("pawl_prompt_tokens_reused_total", "Of these, found in the prefix cache.",
        static_cast<double>(m.reused_tokens));
  count("pawl_output_tokens_total", "Tokens of outputs.", static_cast<double>(m.output_tokens));
  count("pawl_output_tokens_sampled_total", "Of these, drawn from the model.",
        static_cast<double>(m.sampled_tokens));
  count("pawl_output_tokens_forced_total", "Of these, dictated by a grammar.",
        static_cast<double>(m.forced_tokens));
  count("pawl_output_tokens_closing_total", "Of these, written to close an output in time.",
        static_cast<double>(m.closing_tokens));
  count("pawl_prompt_seconds_total", "The model on prompts.",
        static_cast<double>(m.prefill_micros) * 1e-6);
  count("pawl_output_seconds_total", "The model on outputs.",
        static_cast<double>(m.decode_micros) * 1e-6);
  count("pawl_mask_seconds_total", "Masks and states of grammars.",
        static_cast<double>(m.mask_micros) * 1e-6);
  count("pawl_clients_gone_total", "Requests whose client went away.",
        static_cast<double>(m.cancelled));
  count("pawl_refused_full_total", "Requests refused because the queue was full.",
        static_cast<double>(m.refused_full));
  count("pawl_timed_out_total", "Requests given up after the time for a request.",
        static_cast<double>(m.timed_out));
  gauge("pawl_requests_live", "Requests taken and not answered yet.", server.calls);
  gauge("pawl_stored_responses", "Answers of /v1/responses that are stored.",
        static_cast<double>(server.responses.size()));
  gauge("pawl_stored_response_bytes", "What they take.",
        static_cast<double>(server.responses.bytes()));
  if (server.ready) {
    const AsyncEngine& engine = *server.engine;
    gauge("pawl_outputs_running", "Outputs in the batch.", engine.running());
    gauge("pawl_outputs_waiting", "Outputs that wait for a place in the batch.", engine.waiting());
    count("pawl_model_steps_total", "Steps of the batch.", static_cast<double>(engine.steps()));
    gauge("pawl_kv_usage_ratio", "Keys and values in use, of the memory for them.",
          engine.kv_usage());
    gauge("pawl_kv_bytes",
          "Pages of keys and values that have memory, those in the prefix cache included.",
          static_cast<double>(engine.kv_bytes()));
    gauge("pawl_draft_memory_bytes", "What drafts have learnt from outputs.",
          static_cast<double>(engine.draft_bytes()));
    const GrammarStore::Stats grammars = server.grammars->stats();
    gauge("pawl_grammars", "Compiled grammars that are kept.",
          static_cast<double>(grammars.grammars));
    gauge("pawl_grammar_bytes", "What they take, keys included.",
          static_cast<double>(grammars.bytes));
    count("pawl_grammar_hits_total", "Grammars that were there.",
          static_cast<double>(grammars.hits));
    count("pawl_grammar_misses_total", "Grammars that were compiled.",
          static_cast<double>(grammars.misses));
    count("pawl_compiles_stopped_total", "Of these, given up because the client went away.",
          static_cast<double>(grammars.stopped));
    count("pawl_grammar_evictions_total", "Grammars that had to go.",
          static_cast<double>(grammars.evicted));
  }
  WriteMemory(out);
  m.step.Write("pawl_step_seconds",
               "Processor time of the thread that all outputs share, from one call of the model to "
               "the next, that call included.",
               out);
  m.first_token.Write("pawl_first_token_seconds", "From the request to its first token.", out);
  m.request.Write("pawl_request_seconds", "From the request to the end of its answer.", out);
  m.compile.Write("pawl_compile_seconds", "Constraints into grammars.", out);
  HttpReply reply;
  reply.content_type = "text/plain; version=0.0.4";
  reply.body = std::move(out);
  return reply;
}

// vLLM's {"prompt"} or {"messages"}, llama.cpp's {"content"}.
Result<HttpReply> Tokenize(ServerState& server, const PlainRequest& request) {
  const StopScope scope(request.halt);
  const JsonReader in = JsonReader(*request.body).Object();
  const ServedModel& model = *server.model;
  const bool vllm = in["prompt"].present();
  const bool special = in["parse_special"].Bool(true), pieces = in["with_pieces"].Bool(false);
  const bool add = in[vllm ? "add_special_tokens" : "add_special"].Bool(vllm);
  std::vector<TokenId> tokens;
  if (in["messages"].present()) {
    CallSpec spec;
    if (Status status = ReadChatPrompt(in["messages"], spec); !status.ok()) return status.error();
    Result<PreparedPrompt> prompt = model.Prepare(spec.prompts[0]);
    if (!prompt.ok()) return prompt.error();
    tokens = prompt->tokens;
  } else {
    const std::string& text = in[vllm ? "prompt" : "content"].String();
    if (!in.ok()) return in.error();
    tokens = model.tokenizer().Encode(text, {.add_special_tokens = add, .parse_special = special});
  }
  JsonWriter json;
  json.Object().Key("tokens").Array();
  for (const TokenId token : tokens) {
    if (pieces) {
      json.Object().Key("id").Int(token).Key("piece");
      json.String(ShownBytes(model.vocabulary()->bytes(token))).End();
    } else {
      json.Int(token);
    }
  }
  json.End().Key("count").Int(static_cast<int64_t>(tokens.size()));
  json.Key("max_model_len").Int(model.info().context_length);
  return JsonReply(json.End().Take());
}

Result<HttpReply> Detokenize(ServerState& server, const PlainRequest& request) {
  const StopScope scope(request.halt);
  const JsonReader list = JsonReader(*request.body).Object()["tokens"].Array();
  if (!list.ok()) return list.error();
  std::vector<TokenId> tokens;
  for (const json::Value& item : list.value()->items) {
    const std::optional<int64_t> token = json::WholeOf(item);
    if (!token || *token < 0 || *token >= server.model->vocabulary()->size()) {
      list.Item(tokens.size()).Fail("is no token id of this model");
      return list.error();
    }
    tokens.push_back(static_cast<TokenId>(*token));
  }
  const std::string text = ShownBytes(server.model->tokenizer().Decode(tokens, true));
  JsonWriter json;
  json.Object().Key("prompt").String(text).Key("content").String(text);
  return JsonReply(json.End().Take());
}

// What lm-evaluation-harness asks for.
Result<HttpReply> TokenizerInfo(ServerState& server, const PlainRequest&) {
  const Tokenizer& tokenizer = server.model->tokenizer();
  const auto name = [&](TokenId id, JsonWriter& json) {
    id == kNoToken ? json.Null() : json.String(tokenizer.NameOf(id));
  };
  const std::span<const TokenId> ends = tokenizer.end_tokens();
  const TokenId end = ends.empty() ? kNoToken : ends[0];
  JsonWriter json;
  json.Object().Key("tokenizer_class").String("PawlTokenizer").Key("bos_token");
  name(tokenizer.bos(), json);
  json.Key("eos_token");
  name(end, json);
  json.Key("pad_token");
  name(end, json);
  json.Key("vocab_size").Int(tokenizer.size());
  json.Key("model_max_length").Int(server.model->info().context_length);
  json.Key("chat_template").Null();
  return JsonReply(json.End().Take());
}

// A constraint tried without a model: what a schema editor wants to know.
Result<HttpReply> CompileOnly(ServerState& server, const PlainRequest& request) {
  const StopScope scope(request.halt);
  Result<RequestConstraints> asked = ReadConstraints(JsonReader(*request.body));
  if (!asked.ok()) return asked.error();
  if (asked->layout.max_string < 0) asked->layout.max_string = server.options.max_string;
  Result<OutputPlan> plan = MakePlan(*asked, server.model->traits(), ThinkingStart::kOff);
  if (!plan.ok()) return plan.error();
  JsonWriter json;
  json.Object().Key("ok").Bool(true);
  if (plan->grammar.kind != ConstraintSpec::Kind::kNone) {
    const auto begin = std::chrono::steady_clock::now();
    bool known = false;
    Result<Grammar> grammar =
        server.grammars->Get(plan->grammar, asked->layout, known, request.stop);
    if (!grammar.ok()) {
      Error error = grammar.error();
      if (error.place.starts_with("#")) {
        error.place = plan->grammar.pointer + error.place.substr(1);
      } else {
        if (!error.place.empty()) error.message = error.place + ": " + error.message;
        error.place = plan->grammar.pointer;
      }
      return error;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    json.Key("compile_seconds").Number(seconds.count()).Key("grammar_known").Bool(known);
    json.Key("notes").Array();
    for (const std::string& note : grammar->notes()) json.String(note);
    json.End();
  }
  return JsonReply(json.End().Take());
}

Result<HttpReply> OneModel(ServerState& server, const PlainRequest&) {
  JsonWriter json;
  json.Object().Key("id").String(server.model->name()).Key("object").String("model");
  json.Key("created").Int(0).Key("owned_by").String("pawl").End();
  return JsonReply(json.Take());
}

Result<HttpReply> Version(ServerState& server, const PlainRequest&) {
  return JsonReply("{\"version\":" + json::Quote(server.options.version) + "}");
}

// llama.cpp's.
Result<HttpReply> Props(ServerState& server, const PlainRequest&) {
  JsonWriter json;
  json.Object().Key("model_path").String(server.model->name());
  json.Key("total_slots").Int(server.options.max_batch);
  json.Key("chat_template").String(server.model->has_chat() ? "model" : "");
  json.Key("has_chat_template").Bool(server.model->has_chat());
  json.Key("can_infill").Bool(server.model->can_infill());
  json.Key("n_ctx").Int(server.model->info().context_length).End();
  return JsonReply(json.Take());
}

Result<HttpReply> OllamaShow(ServerState& server, const PlainRequest&) {
  JsonWriter json;
  json.Object().Key("details").Object().Key("family");
  json.String(server.model->info().architecture).End().Key("capabilities").Array();
  json.String("completion").String("tools").End().Key("model_info").Object().End().End();
  return JsonReply(json.Take());
}

Result<HttpReply> Playground(ServerState&, const PlainRequest&) {
  HttpReply reply;
  reply.content_type = "text/html; charset=utf-8";
  reply.headers.emplace_back("content-security-policy",
                             "default-src 'none'; style-src 'unsafe-inline'; script-src "
                             "'unsafe-inline'; connect-src 'self'; img-src data:");
  reply.body = std::string(PlaygroundPage());
  return reply;
}

}  // namespace pawl::server
