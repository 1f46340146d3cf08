// Schemas of one string under a format and a pattern, which are the dearest that people write: the
// tests that bound the steps of a mask use them, and pattern_pairs_tool writes them down for
// `pawl maskbench`.
#ifndef PAWL_TESTS_SCHEMAS_PATTERN_PAIRS_H_
#define PAWL_TESTS_SCHEMAS_PATTERN_PAIRS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/vocabulary.h"

namespace pawl::property {

struct PatternPair {
  std::string name;    // "date-time 07 ^"
  std::string schema;  // {"type":"string","format":...,"pattern":...}
  // JSON texts: of the format, and of what the pattern is meant for. Either may be wrong.
  std::vector<std::string> texts;
};

// Each of 40 patterns next to each of 8 formats, anchored at the start, the end, both, neither.
std::vector<PatternPair> PatternPairs();

// The steps (Machine::steps) of the most expensive token of a walk: its mask, and taking it. And
// the most nodes of tries (SchemaMachine::nodes) that a token walked.
struct Dearest {
  uint64_t steps = 0, nodes = 0;
  std::string name, text;  // of the schema; what had been written before the token
  void Consider(uint64_t more, const std::string& of, const std::string& at) {
    if (more <= steps) return;
    steps = more;
    name = of;
    text = at;
  }
};

// Takes the tokens of each text as far as they fit, then `tokens` random ones.
using Encode = std::function<std::vector<TokenId>(const std::string&)>;
void WalkPair(const PatternPair& pair, const std::shared_ptr<const Vocabulary>& vocabulary,
              const Encode& encode, int tokens, uint64_t seed, Dearest& dearest);

}  // namespace pawl::property

#endif  // PAWL_TESTS_SCHEMAS_PATTERN_PAIRS_H_
