// Random grammars as trees of their own, with a printer for EBNF and GBNF and a recogniser that
// knows nothing of GrammarIr: the reference for the readers.
#ifndef PAWL_TESTS_GRAMMAR_BNF_RANDOM_H_
#define PAWL_TESTS_GRAMMAR_BNF_RANDOM_H_

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl {

struct BnfTree {
  enum class Kind { kString, kClass, kRule, kSequence, kChoice, kRepeat };
  Kind kind = Kind::kString;
  std::string text;  // kString; kClass: its members
  bool negated = false;
  size_t rule = 0;
  int min = 0, max = 0;  // max < 0: no limit
  std::vector<BnfTree> children;
};

class RandomBnf {
 public:
  RandomBnf(uint64_t seed, bool gbnf) : random_(seed), gbnf_(gbnf) {
    const size_t count = 1 + Pick(4);
    rules_.resize(count);
    for (BnfTree& rule : rules_) rule = Make(3);
  }

  std::string Print() {
    std::string out;
    for (size_t i = 0; i < rules_.size(); ++i) {
      if (Pick(4) == 0) out += "# a remark ::= \"a\"\n";
      out += Name(i) + " ::= " + PrintNode(rules_[i], 0, false) + (Pick(3) == 0 ? " # x\n" : "\n");
    }
    return out;
  }

  // Which places the root's text may end in, that begins at 0, includes the end.
  bool Accepts(std::string_view text) {
    text_ = text;
    ends_.assign(rules_.size(), std::vector<std::set<size_t>>(text.size() + 1));
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t rule = 0; rule < rules_.size(); ++rule) {
        for (size_t at = 0; at <= text.size(); ++at) {
          const std::set<size_t> now = Ends(rules_[rule], at);
          changed |= now != ends_[rule][at];
          ends_[rule][at] = now;
        }
      }
    }
    return ends_[0][0].contains(text.size());
  }

 private:
  size_t Pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  std::string Letters(size_t least, size_t most) {
    std::string out;
    for (size_t i = least + Pick(most - least + 1); i > 0; --i)
      out += static_cast<char>('a' + Pick(3));
    return out;
  }
  static std::string Name(size_t rule) {
    return rule == 0 ? "root" : "r-" + std::string(1, static_cast<char>('a' + rule));
  }

  BnfTree Make(int depth) {
    BnfTree node;
    const size_t kind = Pick(depth == 0 ? 5 : 9);
    if (kind <= 1) {
      node.text = Letters(0, 2);
    } else if (kind == 2) {
      node.kind = BnfTree::Kind::kClass;
      node.text = Letters(1, 2);
      node.negated = Pick(3) == 0;
    } else if (kind <= 4) {
      node.kind = BnfTree::Kind::kRule;
      node.rule = Pick(rules_.size());
    } else if (kind <= 7) {
      node.kind = kind == 7 ? BnfTree::Kind::kChoice : BnfTree::Kind::kSequence;
      for (size_t i = 2 + Pick(2); i > 0; --i) node.children.push_back(Make(depth - 1));
    } else {
      node.kind = BnfTree::Kind::kRepeat;
      node.min = static_cast<int>(Pick(3));
      node.max = Pick(2) == 0 ? -1 : node.min + static_cast<int>(Pick(3));
      node.children.push_back(Make(depth - 1));
    }
    return node;
  }

  std::string Space(bool nested) {
    const size_t kind = Pick(6);
    if (kind == 0) return "  ";
    if (kind == 1) return "\t";
    if (kind == 2 && (nested || !gbnf_)) return " # remark (\n  ";
    return " ";
  }

  // level 0: a choice may stand here, 1: a sequence, 2: an operand of a quantifier.
  std::string PrintNode(const BnfTree& node, int level, bool nested) {
    std::string out;
    const int own = node.kind == BnfTree::Kind::kChoice     ? 0
                    : node.kind == BnfTree::Kind::kSequence ? 1
                    : node.kind == BnfTree::Kind::kRepeat   ? 2
                                                            : 3;
    // A repeated repeat needs parentheses, and so do the operands of a choice's sequence.
    if (own < level || (own == 2 && level == 3) || Pick(8) == 0) {
      return "(" + Space(true) + PrintNode(node, 0, true) + Space(true) + ")";
    }
    switch (node.kind) {
      case BnfTree::Kind::kString:
        out = "\"";
        for (const char c : node.text) out += Character(c);
        return out + "\"";
      case BnfTree::Kind::kClass:
        out = node.negated ? "[^" : "[";
        for (const char c : node.text) {
          out += Character(c);
          if (Pick(4) == 0) out += "-" + Character(c);
        }
        return out + "]";
      case BnfTree::Kind::kRule:
        return Name(node.rule);
      case BnfTree::Kind::kSequence:
        for (const BnfTree& child : node.children) {
          if (!out.empty()) out += Space(nested);
          out += PrintNode(child, 2, nested);
        }
        return out;
      case BnfTree::Kind::kChoice:
        for (const BnfTree& child : node.children) {
          if (!out.empty()) out += Space(nested) + "|" + (Pick(4) == 0 ? "\n  " : " ");
          out += PrintNode(child, 1, nested);
        }
        return out;
      case BnfTree::Kind::kRepeat:
        out = PrintNode(node.children[0], 3, nested);
        if (node.min == 0 && node.max == 1) return out + "?";
        if (node.min == 0 && node.max < 0) return out + "*";
        if (node.min == 1 && node.max < 0) return out + "+";
        out += "{" + std::to_string(node.min);
        if (node.max != node.min) out += "," + (node.max < 0 ? "" : std::to_string(node.max));
        return out + "}";
    }
    return out;
  }

  std::string Character(char c) {
    const char digit = static_cast<char>('0' + (c - '`'));  // 'a' is 0x61
    switch (Pick(6)) {
      case 0:
        // In EBNF \x takes every hexadecimal digit that follows.
        return gbnf_ ? std::string("\\x6") + digit : std::string(1, c);
      case 1:
        return std::string("\\u006") + digit;
      case 2:
        return std::string("\\U0000006") + digit;
      default:
        return std::string(1, c);
    }
  }

  std::set<size_t> Ends(const BnfTree& node, size_t at) {
    std::set<size_t> out;
    switch (node.kind) {
      case BnfTree::Kind::kString:
        if (text_.substr(at, node.text.size()) == node.text) out.insert(at + node.text.size());
        break;
      case BnfTree::Kind::kClass:
        if (at < text_.size() && (node.text.find(text_[at]) == std::string::npos) == node.negated)
          out.insert(at + 1);
        break;
      case BnfTree::Kind::kRule:
        return ends_[node.rule][at];
      case BnfTree::Kind::kSequence:
        out = {at};
        for (const BnfTree& child : node.children) out = Step(child, out);
        break;
      case BnfTree::Kind::kChoice:
        for (const BnfTree& child : node.children) out.merge(Ends(child, at));
        break;
      case BnfTree::Kind::kRepeat: {
        std::set<size_t> here = {at};
        const int rounds = node.max < 0 ? node.min + static_cast<int>(text_.size()) + 1 : node.max;
        for (int round = 0; round <= rounds; ++round) {
          if (round >= node.min) out.insert(here.begin(), here.end());
          here = Step(node.children[0], here);
        }
        break;
      }
    }
    return out;
  }
  std::set<size_t> Step(const BnfTree& node, const std::set<size_t>& from) {
    std::set<size_t> out;
    for (const size_t at : from) out.merge(Ends(node, at));
    return out;
  }

  std::mt19937_64 random_;
  bool gbnf_;
  std::vector<BnfTree> rules_;
  std::string_view text_;
  std::vector<std::vector<std::set<size_t>>> ends_;
};

// Every text over a, b, c up to a length.
inline std::vector<std::string> TextsUpTo(size_t length) {
  std::vector<std::string> out = {""};
  for (size_t i = 0; i < out.size() && out[i].size() < length; ++i) {
    for (const char c : {'a', 'b', 'c'}) out.push_back(out[i] + c);
  }
  return out;
}

}  // namespace pawl

#endif  // PAWL_TESTS_GRAMMAR_BNF_RANDOM_H_
