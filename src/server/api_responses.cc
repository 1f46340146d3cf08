// /v1/responses: one output as a list of items - what was thought, messages, calls - and a stream
// of numbered events that build it up. Answers are stored (response_store.h), so that a request may
// go on from an earlier one.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/server/api.h"
#include "src/server/api_plain.h"

namespace pawl::server {
namespace {

using json::Value;

// What the answer repeats of the request.
struct Echo {
  std::string instructions = "null", tools = "[]", tool_choice = "\"auto\"",
              text = R"({"format":{"type":"text"}})", metadata = "{}";
  bool parallel = true;
  int max_tokens = 0;
  bool has_max_tokens = false;
  float temperature = 1, top_p = 1;
  std::string previous = "null";
};

constexpr std::string_view kResponses = "/v1/responses/";

Value ListOf(std::vector<Value> items) {
  Value list;
  list.type = json::Type::kArray;
  list.items = std::move(items);
  return list;
}

// A call of a tool, as a chat's assistant has it.
Value CallWith(const std::string& id, const std::string& name, const std::string& arguments) {
  const Result<Value> call =
      json::Parse("{\"id\":" + json::Quote(id) + R"(,"type":"function","function":{"name":)" +
                  json::Quote(name) + ",\"arguments\":" + json::Quote(arguments) + "}}");
  return call.ok() ? *call : Value();
}

class ResponseFormatter : public Formatter {
 public:
  // Where the answer is stored, for whom, and the chat before it. No server: it is not.
  struct Keeping {
    std::shared_ptr<ServerState> server;
    int key = 0;
    Value messages;
  };

  ResponseFormatter(Echo echo, Keeping keeping)
      : echo_(std::move(echo)), keeping_(std::move(keeping)), stored_(keeping_.server != nullptr) {}

  void Begin(const CallOut& out, std::string& text) override {
    Event("response.created", "\"response\":" + Response(out, "in_progress"), text);
    Event("response.in_progress", "\"response\":" + Response(out, "in_progress"), text);
  }

  void Add(const CallOut& out, const ChoiceOut& choice, std::span<const Delta> deltas, size_t,
           std::string& text) override {
    for (const Delta& delta : deltas) {
      switch (delta.kind) {
        case Delta::Kind::kReasoning:
          Open(out, Item::Kind::kReasoning, choice, -1, text);
          Piece("response.reasoning_text.delta", delta.text, true, text);
          break;
        case Delta::Kind::kContent:
          Open(out, Item::Kind::kMessage, choice, -1, text);
          Piece("response.output_text.delta", delta.text, true, text);
          break;
        case Delta::Kind::kCallBegin:
          Close(text);
          Open(out, Item::Kind::kCall, choice, delta.call, text);
          break;
        case Delta::Kind::kArguments:
          Piece(items_.back().custom ? "response.custom_tool_call_input.delta"
                                     : "response.function_call_arguments.delta",
                delta.text, false, text);
          break;
        case Delta::Kind::kCallEnd:
          Close(text);
          break;
      }
    }
  }

  void End(const CallOut& out, std::string& text) override {
    Close(text);
    const bool cut = out.choices[0].finish == "length";
    const std::string status = cut ? "incomplete" : "completed";
    if (items_.empty()) {  // an empty message is one nevertheless
      Open(out, Item::Kind::kMessage, out.choices[0], -1, text);
      Close(text);
    }
    Event("response." + status, "\"response\":" + Stored(out, status), text);
  }

  void Fail(const ApiError& error, std::string& text) override {
    JsonWriter json;
    json.Object().Key("type").String("error").Key("sequence_number").Int(number_++);
    json.Key("code").String(error.code.empty() ? error.type() : error.code);
    json.Key("message").String(error.ShortMessage());
    json.Key("param").Raw(error.param.empty() ? "null" : json::Quote(error.param));
    json.Key("error").Raw(error.Object()).End();
    text += "event: error\ndata: " + json.text() + "\n\n";
  }

