// The text from which fields are copied, in the form in which the model sees it: as the tokenizer's
// normalizer leaves it.
//
//   const CopiedText copied(tokenizer, "Zoe\u0308 paid");      // under NFC: "Zoë paid"
//   Result<Grammar> bound = grammar.Bind(copied.text());
//   for (const Span& span : copied.Spans(record)) ...          // places in the text as it came
//
// A character with its marks is one piece, and what the tokenizer makes of each piece beyond ASCII
// is asked for by encoding and decoding it. So compositions and the like are followed, and what
// tokenizers put in front of words is not. A piece that cannot be encoded stays as it is.
#ifndef PAWL_SRC_ENGINE_COPIED_TEXT_H_
#define PAWL_SRC_ENGINE_COPIED_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json.h"
#include "src/engine/spans.h"
#include "src/text/tokenizer.h"

namespace pawl {

class CopiedText {
 public:
  // `text`: UTF-8; texts with a kTextBorder between them; a kTextCut at either end.
  CopiedText(const Tokenizer& tokenizer, std::string_view text);

  const std::string& text() const { return text_; }
  // FindSpans, with places of the text as it came.
  std::vector<Span> Spans(const json::Value& record, SpanKind kind = SpanKind::kSpan) const;

 private:
  // Behind a piece: its end in text(), and in the text as it came.
  struct Piece {
    size_t end, came;            // characters
    size_t end_byte, came_byte;  // bytes
  };
  static void AddPieces(const Tokenizer& tokenizer, std::string_view text, std::string& seen,
                        std::vector<Piece>& pieces);
  // The number of the piece with a character of text().
  size_t PieceOf(size_t character) const;

  std::string text_;
  std::vector<Piece> pieces_;  // empty: nothing was changed
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_COPIED_TEXT_H_
