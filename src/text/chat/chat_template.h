// Chat templates: the prompt that a chat model expects, from a list of messages.
//
//   Result<ChatTemplate> chat = ChatTemplate::Parse("{% for m in messages %}...{% endfor %}");
//   ChatInput input;
//   input.messages = *json::Parse(R"([{"role": "user", "content": "Hello"}])");
//   Result<MarkedText> prompt = chat->Render(input);
//   std::vector<TokenId> tokens = EncodeChat(*tokenizer, *chat, *prompt);
//
// Templates are written in a subset of Jinja, the one that the templates of Llama 3, Mistral, Qwen,
// Gemma and SmolLM2 need; docs/chat_templates.md has it. Everything else is an error that names the
// place and what was expected. A template can neither change its input nor reach anything outside
// of it, and it runs within a limit of steps.
#ifndef PAWL_SRC_TEXT_CHAT_CHAT_TEMPLATE_H_
#define PAWL_SRC_TEXT_CHAT_CHAT_TEMPLATE_H_

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/json.h"
#include "src/text/chat/marked_text.h"
#include "src/text/tokenizer.h"

namespace pawl {

namespace jinja {
struct Program;
}

struct ChatLimits {
  // Instructions, list items and sixteenths of bytes that a rendering may spend; as many again for
  // each byte of its input.
  int64_t fuel = 10'000'000;
  size_t max_output = size_t{64} << 20;  // bytes
};

// What a template is given. Members that are null are none there.
struct ChatInput {
  // Objects with "role" and whatever else the template reads: "content", "tool_calls", ...
  json::Value messages;
  json::Value tools;      // a list of functions as JSON, or null
  json::Value documents;  // a list of documents, or null
  // The prompt ends where the answer begins.
  bool add_generation_prompt = true;
  // The texts of special tokens: bos_token, eos_token, ...; the only input that may become one.
  std::vector<std::pair<std::string, std::string>> special_tokens;
  // More variables: enable_thinking, ...
  std::vector<std::pair<std::string, json::Value>> arguments;
  // Local time, for templates that ask for it.
  std::optional<std::tm> now;
};

// kUnsupported, with the place, where a message has an image, a video, sound or a file, next to its
// content or as a part of it: a template would write a mark for it, and the model would answer as
// if it had seen it. Render asks it of each message.
Status CheckIsText(const json::Value& message, const std::string& place);

// The text of a message's content, which may be null, a string or a list of text parts. Errors: a
// part that has no text, by `pointer`.
Result<std::string> ContentText(const json::Value& content, const std::string& pointer);

// Contents that are lists of text parts become their text, which every template takes. Errors:
// those of CheckIsText and ContentText, at "#/messages/...".
Status JoinTextParts(ChatInput& input);

// Immutable; all const methods are thread-safe.
class ChatTemplate {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 20;

  // Errors: kInvalid and kUnsupported with place "line:column" and what was expected; kLimit.
  static Result<ChatTemplate> Parse(std::string_view source);

  // The prompt, with marks on what came from the input. Roles that are well known (user, assistant,
  // ...) and special_tokens count as the template's. Errors: kInvalid with the JSON Pointer of what
  // is wrong with the input, or with the "line:column" of the template that failed, also where the
  // template itself refuses; kLimit.
  Result<MarkedText> Render(const ChatInput& input, const ChatLimits& limits = {}) const;

  // Everything that the template may write by itself, separated by NUL.
  const std::string& literals() const { return literals_; }
  // Whether the template's text has this word, a variable say.
  bool Mentions(std::string_view word) const;

 private:
  std::shared_ptr<const jinja::Program> program_;
  std::string literals_;
};

// The tokens of a rendered prompt. Where the template wrote a special token it becomes that token;
// what the input spells never does, nor any other added token that the template uses, unless
// `trust_input`. Input that spells none gets the same tokens either way.
std::vector<TokenId> EncodeChat(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                const MarkedText& prompt, bool trust_input = false);
// The same within a model's context. Errors: as Tokenizer::EncodeWithin.
Result<std::vector<TokenId>> EncodeChatWithin(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                              const MarkedText& prompt, int max_tokens,
                                              bool trust_input = false);

// Where a model keeps its chat template, and the special tokens that it may write.
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

// Chat input as JSON, in the words of the requests that chat servers take:
//
//   {"messages": [{"role": "user", "content": "Hello"}], "tools": [...], "add_generation_prompt":
//   true,
//    "chat_template_kwargs": {"enable_thinking": false}}
//
// or the list of messages alone.

// Errors: kInvalid with the JSON Pointer of what is wrong, also for members that are not known.
Result<ChatInput> ChatInputFromJson(const json::Value& value);

// "2025-03-14" or "2025-03-14T09:26:53", a date that exists. Errors: kInvalid.
Result<std::tm> ParseTime(std::string_view text);

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_CHAT_CHAT_TEMPLATE_H_
