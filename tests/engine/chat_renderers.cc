// Written from the chat templates of the families and their documentation. Nothing here is taken
// from the table of formats, so that a mistake there is not repeated.
#include "tests/engine/chat_renderers.h"

#include <utility>

namespace pawl {
namespace {

using Calls = std::vector<RenderedCall>;
using json::Type;

std::string ValueText(const json::Value& value) {
  return value.type == Type::kString ? value.text : json::Dump(value);
}

// Each call by `one`, with `between` between them.
std::function<std::string(const Calls&)> Each(
    std::string before, std::string between, std::string after,
    std::function<std::string(const RenderedCall&, size_t)> one) {
  return [=](const Calls& calls) {
    std::string out = before;
    for (size_t i = 0; i < calls.size(); ++i) out += (i > 0 ? between : "") + one(calls[i], i);
    return out + after;
  };
}

std::function<std::string(const RenderedCall&, size_t)> JsonCall(std::string key,
                                                                 std::string before = "",
                                                                 std::string after = "") {
  return [=](const RenderedCall& call, size_t) {
    return before + "{\"name\": \"" + call.name + "\", \"" + key +
           "\": " + json::Dump(call.arguments) + "}" + after;
  };
}

std::function<std::string(const RenderedCall&, size_t)> Bare(std::string before, std::string middle,
                                                             std::string after) {
  return [=](const RenderedCall& call, size_t) {
    return before + call.name + middle + json::Dump(call.arguments) + after;
  };
}

// <tag KEY>VALUE</tag> for each argument.
std::string Parameters(const json::Value& arguments, const std::string& before,
                       const std::string& middle, const std::string& after,
                       const std::string& between) {
  std::string out;
  for (const auto& [key, value] : arguments.members) {
    out += before + key + middle + ValueText(value) + after + between;
  }
  return out;
}

std::string Dsml(const RenderedCall& call, size_t) {
  std::string out = "<｜DSML｜invoke name=\"" + call.name + "\">\n";
  for (const auto& [key, value] : call.arguments.members) {
    const bool string = value.type == Type::kString;
    out += "<｜DSML｜parameter name=\"" + key + "\" string=\"" + (string ? "true" : "false") +
           "\">" + ValueText(value) + "</｜DSML｜parameter>\n";
  }
  return out + "</｜DSML｜invoke>";
}

std::string KimiK3(const RenderedCall& call, size_t index) {
  std::string out =
      "<|open|>call tool=\"" + call.name + "\" index=\"" + std::to_string(index + 1) + "\"<|sep|>";
  for (const auto& [key, value] : call.arguments.members) {
    const std::string type = value.is_bool() ? "boolean" : json::TypeName(value.type);
    out += "<|open|>argument key=\"" + key + "\" type=\"" + type + "\"<|sep|>" + ValueText(value) +
           "<|close|>argument<|sep|>";
  }
  return out + "<|close|>call<|sep|>";
}

std::string Gemma(const json::Value& value) {
  if (value.type == Type::kString) return "<|\"|>" + value.text + "<|\"|>";
  if (value.type != Type::kObject && value.type != Type::kArray) return json::Dump(value);
  std::string out;
  for (const json::Value& item : value.items) out += (out.empty() ? "" : ",") + Gemma(item);
  for (const auto& [key, item] : value.members) {
    out += (out.empty() ? "" : ",") + key + ":" + Gemma(item);
  }
  return value.type == Type::kObject ? "{" + out + "}" : "[" + out + "]";
}

std::string Python(const json::Value& value) {
  if (value.type == Type::kTrue) return "True";
  if (value.type == Type::kFalse) return "False";
  if (value.type == Type::kNull) return "None";
  return json::Dump(value);
}

std::string PythonCall(const RenderedCall& call, size_t) {
  std::string out = call.name + "(";
  for (const auto& [key, value] : call.arguments.members) {
    out += (out.ends_with("(") ? "" : ", ") + key + "=" + Python(value);
  }
  return out + ")";
}

std::string Minimax3Value(const json::Value& value);

std::string Minimax3Element(const std::string& name, const json::Value& value) {
  const std::string mark = "]<]minimax[>[";
  return mark + "<" + name + ">" + Minimax3Value(value) + mark + "</" + name + ">";
}

std::string Minimax3Value(const json::Value& value) {
  if (value.type != Type::kObject && value.type != Type::kArray) return ValueText(value);
  std::string out;
  for (const json::Value& item : value.items) out += Minimax3Element("item", item);
  for (const auto& [key, item] : value.members) out += Minimax3Element(key, item);
  return out;
}

std::string MiniCpm(const RenderedCall& call, size_t) {
  std::string out = "<function name=\"" + call.name + "\">";
  for (const auto& [key, value] : call.arguments.members) {
    const bool wrap =
        value.type == Type::kString && value.text.find_first_of("<&\n") != std::string::npos;
    out += "<param name=\"" + key + "\">" +
           (wrap ? "<![CDATA[" + value.text + "]]>" : ValueText(value)) + "</param>";
  }
  return out + "</function>";
}

std::string Same(const std::string& text) { return text; }

std::function<std::string(const std::string&)> Between(std::string before, std::string after) {
  return [=](const std::string& text) { return before + text + after; };
}

const auto kThink = Between("<think>\n", "\n</think>\n\n");

void AddJsonFormats(std::vector<ChatRenderer>& all) {
  all.push_back({"llama3", Each("", "; ", "", JsonCall("parameters")), Same, Same, nullptr});
  all.push_back({"hermes",
                 Each("", "\n", "", JsonCall("arguments", "<tool_call>\n", "\n</tool_call>")), Same,
                 Same, kThink});
  all.push_back({"mistral",
                 Each("[TOOL_CALLS][", ", ", "]",
                      [](const RenderedCall& call, size_t) {
                        return "{\"name\": \"" + call.name +
                               "\", \"arguments\": " + json::Dump(call.arguments) +
                               ", \"id\": \"aB3dE5fG7\"}";
                      }),
                 Same, Same, nullptr});
  all.push_back({"ministral", Each("", "", "", Bare("[TOOL_CALLS]", "[ARGS]", "")), Same, Same,
                 Between("[THINK]", "[/THINK]")});
  all.push_back({"mistral_small",
                 Each("", "", "", Bare("[TOOL_CALLS]", "[CALL_ID]a1b2c3d4e[ARGS]", "")), Same, Same,
                 nullptr});
  all.push_back({"deepseek_r1",
                 Each("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>",
                      Bare("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n",
                           "\n```<｜tool▁call▁end｜>")),
                 Same, Same, kThink});
  all.push_back({"deepseek_v3_1",
                 Each("<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁end｜>",
                      Bare("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>")),
                 Same, Same, kThink});
  all.push_back({"kimi_k2",
                 Each("<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>",
                      [](const RenderedCall& call, size_t index) {
                        return "<|tool_call_begin|>functions." + call.name + ":" +
                               std::to_string(index) + "<|tool_call_argument_begin|>" +
                               json::Dump(call.arguments) + "<|tool_call_end|>";
                      }),
                 Same, Same, kThink});
  all.push_back(
      {"granite3", Each("<|tool_call|>[", ", ", "]", JsonCall("arguments")), Same, Same, kThink});
  all.push_back({"nemotron", Each("<TOOLCALL>[", ", ", "]</TOOLCALL>", JsonCall("arguments")), Same,
                 Same, kThink});
  all.push_back(
      {"functools", Each("functools[", ", ", "]", JsonCall("arguments")), Same, Same, nullptr});
  all.push_back({"phi4_mini",
                 Each("<|tool_call|>[", ", ", "]<|/tool_call|>", JsonCall("arguments")), Same, Same,
                 nullptr});
  all.push_back({"apriel", Each("<tool_calls>[", ", ", "]</tool_calls>", JsonCall("arguments")),
                 Same, Same,
                 Between("Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n")});
  all.push_back({"minimax_m1",
                 Each("<tool_calls>\n", "\n", "\n</tool_calls>", JsonCall("arguments")), Same, Same,
                 kThink});
  all.push_back({"apertus",
                 Each("<|tools_prefix|>[", ", ", "]<|tools_suffix|>", Bare("{\"", "\": ", "}")),
                 Same, Same, Between("<|inner_prefix|>", "<|inner_suffix|>")});
  all.push_back(
      {"gigachat3",
       Each("", "", "", JsonCall("arguments", "<|message_sep|>\n\nfunction call<|role_sep|>\n")),
       Same, Same, nullptr});
  all.push_back({"gigachat3_1", Each("", "", "", JsonCall("arguments", "<|function_call|>")), Same,
                 Same, nullptr});
  all.push_back({"functionary_v3_1", Each("", "", "", Bare("<function=", ">", "</function>")), Same,
                 Same, nullptr});
  all.push_back(
      {"command_r",
       Each("Action:\n```json\n[\n", ",\n", "\n]```",
            Bare("    {\n        \"tool_name\": \"", "\",\n        \"parameters\": ", "\n    }")),
       Same, Same, nullptr});
}

void AddMessageFormats(std::vector<ChatRenderer>& all) {
  const auto cohere = Each("<|START_ACTION|>[\n    ", ",\n    ", "\n]<|END_ACTION|>",
                           [](const RenderedCall& call, size_t index) {
                             return "{\"tool_call_id\": \"" + std::to_string(index) +
                                    "\", \"tool_name\": \"" + call.name +
                                    "\", \"parameters\": " + json::Dump(call.arguments) + "}";
                           });
  const auto cohere_thinks = Between("<|START_THINKING|>", "<|END_THINKING|>");
  const auto text = Between("<|START_TEXT|>", "<|END_TEXT|>");
  all.push_back({"cohere", cohere, text, text, cohere_thinks});
  const auto response = Between("<|START_RESPONSE|>", "<|END_RESPONSE|>");
  all.push_back({"command_r7b", cohere, response, response, cohere_thinks});
  all.push_back({"gpt_oss",
                 Each("", "<|start|>assistant", "",
                      Bare("<|channel|>commentary to=functions.", " <|constrain|>json<|message|>",
                           "<|call|>")),
                 Between("<|channel|>commentary<|message|>", "<|end|><|start|>assistant"),
                 Between("<|channel|>final<|message|>", ""),
                 Between("<|channel|>analysis<|message|>", "<|end|><|start|>assistant")});
  all.push_back({"functionary_v3_2", Each("", ">>>", "", Bare("", "\n", "")),
                 Between("all\n", ">>>"), Between("all\n", ""), nullptr, ""});
  all.push_back({"solar",
                 Each("<|tool_calls|>", "", "<|calls|>",
                      Bare("<|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>", "<|tool_call:args|>",
                           "<|tool_call:end|>")),
                 Between("<|content|>", "<|end|><|begin|>assistant"),
                 Between("<|content|>", "<|end|>"),
                 Between("<|think|>", "<|end|><|begin|>assistant")});
  all.push_back(
      {"kimi_k3", Each("<|open|>tools<|sep|>", "", "<|close|>tools<|sep|>", KimiK3),
       Between("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
       Between("<|open|>response<|sep|>", "<|close|>response<|sep|><|close|>message<|sep|>"),
       Between("<|open|>think<|sep|>", "<|close|>think<|sep|>"), "<|close|>argument<|sep|>"});
  all.push_back({"glimmer",
                 Each("", "<|eom|><|start|>assistant", "",
                      [](const RenderedCall& call, size_t) {
                        return " to=" + call.name + "<|message|><atem:function_calls>\n" +
                               "<atem:invoke name=\"" + call.name + "\">\n" +
                               Parameters(call.arguments, "<atem:parameter name=\"", "\">",
                                          "</atem:parameter>", "\n") +
                               "</atem:invoke>\n</atem:function_calls>";
                      }),
                 Between(" to=user<|message|>", "<|eom|><|start|>assistant"),
                 Between(" to=user<|message|>", ""),
                 Between(" to=self<|message|>", "<|eom|><|start|>assistant"), "</atem:parameter>"});
}

void AddElementFormats(std::vector<ChatRenderer>& all) {
  all.push_back({"qwen_xml",
                 Each("", "\n", "",
                      [](const RenderedCall& call, size_t) {
                        return "<tool_call>\n<function=" + call.name + ">\n" +
                               Parameters(call.arguments, "<parameter=", ">\n", "\n</parameter>",
                                          "\n") +
                               "</function>\n</tool_call>";
                      }),
                 Same, Same, kThink, "</parameter>"});
  all.push_back({"seed",
                 Each("", "\n", "",
                      [](const RenderedCall& call, size_t) {
                        return "<seed:tool_call>\n<function=" + call.name + ">\n" +
                               Parameters(call.arguments, "<parameter=", ">", "</parameter>",
                                          "\n") +
                               "</function>\n</seed:tool_call>";
                      }),
                 Same, Same, Between("<seed:think>", "</seed:think>\n"), "</parameter>"});
  all.push_back({"glm",
                 Each("", "\n", "",
                      [](const RenderedCall& call, size_t) {
                        return "<tool_call>" + call.name + "\n" +
                               Parameters(call.arguments, "<arg_key>", "</arg_key>\n<arg_value>",
                                          "</arg_value>", "\n") +
                               "</tool_call>";
                      }),
                 Same, Same, Between("<think>", "</think>\n"), "</arg_value>"});
  all.push_back({"hunyuan",
                 Each("<tool_calls:opensource>\n", "\n", "\n</tool_calls:opensource>",
                      [](const RenderedCall& call, size_t) {
                        return "<tool_call:opensource>" + call.name + "<tool_sep:opensource>\n" +
                               Parameters(call.arguments, "<arg_key:opensource>",
                                          "</arg_key:opensource>\n<arg_value:opensource>",
                                          "</arg_value:opensource>", "\n") +
                               "</tool_call:opensource>";
                      }),
                 Same, Same, Between("<think:opensource>", "</think:opensource>"),
                 "</arg_value:opensource>"});
  all.push_back({"deepseek_v3_2",
                 Each("<｜DSML｜function_calls>\n", "\n", "\n</｜DSML｜function_calls>", Dsml),
                 Same, Same, kThink, "</｜DSML｜parameter>"});
  all.push_back({"deepseek_v4",
                 Each("<｜DSML｜tool_calls>\n", "\n", "\n</｜DSML｜tool_calls>", Dsml), Same, Same,
                 kThink, "</｜DSML｜parameter>"});
  all.push_back({"gemma4",
                 Each("", "", "",
                      [](const RenderedCall& call, size_t) {
                        return "<|tool_call>call:" + call.name + Gemma(call.arguments) +
                               "<tool_call|>";
                      }),
                 Same, Same, Between("<|channel>thought\n", "<channel|>"), "<|\"|>"});
  all.push_back({"lfm2", Each("<|tool_call_start|>[", ", ", "]<|tool_call_end|>", PythonCall), Same,
                 Same, kThink});
  all.push_back({"olmo3", Each("<function_calls>\n", "\n", "\n</function_calls>", PythonCall), Same,
                 Same, kThink});
  all.push_back({"minicpm5", Each("", "\n", "", MiniCpm), Same, Same, kThink, "]]>"});
  all.push_back({"minimax_m2",
                 Each("<minimax:tool_call>\n", "\n", "\n</minimax:tool_call>",
                      [](const RenderedCall& call, size_t) {
                        return "<invoke name=\"" + call.name + "\">\n" +
                               Parameters(call.arguments, "<parameter name=\"", "\">",
                                          "</parameter>", "\n") +
                               "</invoke>";
                      }),
                 Same, Same, kThink, "</parameter>"});
  all.push_back({"minimax_m3",
                 Each("]<]minimax[>[<tool_call>\n", "\n", "\n]<]minimax[>[</tool_call>",
                      [](const RenderedCall& call, size_t) {
                        return "]<]minimax[>[<invoke name=\"" + call.name + "\">" +
                               Minimax3Value(call.arguments) + "]<]minimax[>[</invoke>";
                      }),
                 Same, Same, Between("<mm:think>", "</mm:think>"), "]<]minimax[>["});
}

}  // namespace

const std::vector<ChatRenderer>& ChatRenderers() {
  static const auto* all = [] {
    auto* made = new std::vector<ChatRenderer>();
    AddJsonFormats(*made);
    AddMessageFormats(*made);
    AddElementFormats(*made);
    return made;
  }();
  return *all;
}

}  // namespace pawl
