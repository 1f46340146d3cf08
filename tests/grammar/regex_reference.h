// The slow, obvious regex matcher that the tests compare with: a random pattern as a tree, its ECMA
// spelling, and the set of positions where a match that starts at a position can end.
#ifndef PAWL_TESTS_GRAMMAR_REGEX_REFERENCE_H_
#define PAWL_TESTS_GRAMMAR_REGEX_REFERENCE_H_

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::regex_test {

struct RefNode {
  enum Kind { kEmpty, kSet, kConcat, kOr, kRepeat, kAhead, kBehind, kStart, kEnd, kBoundary };
  Kind kind = kEmpty;
  bool negative = false;  // assertions and sets
  std::string members;    // kSet: characters
  std::string spelling;   // kSet: how it is written
  int min = 0, max = 0;   // kRepeat, max -1: no limit
  std::vector<std::unique_ptr<RefNode>> children;
};

using RefPtr = std::unique_ptr<RefNode>;

inline bool IsWordAt(std::string_view text, size_t i) {
  return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
}

inline std::set<size_t> Ends(const RefNode& node, std::string_view text, size_t from) {
  std::set<size_t> ends;
  switch (node.kind) {
    case RefNode::kEmpty:
      return {from};
    case RefNode::kSet:
      if (from < text.size() &&
          (node.members.find(text[from]) != std::string::npos) != node.negative) {
        ends.insert(from + 1);
      }
      return ends;
    case RefNode::kConcat: {
      ends = {from};
      for (const RefPtr& child : node.children) {
        std::set<size_t> next;
        for (const size_t at : ends) next.merge(Ends(*child, text, at));
        ends = next;
      }
      return ends;
    }
    case RefNode::kOr:
      for (const RefPtr& child : node.children) ends.merge(Ends(*child, text, from));
      return ends;
    case RefNode::kRepeat: {
      std::set<size_t> at{from};
      if (node.min == 0) ends = at;
      // With no limit, more iterations than characters and min add nothing new.
      const int last = node.max >= 0 ? node.max : node.min + static_cast<int>(text.size()) + 1;
      for (int i = 1; i <= last; ++i) {
        std::set<size_t> next;
        for (const size_t a : at) next.merge(Ends(*node.children[0], text, a));
        at = next;
        if (i >= node.min) ends.insert(at.begin(), at.end());
      }
      return ends;
    }
    case RefNode::kAhead: {
      const bool found = !Ends(*node.children[0], text, from).empty();
      if (found != node.negative) ends.insert(from);
      return ends;
    }
    case RefNode::kBehind: {
      bool found = false;
      for (size_t start = 0; start <= from; ++start) {
        found = found || Ends(*node.children[0], text, start).count(from) != 0;
      }
      if (found != node.negative) ends.insert(from);
      return ends;
    }
    case RefNode::kStart:
      if (from == 0) ends.insert(from);
      return ends;
    case RefNode::kEnd:
      if (from == text.size()) ends.insert(from);
      return ends;
    case RefNode::kBoundary: {
      const bool boundary = (from > 0 && IsWordAt(text, from - 1)) != IsWordAt(text, from);
      if (boundary != node.negative) ends.insert(from);
      return ends;
    }
  }
  return ends;
}

inline bool RefFinds(const RefNode& node, std::string_view text) {
  for (size_t from = 0; from <= text.size(); ++from) {
    if (!Ends(node, text, from).empty()) return true;
  }
  return false;
}

inline bool RefTakesWhole(const RefNode& node, std::string_view text) {
  return Ends(node, text, 0).count(text.size()) != 0;
}

inline std::string Spell(const RefNode& node) {
  const auto child = [&](size_t i) { return Spell(*node.children[i]); };
  switch (node.kind) {
    case RefNode::kEmpty:
      return "(?:)";
    case RefNode::kSet:
      return node.spelling;
    case RefNode::kConcat: {
      std::string out;
      for (size_t i = 0; i < node.children.size(); ++i) out += child(i);
      return out;
    }
    case RefNode::kOr: {
      std::string out = "(";
      for (size_t i = 0; i < node.children.size(); ++i) out += (i > 0 ? "|" : "") + child(i);
      return out + ")";
    }
    case RefNode::kRepeat: {
      std::string out = "(?:" + child(0) + ")";
      if (node.min == 0 && node.max == -1) return out + "*";
      if (node.min == 1 && node.max == -1) return out + "+";
      if (node.min == 0 && node.max == 1) return out + "?";
      out += "{" + std::to_string(node.min);
      if (node.max != node.min) out += "," + (node.max < 0 ? "" : std::to_string(node.max));
      return out + "}";
    }
    case RefNode::kAhead:
      return (node.negative ? "(?!" : "(?=") + child(0) + ")";
    case RefNode::kBehind:
      return (node.negative ? "(?<!" : "(?<=") + child(0) + ")";
    case RefNode::kStart:
      return "^";
    case RefNode::kEnd:
      return "$";
    case RefNode::kBoundary:
      return node.negative ? "\\B" : "\\b";
  }
  return "";
}

struct RefOptions {
  bool look_ahead = false;
  bool look_behind = false;
  bool anchors = true;
  bool boundaries = false;
};

// Random patterns over the characters of kAlphabet.
class RefGenerator {
 public:
  static constexpr std::string_view kAlphabet = "abc-1 ";

  explicit RefGenerator(uint32_t seed) : random_(seed) {}

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  RefPtr Pattern(int size, const RefOptions& options) {
    auto node = std::make_unique<RefNode>();
    if (size <= 1) return Leaf(options);
    switch (Below(options.look_ahead || options.look_behind ? 12 : 10)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        node->kind = RefNode::kConcat;
        const int parts = 2 + Below(3);
        for (int i = 0; i < parts; ++i) node->children.push_back(Pattern(size / parts, options));
        return node;
      }
      case 4:
      case 5:
      case 6: {
        node->kind = RefNode::kOr;
        const int parts = 2 + Below(2);
        for (int i = 0; i < parts; ++i) node->children.push_back(Pattern(size / parts, options));
        return node;
      }
      case 7:
      case 8:
      case 9: {
        node->kind = RefNode::kRepeat;
        static constexpr int kCounts[][2] = {{0, -1}, {1, -1}, {0, 1}, {2, 2}, {1, 3},
                                             {0, 2},  {2, -1}, {3, 5}, {0, 0}, {2, 6}};
        const auto& counts = kCounts[Below(10)];
        node->min = counts[0];
        node->max = counts[1];
        node->children.push_back(Pattern(size - 1, options));
        return node;
      }
      default: {
        const bool behind = options.look_behind && (!options.look_ahead || Below(2) == 0);
        node->kind = behind ? RefNode::kBehind : RefNode::kAhead;
        node->negative = Below(2) == 0;
        RefOptions inner = options;
        if (behind) {
          inner.look_ahead = false;
          inner.boundaries = false;
          inner.anchors = false;
        }
        node->children.push_back(Pattern(size / 2, inner));
        return node;
      }
    }
  }

  std::string Text(int max_length) {
    std::string out;
    for (int i = Below(max_length + 1); i > 0; --i) {
      out += kAlphabet[static_cast<size_t>(Below(Below(2) == 0 ? 2 : 6))];
    }
    return out;
  }

 private:
  RefPtr Leaf(const RefOptions& options) {
    auto node = std::make_unique<RefNode>();
    const int choice = Below(20);
    if (choice < 3 && options.anchors) {
      node->kind = choice == 0 ? RefNode::kStart : choice == 1 ? RefNode::kEnd : RefNode::kEmpty;
      return node;
    }
    if (choice < 6 && options.boundaries) {
      node->kind = RefNode::kBoundary;
      node->negative = choice == 3;
      return node;
    }
    node->kind = RefNode::kSet;
    struct Leaf {
      const char* members;
      const char* spelling;
      bool negative;
    };
    static constexpr Leaf kLeaves[] = {
        {"a", "a", false},      {"a", "a", false},       {"b", "b", false},
        {"b", "b", false},      {"c", "c", false},       {"-", "-", false},
        {"ab", "[ab]", false},  {"abc", "[a-c]", false}, {"a", "[^a]", true},
        {"abc1", "\\w", false}, {"1", "\\d", false},     {" ", "\\s", false},
        {"abc1", "\\W", true},  {"", ".", true},         {"b-", "[^b-]", true},
    };
    const Leaf& leaf = kLeaves[Below(15)];
    node->members = leaf.members;
    node->spelling = leaf.spelling;
    node->negative = leaf.negative;
    return node;
  }

  std::mt19937 random_;
};

}  // namespace pawl::regex_test

#endif  // PAWL_TESTS_GRAMMAR_REGEX_REFERENCE_H_
