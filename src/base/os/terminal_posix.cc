// isatty.
#include <unistd.h>

#include "src/base/os/terminal.h"

namespace pawl::os {

bool ErrorsAreShown() { return ::isatty(STDERR_FILENO) == 1; }

}  // namespace pawl::os
