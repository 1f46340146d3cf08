// What each format of chats looks like, written by hand apart from the table under test: the calls
// as the chat template of the family renders them, and the marks around thoughts and answers.
#ifndef PAWL_TESTS_ENGINE_CHAT_RENDERERS_H_
#define PAWL_TESTS_ENGINE_CHAT_RENDERERS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json.h"

namespace pawl {

struct RenderedCall {
  std::string name;
  json::Value arguments;  // an object
};

struct ChatRenderer {
  const char* format;
  // Of one or more calls, at least one.
  std::function<std::string(const std::vector<RenderedCall>&)> calls;
  // Text before calls, and an answer without calls.
  std::function<std::string(const std::string&)> note, answer;
  // Thoughts, with what follows them; empty: the family has none.
  std::function<std::string(const std::string&)> thoughts;
  // What no string of arguments can hold: all that no JSON writes.
  std::string excluded = {};
};

const std::vector<ChatRenderer>& ChatRenderers();

}  // namespace pawl

#endif  // PAWL_TESTS_ENGINE_CHAT_RENDERERS_H_
