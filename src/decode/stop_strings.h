// StopStrings: stop strings in an output that grows, and how much of the output can be shown.
//
//   StopStrings stops({"\n\n", "END"});
//   bool goes_on = stops.Feed(bytes);        // false: a stop string has ended the output
//   text += bytes;
//   text.resize(stops.size());               // without the stop string
//   Show(text.substr(shown, stops.safe() - shown));
//
// Not thread-safe.
#ifndef PAWL_SRC_DECODE_STOP_STRINGS_H_
#define PAWL_SRC_DECODE_STOP_STRINGS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pawl {

class StopStrings {
 public:
  StopStrings() = default;
  // Empty stop strings are ignored. `include`: the output ends with the stop string, not before it.
  explicit StopStrings(std::vector<std::string> stops, bool include = false);

  // More bytes of the output. false: a stop string has ended it. Of stop strings that end at the
  // same byte the longest is found. REQUIRES: no stop string was found before.
  bool Feed(std::string_view bytes);

  // Bytes of the output, without what the stop string cuts off.
  size_t size() const { return size_; }
  // Bytes of it that stay, whatever follows: no stop string can begin in them.
  size_t safe() const { return safe_; }
  // The stop string that ended the output; empty: none has.
  std::string_view found() const {
    return which_ < stops_.size() ? std::string_view(stops_[which_]) : std::string_view();
  }
  bool empty() const { return stops_.empty(); }

 private:
  std::vector<std::string> stops_;
  bool include_ = false;
  size_t longest_ = 0;
  std::string tail_;  // the end of the output, as far back as a stop string may have begun
  size_t size_ = 0, safe_ = 0;
  size_t which_ = static_cast<size_t>(-1);
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_STOP_STRINGS_H_
