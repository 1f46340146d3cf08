// A case of tests/data/chat: a template and its input as JSON.
#ifndef PAWL_TESTS_TEXT_CHAT_CASE_H_
#define PAWL_TESTS_TEXT_CHAT_CASE_H_

#include <utility>

#include "src/text/chat/chat_template.h"

namespace pawl {

inline Result<MarkedText> RenderCase(const json::Value& value) {
  const json::Value* source = value.Find("template");
  // The template gets the messages as they stand there, also none and null: what is compared is the
  // language.
  json::Value given = *value.Find("input");
  json::Value* messages = &given;
  for (auto& [key, member] : given.members) {
    if (key == "messages") messages = &member;
  }
  const json::Value as_given = std::exchange(*messages, *json::Parse("[{}]"));
  Result<ChatInput> input = ChatInputFromJson(given);
  if (!input.ok()) return input.error();
  input->messages = as_given;
  if (const json::Value* special = value.Find("special")) {
    for (const auto& [name, text] : special->members) {
      input->special_tokens.emplace_back(name, text.text);
    }
  }
  if (const json::Value* now = value.Find("now")) {
    Result<std::tm> time = ParseTime(now->text);
    if (!time.ok()) return time.error();
    input->now = *time;
  }
  const Result<ChatTemplate> chat = ChatTemplate::Parse(source->text);
  if (!chat.ok()) return chat.error();
  return chat->Render(*input);
}

}  // namespace pawl

#endif  // PAWL_TESTS_TEXT_CHAT_CASE_H_
