// The syntax tree of an ECMA-262 pattern, in flat arrays. Internal to grammar/regex.
#ifndef PAWL_GRAMMAR_REGEX_ECMA_AST_H_
#define PAWL_GRAMMAR_REGEX_ECMA_AST_H_

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/regex/codepoint_set.h"
#include "grammar/regex/ecma_parser.h"
#include "pawl/result.h"

namespace pawl {

struct EcmaNode {
  enum class Kind : uint8_t {
    kEmpty,
    kChar,         // code point a
    kSet,          // sets[a]
    kConcat,       // lists[a .. a+b)
    kAlternation,  // lists[a .. a+b)
    kRepeat,       // node a, min..max times
    kLook,         // node a; negative, behind
    kTextStart,
    kTextEnd,
    kLineStart,
    kLineEnd,
    kWordBoundary,  // negative: \B
    // Only in a tree that has_references, until ResolveReferences has taken them out:
    kCapture,    // node a, as group b
    kReference,  // the text of group b; negative: ignoring case
  };
  Kind kind = Kind::kEmpty;
  bool negative = false;
  bool behind = false;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t min = 0;
  uint32_t max = 0;    // kEcmaInfinite: no limit
  uint32_t place = 0;  // byte of the pattern
};

inline constexpr uint32_t kEcmaInfinite = std::numeric_limits<uint32_t>::max();

struct EcmaTree {
  std::vector<EcmaNode> nodes;
  std::vector<uint32_t> lists;
  std::vector<CodepointSet> sets;
  uint32_t root = 0;
  bool has_references = false;

  std::span<const uint32_t> children(const EcmaNode& node) const {
    return std::span<const uint32_t>(lists).subspan(node.a, node.b);
  }
  // New nodes; answers their index. A list of one node is that node.
  uint32_t Add(const EcmaNode& node) {
    nodes.push_back(node);
    return static_cast<uint32_t>(nodes.size() - 1);
  }
  uint32_t AddList(EcmaNode::Kind kind, const std::vector<uint32_t>& list, uint32_t place) {
    if (list.size() == 1) return list[0];
    if (list.empty()) kind = EcmaNode::Kind::kEmpty;
    const auto first = static_cast<uint32_t>(lists.size());
    lists.insert(lists.end(), list.begin(), list.end());
    return Add({.kind = kind, .a = first, .b = static_cast<uint32_t>(list.size()), .place = place});
  }
  uint32_t AddSet(CodepointSet set, uint32_t place) {
    sets.push_back(std::move(set));
    const auto index = static_cast<uint32_t>(sets.size() - 1);
    return Add({.kind = EcmaNode::Kind::kSet, .a = index, .place = place});
  }
};

// Errors as for ParseEcma, but for kUnsupported: assertions are all kept in the tree.
Result<EcmaTree> ParseEcmaSyntax(std::string_view pattern, const RegexSyntaxOptions& options);

// Replaces back references by what they can stand for. Errors, with place "byte N": kUnsupported
// where a group may take too many texts, or its text depends on what stands around it.
Status ResolveReferences(EcmaTree& tree);

// The classes \w, \d, \s and the line terminators.
CodepointSet EcmaWord(bool unicode);
CodepointSet EcmaDigit(bool unicode);
CodepointSet EcmaSpace();
CodepointSet EcmaLineTerminator();

// Patterns written for UTF-16 say [\uD800-\uDBFF][\uDC00-\uDFFF] for the code points above U+FFFF.
// Two neighbours of that kind become the set of those code points.
void JoinSurrogates(EcmaTree& tree, std::vector<uint32_t>& list);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_REGEX_ECMA_AST_H_
