// Free text that ends at given texts: what it may not end with (StopReach), and a choice of
// many texts as a prefix tree (PrefixChoice).
//
// StopReach: which of some texts another one of them may reach into. Free text ends where the first
// of them ends, so before "ab" the text must not end with "x" where "xa" is one of them as well.
//
//   StopReach reach(stops);
//   StopReach::Into into = reach.IntoText(stops[0]);
//   auto beginnings = reach.Beginnings(into, 1000);      // {"x"}: must not stand before stops[0]
//
// Takes time linear in the length of all texts. Immutable.
#ifndef PAWL_GRAMMAR_CFG_STOP_REACH_H_
#define PAWL_GRAMMAR_CFG_STOP_REACH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/cfg/grammar_ir.h"
#include "grammar/hash_index.h"

namespace pawl {

class StopReach {
 public:
  // None is empty.
  explicit StopReach(std::span<const std::u32string> stops);

  struct Into {
    bool never = false;           // another one ends inside of the text, whatever stands before it
    std::vector<uint32_t> nodes;  // of the trie: parts of the text with which others end
    friend auto operator<=>(const Into&, const Into&) = default;
  };
  // REQUIRES: the text is one of the stops.
  Into IntoText(const std::u32string& text) const;
  // The texts behind which another stop ends before the whole text is there; sorted. The same for
  // all texts with the same Into. nullopt where they have more than `most` characters together.
  std::optional<std::vector<std::u32string>> Beginnings(const Into& into, size_t most) const;

 private:
  struct Node {
    uint32_t parent, depth;
    char32_t last;
    uint32_t fail = 0;                // the longest proper suffix that is a node
    bool stop = false;                // some stop ends here
    std::vector<uint32_t> ends = {};  // longer stops that end with this node's text
  };
  const uint32_t* Child(uint32_t node, char32_t c) const {
    return children_.Find(uint64_t{node} << 32 | c);
  }

  const std::vector<std::u32string> stops_;
  std::vector<Node> nodes_;
  FlatMap<uint32_t> children_;  // by node << 32 | character
};

// PrefixChoice: a choice of many texts, each with what follows it, as a prefix tree. After a text
// has begun, only those that go on in the same way are in play; side by side, all would be.

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
  std::stable_sort(texts.begin(), texts.end(),
                   [](const PrefixedExpr& a, const PrefixedExpr& b) { return a.text < b.text; });
  struct Open {
    size_t depth;  // characters that all below it begin with
    std::vector<GrammarIr::ExprId> choices;
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

#endif  // PAWL_GRAMMAR_CFG_STOP_REACH_H_
