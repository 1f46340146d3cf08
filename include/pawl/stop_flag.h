// The old name of pawl/result.h, kept for programs that include it.
#ifndef PAWL_STOP_FLAG_H_
#define PAWL_STOP_FLAG_H_

#include "pawl/result.h"

#endif  // PAWL_STOP_FLAG_H_
