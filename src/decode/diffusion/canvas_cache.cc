// Fast-dLLM (Wu et al., arXiv 2505.22618) keeps what stands in front of the block (prefix), or on
// both sides of it (dual), until the next block. dKV-Cache (Ma et al., arXiv 2505.15781) keeps the
// rows of tokens, each from the call after the one that committed it: a row changes most when its
// mask becomes a token. It computes all rows again from time to time.
#include "src/decode/diffusion/canvas_cache.h"

#include <algorithm>
#include <limits>

namespace pawl {
namespace {

constexpr int kDelayedRefresh = 8;

}  // namespace

CanvasCache::CanvasCache(Kind kind, int refresh, int prompt, bool shifted)
    : kind_(kind), refresh_(refresh), prompt_(prompt), shifted_(shifted) {
  if (refresh_ > 0) return;
  refresh_ = kind == Kind::kDelayed ? kDelayedRefresh : std::numeric_limits<int>::max();
}

bool CanvasCache::Refreshes(const CanvasWindow& window) const {
  const bool by_block = kind_ == Kind::kPrefix || kind_ == Kind::kDual;
  return kind_ == Kind::kNone || seen_.empty() || calls_ >= refresh_ ||
         (by_block && block_ != window.begin);
}

std::vector<int> CanvasCache::Rows(std::span<const TokenId> canvas,
                                   const CanvasWindow& window) const {
  std::vector<int> rows;
  const bool all = Refreshes(window);
  const int end = kind_ == Kind::kDual && !all ? window.end : window.last;
  // Where logits come from the row in front, the rows of the block begin there.
  const int block = prompt_ + window.begin - (shifted_ ? 1 : 0);
  for (int row = 0; row < prompt_ + end; ++row) {
    const auto i = static_cast<size_t>(row - prompt_);
    const bool changed =
        row >= prompt_ && (canvas[i] == kNoToken || i >= seen_.size() || canvas[i] != seen_[i]);
    const bool next_is_mask = shifted_ && row + 1 >= prompt_ && row + 1 < prompt_ + window.end &&
                              canvas[i + 1] == kNoToken;
    const bool runs = all || (kind_ == Kind::kDelayed ? changed || next_is_mask : row >= block);
    if (runs) rows.push_back(row);
  }
  return rows;
}

void CanvasCache::Ran(std::span<const TokenId> canvas, const CanvasWindow& window) {
  if (Refreshes(window)) {
    calls_ = 0;
    block_ = window.begin;
  }
  ++calls_;
  const auto end = static_cast<size_t>(window.last);
  seen_.assign(canvas.begin(), canvas.begin() + static_cast<std::ptrdiff_t>(end));
}

}  // namespace pawl
