// From tokens back to text: TokenDecoder, the "decoder" of a tokenizer.json (immutable; thread-
// safe), and StreamDecoder, which decodes token by token.
//
// Unlike Hugging Face's library a decoder never puts U+FFFD where tokens do not add up to UTF-8:
// the bytes are handed on as they are, so what was encoded from any bytes comes back the same.
#ifndef PAWL_SRC_TEXT_TOKEN_DECODER_H_
#define PAWL_SRC_TEXT_TOKEN_DECODER_H_

#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_reader.h"
#include "src/text/split_regex.h"
#include "src/text/tokenizer.h"

namespace pawl {

class TokenDecoder {
 public:
  struct Token {
    std::string text;
    bool verbatim =
        false;  // an added token outside the vocabulary: not written in the byte-level alphabet
  };

  // ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, Sequence; anything else is an error.
  // `node` may be null or absent: tokens are joined with spaces.
  static TokenDecoder Load(const JsonReader& node);

  // The bytes of a text made of these tokens.
  std::string DecodeAll(const std::vector<Token>& tokens) const;
  // The bytes that a token adds in the middle of a text.
  std::string DecodeInside(const Token& token) const { return DecodeOne(token, false); }

 private:
  enum class Kind { kByteLevel, kReplace, kByteFallback, kStrip, kMetaspace };
  struct Step {
    Kind kind;
    SplitRegex pattern = {};
    std::string content = {};
    size_t start = 0, stop = 0;
    bool drop_first = false;  // Metaspace: the first token has no spaces
  };
  // Takes up to `most` copies of `content` from the front.
  static void StripFront(std::string& text, std::string_view content, size_t most);
  void Add(const JsonReader& node, const std::string& type);
  std::string DecodeOne(const Token& token, bool first) const;

  std::vector<Step> steps_;       // on each token
  std::vector<Step> text_steps_;  // on the whole text: Strip at its front
  bool joined_ = false;           // while loading: the tokens have been joined already
  bool join_with_space_ = false;
};

// Token ids one at a time -> text that can be shown at once.
//
//   StreamDecoder stream(*tokenizer);
//   for (TokenId id : generated) std::cout << stream.Feed(id) << std::flush;
//   std::cout << stream.Finish();
//
// All that is returned, joined, is Decode() of all the ids. A piece never ends inside a code point:
// bytes that may still become one are held back. Bytes that cannot are handed on as they are.
//
// Not thread-safe; one for each text. The tokenizer must outlive it.
class StreamDecoder {
 public:
  // keep_special: as in Tokenizer::Decode.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool keep_special = false)
      : tokenizer_(tokenizer), keep_special_(keep_special) {}

  // The text that this token completes; often empty in the middle of an emoji.
  std::string Feed(TokenId id);
  // What is still held back: the start of a code point that never came to an end.
  std::string Finish();

 private:
  const Tokenizer& tokenizer_;
  const bool keep_special_;
  std::vector<TokenId> anchor_;  // the first tokens, up to the first that adds text
  size_t anchor_length_ = 0;     // bytes that they decode to
  std::string held_;
};

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_TOKEN_DECODER_H_