  HttpReply Whole(const CallOut& out) override {
    const ChoiceOut& choice = out.choices[0];
    std::string unused;
    if (!choice.reasoning.empty()) {
      Open(out, Item::Kind::kReasoning, choice, -1, unused);
      items_.back().text = choice.reasoning;
      Close(unused);
    }
    if (!choice.content.empty() || choice.calls.empty()) {
      Open(out, Item::Kind::kMessage, choice, -1, unused);
      items_.back().text = choice.content;
      Close(unused);
    }
    for (size_t i = 0; i < choice.calls.size(); ++i) {
      Open(out, Item::Kind::kCall, choice, static_cast<int>(i), unused);
      items_.back().text = choice.calls[i].arguments;
      Close(unused);
    }
    HttpReply reply;
    reply.body = Stored(out, choice.finish == "length" ? "incomplete" : "completed");
    return reply;
  }

 private:
  struct Item {
    enum class Kind { kReasoning, kMessage, kCall } kind = Kind::kMessage;
    std::string id, call_id, name, text;
    bool custom = false;
  };

  void Event(const std::string& type, const std::string& members, std::string& text) {
    text += "event: " + type + "\ndata: {\"type\":\"" + type +
            "\",\"sequence_number\":" + std::to_string(number_++) + "," + members + "}\n\n";
  }

  std::string Place(bool content) const {
    std::string place = "\"item_id\":" + json::Quote(items_.back().id) +
                        ",\"output_index\":" + std::to_string(items_.size() - 1);
    if (content) place += ",\"content_index\":0";
    return place;
  }

  static std::string Part(const Item& item) {
    if (item.kind == Item::Kind::kReasoning) {
      return R"({"type":"reasoning_text","text":)" + json::Quote(item.text) + "}";
    }
    return R"({"type":"output_text","text":)" + json::Quote(item.text) +
           R"(,"annotations":[],"logprobs":[]})";
  }

  static std::string Shown(const Item& item, const char* status) {
    JsonWriter json;
    json.Object();
    const bool done = std::string_view(status) == "completed";
    switch (item.kind) {
      case Item::Kind::kReasoning:
        json.Key("id").String(item.id).Key("type").String("reasoning");
        json.Key("summary").Array().End().Key("content").Array();
        if (done) json.Raw(Part(item));
        json.End().Key("status").String(status);
        break;
      case Item::Kind::kMessage:
        json.Key("id").String(item.id).Key("type").String("message");
        json.Key("status").String(status).Key("role").String("assistant");
        json.Key("content").Array();
        if (done) json.Raw(Part(item));
        json.End();
        break;
      case Item::Kind::kCall:
        json.Key("id").String(item.id);
        json.Key("type").String(item.custom ? "custom_tool_call" : "function_call");
        json.Key("status").String(status).Key("call_id").String(item.call_id);
        json.Key("name").String(item.name);
        json.Key(item.custom ? "input" : "arguments").String(done ? item.text : "");
        break;
    }
    return json.End().Take();
  }

  // Makes sure that the item that is open is of this kind.
  void Open(const CallOut& out, Item::Kind kind, const ChoiceOut& choice, int call,
            std::string& text) {
    if (open_ && items_.back().kind == kind && kind != Item::Kind::kCall) return;
    Close(text);
    Item item;
    item.kind = kind;
    static constexpr const char* kPrefix[] = {"rs_", "msg_", "fc_"};
    item.id = kPrefix[static_cast<size_t>(kind)] + out.id + std::to_string(items_.size());
    if (kind == Item::Kind::kCall) {
      const ToolCallOut& made = choice.calls[static_cast<size_t>(call)];
      item.call_id = made.id;
      item.name = made.name;
      item.custom = made.custom;
    }
    items_.push_back(std::move(item));
    open_ = true;
    Event("response.output_item.added",
          "\"output_index\":" + std::to_string(items_.size() - 1) +
              ",\"item\":" + Shown(items_.back(), "in_progress"),
          text);
    if (kind != Item::Kind::kCall) {
      Event("response.content_part.added", Place(true) + ",\"part\":" + Part(items_.back()), text);
    }
  }

