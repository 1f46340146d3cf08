// The table is open: a key is searched for from the place of its hash to the next empty one. An
// entry's mask is written before its key and neither changes afterwards, so that a reader who sees
// the key sees the mask.
#include "grammar/masks/mask_memo.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace pawl {

class MaskMemo::Table {
 public:
  explicit Table(int bits) : bits_(bits), entries_(std::make_unique<Entry[]>(size_t{1} << bits)) {}

  int bits() const { return bits_; }
  bool full() const { return used_ * 4 >= (size_t{3} << bits_); }

  const std::shared_ptr<const Mask>* Find(Machine::Key key) const {
    for (size_t i = PlaceOf(key);; i = Next(i)) {
      const Machine::Key there = entries_[i].key.load(std::memory_order_acquire);
      if (there == Machine::kDead) return nullptr;
      if (there == key) return &entries_[i].mask;
    }
  }
  // REQUIRES: !full(), and the key is not there.
  void Add(Machine::Key key, const std::shared_ptr<const Mask>& mask) {
    size_t i = PlaceOf(key);
    while (entries_[i].key.load(std::memory_order_relaxed) != Machine::kDead) i = Next(i);
    entries_[i].mask = mask;
    entries_[i].key.store(key, std::memory_order_release);
    ++used_;
  }
  std::unique_ptr<Table> Larger() const {
    auto larger = std::make_unique<Table>(bits_ + 1);
    for (size_t i = 0; i < size_t{1} << bits_; ++i) {
      const Machine::Key key = entries_[i].key.load(std::memory_order_relaxed);
      if (key != Machine::kDead) larger->Add(key, entries_[i].mask);
    }
    return larger;
  }

 private:
  struct Entry {
    std::atomic<Machine::Key> key{Machine::kDead};
    std::shared_ptr<const Mask> mask;
  };
  size_t PlaceOf(Machine::Key key) const {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> (64 - bits_));
  }
  size_t Next(size_t i) const { return (i + 1) & ((size_t{1} << bits_) - 1); }

  int bits_;
  size_t used_ = 0;  // of the writer alone
  std::unique_ptr<Entry[]> entries_;
};

namespace {
constexpr int kFirstBits = 6;
}  // namespace

MaskMemo::MaskMemo() : table_(std::make_unique<Table>(kFirstBits)) {}
MaskMemo::~MaskMemo() = default;

SharedLock MaskMemo::Enter() const {
  thread_local const char anchor = 0;  // something whose address no two threads share
  if (closing_.load(std::memory_order_relaxed)) const std::lock_guard wait(closed_);
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&anchor));
  return SharedLock(gates_[(address * 0x9E3779B97F4A7C15u) >> 60].mutex);
}

std::shared_ptr<const Mask> MaskMemo::Find(Machine::Key key) const {
  const auto gate = Enter();
  const std::shared_ptr<const Mask>* mask = table_->Find(key);
  return mask == nullptr ? nullptr : *mask;
}

int64_t MaskMemo::Copy(Machine::Key key, std::span<uint32_t> row) const {
  const auto gate = Enter();
  const std::shared_ptr<const Mask>* mask = table_->Find(key);
  if (mask == nullptr) return -1;
  const std::span<const uint32_t> words = (*mask)->words();
  std::memcpy(row.data(), words.data(), words.size_bytes());
  return (*mask)->count();
}

void MaskMemo::Keep(Machine::Key key, const std::shared_ptr<const Mask>& mask) {
  if (key == Machine::kDead || table_->Find(key) != nullptr) return;
  if (table_->full()) Replace(table_->Larger());
  table_->Add(key, mask);
}

void MaskMemo::Clear() { Replace(std::make_unique<Table>(kFirstBits)); }

