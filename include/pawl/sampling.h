// Samplers that keep the model's distribution, and their results. docs/sampling.md explains them.
//
//   pawl::SamplerOptions options;
//   options.sampler = pawl::SamplerKind::kSmc;
//   options.n = 20;                                      // outputs
//   options.particles = 5;                               // of a population
//   auto result = engine->Sample(request, options);      // pawl/engine.h
//   for (const pawl::WeightedOutput& output : result->outputs) {
//     Use(output.text, output.log_weight);
//   }
//
// The distribution. P(y) is the probability that the model writes the tokens y and ends there, at
// the given temperature and without a mask. An output is valid if it has at most max_tokens tokens
// and if the grammar and the checks accept it. Masks alone draw from another distribution: they
// follow the model token by token, and an allowed token may lead to a place where little is
// allowed.
//
// Weights. For every function f the mean over the outputs of exp(log_weight) * f(y) has the
// expectation C * (sum of P(y) f(y) over the valid y). C is one constant of the run. So weighted
// averages estimate averages under the model's distribution, given validity.
//  - kGcd, kFvo, kAwrs, kSmc, kAsap: C = 1. Weights include the probability that masks
//  and checks removed, and for particles the evidence of the population.
//  - kRs, kArs, kCars: C = 1 / (probability that an output is valid). Every log_weight
//  is 0.
// A weight of 0 has log_weight kZeroWeight: the output is not valid, and is part of the mean.
//
// No text is forced. The distribution is over sequences of tokens, the end token included. So two
// spellings of one text are two outputs.
#ifndef PAWL_SAMPLING_H_
#define PAWL_SAMPLING_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

// Check: a constraint that is too slow or too complex for a mask, such as a type checker, a
// database or a test. Samplers ask a check about candidates.
//
//   class NoShouting : public pawl::Check {
//    public:
//     pawl::CheckGranularity granularity() const override { return pawl::CheckGranularity::kByte; }
//     pawl::Result<pawl::Verdict> Judge(const pawl::CheckQuestion& q) const override {
//       for (const char c : q.text) if (c == '!') return pawl::Verdict::kDead;
//       return pawl::Verdict::kAccept;
//     }
//   };
//
//   pawl::SamplerOptions options = {.sampler = pawl::SamplerKind::kAwrs, .n = 10};
//   options.checks = {std::make_shared<NoShouting>()};
//   auto outputs = engine->Sample(request, options);         // pawl/sampling.h
//
// An output is valid if the grammar accepts it, if no check calls one of its prefixes dead, and if
// every check answers kAccept at its end. A prefix that a check calls dead must stay dead with
// every continuation. A check may notice this late: a check that judges only complete texts is
// allowed.
//
// The same question must always have the same answer. Otherwise the weights are wrong.

enum class Verdict {
  kDead,     // no continuation is valid
  kLive,     // a continuation may be valid; at the end: not valid
  kAccept,   // valid if the output ends here
  kUnknown,  // the check does not know; counts as kLive
};

// When a check is asked about the output so far. All are asked at its end.
enum class CheckGranularity {
  kByte,      // after every token, also inside a character; the check reads bytes only
  kToken,     // after every token; the check may read the tokens too
  kLine,      // after every line, about the text up to its '\n'
  kComplete,  // at the end
};

struct CheckQuestion {
  std::string_view text;            // the output so far, in bytes
  std::span<const TokenId> tokens;  // the tokens of the text, without the end token
  bool ended = false;               // whether the output ends here
  // Not nullptr: a check that refuses the text may write here why, for a model that tries again.
  std::string* why = nullptr;
};

// Thread safety: several threads call Judge at the same time.
class PAWL_EXPORT Check {
 public:
  virtual ~Check();
  virtual CheckGranularity granularity() const = 0;
  // An error ends the whole run. If the check does not know the answer, it returns kUnknown.
  virtual Result<Verdict> Judge(const CheckQuestion& question) const = 0;
};

