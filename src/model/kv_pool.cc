// References are counted by page; a page is free, in use, or kept.
//
// The prefix cache is a hash table from (parent, tokens) to page. The number of the parent's
// publication stands for everything before: it is never given again, so that by induction equal
// keys mean equal prefixes. Tokens are compared in full, so a collision of hashes costs a
// comparison and nothing else.
//
// Kept pages stand in a list by last use. A page enters at the newest end when its last reference
// goes, and leaves when it is shared again. A sequence that references a page references its
// parent, and lets go of the parent last; so at the time a parent enters the list its kept children
// are in it already, on the older side. The oldest page of the list therefore has no child, except
// where sequences freed the beginning of a chain alone; the children left behind are found no more.
#include "src/model/kv_pool.h"

#include <algorithm>
#include <bit>
#include <map>

namespace pawl {
namespace {

// The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t HashOf(uint64_t parent, PageTokens tokens) {
  uint64_t hash = Mix(parent + 0x9e3779b97f4a7c15u);
  for (const TokenId token : tokens) {
    hash = Mix(hash + 0x9e3779b97f4a7c15u + static_cast<uint64_t>(token));
  }
  return hash;
}

}  // namespace

KvPool::KvPool(const KvLimits& limits) : limits_(limits) {
  limits_.pages = std::clamp(limits_.pages, 0, kMostPages);
  limits_.kept_pages = std::clamp(limits_.kept_pages, 0, limits_.pages);
  Reserve(0);
}

void KvPool::Reserve(int32_t pages) {
  // Free pages are used first, so there are never more than are in use and kept at one time.
  const int64_t wanted = std::min<int64_t>(limits_.pages, int64_t{pages} + limits_.kept_pages);
  const auto capacity = static_cast<int64_t>(info_.capacity());
  if (capacity < wanted) {
    const int64_t grown = std::min<int64_t>(limits_.pages, capacity + capacity / 2);
    info_.reserve(static_cast<size_t>(std::max(wanted, grown)));
  }
  const size_t buckets = std::bit_ceil(std::max<size_t>(info_.capacity(), 64));
  if (buckets <= buckets_.size()) return;
  buckets_.assign(buckets, kNoPage);
  for (size_t i = 0; i < info_.size(); ++i) {
    if (!info_[i].published) continue;
    int32_t& bucket = buckets_[BucketOf(info_[i].hash)];
    info_[i].next = bucket;
    bucket = static_cast<int32_t>(i);
  }
}

int32_t KvPool::Allocate() {
  int32_t page = free_;
  if (page != kNoPage) {
    free_ = At(page).next;
  } else if (static_cast<int64_t>(info_.size()) < limits_.pages) {
    if (info_.size() == info_.capacity()) Reserve(static_cast<int32_t>(info_.size()) + 1);
    page = static_cast<int32_t>(info_.size());
    info_.emplace_back();
  } else if (kept_ + held_ > 0) {
    if (kept_ > 0) {
      EvictOldest();
    } else {
      DropCheckpoint(At(checkpoints_.oldest).owner);
    }
    page = free_;
    free_ = At(page).next;
  } else {
    return kNoPage;
  }
  Page& info = At(page);
  info.references = 1;
  info.next = kNoPage;
  ++in_use_;
  return page;
}

void KvPool::Share(int32_t page) {
  if (At(page).references++ > 0) return;
  Unkeep(page);
  ++in_use_;
}

void KvPool::Release(int32_t page) {
  Page& info = At(page);
  if (--info.references > 0) return;
  --in_use_;
  if (info.published) {
    Keep(page);
    if (kept_ + held_ > limits_.kept_pages) EvictOldest();
  } else {
    Free(page);
  }
}

void KvPool::Free(int32_t page) {
  At(page).next = free_;
  free_ = page;
}

int32_t KvPool::Find(int32_t parent, PageTokens tokens) const {
  return FindBehind(NumberOf(parent), tokens);
}

int32_t KvPool::FindBehind(uint64_t parent, PageTokens tokens) const {
  const uint64_t hash = HashOf(parent, tokens);
  for (int32_t page = buckets_[BucketOf(hash)]; page != kNoPage; page = At(page).next) {
    const Page& info = At(page);
    if (info.hash == hash && info.parent == parent &&
        std::equal(tokens.begin(), tokens.end(), info.tokens.begin())) {
      return page;
    }
  }
  return kNoPage;
}

void KvPool::Publish(int32_t page, int32_t parent, PageTokens tokens) {
  Page& info = At(page);
  info.published = true;
  info.number = ++publications_;
  info.parent = NumberOf(parent);
  info.hash = HashOf(info.parent, tokens);
  std::copy(tokens.begin(), tokens.end(), info.tokens.begin());
  int32_t& bucket = buckets_[BucketOf(info.hash)];
  info.next = bucket;
  bucket = page;
}

void KvPool::Withdraw(int32_t page) { Unpublish(page); }

void KvPool::Unpublish(int32_t page) {
  DropCheckpoint(page);
  Page& info = At(page);
  int32_t* link = &buckets_[BucketOf(info.hash)];
  while (*link != page) link = &At(*link).next;
  *link = info.next;
  info.next = kNoPage;
  info.published = false;
  info.number = info.parent = 0;
}

void KvPool::Append(int32_t page, UseList& list) {
  Page& info = At(page);
  info.older = list.newest;
  info.newer = kNoPage;
  (list.newest != kNoPage ? At(list.newest).newer : list.oldest) = page;
  list.newest = page;
}

