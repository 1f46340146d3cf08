// Strategies: what a search does with hypotheses (search_run.h). Each is a file with a function,
// and a line in registry.cc.
#ifndef PAWL_SRC_DECODE_SEARCH_STRATEGY_H_
#define PAWL_SRC_DECODE_SEARCH_STRATEGY_H_

#include <span>
#include <string>
#include <string_view>

#include "pawl/result.h"
#include "src/decode/search/search_run.h"

namespace pawl {

struct SearchArgument {
  const char* name;
  double value;  // where it is not given
  double least, most;
  const char* help;
};

struct SearchStrategy {
  const char* name;
  const char* help;
  std::span<const SearchArgument> arguments;
  Result<SearchResult> (*run)(SearchRun& run);
  bool one_output = false;
};

// All of them; the one with a name, or nullptr.
std::span<const SearchStrategy> SearchStrategies();
const SearchStrategy* FindStrategy(std::string_view name);
// "0.01", "100": as few digits as tell the number.
std::string ArgumentNumber(double value);

Result<SearchResult> SearchBeam(SearchRun& run);
Result<SearchResult> SearchForcedBeam(SearchRun& run);
Result<SearchResult> SearchDiverseBeam(SearchRun& run);
Result<SearchResult> SearchBestFirst(SearchRun& run);
Result<SearchResult> SearchAdaDec(SearchRun& run);
Result<SearchResult> SearchCautious(SearchRun& run);
Result<SearchResult> SearchPlanned(SearchRun& run);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SEARCH_STRATEGY_H_