// Critic: a weight for outputs and their prefixes. The weight of a particle is multiplied by
// exp(Score). At the end of an output the score is part of the distribution. Before, it only
// steers.
// Thread safety: several threads call Score at the same time.
class PAWL_EXPORT Critic {
 public:
  virtual ~Critic();
  // A natural logarithm; -infinity for outputs that must not occur.
  virtual Result<double> Score(const CheckQuestion& question) const = 0;
};

// A regex or any other grammar as a check. A prefix is dead if no text of the grammar begins with
// it.
PAWL_EXPORT std::shared_ptr<const Check> MakeGrammarCheck(
    const Grammar& grammar, CheckGranularity granularity = CheckGranularity::kByte);

// A function as a check.
PAWL_EXPORT std::shared_ptr<const Check> MakeCheck(
    CheckGranularity granularity, std::function<Result<Verdict>(const CheckQuestion&)> judge);

struct CacheOptions {
  size_t max_bytes = size_t{16} << 20;
};
// A check that remembers the answers used last. kUnknown is not remembered.
PAWL_EXPORT std::shared_ptr<const Check> MakeCachedCheck(std::shared_ptr<const Check> check,
                                                         const CacheOptions& options = {});

// A program as a check. For each question the program reads a line of JSON from standard input:
//     {"id":7,"text":"SELECT na","tokens":[12,88],"ended":false}
// It answers with a line of JSON with the same id:
//     {"id":7,"verdict":"live"}                  "dead", "live", "accept" or "unknown"
// A text under "error" says why the output is not valid.
// Bytes of the text that are not UTF-8 become U+FFFD. An incomplete character at the end is
// omitted. The program shares Pawl's standard error.
struct ProgramCheckOptions {
  std::vector<std::string> command;  // the program, searched in PATH, and its arguments
  CheckGranularity granularity = CheckGranularity::kToken;
  // Time for one answer. A program that answers late, writes something else or ends is killed
  // (SIGKILL, with the processes that it started). The answer is kUnknown, and the program is
  // started again for the next question.
  std::chrono::milliseconds time_limit{5000};
  int max_failures = 3;  // consecutive failures; then Judge returns an error
  int processes = 1;     // most processes, each with one question at a time
  CacheOptions cache;
  std::string name;  // its name in errors; empty: the program
  size_t max_answer_bytes = size_t{1} << 20;
};
// Errors: kInvalid for options out of range. A program that cannot be started is an error of Judge.
PAWL_EXPORT Result<std::shared_ptr<const Check>> MakeProgramCheck(
    const ProgramCheckOptions& options);
// The same program as a critic. Its answers are {"id":7,"score":-1.5}, natural logarithms; null
// means -infinity. A late answer is an error.
PAWL_EXPORT Result<std::shared_ptr<const Critic>> MakeProgramCritic(
    const ProgramCheckOptions& options);

// A check as text, in the form of `pawl generate --check`: KIND:VALUE or KIND@GRANULARITY:VALUE,
// such as "regex:[a-z]+" or "program@line:python3 check.py".
//     regex     the whole output matches the value
//     schema    a file with a JSON Schema
//     grammar   a file whose name ends in .ebnf, .gbnf or .lark
//     style     no part of the output matches the value, a regex
//     syntax    typescript, java, python or cpp: a complete output parses. It asks the command
//               pawl, which has to be in PATH
//     monitor   the same: the monitors of the language refuse neither the text nor its end
//     program   a command for the shell, see above
//     tests     a command for the shell that gets a complete output as standard input; exit code 0
//               accepts it
// GRANULARITY is byte, token, line or complete. The default is token for programs, complete for
// tests, otherwise byte.
struct CheckSpecOptions {
  std::chrono::milliseconds time_limit{5000};  // of a program's answer
  int processes = 1;
};
// Errors: kInvalid, and those of the compiler, whose places begin with the text; kIo.
PAWL_EXPORT Result<std::shared_ptr<const Check>> MakeCheckOf(
    const std::string& spec, const std::shared_ptr<const Vocabulary>& vocabulary,
    const CheckSpecOptions& options = {});
