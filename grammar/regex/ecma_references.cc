// Back references to groups that take few texts.
//
// A reference asks for the text that its group took last. Where the group can only take few texts,
// the pattern is a choice: for each of them, the pattern with that text in the place of the group
// and of the reference. ("|')x\1 is "x"|'x'.
//
// The tree is read from left to right, as a matcher would. What has been read so far is a set of
// paths, each a node without captures and what the groups have taken on this path. Where no path is
// needed any more (all references to a group are in the body of a loop, which forgets its captures
// each time, or of a lookaround), paths join in an alternation again. Which path a backtracking
// matcher tries first does not matter: a pattern accepts a text if any path does. Lookarounds are
// the exception, as they keep the first path only; so a group in a lookaround may not be referred
// to from outside.
//
// ECMA-262 22.2.2: a reference to a group that has taken nothing yet takes the empty text
// (BackreferenceMatcher), and a loop forgets its body's groups before each round (RepeatMatcher).
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "grammar/regex/ecma_ast.h"

namespace pawl {
namespace {

using Kind = EcmaNode::Kind;

class References {
 public:
  explicit References(EcmaTree& tree) : tree_(tree), inner_(tree.nodes.size()) {}

  Status Resolve() {
    Gather(tree_.root);
    const auto ways = Read(tree_.root, {});
    if (!ways) return *error_;
    tree_.root = Join(*ways, tree_.root);
    return {};
  }

 private:
  static constexpr size_t kMaxWays = 2000;
  static constexpr size_t kMaxTexts = 1000;
  static constexpr size_t kMaxNodes = 500'000;

  using Taken = std::map<uint32_t, std::u32string>;  // by group
  struct Way {
    uint32_t node;
    Taken taken;
  };
  using Ways = std::vector<Way>;
  // Groups and references at a node and below it; the numbers are those of groups.
  struct Inner {
    std::set<uint32_t> groups, references;
  };

  std::nullopt_t Fail(std::string message, uint32_t node) {
    if (!error_) {
      error_ = Error{ErrorCode::kUnsupported, std::move(message),
                     "byte " + std::to_string(tree_.nodes[node].place)};
    }
    return std::nullopt;
  }

  static bool HasBody(const EcmaNode& node) {
    return node.kind == Kind::kRepeat || node.kind == Kind::kLook || node.kind == Kind::kCapture;
  }
  static bool HasList(const EcmaNode& node) {
    return node.kind == Kind::kConcat || node.kind == Kind::kAlternation;
  }
  std::vector<uint32_t> ListOf(uint32_t id) const {
    const auto list = tree_.children(tree_.nodes[id]);
    return {list.begin(), list.end()};
  }

  void Gather(uint32_t id) {
    const EcmaNode& node = tree_.nodes[id];
    Inner& inner = inner_[id];
    const auto take = [&](uint32_t child) {
      Gather(child);
      inner.groups.insert(inner_[child].groups.begin(), inner_[child].groups.end());
      inner.references.insert(inner_[child].references.begin(), inner_[child].references.end());
    };
    if (HasBody(node)) take(node.a);
    if (HasList(node)) {
      for (const uint32_t child : tree_.children(node)) take(child);
    }
    if (node.kind == Kind::kCapture) inner.groups.insert(node.b);
    if (node.kind != Kind::kReference) return;
    inner.references.insert(node.b);
    ++references_to_[node.b];
  }
  // References to the group below the node.
  size_t CountReferences(uint32_t id, uint32_t group) const {
    const EcmaNode& node = tree_.nodes[id];
    if (!inner_[id].references.contains(group)) return 0;
    if (node.kind == Kind::kReference) return 1;
    if (HasBody(node)) return CountReferences(node.a, group);
    size_t sum = 0;
    for (const uint32_t child : tree_.children(node)) sum += CountReferences(child, group);
    return sum;
  }
  // A group of the node is referred to from outside of it.
  bool IsReferredToFromOutside(uint32_t id) const {
    return std::ranges::any_of(inner_[id].groups, [&](uint32_t group) {
      const auto all = references_to_.find(group);
      return all != references_to_.end() && all->second > CountReferences(id, group);
    });
  }

