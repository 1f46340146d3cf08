// Gaps are filled from the front: what was written becomes part of the text before the next gap,
// and the grammar of what is left is made anew. Seeds differ from gap to gap.
#include "src/cli/gaps.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "src/base/json.h"
#include "src/base/random.h"

namespace pawl::cli {

Result<Gaps> Gaps::Create(const GrammarFlags& flags,
                          const std::shared_ptr<const Vocabulary>& vocabulary) {
  Result<Grammar> whole = flags.CompileWhole(vocabulary);
  if (!whole.ok()) return whole.error();
  Result<Infilling> infilling = flags.combine.ReadTexts();
  if (!infilling.ok()) return infilling.error();
  Result<Grammar> grammar = flags.combine.Apply(*whole, *infilling);
  if (!grammar.ok()) return grammar.error();
  return Gaps(*std::move(whole), *std::move(grammar), *std::move(infilling),
              flags.combine.gap_count());
}

Result<bool> Gaps::Fill(std::string_view output) {
  behind_ = infilling_.after.front();
  infilling_.Fill(output);
  if (++filled_ == count_) return false;
  Result<Grammar> next = Infill(whole_, infilling_);
  if (!next.ok()) {
    // What was written so far is a prefix like any other, but one that no option gave.
    Error error = next.error();
    error.place = fmt::format("gap {}, {}", filled_ + 1, error.place);
    return error;
  }
  grammar_ = *std::move(next);
  return true;
}

uint64_t Gaps::SeedOf(uint64_t seed) const {
  if (filled_ == 0) return seed;
  const PhiloxBlock block = Philox4x32(seed, 1, filled_);
  return uint64_t{block.word[0]} << 32 | block.word[1];
}

std::string OutputsLine(const std::vector<std::string>& outputs) {
  std::string line;
  for (const std::string& output : outputs)
    line += (line.empty() ? "[" : ",") + json::Quote(output);
  return line + "]\n";
}

}  // namespace pawl::cli
