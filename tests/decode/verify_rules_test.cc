// The rules of src/decode/draft/verify/rules.h give texts the law of the model: every draft, every
// tree and every decision is enumerated, in exact fractions. PAWL_VERIFY_CASES sets how many random
// pairs of models each rule has.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "src/decode/draft/verify/rules.h"

namespace pawl::verify {
namespace {

constexpr int kTokensOfCase = 3, kLevels = 2;
using Wide = unsigned __int128;

Wide GreatestDivisor(Wide a, Wide b) {
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

Wide Product(Wide a, Wide b) {
  Wide out = 0;
  if (__builtin_mul_overflow(a, b, &out)) ADD_FAILURE() << "a fraction is too long";
  return out;
}

// At least 0; reduced.
struct Fraction {
  Fraction() = default;
  Fraction(int value) : over(static_cast<Wide>(value)) {}
  Fraction(Wide a, Wide b) {
    const Wide common = a == 0 ? b : GreatestDivisor(a, b);
    over = a / common;
    under = b / common;
  }
  Wide over = 0, under = 1;
  double ToDouble() const { return static_cast<double>(over) / static_cast<double>(under); }
};
Fraction operator*(const Fraction& a, const Fraction& b) {
  const Fraction x(a.over, b.under), y(b.over, a.under);
  return {Product(x.over, y.over), Product(x.under, y.under)};
}
Fraction operator/(const Fraction& a, const Fraction& b) {
  EXPECT_TRUE(b.over != 0);
  return a * Fraction(b.under, b.over);
}
Fraction operator+(const Fraction& a, const Fraction& b) {
  const Wide common = GreatestDivisor(a.under, b.under);
  return {Product(a.over, b.under / common) + Product(b.over, a.under / common),
          Product(a.under, b.under / common)};
}
Fraction operator-(const Fraction& a, const Fraction& b) {
  const Wide common = GreatestDivisor(a.under, b.under);
  const Wide left = Product(a.over, b.under / common), right = Product(b.over, a.under / common);
  EXPECT_TRUE(left >= right) << "below 0";
  return {left - right, Product(a.under, b.under / common)};
}
bool operator<(const Fraction& a, const Fraction& b) {
  const Wide common = GreatestDivisor(a.under, b.under);
  return Product(a.over, b.under / common) < Product(b.over, a.under / common);
}
bool operator>(const Fraction& a, const Fraction& b) { return b < a; }

// A sum of very many fractions: by denominator, and compared as one number in the end.
class LongSum {
 public:
  void Add(const Fraction& value) {
    if (value.over != 0) parts_[value.under] += value.over;
  }
  bool Equals(const Fraction& wanted) const {
    // sum over / under - wanted, times the product of all denominators; digits of 32 bits.
    std::vector<uint32_t> left, right = Digits(wanted.over), all = Digits(wanted.under);
    for (const auto& [under, over] : parts_) {
      left = Plus(Times(left, Digits(under)), Times(Digits(over), Before(under)));
    }
    for (const auto& [under, over] : parts_) right = Times(right, Digits(under));
    left = Times(left, all);
    return Trim(left) == Trim(right);
  }

 private:
  using Number = std::vector<uint32_t>;
  // The product of the denominators before that one.
  Number Before(Wide under) const {
    Number out = {1};
    for (const auto& [other, over] : parts_) {
      if (other == under) break;
      out = Times(out, Digits(other));
    }
    return out;
  }
  static Number Digits(Wide value) {
    Number out;
    for (; value != 0; value >>= 32) out.push_back(static_cast<uint32_t>(value));
    return out;
  }
  static Number Trim(Number n) {
    while (!n.empty() && n.back() == 0) n.pop_back();
    return n;
  }
  static Number Plus(const Number& a, const Number& b) {
    Number out;
    uint64_t carry = 0;
    for (size_t i = 0; i < std::max(a.size(), b.size()) || carry != 0; ++i) {
      carry += (i < a.size() ? uint64_t{a[i]} : 0) + (i < b.size() ? uint64_t{b[i]} : 0);
      out.push_back(static_cast<uint32_t>(carry));
      carry >>= 32;
    }
    return out;
  }
  static Number Times(const Number& a, const Number& b) {
    Number out(a.size() + b.size() + 1, 0);
    for (size_t i = 0; i < a.size(); ++i) {
      uint64_t carry = 0;
      for (size_t j = 0; j < b.size() || carry != 0; ++j) {
        carry += out[i + j] + (j < b.size() ? uint64_t{a[i]} * b[j] : 0);
        out[i + j] = static_cast<uint32_t>(carry);
        carry >>= 32;
      }
    }
    return Trim(out);
  }
  std::map<Wide, Wide> parts_;
};

// A model: laws by the tokens before, made when they are asked for.
class ToyLaws {
 public:
  ToyLaws(uint64_t seed, bool zeros) : random_(seed), zeros_(zeros) {}
  const Law<Fraction>& At(const std::vector<int>& text) {
    const auto [found, fresh] = laws_.try_emplace(text);
    if (!fresh) return found->second;
    std::array<int, kTokensOfCase> weights = {};
    int sum = 0;
    for (int& weight : weights) sum += weight = static_cast<int>(random_() % 5) + (zeros_ ? 0 : 1);
    if (sum == 0) sum = weights[0] = 1;
    for (const int weight : weights) {
      found->second.emplace_back(static_cast<Wide>(weight), static_cast<Wide>(sum));
    }
    return found->second;
  }

 private:
  std::mt19937_64 random_;
  const bool zeros_;
  std::map<std::vector<int>, Law<Fraction>> laws_;
};

struct DrawnTree {
  std::vector<Node<Fraction>> nodes;
  std::vector<std::vector<int>> texts;  // by node
  Fraction chance = 1;
};

// All trees of that many levels whose nodes have so many children each; siblings drawn without
// replacement or independently.
class AllTrees {
 public:
  AllTrees(ToyLaws& target, ToyLaws& draft, int children, bool replace,
           const std::function<void(const DrawnTree&)>& see)
      : target_(target), draft_(draft), children_(children), replace_(replace), see_(see) {}
  void Run() {
    DrawnTree tree;
    Push(tree, -1, {});
    Grow(tree, 0);
  }

 private:
  int Push(DrawnTree& tree, int token, std::vector<int> text) {
    Node<Fraction> node;
    node.token = token;
    node.target = target_.At(text);
    node.draft = draft_.At(text);
    tree.nodes.push_back(std::move(node));
    tree.texts.push_back(std::move(text));
    return static_cast<int>(tree.nodes.size()) - 1;
  }
  // The children of node `at` and of those behind it.
  void Grow(const DrawnTree& tree, size_t at) {
    if (at == tree.nodes.size()) return see_(tree);
    if (static_cast<int>(tree.texts[at].size()) == kLevels) return Grow(tree, at + 1);
    Draw(tree, at, tree.nodes[at].draft, children_);
  }
  void Draw(const DrawnTree& tree, size_t at, const Law<Fraction>& left, int more) {
    const Fraction sum = Sum(left);
    if (more == 0 || !(sum > Fraction(0))) return Grow(tree, at + 1);
    for (int token = 0; token < kTokensOfCase; ++token) {
      const Fraction& mass = left[static_cast<size_t>(token)];
      if (!(mass > Fraction(0))) continue;
      DrawnTree next = tree;
      std::vector<int> text = next.texts[at];
      text.push_back(token);
      const int child = Push(next, token, std::move(text));
      next.nodes[at].children.push_back(child);
      next.chance = next.chance * (mass / sum);
      Law<Fraction> rest = left;
      if (!replace_) rest[static_cast<size_t>(token)] = 0;
      Draw(next, at, rest, more - 1);
    }
  }

  ToyLaws& target_;
  ToyLaws& draft_;
  const int children_;
  const bool replace_;
  const std::function<void(const DrawnTree&)>& see_;
};

// Runs the rule once for each row of decisions.
class Decisions {
 public:
  bool operator()(const Fraction& chance) {
    if (at_ == taken_.size()) taken_.push_back(true);
    const bool accepted = taken_[at_++];
    weight = weight * (accepted ? chance : Fraction(1) - chance);
    return accepted;
  }
  void Begin() {
    at_ = 0;
    weight = 1;
  }
  // The next row; false after the last one.
  bool Next() {
    while (!taken_.empty() && !taken_.back()) taken_.pop_back();
    if (taken_.empty()) return false;
    taken_.back() = false;
    return true;
  }
  Fraction weight = 1;

 private:
  std::vector<bool> taken_;
  size_t at_ = 0;
};

using Rule = std::function<Outcome<Fraction>(std::span<const Node<Fraction>>, Decisions&)>;
struct RuleOfTest {
  const char* name;
  int children;
  bool replace;
  Rule rule;
};

// A rational scale just at or above the root.
Fraction ScaleOf(const Node<Fraction>& node) {
  Law<double> p, q;
  for (const Fraction& mass : node.target) p.push_back(mass.ToDouble());
  for (const Fraction& mass : node.draft) q.push_back(mass.ToDouble());
  const double root = SpectrRoot(p, q, static_cast<int>(node.children.size()));
  return {static_cast<Wide>(std::ceil(root * 16 + 1e-9)), 16};
}

std::vector<RuleOfTest> Rules() {
  using Tree = std::span<const Node<Fraction>>;
  return {
      {"token", 1, false, [](Tree t, Decisions& d) { return Token<Fraction>(t, d); }},
      {"block", 1, false, [](Tree t, Decisions& d) { return Block<Fraction>(t, d); }},
      {"rsd", 2, false, [](Tree t, Decisions& d) { return Recursive<Fraction>(t, d); }},
      {"spectr", 2, true,
       [](Tree t, Decisions& d) {
         return Spectr<Fraction>(t, d,
                                 [&](int node) { return ScaleOf(t[static_cast<size_t>(node)]); });
       }},
      {"traversal", 2, false, [](Tree t, Decisions& d) { return TraverseTree<Fraction>(t, d); }}};
}

// The law of the first tokens, and the mean of drafts that were taken.
double Enumerate(const RuleOfTest& rule, ToyLaws& target, ToyLaws& draft,
                 std::map<std::vector<int>, LongSum>& law) {
  double taken = 0;
  const std::function<void(const DrawnTree&)> see = [&](const DrawnTree& tree) {
    Decisions decisions;
    do {
      decisions.Begin();
      const Outcome<Fraction> out = rule.rule(tree.nodes, decisions);
      const Fraction weight = tree.chance * decisions.weight;
      if (!(weight > Fraction(0))) continue;
      taken += weight.ToDouble() * static_cast<double>(out.taken.size());
      std::vector<int> text = out.taken.empty() ? std::vector<int>()
                                                : tree.texts[static_cast<size_t>(out.taken.back())];
      // What is missing to the full length comes from the model.
      const std::function<void(Fraction, const Law<Fraction>&)> extend =
          [&](const Fraction& reached, const Law<Fraction>& next) {
            for (int token = 0; token < kTokensOfCase; ++token) {
              const Fraction mass = reached * next[static_cast<size_t>(token)];
              if (!(mass > Fraction(0))) continue;
              text.push_back(token);
              if (static_cast<int>(text.size()) == kLevels + 1) {
                law[text].Add(mass);
              } else {
                extend(mass, target.At(text));
              }
              text.pop_back();
            }
          };
      extend(weight, out.rest);
    } while (decisions.Next());
  };
  AllTrees(target, draft, rule.children, rule.replace, see).Run();
  return taken;
}

TEST(VerifyTest, EveryRuleKeepsTheLawOfTheModel) {
  const char* const given = std::getenv("PAWL_VERIFY_CASES");
  const int cases = given == nullptr ? 12 : std::max(1, std::atoi(given));
  std::map<std::string, double> taken;
  for (const RuleOfTest& rule : Rules()) {
    for (int n = 0; n < cases; ++n) {
      ToyLaws target(static_cast<uint64_t>(2 * n), n % 2 == 0);
      ToyLaws draft(static_cast<uint64_t>(2 * n + 1), n % 3 == 0);
      std::map<std::vector<int>, LongSum> law;
      taken[rule.name] += Enumerate(rule, target, draft, law);
      for (int a = 0; a < kTokensOfCase; ++a) {
        for (int b = 0; b < kTokensOfCase; ++b) {
          for (int c = 0; c < kTokensOfCase; ++c) {
            const Fraction wanted = target.At({})[static_cast<size_t>(a)] *
                                    target.At({a})[static_cast<size_t>(b)] *
                                    target.At({a, b})[static_cast<size_t>(c)];
            ASSERT_TRUE(law[{a}].Equals(Fraction(0)));
            ASSERT_TRUE((law[{a, b, c}].Equals(wanted)))
                << rule.name << ", case " << n << ": " << a << b << c;
          }
        }
      }
    }
  }
  EXPECT_GE(taken["block"], taken["token"]);
  EXPECT_GE(taken["traversal"], taken["rsd"]);
  for (const auto& [name, sum] : taken) RecordProperty(name, std::to_string(sum / cases));
}

// At the root SpecTr accepts r * beta(r), which is its closed form.
TEST(VerifyTest, SpectrAcceptsItsClosedFormAtTheRoot) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0.01, 1);
  for (int n = 0; n < 1000; ++n) {
    Law<double> p(5), q(5);
    for (double& mass : p) mass = uniform(random);
    for (double& mass : q) mass = uniform(random);
    ASSERT_TRUE(Normalise(p) && Normalise(q));
    const int k = 1 + n % 4;
    const double r = SpectrRoot(p, q, k), beta = SpectrBeta(p, q, r);
    const double accepted = 1 - Power(1 - beta, k);
    if (r > 1) {
      EXPECT_NEAR(accepted, r * beta, 1e-9);
    }
    for (size_t v = 0; v < p.size(); ++v) {
      EXPECT_GE(p[v] - std::min(q[v], p[v] / r) * accepted / beta, -1e-12);
    }
  }
}

}  // namespace
}  // namespace pawl::verify
