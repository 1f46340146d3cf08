// CompletionPart: a piece of what completes a text.
#ifndef PAWL_COMPLETION_H_
#define PAWL_COMPLETION_H_

#include <string>

#include "pawl/vocabulary.h"

namespace pawl {

// Bytes, spelled by any tokens; or one token taken as a whole, where a grammar names it.
struct CompletionPart {
  std::string bytes = {};
  TokenId token = kNoToken;  // kNoToken: bytes
  friend bool operator==(const CompletionPart&, const CompletionPart&) = default;
};

}  // namespace pawl

#endif  // PAWL_COMPLETION_H_
