// A binary search in a table of ranges. The table is that of Hugging Face's library, because a
// vocabulary was trained on the words that its version of Unicode cuts; see
// scripts/gen_script_table.py.
#include "src/text/unicode_scripts.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace pawl {
namespace {

struct ScriptRange {
  char32_t first, last;
  int16_t script;
};

#include "src/text/unicode_scripts.inc"

}  // namespace

int ScriptForSplitting(char32_t unit) {
  const auto* range = std::upper_bound(
      std::begin(kScriptRanges), std::end(kScriptRanges), unit,
      [](char32_t value, const ScriptRange& candidate) { return value < candidate.first; });
  if (range == std::begin(kScriptRanges)) return kNoScript;
  --range;
  return unit <= range->last ? range->script : kNoScript;
}

}  // namespace pawl