  void Piece(const char* type, const std::string& piece, bool content, std::string& text) {
    items_.back().text += piece;
    const bool message = items_.back().kind == Item::Kind::kMessage;
    Event(type,
          Place(content) + ",\"delta\":" + json::Quote(piece) + (message ? ",\"logprobs\":[]" : ""),
          text);
  }

  void Close(std::string& text) {
    if (!open_) return;
    open_ = false;
    const Item& item = items_.back();
    const std::string quoted = json::Quote(item.text);
    switch (item.kind) {
      case Item::Kind::kReasoning:
        Event("response.reasoning_text.done", Place(true) + ",\"text\":" + quoted, text);
        break;
      case Item::Kind::kMessage:
        Event("response.output_text.done", Place(true) + ",\"text\":" + quoted + ",\"logprobs\":[]",
              text);
        break;
      case Item::Kind::kCall:
        if (item.custom) {
          Event("response.custom_tool_call_input.done", Place(false) + ",\"input\":" + quoted,
                text);
        } else {
          Event("response.function_call_arguments.done",
                Place(false) + ",\"name\":" + json::Quote(item.name) + ",\"arguments\":" + quoted,
                text);
        }
        break;
    }
    if (item.kind != Item::Kind::kCall) {
      Event("response.content_part.done", Place(true) + ",\"part\":" + Part(item), text);
    }
    Event("response.output_item.done",
          "\"output_index\":" + std::to_string(items_.size() - 1) +
              ",\"item\":" + Shown(item, "completed"),
          text);
  }

  // The answer as a message of the chat.
  Value Answer() const {
    std::string text;
    std::vector<Value> calls;
    for (const Item& item : items_) {
      if (item.kind == Item::Kind::kMessage) text += item.text;
      if (item.kind != Item::Kind::kCall) continue;
      calls.push_back(
          CallWith(item.call_id, item.name,
                   item.custom ? "{\"input\":" + json::Quote(item.text) + "}" : item.text));
    }
    Value message = MessageOf("assistant", StringValue(text));
    if (!calls.empty()) message.members.emplace_back("tool_calls", ListOf(std::move(calls)));
    return message;
  }

  // The last state of the answer, which is stored.
  std::string Stored(const CallOut& out, const std::string& status) {
    std::string body = Response(out, status);
    if (!stored_) return body;
    keeping_.messages.items.push_back(Answer());
    stored_ = keeping_.server->responses.Put(
        "resp_" + out.id,
        {.key = keeping_.key, .response = body, .messages = json::Dump(keeping_.messages)});
    return stored_ ? body : Response(out, status);
  }

  std::string Response(const CallOut& out, const std::string& status) const {
    const bool running = status == "in_progress";
    JsonWriter json;
    json.Object().Key("id").String("resp_" + out.id).Key("object").String("response");
    json.Key("created_at").Int(out.created).Key("status").String(status);
    json.Key("error").Null().Key("incomplete_details");
    json.Raw(status == "incomplete" ? R"({"reason":"max_output_tokens"})" : "null");
    json.Key("instructions").Raw(echo_.instructions);
    json.Key("max_output_tokens");
    echo_.has_max_tokens ? json.Int(echo_.max_tokens) : json.Null();
    json.Key("model").String(out.model).Key("output").Array();
    if (!running) {
      for (const Item& item : items_) json.Raw(Shown(item, "completed"));
    }
    json.End().Key("parallel_tool_calls").Bool(echo_.parallel);
    json.Key("previous_response_id")
        .Raw(echo_.previous)
        .Key("reasoning")
        .Raw(R"({"effort":null,"summary":null})");
    json.Key("store").Bool(stored_).Key("temperature").Number(echo_.temperature);
    json.Key("text").Raw(echo_.text).Key("tool_choice").Raw(echo_.tool_choice);
    json.Key("tools").Raw(echo_.tools).Key("top_p").Number(echo_.top_p);
    json.Key("truncation").String("disabled").Key("usage");
    if (running) {
      json.Null();
    } else {
      json.Object().Key("input_tokens").Int(out.prompt_tokens);
      json.Key("input_tokens_details").Object().Key("cached_tokens").Int(out.reused_tokens).End();
      json.Key("output_tokens").Int(out.output_tokens).Key("output_tokens_details").Object();
      json.Key("reasoning_tokens").Int(out.reasoning_tokens).End();
      json.Key("total_tokens").Int(out.prompt_tokens + out.output_tokens).End();
      json.Key("pawl").Raw(ReportOf(out));
    }
    json.Key("metadata").Raw(echo_.metadata);
    return json.End().Take();
  }