void MaskMemo::Replace(std::unique_ptr<Table> table) {
  const std::lock_guard wait(closed_);
  closing_.store(true, std::memory_order_relaxed);
  for (Gate& gate : gates_) gate.mutex.lock();
  table_.swap(table);
  for (Gate& gate : gates_) gate.mutex.unlock();
  closing_.store(false, std::memory_order_relaxed);
}  // the old table is freed with the gates open

// Masks are found by a hash of their words and compared word by word, so equal masks are one object
// and its id stands for its content. What a caller holds stays alive when the pool forgets it.

Mask::Mask(MaskId id, std::vector<uint32_t> words) : id_(id), words_(std::move(words)) {}

namespace {

int CountBits(std::span<const uint32_t> words) {
  int count = 0;
  for (const uint32_t word : words) count += std::popcount(word);
  return count;
}

#if defined(__x86_64__)
// Of the processors of the last fifteen years; without it every word is a call.
__attribute__((target("popcnt"))) int CountBitsByInstruction(std::span<const uint32_t> words) {
  uint64_t count = 0;
  size_t i = 0;
  for (; i + 2 <= words.size(); i += 2) {
    uint64_t two;
    std::memcpy(&two, &words[i], sizeof two);
    count += static_cast<uint64_t>(__builtin_popcountll(two));
  }
  if (i < words.size()) count += static_cast<uint64_t>(__builtin_popcount(words[i]));
  return static_cast<int>(count);
}
#endif

}  // namespace

void Mask::Count() const {
  const auto first = std::ranges::find_if(words_, [](uint32_t word) { return word != 0; });
  if (first != words_.end()) {
    first_.store(static_cast<TokenId>((first - words_.begin()) * 32 + std::countr_zero(*first)),
                 std::memory_order_relaxed);
  }
#if defined(__x86_64__)
  const bool fast = __builtin_cpu_supports("popcnt") != 0;
  count_.store(fast ? CountBitsByInstruction(words_) : CountBits(words_),
               std::memory_order_release);
#else
  count_.store(CountBits(words_), std::memory_order_release);
#endif
}

std::vector<TokenId> Mask::Tokens() const {
  std::vector<TokenId> out;
  out.reserve(static_cast<size_t>(count()));
  for (size_t i = 0; i < words_.size(); ++i) {
    for (uint32_t rest = words_[i]; rest != 0; rest &= rest - 1) {
      out.push_back(static_cast<TokenId>(i * 32 + static_cast<size_t>(std::countr_zero(rest))));
    }
  }
  return out;
}

// Four lanes, so that the products do not wait for each other.
uint64_t MaskPool::Hash(std::span<const uint32_t> words) {
  uint64_t a = 1;
  uint64_t b = 2;
  uint64_t c = 3;
  uint64_t d = 4;
  const auto mix = [](uint64_t& lane, uint64_t block) {
    lane = (lane ^ block) * 0xD6E8FEB86659FD93u;
    lane ^= lane >> 32;
  };
  size_t i = 0;
  for (; i + 8 <= words.size(); i += 8) {
    uint64_t block[4];
    std::memcpy(block, &words[i], sizeof block);
    mix(a, block[0]);
    mix(b, block[1]);
    mix(c, block[2]);
    mix(d, block[3]);
  }
  for (; i < words.size(); ++i) mix(a, words[i]);
  uint64_t hash = 0;
  for (const uint64_t lane : {a, b, c, d})
    hash = (hash ^ lane ^ (lane >> 29)) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 32);
}

void MaskPool::Clear() {
  masks_.clear();
  bytes_ = 0;
}

std::shared_ptr<const Mask> MaskPool::Intern(uint64_t hash, std::vector<uint32_t> words) {
  const auto [first, last] = masks_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (std::ranges::equal(it->second->words(), words)) return it->second;
  }
  const size_t cost = words.size() * 4 + 128;
  if (bytes_ + cost > max_bytes_) Clear();
  auto mask = std::make_shared<const Mask>(next_id_++, std::move(words));
  masks_.emplace(hash, mask);
  bytes_ += cost;
  return mask;
}

}  // namespace pawl
