// Ollama's /api/chat and /api/generate: lines of JSON in place of events, a stream unless it says
// otherwise, tool calls whole.
#include <chrono>
#include <ctime>
#include <utility>

#include "src/base/os/calendar.h"
#include "src/server/api.h"
#include "src/server/model_choice.h"

namespace pawl::server {
namespace {

std::string Timestamp() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const std::time_t seconds = micros / 1'000'000;
  const std::tm utc = os::UniversalTime(seconds);
  char date[32], text[64];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text, sizeof text, "%s.%06dZ", date, static_cast<int>(micros % 1'000'000));
  return text;
}

class OllamaFormatter : public Formatter {
 public:
  explicit OllamaFormatter(bool chat) : chat_(chat) {}

  std::string StreamType() const override { return "application/x-ndjson"; }

  void Add(const CallOut& out, const ChoiceOut& choice, std::span<const Delta> deltas, size_t,
           std::string& text) override {
    for (const Delta& delta : deltas) {
      JsonWriter json;
      Head(out, json);
      if (delta.kind == Delta::Kind::kContent || delta.kind == Delta::Kind::kReasoning) {
        const bool content = delta.kind == Delta::Kind::kContent;
        Body(content ? delta.text : "", content ? "" : delta.text, {}, json);
      } else if (delta.kind == Delta::Kind::kCallEnd) {
        const auto call = choice.calls.begin() + delta.call;
        Body("", "", {call, call + 1}, json);
      } else {
        continue;
      }
      text += json.Key("done").Bool(false).End().Take() + "\n";
    }
  }
  void End(const CallOut& out, std::string& text) override {
    JsonWriter json;
    Head(out, json);
    Body("", "", {}, json);
    Tail(out, json);
    text += json.End().Take() + "\n";
  }
  void Fail(const ApiError& error, std::string& text) override {
    text += "{\"error\":" + json::Quote(error.ShortMessage()) + "}\n";
  }
  HttpReply Whole(const CallOut& out) override {
    const ChoiceOut& choice = out.choices[0];
    JsonWriter json;
    Head(out, json);
    Body(choice.content, choice.reasoning, choice.calls, json);
    Tail(out, json);
    HttpReply reply;
    reply.body = json.End().Take();
    return reply;
  }
  HttpReply Refuse(const ApiError& error) override { return OllamaError(error); }

 private:
  static void Head(const CallOut& out, JsonWriter& json) {
    json.Object().Key("model").String(out.model).Key("created_at").String(Timestamp());
  }

  void Body(const std::string& content, const std::string& thinking,
            const std::vector<ToolCallOut>& calls, JsonWriter& json) const {
    if (!chat_) {
      json.Key("response").String(content);
      if (!thinking.empty()) json.Key("thinking").String(thinking);
      return;
    }
    json.Key("message").Object().Key("role").String("assistant").Key("content").String(content);
    if (!thinking.empty()) json.Key("thinking").String(thinking);
    if (!calls.empty()) {
      json.Key("tool_calls").Array();
      for (const ToolCallOut& call : calls) {
        const bool whole = !call.custom && json::Parse(call.arguments).ok();
        json.Object().Key("function").Object().Key("name").String(call.name).Key("arguments");
        whole ? json.Raw(call.arguments) : json.Object().Key("input").String(call.arguments).End();
        json.End().End();
      }
      json.End();
    }
    json.End();
  }

  static void Tail(const CallOut& out, JsonWriter& json) {
    const ChoiceOut& choice = out.choices[0];
    const auto nanos = [](double seconds) { return static_cast<int64_t>(seconds * 1e9); };
    json.Key("done").Bool(true);
    json.Key("done_reason").String(choice.finish == "length" ? "length" : "stop");
    json.Key("total_duration").Int(nanos(out.total_seconds)).Key("load_duration").Int(0);
    json.Key("prompt_eval_count").Int(out.prompt_tokens);
    json.Key("prompt_eval_duration").Int(nanos(choice.stats.prefill_seconds));
    json.Key("eval_count").Int(out.output_tokens);
    json.Key("eval_duration").Int(nanos(choice.stats.decode_seconds));
    json.Key("pawl").Raw(ReportOf(out));
  }

  const bool chat_;
};

