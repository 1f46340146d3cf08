// The old name of pawl/vocabulary.h, kept for programs that include it.
#ifndef PAWL_OUTPUT_PIECE_H_
#define PAWL_OUTPUT_PIECE_H_

#include "pawl/vocabulary.h"

#endif  // PAWL_OUTPUT_PIECE_H_
