// Masks against an independent validator, on short texts.
//
// In a state after a beginning of a valid instance, a token has to be in the mask where some valid
// instance goes on with it; and where it is in the mask, something has to complete the text to one
// that the validator takes. Schemas and instances are those of dead_ends.h.
#ifndef PAWL_TESTS_SCHEMAS_MASK_VALIDATOR_H_
#define PAWL_TESTS_SCHEMAS_MASK_VALIDATOR_H_

#include <cstdint>
#include <string>

#include "src/base/json.h"

namespace pawl::property {

struct MaskReport {
  uint64_t schemas = 0, states = 0;
  uint64_t demanded = 0;   // tokens that go on to a valid instance; all were in the masks
  uint64_t completed = 0;  // other tokens of the masks; all were completed to valid texts
  uint64_t refused = 0;    // tokens that no mask had, and no valid instance
  uint64_t undecided = 0;  // of `completed`, without a text, where the solver had not decided
  std::string failure;     // the first one
};

// Schemas from number `first` on until so many states were looked at.
MaskReport CheckMasks(uint64_t seed, uint64_t first, uint64_t states);
// One schema.
void CheckMasksOf(const json::Value& schema, uint64_t seed, MaskReport& report);

}  // namespace pawl::property

#endif  // PAWL_TESTS_SCHEMAS_MASK_VALIDATOR_H_
