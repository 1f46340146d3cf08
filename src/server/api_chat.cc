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

class ChatFormatter : public Formatter {
 public:
  ChatFormatter(std::shared_ptr<ServerState> server, bool logprobs, bool usage, bool reports)
      : server_(std::move(server)), logprobs_(logprobs), usage_(usage), reports_(reports) {}

  void Begin(const CallOut& out, std::string& text) override {
    for (const ChoiceOut& choice : out.choices) {
      Chunk(out, choice.index, R"({"role":"assistant","content":""})", "null", "", "", text);
    }
  }

  void Add(const CallOut& out, const ChoiceOut& choice, std::span<const Delta> deltas,
           size_t first_token, std::string& text) override {
    std::string logprobs = logprobs_ ? ChatLogprobs(*server_, choice, first_token) : "null";
    std::string reports = reports_ ? TokenReports(choice, first_token) : "";
    for (const Delta& delta : deltas) {
      const bool content = delta.kind == Delta::Kind::kContent;
      const std::string body = DeltaOf(choice, delta);
      if (body.empty()) continue;
      Chunk(out, choice.index, body, "null", content ? std::exchange(logprobs, "null") : "null",
            std::exchange(reports, ""), text);
    }
    // Tokens whose text has to wait are told nevertheless.
    const bool left =
        logprobs_ && logprobs != "null" && logprobs.find("{\"token\"") != std::string::npos;
    if (left || !reports.empty()) {
      Chunk(out, choice.index, R"({"content":""})", "null", left ? logprobs : "null", reports,
            text);
    }
  }

  void EndChoice(const CallOut& out, const ChoiceOut& choice, std::string& text) override {
    Chunk(out, choice.index, "{}", json::Quote(choice.finish), "null", "", text);
  }

  void End(const CallOut& out, std::string& text) override {
    if (usage_) {
      JsonWriter json;
      Head(out, "chat.completion.chunk", json);
      json.Key("choices").Array().End().Key("usage").Raw(UsageOf(out));
      json.Key("pawl").Raw(ReportOf(out)).End();
      text += "data: " + json.text() + "\n\n";
    }
    text += "data: [DONE]\n\n";
  }

  HttpReply Whole(const CallOut& out) override {
    JsonWriter json;
    Head(out, "chat.completion", json);
    json.Key("choices").Array();
    for (const ChoiceOut& choice : out.choices) {
      json.Object().Key("index").Int(choice.index).Key("message").Object();
      json.Key("role").String("assistant").Key("content");
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
      json.End().Key("logprobs").Raw(logprobs_ ? ChatLogprobs(*server_, choice, 0) : "null");
      json.Key("finish_reason").String(choice.finish);
      if (reports_) json.Key("pawl_tokens").Raw(TokenReports(choice, 0));
      json.End();
    }
    json.End().Key("usage").Raw(UsageOf(out)).Key("pawl").Raw(ReportOf(out)).End();
    HttpReply reply;
    reply.body = json.Take();
    return reply;
  }

 private:
  static void Head(const CallOut& out, const char* object, JsonWriter& json) {
    json.Object().Key("id").String("chatcmpl-" + out.id).Key("object").String(object);
    json.Key("created").Int(out.created).Key("model").String(out.model);
    json.Key("system_fingerprint").String("pawl");
  }

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

  void Chunk(const CallOut& out, int index, const std::string& delta, const std::string& finish,
             const std::string& logprobs, const std::string& reports, std::string& text) const {
    JsonWriter json;
    Head(out, "chat.completion.chunk", json);
    json.Key("choices").Array().Object().Key("index").Int(index).Key("delta").Raw(delta);
    json.Key("logprobs").Raw(logprobs.empty() ? "null" : logprobs);
    json.Key("finish_reason").Raw(finish).End().End();
    if (usage_) json.Key("usage").Null();
    if (!reports.empty()) {
      json.Key("pawl").Object().Key("index").Int(index).Key("tokens").Raw(reports).End();
    }
    json.End();
    text += "data: " + json.text() + "\n\n";
  }

  const std::shared_ptr<ServerState> server_;
  const bool logprobs_, usage_, reports_;
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
  PromptSpec& prompt = spec.prompts[0];
  const RequestConstraints& asked = spec.asked;
  if (asked.answer.kind == ConstraintSpec::Kind::kJsonSchema) prompt.schema = asked.answer.text;
  if (!asked.tools.empty() && asked.choice.mode != ToolChoice::Mode::kNone) {
    if (request.server->model->has_chat()) prompt.tools.type = json::Type::kArray;
    for (const size_t index : asked.choice.allowed) {
      if (prompt.tools.type == json::Type::kNull) break;
      prompt.tools.items.push_back(asked.tools[index].Declared());
    }
    if (prompt.schema.empty() && asked.choice.allowed.size() == 1) {
      const ConstraintSpec& input = asked.tools[asked.choice.allowed[0]].input;
      if (input.kind == ConstraintSpec::Kind::kJsonSchema) prompt.schema = input.text;
    }
  }
  Call::Start(request.server, request.exchange, std::move(spec),
              std::make_unique<ChatFormatter>(request.server, logprobs, usage, reports));
  return {};
}

}  // namespace pawl::server
