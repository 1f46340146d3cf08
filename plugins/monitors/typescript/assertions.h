// The grammar of TypeScript takes `a + b!` for `(a + b)!`. So the marks are taken out of a text
// before it is parsed, and the tree knows where they stood.
//
//   auto tree = ParseAsserted(parser, "n > find(s)!.length;");
//   tree->Asserted(11);     // true: what ends there is neither null nor undefined
#ifndef PAWL_PLUGINS_MONITORS_TYPESCRIPT_ASSERTIONS_H_
#define PAWL_PLUGINS_MONITORS_TYPESCRIPT_ASSERTIONS_H_

#include <memory>
#include <string>

#include "plugins/monitors/syntax.h"

namespace pawl::monitors::ts {

std::unique_ptr<Tree> ParseAsserted(Parser& parser, std::string text);

}  // namespace pawl::monitors::ts

#endif  // PAWL_PLUGINS_MONITORS_TYPESCRIPT_ASSERTIONS_H_
