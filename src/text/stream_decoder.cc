// The bytes of a token depend on the text before it in one way only: at the front some formats drop
// a space. So the first tokens, up to one that adds text, are kept as an anchor, and the bytes of
// any later token are what decoding it behind the anchor adds. That is a constant amount of work
// for each token.
#include "src/text/stream_decoder.h"

#include "src/base/utf8.h"

namespace pawl {

std::string StreamDecoder::Feed(TokenId id) {
  anchor_.push_back(id);
  std::string text = tokenizer_.Decode(anchor_, keep_special_);
  held_.append(text, anchor_length_);
  if (anchor_length_ > 0) {
    anchor_.pop_back();
  } else {
    anchor_length_ = text.size();
  }
  const size_t complete = CompleteUtf8Prefix(held_);
  std::string out = held_.substr(0, complete);
  held_.erase(0, complete);
  return out;
}

std::string StreamDecoder::Finish() {
  anchor_.clear();
  anchor_length_ = 0;
  return std::exchange(held_, {});
}

}  // namespace pawl
