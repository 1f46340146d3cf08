// The old name of pawl/compiler.h, kept for programs that include it.
#ifndef PAWL_STRUCTURAL_TAG_PRESETS_H_
#define PAWL_STRUCTURAL_TAG_PRESETS_H_

#include "pawl/compiler.h"

#endif  // PAWL_STRUCTURAL_TAG_PRESETS_H_