// The options that MakeCheckOf makes from program:COMMAND, for critics.
PAWL_EXPORT ProgramCheckOptions ShellProgram(const std::string& command,
                                             const CheckSpecOptions& options = {});

enum class SamplerKind {
  kGcd,   // "gcd": the mask at every step
  kFvo,   // "fvo": kGcd, with tokens weighted by the probability that the next mask leaves
  kAwrs,  // "awrs": the mask, then rejection by the checks; independent weighted outputs
  kSmc,   // "smc": kAwrs in populations that are resampled
  kAsap,  // "asap": the mask, corrected by the prefixes of earlier outputs
  kRs,    // "rs": the model alone; invalid outputs are dropped
  kArs,   // "ars": kRs, which never tries an invalid prefix again
  kCars,  // "cars": kArs, which also excludes tokens by the masks of known prefixes
  // Deprecated names.
  kMasked = kGcd,
  kLookahead = kFvo,
  kAligned = kAsap,
  kRejection = kRs,
  kAdaptive = kArs,
  kExact = kCars,
};

// How near an output is to the model's distribution. Selects the sampler.
enum class Fidelity {
  kFast,     // kGcd
  kAligned,  // kAsap: one of `attempts` outputs, chosen by weight
  kExact,    // kCars within `attempts`, otherwise kAsap; the report says which
};

// How weights under checks are estimated: src/decode/sampling/rejection.h.
enum class Estimator { kTwoLoop, kRecursive, kGeometric };
enum class Resampling { kStratified, kSystematic, kMultinomial, kResidual };

inline constexpr double kZeroWeight = -1e300;

struct SamplerReport {
  SamplerKind sampler = SamplerKind::kGcd;  // the sampler that made this output
  bool valid = false;
  bool at_budget = false;  // the output has max_tokens tokens, so only the end could follow
  // The probability that the mask removed, for each step, the end included.
  std::vector<double> removed;
  double mask_surprise = 0;  // the sum of -log(1 - removed) over the steps, in nats
  int64_t evaluations = 0;   // questions to checks for this output
  int64_t draws = 0;         // tokens that were drawn under checks
  int64_t model_rows = 0;    // rows of the model for this output; shared rows count for the first
  int attempts = 1;          // outputs that were begun for this output
  double log_evidence =
      kZeroWeight;  // of kSmc: log of the estimated probability that an output is valid
  // Set by samplers with a trie. The probability that an output is valid is at least `found`, that
  // of the different valid outputs so far, and at most `theta`.
  double theta = 1, found = 0;
  // An upper bound of the total variation between the distribution of this output and the model's
  // distribution given validity. 0 for exact samplers. Negative: unknown.
  double distance_at_most = -1;
};

struct WeightedOutput {
  std::vector<TokenId> tokens;  // with the end token, if the output ended
  // The bytes of the tokens; special tokens have none. Of a JSON Schema with
  // JsonSchemaOptions::Keys::kAll: the record of these bytes. Checks and critics read records, too.
  std::string text;
  double log_weight = kZeroWeight;
  double log_probability = 0;  // log P of the tokens
  SamplerReport report;
};

struct SamplerOptions {
  SamplerKind sampler = SamplerKind::kSmc;
  std::optional<Fidelity> fidelity = std::nullopt;  // if set, replaces `sampler`
  int n = 1;                                        // outputs, at least 1
  int particles = 5;  // size of kSmc's populations; of the last, only the outputs needed are drawn
  double temperature = 1;  // above 0
  uint64_t seed = 0;
  // The most tokens of an output. Longer outputs are not valid. The context may allow fewer.
  int max_tokens = 512;

  std::vector<std::shared_ptr<const Check>> checks = {};  // all must accept
  Estimator estimator = Estimator::kRecursive;
  int max_rejects = 0;  // most rejected tokens at a step, then the output fails; 0: no limit
  int accepts = 2;      // of kGeometric

  double ess_threshold = 0.5;  // resample below this share of effective particles; 0: never
  Resampling resampling = Resampling::kStratified;
  std::shared_ptr<const Critic> critic = {};  // of kSmc and kAwrs

