// Masks behind the last token are left out, so the picture is as wide as the output. Where a mask
// of a gap was taken out, what stands behind it has moved, and all of the line is marked.
#include "src/cli/canvas_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "src/base/utf8.h"

namespace pawl::cli {
namespace {

constexpr int kCellCharacter = 8, kCellHeight = 20, kNumberWidth = 40;

std::string CellLabel(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += static_cast<unsigned char>(c) < ' ' ? '.' : c;
    }
  }
  return CheckUtf8(out).ok() ? out : "?";
}

}  // namespace

std::string CanvasPicture::Svg(const Vocabulary& vocabulary) const {
  std::vector<size_t> widths;  // of the columns, in bytes
  for (const std::vector<TokenId>& canvas : calls_) {
    for (size_t i = 0; i < canvas.size(); ++i) {
      if (canvas[i] < 0) continue;
      if (widths.size() <= i) widths.resize(i + 1, 1);
      widths[i] = std::max(widths[i], vocabulary.bytes(canvas[i]).size());
    }
  }
  std::vector<size_t> left = {kNumberWidth};
  for (const size_t width : widths) left.push_back(left.back() + (width + 1) * kCellCharacter);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"monospace\" font-size=\"13\">\n"
      "<style>rect{{fill:#ddd}}.n{{fill:#fc6}}.o{{fill:#eef}}text{{white-space:pre}}</style>\n",
      left.back() + kCellCharacter, kCellHeight * (calls_.size() + 1));
  for (size_t call = 0; call < calls_.size(); ++call) {
    const std::vector<TokenId>& canvas = calls_[call];
    const size_t top = kCellHeight * call + kCellHeight / 2;
    out += fmt::format("<text x=\"4\" y=\"{}\">{}</text>\n", top + 14, call + 1);
    for (size_t i = 0; i < std::min(canvas.size(), widths.size()); ++i) {
      const bool same_size = call > 0 && calls_[call - 1].size() == canvas.size();
      const bool old = same_size && calls_[call - 1][i] == canvas[i];
      const char* const kind = canvas[i] < 0 ? "" : old ? " class=\"o\"" : " class=\"n\"";
      out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}/>", left[i], top,
                         left[i + 1] - left[i] - 1, kCellHeight - 2, kind);
      if (canvas[i] >= 0) {
        out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", left[i] + kCellCharacter / 2,
                           top + 14, CellLabel(vocabulary.bytes(canvas[i])));
      }
      out += '\n';
    }
  }
  return out + "</svg>\n";
}

}  // namespace pawl::cli
