// OutputPiece: a piece of an output, or of what completes one.
#ifndef PAWL_OUTPUT_PIECE_H_
#define PAWL_OUTPUT_PIECE_H_

#include <string>

#include "pawl/vocabulary.h"

namespace pawl {

// A token taken as a whole; or bytes, for which no token is known or which any tokens may spell.
struct OutputPiece {
  TokenId token = kNoToken;  // kNoToken: bytes
  std::string bytes = {};    // where there is no token
  friend bool operator==(const OutputPiece&, const OutputPiece&) = default;
};

}  // namespace pawl

#endif  // PAWL_OUTPUT_PIECE_H_
