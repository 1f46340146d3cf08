// What chat templates are, and what outputs mean, for scripts/check_chat_formats.py.
//
//   format_tool FILE...               # FILE <tab> format or "-" <tab> mark that opens thoughts
//   <tab>
//                                     # mark that closes them; "!" and the error for a format
//   format_tool --read FORMAT TOOLS   # an output on stdin; its parts as JSON. TOOLS: a list of
//                                     # {"name": ..., "parameters": ...}
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "src/base/file.h"
#include "src/engine/output_parser.h"
#include "src/text/chat/chat_template.h"

namespace pawl {
namespace {

int Recognise(const char* path) {
  const auto text = ReadFile(path);
  if (!text.ok()) {
    std::fprintf(stderr, "%s\n", text.error().ToString().c_str());
    return 1;
  }
  const auto chat = ChatTemplate::Parse(*text);
  if (!chat.ok()) {
    std::printf("%s\t!\t%s\t\n", path, chat.error().ToString().c_str());
    return 0;
  }
  const ModelTraits traits = TraitsOf(chat->literals());
  std::string open = traits.think_open;
  for (size_t at = 0; (at = open.find('\n', at)) != std::string::npos;) open.replace(at, 1, "\\n");
  std::printf("%s\t%s\t%s\t%s\n", path,
              traits.format == nullptr ? "-" : std::string(traits.format->name).c_str(),
              open.c_str(), traits.think_close.c_str());
  return 0;
}

int ReadOutput(const char* format, const char* tools) {
  const auto list = json::Parse(tools);
  ModelTraits traits = TraitsOf("<think></think>", ChatFormatNamed(format));
  if (!list.ok() || traits.format == nullptr) return 1;
  RequestConstraints asked;
  for (const json::Value& one : list->items) {
    ToolSpec tool;
    tool.name = one.Find("name")->text;
    tool.input.kind = ConstraintSpec::Kind::kJsonSchema;
    tool.input.text = json::Dump(*one.Find("parameters"));
    asked.tools.push_back(std::move(tool));
    asked.choice.allowed.push_back(asked.choice.allowed.size());
  }
  asked.choice.mode = ToolChoice::Mode::kAuto;
  const auto plan = MakePlan(asked, traits, ThinkingStart::kMay);
  if (!plan.ok()) return 1;
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  OutputParser parser(*plan);
  std::vector<Delta> deltas = parser.Feed(text);
  for (Delta& delta : parser.Finish()) deltas.push_back(std::move(delta));
  std::string reasoning, content, calls;
  for (const Delta& delta : deltas) {
    if (delta.kind == Delta::Kind::kReasoning) reasoning += delta.text;
    if (delta.kind == Delta::Kind::kContent) content += delta.text;
    if (delta.kind == Delta::Kind::kCallBegin) {
      calls +=
          (calls.empty() ? "" : ",") + ("{\"name\":" + json::Quote(delta.text)) + ",\"arguments\":";
    }
    if (delta.kind == Delta::Kind::kArguments) calls += delta.text;
    if (delta.kind == Delta::Kind::kCallEnd) calls += "}";
  }
  std::printf("{\"reasoning\":%s,\"content\":%s,\"calls\":[%s]}\n", json::Quote(reasoning).c_str(),
              json::Quote(content).c_str(), calls.c_str());
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--read") return pawl::ReadOutput(argv[2], argv[3]);
  for (int i = 1; i < argc; ++i) {
    if (pawl::Recognise(argv[i]) != 0) return 1;
  }
  return 0;
}
