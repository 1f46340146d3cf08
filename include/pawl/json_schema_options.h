// The old name of pawl/compiler.h, kept for programs that include it.
#ifndef PAWL_JSON_SCHEMA_OPTIONS_H_
#define PAWL_JSON_SCHEMA_OPTIONS_H_

#include "pawl/compiler.h"

#endif  // PAWL_JSON_SCHEMA_OPTIONS_H_
