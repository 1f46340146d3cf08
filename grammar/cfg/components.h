// Components: the strongly connected components of a graph, each after those that it refers to
// (Tarjan 1972), without recursion.
#ifndef PAWL_GRAMMAR_CFG_COMPONENTS_H_
#define PAWL_GRAMMAR_CFG_COMPONENTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "src/base/memory_size.h"

namespace pawl {

// Not thread-safe; what is allocated stays for the next call.
class Components {
 public:
  // Answers of `next_of`.
  static constexpr uint32_t kNothing = UINT32_MAX;     // no node in this place
  static constexpr uint32_t kNoMore = UINT32_MAX - 1;  // nor in any place behind it

  // Calls done(members) for each component of the nodes 0 to count - 1. `next_of(node, i)`: the
  // i-th node that a node refers to. Returns the number of references that were followed.
  template <typename Next, typename Done>
  uint64_t Each(uint32_t count, const Next& next_of, const Done& done) {
    uint64_t steps = 0;
    constexpr uint32_t kNew = UINT32_MAX;
    order_.assign(count, kNew);
    low_.assign(count, 0);
    on_stack_.assign(count, false);
    uint32_t counter = 0;
    for (uint32_t root = 0; root < count; ++root) {
      if (order_[root] != kNew) continue;
      path_.emplace_back(root, 0);
      while (!path_.empty()) {
        auto& [at, next] = path_.back();
        if (next == 0) {
          order_[at] = low_[at] = counter++;
          stack_.push_back(at);
          on_stack_[at] = true;
        }
        bool down = false;
        for (uint32_t to; (to = next_of(at, next)) != kNoMore;) {
          ++next;
          ++steps;
          if (to == kNothing) continue;
          if (order_[to] == kNew) {
            path_.emplace_back(to, 0);  // invalidates the references
            down = true;
            break;
          }
          if (on_stack_[to]) low_[at] = std::min(low_[at], order_[to]);
        }
        if (down) continue;
        const uint32_t last = at;
        path_.pop_back();
        if (!path_.empty()) {
          uint32_t& above = low_[path_.back().first];
          above = std::min(above, low_[last]);
        }
        if (low_[last] != order_[last]) continue;
        members_.clear();
        do {
          members_.push_back(stack_.back());
          on_stack_[stack_.back()] = false;
          stack_.pop_back();
        } while (members_.back() != last);
        done(std::span<const uint32_t>(members_));
      }
    }
    return steps;
  }

  size_t MemoryBytes() const { return HeapBytes(order_, low_, stack_, members_, on_stack_, path_); }

 private:
  std::vector<uint32_t> order_, low_, stack_, members_;
  std::vector<bool> on_stack_;
  std::vector<std::pair<uint32_t, size_t>> path_;  // node, next reference to look at
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_COMPONENTS_H_
