// How an output is generated, and what comes back: sampling parameters, budget, callback,
// statistics.
//
//   pawl::GenerateOptions options;
//   options.sampling = {.temperature = 0.8f, .top_p = 0.95f, .seed = 7};
//   options.max_tokens = 200;
//   options.on_token = [](pawl::TokenId token, std::string_view bytes) {
//     return Show(bytes);   // false stops; the bytes of a token may be a part of a code point
//   };
//
// pawl/engine.h takes them. Plain values, without thread safety of their own.
#ifndef PAWL_GENERATION_H_
#define PAWL_GENERATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/drafts.h"
#include "pawl/vocabulary.h"

namespace pawl {

// How a token is drawn from the logits. Applied in this order: penalties, the grammar's mask,
// temperature, top-k, top-p, min-p. The same seed gives the same output, whatever else is
// generated at the same time.
struct SamplingParams {
  float temperature = 0;  // >= 0; 0 is greedy. Where the grammar asks for one, that counts instead
  int top_k = 0;          // 0: off
  float top_p = 1;        // (0, 1]; 1: off
  float min_p = 0;        // [0, 1]; 0: off
  float repetition_penalty =
      1;  // > 0; positive logits of seen tokens are divided by it, negative ones multiplied
  float presence_penalty = 0;   // subtracted once from every token of the output
  float frequency_penalty = 0;  // subtracted once for each time the token is in the output
  uint64_t seed = 0;
};

enum class StopReason {
  kEnd,        // the model chose the end, or nothing but the end could follow
  kClosed,     // the budget ran out: the constraint's shortest completion was appended (it may be
               // empty)
  kLength,     // the budget ran out and there was no constraint: the output is cut
  kCancelled,  // the callback asked to stop
};

struct GenerateOptions {
  SamplingParams sampling;
  // Where the grammar asks for a temperature (State::temperature()), it takes the place of that of
  // `sampling`. false: it is not looked at.
  bool grammar_temperature = true;
  int max_tokens = 512;  // budget of the output; the model's context may allow less. The end token
                         // is not counted.
  // What is forced is taken without asking the model, and its rows for it run together in one call:
  // tokens that are the only allowed ones, and, with an encoder, runs of bytes that the constraint
  // dictates, in the tokenizer's spelling. The first saves time only. The second chooses among the
  // spellings of the same text, which the model would do from one step to the next otherwise.
  bool skip_forced = true;
  // false: no drafts for this output, where the engine has some.
  bool drafts = true;
  // Called for every token of the output in order, with its bytes (none for special tokens), as
  // soon as it is sure to stay; where the shortest completion takes hundreds of tokens that can be
  // a few tokens later. false stops the generation.
  std::function<bool(TokenId token, std::string_view bytes)> on_token;
};

struct GenerationStats {
  int prompt_tokens = 0;
  int reused_tokens = 0;  // of the prompt, whose keys and values were in memory already
  int output_tokens = 0;  // sampled + forced + closing
  int sampled_tokens = 0;
  int forced_tokens = 0;
  int closing_tokens = 0;
  int forward_calls = 0;  // with rows of this output; others may have had rows in them too
  int preemptions = 0;    // times that it had to make room and was computed again
  int budget = 0;         // tokens that the output was allowed to have
  // Wall time in seconds, by part. Where several outputs share a call of the model, each has a part
  // of its time in proportion to its rows.
  double prefill_seconds = 0;     // the model on the prompt
  double decode_seconds = 0;      // the model on the output
  double constraint_seconds = 0;  // masks, advancing, completions
  double sample_seconds = 0;
  DraftStats drafts;  // of an engine with drafts
};

struct Generation {
  std::vector<TokenId> tokens;  // without the end token
  std::string text;             // their bytes; special tokens have none
  StopReason stop = StopReason::kEnd;
  GenerationStats stats;
};

}  // namespace pawl

#endif  // PAWL_GENERATION_H_
