// A stop string that ends in the new bytes begins at most its length before them, so older text is
// not searched again. The one that ends first is found, so that an output does not depend on how
// its bytes were cut into tokens. A text is safe up to the longest end of it that begins a stop
// string.
#include "src/decode/stop_strings.h"

#include <algorithm>

namespace pawl {

StopScan FindStop(std::span<const std::string> stops, std::string_view text, size_t before) {
  StopScan scan{stops.size(), text.size(), text.size()};
  size_t first_end = std::string_view::npos;
  for (size_t i = 0; i < stops.size(); ++i) {
    const size_t from = before >= stops[i].size() ? before - stops[i].size() + 1 : 0;
    const size_t at = text.find(stops[i], from);
    if (at == std::string_view::npos) continue;
    const size_t end = at + stops[i].size();
    if (end < first_end || (end == first_end && at < scan.at)) {
      first_end = end;
      scan = {i, at, at};
    }
  }
  if (scan.which < stops.size()) return scan;
  size_t held = 0;
  for (const std::string& stop : stops) {
    for (size_t n = std::min(stop.size() - 1, text.size()); n > held; --n) {
      if (text.ends_with(std::string_view(stop).substr(0, n))) held = n;
    }
  }
  scan.safe = text.size() - held;
  return scan;
}

}  // namespace pawl
