// The exact probabilities of choices.
#ifndef PAWL_SRC_DECODE_SEARCH_CLASSIFY_H_
#define PAWL_SRC_DECODE_SEARCH_CLASSIFY_H_

#include "src/decode/search/run.h"

namespace pawl {

// REQUIRES: what RunClassify checks. `capacity`: positions of a sequence.
Result<ClassifyResult> Classify(const SearchInput& input, const ClassifyOptions& options,
                                int capacity, BranchHost* host);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SEARCH_CLASSIFY_H_
