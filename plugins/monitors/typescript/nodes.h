// The common head of the checker's sources: short names of kinds and fields, and what several of
// them ask of a node.
#ifndef PAWL_PLUGINS_MONITORS_TYPESCRIPT_NODES_H_
#define PAWL_PLUGINS_MONITORS_TYPESCRIPT_NODES_H_

#include <string_view>

#include "plugins/monitors/syntax.h"

namespace pawl::monitors::ts {

using K = Kind;
using F = Field;

// Counts the calls of a function in each other.
class Nested {
 public:
  explicit Nested(int& depth) : depth_(depth) { ++depth_; }
  ~Nested() { --depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  int& depth_;
};

inline bool IsFunction(const Node* node) {
  switch (node->kind) {
    case K::k_arrow_function:
    case K::k_function_expression:
    case K::k_function_declaration:
    case K::k_generator_function:
    case K::k_generator_function_declaration:
    case K::k_method_definition:
      return true;
    default:
      return false;
  }
}

inline bool Async(const Node* function) {
  for (const Node& kid : function->kids()) {
    if (!kid.named && kid.text() == "async") return true;
    if (kid.field == F::k_parameters || kid.field == F::k_name) break;
  }
  return false;
}

inline bool HasWord(const Node* node, std::string_view word) {
  for (const Node& kid : node->kids()) {
    if (kid.field == F::k_name || kid.field == F::k_body || kid.field == F::k_parameters) break;
    if (kid.text() == word) return true;
  }
  return false;
}

inline bool HasQuestionMark(const Node* node) {
  bool after = false;
  for (const Node& kid : node->kids()) {
    if (kid.field == F::k_name) after = true;
    if (after && !kid.named && kid.text() == "?") return true;
  }
  return false;
}

}  // namespace pawl::monitors::ts

#endif  // PAWL_PLUGINS_MONITORS_TYPESCRIPT_NODES_H_
