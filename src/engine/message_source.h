// The text from which fields are copied in a chat that gives no other: what the user and the tools
// have said (docs/extraction.md).
//
//   Result<Grammar> bound = grammar.Bind(SourceOfMessages(messages));
#ifndef PAWL_SRC_ENGINE_MESSAGE_SOURCE_H_
#define PAWL_SRC_ENGINE_MESSAGE_SOURCE_H_

#include <string>

#include "src/base/json.h"
#include "src/base/source_text.h"

namespace pawl {

// `messages`: a list of objects with "role" and "content", a text or a list of parts with "text".
// No span crosses the border between two messages. The parts of one message are one text.
inline std::string SourceOfMessages(const json::Value& messages) {
  std::string source;
  for (const json::Value& message : messages.items) {
    const json::Value* const role = message.Find("role");
    if (role == nullptr ||
        (role->text != "user" && role->text != "tool" && role->text != "function"))
      continue;
    const json::Value* const content = message.Find("content");
    if (content == nullptr) continue;
    std::string said = content->type == json::Type::kString ? content->text : "";
    for (const json::Value& part : content->items) {
      const json::Value* const text = part.Find("text");
      if (text != nullptr && text->type == json::Type::kString) said += text->text;
    }
    if (said.empty()) continue;
    if (!source.empty()) source += kTextBorder;
    source += said;
  }
  return source;
}

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_MESSAGE_SOURCE_H_
