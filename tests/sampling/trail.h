// Trail: all ways to answer a series of choices, so that a test can run a sampler along every path
// of its decision tree.
#ifndef PAWL_TESTS_SAMPLING_TRAIL_H_
#define PAWL_TESTS_SAMPLING_TRAIL_H_

#include <cstddef>
#include <utility>
#include <vector>

namespace pawl {

// Goes through all ways to answer a series of choices, one run after another.
class Trail {
 public:
  int Choose(int options) {
    if (at_ == choices_.size()) choices_.push_back({0, options});
    return choices_[at_++].first;
  }
  // To the next path; false: that was the last one.
  bool Advance() {
    while (!choices_.empty() && choices_.back().first + 1 == choices_.back().second) {
      choices_.pop_back();
    }
    at_ = 0;
    if (choices_.empty()) return false;
    ++choices_.back().first;
    return true;
  }

 private:
  std::vector<std::pair<int, int>> choices_;
  size_t at_ = 0;
};

}  // namespace pawl

#endif  // PAWL_TESTS_SAMPLING_TRAIL_H_
