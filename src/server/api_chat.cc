// /v1/chat/completions, and /v1/fim/completions, whose answers have the same shape.
#include <utility>

#include "src/server/api.h"

namespace pawl::server {
namespace {

void WriteCall(JsonWriter& json, const ToolCallOut& call) {
  json.Object().Key("id").String(call.id).Key("type").String(call.custom ? "custom" : "function");
  json.Key(call.custom ? "custom" : "function").Object().Key("name").String(call.name);
  json.Key(call.custom ? "input" : "arguments").String(call.arguments).End().End();
}

class ChatFormatter : public OpenAiFormatter {
 public:
  using OpenAiFormatter::OpenAiFormatter;

  void Begin(const CallOut& out, std::string& text) override {
    for (const ChoiceOut& choice : out.choices) {
      if (choice.absent) continue;
      Piece(out, choice, R"({"role":"assistant","content":""})", "null", "", text);
    }
  }

  void Add(const CallOut& out, const ChoiceOut& choice, std::span<const Delta> deltas,
           size_t first_token, std::string& text) override {
    std::string logprobs = wants_.logprobs ? Logprobs(choice, first_token) : "null";
    std::string reports = wants_.reports ? TokenReports(choice, first_token) : "";
    for (const Delta& delta : deltas) {
      const bool content = delta.kind == Delta::Kind::kContent;
      const std::string body = DeltaOf(choice, delta);
      if (body.empty()) continue;
      Piece(out, choice, body, content ? std::exchange(logprobs, "null") : "null",
            std::exchange(reports, ""), text);
    }
    // Tokens whose text has to wait are told nevertheless.
    const bool left = logprobs != "null" && logprobs.find("{\"token\"") != std::string::npos;
    if (left || !reports.empty()) {
      Piece(out, choice, R"({"content":""})", left ? logprobs : "null", reports, text);
    }
  }

  void EndChoice(const CallOut& out, const ChoiceOut& choice, std::string& text) override {
    Chunk(out, choice.index, "delta", "{}", json::Quote(choice.finish), "null", "", text);
  }

 protected:
  void Head(const CallOut& out, bool chunk, JsonWriter& json) const override {
    json.Object().Key("id").String("chatcmpl-" + out.id);
    json.Key("object").String(chunk ? "chat.completion.chunk" : "chat.completion");
    json.Key("created").Int(out.created).Key("model").String(out.model);
    json.Key("system_fingerprint").String("pawl");
  }

  void Said(const ChoiceOut& choice, JsonWriter& json) const override {
    json.Key("message").Object().Key("role").String("assistant").Key("content");
    if (choice.content.empty() && !choice.calls.empty()) {
      json.Null();
    } else {
      json.String(choice.content);
    }
    json.Key("refusal").Null();
    if (!choice.reasoning.empty()) json.Key("reasoning_content").String(choice.reasoning);
    if (!choice.calls.empty()) {
      json.Key("tool_calls").Array();
      for (const ToolCallOut& call : choice.calls) WriteCall(json, call);
      json.End();
    }
    json.End();
  }

  std::string Logprobs(const ChoiceOut& choice, size_t first) const override {
    return ChatLogprobs(*server_, choice, first);
  }

 private:
  static std::string DeltaOf(const ChoiceOut& choice, const Delta& delta) {
    JsonWriter json;
    json.Object();
    switch (delta.kind) {
      case Delta::Kind::kContent:
        json.Key("content").String(delta.text);
        break;
      case Delta::Kind::kReasoning:
        json.Key("reasoning_content").String(delta.text);
        break;
      case Delta::Kind::kCallBegin: {
        ToolCallOut call = choice.calls[static_cast<size_t>(delta.call)];
        json.Key("tool_calls").Array().Object().Key("index").Int(delta.call);
        json.Key("id").String(call.id).Key("type").String(call.custom ? "custom" : "function");
        json.Key(call.custom ? "custom" : "function").Object().Key("name").String(call.name);
        json.Key(call.custom ? "input" : "arguments").String("").End().End().End();
        break;
      }
      case Delta::Kind::kArguments: {
        const bool custom = choice.calls[static_cast<size_t>(delta.call)].custom;
        json.Key("tool_calls").Array().Object().Key("index").Int(delta.call);
        json.Key(custom ? "custom" : "function").Object();
        json.Key(custom ? "input" : "arguments").String(delta.text).End().End().End();
        break;
      }
      case Delta::Kind::kCallEnd:
        return "";
    }
    return json.End().Take();
  }

  void Piece(const CallOut& out, const ChoiceOut& choice, const std::string& delta,
             const std::string& logprobs, const std::string& reports, std::string& text) const {
    Chunk(out, choice.index, "delta", delta, "null", logprobs, reports, text);
  }
};

}  // namespace

Status StartChat(const ApiRequest& request, bool fim) {
  const JsonReader in = JsonReader(request.body).Object();
  CallSpec spec;
  spec.route = fim ? "/v1/fim/completions" : "/v1/chat/completions";
  if (fim) {
    PromptSpec prompt;
    prompt.kind = PromptSpec::Kind::kInfill;
    prompt.pointer = "#/prompt";
    prompt.text = in["prompt"].String();
    prompt.suffix = in["suffix"].String("");
    ReadGapMarks(prompt);
    spec.code = ReadCode(in);
    spec.prompts = {std::move(prompt)};
  } else if (Status status = ReadChatPrompt(in["messages"], spec); !status.ok()) {
    return status;
  }
  const bool logprobs = in["logprobs"].Bool(false), reports = in["token_report"].Bool(false);
  if (logprobs) {
    spec.options.logprobs = 0;
    in["top_logprobs"].Read(spec.options.logprobs, 0, 20);
  }
  spec.want_tokens = logprobs || reports;
  const bool usage = in["stream_options"].OptionalObject()["include_usage"].Bool(false);
  if (Status status = ReadCommon(request, in, {"max_completion_tokens", "max_tokens"},
                                 fim ? 128 : request.server->options.max_tokens, spec);
      !status.ok()) {
    return status;
  }
  if (spec.code) spec.code->has_grammar = HasConstraint(spec.asked);
  DeclareTools(request, spec);
  const OpenAiFormatter::Wants wants = {logprobs, usage, reports};
  Call::Start(request.server, request.exchange, std::move(spec),
              std::make_unique<ChatFormatter>(request.server, wants));
  return {};
}

}  // namespace pawl::server
