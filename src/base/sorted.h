// Sorted vectors as sets.
#ifndef PAWL_SRC_BASE_SORTED_H_
#define PAWL_SRC_BASE_SORTED_H_

#include <algorithm>
#include <vector>

namespace pawl {

// Sorts and keeps one of equal elements.
template <typename T>
void SortUnique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace pawl

#endif  // PAWL_SRC_BASE_SORTED_H_
