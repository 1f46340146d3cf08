// ToolCallTag: the formats of the families (formats/) as structural tags for callers who have tools
// and no chat of their own.
#include <vector>

#include "grammar/tags/chat_tag.h"
#include "grammar/tags/formats/chat_formats.h"
#include "pawl/compiler.h"
#include "src/base/json.h"

namespace pawl {
namespace {

using Choice = ToolCallOptions::Choice;

// The public names; the format of kHermes is kHermesFormat.
#define PAWL_TOOL_CALL_FORMATS(value)                                                           \
  value(kLlama3) value(kHermes) value(kQwenXml) value(kDeepSeekR1) value(kDeepSeekV31)          \
      value(kMistral) value(kGptOss) value(kSeed) value(kDeepSeekV32) value(kDeepSeekV4)        \
          value(kMinistral) value(kMistralSmall) value(kGlm) value(kHunyuan) value(kApriel)     \
              value(kGemma4) value(kKimiK2) value(kKimiK3) value(kLfm2) value(kOlmo3)           \
                  value(kMiniCpm5) value(kGranite3) value(kNemotron) value(kFunctools)          \
                      value(kPhi4Mini) value(kCohere) value(kCommandR7b) value(kCommandR)       \
                          value(kMinimaxM1) value(kMinimaxM2) value(kMinimaxM3) value(kApertus) \
                              value(kGigaChat3) value(kGigaChat31) value(kFunctionary31)        \
                                  value(kFunctionary32) value(kSolar) value(kGlimmer)

const ChatFormat& FormatBy(ToolCallFormat format) {
  switch (format) {
#define PAWL_CASE(value)      \
  case ToolCallFormat::value: \
    return value##Format;
    PAWL_TOOL_CALL_FORMATS(PAWL_CASE)
#undef PAWL_CASE
  }
  return kLlama3Format;
}

Result<std::vector<TaggedCall>> CallsOf(const ChatFormat& format, std::span<const Tool> tools,
                                        const ToolCallOptions& options) {
  std::vector<TaggedCall> calls;
  for (const Tool& tool : tools) {
    if (options.choice == Choice::kNamed && tool.name != options.named) continue;
    std::string schema = R"({"type":"object"})";
    if (!tool.parameters.empty()) {
      auto parsed = json::Parse(tool.parameters);
      if (!parsed.ok()) {
        Error error = parsed.error();
        error.place = tool.name + ": " + error.place;
        return error;
      }
      schema = json::Dump(*parsed);
    }
    calls.push_back({tool.name, tag::Schema(schema, format.style)});
  }
  if (calls.empty() && options.choice == Choice::kNamed)
    return Error{ErrorCode::kInvalid, "no tool has this name", options.named};
  if (calls.empty() && options.choice == Choice::kRequired)
    return Error{ErrorCode::kInvalid, "a call is required, but there are no tools", ""};
  return calls;
}

// What the format, or the families that share it, put around thoughts. The opening mark may be in
// the prompt.
std::string ThoughtsBefore(const ChatFormat& format) {
  const bool mistral = format.trigger == "[TOOL_CALLS]";
  ThoughtFormat thoughts{.open = mistral ? "[THINK]" : "<think>",
                         .close = mistral ? "[/THINK]" : "</think>"};
  if (!format.think_close.empty()) thoughts = {format.think_open, format.think_close};
  if (format.marked()) return tag::Thoughts(&format, thoughts);
  return tag::Elements("sequence", {tag::Optional(tag::Const(thoughts.open)),
                                    tag::Tag("", tag::AnyText(), thoughts.close),
                                    tag::Optional(tag::Const("\n\n"))});
}

}  // namespace

std::optional<ToolCallFormat> ToolCallFormatOf(std::string_view name) {
  const ChatFormat* named = ChatFormatNamed(name);
#define PAWL_IF(value) \
  if (named == &value##Format) return ToolCallFormat::value;
  PAWL_TOOL_CALL_FORMATS(PAWL_IF)
#undef PAWL_IF
  return std::nullopt;
}

Result<std::string> ToolCallTag(ToolCallFormat format, std::span<const Tool> tools,
                                const ToolCallOptions& options) {
  const ChatFormat& chat = FormatBy(format);
  const Result<std::vector<TaggedCall>> calls = CallsOf(chat, tools, options);
  if (!calls.ok()) return calls.error();
  const bool many = options.parallel && options.choice != Choice::kNamed;
  std::string body = options.choice == Choice::kAuto ? tag::TextWithCalls(chat, *calls, many)
                                                     : tag::CallsAlone(chat, *calls, many);
  if (options.reasoning && format != ToolCallFormat::kLlama3) {
    body = tag::Elements("sequence", {ThoughtsBefore(chat), body});
  }
  return R"({"type":"structural_tag","format":)" + body + "}";
}

}  // namespace pawl
