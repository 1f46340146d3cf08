// The C library's isatty.
#include <io.h>

#include "src/base/os/terminal.h"

namespace pawl::os {

bool ErrorsAreShown() { return ::_isatty(2) != 0; }

}  // namespace pawl::os
