// Session: one output after another from a model, each under a constraint and within a token
// budget.
//
//   pawl::Session session(*model, vocabulary);
//   auto output = session.Generate(prompt_tokens, pawl::MakeConstraint(grammar), {.max_tokens =
//   200}); std::cout << output->text;
//
// Under a constraint the output is always complete: when the budget is nearly spent it is closed in
// the shortest way that was found instead of being cut (StopReason::kClosed).
#ifndef PAWL_SRC_DECODE_SESSION_H_
#define PAWL_SRC_DECODE_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/forced_spelling.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/constraint.h"
#include "src/decode/sampler.h"
#include "src/model/model.h"

namespace pawl {

enum class StopReason {
  kEnd,        // the model chose the end, or nothing but the end could follow
  kClosed,     // the budget ran out: the constraint's shortest completion was appended (it may be
               // empty)
  kLength,     // the budget ran out and there was no constraint: the output is cut
  kCancelled,  // the callback asked to stop
};

struct GenerateOptions {
  SamplingParams sampling;
  int max_tokens = 512;  // budget of the output; the model's context may allow less. The end token
                         // is not counted.
  // What is forced is taken without asking the model, and its rows for it run together in one call:
  // tokens that are the only allowed ones, and, with an encoder, runs of bytes that the constraint
  // dictates, in the tokenizer's spelling. The first saves time only. The second chooses among the
  // spellings of the same text, which the model would do from one step to the next otherwise.
  bool skip_forced = true;
  // Called for every token of the output in order, with its bytes (none for special tokens), as
  // soon as it is sure to stay; where the shortest completion takes hundreds of tokens that can be
  // a few tokens later. false stops the generation.
  std::function<bool(TokenId token, std::string_view bytes)> on_token;
};

struct GenerationStats {
  int prompt_tokens = 0;
  int reused_tokens = 0;  // of the prompt, already in the key-value cache from the call before
  int output_tokens = 0;  // sampled + forced + closing
  int sampled_tokens = 0;
  int forced_tokens = 0;
  int closing_tokens = 0;
  int forward_calls = 0;
  int budget = 0;  // tokens that the output was allowed to have
  // Wall time in seconds, by part.
  double prefill_seconds = 0;     // the model on the prompt
  double decode_seconds = 0;      // the model on the output
  double constraint_seconds = 0;  // masks, advancing, completions
  double sample_seconds = 0;
};

struct Generation {
  std::vector<TokenId> tokens;  // without the end token
  std::string text;             // their bytes; special tokens have none
  StopReason stop = StopReason::kEnd;
  GenerationStats stats;
};

// Owns one sequence of the model's key-value cache and keeps what a call left there, so that
// prompts with a common beginning are not computed twice. One thread at a time; the model must
// outlive it.
class Session {
 public:
  // `vocabulary`: of the model's tokenizer. Logits beyond its size are never chosen. `encode`: the
  // tokenizer's encoding of a piece of text, for forced runs; may be empty.
  Session(Model& model, std::shared_ptr<const Vocabulary> vocabulary, Encoder encode = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // `constraint` nullptr: none. Errors: kInvalid (sampling parameters, empty prompt, unknown
  // token), kLimit (the prompt does not fit the context, or the shortest output does not fit the
  // budget: the message has both numbers), and what the model reports. Places: "prompt",
  // "constraint", "max_tokens", or the field of the sampling parameters.
  Result<Generation> Generate(std::span<const TokenId> prompt,
                              std::shared_ptr<const Constraint> constraint,
                              const GenerateOptions& options);

 private:
  class Run;

  Status Reserve(int positions);
  // Runs `tokens` at the positions that follow what is cached; the logits of the last land in
  // logits_, those at least that `mask` allows.
  Status Forward(std::span<const TokenId> tokens, const Mask* mask, int* calls);

  Model& model_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  Encoder encode_;
  SequenceId sequence_ = -1;
  int capacity_ = 0;
  std::vector<TokenId> cached_;  // the tokens whose keys and values the sequence holds
  std::vector<float> logits_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SESSION_H_