  // kAsap: the outputs from which one is chosen by weight. kRs, kArs, kCars: the
  // most attempts for one valid output. 0: 1 for kAsap; for the others 10000, or as many as it
  // takes until the output has cost 16384 rows of the model.
  int attempts = 0;
  int lookahead = 8;  // tokens after which kFvo computes the mask, at most 32
  int batch = 32;     // rows of a step: outputs of kAwrs, or particles, that run at a time
  // After so many seconds the run ends with what it has: complete outputs, and of the population
  // or the attempts that are under way those that are complete. 0: no limit. Which outputs there
  // are then depends on the machine, and outputs that end soon are preferred.
  double seconds = 0;

  // Called for each output, in order, as soon as it is complete. false ends the run.
  std::function<bool(const WeightedOutput&)> on_output = {};
  // false: only on_output gets the outputs, and SamplerResult::outputs stays empty.
  bool keep_outputs = true;
};

struct SamplerResult {
  std::vector<WeightedOutput> outputs;  // n, or fewer if on_output or the time ended the run
  bool cancelled = false;
  bool timed_out = false;  // SamplerOptions::seconds ended the run
  // The effective number of the outputs: (sum of weights)^2 / sum of squares. Below 2 one output
  // has nearly all of the weight, and averages over the outputs say little.
  double effective_size = 0;
  int64_t model_calls = 0, model_rows = 0;
  int64_t trie_nodes = 0, trie_bytes = 0;
};

// An output, or its report, as JSON in the form of `pawl generate --json-lines`, without the line
// feed: "text", "tokens", "log_weight", "log_probability", "report" (docs/sampling.md). `asked` is
// SamplerOptions::fidelity.
PAWL_EXPORT std::string OutputJson(const WeightedOutput& output,
                                   std::optional<Fidelity> asked = std::nullopt);
PAWL_EXPORT std::string ReportJson(const SamplerReport& report,
                                   std::optional<Fidelity> asked = std::nullopt);

// ---- Searches (docs/search.md) ----
//
//   pawl::SearchOptions options{.strategy = "beam", .n = 3, .num_beams = 8};
//   auto result = engine->Search(request, options);        // pawl/engine.h
//   for (const pawl::SearchOutput& output : result->outputs) Use(output.text, output.score);
//
// A search looks for outputs of high probability instead of drawing one. Names and defaults of
// options are those of transformers. Under a constraint all outputs are complete.

enum class EarlyStopping {
  kFalse,  // ends where the best open beam, at its length, cannot become better
  kTrue,   // ends with the first num_beams complete outputs
  kNever,  // ends where no open beam of any length can become better
};

// Where forced phrases are looked for.
enum class ForceIn {
  kText,   // in the bytes of the output
  kValue,  // in the strings of JSON, whose escapes are resolved
};

struct SearchOptions {
  std::string strategy = "beam";  // a name of SearchHelp()
  int n = 1;                      // outputs, the best one first
  int num_beams = 4;              // for beam: at least n
  // Outputs rank by log P / length^length_penalty. The length counts tokens with the end token.
  double length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::kFalse;
  int num_beam_groups = 4;         // of diverse-beam; divides num_beams
  double diversity_penalty = 0.5;  // of diverse-beam, for a token that an earlier group has taken
  // No sequence of so many tokens occurs twice, the prompt included; 0: off.
  int no_repeat_ngram_size = 0;
  // true: of hypotheses with the same text and the same constraint the best one is kept.
  bool merge_spellings = true;
  bool skip_forced = true;  // as GenerateOptions::skip_forced, which chooses spellings
  int max_tokens = 512;     // the end token is not counted
  uint64_t seed = 0;        // of strategies that draw
  // Limits. At a limit the search ends with the best complete outputs so far.
  // Rows of the model behind the prompt. 0: 65,536, for best-first 2,048.
  int64_t max_rows = 0;
  int64_t max_nodes = int64_t{1} << 20;                   // hypotheses
  int max_branches = 256;                                 // sequences of the model at a time
  std::vector<std::shared_ptr<const Check>> checks = {};  // all must accept
  std::shared_ptr<const Critic> critic = {};              // its score is added to log P
  // Texts that an output must have. They need the strategy beam.
  std::vector<std::string> force_phrases = {};
  bool force_ordered = false;  // in this order
  ForceIn force_in = ForceIn::kText;
  bool keep_graph = false;  // SearchResult::graph, for pictures
  // Contrast with another prompt, such as one without the document: the logits are
  // (1 + contrast) * logits - contrast * logits behind this prompt. Each token takes two rows.
  // nullopt: without it. `contrast_auto`: the factor of each token is the Jensen-Shannon divergence
  // of both laws, in bits.
  std::optional<std::string> contrast_prompt = {};
  double contrast = 0.5;
  bool contrast_auto = false;
  // Options of one strategy by name; SearchHelp() lists them.
  std::vector<std::pair<std::string, double>> arguments = {};
};

