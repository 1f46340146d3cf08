// Prompts: the one of `pawl extract` is a template that a model folder brings along in pawl.json.
//
//   {"extract": {"prompt": "{text}\n", "bos": true}}
//
// {text} and {schema} stand for the input and the schema (as compact JSON), {fields} for keys and
// types in short (schema_view.h), {instruction} and {examples} for what was given with them;
// everything else is literal and may hold special tokens of the tokenizer. What stands for these
// names never becomes a special token. `bos` begins every
// prompt, also those of `pawl generate`, with the begin-of-sequence token; it may stand at the top
// level as well. "extract" has the settings of extract_settings.h, too.
#ifndef PAWL_SRC_ENGINE_PROMPT_H_
#define PAWL_SRC_ENGINE_PROMPT_H_

#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/engine/extract_settings.h"
#include "src/text/tokenizer.h"

namespace pawl {

struct PromptTemplate {
  std::string text;  // of `pawl extract`; empty: none is given
  bool bos = false;  // begin with the tokenizer's begin-of-sequence token
  ExtractSettings settings = {};
};

// pawl.json of a model folder; without that file `bos` is as the tokenizer's post-processor has it.
// Errors name the file and the key.
Result<PromptTemplate> LoadPromptTemplate(const std::string& folder, const Tokenizer& tokenizer);

// kInvalid where prompts would begin with a token that a model of so many logits does not have.
// `path`: of the model.
Status CheckBos(const PromptTemplate& prompt, const Tokenizer& tokenizer, int logits,
                const std::string& path);

// A text for the model to go on from, with the begin-of-sequence token where `prompt.bos` asks for
// it or nothing else is there. Nothing is put behind it: an end token there would end the text.
// `special`: special tokens that it spells become those tokens. `max_tokens`: the model's context.
// Errors: kLimit for a text that is too long for it whatever its tokens are
// (Tokenizer::EncodeWithin); a longer prompt may pass, and is for the engine to refuse.
Result<std::vector<TokenId>> EncodeText(const Tokenizer& tokenizer, const PromptTemplate& prompt,
                                        std::string_view text, bool special, int max_tokens);

// What stands for the names in braces.
struct PromptFilling {
  std::string_view schema, text;
  std::string_view instruction = {}, examples = {}, fields = {};
};
// The template filled in. Errors: as EncodeText.
Result<std::vector<TokenId>> EncodePrompt(const Tokenizer& tokenizer, const PromptTemplate& prompt,
                                          const PromptFilling& filling, int max_tokens);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_PROMPT_H_
