// The text of a file for a model, and where its parts stand in the file.
//
//   Result<InputText> input = ReadHtml(bytes);
//   const auto [begin, end] = input->InFile(120, 134);        // bytes of the file
//
// Plain text and Markdown are as they are in the file. Of HTML and PDF the text is put together out
// of pieces.
#ifndef PAWL_SRC_INPUT_INPUT_TEXT_H_
#define PAWL_SRC_INPUT_INPUT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/generation.h"
#include "pawl/result.h"
#include "src/input/input_format.h"

namespace pawl {

struct InputText {
  // A part of the text that comes from one part of the file. Linear: byte by byte.
  struct Piece {
    size_t begin = 0;                     // in the text; it ends where the next one begins
    size_t file_begin = 0, file_end = 0;  // in the file
    bool linear = false;
  };
  // A word on a page, in points from its upper left corner.
  struct Box {
    size_t begin = 0, end = 0;  // in the text
    int page = 1, line = 0;     // lines are counted through the document
    double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  };

  std::string text;
  std::vector<Piece> pieces;  // by `begin`; empty: the text is the file
  std::vector<Box> boxes;     // by `begin`; of PDF

  // Appends a text that stands in the file byte by byte, or is written otherwise there.
  void Append(std::string_view part, size_t file_begin);
  void AppendAs(std::string_view part, size_t file_begin, size_t file_end);
  // The bytes of the file from which [begin, end) of the text comes. REQUIRES: begin < end.
  std::pair<size_t, size_t> InFile(size_t begin, size_t end) const;
  // "file_spans": {...} and "boxes": {...} of values that have spans, where the text is not the
  // file.
  std::vector<std::string> PlacesJson(std::span<const ValueDetails> details) const;
};

// The text of a document. HTML that is not UTF-8 is read as its `meta` element says, or as
// windows-1252. Errors: kInvalid with a byte as place.
Result<InputText> ReadHtml(std::string_view bytes);
// Of what `pdftotext -bbox-layout` prints.
Result<InputText> ReadPdfLayout(std::string_view xhtml);
// Runs pdftotext. Errors: kIo, also where it is not installed; kInvalid where it says what is
// wrong.
Result<InputText> ReadPdf(const std::string& path);

}  // namespace pawl

#endif  // PAWL_SRC_INPUT_INPUT_TEXT_H_
