// The prompt of `pawl extract`: that of pawl.json where there is one; else the model's chat
// template around an instruction, a view of the schema, the examples and the text, as what the user
// says (not every template takes a system message); else the same as plain text.
//
//   Result<ExtractPrompt> prompt = ExtractPrompt::Make(plain, chat);
//   Result<std::vector<TokenId>> tokens = prompt->Encode(tokenizer, input, length, now);
#ifndef PAWL_SRC_ENGINE_EXTRACT_PROMPT_H_
#define PAWL_SRC_ENGINE_EXTRACT_PROMPT_H_

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/engine.h"
#include "pawl/result.h"
#include "src/engine/prompt.h"
#include "src/text/chat/chat_template.h"

namespace pawl {

class ExtractPrompt {
 public:
  // `plain`: of pawl.json. `chat`: the model's chat template, or why there is none. Errors: those
  // of `chat` but kIo, where the template is needed.
  static Result<ExtractPrompt> Make(PromptTemplate plain, const Result<ChatSource>& chat);

  // What stands in the input never becomes a special token. The records of its examples stand there
  // as the prompt shows them. `max_tokens`: the model's context. `now`: what templates may ask for.
  // `thinking`: what templates are told. A prompt of pawl.json shows no earlier record. Errors:
  // those of the chat template; kLimit as EncodeText; kInvalid with "instruction" or "examples" as
  // place where the prompt of pawl.json has no place for one.
  Result<std::vector<TokenId>> Encode(const Tokenizer& tokenizer, const ExtractInput& input,
                                      int max_tokens, const std::optional<std::tm>& now,
                                      const Thinking& thinking) const;

  // false: the prompt is of pawl.json, which says where the schema stands.
  bool shows_views() const { return general_; }

 private:
  ExtractPrompt(PromptTemplate plain, std::optional<ChatSource> chat)
      : plain_(std::move(plain)), chat_(std::move(chat)) {}
  Status CheckPlaces(const ExtractInput& input) const;

  PromptTemplate plain_;
  bool general_ = false;  // plain_ is not of pawl.json
  std::optional<ChatSource> chat_;
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_EXTRACT_PROMPT_H_