  // New nodes.
  uint32_t AddList(Kind kind, const std::vector<uint32_t>& list, uint32_t at) {
    return tree_.AddList(kind, list, tree_.nodes[at].place);
  }
  uint32_t AddText(const std::u32string& text, bool ignore_case, uint32_t at) {
    const uint32_t place = tree_.nodes[at].place;
    std::vector<uint32_t> characters;
    for (const char32_t c : text) {
      characters.push_back(ignore_case ? tree_.AddSet(CodepointSet::Of(c).CaseClosure(), place)
                                       : tree_.Add({.kind = Kind::kChar, .a = c, .place = place}));
    }
    return AddList(Kind::kConcat, characters, at);
  }
  // A copy of the node with another body.
  uint32_t AddAround(uint32_t id, uint32_t body) {
    EcmaNode node = tree_.nodes[id];
    node.a = body;
    return tree_.Add(node);
  }
  uint32_t Join(const Ways& ways, uint32_t at) {
    std::set<uint32_t> nodes;
    for (const Way& way : ways) nodes.insert(way.node);
    return AddList(Kind::kAlternation, {nodes.begin(), nodes.end()}, at);
  }

  bool CheckSize(const Ways& ways, uint32_t at) {
    if (ways.size() <= kMaxWays && tree_.nodes.size() <= kMaxNodes) return true;
    Fail("back references with too many combinations of texts are not supported", at);
    return false;
  }

  // All ways to read the node once these texts were taken.
  std::optional<Ways> Read(uint32_t id, const Taken& taken) {
    const EcmaNode node = tree_.nodes[id];
    if (inner_[id].groups.empty() && inner_[id].references.empty()) return Ways{{id, taken}};
    switch (node.kind) {
      case Kind::kConcat:
        return ReadConcat(id, taken);
      case Kind::kAlternation: {
        Ways out;
        for (const uint32_t child : ListOf(id)) {
          auto ways = Read(child, taken);
          if (!ways) return std::nullopt;
          out.insert(out.end(), ways->begin(), ways->end());
          if (!CheckSize(out, id)) return std::nullopt;
        }
        return Joined(std::move(out), id);
      }
      case Kind::kRepeat:
        return ReadRepeat(id, taken);
      case Kind::kLook: {
        if (IsReferredToFromOutside(id)) {
          return Fail("back references to a group in a lookaround are not supported", id);
        }
        if (node.behind && !inner_[id].groups.empty() && !inner_[id].references.empty()) {
          return Fail("back references in a lookbehind with groups are not supported", id);
        }
        const auto ways = Read(node.a, taken);
        if (!ways) return std::nullopt;
        return Ways{{AddAround(id, Join(*ways, id)), taken}};
      }
      case Kind::kCapture:
        return ReadCapture(id, taken);
      case Kind::kReference: {
        const auto text = taken.find(node.b);
        return Ways{{AddText(text == taken.end() ? U"" : text->second, node.negative, id), taken}};
      }
      default:
        return Ways{{id, taken}};
    }
  }

  std::optional<Ways> ReadConcat(uint32_t id, const Taken& taken) {
    struct Begun {
      std::vector<uint32_t> parts;
      Taken taken;
    };
    std::vector<Begun> begun{{{}, taken}};
    for (const uint32_t child : ListOf(id)) {
      std::vector<Begun> next;
      for (const Begun& before : begun) {
        const auto ways = Read(child, before.taken);
        if (!ways) return std::nullopt;
        for (const Way& way : *ways) {
          next.push_back({before.parts, way.taken});
          next.back().parts.push_back(way.node);
        }
        if (next.size() > kMaxWays || !CheckSize({}, child)) {
          return Fail("back references with too many combinations of texts are not supported",
                      child);
        }
      }
      begun = std::move(next);
    }
    Ways out;
    for (Begun& way : begun)
      out.push_back({AddList(Kind::kConcat, way.parts, id), std::move(way.taken)});
    return Joined(std::move(out), id);
  }

  // Paths on which the same was taken are one.
  Ways Joined(Ways ways, uint32_t at) {
    std::map<Taken, Ways> by_taken;
    for (Way& way : ways) by_taken[way.taken].push_back(way);
    Ways out;
    for (const auto& [taken, same] : by_taken) out.push_back({Join(same, at), taken});
    return out;
  }

