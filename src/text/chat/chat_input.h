// Chat input as JSON, in the words of the requests that chat servers take:
//
//   {"messages": [{"role": "user", "content": "Hello"}], "tools": [...], "add_generation_prompt":
//   true,
//    "chat_template_kwargs": {"enable_thinking": false}}
//
// or the list of messages alone.
#ifndef PAWL_SRC_TEXT_CHAT_CHAT_INPUT_H_
#define PAWL_SRC_TEXT_CHAT_CHAT_INPUT_H_

#include <ctime>
#include <string_view>

#include "pawl/result.h"
#include "src/base/json.h"
#include "src/text/chat/chat_template.h"

namespace pawl {

// Errors: kInvalid with the JSON Pointer of what is wrong, also for members that are not known.
Result<ChatInput> ChatInputFromJson(const json::Value& value);

// "2025-03-14" or "2025-03-14T09:26:53", a date that exists. Errors: kInvalid.
Result<std::tm> ParseTime(std::string_view text);

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_CHAT_CHAT_INPUT_H_
