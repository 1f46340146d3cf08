// Whether a person may be looking.
#ifndef PAWL_SRC_BASE_OS_TERMINAL_H_
#define PAWL_SRC_BASE_OS_TERMINAL_H_

namespace pawl::os {

// Whether standard error is shown on a terminal.
bool ErrorsAreShown();

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_TERMINAL_H_
