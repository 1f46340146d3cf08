// Dead ends: states from which no byte leads on though the text is not finished.
//
// Schemas here are small on purpose: every pair of keywords, over two letters, few numbers and
// three keys, so that what they demand of each other is met often and all instances up to a size
// can be listed. Walks take allowed bytes at random and have to end well.
#ifndef PAWL_TESTS_SCHEMAS_DEAD_ENDS_H_
#define PAWL_TESTS_SCHEMAS_DEAD_ENDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/base/json.h"

namespace pawl::property {

// The schema with number `index` of a seed. Numbers that follow each other go through all pairs of
// keywords.
json::Value SmallSchema(uint64_t seed, uint64_t index);
size_t KeywordPairs();

// All values up to a size over the letters, numbers and keys of the schemas.
const std::vector<std::string>& SmallInstances();

struct WalkReport {
  uint64_t schemas = 0, unsatisfiable = 0, refused = 0;
  uint64_t walks = 0, finished = 0, cut = 0;  // cut: longer than a walk may be
  uint64_t completions = 0;
  uint64_t valid = 0, invalid = 0;  // instances
  // Dead ends, and completions that were not found, in grammars where the solver said "not found"
  // of something: a class that the documentation names. By the keywords of the schema.
  std::map<std::string, uint64_t> undecided;
  uint64_t undecided_dead = 0, undecided_open = 0;
  std::vector<std::string> failures;  // everything else
};

// Walks `walks` times through each of `schemas` schemas from number `first` on; `instances`: all
// small instances are judged too, next to the validator of tests/oracle. At most `max_failures` are
// taken down, each with the smallest schema that fails.
WalkReport WalkSmallSchemas(uint64_t seed, uint64_t first, uint64_t schemas, int walks,
                            bool instances, size_t max_failures);
// The same for one schema.
void WalkSchema(const json::Value& schema, uint64_t seed, int walks, bool instances,
                WalkReport& report);

}  // namespace pawl::property

#endif  // PAWL_TESTS_SCHEMAS_DEAD_ENDS_H_
