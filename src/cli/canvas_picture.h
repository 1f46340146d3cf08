// CanvasPicture: the canvas of a diffusion model after each of its calls, as an SVG file: a line a
// call, a column a position. Tokens of the call are marked.
#ifndef PAWL_SRC_CLI_CANVAS_PICTURE_H_
#define PAWL_SRC_CLI_CANVAS_PICTURE_H_

#include <span>
#include <string>
#include <vector>

#include "pawl/vocabulary.h"

namespace pawl::cli {

class CanvasPicture {
 public:
  // kNoToken: a mask.
  void Add(std::span<const TokenId> canvas) { calls_.emplace_back(canvas.begin(), canvas.end()); }
  std::string Svg(const Vocabulary& vocabulary) const;

 private:
  std::vector<std::vector<TokenId>> calls_;
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_CANVAS_PICTURE_H_
