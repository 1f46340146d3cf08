// The store of answers: a list of entries for each API key, the oldest first, and where each id
// stands.
#include "src/server/response_store.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace pawl::server {
namespace {

// Of the two containers and the shared entry.
constexpr size_t kBytesOfEntry = 320;

double SecondsOfSystem() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ResponseStore::ResponseStore(size_t max_bytes, double max_seconds, std::function<double()> now)
    : max_bytes_(max_bytes),
      max_seconds_(max_seconds),
      now_(now != nullptr ? std::move(now) : SecondsOfSystem) {}

bool ResponseStore::Put(const std::string& id, Entry entry) {
  const size_t bytes =
      kBytesOfEntry + 2 * id.size() + entry.response.capacity() + entry.messages.capacity();
  const std::lock_guard lock(mutex_);
  DropOld();
  if (bytes > max_bytes_) return false;
  DropFor(bytes);
  const int key = entry.key;
  Stored stored{.id = id,
                .entry = std::make_shared<const Entry>(std::move(entry)),
                .bytes = bytes,
                .made = now_()};
  OfKey& of_key = keys_[key];
  of_key.entries.push_back(std::move(stored));
  const Place place = std::prev(of_key.entries.end());
  try {
    if (!places_.emplace(id, place).second) {
      of_key.entries.pop_back();
      return false;
    }
  } catch (...) {
    of_key.entries.pop_back();
    throw;
  }
  of_key.bytes += bytes;
  bytes_ += bytes;
  return true;
}

std::shared_ptr<const ResponseStore::Entry> ResponseStore::Find(const std::string& id, int key) {
  const std::lock_guard lock(mutex_);
  DropOld();
  const auto found = places_.find(id);
  if (found == places_.end() || found->second->entry->key != key) return nullptr;
  return found->second->entry;
}

bool ResponseStore::Remove(const std::string& id, int key) {
  const std::lock_guard lock(mutex_);
  DropOld();
  const auto found = places_.find(id);
  if (found == places_.end() || found->second->entry->key != key) return false;
  Drop(keys_.at(key), found->second);
  return true;
}

size_t ResponseStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

size_t ResponseStore::size() const {
  const std::lock_guard lock(mutex_);
  return places_.size();
}

void ResponseStore::Drop(OfKey& of_key, Place place) {
  of_key.bytes -= place->bytes;
  bytes_ -= place->bytes;
  places_.erase(place->id);
  of_key.entries.erase(place);
}

void ResponseStore::DropOld() {
  const double first = now_() - max_seconds_;
  for (auto& [key, of_key] : keys_) {
    while (!of_key.entries.empty() && of_key.entries.front().made < first) {
      Drop(of_key, of_key.entries.begin());
    }
  }
}

void ResponseStore::DropFor(size_t bytes) {
  while (bytes_ + bytes > max_bytes_) {
    OfKey& largest = std::max_element(keys_.begin(), keys_.end(), [](const auto& a, const auto& b) {
                       return a.second.bytes < b.second.bytes;
                     })->second;
    Drop(largest, largest.entries.begin());
  }
}

}  // namespace pawl::server
