// The classes of ECMA-262 (section 22.2.2.9) as sets of code points, \w and \d by UTS #18,
// and pairs of surrogates as what they mean.
#include "grammar/regex/ecma_ast.h"

namespace pawl {

CodepointSet EcmaDigit(bool unicode) {
  return unicode ? CodepointSet::FromRanges(UnicodeProperty("Nd")) : CodepointSet::Of('0', '9');
}

CodepointSet EcmaWord(bool unicode) {
  const CodepointRange ascii[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  CodepointSet set = CodepointSet::FromRanges(ascii);
  if (!unicode) return set;
  for (const char* name : {"Alphabetic", "M", "Nd", "Pc", "Join_Control"}) {
    set = set.Union(CodepointSet::FromRanges(UnicodeProperty(name)));
  }
  return set;
}

CodepointSet EcmaSpace() {
  const CodepointRange controls[] = {{'\t', '\r'}, {0x2028, 0x2029}, {0xFEFF, 0xFEFF}};
  return CodepointSet::FromRanges(controls).Union(CodepointSet::FromRanges(UnicodeProperty("Zs")));
}

CodepointSet EcmaLineTerminator() {
  const CodepointRange ranges[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  return CodepointSet::FromRanges(ranges);
}

void JoinSurrogates(EcmaTree& tree, std::vector<uint32_t>& list) {
  const auto surrogates = [&](uint32_t id, char32_t lo, char32_t hi) {
    const EcmaNode& node = tree.nodes[id];
    CodepointSet set;
    if (node.kind == EcmaNode::Kind::kChar) set = CodepointSet::Of(node.a);
    if (node.kind == EcmaNode::Kind::kSet) set = tree.sets[node.a];
    const bool all = !set.empty() && set.ranges().front().lo >= lo && set.ranges().back().hi <= hi;
    return all ? set : CodepointSet();
  };
  const auto maybe = [&](uint32_t id) {
    const EcmaNode& node = tree.nodes[id];
    return (node.kind == EcmaNode::Kind::kChar && node.a >= 0xD800 && node.a < 0xDC00) ||
           (node.kind == EcmaNode::Kind::kSet && !tree.sets[node.a].empty() &&
            tree.sets[node.a].ranges().front().lo >= 0xD800 &&
            tree.sets[node.a].ranges().back().hi < 0xDC00);
  };
  for (size_t i = 0; i + 1 < list.size(); ++i) {
    if (!maybe(list[i])) continue;
    const CodepointSet high = surrogates(list[i], 0xD800, 0xDBFF);
    const CodepointSet low = surrogates(list[i + 1], 0xDC00, 0xDFFF);
    if (high.empty() || low.empty()) continue;
    std::vector<CodepointRange> ranges;
    for (const CodepointRange& h : high.ranges()) {
      for (char32_t unit = h.lo; unit <= h.hi; ++unit) {
        for (const CodepointRange& l : low.ranges()) {
          const char32_t base = 0x10000 + ((unit - 0xD800) << 10);
          ranges.push_back({base + (l.lo - 0xDC00), base + (l.hi - 0xDC00)});
        }
      }
    }
    EcmaNode joined;
    joined.kind = EcmaNode::Kind::kSet;
    joined.a = static_cast<uint32_t>(tree.sets.size());
    joined.place = tree.nodes[list[i]].place;
    tree.sets.push_back(CodepointSet::FromRanges(ranges));
    list[i] = static_cast<uint32_t>(tree.nodes.size());
    tree.nodes.push_back(joined);
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

}  // namespace pawl
