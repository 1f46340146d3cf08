// FindStop: stop strings in an output that grows, and how much of the output can be shown.
//
//   text += bytes;
//   const StopScan scan = FindStop(stops, text, text.size() - bytes.size());
//   if (scan.which < stops.size()) text.resize(scan.at);   // the output ends before the stop
//   string Show(text.substr(shown, scan.safe - shown));
//
// No state; thread-safe.
#ifndef PAWL_SRC_DECODE_STOP_STRINGS_H_
#define PAWL_SRC_DECODE_STOP_STRINGS_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace pawl {

struct StopScan {
  size_t which;  // index of the stop string that ends first; the number of them: none is found
  size_t at;     // where it begins, in bytes; the text's size where none is found
  // Bytes of the text that no stop string can begin in, whatever follows. Bytes from here on may be
  // the beginning of one.
  size_t safe;
};

// `before`: the length of `text` that was scanned before, without a stop string in it. Stop strings
// are not empty. Of those that end at the same byte the longest is found.
StopScan FindStop(std::span<const std::string> stops, std::string_view text, size_t before);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_STOP_STRINGS_H_
