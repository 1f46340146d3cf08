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
#ifndef PAWL_CHECK_H_
#define PAWL_CHECK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/export.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

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

}  // namespace pawl

#endif  // PAWL_CHECK_H_
