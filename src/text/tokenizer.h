// Tokenizer: text <-> token ids, as a Hugging Face tokenizer.json defines it.
//
//   auto tokenizer = pawl::Tokenizer::FromFile("models/tiny-extract/tokenizer.json");
//   std::vector<pawl::TokenId> ids = (*tokenizer)->Encode("Pay $12");
//   std::string text = (*tokenizer)->Decode(ids);
//
// Immutable after loading; all const methods are thread-safe.
#ifndef PAWL_SRC_TEXT_TOKENIZER_H_
#define PAWL_SRC_TEXT_TOKENIZER_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

// The bytes [begin, end) of a text.
struct TextRange {
  size_t begin;
  size_t end;
  friend bool operator==(const TextRange&, const TextRange&) = default;
};

struct EncodeOptions {
  // What the post-processor adds (BOS, EOS), as `add_special_tokens` does in Hugging Face's
  // library.
  bool add_special_tokens = false;
  // Whether the text of a special token ("<|eot_id|>") in the input becomes that token. Off by
  // default: text from a user must never turn into control tokens.
  bool parse_special = false;
  // Sorted, disjoint parts of the text that are data in spite of `parse_special`: no special token
  // is found where it touches one of them, nor any of the added tokens `control`. All else is as
  // without them, also at the seams.
  std::span<const TextRange> data = {};
  std::span<const TokenId> control = {};
};

class Tokenizer {
 public:
  // `path`: a tokenizer.json, or a folder that holds one. tokenizer_config.json and
  // generation_config.json next to it, when present, tell the BOS and end-of-output tokens.
  // Errors: kIo; kInvalid / kUnsupported with the JSON Pointer of what is wrong or not supported.
  static Result<std::shared_ptr<const Tokenizer>> FromFile(const std::string& path);
  static Result<std::shared_ptr<const Tokenizer>> FromJson(std::string_view tokenizer_json);
  virtual ~Tokenizer() = default;

  // Bytes that are not UTF-8 are encoded where the format can (byte level, byte fallback), else as
  // unknown. A StopScope of the calling thread ends it (src/base/stop_scope.h), as it ends
  // EncodeWithin and Decode.
  virtual std::vector<TokenId> Encode(std::string_view text,
                                      const EncodeOptions& options = {}) const = 0;
  // The same for a text that has to fit into `max_tokens` tokens, a model's context. Errors: kLimit
  // where that cannot be: the text, normalized, has more bytes than so many tokens of the
  // vocabulary's longest. Then nothing was tokenized. A text that passes may still make more tokens
  // than that. Where the format drops a part of a text (a pre-tokenizer that removes its matches,
  // characters without a token), no number of bytes is too large.
  virtual Result<std::vector<TokenId>> EncodeWithin(std::string_view text, int max_tokens,
                                                    const EncodeOptions& options = {}) const = 0;
  // The bytes that the tokens stand for; special tokens are left out unless `keep_special`.
  virtual std::string Decode(std::span<const TokenId> ids, bool keep_special = false) const = 0;

  virtual int size() const = 0;  // number of token ids, added tokens included
  virtual TokenId IdOf(
      std::string_view token) const = 0;  // by its written form; kNoToken when absent
  virtual std::string_view NameOf(TokenId id) const = 0;  // its written form in the file
  // The added tokens, special or not, that the text spells, less those that are white space: what
  // a prompt written by a program means as a mark.
  virtual std::vector<TokenId> ControlTokensIn(std::string_view text) const = 0;
  virtual TokenId bos() const = 0;  // kNoToken when unknown
  virtual std::span<const TokenId> end_tokens() const = 0;

  // The tokens as the bytes they add in the middle of a text, for masks. The model's logits may be
  // wider than the tokenizer: ids from size() to `padded_size` become special (never allowed).
  virtual Result<std::shared_ptr<const Vocabulary>> MakeVocabulary(int padded_size = 0) const = 0;
};

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_TOKENIZER_H_
