// The chunks in which a text beyond the context is read: parts of at most so many tokens that begin
// and end at paragraphs, sentences or lines, each with the end of the chunk before it.
//
//   DocumentChunks chunks(text, {.max_tokens = 1024, .passes = 1},
//                         [&](std::string_view part) { return tokenizer.Encode(part).size(); });
//   while (const std::optional<DocumentChunk> chunk = chunks.Next()) Read(chunk->TextOf(text));
//
// A chunk neither begins nor ends with white space, and all of a text but white space is in one. A
// later pass reads the same text with other borders.
#ifndef PAWL_SRC_ENGINE_DOCUMENT_CHUNKS_H_
#define PAWL_SRC_ENGINE_DOCUMENT_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace pawl {

struct DocumentChunk {
  int number = 0, pass = 0;     // from 0; the number is of all passes
  size_t begin = 0, end = 0;    // bytes of the document
  int64_t begin_character = 0;  // the same in characters
  int64_t end_character = 0;
  bool cut_begin = false, cut_end = false;  // inside a word or number of the document
  std::string_view TextOf(std::string_view document) const {
    return document.substr(begin, end - begin);
  }
};

struct ChunkOptions {
  size_t max_tokens = 1024;  // of a chunk, but for what the tokenizer adds at borders
  int passes = 1;
};

class DocumentChunks {
 public:
  using TokenCount = std::function<size_t(std::string_view part)>;

  // `text`: UTF-8, and outlives this.
  DocumentChunks(std::string_view text, const ChunkOptions& options, TokenCount tokens);
  std::optional<DocumentChunk> Next();
  // Bytes that all passes read, without overlap; to tell how far a reader has come.
  size_t total() const { return text_.size() * static_cast<size_t>(options_.passes); }
  size_t DoneBehind(const DocumentChunk& chunk) const {
    return text_.size() * static_cast<size_t>(chunk.pass) + chunk.end;
  }

 private:
  // How good a border is: none inside a word.
  enum Rank : uint8_t { kInside, kSpace, kLine, kSentence, kParagraph };
  // A part of the text without a better border in it, with white space in front.
  struct Unit {
    size_t end;  // bytes
    size_t tokens;
    Rank rank;  // of the border behind it
  };

  size_t SkipSpace(size_t at) const;
  // The first border of at least a line behind `at`, and how good it is.
  size_t BorderBehind(size_t at, Rank& rank) const;
  // Adds the units of a part; parts of many tokens are split.
  void AddUnits(size_t begin, size_t end, Rank rank, std::vector<Unit>& units) const;
  size_t SplitPoint(size_t begin, size_t end, bool anywhere, Rank& rank) const;
  size_t TakeUnits(size_t begin, size_t most, std::vector<Unit>& units) const;
  size_t NextBegin(std::span<const Unit> units) const;
  int64_t CharacterOf(size_t byte);
  // A span of the document may begin (or end) at a byte.
  bool IsSpanBorder(size_t byte, bool begins) const;

  const std::string_view text_;
  const ChunkOptions options_;
  const TokenCount tokens_;
  int pass_ = 0, number_ = 0;
  size_t from_ = 0, last_end_ = 0;  // where the next chunk begins
  bool first_ = true;               // it is the first one of its pass
  size_t counted_ = 0;              // a byte, and its character
  int64_t counted_character_ = 0;
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_DOCUMENT_CHUNKS_H_
