// Thoughts before an answer: one constraint, then another.
//
//   auto first = ForLoop(MakeConstraint(thoughts), *vocabulary);   // ends behind the closing mark
//   auto both = ThinkFirst({.thoughts = first, .answer = answer, .vocabulary = vocabulary,
//                           .most_tokens = 500, .open_bytes = 7});
//
// What a model thinks is free text up to the closing mark. The answer begins with the token behind
// the mark: a token that reaches from the mark into the answer is refused. So the answer's
// constraint may be any, and is asked about nothing but the answer. From there on it is the
// constraint of the output itself, and costs nothing more.
//
// Where thoughts may be left out (`thoughts` accepts at once), both are followed until one refuses
// a token, or until the opening mark is written.
//
// Where `ends_early`, an end token of the model inside of the thoughts means that they are over:
// the rest of their shortest end takes its place.
//
// Budget: after `most_tokens` tokens only the shortest end of the thoughts may follow. The same
// holds where, of `output_tokens`, only the shortest answer and `kept_tokens` would be left.
#ifndef PAWL_SRC_DECODE_THINKING_CONSTRAINT_H_
#define PAWL_SRC_DECODE_THINKING_CONSTRAINT_H_

#include <cstddef>
#include <memory>

#include "pawl/vocabulary.h"
#include "src/decode/constraint.h"

namespace pawl {

struct ThinkFirstParts {
  std::shared_ptr<const LoopConstraint> thoughts;
  std::shared_ptr<const LoopConstraint> answer;  // nullptr: any text
  std::shared_ptr<const Vocabulary> vocabulary;
  int most_tokens = -1;    // of the thoughts; -1: any number
  int output_tokens = -1;  // of the whole output; -1: any number
  int kept_tokens = 0;
  size_t open_bytes = 0;  // of the opening mark
  bool ends_early = false;
};

// REQUIRES: thoughts and vocabulary are not nullptr.
std::shared_ptr<const LoopConstraint> ThinkFirst(ThinkFirstParts parts);

// Any text, which may end anywhere.
std::shared_ptr<const LoopConstraint> AnyText(std::shared_ptr<const Vocabulary> vocabulary);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_THINKING_CONSTRAINT_H_
