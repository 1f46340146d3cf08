// Options and results of generating an output: sampling parameters, budget, callbacks, statistics.
//
//   pawl::GenerateOptions options;
//   options.sampling = {.temperature = 0.8f, .top_p = 0.95f, .seed = 7};
//   options.max_tokens = 200;
//   options.on_token = [](pawl::TokenId token, std::string_view bytes) {
//     return Show(bytes);   // false stops; the bytes of a token may be a part of a code point
//   };
//
// Functions of pawl/engine.h take these options.
// Thread safety: plain values.
#ifndef PAWL_GENERATION_H_
#define PAWL_GENERATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/vocabulary.h"

namespace pawl {

// Drafts: several tokens of an output in one call of the model (docs/drafting.md). Options and
// statistics.
//
//   pawl::EngineOptions options;                 // pawl/engine.h
//   options.drafts.sources = "auto";             // or "forced,suffix", ...; docs/drafting.md
//
// Drafts change the time of an output and no token, unless DraftOptions::lossy is above 0.

struct DraftOptions {
  // "auto": sources that need nothing from outside, and those whose field below is set. Outputs
  // that cannot have drafts have none. Or "off", or names separated by commas. "self" may have a
  // setting: "self:exit=8" (docs/drafting.md).
  std::string sources = "auto";
  int nodes = 16;              // most drafted tokens for an output in a call, 1 to 63
  bool filter = true;          // false: also drafts that the grammar refuses. For measuring
  bool always = false;         // true: also drafts that are expected to cost time. For measuring
  std::string text_file = {};  // a UTF-8 text that outputs may quote; source "text"
  // A smaller model, or a trained head of the model (docs/drafting.md); source "model". With those
  // of `more_models` at most two, which draft for one tree.
  std::string model = {};
  std::vector<std::string> more_models = {};
  // A file of past outputs by grammar. It is read at the start if it exists, and written at the
  // end. Empty: past outputs are kept while the engine lives.
  std::string history_file = {};
  int64_t history_bytes = int64_t{64} << 20;  // memory for past outputs
  int memory =
      64;  // MB for all that sources keep between outputs, past outputs included; from 1 on
  // 0: outputs are those without drafts. Between 0 and 1: a draft replaces the drawn token if its
  // probability is at least 1 - lossy. The distribution of each token is then off by at most
  // `lossy` in total variation. The output depends on the drafts, and so on the time that calls
  // take. At temperature 0 the probabilities are those of temperature 1.
  float lossy = 0;
  // Which drafts are taken. "coupled": those that are the tokens without drafts. Else a rule of
  // rejection: "token", "block", "rsd", "spectr" or "traversal". Outputs then have the law of the
  // model, and the same seed may give another output.
  std::string verify = "coupled";
  // "heap": the likeliest nodes. "delayed:D,K": a chain of D drafts, then K chains behind it.
  std::string shape = "heap";
};

struct DraftSourceStats {
  std::string name;
  int64_t drafted = 0;      // tokens that the source proposed
  int64_t kept = 0;         // proposed tokens that the grammar allows
  int64_t accepted = 0;     // proposed tokens that were right
  int64_t model_calls = 0;  // of a draft model of its own
  int64_t late_calls = 0;   // those of them that began while a device verified
  double seconds = 0;       // without these
};

struct DraftStats {
  int64_t calls = 0;     // calls of the model with drafts
  int64_t rows = 0;      // drafts that the model verified
  int64_t accepted = 0;  // drafts that were right
  double expected = 0;   // drafts that were expected to be right
  int64_t lossy = 0;     // accepted drafts that DraftOptions::lossy alone accepted
  double seconds = 0;    // to make drafts; verifying them is time of the model
  std::vector<DraftSourceStats> sources;
};

// Further stages of sampling (docs/sampling.md), with the names and defaults of llama.cpp and
// transformers. Under a grammar they see the allowed tokens only. Tokens that the grammar dictates
// are not drawn, and no stage changes them.
struct SamplerStages {
  float typical_p = 1;          // (0, 1]; 1: off. Locally typical sampling
  float top_n_sigma = -1;       // logits within n standard deviations of the largest; <= 0: off
  float xtc_probability = 0;    // [0, 1]; 0: off. Chance to drop all but the last of the tokens ...
  float xtc_threshold = 0.1f;   // ... with this probability or more; above 0.5: off
  float epsilon_cutoff = 0;     // [0, 1); tokens below this probability are dropped; 0: off
  float eta_cutoff = 0;         // [0, 1); the same, lower where the entropy is high; 0: off
  float dry_multiplier = 0;     // >= 0; 0: off. Penalty for going on with a repetition
  float dry_base = 1.75f;       // the penalty is multiplier * base^(length - allowed_length)
  int dry_allowed_length = 2;   // repetitions up to this length have no penalty
  int dry_penalty_last_n = -1;  // tokens that are looked at; -1: all, 0: off
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
  int mirostat = 0;           // 1 or 2: Mirostat in place of the filters; 0: off
  float mirostat_tau = 5;     // wanted surprise of a token, in bits
  float mirostat_eta = 0.1f;  // learning rate
  float dynatemp_range = 0;   // the temperature is within this of the given one, by entropy; 0: off
  float dynatemp_exponent = 1;
  float temperature_last = -1;   // >= 0: the temperature falls linearly to this; < 0: off
  int temperature_tokens = 256;  // ... over so many tokens of the output
  // Momentum decoding: the token, of the momentum_k most probable ones, with the largest
  // probability less this for each token of the repetition that it would make. 0: the most probable
  // token; < 0: off.
  float momentum_alpha = -1;
  int momentum_k = 5;
  // Names of stages, separated by "," or ";", in the order in which they run; stages that are not
  // named are off. Empty: the default order.
  std::string order = {};
  bool operator==(const SamplerStages&) const = default;
};

// How a token is drawn from the logits. The order is: penalties, the grammar's mask, temperature,
// top-k, top-p, min-p. The same seed gives the same output, whatever other outputs run at the same
// time.
struct SamplingParams {
  float temperature = 0;  // >= 0; 0 is greedy. A temperature of the grammar replaces it
  int top_k = 0;          // 0: off
  float top_p = 1;        // (0, 1]; 1: off
  float min_p = 0;        // [0, 1]; 0: off
  float repetition_penalty =
      1;  // > 0; divides positive logits of seen tokens and multiplies negative ones
  float presence_penalty = 0;   // subtracted from the logit of every token of the output
  float frequency_penalty = 0;  // subtracted for each time that the token is in the output
  uint64_t seed = 0;
  // Lanes of noise, 1 to 64. A token is drawn with the largest noise of all lanes, and a draft
  // model guesses with one lane for each draft. More lanes mean more drafts that are right. The
  // same seed draws other tokens at another number, with drafts and without.
  int draft_lanes = 1;
  SamplerStages stages = {};
};
inline constexpr int kMostDraftLanes = 64;

// A token and the logarithm (base e) of its probability.
struct TokenLogprob {
  TokenId token = kNoToken;
  float logprob = 0;
};

// Facts about one token of the output, for GenerateOptions::on_report.
struct TokenReport {
  enum class Source : uint8_t {
    kSampled,  // drawn from the model's logits
    kForced,   // dictated by the grammar, without the model
    kClosing,  // part of the completion that closed the output
    kDrafted,  // drawn from the model's logits, and guessed by a draft: no call of its own
  };
  TokenId token = kNoToken;
  std::string_view bytes;  // as for on_token
  Source source = Source::kSampled;
  // The number of tokens that the mask allowed. -1 without a grammar, or if no mask was computed.
  int allowed = -1;
  // The log-probability among the allowed tokens, before biases, penalties and temperature. 0 for
  // tokens that were not chosen, and without GenerateOptions::logprobs.
  float logprob = 0;
  // -log (base e) of the probability that the model gives to all allowed tokens together. 0 without
  // GenerateOptions::mask_surprise.
  float surprise = 0;
  // The most probable allowed tokens, most probable first. Empty for tokens that were not chosen.
  std::span<const TokenLogprob> top;
};

// The end of an output under a grammar when its budget is nearly spent.
enum class AtBudget : uint8_t {
  kClose,       // closed in the shortest form; an error if even the shortest output is too long
  kCloseOrCut,  // closed in the shortest form; cut if even the shortest output is too long
  kCut,         // cut (StopReason::kLength), complete or not
};

enum class StopReason {
  kEnd,        // the model chose the end, or only the end could follow
  kClosed,     // the budget was nearly spent, or a limit of the grammar was reached
               // (Generation::notes): the shortest completion was appended (it may be empty)
  kLength,     // the budget ran out and the output is cut: no constraint, or AtBudget
  kCancelled,  // a callback returned false, or the request was cancelled
  kStopText,   // one of EngineRequest::stops came
  kRefused,    // a constraint that is not exact refused every token: the output may be incomplete
};

// Why an output was closed (StopReason::kClosed).
enum class ClosedBy : uint8_t {
  kNothing,     // it was not closed
  kBudget,      // the budget was nearly spent
  kSteps,       // a limit of the grammar was reached (Generation::notes)
  kRepetition,  // it repeated itself (GenerateOptions::close_repetition)
};

// The loop of a model that fills masks (docs/diffusion.md). A causal model refuses what is set.
struct DiffusionOptions {
  // Which masks of a block a call commits. "stepwise", the default: as many as `steps` says.
  // "threshold": all that are sure, and one in any case. It is the default where `threshold` or
  // `factor` is set. "localleap": neighbours of sure masks too. "prophet": as "stepwise". Where all
  // masks of the block are sure, the rest of the block. "ssd": as "stepwise" in fewer calls. They
  // run further canvases that may follow.
  std::string schedule = {};
  // >= 1; not set: one for each position. Calls for the whole canvas. They are split evenly among
  // the blocks, and each block has one at least.
  std::optional<int> steps = std::nullopt;
  // [0, 1]; not set: 0.9. How sure a mask has to be.
  std::optional<double> threshold = std::nullopt;
  // >= 0, in place of `threshold`: the n surest masks, the last of which has 1 - factor / (n + 1).
  std::optional<double> factor = std::nullopt;
  // >= 1; not set: the model's, or 32. Positions that are filled before those behind them.
  std::optional<int> block_length = std::nullopt;
  // How sure a mask is. LLaDA: "low_confidence" (the default; the probability of its best token),
  // or "random".
  std::string remasking = {};
  // Dream: "maskgit_plus" (the default; as "low_confidence"), "topk_margin" (the lead of the best
  // token), "entropy", or "origin": masks by lot.
  std::string alg = {};
  // Dream, >= 0; not set: 0. Masks are drawn by how sure they are at this temperature. 0: the
  // surest ones.
  std::optional<double> alg_temp = std::nullopt;
  // Dream, [0, 1); not set: 0.001. The time behind the last step: masks that are left fall from all
  // to this share, evenly.
  std::optional<double> eps = std::nullopt;
  // >= 0; not set: 0, off. Logits go away from those without a prompt, by so much.
  std::optional<double> cfg_scale = std::nullopt;
  // What calls keep of keys and values: "none" (the default), "prefix", "dual" or "dkv". The last
  // three keep what stands in front of the block, outside of it, and that of tokens.
  std::string cache = {};
  // >= 1, with a cache: each call of this number runs all rows. Not set: the first of a block; with
  // "dkv" 8.
  std::optional<int> kv_refresh = std::nullopt;
  // Not empty: texts that stand in the canvas, a gap in front of each. The constraint, a grammar,
  // is of the whole text: prefix, gap, gaps[0], gap, gaps[1] ... The canvas is one block.
  std::vector<std::string> gaps = {};
  std::string prefix = {};
  // >= 1, with gaps: the most tokens of a gap; not set: max_tokens divided among them.
  std::optional<int> gap_tokens = std::nullopt;
  // Gets the canvas behind each call, kNoToken where a mask is. Where on_token is called.
  std::function<void(std::span<const TokenId> canvas)> on_canvas = nullptr;
};

// What is known of a value of an output that is JSON (GenerateOptions::details,
// docs/extraction.md). Values are strings, numbers, booleans, nulls, empty lists and empty objects.
struct ValueDetails {
  struct Span {
    int64_t begin = 0, end = 0;            // in characters (Unicode code points) of the text
    int64_t begin_byte = 0, end_byte = 0;  // in bytes of the text
  };
  struct Alternative {
    std::string value;  // JSON
    double probability = 0;
  };
  std::string pointer;  // "/lines/0/total"
  // Where the text of EngineRequest::extract has it. nullopt: nowhere.
  std::optional<Span> span;
  // Of the value's tokens: the product of their probabilities among what was allowed. nullopt where
  // the shortest completion wrote the value, or a part of it. A model that fills masks has none.
  std::optional<double> probability;
  // The sum of TokenReport::surprise. NaN of a model that fills masks.
  double surprise = 0;
  // Of a choice (enum, const, boolean, null): all values that may stand here, most probable first.
  // The probabilities are exact, and add up to 1.
  std::vector<Alternative> alternatives;
};

// The details as members of a JSON object, without its braces: "spans", "byte_spans",
// "probability", "surprise" and "alternatives", by pointer.
PAWL_EXPORT std::string DetailsJson(std::span<const ValueDetails> details);

// Another value that chunks of a document had where the record has one (EngineRequest::document).
struct ValueConflict {
  std::string pointer;  // of the record's value
  std::string value;    // JSON
  std::optional<double> probability;
  std::optional<ValueDetails::Span> span;
};
// "conflicts": {...}, a member of a JSON object: lists of values by pointer.
PAWL_EXPORT std::string ConflictsJson(std::span<const ValueConflict> conflicts);

struct GenerateOptions {
  SamplingParams sampling;
  // true: a temperature of the grammar (State::temperature()) replaces that of `sampling`. false:
  // the grammar's temperatures are ignored.
  bool grammar_temperature = true;
  int max_tokens = 512;  // budget of the output; the model's context may allow less. The end token
                         // is not counted.
  // true: forced tokens are taken without the model, and their rows run together in one call.
  // Forced are tokens that are the only allowed ones. With an encoder, runs of bytes that the
  // constraint dictates are forced too, in the tokenizer's spelling. The first saves time only. The
  // second chooses a spelling of the text, which the model would otherwise choose step by step.
  bool skip_forced = true;
  // false: no drafts for this output, even if the engine makes drafts.
  bool drafts = true;
  // Drafts learn from outputs of the same owner only: how long an output takes would otherwise tell
  // what others wrote. pawl serve sets it by API key.
  uint64_t draft_owner = 0;
  AtBudget at_budget = AtBudget::kClose;
  // Numbers added to the logits of tokens, before penalties and the mask. A token that the grammar
  // does not allow stays forbidden, and biases never leave the grammar without a token.
  std::vector<std::pair<TokenId, float>> logit_bias;
  // The number of most probable tokens for on_report, 0 to 64. -1: no log-probabilities.
  int logprobs = -1;
  // true: computes TokenReport::surprise and GenerationStats::mask_surprise. Each step then
  // computes the logits of all tokens, not only of the allowed ones.
  bool mask_surprise = false;
  // true: of an output that is JSON, Generation::details. Each step then computes the logits of all
  // tokens, and each choice of a schema that a model has made takes further calls of the model.
  bool details = false;
  // Called like on_token, before it, with more facts.
  std::function<bool(const TokenReport& report)> on_report;
  // Called with pieces of what the model thinks, as they come (EngineRequest::thinking). on_token
  // and on_report then have the bytes of the answer only. A text that was held back at the end of
  // the output comes with the token kNoToken.
  std::function<void(std::string_view text)> on_reasoning = nullptr;
  // Called for every token of the output in order, with its bytes (empty for special tokens), as
  // soon as the token is certain to stay. With Keys::kAll: with the bytes of the record that the
  // token makes certain. If the shortest completion takes hundreds of tokens, this can be a few
  // tokens later. false stops the generation.
  std::function<bool(TokenId token, std::string_view bytes)> on_token;
  // true: an output under a grammar is closed when it repeats itself. Its last 200 tokens or more
  // are then a period of at most 64 tokens, eight times. nullopt: true for EngineRequest::extract.
  std::optional<bool> close_repetition = std::nullopt;
  DiffusionOptions diffusion = {};
};

struct GenerationStats {
  int prompt_tokens = 0;
  int reused_tokens = 0;  // of the prompt: their keys and values were in memory
  int output_tokens = 0;  // sampled + forced + closing
  int sampled_tokens = 0;
  int forced_tokens = 0;
  int closing_tokens = 0;
  int reasoning_tokens = 0;  // of the output, before the answer: thoughts with their marks
  int forward_calls = 0;     // calls with rows of this output; other outputs may share them
  int preemptions = 0;       // times that the output made room for others and was computed again
  int budget = 0;            // the most tokens that the output could have
  double mask_surprise = 0;  // the sum over sampled tokens (GenerateOptions::mask_surprise)
  // Wall time in seconds, by part. Outputs that share a call of the model share its time in
  // proportion to their rows.
  double prefill_seconds = 0;     // the model on the prompt
  double decode_seconds = 0;      // the model on the output
  double constraint_seconds = 0;  // masks, advancing, completions
  double sample_seconds = 0;
  DraftStats drafts;  // if the engine makes drafts
};

// What is kept of a token for GenerateOptions::details.
struct TokenFigure {
  float logprob = 0;     // as in TokenReport
  float surprise = 0;    // as in TokenReport
  bool closing = false;  // part of the completion that closed the output
};

struct Generation {
  std::vector<TokenId> tokens;  // without the end token
  // The bytes of the tokens; special tokens have none. Of a JSON Schema with
  // JsonSchemaOptions::Keys::kAll: the record of these bytes (Grammar::Record).
  std::string text;
  std::string reasoning;  // what the model thought, without its marks; no part of `text`
  // With DiffusionOptions::gaps: what was written into each. `text` has the texts behind them too.
  std::vector<std::string> gaps;
  StopReason stop = StopReason::kEnd;
  // With StopReason::kStopText: which of EngineRequest::stops. `tokens` has the tokens of the stop
  // text, too.
  std::string stop_text;
  GenerationStats stats;
  // Notes that are not errors, usually none. For example, the output was closed because a limit of
  // the grammar was reached (docs/grammars.md).
  std::vector<std::string> notes;
  ClosedBy closed_by = ClosedBy::kNothing;
  // With GenerateOptions::details: what is known of the values of an output that is JSON, in its
  // order; and the figures of the last tokens, which are those of the answer.
  std::vector<ValueDetails> details;
  std::vector<TokenFigure> figures;
  // With EngineRequest::document: the values that did not become the record's, by pointer, most
  // probable first; and the number of chunks that were read. `tokens` is empty then.
  std::vector<ValueConflict> conflicts;
  int chunks = 0;
};

}  // namespace pawl

#endif  // PAWL_GENERATION_H_
