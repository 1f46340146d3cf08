// Checks and critics as text; MakeCheckOf is in pawl/sampling.h.
#ifndef PAWL_SRC_DECODE_SAMPLING_CHECK_SPEC_H_
#define PAWL_SRC_DECODE_SAMPLING_CHECK_SPEC_H_

#include <memory>
#include <string>

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

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_CHECK_SPEC_H_
