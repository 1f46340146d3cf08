// The old name of pawl/sampling.h, kept for programs that include it.
#ifndef PAWL_CHECK_H_
#define PAWL_CHECK_H_

#include "pawl/sampling.h"

#endif  // PAWL_CHECK_H_
