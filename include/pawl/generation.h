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
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/vocabulary.h"

namespace pawl {

// Drafts: several tokens of an output in one call of the model. How they are asked for, and what
// they gave.
//
//   pawl::EngineOptions options;                 // pawl/engine.h
//   options.drafts.sources = "auto";             // or "forced,suffix", ...; docs/drafting.md
//
// Drafts change how long an output takes, and nothing else: every token is the one that comes
// without them (unless DraftOptions::lossy says otherwise).

struct DraftOptions {
  // "off"; "auto": all sources that need nothing from outside, and those that the fields below
  // name something for; or names with commas between them.
  std::string sources = "off";
  int nodes = 16;              // most tokens that are drafted for an output in a call, 1 to 63
  bool filter = true;          // false: also drafts that the grammar refuses. For measuring
  bool always = false;         // true: also where it is expected to take longer. For measuring
  std::string text_file = {};  // UTF-8: what outputs may quote; source "text"
  std::string model = {};      // a smaller model with the same vocabulary; source "model"
  // Outputs by grammar, kept from one run to the next: read at the start where it exists, written
  // at the end. Empty: only while the engine lives. At most so many bytes in memory.
  std::string history_file = {};
  int64_t history_bytes = int64_t{64} << 20;
  // 0: outputs are those without drafts. Above, below 1: a draft is taken in place of the token
  // that was drawn where its probability is at least 1 - lossy, so that each token's distribution
  // is off by at most `lossy` in total variation. What comes then depends on what was drafted, and
  // so on the time that calls take. At temperature 0 the probabilities are those of temperature 1.
  float lossy = 0;
};

struct DraftSourceStats {
  std::string name;
  int64_t drafted = 0;   // tokens that it proposed
  int64_t kept = 0;      // those of them that the grammar allows
  int64_t accepted = 0;  // those of them that came
  double seconds = 0;
};

struct DraftStats {
  int64_t calls = 0;     // of the model, with drafts
  int64_t rows = 0;      // drafts that the model verified
  int64_t accepted = 0;  // of them
  double expected = 0;   // how many of them were expected to come
  int64_t lossy = 0;     // of them: that came by DraftOptions::lossy alone
  double seconds = 0;    // making them; verifying them is the model's
  std::vector<DraftSourceStats> sources;
};

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

// A token and the logarithm (base e) of its probability.
struct TokenLogprob {
  TokenId token = kNoToken;
  float logprob = 0;
};

// What is known of a token of the output when it is told.
struct TokenReport {
  enum class Source : uint8_t {
    kSampled,  // drawn from the model's logits
    kForced,   // dictated by the grammar, without asking the model
    kClosing,  // of the completion that closed the output
    kDrafted,  // drawn from the model's logits, which a draft had guessed: it took no call of its
               // own
  };
  TokenId token = kNoToken;
  std::string_view bytes;  // none for special tokens
  Source source = Source::kSampled;
  // How many tokens the mask allowed; -1 without a grammar, and where nobody asked for a mask.
  int allowed = -1;
  // Among the allowed tokens, as the model has it: before biases, penalties and temperature. 0 for
  // tokens that nobody had to choose, and without GenerateOptions::logprobs.
  float logprob = 0;
  // The logarithm (base e, negated) of the probability that the model gave to all allowed tokens
  // together: what the mask took from it. 0 without GenerateOptions::mask_surprise.
  float surprise = 0;
  // The most probable ones, most probable first; none where nobody had to choose.
  std::span<const TokenLogprob> top;
};

// What happens to an output under a grammar when its budget is nearly spent.
enum class AtBudget : uint8_t {
  kClose,  // it is closed in the shortest way; an error where even the shortest output is too long
  kCloseOrCut,  // the same, but where the shortest output is too long it is cut
  kCut,         // it is cut (StopReason::kLength), complete or not
};

enum class StopReason {
  kEnd,        // the model chose the end, or nothing but the end could follow
  kClosed,     // the budget ran out, or a limit of the grammar was reached (Generation::notes): the
               // constraint's shortest completion was appended (it may be empty)
  kLength,     // the budget ran out and the output is cut: no constraint, or AtBudget
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
  AtBudget at_budget = AtBudget::kClose;
  // Added to the logits of these tokens before penalties and the mask. The grammar has the last
  // word: what it does not allow stays out, and it is never left without a token.
  std::vector<std::pair<TokenId, float>> logit_bias;
  // -1, or how many of the most probable tokens are to be found for on_report, 0 to 64.
  int logprobs = -1;
  // Finds TokenReport::surprise, and the sum of GenerationStats. The logits of all tokens are then
  // computed in each step, not only those that the mask allows.
  bool mask_surprise = false;
  // Called as on_token is, before it, with more.
  std::function<bool(const TokenReport& report)> on_report;
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
  int forward_calls = 0;     // with rows of this output; others may have had rows in them too
  int preemptions = 0;       // times that it had to make room and was computed again
  int budget = 0;            // tokens that the output was allowed to have
  double mask_surprise = 0;  // the sum over sampled tokens (GenerateOptions::mask_surprise)
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
  // What the caller should know about the output that is no error, e.g. that it was closed because
  // the grammar can be read in too many ways (docs/grammars.md). Mostly none.
  std::vector<std::string> notes;
};

}  // namespace pawl

#endif  // PAWL_GENERATION_H_
