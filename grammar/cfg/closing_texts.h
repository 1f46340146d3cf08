// ClosingTexts: the states of outputs that reached a limit, each of which allows one text only.
//
// A place is a pair of a text and how much of it was taken; a token that is taken as a whole counts
// as one byte.
//
// Thread safety: none.
#ifndef PAWL_GRAMMAR_CFG_CLOSING_TEXTS_H_
#define PAWL_GRAMMAR_CFG_CLOSING_TEXTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/vocabulary.h"
#include "src/base/memory_size.h"

namespace pawl {

class ClosingTexts {
 public:
  struct Place {
    uint32_t text, taken;
  };

  // Returns the text's number. nullopt: nothing may come, not even the end. `note`: why the output
  // is closed.
  uint32_t Add(const std::optional<std::vector<OutputPiece>>& pieces, std::string note);

  // Whether this byte comes next.
  bool Takes(Place at, uint8_t byte) const;
  // The token that has to be taken next as a whole; kNoToken: bytes come next, or nothing.
  TokenId TokenAt(Place at) const;
  // The bytes that come next, up to such a token or the end.
  std::string_view BytesAt(Place at) const;
  bool Ends(Place at) const;
  std::optional<std::vector<OutputPiece>> Rest(Place at) const;
  const std::string& note(uint32_t text) const { return texts_[text].note; }

  size_t MemoryBytes() const { return HeapBytes(texts_); }
  size_t bytes() const { return bytes_; }  // about that

 private:
  struct Text {
    std::string bytes;                                 // 0 where a token is
    std::vector<std::pair<uint32_t, TokenId>> tokens;  // by place
    bool ends = false;
    std::string note;
    size_t MemoryBytes() const { return HeapBytes(bytes, tokens, note); }
  };
  // The first token at this place or behind it.
  std::vector<std::pair<uint32_t, TokenId>>::const_iterator TokenFrom(Place at) const;

  std::vector<Text> texts_;
  size_t bytes_ = 0;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_CLOSING_TEXTS_H_
