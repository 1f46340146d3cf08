// The distance is that of optimal string alignment: Damerau, "A technique for computer detection
// and correction of spelling errors", Communications of the ACM 7(3), 1964.
#include "schemas/read/near_keyword.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace pawl::schema {
namespace {

constexpr size_t kLeastLetters = 4, kLettersOfTwo = 8, kMostLetters = 32;

std::string Letters(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '_' || c == '-') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

// REQUIRES: both have at most kMostLetters.
size_t Distance(std::string_view a, std::string_view b) {
  std::array<std::array<size_t, kMostLetters + 1>, kMostLetters + 1> best;
  for (size_t i = 0; i <= a.size(); ++i) best[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) best[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      best[i][j] = std::min({best[i - 1][j] + 1, best[i][j - 1] + 1,
                             best[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        best[i][j] = std::min(best[i][j], best[i - 2][j - 2] + 1);
      }
    }
  }
  return best[a.size()][b.size()];
}

}  // namespace

std::string_view NearKeyword(std::string_view name, std::span<const std::string_view> keywords) {
  if (name.size() > kMostLetters) return "";
  const std::string letters = Letters(name);
  if (letters.size() < kLeastLetters) return "";
  size_t nearest = letters.size() < kLettersOfTwo ? 2 : 3;
  std::string_view found;
  for (const std::string_view keyword : keywords) {
    const std::string its = Letters(keyword);
    const size_t longer = std::max(its.size(), letters.size());
    if (its.size() < kLeastLetters || longer > kMostLetters) continue;
    if (longer - std::min(its.size(), letters.size()) > 2) continue;
    const size_t distance = Distance(letters, its);
    if (distance > nearest || (distance == nearest && found.empty())) continue;
    found = distance < nearest ? keyword : "";
    nearest = distance;
  }
  return found;
}

}  // namespace pawl::schema
