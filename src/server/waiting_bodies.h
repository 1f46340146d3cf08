// WaitingBodies: one bound for the bodies of all requests that have not arrived whole.
//
//   if (body_read < waiting.Room(share)) Read();          // as far as that
//   else if (!waiting.Grow(share, now)) return;           // MayGoOn is called when there is memory
//   ...
//   if (share.dropped()) Answer408();                     // another body needed the memory
//   waiting.Leave(share, now);                            // the body is whole, or given up
//
// The first kFreeBytes of each body count for nothing, so small requests never wait. What is above
// is granted in steps. Where a step would go over the bound, the body that has stalled longest
// goes: a body has moved when it was granted a step, and has stalled kStallTime after that. Where
// none has stalled the asker waits; where all wait for each other, the one that began last goes.
// Thread-safe. Allocates nothing.
#ifndef PAWL_SRC_SERVER_WAITING_BODIES_H_
#define PAWL_SRC_SERVER_WAITING_BODIES_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>

namespace pawl::server {

class WaitingBodies {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr size_t kFreeBytes = 64 << 10;
  static constexpr size_t kStepBytes = 64 << 10;
  static constexpr std::chrono::milliseconds kStallTime{500};

  // The part of one body.
  class Share {
   public:
    // It was given up for the sake of others.
    bool dropped() const { return dropped_; }

   protected:
    ~Share() = default;
    // There is room now, or the share was dropped. On any thread, with locks held: only to tell.
    virtual void MayGoOn() noexcept = 0;

   private:
    friend class WaitingBodies;
    Share *before_ = nullptr, *after_ = nullptr;
    std::atomic<size_t> granted_{0};
    std::atomic<bool> dropped_{false};
    bool listed_ = false, wants_ = false;
    TimePoint moved_{};
  };

  explicit WaitingBodies(size_t bound) : bound_(bound) {}

  // Bytes that the body may have.
  static size_t Room(const Share& share) { return kFreeBytes + share.granted_; }
  // Grants a step. false: not now. A share that waits asks again every now and then: others may
  // have stalled by then.
  bool Grow(Share& share, TimePoint now) noexcept;
  // Its room is for others. Nothing where it never grew.
  void Leave(Share& share, TimePoint now) noexcept;

  // Bytes that are granted.
  size_t bytes() const;

 private:
  void Relieve(TimePoint now) noexcept;
  void Grant(Share& share, TimePoint now) noexcept;

  const size_t bound_;
  mutable std::mutex mutex_;
  Share *first_ = nullptr, *last_ = nullptr;  // in the order in which they first grew
  size_t bytes_ = 0;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_WAITING_BODIES_H_
