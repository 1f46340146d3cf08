// The old name of pawl/generation.h, kept for programs that include it.
#ifndef PAWL_DRAFTS_H_
#define PAWL_DRAFTS_H_

#include "pawl/generation.h"

#endif  // PAWL_DRAFTS_H_
