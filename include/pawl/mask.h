// The old name of pawl/grammar.h, kept for programs that include it.
#ifndef PAWL_MASK_H_
#define PAWL_MASK_H_

#include "pawl/grammar.h"

#endif  // PAWL_MASK_H_
