// Answers that need no output of the model: what it is, tokens of texts, and whether a constraint
// compiles.
#include "src/server/api_plain.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/base/stop_scope.h"
#include "src/server/api.h"
#include "src/server/playground.h"

namespace pawl::server {
namespace {

HttpReply JsonReply(std::string body) {
  HttpReply reply;
  reply.body = std::move(body);
  return reply;
}

}  // namespace

Result<HttpReply> Health(ServerState& server, const PlainRequest&) {
  if (server.ready && !server.draining) return JsonReply(R"({"status":"ok"})");
  ApiError error{.status = 503,
                 .message = server.draining ? "the server is shutting down" : "Loading model"};
  error.retry_seconds = 1;
  return error.ToReply();
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
