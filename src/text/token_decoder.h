// TokenDecoder: the "decoder" of a tokenizer.json, from written tokens back to bytes. Immutable;
// thread-safe.
//
// Unlike Hugging Face's library it never puts U+FFFD where tokens do not add up to UTF-8: the bytes
// are handed on as they are, so what was encoded from any bytes comes back the same.
#ifndef PAWL_SRC_TEXT_TOKEN_DECODER_H_
#define PAWL_SRC_TEXT_TOKEN_DECODER_H_

#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_reader.h"
#include "src/text/split_regex.h"

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

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_TOKEN_DECODER_H_
