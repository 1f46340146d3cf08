// StreamDecoder: token ids one at a time -> text that can be shown at once.
//
//   StreamDecoder stream(*tokenizer);
//   for (TokenId id : generated) std::cout << stream.Feed(id) << std::flush;
//   std::cout << stream.Finish();
//
// All that is returned, joined, is Decode() of all the ids. A piece never ends inside a code point:
// bytes that may still become one are held back. Bytes that cannot are handed on as they are.
//
// Not thread-safe; one for each text. The tokenizer must outlive it.
#ifndef PAWL_SRC_TEXT_STREAM_DECODER_H_
#define PAWL_SRC_TEXT_STREAM_DECODER_H_

#include <string>
#include <vector>

#include "src/text/tokenizer.h"

namespace pawl {

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

#endif  // PAWL_SRC_TEXT_STREAM_DECODER_H_
