// The steps that a part of a tokenizer.json (its normalizer, its decoder) consists of.
#ifndef PAWL_SRC_TEXT_TOKENIZER_STEPS_H_
#define PAWL_SRC_TEXT_TOKENIZER_STEPS_H_

#include <string>

#include "src/base/json_reader.h"

namespace pawl {

// Calls `add` with each step and its type, in order. A Sequence, which may stand in another one,
// has its steps in the member `list`.
template <typename Add>
void ForEachStep(const JsonReader& node, const char* list, const Add& add, int depth = 0) {
  constexpr int kMaxNesting = 16;
  if (depth > kMaxNesting) return node.Fail("nested too deeply", ErrorCode::kLimit);
  const std::string& type = node["type"].String();
  if (type != "Sequence") return add(node, type);
  node.OnlyMembers({"type", list});
  for (const JsonReader step : node[list].Array().items()) ForEachStep(step, list, add, depth + 1);
}

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_TOKENIZER_STEPS_H_
