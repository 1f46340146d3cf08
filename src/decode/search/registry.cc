// The strategies by name, with their arguments.
#include <algorithm>
#include <charconv>
#include <string>

#include "src/decode/search/strategy.h"

namespace pawl {
namespace {

constexpr SearchArgument kBestFirstArguments[] = {
    {"batch", 4, 1, 256, "hypotheses that are expanded in one call of the model"},
};

constexpr SearchStrategy kStrategies[] = {
    {"beam", "keeps the num_beams best beginnings of each length", {}, SearchBeam},
    {"best-first", "expands the most probable beginning: the exact n best outputs",
     kBestFirstArguments, SearchBestFirst},
    {"diverse-beam", "num_beam_groups beams that avoid each other's tokens", {}, SearchDiverseBeam},
};

std::string ArgumentNumber(double value) {
  char digits[32];
  return {static_cast<char*>(digits), std::to_chars(digits, digits + sizeof digits, value).ptr};
}

}  // namespace

std::span<const SearchStrategy> SearchStrategies() { return kStrategies; }

const SearchStrategy* FindStrategy(std::string_view name) {
  const auto found = std::ranges::find_if(
      kStrategies, [&](const SearchStrategy& one) { return name == one.name; });
  return found == std::end(kStrategies) ? nullptr : &*found;
}

std::string SearchHelp() {
  std::string help;
  for (const SearchStrategy& one : kStrategies) {
    help += std::string(one.name) + std::string(14 - std::string_view(one.name).size(), ' ') +
            one.help + "\n";
    for (const SearchArgument& argument : one.arguments) {
      const std::string given = std::string(argument.name) + "=" + ArgumentNumber(argument.value);
      help += "    " + given + std::string(given.size() < 22 ? 22 - given.size() : 1, ' ') +
              argument.help + "\n";
    }
  }
  return help;
}

}  // namespace pawl
