// ResponseStore: answers of /v1/responses that clients may ask for again or go on from.
//
//   store.Put("resp_1", {.key = 1, .response = body, .messages = list});
//   if (auto stored = store.Find("resp_1", 1)) use(stored->messages);
//
// The store lives in memory, within a number of bytes and an age. An entry is there for the API key
// that made it, and for no other. Where the bytes are not enough the key that has the most of them
// loses its oldest entry, so that one client cannot push out the entries of all others.
//
// Thread safety: all methods may be called from several threads.
#ifndef PAWL_SRC_SERVER_RESPONSE_STORE_H_
#define PAWL_SRC_SERVER_RESPONSE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace pawl::server {

class ResponseStore {
 public:
  struct Entry {
    int key = 0;           // which of the API keys, from 1; 0: the server has none
    std::string response;  // the answer's body
    std::string messages;  // a JSON list: the chat up to the answer, which is its last message
  };

  // `max_bytes` 0: nothing is stored. `now`: seconds of a clock that never goes back; by default
  // the system's.
  ResponseStore(size_t max_bytes, double max_seconds, std::function<double()> now = nullptr);

  bool on() const { return max_bytes_ > 0; }
  // false: the entry is larger than the whole store, or the store is off.
  bool Put(const std::string& id, Entry entry);
  // nullptr: there is none of this key.
  std::shared_ptr<const Entry> Find(const std::string& id, int key);
  // false: there is none of this key.
  bool Remove(const std::string& id, int key);

  size_t bytes() const;
  size_t size() const;

 private:
  struct Stored {
    std::string id;
    std::shared_ptr<const Entry> entry;
    size_t bytes = 0;
    double made = 0;
  };
  // The oldest first.
  struct OfKey {
    std::list<Stored> entries;
    size_t bytes = 0;
  };
  using Place = std::list<Stored>::iterator;

  // REQUIRES, of all three: mutex_ is held.
  void Drop(OfKey& of_key, Place place);
  void DropOld();
  void DropFor(size_t bytes);

  const size_t max_bytes_;
  const double max_seconds_;
  const std::function<double()> now_;
  mutable std::mutex mutex_;
  std::map<int, OfKey> keys_;
  std::unordered_map<std::string, Place> places_;
  size_t bytes_ = 0;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_RESPONSE_STORE_H_
