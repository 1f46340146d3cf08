// KvPool: which pages of the key-value memory are in use, by how many sequences, and what they
// hold.
//
// A page has room for the keys and values of kPagePositions positions, in all layers. The pool
// hands out page numbers; the memory behind them is the backend's. A slot is a place for one
// position: slot = page * kPagePositions + offset.
//
//   pawl::KvPool pool({.pages = 100, .kept_pages = 20});
//   const int32_t page = pool.Allocate();             // one reference; kNoPage when all are in use
//   pool.Publish(page, kNoPage, tokens);              // full: others may find and share it
//   const int32_t same = pool.Find(kNoPage, tokens);  // == page
//   pool.Share(same);                                 // two references
//   pool.Release(page);
//
// The prefix cache
//   A full page may be published under its tokens and the page before it, its parent (itself
//   published), so that a chain of pages stands for a prefix of tokens. A published page is never
//   written again. When its last reference goes it is kept, until it is the least recently used
//   and its place is needed, or more than kept_pages are kept.
//   Who references a published page references its parent too, and releases a chain from its end;
//   so a page does not outlive its parent. Sequences that free what no window reaches
//   (KvLimits::window) do not keep to that: a page whose parent is gone cannot be found any more,
//   and goes in its turn.
//
// States
//   Of a model with recurrent layers a published page may have a checkpoint: pages with the state
//   behind its last position. They are given up with the page, or before it when their place is
//   needed, the ones used longest ago first; so they count as available. Kept pages and those of
//   checkpoints share kept_pages.
#ifndef PAWL_SRC_MODEL_KV_POOL_H_
#define PAWL_SRC_MODEL_KV_POOL_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pawl/vocabulary.h"
#include "src/model/recurrent/state_pages.h"

namespace pawl {

constexpr int kPagePositions = 16;
constexpr int32_t kNoPage = -1;

// Pages that hold `positions` positions.
constexpr int32_t PagesFor(int64_t positions) {
  return static_cast<int32_t>((positions + kPagePositions - 1) / kPagePositions);
}

struct KvLimits {
  int32_t pages = 0;       // at most kMostPages
  int32_t kept_pages = 0;  // published pages without a reference, at most
  // The most positions that a row sees in any layer, itself included; 0: all of them.
  int32_t window = 0;
  StatePages states = {};
};

// Slots are int32_t.
constexpr int32_t kMostPages = INT32_MAX / kPagePositions;

using PageTokens = std::span<const TokenId, kPagePositions>;

// One thread at a time.
class KvPool {
 public:
  explicit KvPool(const KvLimits& limits);

  int32_t pages() const { return limits_.pages; }
  int32_t window() const { return limits_.window; }
  int32_t in_use() const { return in_use_; }  // referenced
  int32_t kept() const { return kept_; }      // published, without a reference
  int32_t held() const { return held_; }      // of checkpoints
  int32_t kept_limit() const { return limits_.kept_pages; }
  const StatePages& states() const { return limits_.states; }
  // Pages that were ever in use.
  int32_t made() const { return static_cast<int32_t>(info_.size()); }
  // What Allocate can still give.
  int32_t available() const { return limits_.pages - in_use_; }

  // Makes room in the bookkeeping for that many pages in use, so that the calls below allocate
  // nothing.
  void Reserve(int32_t pages);

  // A page with one reference; low numbers first. Takes the least recently used kept page when no
  // other is left, then those of the checkpoint used longest ago, kNoPage when there is none
  // either.
  int32_t Allocate();
  // One more reference to a page in use or kept.
  void Share(int32_t page);
  void Release(int32_t page);
  int32_t references(int32_t page) const { return info_[static_cast<size_t>(page)].references; }
  bool published(int32_t page) const { return info_[static_cast<size_t>(page)].published; }

  // What stands for the parent at the beginning. Prefixes of different adapters have nothing in
  // common; RootOf(0) is kNoPage.
  static constexpr int32_t RootOf(int adapter) { return kNoPage - adapter; }
  // The page published under these tokens behind `parent` (a root: at the beginning), or kNoPage.
  int32_t Find(int32_t parent, PageTokens tokens) const;
  // REQUIRES: `page` is referenced and not published, `parent` is published or a root, and
  // Find(parent, tokens) == kNoPage.
  void Publish(int32_t page, int32_t parent, PageTokens tokens);
  // Takes a page out of the cache, so that it may be written. REQUIRES: it is published and has one
  // reference, and no page is published behind it.
  void Withdraw(int32_t page);

  // Makes `pages`, at least one, the checkpoint of a page. They are the pool's from then on.
  // REQUIRES: `page` is published and has no checkpoint; the others have one reference each.
  void AddCheckpoint(int32_t page, std::span<const int32_t> pages);
  bool HasCheckpoint(int32_t page) const { return At(page).checkpoint != kNoPage; }
  // Its pages, in order, until the pool changes; it counts as used.
  void UseCheckpoint(int32_t page, std::vector<int32_t>& pages);
  void DropCheckpoint(int32_t page);

  // Recounts everything; the first thing that does not add up, or "". `references`: by page, how
  // often the caller's tables hold it. For tests.
  std::string Check(std::span<const int32_t> references) const;

 private:
  struct Page {
    int32_t references = 0;
    bool published = false;
    // Every publication has a number of its own; a parent is known by it, a root by 0, -1, -2, ...
    uint64_t number = 0, parent = 0;
    int32_t older = kNoPage, newer = kNoPage;  // neighbours among the kept, by last use
    int32_t next = kNoPage;                    // in its bucket, or in the list of free pages
    uint64_t hash = 0;
    int32_t checkpoint = kNoPage;  // its first page; they are linked by `next`
    int32_t owner = kNoPage;       // of the first page of a checkpoint: the page that has it
    std::array<TokenId, kPagePositions> tokens = {};
  };
  Page& At(int32_t page) { return info_[static_cast<size_t>(page)]; }
  const Page& At(int32_t page) const { return info_[static_cast<size_t>(page)]; }
  uint64_t NumberOf(int32_t page) const {
    return page <= kNoPage ? static_cast<uint64_t>(int64_t{page} - kNoPage) : At(page).number;
  }
  int32_t FindBehind(uint64_t parent, PageTokens tokens) const;
  size_t BucketOf(uint64_t hash) const { return hash & (buckets_.size() - 1); }

  // A list by last use: of kept pages, or of the first pages of checkpoints.
  struct UseList {
    int32_t oldest = kNoPage, newest = kNoPage;
  };
  void Append(int32_t page, UseList& list);  // as the most recently used
  void Remove(int32_t page, UseList& list);
  void Free(int32_t page);

  void Keep(int32_t page);
  void Unkeep(int32_t page);  // it stays published
  void Unpublish(int32_t page);
  void EvictOldest();

  KvLimits limits_;
  std::vector<Page> info_;  // of the pages that were ever used
  std::vector<int32_t> buckets_;
  int32_t free_ = kNoPage;  // used before, free now
  UseList kept_list_, checkpoints_;
  uint64_t publications_ = 0;
  int32_t in_use_ = 0, kept_ = 0, held_ = 0;
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_KV_POOL_H_
