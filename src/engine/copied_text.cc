// Marks and the letters of Hangul belong to the character before them: normal forms compose no
// others. Pieces are mostly the same few, so what became of each is remembered.
#include "src/engine/copied_text.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "src/base/utf8.h"

namespace pawl {
namespace {

bool JoinsBefore(char32_t c) {
  if (c < 0x300) return false;
  if (c >= 0x1160 && c <= 0x11FF) return true;  // vowels and final consonants of Hangul
  static const std::span<const CodepointRange> kMarks = UnicodeProperty("M");
  const auto found = std::ranges::lower_bound(kMarks, c, {}, &CodepointRange::hi);
  return found != kMarks.end() && found->lo <= c;
}

std::string AsSeen(const Tokenizer& tokenizer, const std::string& piece) {
  std::string seen = tokenizer.Decode(tokenizer.Encode(piece));
  // What stands in front of words.
  if (seen.starts_with(' ') && !piece.starts_with(' ')) seen.erase(0, 1);
  const bool lost = seen.empty() || seen.find("\xEF\xBF\xBD") != std::string::npos ||
                    FindInvalidUtf8(seen) != std::string::npos;
  return lost ? piece : seen;
}

}  // namespace

CopiedText::CopiedText(const Tokenizer& tokenizer, std::string_view text) : text_(text) {
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  const TextCuts cuts = TakeCuts(text);
  if (std::ranges::all_of(text, ascii)) return;
  std::string seen;
  std::vector<Piece> pieces;
  for (std::string_view rest = text;;) {
    const size_t border = rest.find(kTextBorder);
    AddPieces(tokenizer, rest.substr(0, border), seen, pieces);
    if (border == std::string_view::npos) break;
    seen += kTextBorder;
    const Piece at = pieces.empty() ? Piece{0, 0, 0, 0} : pieces.back();
    pieces.push_back({at.end + 1, at.came + 1, at.end_byte + 1, at.came_byte + 1});
    rest.remove_prefix(border + 1);
  }
  if (seen == text) return;
  text_ = WithCuts(seen, cuts);
  pieces_ = std::move(pieces);
}

void CopiedText::AddPieces(const Tokenizer& tokenizer, std::string_view text, std::string& seen,
                           std::vector<Piece>& pieces) {
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  const std::u32string given = DecodeCodepoints(text);
  std::unordered_map<std::string, std::string> known;
  Piece at = pieces.empty() ? Piece{0, 0, 0, 0} : pieces.back();
  const size_t came = at.came;
  for (size_t i = 0; i < given.size();) {
    size_t end = i + 1;
    while (end < given.size() && JoinsBefore(given[end])) ++end;
    const std::string piece = EncodeCodepoints(std::u32string_view(given).substr(i, end - i));
    std::string now = piece;
    if (!std::ranges::all_of(piece, ascii)) {
      const auto [made, fresh] = known.try_emplace(piece);
      if (fresh) made->second = AsSeen(tokenizer, piece);
      now = made->second;
    }
    seen += now;
    at = {at.end + DecodeCodepoints(now).size(), came + end, at.end_byte + now.size(),
          at.came_byte + piece.size()};
    pieces.push_back(at);
    i = end;
  }
}

size_t CopiedText::PieceOf(size_t character) const {
  return static_cast<size_t>(std::ranges::upper_bound(pieces_, character, {}, &Piece::end) -
                             pieces_.begin());
}

std::vector<Span> CopiedText::Spans(const json::Value& record, SpanKind kind) const {
  std::vector<Span> spans = FindSpans(record, text_, kind);
  if (pieces_.empty()) return spans;
  for (Span& span : spans) {
    const size_t first = PieceOf(span.begin), last = PieceOf(span.end - 1);
    span.begin = first == 0 ? 0 : pieces_[first - 1].came;
    span.begin_byte = first == 0 ? 0 : pieces_[first - 1].came_byte;
    span.end = pieces_[last].came;
    span.end_byte = pieces_[last].came_byte;
  }
  return spans;
}

}  // namespace pawl
