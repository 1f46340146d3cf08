// A stop string that ends in the new bytes begins at most its length before them, so no more of the
// older text is kept. The one that ends first is found, so that an output does not depend on how
// its bytes were cut into tokens. A text is safe up to the longest end of it that begins a stop
// string.
#include "src/decode/stop_strings.h"

#include <algorithm>
#include <utility>

namespace pawl {

StopStrings::StopStrings(std::vector<std::string> stops, bool include)
    : stops_(std::move(stops)), include_(include) {
  std::erase(stops_, "");
  for (const std::string& stop : stops_) longest_ = std::max(longest_, stop.size());
}

bool StopStrings::Feed(std::string_view bytes) {
  if (stops_.empty()) {
    size_ = safe_ = size_ + bytes.size();
    return true;
  }
  const size_t before = tail_.size();
  const size_t begin = size_ - before;  // of the tail, in the output
  tail_ += bytes;
  size_ += bytes.size();
  size_t first_end = std::string::npos, first_at = 0;
  for (size_t i = 0; i < stops_.size(); ++i) {
    const size_t from = before >= stops_[i].size() ? before - stops_[i].size() + 1 : 0;
    const size_t at = tail_.find(stops_[i], from);
    if (at == std::string::npos) continue;
    const size_t end = at + stops_[i].size();
    if (end < first_end || (end == first_end && at < first_at)) {
      first_end = end;
      first_at = at;
      which_ = i;
    }
  }
  if (which_ < stops_.size()) {
    size_ = safe_ = begin + (include_ ? first_end : first_at);
    return false;
  }
  size_t held = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, tail_.size()); n > held; --n) {
      if (tail_.ends_with(std::string_view(stop).substr(0, n))) held = n;
    }
  }
  safe_ = size_ - held;
  if (tail_.size() >= longest_) tail_.erase(0, tail_.size() - longest_ + 1);
  return true;
}

}  // namespace pawl