  const Echo echo_;
  Keeping keeping_;
  bool stored_ = false;
  std::vector<Item> items_;
  bool open_ = false;
  int number_ = 0;
};

Value CallOf(const JsonReader& item, bool custom) {
  const auto text = [&](const char* name) {
    return item[name].IsString() ? item[name].String() : std::string();
  };
  const std::string arguments =
      custom ? "{\"input\":" + json::Quote(text("input")) + "}" : text("arguments");
  return CallWith(text("call_id"), text("name"), arguments);
}

// Items of the input as messages of a chat.
void ReadInput(const JsonReader& in, Value& messages) {
  if (!in.present()) return in.Fail("is missing");
  if (in.IsString()) return messages.items.push_back(MessageOf("user", *in.value()));
  if (!in.IsArray() || in.size() == 0) return in.Fail("must be a text or a list of items");
  for (const JsonReader one : in.items()) {
    const std::string type = one.Object()["type"].String("message");
    const JsonReader content = one["content"], output = one["output"], id = one["call_id"];
    if (type == "message") {
      const std::string& role = one["role"].String();
      if (!content.present()) content.Fail("is missing");
      if (in.ok()) messages.items.push_back(MessageOf(role, *content.value()));
    } else if (type == "function_call" || type == "custom_tool_call") {
      Value call = CallOf(one, type == "custom_tool_call");
      const bool join =
          !messages.items.empty() && messages.items.back().Find("tool_calls") != nullptr;
      if (!join) {
        Value message = MessageOf("assistant", StringValue(""));
        Value calls;
        calls.type = json::Type::kArray;
        message.members.emplace_back("tool_calls", std::move(calls));
        messages.items.push_back(std::move(message));
      }
      messages.items.back().members.back().second.items.push_back(std::move(call));
    } else if (type == "function_call_output" || type == "custom_tool_call_output") {
      if (!output.present()) return output.Fail("is missing");
      Value message = MessageOf("tool", *output.value());
      if (id.value() != nullptr) message.members.emplace_back("tool_call_id", *id.value());
      messages.items.push_back(std::move(message));
    } else if (type != "reasoning") {
      one["type"].Unsupported("is " + json::Quote(type) +
                              "; there are messages, function and custom calls, "
                              "their outputs, and reasoning");
    }
  }
}

// The chat that the request goes on from, before its own messages.
void ReadPrevious(const ApiRequest& request, const JsonReader& in, Echo& echo, Value& messages) {
  if (!in.present()) return;
  ResponseStore& store = request.server->responses;
  const std::string& id = in.String();
  if (!in.ok()) return;
  if (!store.on()) return in.Unsupported("is not supported: this server stores no responses");
  const std::shared_ptr<const ResponseStore::Entry> found = store.Find(id, request.key);
  if (found == nullptr) {
    return in.Fail("there is no response " + json::Quote(ShownBytes(id.substr(0, 100))) +
                   "; it was not stored, was deleted, or is too old");
  }
  Result<Value> earlier = json::Parse(found->messages);
  if (!earlier.ok()) return in.Fail(earlier.error().message);
  for (Value& message : earlier->items) messages.items.push_back(std::move(message));
  echo.previous = json::Quote(id);
}

// The stored response that the path names; an error's reply where there is none.
Result<std::string> IdOf(const PlainRequest& request) {
  std::string id = request.http.path.substr(kResponses.size());
  if (id.starts_with("resp_") && id.find('/') == std::string::npos) return id;
  return Error{ErrorCode::kInvalid, "is no id of a response", request.http.path};
}

HttpReply NoResponse(const std::string& id) {
  return ApiError{.status = 404,
                  .message = "there is no response " + json::Quote(ShownBytes(id.substr(0, 100))) +
                             "; it was not stored, was deleted, or is too old"}
      .ToReply();
}

}  // namespace

Result<HttpReply> StoredResponse(ServerState& server, const PlainRequest& request) {
  const Result<std::string> id = IdOf(request);
  if (!id.ok()) return id.error();
  const auto found = server.responses.Find(*id, request.key);
  if (found == nullptr) return NoResponse(*id);
  HttpReply reply;
  reply.body = found->response;
  return reply;
}

Result<HttpReply> DeleteResponse(ServerState& server, const PlainRequest& request) {
  const Result<std::string> id = IdOf(request);
  if (!id.ok()) return id.error();
  if (!server.responses.Remove(*id, request.key)) return NoResponse(*id);
  HttpReply reply;
  reply.body = "{\"id\":" + json::Quote(*id) + R"(,"object":"response","deleted":true})";
  return reply;
}

Status StartResponse(const ApiRequest& request) {
  const JsonReader in = JsonReader(request.body).Object();
  CallSpec spec;
  spec.route = "/v1/responses";
  for (const char* name : {"conversation", "prompt", "background"}) {
    const JsonReader stored = in[name];
    if (stored.present() && (name != std::string_view("background") || stored.Bool())) {
      stored.Unsupported("is not supported: send the messages, or previous_response_id");
    }
  }
  PromptSpec prompt;
  prompt.kind = PromptSpec::Kind::kChat;
  prompt.pointer = "#/input";
  prompt.messages.type = json::Type::kArray;
  Echo echo;
  std::string instructions;
  if (in["instructions"].Read(instructions)) {
    echo.instructions = json::Quote(instructions);
    prompt.messages.items.push_back(MessageOf("system", StringValue(instructions)));
  }
  const size_t own = prompt.messages.items.size();
  ReadPrevious(request, in["previous_response_id"], echo, prompt.messages);
  ReadInput(in["input"], prompt.messages);
  ResponseFormatter::Keeping keeping;
  if (in["store"].Bool(true) && request.server->responses.on()) {
    // Instructions are of one request alone.
    const auto& all = prompt.messages.items;
    keeping = {request.server, request.key,
               ListOf({all.begin() + static_cast<std::ptrdiff_t>(own), all.end()})};
  }
  spec.prompts = {std::move(prompt)};
  if (Status status =
          ReadCommon(request, in, {"max_output_tokens"}, request.server->options.max_tokens, spec);
      !status.ok()) {
    return status;
  }
  if (spec.draws() != 1) in["n"].Unsupported("must be 1 on this route");
  if (!in.ok()) return in.error();
  const RequestConstraints& asked = spec.asked;
  DeclareTools(request, spec);
  const auto repeat = [&](const char* name, std::string& value) {
    if (const JsonReader given = in[name]; given.present()) value = json::Dump(*given.value());
  };
  repeat("tools", echo.tools);
  repeat("tool_choice", echo.tool_choice);
  if (in["text"]["format"].value() != nullptr) repeat("text", echo.text);
  repeat("metadata", echo.metadata);
  echo.parallel = asked.parallel;
  echo.has_max_tokens = in["max_output_tokens"].present();
  echo.max_tokens = spec.options.max_tokens;
  echo.temperature = spec.options.sampling.temperature;
  echo.top_p = spec.options.sampling.top_p;
  Call::Start(request.server, request.exchange, std::move(spec),
              std::make_unique<ResponseFormatter>(std::move(echo), std::move(keeping)));
  return {};
}

}  // namespace pawl::server
