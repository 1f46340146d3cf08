// /v1/messages: Anthropic's API. An answer is a list of blocks - what was thought, text, calls -
// and a stream of events that builds it up. /v1/messages/count_tokens and llama.cpp's
// /apply-template lay out a prompt and begin no output.
#include <algorithm>
#include <utility>

#include "src/server/api.h"

namespace pawl::server {
namespace {

using json::Value;

const char* MessagesErrorType(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

std::string MessagesErrorBody(const ApiError& error) {
  const std::string place = error.param.empty() ? "" : "#" + error.ShortParam() + ": ";
  JsonWriter json;
  json.Object().Key("type").String("error").Key("error").Object();
  json.Key("type").String(MessagesErrorType(error.status));
  json.Key("message").String(place + error.ShortMessage());
  return json.End().End().Take();
}

class MessagesFormatter : public Formatter {
 public:
  void Begin(const CallOut& out, std::string& text) override {
    JsonWriter json;
    Head(out, json);
    json.End().Key("stop_reason").Null().Key("stop_sequence").Null().Key("usage").Object();
    json.Key("input_tokens").Int(0).Key("output_tokens").Int(0).End();
    Event("message_start", "\"message\":" + json.End().Take(), text);
  }

  void Add(const CallOut& /*out*/, const ChoiceOut& choice, std::span<const Delta> deltas, size_t,
           std::string& text) override {
    for (const Delta& delta : deltas) {
      switch (delta.kind) {
        case Delta::Kind::kReasoning:
          Open("thinking", R"({"type":"thinking","thinking":"","signature":""})", text);
          Piece("thinking_delta", "thinking", delta.text, text);
          break;
        case Delta::Kind::kContent:
          Open("text", R"({"type":"text","text":""})", text);
          Piece("text_delta", "text", delta.text, text);
          break;
        case Delta::Kind::kCallBegin: {
          Close(text);
          const ToolCallOut& call = choice.calls[static_cast<size_t>(delta.call)];
          JsonWriter json;
          json.Object().Key("type").String("tool_use").Key("id").String(call.id);
          json.Key("name").String(call.name).Key("input").Object().End().End();
          Open("tool_use", json.text(), text);
          break;
        }
        case Delta::Kind::kArguments:
          Piece("input_json_delta", "partial_json", delta.text, text);
          break;
        case Delta::Kind::kCallEnd:
          Close(text);
          break;
      }
    }
  }

  void End(const CallOut& out, std::string& text) override {
    Close(text);
    JsonWriter json;
    json.Object();
    Reason(out.choices[0], json);
    json.End();
    Event("message_delta",
          "\"delta\":" + json.text() + ",\"usage\":" + Usage(out) + ",\"pawl\":" + ReportOf(out),
          text);
    Event("message_stop", "", text);
  }

  void Fail(const ApiError& error, std::string& text) override {
    text += "event: error\ndata: " + MessagesErrorBody(error) + "\n\n";
  }

  HttpReply Whole(const CallOut& out) override {
    const ChoiceOut& choice = out.choices[0];
    JsonWriter json;
    Head(out, json);
    if (!choice.reasoning.empty()) {
      json.Object().Key("type").String("thinking").Key("thinking").String(choice.reasoning);
      json.Key("signature").String("").End();
    }
    if (!choice.content.empty() || choice.calls.empty()) {
      json.Object().Key("type").String("text").Key("text").String(choice.content).End();
    }
    for (const ToolCallOut& call : choice.calls) {
      json.Object().Key("type").String("tool_use").Key("id").String(call.id);
      json.Key("name").String(call.name).Key("input").Raw(InputOf(call)).End();
    }
    json.End();
    Reason(choice, json);
    json.Key("usage").Raw(Usage(out)).Key("pawl").Raw(ReportOf(out)).End();
    HttpReply reply;
    reply.body = json.Take();
    return reply;
  }

  HttpReply Refuse(const ApiError& error) override { return MessagesError(error); }

 private:
  // Up to the blocks, whose array is open.
  static void Head(const CallOut& out, JsonWriter& json) {
    json.Object().Key("id").String("msg_" + out.id).Key("type").String("message");
    json.Key("role").String("assistant").Key("model").String(out.model).Key("content").Array();
  }

  // Arguments that the budget cut in the middle are no JSON.
  static std::string InputOf(const ToolCallOut& call) {
    const Result<Value> input = json::Parse(call.arguments);
    return input.ok() && input->type == json::Type::kObject ? call.arguments : "{}";
  }

  static void Reason(const ChoiceOut& choice, JsonWriter& json) {
    const char* reason = "end_turn";
    if (choice.finish == "length") {
      reason = "max_tokens";
    } else if (!choice.calls.empty()) {
      reason = "tool_use";
    } else if (!choice.stop_string.empty()) {
      reason = "stop_sequence";
    }
    json.Key("stop_reason").String(reason).Key("stop_sequence");
    choice.stop_string.empty() ? json.Null() : json.String(choice.stop_string);
  }

  // Tokens that were found in the prefix cache are no input tokens in this API.
  static std::string Usage(const CallOut& out) {
    JsonWriter json;
    json.Object().Key("input_tokens").Int(out.prompt_tokens - out.reused_tokens);
    json.Key("cache_creation_input_tokens").Int(0);
    json.Key("cache_read_input_tokens").Int(out.reused_tokens);
    json.Key("output_tokens").Int(out.output_tokens);
    return json.End().Take();
  }

  static void Event(const std::string& type, const std::string& members, std::string& text) {
    text += "event: " + type + "\ndata: {\"type\":\"" + type + "\"";
    if (!members.empty()) text += "," + members;
    text += "}\n\n";
  }

  std::string Place() const { return "\"index\":" + std::to_string(block_); }

  // Makes sure that the block that is open is of this kind.
  void Open(std::string_view kind, const std::string& block, std::string& text) {
    if (open_ == kind && kind != "tool_use") return;
    Close(text);
    open_ = kind;
    Event("content_block_start", Place() + ",\"content_block\":" + block, text);
  }

  void Piece(const char* type, const char* member, const std::string& piece,
             std::string& text) const {
    JsonWriter json;
    json.Object().Key("type").String(type).Key(member).String(piece).End();
    Event("content_block_delta", Place() + ",\"delta\":" + json.text(), text);
  }

  void Close(std::string& text) {
    if (open_.empty()) return;
    Event("content_block_stop", Place(), text);
    open_ = {};
    ++block_;
  }

  std::string_view open_;  // the kind of the block that is open
  int block_ = 0;
};

// {"input_tokens": 25}, or {"prompt": "..."}.
class PromptFormatter : public Formatter {
 public:
  explicit PromptFormatter(bool count) : count_(count) {}
  void Add(const CallOut&, const ChoiceOut&, std::span<const Delta>, size_t,
           std::string&) override {}
  void End(const CallOut&, std::string&) override {}
  HttpReply Whole(const CallOut& out) override {
    JsonWriter json;
    json.Object();
    if (count_) {
      json.Key("input_tokens").Int(out.prompt_tokens);
    } else {
      json.Key("prompt").String(out.choices[0].content);
    }
    HttpReply reply;
    reply.body = json.End().Take();
    return reply;
  }
  HttpReply Refuse(const ApiError& error) override {
    return count_ ? MessagesError(error) : Formatter::Refuse(error);
  }

 private:
  const bool count_;
};

// The texts of blocks, one after the other. `in`: a text, or a list of blocks that all are texts.
std::string TextsOf(const JsonReader& in) {
  if (in.IsString()) return in.String();
  std::string text;
  if (!in.IsArray()) in.Fail("must be a string or an array of blocks");
  for (const JsonReader block : in.items()) {
    const JsonReader type = block.Object()["type"];
    if (type.String() != "text" && in.ok()) {
      type.Unsupported("is " + json::Quote(type.String()) + ": this server takes text");
    }
    if (!text.empty()) text += '\n';
    text += block["text"].String();
  }
  return text;
}

Value ToolUse(const JsonReader& block) {
  const JsonReader input = block["input"].Object();
  const auto add = [](Value& object, const char* name, Value value) {
    object.type = json::Type::kObject;
    object.members.emplace_back(name, std::move(value));
  };
  Value function, call;
  add(function, "name", StringValue(block["name"].String()));
  if (input.present()) add(function, "arguments", StringValue(json::Dump(*input.value())));
  add(call, "id", StringValue(block["id"].String()));
  add(call, "type", StringValue("function"));
  add(call, "function", std::move(function));
  return call;
}

// A message as those of a chat: results of tools are messages of their own, before what else the
// user says.
void ReadMessage(const JsonReader& in, Value& messages) {
  const std::string& role = in.Object()["role"].String();
  const JsonReader content = in["content"];
  if (in.ok() && role != "user" && role != "assistant") {
    return in["role"].Fail("must be \"user\" or \"assistant\", not " + json::Quote(role));
  }
  if (!content.present()) return content.Fail("is missing");
  if (content.IsString()) return messages.items.push_back(MessageOf(role, *content.value()));
  if (!content.IsArray()) return content.Fail("must be a text or a list of blocks");
  std::string text;
  Value calls;
  calls.type = json::Type::kArray;
  bool said = content.size() == 0;
  for (const JsonReader block : content.items()) {
    const std::string type = block.Object()["type"].String();
    if (type == "text") {
      if (said && !text.empty()) text += '\n';
      said = true;
      text += block["text"].String();
    } else if (type == "tool_use" && role == "assistant") {
      said = true;
      calls.items.push_back(ToolUse(block));
    } else if (type == "tool_result" && role == "user") {
      const JsonReader result = block["content"];
      Value message =
          MessageOf("tool", StringValue(result.present() ? TextsOf(result) : std::string()));
      message.members.emplace_back("tool_call_id", StringValue(block["tool_use_id"].String()));
      messages.items.push_back(std::move(message));
    } else if (type == "thinking" || type == "redacted_thinking") {
      said = true;  // what was thought in earlier turns is not shown again
    } else if (in.ok()) {
      const bool known = type == "tool_use" || type == "tool_result";
      const std::string shown = json::Quote(type);
      return known ? block["type"].Fail("is " + shown + ", which is no block of " + role)
                   : block["type"].Unsupported("is " + shown + ": this server takes text");
    }
  }
  if (!said) return;
  Value message = MessageOf(role, StringValue(std::move(text)));
  if (!calls.items.empty()) message.members.emplace_back("tool_calls", std::move(calls));
  messages.items.push_back(std::move(message));
}

Result<CallSpec> ReadMessages(const ApiRequest& request, const char* route) {
  const JsonReader in = JsonReader(request.body).Object();
  CallSpec spec;
  spec.route = route;
  PromptSpec prompt;
  prompt.kind = PromptSpec::Kind::kChat;
  prompt.pointer = "#/messages";
  prompt.messages.type = json::Type::kArray;
  if (const JsonReader system = in["system"]; system.present()) {
    prompt.messages.items.push_back(MessageOf("system", StringValue(TextsOf(system))));
  }
  const JsonReader messages = in["messages"];
  if (messages.OptionalArray().size() == 0) {
    messages.Fail("must be a list of messages that is not empty");
  }
  for (const JsonReader one : messages.items()) ReadMessage(one, prompt.messages);
  if (!in.ok()) return in.error();
  spec.prompts = {std::move(prompt)};
  std::vector<std::string> stops;
  in["stop_sequences"].ReadStrings(stops, 16);
  in["tool_choice"]["disable_parallel_tool_use"].Bool(false);
  if (Status status =
          ReadCommon(request, in, {"max_tokens"}, request.server->options.max_tokens, spec);
      !status.ok()) {
    return status.error();
  }
  for (std::string& stop : stops) {
    if (stop.empty() || stop.size() > 1024) {
      in["stop_sequences"].Fail("has a string that is empty or has more than 1024 bytes");
    }
    spec.stop.push_back(std::move(stop));
  }
  for (const char* name : {"n", "best_of"}) {
    if (spec.draws() != 1 && in[name].present()) in[name].Unsupported("must be 1 on this route");
  }
  if (spec.together.any()) in.Unsupported("has a search, which this route has no answer for");
  if (!in.ok()) return in.error();
  DeclareTools(request, spec);
  return spec;
}

}  // namespace

HttpReply MessagesError(const ApiError& error) {
  HttpReply reply = error.ToReply();
  reply.body = MessagesErrorBody(error);
  return reply;
}

Status StartMessages(const ApiRequest& request) {
  Result<CallSpec> spec = ReadMessages(request, "/v1/messages");
  if (!spec.ok()) return spec.error();
  Call::Start(request.server, request.exchange, *std::move(spec),
              std::make_unique<MessagesFormatter>());
  return {};
}

Status StartCountTokens(const ApiRequest& request) {
  Result<CallSpec> spec = ReadMessages(request, "/v1/messages/count_tokens");
  if (!spec.ok()) return spec.error();
  spec->prompt_only = true;
  spec->stream = false;
  Call::Start(request.server, request.exchange, *std::move(spec),
              std::make_unique<PromptFormatter>(true));
  return {};
}

Status StartApplyTemplate(const ApiRequest& request) {
  const JsonReader in = JsonReader(request.body).Object();
  CallSpec spec;
  spec.route = "/apply-template";
  if (Status status = ReadChatPrompt(in["messages"], spec); !status.ok()) return status;
  if (!request.server->model->has_chat()) {
    return Error{ErrorCode::kUnsupported, "the model has no chat template", "#/messages"};
  }
  if (Status status =
          ReadCommon(request, in, {"max_tokens"}, request.server->options.max_tokens, spec);
      !status.ok()) {
    return status;
  }
  spec.n = 1;
  spec.best_of = 0;
  spec.prompt_only = true;
  spec.stream = false;
  DeclareTools(request, spec);
  Call::Start(request.server, request.exchange, std::move(spec),
              std::make_unique<PromptFormatter>(false));
  return {};
}

}  // namespace pawl::server
