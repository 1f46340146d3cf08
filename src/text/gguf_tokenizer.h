// The tokenizer that a GGUF file carries (tokenizer.ggml.*).
//
//   Result<GgufVocabulary> raw = ReadGgufVocabulary(file);        // src/model/gguf_model.h
//   Result<std::shared_ptr<const Tokenizer>> tokenizer = MakeGgufTokenizer(*raw);
#ifndef PAWL_SRC_TEXT_GGUF_TOKENIZER_H_
#define PAWL_SRC_TEXT_GGUF_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/json.h"
#include "src/text/tokenizer.h"

namespace pawl {

// As the file has it; the views must live until the tokenizer is made.
struct GgufVocabulary {
  std::string path;   // of the file, for messages
  std::string model;  // "gpt2": byte-level BPE, "llama": SentencePiece, "gemma4": its pieces merged
  std::string pre;    // how gpt2 cuts text into words: "llama-bpe", "qwen2", ...
  std::vector<std::string_view> tokens;
  std::vector<float> scores;             // "llama": of each token
  std::vector<int64_t> types;            // of each token, see the source; or empty
  std::vector<std::string_view> merges;  // "gpt2", "gemma4": "left right"
  TokenId bos = kNoToken, unknown = kNoToken;
  std::vector<TokenId> end_tokens;  // of the keys; the tokenizer adds those known by their text
  bool add_bos = false;
  bool add_space_prefix = true;  // "llama": a text begins with a space
};

// Errors: kUnsupported for models and pre-tokenizers other than those above, kInvalid for a
// vocabulary that contradicts itself; the place is the file and the key.
Result<std::shared_ptr<const Tokenizer>> MakeGgufTokenizer(const GgufVocabulary& vocabulary);

// The name that GGUF files have for how a tokenizer.json cuts text into words; "" where there is
// none, or where it is no byte-level BPE.
std::string PreTokenizerNameOf(const json::Value& tokenizer);

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_GGUF_TOKENIZER_H_
