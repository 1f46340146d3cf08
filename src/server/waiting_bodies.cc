// The shares stand in a list, oldest first; all that is decided is decided by one walk over it,
// which happens only where the bound is reached. A dropped share keeps its bytes until its
// connection has run and left; until then no other is dropped, so one step never costs two
// bodies.
//
// Memory that becomes free goes to the oldest share that waits. So of many bodies that together do
// not fit, some arrive whole, and those that came last make room.
#include "src/server/waiting_bodies.h"

namespace pawl::server {

void WaitingBodies::Grant(Share& share, TimePoint now) noexcept {
  bytes_ += kStepBytes;
  share.granted_ += kStepBytes;
  share.moved_ = now;
  share.wants_ = false;
}

bool WaitingBodies::Grow(Share& share, TimePoint now) noexcept {
  const std::lock_guard lock(mutex_);
  if (share.dropped_) return false;
  if (!share.listed_) {
    share.listed_ = true;
    share.before_ = last_;
    (last_ == nullptr ? first_ : last_->after_) = &share;
    last_ = &share;
    share.moved_ = now;
  }
  if (bytes_ + kStepBytes <= bound_) {
    Grant(share, now);
    return true;
  }
  share.wants_ = true;
  Relieve(now);
  return false;
}

void WaitingBodies::Relieve(TimePoint now) noexcept {
  Share *stalled = nullptr, *newest = nullptr;
  bool all_want = true;
  for (Share* share = first_; share != nullptr; share = share->after_) {
    if (share->dropped_) return;  // it makes room as it is
    if (share->granted_ == 0) continue;
    newest = share;
    if (share->wants_) continue;
    all_want = false;
    if (now - share->moved_ < kStallTime) continue;
    if (stalled == nullptr || share->moved_ < stalled->moved_) stalled = share;
  }
  Share* const goes = stalled != nullptr ? stalled : all_want ? newest : nullptr;
  if (goes == nullptr) return;
  goes->dropped_ = true;
  goes->MayGoOn();
}

void WaitingBodies::Leave(Share& share, TimePoint now) noexcept {
  const std::lock_guard lock(mutex_);
  if (share.listed_) {
    (share.before_ == nullptr ? first_ : share.before_->after_) = share.after_;
    (share.after_ == nullptr ? last_ : share.after_->before_) = share.before_;
    bytes_ -= share.granted_;
  }
  share.before_ = share.after_ = nullptr;
  share.granted_ = 0;
  share.listed_ = share.wants_ = false;
  share.dropped_ = false;
  for (Share* other = first_; other != nullptr; other = other->after_) {
    if (bytes_ + kStepBytes > bound_) break;
    if (!other->wants_ || other->dropped_) continue;
    Grant(*other, now);
    other->MayGoOn();
  }
}

size_t WaitingBodies::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace pawl::server
