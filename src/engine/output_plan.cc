// One structural tag holds everything: [thinking] then ( answer | text with calls | calls ).
//
//   tool_choice  answer asked for  body
//   none         no                anything
//   none         yes               the answer
//   auto         no                text in which calls may stand (0..n, or 0..1)
//   auto         yes               calls (1..n, or 1) or the answer: the model chooses by its first
//   token required     -                 calls (1..n, or 1) named        -                 one call
//   of that tool
//
// Where there is neither thinking nor a tool the constraint stays what it was: a schema alone is
// compiled as a schema, and its output is what `pawl extract` would write.
//
// A model without a chat template has not learned to write calls. Where exactly one call of one
// tool is asked for, its arguments alone are the output ("direct"); the wrapper would be forced
// text anyway. Nor has it learned to stop calling, so it may call once unless the request says that
// it may call more often.
#include "src/engine/output_plan.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "src/base/json.h"

namespace pawl {
namespace {

using Body = CallSyntax::Body;
using json::Quote;

std::string Const(std::string_view text) {
  return R"({"type":"const_string","value":)" + Quote(text) + "}";
}

// Formats of a hundred tools are long, and are made for each request anew: no copies on the way.
std::string Concat(std::initializer_list<std::string_view> parts) {
  size_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  std::string out;
  out.reserve(size);
  for (const std::string_view part : parts) out += part;
  return out;
}

std::string Join(const std::vector<std::string>& parts) {
  size_t size = 2;
  for (const std::string& part : parts) size += part.size() + 1;
  std::string out = "[";
  out.reserve(size);
  for (const std::string& part : parts) {
    if (out.size() > 1) out += ',';
    out += part;
  }
  return out += ']';
}

std::string Elements(const char* type, const std::vector<std::string>& parts) {
  if (parts.size() == 1) return parts[0];
  return std::string(R"({"type":")") + type + R"(","elements":)" + Join(parts) + "}";
}

std::string Optional(const std::string& content) {
  return R"({"type":"optional","content":)" + content + "}";
}

std::string Tag(std::string_view begin, const std::string& content, std::string_view end) {
  return Concat({R"({"type":"tag","begin":)", Quote(begin), R"(,"content":)", content, R"(,"end":)",
                 Quote(end), "}"});
}

std::string Bool(bool value) { return value ? "true" : "false"; }

std::string Separated(const std::vector<std::string>& tags, std::string_view separator, bool many) {
  return Concat({R"({"type":"tags_with_separator","separator":)", Quote(separator),
                 R"(,"at_least_one":true,"stop_after_first":)", Bool(!many), R"(,"tags":)",
                 Join(tags), "}"});
}

std::string Triggered(const std::vector<std::string>& triggers,
                      const std::vector<std::string>& tags, bool many) {
  std::vector<std::string> quoted;
  for (const std::string& trigger : triggers) quoted.push_back(Quote(trigger));
  return R"({"type":"triggered_tags","triggers":)" + Join(quoted) + R"(,"tags":)" + Join(tags) +
         R"(,"stop_after_first":)" + Bool(!many) + "}";
}

// What is the same for all calls of a syntax.
struct Syntax {
  std::vector<std::string> triggers;
  std::string separator;
  std::string list_begin, list_end;  // empty: no list
  bool optional_space = false;       // between the trigger and the rest of list_begin
};

Syntax SyntaxOf(ToolSyntax syntax) {
  switch (syntax) {
    case ToolSyntax::kPlain:
    case ToolSyntax::kLlama3:
      return {{R"({"name": )"}, "; ", "", ""};
    case ToolSyntax::kHermes:
    case ToolSyntax::kQwenXml:
      return {{"<tool_call>"}, "\n", "", ""};
    case ToolSyntax::kDeepSeekR1:
      return {{"<｜tool▁calls▁begin｜>"}, "\n", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"};
    case ToolSyntax::kDeepSeekV31:
      return {{"<｜tool▁calls▁begin｜>"}, "", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"};
    case ToolSyntax::kMistral:
      return {{"[TOOL_CALLS]"}, ", ", "[TOOL_CALLS]", "]", true};
  }
  return {};
}

CallSyntax CallOf(ToolSyntax syntax, const ToolSpec& tool, size_t index) {
  CallSyntax call;
  call.tool = index;
  const std::string quoted = Quote(tool.name);
  const bool custom = tool.kind == ToolSpec::Kind::kCustom;
  const bool raw = custom && tool.input.kind == ConstraintSpec::Kind::kGrammar;
  call.body = raw ? Body::kRaw : custom ? Body::kInput : Body::kJson;
  switch (syntax) {
    case ToolSyntax::kPlain:
    case ToolSyntax::kLlama3:
      call.begin = R"({"name": )" + quoted + (raw ? "}\n" : R"(, "parameters": )");
      call.end = raw ? "\n</" + tool.name + ">" : "}";
      break;
    case ToolSyntax::kHermes:
      call.begin = "<tool_call>\n{\"name\": " + quoted + (raw ? "}\n" : ", \"arguments\": ");
      call.end = raw ? "\n</tool_call>" : "}\n</tool_call>";
      break;
    case ToolSyntax::kQwenXml:
      if (!custom) call.body = Body::kParameters;
      call.begin = "<tool_call>\n<function=" + tool.name + ">";
      if (custom) call.begin += "\n";
      call.end = custom ? "\n</function>\n</tool_call>" : "</function>\n</tool_call>";
      break;
    case ToolSyntax::kDeepSeekR1:
      call.begin = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + tool.name + "\n```" +
                   (raw ? "" : "json") + "\n";
      call.end = "\n```<｜tool▁call▁end｜>";
      break;
    case ToolSyntax::kDeepSeekV31:
      call.begin = "<｜tool▁call▁begin｜>" + tool.name + "<｜tool▁sep｜>";
      call.end = "<｜tool▁call▁end｜>";
      break;
    case ToolSyntax::kMistral:
      call.begin = R"({"name": )" + quoted + (raw ? "}\n" : R"(, "arguments": )");
      call.end = raw ? "\n</" + tool.name + ">" : "}";
      break;
  }
  return call;
}

Result<std::string> BodyFormat(const ToolSpec& tool, Body body) {
  if (body == Body::kParameters) {
    return R"({"type":"json_schema","style":"qwen_xml","json_schema":)" + tool.input.text + "}";
  }
  if (body != Body::kInput) return tool.input.AsFormat();
  std::string input = R"({"type":"string"})";
  if (tool.input.kind == ConstraintSpec::Kind::kRegex) {
    input = R"({"type":"string","pattern":)" + Quote("^(?:" + tool.input.text + ")$") + "}";
  }
  return R"({"type":"json_schema","json_schema":{"type":"object","properties":{"input":)" + input +
         R"(},"required":["input"],"additionalProperties":false}})";
}

std::string ThinkingFormat(const OutputPlan& plan, const PlanOptions& options) {
  std::string text = R"({"type":"any_text")";
  if (options.thinking_tokens >= 0) {
    text += R"(,"max_tokens":)" + std::to_string(options.thinking_tokens);
  }
  text += "}";
  const std::string block = Tag("", text, plan.think_close);
  const std::string gap = Optional(Const("\n\n"));
  if (plan.thinking == ThinkingStart::kOpen) return Elements("sequence", {block, gap});
  return Optional(Elements("sequence", {Const(plan.think_open), block, gap}));
}

void UseFormat(OutputPlan& plan, const std::string& format) {
  plan.grammar.kind = ConstraintSpec::Kind::kStructuralTag;
  plan.grammar.text = Concat({R"({"type":"structural_tag","format":)", format, "}"});
}

// The format of the calls alone, at least one.
std::string CallsAlone(const Syntax& syntax, const std::vector<std::string>& tags, bool many) {
  const std::string list = Separated(tags, syntax.separator, many);
  if (syntax.list_begin.empty()) return list;
  if (!syntax.optional_space) return Tag(syntax.list_begin, list, syntax.list_end);
  return Tag(syntax.list_begin, Elements("sequence", {Optional(Const(" ")), Const("["), list}),
             syntax.list_end);
}

bool MayCallOften(const RequestConstraints& asked, ToolSyntax kind) {
  return asked.parallel && (asked.asked_parallel || kind != ToolSyntax::kPlain);
}

Result<std::string> CallsFormat(const RequestConstraints& asked, ToolSyntax kind,
                                OutputPlan& plan) {
  Syntax syntax = SyntaxOf(kind);
  const bool many = MayCallOften(asked, kind) && !asked.choice.named;
  std::vector<std::string> tags;
  for (const size_t index : asked.choice.allowed) {
    const ToolSpec& tool = asked.tools[index];
    plan.calls.push_back(CallOf(kind, tool, index));
    const CallSyntax& call = plan.calls.back();
    Result<std::string> body = BodyFormat(tool, call.body);
    if (!body.ok()) return body.error();
    tags.push_back(Tag(call.begin, *body, call.end));
  }
  plan.triggers = syntax.triggers;
  plan.in_list = !syntax.list_begin.empty();
  plan.list_end = syntax.list_end;
  const bool required = asked.choice.mode == ToolChoice::Mode::kRequired;
  if (required) return CallsAlone(syntax, tags, many);
  if (asked.answer.kind != ConstraintSpec::Kind::kNone) {
    Result<std::string> answer = asked.answer.AsFormat();
    if (!answer.ok()) return answer.error();
    return Elements("or", {CallsAlone(syntax, tags, many), *answer});
  }
  if (plan.in_list) return Triggered(syntax.triggers, {CallsAlone(syntax, tags, many)}, false);
  return Triggered(syntax.triggers, tags, many);
}

}  // namespace

std::optional<ToolSyntax> ToolSyntaxOf(std::string_view name) {
  if (name == "plain") return ToolSyntax::kPlain;
  if (name == "llama3") return ToolSyntax::kLlama3;
  if (name == "hermes" || name == "qwen") return ToolSyntax::kHermes;
  if (name == "qwen_xml") return ToolSyntax::kQwenXml;
  if (name == "deepseek_r1" || name == "deepseek_v3") return ToolSyntax::kDeepSeekR1;
  if (name == "deepseek_v3_1") return ToolSyntax::kDeepSeekV31;
  if (name == "mistral") return ToolSyntax::kMistral;
  return std::nullopt;
}

ModelTraits TraitsOf(std::string_view chat) {
  const auto has = [&](std::string_view text) { return chat.find(text) != std::string_view::npos; };
  ModelTraits traits;
  if (has("<function=") && has("<parameter=")) {
    traits.syntax = ToolSyntax::kQwenXml;
  } else if (has("<tool_call>")) {
    traits.syntax = ToolSyntax::kHermes;
  } else if (has("[TOOL_CALLS]")) {
    traits.syntax = ToolSyntax::kMistral;
  } else if (has("<｜tool▁calls▁begin｜>")) {
    traits.syntax = has("```json") ? ToolSyntax::kDeepSeekR1 : ToolSyntax::kDeepSeekV31;
  } else if (has("\"parameters\": ") || has("<|python_tag|>")) {
    traits.syntax = ToolSyntax::kLlama3;
  }
  if (has("</think>")) {
    traits.think_open = "<think>";
    traits.think_close = "</think>";
  } else if (has("[/THINK]")) {
    traits.think_open = "[THINK]";
    traits.think_close = "[/THINK]";
  }
  return traits;
}

ThinkingStart ThinkingStartOf(std::string_view prompt, const ModelTraits& traits) {
  if (traits.think_close.empty()) return ThinkingStart::kOff;
  const size_t last = prompt.find_last_not_of(" \n\r\t");
  const std::string_view text = prompt.substr(0, last == std::string_view::npos ? 0 : last + 1);
  if (text.ends_with(traits.think_open)) return ThinkingStart::kOpen;
  if (text.ends_with(traits.think_close)) return ThinkingStart::kOff;
  return ThinkingStart::kMay;
}

Result<OutputPlan> MakePlan(const RequestConstraints& asked, const ModelTraits& traits,
                            ThinkingStart thinking, const PlanOptions& options) {
  using Kind = ConstraintSpec::Kind;
  OutputPlan plan;
  plan.thinking = traits.think_close.empty() ? ThinkingStart::kOff : thinking;
  plan.think_open = traits.think_open;
  plan.think_close = traits.think_close;
  for (const ToolSpec& tool : asked.tools) {
    plan.names.push_back(tool.name);
    plan.custom.push_back(tool.kind == ToolSpec::Kind::kCustom);
    json::Value parameters;
    if (traits.syntax == ToolSyntax::kQwenXml && tool.input.kind == Kind::kJsonSchema) {
      if (Result<json::Value> read = json::Parse(tool.input.text); read.ok()) {
        parameters = *std::move(read);
      }
    }
    plan.parameters.push_back(std::move(parameters));
  }
  const bool thinks = plan.thinking != ThinkingStart::kOff;
  const bool calls = asked.choice.mode != ToolChoice::Mode::kNone && !asked.choice.allowed.empty();
  std::string body;
  if (calls) {
    const bool one_call = asked.choice.mode == ToolChoice::Mode::kRequired &&
                          asked.choice.allowed.size() == 1 &&
                          (asked.choice.named || !MayCallOften(asked, traits.syntax));
    if (one_call && traits.syntax == ToolSyntax::kPlain) {
      const size_t index = asked.choice.allowed[0];
      const ToolSpec& tool = asked.tools[index];
      plan.direct = true;
      plan.calls = {
          {index, tool.kind == ToolSpec::Kind::kCustom ? Body::kRaw : Body::kJson, "", ""}};
      if (!thinks) {
        plan.grammar = tool.input;
        return plan;
      }
      Result<std::string> format = tool.input.AsFormat();
      if (!format.ok()) return format.error();
      body = *format;
    } else {
      Result<std::string> format = CallsFormat(asked, traits.syntax, plan);
      if (!format.ok()) return format.error();
      body = *format;
    }
    plan.grammar.pointer = "#/tools";
  } else {
    plan.grammar = asked.answer;
    if (!thinks) return plan;
    if (asked.answer.kind == Kind::kNone && options.thinking_tokens < 0) return plan;
    Result<std::string> format = asked.answer.AsFormat();
    if (!format.ok()) return format.error();
    body = *format;
  }
  UseFormat(plan, thinks ? Elements("sequence", {ThinkingFormat(plan, options), body}) : body);
  return plan;
}

}  // namespace pawl
