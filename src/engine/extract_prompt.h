// The prompt of `pawl extract`: that of pawl.json where there is one; else the model's chat
// template around a general instruction, the schema and the text, as what the user says (not every
// template takes a system message); else the same as plain text.
//
//   Result<ExtractPrompt> prompt = ExtractPrompt::Load(folder, tokenizer);
//   Result<std::vector<TokenId>> tokens = prompt->Encode(tokenizer, schema, text, context_length);
#ifndef PAWL_SRC_ENGINE_EXTRACT_PROMPT_H_
#define PAWL_SRC_ENGINE_EXTRACT_PROMPT_H_

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "src/engine/prompt.h"
#include "src/text/chat/chat_source.h"

namespace pawl {

class ExtractPrompt {
 public:
  // `path`: a model folder or a GGUF file. `now`: what templates may ask for; nullopt: each Encode
  // gives it. Errors: those of pawl.json and of a chat template that cannot be read or, as far as
  // the time is known, refuses what a user says.
  static Result<ExtractPrompt> Load(const std::string& path, const Tokenizer& tokenizer,
                                    const std::optional<std::tm>& now);

  // What stands in the schema and the text never becomes a special token. `max_tokens`: the model's
  // context. Errors: those of the chat template; kLimit as EncodeText.
  Result<std::vector<TokenId>> Encode(const Tokenizer& tokenizer, std::string_view schema,
                                      std::string_view text, int max_tokens) const;
  Result<std::vector<TokenId>> Encode(const Tokenizer& tokenizer, std::string_view schema,
                                      std::string_view text, int max_tokens,
                                      const std::optional<std::tm>& now) const;

  // What pawl.json says, or the tokenizer.
  const PromptTemplate& plain() const { return plain_; }

 private:
  ExtractPrompt(PromptTemplate plain, std::optional<ChatSource> chat,
                const std::optional<std::tm>& now);

  PromptTemplate plain_;
  std::optional<ChatSource> chat_;
  std::optional<std::tm> now_;
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_EXTRACT_PROMPT_H_
