// Arbitrary bytes as a chat template: it is read or refused with a place, and what is read renders
// or is refused with a place, within the limits. What it renders is UTF-8, and its marks lie within
// it.
#include <string>

#include "src/base/utf8.h"
#include "src/text/chat/chat_template.h"
#include "tests/fuzz/fuzz_util.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pawl;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Result<ChatTemplate> chat = ChatTemplate::Parse(text);
  if (!chat.ok()) {
    fuzz::RequireGoodError(chat.error(), text);
    fuzz::Require(!chat.error().place.empty(), "an error without a place", text);
    return 0;
  }
  static const ChatInput* input = [] {
    auto* made = new ChatInput;
    made->messages = *json::Parse(
        R"([{"role":"system","content":"Be é."},{"role":"user","content":"a <|x|> b"},{"role":"assistant","content":null,)"
        R"("tool_calls":[{"id":"abcdefghi","function":{"name":"f","arguments":{"a":[1,2.5,true]}}}]},)"
        R"({"role":"tool","content":"7","n":18446744073709551616}])");
    made->tools = *json::Parse(
        R"([{"type":"function","function":{"name":"f","parameters":{"b":1,"a":[]}}}])");
    made->special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    made->now = std::tm{};
    return made;
  }();
  ChatLimits limits;
  limits.fuel = 100000;
  limits.max_output = 1 << 20;
  const Result<MarkedText> prompt = chat->Render(*input, limits);
  if (!prompt.ok()) {
    fuzz::RequireGoodError(prompt.error(), text);
    fuzz::Require(!prompt.error().place.empty(), "an error without a place", text);
    return 0;
  }
  fuzz::Require(FindInvalidUtf8(prompt->bytes()) == std::string::npos, "a prompt that is not UTF-8",
                text);
  size_t last = 0;
  for (const TextRange& range : prompt->data()) {
    fuzz::Require(range.begin >= last && range.begin < range.end && range.end <= prompt->size(),
                  "a mark outside of the text", text);
    last = range.end;
  }
  const Result<MarkedText> again = chat->Render(*input, limits);
  fuzz::Require(again.ok() && again->bytes() == prompt->bytes(), "another text the second time",
                text);
  return 0;
}
