// Three ways in the order of what a model knows best: its own template for records, its chat
// template with the request as the user's words, plain text. Which one it is shows only here.
#include "src/engine/extract_prompt.h"

#include <utility>

#include "src/base/file.h"
#include "src/engine/model_files.h"
#include "src/engine/thinking.h"

namespace pawl {
namespace {

constexpr std::string_view kInstruction =
    "Extract a record from the text. Answer with JSON that is valid for the schema, nothing else.";

std::string Request(std::string_view schema, std::string_view text) {
  std::string request(kInstruction);
  request.append("\n\nSchema: ").append(schema).append("\n\nText: ").append(text);
  return request;
}

}  // namespace

Result<ExtractPrompt> ExtractPrompt::Make(PromptTemplate plain, const Result<ChatSource>& chat) {
  if (!plain.text.empty()) return ExtractPrompt(std::move(plain), std::nullopt);
  plain.text = Request("{schema}", "{text}") + "\n\nJSON: ";
  if (chat.ok()) return ExtractPrompt(std::move(plain), *chat);
  if (chat.error().code != ErrorCode::kIo) return chat.error();
  return ExtractPrompt(std::move(plain), std::nullopt);
}

Result<std::vector<TokenId>> ExtractPrompt::Encode(const Tokenizer& tokenizer,
                                                   std::string_view schema, std::string_view text,
                                                   int max_tokens,
                                                   const std::optional<std::tm>& now,
                                                   const Thinking& thinking) const {
  if (!chat_) return EncodePrompt(tokenizer, plain_, schema, text, max_tokens);
  ChatInput input;
  input.messages.type = json::Type::kArray;
  input.messages.items.push_back(MakeChatMessage("user", Request(schema, text)));
  input.special_tokens = chat_->special_tokens;
  TellTemplate(thinking, input.arguments);
  input.now = now;
  Result<MarkedText> prompt = chat_->chat.Render(input);
  if (!prompt.ok()) return InFile(chat_->place, prompt.error());
  return EncodeChatWithin(tokenizer, chat_->chat, *prompt, max_tokens);
}

}  // namespace pawl
