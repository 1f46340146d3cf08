// Gaps: the gaps of a text, which are filled one after another (--gap).
//
//   Result<Gaps> gaps = Gaps::Create(flags.grammar, vocabulary);
//   for (bool more = true; more;) {
//     const std::string output = Generate(gaps->grammar());
//     Result<bool> next = gaps->Fill(output);           // false: that was the last one
//     ...
//   }
//
// With a constraint that has no gaps there is one output, and its grammar is what the options say.
#ifndef PAWL_SRC_CLI_GAPS_H_
#define PAWL_SRC_CLI_GAPS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/combine.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/cli/options.h"

namespace pawl::cli {

// A copy goes on from where the original is. One thread at a time.
class Gaps {
 public:
  // REQUIRES: flags.any() and flags.Check() is ok. Errors name the file or the option.
  static Result<Gaps> Create(const GrammarFlags& flags,
                             const std::shared_ptr<const Vocabulary>& vocabulary);

  // Of the output that is wanted next.
  const Grammar& grammar() const { return grammar_; }
  // Of the text with its gaps filled, and that text.
  const Grammar& whole() const { return whole_; }
  const Infilling& infilling() const { return infilling_; }
  // Whether there are several outputs.
  bool several() const { return count_ > 1; }
  // The text behind the gap that was filled last.
  const std::string& text_behind() const { return behind_; }

  // Puts the output into the gap and makes the grammar of the next one; false: there is none.
  // Errors name the gap.
  Result<bool> Fill(std::string_view output);

  // A seed of its own for the output that is wanted next, so that two gaps that allow the same are
  // not filled alike; the first one has `seed` itself.
  uint64_t SeedOf(uint64_t seed) const;

 private:
  Gaps(Grammar whole, Grammar grammar, Infilling infilling, size_t count)
      : whole_(std::move(whole)),
        grammar_(std::move(grammar)),
        infilling_(std::move(infilling)),
        count_(count) {}

  Grammar whole_;  // of the text with its gaps filled
  Grammar grammar_;
  Infilling infilling_;
  std::string behind_;
  size_t count_;       // gaps in all
  size_t filled_ = 0;  // of these
};

// The outputs as they are printed: a JSON array of strings, on one line.
std::string OutputsLine(const std::vector<std::string>& outputs);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_GAPS_H_
