// CanvasCache: which rows of a canvas a call computes again, where keys and values of the others
// are kept from earlier calls.
//
//   CanvasCache cache({CanvasCache::Kind::kDual, refresh}, prompt, shifted);
//   const std::vector<int> rows = cache.Rows(canvas, window);     // positions of the sequence
//   ... the call ...
//   cache.Ran(canvas, window, rows);
#ifndef PAWL_SRC_DECODE_DIFFUSION_CANVAS_CACHE_H_
#define PAWL_SRC_DECODE_DIFFUSION_CANVAS_CACHE_H_

#include <span>
#include <vector>

#include "pawl/vocabulary.h"

namespace pawl {

// Of a canvas: its block, and where the rows of a call end at most.
struct CanvasWindow {
  int begin = 0, end = 0;
  int last = 0;
};

class CanvasCache {
 public:
  enum class Kind { kNone, kPrefix, kDual, kDelayed };

  // `refresh`: all rows run again in each call of this number; 0: as the kind has it.
  CanvasCache(Kind kind, int refresh, int prompt, bool shifted);

  // Ascending.
  std::vector<int> Rows(std::span<const TokenId> canvas, const CanvasWindow& window) const;
  // Whether all rows run.
  bool Refreshes(const CanvasWindow& window) const;
  void Ran(std::span<const TokenId> canvas, const CanvasWindow& window);
  // A call that did not run.
  void Skip() { ++calls_; }
  // The next call runs all rows.
  void Forget() { seen_.clear(); }
  bool kept() const { return kind_ != Kind::kNone; }

 private:
  Kind kind_;
  int refresh_, prompt_;
  bool shifted_;
  std::vector<TokenId> seen_;  // as the rows of the canvas ran last
  int calls_ = 0;              // since all rows ran, that one counted
  int block_ = -1;             // of that call
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DIFFUSION_CANVAS_CACHE_H_
