// Samplers that keep the model's distribution, and what comes back from them.
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
// The law. P(y) is the probability that the model writes the tokens y and ends there, at the given
// temperature and without any mask. Valid outputs are those of at most max_tokens tokens that the
// grammar and the checks accept. Masking alone draws from another law: it follows the model token
// by token and cannot know that a token which is allowed now leads to where little is allowed.
//
// Weights. For every function f, the sum over the outputs of exp(log_weight) * f(y), divided by
// their number, has the expectation C * sum of P(y) f(y) over the valid y, with one constant C for
// the run. So weighted averages estimate averages under the model's law given validity.
//  - C = 1 for masks (kMasked, kLookahead), kAwrs, kSmc and kAligned: weights carry the mass that
//  masks and checks took away, and of particles the population's evidence.
//  - C = 1 / (mass of what is valid) for kRejection, kAdaptive and kExact: every log_weight is 0.
// A weight of 0 has log_weight kZeroWeight: the output is not valid, and counts all the same.
//
// Nothing is forced: the law is over sequences of tokens as the model has them, the end token
// included, so different spellings of one text are different outputs.
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

// Check: a constraint that is too slow or too rich to be a mask: a type checker, a database, a
// test. It is asked about candidates instead of deciding about all tokens at once.
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
// An output is valid when the grammar accepts it, no check calls any of its prefixes dead, and
// every check answers kAccept at its end. What a check calls dead must stay dead however the text
// goes on; it need not notice at once, a check that only knows complete texts is a check.
//
// The same question must always get the same answer, or the weights of a sampler mean nothing.

enum class Verdict {
  kDead,     // no way to go on makes it valid
  kLive,     // may become valid, is not yet; at the end: it is not valid
  kAccept,   // valid if it ends here
  kUnknown,  // the check cannot tell: like kLive
};

// When a check is asked about the output so far. All are asked at its end.
enum class CheckGranularity {
  kByte,      // after every token, also where that is inside a character; it reads the bytes alone
  kToken,     // after every token; it reads the tokens too
  kLine,      // after every line, about the text up to its '\n'
  kComplete,  // at the end
};

struct CheckQuestion {
  std::string_view text;            // the output so far: bytes
  std::span<const TokenId> tokens;  // those of the text, without the end token
  bool ended = false;               // the output ends here
};

// Thread safety: Judge is called from several threads at a time.
class PAWL_EXPORT Check {
 public:
  virtual ~Check();
  virtual CheckGranularity granularity() const = 0;
  // Errors end the whole run; where a check only could not tell, kUnknown is the answer.
  virtual Result<Verdict> Judge(const CheckQuestion& question) const = 0;
};

// A weight on outputs and on what they begin with: particles are multiplied with exp(Score). At
// the end it is part of the law that is sampled from; before, it only steers.
// Thread safety: Score is called from several threads at a time.
class PAWL_EXPORT Critic {
 public:
  virtual ~Critic();
  // A logarithm; -infinity for what must not be.
  virtual Result<double> Score(const CheckQuestion& question) const = 0;
};

// A regex or any other grammar as a check: dead where no text of the grammar begins so.
PAWL_EXPORT std::shared_ptr<const Check> MakeGrammarCheck(
    const Grammar& grammar, CheckGranularity granularity = CheckGranularity::kByte);

// A function as a check.
PAWL_EXPORT std::shared_ptr<const Check> MakeCheck(
    CheckGranularity granularity, std::function<Result<Verdict>(const CheckQuestion&)> judge);

struct CacheOptions {
  size_t max_bytes = size_t{16} << 20;
};
// Remembers answers, the ones used last. kUnknown is asked again.
PAWL_EXPORT std::shared_ptr<const Check> MakeCachedCheck(std::shared_ptr<const Check> check,
                                                         const CacheOptions& options = {});

// A program as a check. It reads a line of JSON for each question on its standard input,
//   {"id":7,"text":"SELECT na","tokens":[12,88],"ended":false}
// and writes a line of JSON with the same id as its answer:
//   {"id":7,"verdict":"live"}                  "dead", "live", "accept" or "unknown"
// Bytes of the text that are not UTF-8 are U+FFFD; a character that is not whole at the end is left
// out. What the program writes to standard error goes where Pawl's own goes.
struct ProgramCheckOptions {
  std::vector<std::string> command;  // the program, looked for in PATH, and its arguments
  CheckGranularity granularity = CheckGranularity::kToken;
  // For one answer. A program that does not answer in time, writes something else or ends is
  // stopped (SIGKILL, with the processes that it started) and started again for the next question;
  // the answer is kUnknown.
  std::chrono::milliseconds time_limit{5000};
  int max_failures = 3;  // one after another; then Judge is an error
  int processes = 1;     // at most so many run, each with one question at a time
  CacheOptions cache;
  std::string name;  // what errors call it; empty: the program
  size_t max_answer_bytes = size_t{1} << 20;
};
// Errors: kInvalid for options out of range. A program that cannot be started is an error of Judge.
PAWL_EXPORT Result<std::shared_ptr<const Check>> MakeProgramCheck(
    const ProgramCheckOptions& options);
// The same program as a critic: its answers are {"id":7,"score":-1.5}, natural logarithms; null
// means -infinity. An answer that does not come in time is an error.
PAWL_EXPORT Result<std::shared_ptr<const Critic>> MakeProgramCritic(
    const ProgramCheckOptions& options);

