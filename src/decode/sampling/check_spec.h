// Checks and critics as text; MakeCheckOf is in pawl/sampling.h.
#ifndef PAWL_SRC_DECODE_SAMPLING_CHECK_SPEC_H_
#define PAWL_SRC_DECODE_SAMPLING_CHECK_SPEC_H_

#include <memory>
#include <string>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/sampling.h"

namespace pawl {

// A command that gets a complete output as standard input, once for each. Exit code 0 accepts it.
// What it writes says why it does not. A command that takes longer than the time limit refuses.
Result<std::shared_ptr<const Check>> MakeTestsCheck(const ProgramCheckOptions& options);
// The same as a critic: the logarithm of the share of tests that pass. That is PASSED/TOTAL or a
// number from 0 to 1 in the last line that the command writes, else 1 or 0 by its exit code.
Result<std::shared_ptr<const Critic>> MakeTestsCritic(const ProgramCheckOptions& options);
// `--critic`: tests:COMMAND, or a command of MakeProgramCritic.
Result<std::shared_ptr<const Critic>> MakeCriticOf(const std::string& spec,
                                                   const CheckSpecOptions& options = {});

// Checks of code, syntax:LANGUAGE and monitor:LANGUAGE, are made by a layer above (`make`, as
// src/completion/code_check.h has it). Where none is offered they are questions to the command,
// `pawl check SPEC`, which is searched in PATH.
using CheckMaker = Result<std::shared_ptr<const Check>> (*)(const std::string& spec);
void OfferCodeChecks(CheckMaker make);
// Where the command is, in place of a search.
void SetCheckCommand(const std::string& path);
bool IsCodeCheck(const std::string& spec);

// The checks and the critic of a request.
struct CheckSpecs {
  std::vector<std::string> checks;
  std::string critic;  // empty: none
  double timeout = 5;  // of a program, in seconds
};
// Puts them behind what is there. Errors: kInvalid and others with "checks/0", "critic" or
// "check_timeout" as place.
Status AddChecks(const CheckSpecs& specs, const std::shared_ptr<const Vocabulary>& vocabulary,
                 int processes, std::vector<std::shared_ptr<const Check>>& checks,
                 std::shared_ptr<const Critic>& critic);
// The first check that runs a command or reads a file, or the critic: its place. Empty: none.
std::string PlaceOfCommand(const CheckSpecs& specs);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_CHECK_SPEC_H_