void ReadGenerate(const JsonReader& in, CallSpec& spec) {
  PromptSpec prompt;
  prompt.pointer = "#/prompt";
  const std::string text = in["prompt"].String(""), system = in["system"].String("");
  prompt.suffix = in["suffix"].String("");
  const bool raw = in["raw"].Bool(false);
  if (const JsonReader images = in["images"].OptionalArray(); images.size() > 0) {
    images.Unsupported("are not taken: this server takes text");
  }
  if (!prompt.suffix.empty()) {
    prompt.kind = PromptSpec::Kind::kInfill;
    prompt.text = text;
  } else if (raw) {
    prompt.text = text;
    prompt.parse_special = true;
  } else {
    prompt.kind = PromptSpec::Kind::kChat;
    prompt.messages.type = json::Type::kArray;
    if (!system.empty()) prompt.messages.items.push_back(MessageOf("system", StringValue(system)));
    prompt.messages.items.push_back(MessageOf("user", StringValue(text)));
  }
  spec.prompts = {std::move(prompt)};
}

// A request without a prompt, or with an empty one: its model is loaded then, and unloaded by a
// keep_alive of 0.
bool IsLoadOnly(const JsonReader& in, bool chat) {
  if (chat) return in["messages"].Is(json::Type::kArray) && in["messages"].size() == 0;
  return in["prompt"].String("").empty() && in["suffix"].String("").empty();
}

void ReplyLoaded(const ApiRequest& request, const JsonReader& in, bool chat) {
  const json::Value* const keep = in["keep_alive"].value();
  const std::optional<double> seconds = keep == nullptr ? std::nullopt : KeepAliveOf(*keep);
  JsonWriter json;
  json.Object().Key("model").String(request.server->model->name());
  json.Key("created_at").String(Timestamp());
  if (chat) {
    json.Key("message").Object().Key("role").String("assistant").Key("content").String("").End();
  } else {
    json.Key("response").String("");
  }
  json.Key("done").Bool(true).Key("done_reason").String(seconds == 0 ? "unload" : "load");
  HttpReply reply;
  reply.body = json.End().Take();
  request.exchange->Reply(std::move(reply));
}

}  // namespace

HttpReply OllamaError(const ApiError& error) {
  HttpReply reply = error.ToReply();
  const std::string place = error.param.empty() ? "" : "#" + error.ShortParam() + ": ";
  reply.body = "{\"error\":" + json::Quote(place + error.ShortMessage()) + "}";
  return reply;
}

Status StartOllama(const ApiRequest& request, bool chat) {
  const JsonReader in = JsonReader(request.body).Object();
  if (in.ok() && IsLoadOnly(in, chat)) {
    ReplyLoaded(request, in, chat);
    return {};
  }
  CallSpec spec;
  spec.route = chat ? "/api/chat" : "/api/generate";
  if (!chat) {
    ReadGenerate(in, spec);
  } else if (Status status = ReadChatPrompt(in["messages"], spec); !status.ok()) {
    return status;
  }
  const JsonReader options = in["options"].OptionalObject();
  if (Status common = ReadCommon(request, in, {}, request.server->options.max_tokens, spec);
      !common.ok()) {
    return common;
  }
  // Its budget and temperature stand in `options`, where they are not looked for.
  for (const char* name : {"search", "sampler", "classify", "use_beam_search"}) {
    if (in[name].present() && spec.together.any()) {
      in[name].Unsupported("is for /v1/completions, /v1/chat/completions and /completion");
    }
  }
  if (spec.draws() != 1) in["n"].Unsupported("must be 1 on this route");
  spec.stream = in["stream"].Bool(true);
  ReadSampling(options, spec);
  if (options["seed"].present()) ReadSeed(options["seed"], spec);
  int tokens = -1;
  if (options["num_predict"].Read(tokens, -2, 1 << 24) && tokens >= 0) {
    spec.options.max_tokens = tokens;
    spec.budget_pointer = options["num_predict"].place();
  }
  if (options["stop"].ReadStrings(spec.stop, 16)) std::erase(spec.stop, "");
  AddIgnored(options, spec);
  if (!in.ok()) return in.error();
  PromptSpec& prompt = spec.prompts[0];
  if (spec.asked.answer.kind == ConstraintSpec::Kind::kJsonSchema) {
    prompt.schema = spec.asked.answer.text;
  }
  if (!spec.asked.tools.empty()) {
    prompt.tools.type = json::Type::kArray;
    for (const ToolSpec& tool : spec.asked.tools) prompt.tools.items.push_back(tool.Declared());
  }
  Call::Start(request.server, request.exchange, std::move(spec),
              std::make_unique<OllamaFormatter>(chat));
  return {};
}

}  // namespace pawl::server
