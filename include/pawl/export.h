// The old name of pawl/result.h, kept for programs that include it.
#ifndef PAWL_EXPORT_H_
#define PAWL_EXPORT_H_

#include "pawl/result.h"

#endif  // PAWL_EXPORT_H_
