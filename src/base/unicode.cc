// All properties share one array of ranges; a property is an offset and a count into it, found by
// binary search on its loose name (UAX #44, LM3). The tables are made by
// scripts/gen_unicode_tables.py.
#include "src/base/unicode.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

namespace pawl {
namespace {

struct PropertyName {
  std::string_view name;
  uint16_t offset;
  uint16_t count;
};

#include "src/base/unicode_tables.inc"

// Longer than every name in the tables; a longer query cannot match and is not worth copying.
constexpr size_t kMaxName = 80;

}  // namespace

std::span<const CodepointRange> UnicodeProperty(std::string_view name) {
  if (name.size() > kMaxName) return {};
  std::string loose;
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') continue;
    loose.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  const auto* found = std::lower_bound(
      std::begin(kPropertyNames), std::end(kPropertyNames), std::string_view(loose),
      [](const PropertyName& entry, std::string_view key) { return entry.name < key; });
  if (found == std::end(kPropertyNames) || found->name != loose) return {};
  return std::span<const CodepointRange>(kPropertyRanges).subspan(found->offset, found->count);
}

std::span<const CaseFold> SimpleCaseFolds() { return kCaseFolds; }

char32_t SimpleFold(char32_t codepoint) {
  const auto* found =
      std::lower_bound(std::begin(kCaseFolds), std::end(kCaseFolds), codepoint,
                       [](const CaseFold& entry, char32_t key) { return entry.from < key; });
  return found != std::end(kCaseFolds) && found->from == codepoint ? found->to : codepoint;
}

}  // namespace pawl
