// The strategy self-infill, which writes with several prompts and so makes its own runs.
#ifndef PAWL_SRC_DECODE_SEARCH_SELF_INFILL_H_
#define PAWL_SRC_DECODE_SEARCH_SELF_INFILL_H_

#include "pawl/result.h"
#include "pawl/sampling.h"
#include "src/decode/search/run.h"

namespace pawl {

// `positions`: of a sequence. Errors: kUnsupported where the model has no markers, and for a
// constraint that is no grammar's; those of RunSearch.
Result<SearchResult> RunSelfInfill(const SearchInput& input, const SearchOptions& options,
                                   int positions, BranchHost* host);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SEARCH_SELF_INFILL_H_
