// The old name of pawl/engine.h, kept for programs that include it.
#ifndef PAWL_MODEL_OPTIONS_H_
#define PAWL_MODEL_OPTIONS_H_

#include "pawl/engine.h"

#endif  // PAWL_MODEL_OPTIONS_H_