void KvPool::Remove(int32_t page, UseList& list) {
  Page& info = At(page);
  (info.older != kNoPage ? At(info.older).newer : list.oldest) = info.newer;
  (info.newer != kNoPage ? At(info.newer).older : list.newest) = info.older;
  info.older = info.newer = kNoPage;
}

void KvPool::Keep(int32_t page) {
  Append(page, kept_list_);
  ++kept_;
}

void KvPool::Unkeep(int32_t page) {
  Remove(page, kept_list_);
  --kept_;
}

void KvPool::EvictOldest() {
  const int32_t page = kept_list_.oldest;
  Unkeep(page);
  Unpublish(page);
  Free(page);
}

// ---- States ----

void KvPool::AddCheckpoint(int32_t page, std::span<const int32_t> pages) {
  for (size_t i = 0; i < pages.size(); ++i) {
    Page& info = At(pages[i]);
    info.references = 0;
    info.next = i + 1 < pages.size() ? pages[i + 1] : kNoPage;
  }
  in_use_ -= static_cast<int32_t>(pages.size());
  held_ += static_cast<int32_t>(pages.size());
  At(page).checkpoint = pages[0];
  At(pages[0]).owner = page;
  Append(pages[0], checkpoints_);
  while (kept_ + held_ > limits_.kept_pages && held_ > 0) {
    DropCheckpoint(At(checkpoints_.oldest).owner);
  }
}

void KvPool::UseCheckpoint(int32_t page, std::vector<int32_t>& pages) {
  pages.clear();
  const int32_t first = At(page).checkpoint;
  for (int32_t next = first; next != kNoPage; next = At(next).next) pages.push_back(next);
  Remove(first, checkpoints_);
  Append(first, checkpoints_);
}

void KvPool::DropCheckpoint(int32_t page) {
  int32_t next = At(page).checkpoint;
  if (next == kNoPage) return;
  At(page).checkpoint = kNoPage;
  Remove(next, checkpoints_);
  At(next).owner = kNoPage;
  while (next != kNoPage) {
    const int32_t freed = next;
    next = At(freed).next;
    Free(freed);
    --held_;
  }
}

std::string KvPool::Check(std::span<const int32_t> references) const {
  const auto name = [](size_t page) { return "page " + std::to_string(page); };
  std::vector<bool> is_free(info_.size()), is_kept(info_.size());
  std::map<uint64_t, size_t> by_number;  // the published ones
  for (size_t i = 0; i < info_.size(); ++i) {
    if (info_[i].published && !by_number.emplace(info_[i].number, i).second) {
      return name(i) + " has a number twice";
    }
  }
  const auto parent_of = [&](size_t page) {
    const auto found = by_number.find(info_[page].parent);
    return found == by_number.end() ? info_.size() : found->second;
  };
  for (int32_t page = free_; page != kNoPage; page = At(page).next) {
    const auto i = static_cast<size_t>(page);
    if (is_free[i]) return name(i) + " is free twice";
    is_free[i] = true;
  }
  int32_t kept = 0;
  for (int32_t page = kept_list_.oldest, older = kNoPage; page != kNoPage; page = At(page).newer) {
    const auto i = static_cast<size_t>(page);
    if (is_kept[i] || At(page).older != older) return name(i) + " stands wrong among the kept";
    const size_t parent = parent_of(i);
    if (limits_.window == 0 && parent < info_.size() && is_kept[parent]) {
      return name(i) + " would go after its parent";
    }
    is_kept[i] = true;
    older = page;
    ++kept;
  }
  std::vector<bool> is_held(info_.size());
  int32_t held = 0;
  for (int32_t first = checkpoints_.oldest; first != kNoPage; first = At(first).newer) {
    const int32_t owner = At(first).owner;
    if (owner == kNoPage || At(owner).checkpoint != first || !At(owner).published) {
      return name(static_cast<size_t>(first)) + " is the checkpoint of no page";
    }
    for (int32_t page = first; page != kNoPage; page = At(page).next, ++held) {
      is_held[static_cast<size_t>(page)] = true;
    }
  }
  int32_t in_use = 0;
  for (size_t i = 0; i < info_.size(); ++i) {
    const Page& info = info_[i];
    const int32_t expected = i < references.size() ? references[i] : 0;
    if (info.references != expected) {
      return name(i) + " has " + std::to_string(info.references) + " references, not " +
             std::to_string(expected);
    }
    if (expected > 0) ++in_use;
    const int states =
        (expected > 0 ? 1 : 0) + (is_free[i] ? 1 : 0) + (is_kept[i] ? 1 : 0) + (is_held[i] ? 1 : 0);
    if (states != 1) return name(i) + " is not one of free, in use, kept and of a checkpoint";
    if (is_kept[i] && !info.published) return name(i) + " is kept, but nobody can find it";
    if (!info.published) continue;
    if (is_free[i]) return name(i) + " is free, but can be found";
    if (FindBehind(info.parent, PageTokens(info.tokens)) != static_cast<int32_t>(i)) {
      return name(i) + " is not found under its tokens";
    }
    if (static_cast<int64_t>(info.parent) <= 0 || limits_.window > 0) continue;
    const size_t parent = parent_of(i);
    if (parent == info_.size()) return name(i) + " has outlived its parent";
    if (expected > 0 && info_[parent].references == 0) return name(i) + " without its parent";
  }
  if (in_use != in_use_) return "in_use() is wrong";
  if (kept != kept_ || kept + held > limits_.kept_pages) return "kept() is wrong";
  if (held != held_) return "held() is wrong";
  return "";
}

}  // namespace pawl
