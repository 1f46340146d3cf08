// `pawl tune`: its options, and what its parts share.
#ifndef PAWL_SRC_CLI_TUNE_H_
#define PAWL_SRC_CLI_TUNE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/result.h"
#include "src/base/json.h"
#include "src/cli/eval_pass.h"

namespace pawl::cli {

inline constexpr const char* kTune = "tune";
inline constexpr size_t kLeastExamples = 12;  // a third of them is held out

struct TuneFlags {
  EvalTexts texts;
  std::string prompts;
  std::string entropy;
  std::string regex;
  std::string critic;
  bool special = false;  // prompts may name special tokens
  uint64_t trials = 50;
  double row_cost = 0.001;
  std::string ledger;
  std::string out;
  const CLI::App* command = nullptr;  // whose options are given

  uint64_t seed() const { return texts.extract.setting.sampling.params.seed; }
};

struct TunePrompt {
  std::string prompt;
  std::optional<std::string> expect;
};

// Lines of a file. Errors name the line.
Result<std::vector<TunePrompt>> ReadPrompts(const std::string& file);
// What outputs are to be: --regex or --schema; nullopt: anything.
Result<std::optional<Grammar>> TuneGrammar(const TuneFlags& flags,
                                           const std::shared_ptr<const Vocabulary>& vocabulary);
// What else makes a task, as a member of the first line of a ledger: the options that are given,
// each with a digest of its value, or of the file that it names.
std::string LedgerOptions(const TuneFlags& flags);
// Errors name what differs.
Status CheckLedgerHeader(const std::string& line, const std::string& own, const std::string& place);
// `pawl tune --entropy`.
int TuneEntropy(const TuneFlags& flags);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_TUNE_H_
