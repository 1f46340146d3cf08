// Where a model keeps its chat template, and the special tokens that it may write.
#ifndef PAWL_SRC_TEXT_CHAT_CHAT_SOURCE_H_
#define PAWL_SRC_TEXT_CHAT_CHAT_SOURCE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "src/text/chat/chat_template.h"

namespace pawl {

struct ChatSource {
  ChatTemplate chat;
  std::string place;  // the file and what in it
  std::vector<std::pair<std::string, std::string>> special_tokens;
};

// Of a model folder: chat_template.jinja, else "chat_template" of tokenizer_config.json: a string,
// or a list of {"name", "template"}. `name`: of the list's templates; empty: "default". The special
// tokens are those of tokenizer_config.json. Errors: kIo when there is no template; kInvalid,
// kUnsupported and kLimit with the file and the JSON Pointer or line:column.
Result<ChatSource> LoadChatSource(const std::string& folder, std::string_view name);

// A template from elsewhere; `place` begins the places of errors.
Result<ChatSource> MakeChatSource(std::string_view text, std::string place);

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_CHAT_CHAT_SOURCE_H_
