// Strategies: what a search does with hypotheses (search_run.h). Each is a file with a function,
// and a line in registry.cc.
#ifndef PAWL_SRC_DECODE_SEARCH_STRATEGY_H_
#define PAWL_SRC_DECODE_SEARCH_STRATEGY_H_

#include <cstdint>
#include <functional>
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
  bool whole = true;  // takes whole numbers only
};

// Options of SearchOptions that some strategies have no use for.
enum StrategyUse : uint8_t {
  kUsesBeams = 1,     // num_beams, early_stopping
  kUsesGroups = 2,    // num_beam_groups, diversity_penalty
  kUsesLength = 4,    // length_penalty
  kHasOneOutput = 8,  // n is 1
  kNeedsStates = 16,  // SearchRun::StatesOf
  kMixesRows = 32,    // SearchRun::MixedLaws: n is at most kMostMixed, no contrast
};

inline constexpr int kMostMixed = 8;
inline constexpr int64_t kStrategyRows = 65536;

struct SearchStrategy {
  const char* name;
  const char* help;
  std::span<const SearchArgument> arguments;
  Result<SearchResult> (*run)(SearchRun& run);  // nullptr: of self-infill, which has several runs
  int uses = 0;                                 // StrategyUse
  int64_t rows = kStrategyRows;                 // where SearchOptions::max_rows is 0
};

// All of them; the one with a name, or nullptr.
std::span<const SearchStrategy> SearchStrategies();
const SearchStrategy* FindStrategy(std::string_view name);
// The first of the options in `given` that it has no use for; "": none.
std::string UnusedOption(const std::string& strategy,
                         const std::function<bool(const std::string& option)>& given);
// "0.01", "100": as few digits as tell the number.
std::string ArgumentNumber(double value);

Result<SearchResult> SearchBeam(SearchRun& run);
Result<SearchResult> SearchForcedBeam(SearchRun& run);
Result<SearchResult> SearchDiverseBeam(SearchRun& run);
Result<SearchResult> SearchBestFirst(SearchRun& run);
Result<SearchResult> SearchAdaDec(SearchRun& run);
Result<SearchResult> SearchContrastive(SearchRun& run);
Result<SearchResult> SearchCautious(SearchRun& run);
Result<SearchResult> SearchPlanned(SearchRun& run);
Result<SearchResult> SearchLattice(SearchRun& run);
Result<SearchResult> SearchForesight(SearchRun& run);
Result<SearchResult> SearchSuperposed(SearchRun& run);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SEARCH_STRATEGY_H_
