// How probable names are as what a model writes next, if it writes one of them.
//
//   NameSpellings spellings(*vocabulary);
//   auto ranks = RankNames(model, spellings, prompt, {"height", "width"}, {});
//   ranks->probabilities[0]                        // of "height"; all of them sum to 1
#ifndef PAWL_SRC_COMPLETION_NAME_RANKS_H_
#define PAWL_SRC_COMPLETION_NAME_RANKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/model/model.h"

namespace pawl::completion {

// The tokens of a vocabulary by the names that they are a part of. A space may stand in front.
class NameSpellings {
 public:
  explicit NameSpellings(const Vocabulary& vocabulary);
  const Vocabulary& vocabulary() const { return vocabulary_; }
  // Tokens that are these bytes, and tokens that are these bytes and go on behind the name.
  std::span<const TokenId> Whole(std::string_view bytes) const;
  std::span<const TokenId> Tail(std::string_view bytes) const;
  // Tokens that begin with no byte of a name, and those that end the output.
  const std::vector<TokenId>& ends() const { return ends_; }
  size_t longest() const { return longest_; }

 private:
  const Vocabulary& vocabulary_;
  std::unordered_map<std::string_view, std::vector<TokenId>> whole_, tail_;
  std::vector<TokenId> ends_;
  size_t longest_ = 0;
};

struct RankOptions {
  std::string followers = {};  // what may follow a name; empty: any byte that ends one
  double missing = 0.01;       // ends where at most so much of the probability is not told apart
  int most_rows = 96;          // or after so many rows behind the prompt
  int most_calls = 5;          // or after so many calls of the model behind the prompt
  int capacity = 2048;         // positions of a sequence
};

struct NameRanks {
  std::vector<double> probabilities;  // in the order of the names
  // So much of it was not told apart: it is shared evenly among the names that it may belong to.
  double missing = 0;
  int64_t rows = 0, calls = 0;  // behind the prompt
};

// The probability of a name is the sum over its spellings in tokens. After each token the tokens
// that may follow are those with which one of the names can still be written, and the model's
// probabilities are divided among them: what a model writes under a mask of these names.
// Errors: those of the model. Throws Stopped (StopScope).
// REQUIRES: names are sorted, different and not empty, the prompt has a token, and it fits.
Result<NameRanks> RankNames(Model& model, const NameSpellings& spellings,
                            std::vector<TokenId> prompt, std::span<const std::string> names,
                            const RankOptions& options);

}  // namespace pawl::completion

#endif  // PAWL_SRC_COMPLETION_NAME_RANKS_H_
