// One structural tag holds everything: [thinking] then ( answer | text with calls | calls ).
//
//   tool_choice  answer asked for  body
//   none         no                anything
//   none         yes               the answer
//   auto         no                text in which calls may stand (0..n, or 0..1)
//   auto         yes               calls (1..n, or 1) or the answer: the first token decides
//   required     -                 calls (1..n, or 1)
//   named        -                 one call of that tool
//
// Where there is neither thinking nor a tool the constraint stays what it was: a schema alone is
// compiled as a schema, and its output is what `pawl extract` would write. A format with marks
// around the answer has them there as well.
//
// A model without a chat template has not learned to write calls. Where exactly one call of one
// tool is asked for, its arguments alone are the output ("direct"); the wrapper would be forced
// text anyway. Nor has it learned to stop calling, so it may call once unless the request says that
// it may call more often.
#include "src/engine/output_plan.h"

#include <algorithm>
#include <utility>

#include "grammar/tags/chat_tag.h"
#include "grammar/tags/formats/chat_formats.h"
#include "src/base/json.h"

namespace pawl {
namespace {

using Body = CallSyntax::Body;

CallSyntax CallOf(const ChatFormat& format, const ToolSpec& tool, size_t index) {
  CallSyntax call;
  call.tool = index;
  const bool custom = tool.kind == ToolSpec::Kind::kCustom;
  const bool raw = custom && tool.input.kind == ConstraintSpec::Kind::kGrammar;
  call.body = raw ? Body::kRaw : custom ? Body::kInput : Body::kArguments;
  std::vector<std::string_view> opens = TextsOf(format.call_open);
  std::vector<std::string_view> closes = TextsOf(format.call_close);
  if (raw && !format.raw_open.empty()) opens = {format.raw_open};
  if (raw && !format.raw_close.empty()) closes = {format.raw_close};
  for (const std::string_view open : opens) call.opens.push_back(PiecesOf(open, tool.name));
  for (const std::string_view close : closes) call.closes.push_back(PiecesOf(close, tool.name));
  if (raw && !call.closes[0].empty()) call.raw_close = call.closes[0][0].text;
  return call;
}

Result<std::string> BodyFormat(const ChatFormat& format, const ToolSpec& tool, Body body) {
  if (body == Body::kArguments && !format.style.empty()) {
    return tag::Schema(tool.Arguments().text, format.style);
  }
  if (body != Body::kInput) return tool.Arguments().AsFormat();
  std::string input = R"({"type":"string"})";
  if (tool.input.kind == ConstraintSpec::Kind::kRegex) {
    input = R"({"type":"string","pattern":)" + json::Quote("^(?:" + tool.input.text + ")$") + "}";
  }
  return R"({"type":"json_schema","json_schema":{"type":"object","properties":{"input":)" + input +
         R"(},"required":["input"],"additionalProperties":false}})";
}

void UseFormat(OutputPlan& plan, const std::string& format) {
  plan.grammar.kind = ConstraintSpec::Kind::kStructuralTag;
  plan.grammar.text = tag::Concat({R"({"type":"structural_tag","format":)", format, "}"});
}

bool MayCallOften(const RequestConstraints& asked, const ChatFormat& format) {
  return asked.parallel && (asked.asked_parallel || &format != &kPlainFormat);
}

Result<std::string> CallsFormat(const RequestConstraints& asked, const ChatFormat& format,
                                OutputPlan& plan) {
  const bool many = MayCallOften(asked, format) && !asked.choice.named;
  std::vector<TaggedCall> calls;
  for (const size_t index : asked.choice.allowed) {
    const ToolSpec& tool = asked.tools[index];
    plan.calls.push_back(CallOf(format, tool, index));
    const Body body = plan.calls.back().body;
    Result<std::string> content = BodyFormat(format, tool, body);
    if (!content.ok()) return content.error();
    calls.push_back({tool.name, *std::move(content), body == Body::kRaw});
  }
  const bool required = asked.choice.mode == ToolChoice::Mode::kRequired;
  if (required) return tag::CallsAlone(format, calls, many);
  if (asked.answer.kind != ConstraintSpec::Kind::kNone) {
    Result<std::string> answer = asked.answer.AsFormat();
    if (!answer.ok()) return answer.error();
    return tag::Elements("or",
                         {tag::CallsAlone(format, calls, many), tag::Answer(format, *answer)});
  }
  return tag::TextWithCalls(format, calls, many);
}

// The first characters of what may stand behind the arguments of a call.
std::string BehindOf(const ChatFormat& format) {
  std::string first;
  const auto add = [&](std::string_view text) {
    if (!text.empty()) first += text[0];
  };
  for (const std::string_view close : TextsOf(format.call_close)) add(close);
  for (const std::string_view close : TextsOf(format.list_close)) add(close);
  add(format.separator);
  add(format.trigger);
  return first;
}

// The output is what is asked for alone: no thoughts, no calls, no marks.
bool StandsAlone(const OutputPlan& plan, const RequestConstraints& asked,
                 const PlanOptions& options) {
  const bool none = asked.answer.kind == ConstraintSpec::Kind::kNone;
  if (none && options.thinking_tokens < 0) return true;
  return plan.thinking == ThinkingStart::kOff && (none || !plan.marked());
}

Result<std::string> BodyOf(const RequestConstraints& asked, const ModelTraits& traits,
                           OutputPlan& plan, bool calls) {
  if (!calls) {
    Result<std::string> answer = asked.answer.AsFormat();
    if (!answer.ok() || traits.format == nullptr) return answer;
    return tag::Answer(*traits.format, *answer);
  }
  const ChatFormat& format = *traits.format;
  const bool one_call = asked.choice.mode == ToolChoice::Mode::kRequired &&
                        asked.choice.allowed.size() == 1 && !asked.choice.as_one_of &&
                        (asked.choice.named || !MayCallOften(asked, format));
  if (!one_call || &format != &kPlainFormat) return CallsFormat(asked, format, plan);
  const size_t index = asked.choice.allowed[0];
  const ToolSpec& tool = asked.tools[index];
  plan.direct = true;
  CallSyntax call;
  call.tool = index;
  call.body = tool.kind == ToolSpec::Kind::kCustom ? Body::kRaw : Body::kArguments;
  plan.calls = {std::move(call)};
  return tool.Arguments().AsFormat();
}

}  // namespace

ModelTraits TraitsOf(std::string_view chat) { return TraitsOf(chat, FormatOf(chat)); }

ModelTraits TraitsOf(std::string_view chat, const ChatFormat* format) {
  ModelTraits traits;
  traits.format = format;
  const ThinkMarks marks = ThinkMarksOf(chat, format);
  traits.think_open = marks.open;
  traits.think_close = marks.close;
  return traits;
}

ModelTraits PlainTraits() { return {.format = &kPlainFormat, .think_open = "", .think_close = ""}; }

ThinkingStart ThinkingStartOf(std::string_view prompt, const ModelTraits& traits) {
  if (traits.think_close.empty()) return ThinkingStart::kOff;
  const auto without_spaces = [](std::string_view text) {
    const size_t last = text.find_last_not_of(" \n\r\t");
    return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
  };
  const std::string_view text = without_spaces(prompt);
  const std::string_view open = without_spaces(traits.think_open);
  if (!open.empty() && text.ends_with(open)) return ThinkingStart::kOpen;
  if (traits.format != nullptr && traits.format->marked() && !traits.format->next.empty()) {
    // The mark that closes thoughts closes all messages: only an empty block says that they are
    // over.
    const std::string empty =
        traits.think_open + traits.think_close + std::string(traits.format->next);
    return text.ends_with(empty) ? ThinkingStart::kOff : ThinkingStart::kMay;
  }
  if (text.ends_with(traits.think_close)) return ThinkingStart::kOff;
  return ThinkingStart::kMay;
}

bool OutputPlan::IsMark(std::string_view name) const {
  if (name.empty()) return false;
  const auto has = [&](std::string_view text) { return text.find(name) != std::string_view::npos; };
  if (thinking != ThinkingStart::kOff && (has(think_open) || has(think_close))) return true;
  if (!marked()) return false;
  const ChatFormat& f = *format;
  return std::ranges::any_of(TextsOf(f.answer_open), has) || has(f.answer_close) ||
         has(f.note_open) || has(f.note_close) || has(f.next) || has(f.tail);
}

Result<OutputPlan> MakePlan(const RequestConstraints& asked, const ModelTraits& traits,
                            ThinkingStart thinking, const PlanOptions& options) {
  using Kind = ConstraintSpec::Kind;
  OutputPlan plan;
  plan.format = traits.format;
  plan.thinking = traits.think_close.empty() ? ThinkingStart::kOff : thinking;
  plan.think_open = traits.think_open;
  plan.think_close = traits.think_close;
  const bool styled = traits.format != nullptr && !traits.format->style.empty();
  for (const ToolSpec& tool : asked.tools) {
    plan.names.push_back(tool.name);
    plan.custom.push_back(tool.kind == ToolSpec::Kind::kCustom);
    json::Value parameters;
    if (styled && tool.input.kind == Kind::kJsonSchema) {
      if (Result<json::Value> read = json::Parse(tool.input.text); read.ok()) {
        parameters = *std::move(read);
      }
    }
    plan.parameters.push_back(std::move(parameters));
  }
  bool calls = asked.choice.mode != ToolChoice::Mode::kNone && !asked.choice.allowed.empty();
  if (calls && traits.format == nullptr) {
    if (asked.choice.mode == ToolChoice::Mode::kRequired) {
      return Error{ErrorCode::kUnsupported,
                   "cannot be required: the model's chat template shows no form of tool calls that "
                   "is known; `pawl serve --tool-syntax NAME` names one",
                   "#/tool_choice"};
    }
    plan.no_form_of_calls = true;
    calls = false;
  }
  if (calls) plan.behind = BehindOf(*traits.format);
  if (!calls) {
    plan.grammar = asked.answer;
    if (StandsAlone(plan, asked, options)) return plan;
  }
  Result<std::string> body = BodyOf(asked, traits, plan, calls);
  if (!body.ok()) return body.error();
  const bool thinks = plan.thinking != ThinkingStart::kOff;
  if (plan.direct && !thinks) {
    plan.grammar = asked.tools[asked.choice.allowed[0]].Arguments();
    return plan;
  }
  if (calls) plan.grammar.pointer = "#/tools";
  const ThoughtFormat thoughts = {.open = plan.think_open,
                                  .close = plan.think_close,
                                  .opened = plan.thinking == ThinkingStart::kOpen,
                                  .max_tokens = options.thinking_tokens};
  UseFormat(plan, thinks
                      ? tag::Elements("sequence", {tag::Thoughts(traits.format, thoughts), *body})
                      : *body);
  return plan;
}

}  // namespace pawl
