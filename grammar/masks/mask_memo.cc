// The table is open: a key is searched for from the place of its hash to the next empty one. An
// entry's mask is written before its key and neither changes afterwards, so that a reader who sees
// the key sees the mask.
#include "grammar/masks/mask_memo.h"

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

std::shared_lock<std::shared_mutex> MaskMemo::Enter() const {
  thread_local const char anchor = 0;  // something whose address no two threads share
  if (closing_.load(std::memory_order_relaxed)) const std::lock_guard wait(closed_);
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&anchor));
  return std::shared_lock(gates_[(address * 0x9E3779B97F4A7C15u) >> 60].mutex);
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

}  // namespace pawl
