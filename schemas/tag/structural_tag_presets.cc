// The formats are those of the families' own chat templates: what a template renders of a tool call
// is what the model was trained to write, so that is what is asked for, with the white space there.
#include <vector>

#include "pawl/compiler.h"
#include "src/base/json.h"

namespace pawl {
namespace {

using json::Quote;
using Choice = ToolCallOptions::Choice;

// A name inside of a JSON string.
std::string InString(std::string_view text) {
  const std::string quoted = Quote(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string Const(std::string_view text) {
  return R"({"type":"const_string","value":)" + Quote(text) + "}";
}

std::string List(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ",") + part;
  return "[" + out + "]";
}

std::string Formats(const char* type, const std::vector<std::string>& parts) {
  if (parts.size() == 1) return parts[0];
  return std::string(R"({"type":")") + type + R"(","elements":)" + List(parts) + "}";
}

std::string Schema(const std::string& schema, const char* style = nullptr) {
  return R"({"type":"json_schema","json_schema":)" + schema +
         (style == nullptr ? "" : std::string(R"(,"style":")") + style + "\"") + "}";
}

// `end`: JSON.
std::string TagTo(std::string_view begin, const std::string& content, const std::string& end) {
  return R"({"type":"tag","begin":)" + Quote(begin) + R"(,"content":)" + content + R"(,"end":)" +
         end + "}";
}

std::string Tag(std::string_view begin, const std::string& content, std::string_view end) {
  return TagTo(begin, content, Quote(end));
}

const char* Bool(bool value) { return value ? "true" : "false"; }

std::string Separated(const std::vector<std::string>& tags, std::string_view separator,
                      bool parallel) {
  return R"({"type":"tags_with_separator","separator":)" + Quote(separator) +
         R"(,"at_least_one":true,"stop_after_first":)" + Bool(!parallel) + R"(,"tags":)" +
         List(tags) + "}";
}

constexpr const char* kText = R"({"type":"any_text"})";

std::string Thinking(std::string_view open, std::string_view close, std::string_view behind) {
  return Formats("sequence",
                 {R"({"type":"optional","content":)" + Const(open) + "}", Tag("", kText, close),
                  R"({"type":"optional","content":)" + Const(behind) + "}"});
}

struct Call {
  std::string name, schema;
};

// Text with calls in it, or calls alone.
std::string Calls(std::string_view trigger, const std::vector<std::string>& tags,
                  const ToolCallOptions& options, bool once) {
  if (tags.empty()) return kText;
  const bool stop = once || !options.parallel || options.choice == Choice::kNamed;
  return R"({"type":"triggered_tags","triggers":[)" + Quote(trigger) + R"(],"tags":)" + List(tags) +
         R"(,"at_least_one":)" + Bool(options.choice != Choice::kAuto) + R"(,"stop_after_first":)" +
         Bool(stop) + "}";
}

std::string DeepSeek(const std::vector<Call>& calls, const ToolCallOptions& options, bool fenced) {
  std::vector<std::string> tags;
  for (const Call& call : calls) {
    tags.push_back(
        fenced ? Tag("<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + call.name + "\n```json\n",
                     Schema(call.schema), "\n```<｜tool▁call▁end｜>")
               : Tag("<｜tool▁call▁begin｜>" + call.name + "<｜tool▁sep｜>", Schema(call.schema),
                     "<｜tool▁call▁end｜>"));
  }
  if (tags.empty()) return kText;
  const bool parallel = options.parallel && options.choice != Choice::kNamed;
  return Calls("<｜tool▁calls▁begin｜>",
               {Tag("<｜tool▁calls▁begin｜>", Separated(tags, fenced ? "\n" : "", parallel),
                    "<｜tool▁calls▁end｜>")},
               options, true);
}

std::string Mistral(const std::vector<Call>& calls, const ToolCallOptions& options) {
  std::vector<std::string> tags;
  for (const Call& call : calls) {
    tags.push_back(Tag(R"({"name": ")" + InString(call.name) + R"(", "arguments": )",
                       Schema(call.schema), "}"));
  }
  if (tags.empty()) return kText;
  const bool parallel = options.parallel && options.choice != Choice::kNamed;
  const std::string list =
      Formats("sequence", {R"({"type":"optional","content":)" + Const(" ") + "}", Const("["),
                           Separated(tags, ", ", parallel), Const("]")});
  return Calls("[TOOL_CALLS]", {Tag("[TOOL_CALLS]", list, "")}, options, true);
}

// The prompt ends with <|start|>assistant; every further message begins with it.
std::string GptOss(const std::vector<Call>& calls, const ToolCallOptions& options) {
  const std::string next = Const("<|start|>assistant");
  std::vector<std::string> before, last;
  if (options.reasoning) before.push_back(Tag("<|channel|>analysis<|message|>", kText, "<|end|>"));
  if (options.choice == Choice::kAuto) {
    before.push_back(Tag("<|channel|>commentary<|message|>", kText, "<|end|>"));
    last.push_back(TagTo("<|channel|>final<|message|>", kText, R"(["<|return|>","<|end|>",""])"));
  }
  for (const Call& call : calls) {
    const std::string to = " to=functions." + call.name;
    for (const std::string& begin : {"<|channel|>commentary" + to + " <|constrain|>json<|message|>",
                                     "<|channel|>commentary" + to + "<|constrain|>json<|message|>",
                                     to + "<|channel|>commentary <|constrain|>json<|message|>",
                                     to + "<|channel|>commentary json<|message|>"}) {
      last.push_back(Tag(begin, Schema(call.schema), "<|call|>"));
    }
  }
  std::vector<std::string> parts;
  if (!before.empty()) {
    parts.push_back(R"({"type":"star","content":)" +
                    Formats("sequence", {Formats("or", before), next}) + "}");
  }
  parts.push_back(Formats("or", last));
  return Formats("sequence", parts);
}

}  // namespace

std::optional<ToolCallFormat> ToolCallFormatOf(std::string_view name) {
  if (name == "llama3") return ToolCallFormat::kLlama3;
  if (name == "hermes" || name == "qwen") return ToolCallFormat::kHermes;
  if (name == "qwen_xml") return ToolCallFormat::kQwenXml;
  if (name == "deepseek_r1" || name == "deepseek_v3") return ToolCallFormat::kDeepSeekR1;
  if (name == "deepseek_v3_1") return ToolCallFormat::kDeepSeekV31;
  if (name == "mistral") return ToolCallFormat::kMistral;
  if (name == "gpt_oss") return ToolCallFormat::kGptOss;
  return std::nullopt;
}

Result<std::string> ToolCallTag(ToolCallFormat format, std::span<const Tool> tools,
                                const ToolCallOptions& options) {
  std::vector<Call> calls;
  for (const Tool& tool : tools) {
    if (options.choice == Choice::kNamed && tool.name != options.named) continue;
    if (tool.parameters.empty()) {
      calls.push_back({tool.name, R"({"type":"object"})"});
      continue;
    }
    auto schema = json::Parse(tool.parameters);
    if (!schema.ok()) {
      Error error = schema.error();
      error.place = tool.name + ": " + error.place;
      return error;
    }
    calls.push_back({tool.name, json::Dump(*schema)});
  }
  if (calls.empty() && options.choice == Choice::kNamed)
    return Error{ErrorCode::kInvalid, "no tool has this name", options.named};
  if (calls.empty() && options.choice == Choice::kRequired)
    return Error{ErrorCode::kInvalid, "a call is required, but there are no tools", ""};
  const auto each = [&](std::string_view trigger, const auto& tag_of) {
    std::vector<std::string> tags;
    for (const Call& call : calls) tags.push_back(tag_of(call));
    return Calls(trigger, tags, options, false);
  };
  std::string body;
  switch (format) {
    case ToolCallFormat::kLlama3:
      body = each(R"({"name": )", [](const Call& call) {
        return Tag(R"({"name": ")" + InString(call.name) + R"(", "parameters": )",
                   Schema(call.schema), "}");
      });
      break;
    case ToolCallFormat::kHermes:
      body = each("<tool_call>", [](const Call& call) {
        return Tag("<tool_call>\n{\"name\": \"" + InString(call.name) + "\", \"arguments\": ",
                   Schema(call.schema), "}\n</tool_call>");
      });
      break;
    case ToolCallFormat::kQwenXml:
      body = each("<tool_call>", [](const Call& call) {
        return Tag("<tool_call>\n<function=" + call.name + ">", Schema(call.schema, "qwen_xml"),
                   "</function>\n</tool_call>");
      });
      break;
    case ToolCallFormat::kDeepSeekR1:
      body = DeepSeek(calls, options, true);
      break;
    case ToolCallFormat::kDeepSeekV31:
      body = DeepSeek(calls, options, false);
      break;
    case ToolCallFormat::kMistral:
      body = Mistral(calls, options);
      break;
    case ToolCallFormat::kGptOss:
      body = GptOss(calls, options);
      break;
  }
  if (options.reasoning && format != ToolCallFormat::kLlama3 && format != ToolCallFormat::kGptOss) {
    const bool mistral = format == ToolCallFormat::kMistral;
    body = Formats("sequence", {Thinking(mistral ? "[THINK]" : "<think>",
                                         mistral ? "[/THINK]" : "</think>", "\n\n"),
                                body});
  }
  return R"({"type":"structural_tag","format":)" + body + "}";
}

}  // namespace pawl