struct SearchOutput {
  std::vector<TokenId> tokens;  // with the end token, if the output ended
  std::string text;             // the bytes of the tokens; special tokens have none
  double log_probability = 0;   // log P of the tokens, without a mask; NaN: not computed
  double score = 0;             // by which outputs rank
  bool ended = false;           // by the end token
  // Not by the model: the shortest completion was appended at a limit. Where it has tokens,
  // log_probability is NaN, and `score` is that of what stands before them.
  bool closed = false;
  std::vector<std::string> missing_phrases;  // of SearchOptions::force_phrases
};

// What a search has looked at: the beginnings of outputs as nodes, of which the first one is the
// empty beginning. A tree, but for lattice.
struct SearchGraph {
  struct Node {
    double log_probability = 0;
    bool complete = false;
  };
  struct Edge {
    int from = 0, to = 0;
    std::string text;  // of the token; empty: the end token
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

struct SearchResult {
  std::vector<SearchOutput> outputs;  // the best one first; n, or fewer if there are no more
  std::string at_limit;               // "rows" or "nodes", if a limit ended the search
  int64_t model_calls = 0, model_rows = 0, nodes = 0;
  double paths = 0;  // of lattice: the outputs that the lattice holds
  // Of adadec and cntp: choices of a token or a continuation, and those of them before which the
  // strategy looked ahead.
  int64_t steps = 0, pauses = 0;
  SearchGraph graph;  // with SearchOptions::keep_graph
};

// The names of strategies and their arguments with defaults, a line each.
PAWL_EXPORT std::string SearchHelp();
// The result as JSON in the form of `pawl generate --search NAME --json`, in one line.
PAWL_EXPORT std::string SearchJson(const SearchResult& result);

// The graph as a picture (SVG): its `most` most probable nodes.
PAWL_EXPORT std::string SearchSvg(const SearchGraph& graph, size_t most = 200);

// Exact probabilities of choices. P(choice) is the sum over its spellings of the probability that
// the model writes exactly this text and ends there. Spellings are followed from the most probable
// prefix on.
struct ClassifyOptions {
  std::vector<std::string> choices;  // different texts, at least one
  double exact_missing = 1e-6;       // ends where `missing` is at most this share of `valid`
  int64_t exact_rows = 4096;         // or after so many rows
  double temperature = 1;            // above 0
};

struct ChoiceProbability {
  std::string text;
  double probability = 0;      // given that the output is one of the choices
  double log_probability = 0;  // of the choice among all outputs, as far as it was followed
};

struct ClassifyResult {
  std::vector<ChoiceProbability> choices;  // in the order of the options
  double valid = 0;                        // the probability of all choices, as far as followed
  double missing = 0;     // at most so much is missing, of `valid` and of each choice
  bool at_limit = false;  // ended by exact_rows
  int64_t rows = 0, calls = 0;
};

// The result as JSON in the form of `pawl generate --exact --json`, in one line.
PAWL_EXPORT std::string ClassifyJson(const ClassifyResult& result);

}  // namespace pawl

#endif  // PAWL_SAMPLING_H_
