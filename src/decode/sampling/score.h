// Scores: what a model thinks of each token of a text that is there already.
//
//   engine.Add(MakeScoreWork(model, vocabulary_size, tokens, {.first = 3, .top = 5},
//                            [](Result<TokenScores> scores) { ... }));
//   Result<std::vector<double>> each = ScoreTokens(model, prompt, tokens, 1.0);
#ifndef PAWL_SRC_DECODE_SAMPLING_SCORE_H_
#define PAWL_SRC_DECODE_SAMPLING_SCORE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "pawl/generation.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/work.h"
#include "src/model/model.h"

namespace pawl {

struct ScoreOptions {
  size_t first = 1;  // the first token that is scored, at least 1
  // -1: the probabilities of the model at `temperature`, tokens beyond the vocabulary included. 0
  // to 64: those that outputs report (TokenReport::logprob), which are of the vocabulary's tokens
  // at temperature 1; with so many of the most probable tokens at each place.
  int top = -1;
  double temperature = 1;
};

struct TokenScores {
  std::vector<double> logprobs;                // of tokens[first] and those behind it
  std::vector<std::vector<TokenLogprob>> top;  // where ScoreOptions::top is at least 0
};

// Errors: kInvalid with "prompt", "tokens" or "temperature" as place, kLimit for tokens that the
// model does not hold. The tokens before `first` are the prompt. REQUIRES: the model does not run.
Status CheckScore(const Model& model, std::span<const TokenId> tokens, const ScoreOptions& options);

// `vocabulary_size`: of the tokens that the tokenizer has. `done` is called on the thread of the
// batch. REQUIRES: CheckScore.
std::unique_ptr<Work> MakeScoreWork(Model& model, int vocabulary_size, std::vector<TokenId> tokens,
                                    const ScoreOptions& options,
                                    std::function<void(Result<TokenScores>)> done);

// log P(token i | prompt and the tokens before it), by token, at this temperature, without a mask.
// Errors: those of CheckScore and of the model.
Result<std::vector<double>> ScoreTokens(Model& model, std::span<const TokenId> prompt,
                                        std::span<const TokenId> tokens, double temperature);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_SCORE_H_
