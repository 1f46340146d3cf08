// PrefixChoice: a choice of many texts, each with what follows it, as a prefix tree. After a text
// has begun, only those that go on in the same way are in play; side by side, all would be.
#ifndef PAWL_GRAMMAR_LANGUAGES_PREFIX_CHOICE_H_
#define PAWL_GRAMMAR_LANGUAGES_PREFIX_CHOICE_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/cfg/grammar_ir.h"

namespace pawl {

struct PrefixedExpr {
  std::u32string text;
  GrammarIr::ExprId rest;
};

// The alternatives of the choice. `expr_of(text)`: the expression of a part of a text, which may be
// empty. From the leaves up: neighbours in sorted order share their longest common prefix, and a
// node is closed when the next text leaves it. Of equal texts the order stays.
template <typename ExprOf>
std::vector<GrammarIr::ExprId> PrefixChoice(GrammarIr& ir, std::vector<PrefixedExpr> texts,
                                            const ExprOf& expr_of) {
  using ExprId = GrammarIr::ExprId;
  std::stable_sort(texts.begin(), texts.end(),
                   [](const PrefixedExpr& a, const PrefixedExpr& b) { return a.text < b.text; });
  struct Open {
    size_t depth;  // characters that all below it begin with
    std::vector<ExprId> choices;
  };
  std::vector<Open> open = {{0, {}}};
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::u32string_view text = texts[i].text;
    size_t shared = 0;  // with the next one
    if (i + 1 < texts.size()) {
      const std::u32string_view next = texts[i + 1].text;
      while (shared < text.size() && shared < next.size() && text[shared] == next[shared]) ++shared;
    }
    if (shared > open.back().depth) open.push_back({shared, {}});
    const auto part = [&](size_t from, size_t to) { return expr_of(text.substr(from, to - from)); };
    open.back().choices.push_back(
        ir.Sequence({part(open.back().depth, text.size()), texts[i].rest}));
    while (open.back().depth > shared) {
      const Open closed = std::move(open.back());
      open.pop_back();
      if (shared > open.back().depth) open.push_back({shared, {}});
      open.back().choices.push_back(
          ir.Sequence({part(open.back().depth, closed.depth), ir.Choice(closed.choices)}));
    }
  }
  return std::move(open[0].choices);
}

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_PREFIX_CHOICE_H_