// A check as text, which is what `pawl generate --check` takes: KIND:VALUE or
// KIND@GRANULARITY:VALUE, such as "regex:[a-z]+" or "program@line:python3 check.py".
//   regex     the whole output matches the value
//   schema    a file with a JSON Schema
//   grammar   a file whose name ends in .ebnf, .gbnf or .lark
//   program   a command for the shell, see above
// GRANULARITY is byte, token, line or complete: by default token for programs, else byte.
struct CheckSpecOptions {
  std::chrono::milliseconds time_limit{5000};  // of a program's answer
  int processes = 1;
};
// Errors: kInvalid and those of the compiler, with the text as the beginning of the place; kIo.
PAWL_EXPORT Result<std::shared_ptr<const Check>> MakeCheckOf(
    const std::string& spec, const std::shared_ptr<const Vocabulary>& vocabulary,
    const CheckSpecOptions& options = {});
// The same command as MakeCheckOf makes of program:COMMAND; for critics.
PAWL_EXPORT ProgramCheckOptions ShellProgram(const std::string& command,
                                             const CheckSpecOptions& options = {});

enum class SamplerKind {
  kMasked,     // "gcd": the mask at every step, and nothing else
  kLookahead,  // "fvo": tokens also weighted by the mass that the mask after them leaves
  kAwrs,       // "awrs": the mask, then rejection by the checks; independent weighted outputs
  kSmc,        // "smc": the same in populations that are resampled
  kAligned,    // "asap": the mask, corrected by what earlier outputs taught about prefixes
  kRejection,  // "rs": the model alone; invalid outputs are thrown away
  kAdaptive,   // "ars": and what was invalid is not tried again
  kExact,      // "cars": and neither is any token that the mask of a visited prefix excludes
};

// How far an output may be from the model's law; picks the sampler.
enum class Fidelity {
  kFast,     // kMasked
  kAligned,  // kAligned: the last of `attempts` corrected outputs, chosen by their weights
  kExact,    // kExact within `attempts`; else kAligned, which the report says
};

// What looks at further items once one was accepted: src/decode/sampling/rejection.h.
enum class Estimator { kTwoLoop, kRecursive, kGeometric };
enum class Resampling { kStratified, kSystematic, kMultinomial, kResidual };

inline constexpr double kZeroWeight = -1e300;

struct SamplerReport {
  SamplerKind sampler = SamplerKind::kMasked;  // what made this output
  bool valid = false;
  bool at_budget = false;  // max_tokens were reached: only the end was left to choose
  // By step, the end included: the probability that the mask took away.
  std::vector<double> removed;
  double mask_surprise = 0;  // - sum of log(1 - removed), in nats
  int64_t evaluations = 0;   // questions to checks, for this output
  int64_t draws = 0;         // tokens that were looked at under checks
  int64_t model_rows = 0;    // rows of the model that were run for it; shared ones with the first
  int attempts = 1;          // outputs that were begun for it
  double log_evidence =
      kZeroWeight;  // of kSmc: the population's estimate of the mass that is valid
  // Of the samplers with a trie. The mass of what is valid is between `found`, that of the
  // different valid outputs seen so far, and `theta`.
  double theta = 1, found = 0;
  // The total variation between the law of this output and the model's law given validity is at
  // most this: 0 for the exact samplers. Negative: nothing is known.
  double distance_at_most = -1;
};

struct WeightedOutput {
  std::vector<TokenId> tokens;  // with the end token, where the output came to its end
  std::string text;             // their bytes; special tokens have none
  double log_weight = kZeroWeight;
  double log_probability = 0;  // of these tokens
  SamplerReport report;
};

struct SamplerOptions {
  SamplerKind sampler = SamplerKind::kSmc;
  std::optional<Fidelity> fidelity = std::nullopt;  // given: takes the place of `sampler`
  int n = 1;                                        // outputs, at least 1
  int particles = 5;       // of kSmc. Where n is no multiple, some of the last population are drawn
  double temperature = 1;  // above 0
  uint64_t seed = 0;
  // The longest output; outputs that would be longer are not valid. What the context leaves may be
  // less.
  int max_tokens = 512;

  std::vector<std::shared_ptr<const Check>> checks = {};  // all of them have to accept
  Estimator estimator = Estimator::kRecursive;
  int max_rejects = 0;  // at a step, then the output is given up; 0: no limit
  int accepts = 2;      // of kGeometric

  double ess_threshold = 0.5;  // of the particles; resampled below it. 0: never
  Resampling resampling = Resampling::kStratified;
  std::shared_ptr<const Critic> critic = {};  // of kSmc and kAwrs

  // kAligned: outputs of which one is chosen by weight; kRejection, kAdaptive, kExact: at most so
  // many until one is valid. 0: 1 for kAligned, 10000 for the others.
  int attempts = 0;
  int lookahead = 8;  // tokens that kLookahead looks behind, at most 32
  int batch = 32;     // rows of a step: outputs of kAwrs, or particles, that run at a time

  // Called in the order of the outputs as soon as they are there; false ends the run.
  std::function<bool(const WeightedOutput&)> on_output = {};
  // false: on_output alone gets them, and SamplerResult::outputs stays empty, however many they
  // are.
  bool keep_outputs = true;
};

struct SamplerResult {
  std::vector<WeightedOutput> outputs;  // n, or fewer when on_output ended the run
  bool cancelled = false;
  int64_t model_calls = 0, model_rows = 0;
  int64_t trie_nodes = 0, trie_bytes = 0;
};

// An output as a line of `pawl generate --json-lines`, without the line feed: "text", "tokens",
// "log_weight", "log_probability", "report" (docs/sampling.md). `asked`: SamplerOptions::fidelity.
PAWL_EXPORT std::string OutputJson(const WeightedOutput& output,
                                   std::optional<Fidelity> asked = std::nullopt);
PAWL_EXPORT std::string ReportJson(const SamplerReport& report,
                                   std::optional<Fidelity> asked = std::nullopt);

}  // namespace pawl

#endif  // PAWL_SAMPLING_H_