  std::optional<Ways> ReadRepeat(uint32_t id, const Taken& taken) {
    const EcmaNode node = tree_.nodes[id];
    Taken before = taken;
    for (const uint32_t group : inner_[id].groups) before.erase(group);
    const auto ways = Read(node.a, before);
    if (!ways) return std::nullopt;
    const uint32_t any = Join(*ways, id);
    if (!IsReferredToFromOutside(id)) return Ways{{AddAround(id, any), taken}};
    // The last round decides what was taken. A round without text does not count, once there were
    // enough; so it would have to be known which rounds have text.
    if (node.max > 1 && MayBeEmpty(any)) {
      return Fail("back references to a group in a loop that may take nothing are not supported",
                  id);
    }
    Ways out;
    if (node.min == 0) out.push_back({AddList(Kind::kConcat, {}, id), taken});
    for (const Way& way : *ways) {
      if (node.max == 0) break;
      EcmaNode earlier = node;
      earlier.a = any;
      earlier.min = node.min == 0 ? 0 : node.min - 1;
      if (node.max != kEcmaInfinite) earlier.max = node.max - 1;
      out.push_back({AddList(Kind::kConcat, {tree_.Add(earlier), way.node}, id), way.taken});
    }
    return Joined(std::move(out), id);
  }

  bool MayBeEmpty(uint32_t id) const {
    const EcmaNode& node = tree_.nodes[id];
    const auto may = [&](uint32_t child) { return MayBeEmpty(child); };
    switch (node.kind) {
      case Kind::kChar:
      case Kind::kSet:
        return false;
      case Kind::kConcat:
        return std::ranges::all_of(tree_.children(node), may);
      case Kind::kAlternation:
        return std::ranges::any_of(tree_.children(node), may);
      case Kind::kRepeat:
        return node.min == 0 || may(node.a);
      default:
        return true;
    }
  }

  std::optional<Ways> ReadCapture(uint32_t id, const Taken& taken) {
    const EcmaNode node = tree_.nodes[id];
    const auto ways = Read(node.a, taken);
    if (!ways || !references_to_.contains(node.b)) return ways;
    Ways out;
    for (const Way& way : *ways) {
      const auto texts = TextsOf(way.node);
      if (!texts) {
        return Fail("back references are supported to groups that take one of at most " +
                        std::to_string(kMaxTexts) + " texts, without assertions inside",
                    id);
      }
      for (const std::u32string& text : *texts) {
        out.push_back({AddText(text, false, id), way.taken});
        out.back().taken[node.b] = text;
      }
      if (!CheckSize(out, id)) return std::nullopt;
    }
    return Joined(std::move(out), id);
  }

  // All texts of the node, where they are few.
  using Texts = std::set<std::u32string>;
  std::optional<Texts> TextsOf(uint32_t id) const {
    const EcmaNode& node = tree_.nodes[id];
    switch (node.kind) {
      case Kind::kEmpty:
        return Texts{U""};
      case Kind::kChar:
        return Texts{std::u32string(1, node.a)};
      case Kind::kSet: {
        if (tree_.sets[node.a].size() > kMaxTexts) return std::nullopt;
        Texts out;
        for (const CodepointRange& range : tree_.sets[node.a].ranges()) {
          for (char32_t c = range.lo; c <= range.hi; ++c) out.insert(std::u32string(1, c));
        }
        return out;
      }
      case Kind::kConcat: {
        Texts out{U""};
        for (const uint32_t child : tree_.children(node)) {
          const auto more = TextsOf(child);
          if (!more || !Append(out, *more)) return std::nullopt;
        }
        return out;
      }
      case Kind::kAlternation: {
        Texts out;
        for (const uint32_t child : tree_.children(node)) {
          const auto more = TextsOf(child);
          if (!more) return std::nullopt;
          out.insert(more->begin(), more->end());
          if (out.size() > kMaxTexts) return std::nullopt;
        }
        return out;
      }
      case Kind::kRepeat: {
        const auto once = TextsOf(node.a);
        if (!once || node.max > kMaxTexts) return std::nullopt;
        Texts power{U""}, out;
        for (uint32_t i = 0; i <= node.max; ++i) {
          if (i > 0 && !Append(power, *once)) return std::nullopt;
          if (i >= node.min) out.insert(power.begin(), power.end());
          if (out.size() > kMaxTexts) return std::nullopt;
        }
        return out;
      }
      default:
        return std::nullopt;
    }
  }
  static bool Append(Texts& texts, const Texts& more) {
    if (texts.size() * more.size() > kMaxTexts) return false;
    Texts out;
    for (const std::u32string& a : texts) {
      for (const std::u32string& b : more) out.insert(a + b);
    }
    texts = std::move(out);
    return true;
  }

  EcmaTree& tree_;
  std::vector<Inner> inner_;  // of the nodes that were there at the beginning
  std::map<uint32_t, size_t> references_to_;
  std::optional<Error> error_;
};

}  // namespace

Status ResolveReferences(EcmaTree& tree) { return References(tree).Resolve(); }

}  // namespace pawl
