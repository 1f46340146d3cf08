// The grammar of TypeScript takes `a + b!` for `(a + b)!`. So the marks are taken out of a text
// before it is parsed, and the tree knows where they stood.
//
//   AssertedTexts texts(parser);
//   auto tree = texts.Parse("n > find(s)!.length;");
//   tree->Asserted(11);     // true: what ends there is neither null nor undefined
#ifndef PAWL_PLUGINS_MONITORS_TYPESCRIPT_ASSERTIONS_H_
#define PAWL_PLUGINS_MONITORS_TYPESCRIPT_ASSERTIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "plugins/monitors/scan.h"
#include "plugins/monitors/syntax.h"

namespace pawl::monitors::ts {

class AssertedTexts {
 public:
  explicit AssertedTexts(Parser& parser) : parser_(parser), scan_(Language::kTypeScript) {}
  // The first `stable` bytes may come again: the lines there are looked at once.
  std::unique_ptr<Tree> Parse(std::string text, size_t stable = 0);
  void Forget() noexcept;

 private:
  Parser& parser_;
  std::string seen_;  // whole lines
  Scan scan_;         // behind them
  std::vector<uint32_t> places_;
};

}  // namespace pawl::monitors::ts

#endif  // PAWL_PLUGINS_MONITORS_TYPESCRIPT_ASSERTIONS_H_
