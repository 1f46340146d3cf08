// The old name of pawl/compiler.h, kept for programs that include it.
#ifndef PAWL_GRAMMAR_OPTIONS_H_
#define PAWL_GRAMMAR_OPTIONS_H_

#include "pawl/compiler.h"

#endif  // PAWL_GRAMMAR_OPTIONS_H_
