// The old name of pawl/grammar.h, kept for programs that include it.
#ifndef PAWL_CAPTURE_H_
#define PAWL_CAPTURE_H_

#include "pawl/grammar.h"

#endif  // PAWL_CAPTURE_H_
