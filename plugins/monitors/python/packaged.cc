// The tables are made by embed_stubs.py when Pawl is built, sorted by name, so that an installed
// Pawl needs no further file.
#include <algorithm>
#include <cstddef>

#include "plugins/monitors/python/symbol_table.h"

namespace pawl::monitors::python {

struct PackagedText {
  std::string_view name;
  std::string_view text;
};
extern const PackagedText kPackagedStubs[];
extern const size_t kPackagedStubCount;
extern const PackagedText kUnlistedNames[];
extern const size_t kUnlistedNameCount;

namespace {

const PackagedText* FirstFrom(const PackagedText* begin, const PackagedText* end,
                              std::string_view name) {
  return std::lower_bound(begin, end, name,
                          [](const PackagedText& t, std::string_view n) { return t.name < n; });
}

}  // namespace

std::optional<std::string> PackagedStub(std::string_view path) {
  const PackagedText* end = kPackagedStubs + kPackagedStubCount;
  const PackagedText* at = FirstFrom(kPackagedStubs, end, path);
  if (at == end || at->name != path) return std::nullopt;
  return std::string(at->text);
}

std::vector<std::string> PackagedStubsIn(std::string_view folder) {
  const std::string prefix = std::string(folder) + "/";
  const PackagedText* end = kPackagedStubs + kPackagedStubCount;
  std::vector<std::string> found;
  for (const PackagedText* at = FirstFrom(kPackagedStubs, end, prefix);
       at != end && at->name.starts_with(prefix); ++at) {
    const std::string_view rest = at->name.substr(prefix.size());
    std::string first(rest.substr(0, rest.find('/')));
    if (found.empty() || found.back() != first) found.push_back(std::move(first));
  }
  return found;
}

std::unordered_set<std::string> UnlistedNames(std::string_view owner) {
  std::unordered_set<std::string> names;
  const PackagedText* end = kUnlistedNames + kUnlistedNameCount;
  const PackagedText* at = FirstFrom(kUnlistedNames, end, owner);
  if (at == end || at->name != owner) return names;
  for (std::string_view rest = at->text; !rest.empty();) {
    const size_t space = std::min(rest.find(' '), rest.size());
    names.emplace(rest.substr(0, space));
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  return names;
}

}  // namespace pawl::monitors::python
