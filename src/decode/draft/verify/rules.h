// Rules that decide which drafts of a tree are taken where the drafts were drawn from laws of their
// own. The text that comes has the law of the model, whatever the laws of the drafts.
//
// Pawl's default, "coupled", needs none of this: a token is a function of the logits and the seed,
// and a draft is a guess of it (verifier.cc). The rules here are those of the literature:
//   token      Leviathan et al., arXiv 2211.17192: a chain, draft by draft
//   block      Sun et al., arXiv 2403.10444: a chain as a whole; takes at least as many
//   rsd        Jeon et al., arXiv 2402.14160: a tree whose siblings are drawn without replacement
//   spectr     Sun et al., arXiv 2310.15141: independent siblings, k-sequential selection
//   traversal  Weng et al., arXiv 2505.12398: a tree, from the leaves to the root
//
//   std::vector<verify::Node<double>> tree = ...;
//   auto out = verify::Block<double>(tree, [&](double p) { return random.Uniform() < p; });
//   // the drafts out.taken come, then one token that is drawn from out.rest
//
// Everything is a template over the number type, so tests run these lines in exact fractions, over
// every draft and every decision. A Number has + - * / and comparisons, and is made from 0 and 1.
// `accept(p)` decides with probability p; it is asked only where p is above 0 and below 1. What
// calls them is tree_rule.h.
#ifndef PAWL_SRC_DECODE_DRAFT_VERIFY_RULES_H_
#define PAWL_SRC_DECODE_DRAFT_VERIFY_RULES_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace pawl::verify {

// Masses by token.
template <typename Number>
using Law = std::vector<Number>;

// A node of a tree of drafts. Node 0 is the root: the text that there is.
template <typename Number>
struct Node {
  int token = -1;
  std::vector<int> children;  // in the order in which they were drawn
  Law<Number> target;         // of the model, behind the node
  // From which the children were drawn. A child without mass there is a guess of its own: as if
  // drawn from a law that is sure of it. May be empty without children.
  Law<Number> draft;
};

template <typename Number>
struct Outcome {
  std::vector<int> taken;  // nodes, from the first behind the root on
  Law<Number> rest;        // the law of the token behind them
};

template <typename Number>
Number Sum(const Law<Number>& law) {
  Number sum(0);
  for (const Number& mass : law) sum = sum + mass;
  return sum;
}

// In proportion, with the sum 1; false where there is nothing.
template <typename Number>
bool Normalise(Law<Number>& law) {
  const Number sum = Sum(law);
  if (!(sum > Number(0))) return false;
  for (Number& mass : law) mass = mass / sum;
  return true;
}

// The parts of scale * p above q.
template <typename Number>
Law<Number> Above(const Law<Number>& p, const Law<Number>& q, const Number& scale = Number(1)) {
  Law<Number> out(p.size(), Number(0));
  for (size_t v = 0; v < p.size(); ++v) {
    const Number mass = scale * p[v];
    if (mass > q[v]) out[v] = mass - q[v];
  }
  return out;
}

// The law that the child with this token was drawn from.
template <typename Number>
void SureOfGuess(size_t token, Law<Number>& draft) {
  if (draft[token] > Number(0)) return;
  std::fill(draft.begin(), draft.end(), Number(0));
  draft[token] = Number(1);
}

template <typename Number>
Number AtMostOne(const Number& value) {
  return value < Number(1) ? value : Number(1);
}

template <typename Number, typename Accept>
bool Decide(const Number& chance, Accept&& accept) {
  if (!(chance > Number(0))) return false;
  return !(chance < Number(1)) || accept(chance);
}

// A chain: each node has at most one child.
template <typename Number, typename Accept>
Outcome<Number> Token(std::span<const Node<Number>> nodes, Accept&& accept) {
  Outcome<Number> out;
  for (size_t at = 0;;) {
    const Node<Number>& node = nodes[at];
    out.rest = node.target;
    if (node.children.empty()) return out;
    const int child = node.children[0];
    const auto token = static_cast<size_t>(nodes[static_cast<size_t>(child)].token);
    if (!Decide(AtMostOne(node.target[token] / node.draft[token]), accept)) {
      out.rest = Above(node.target, node.draft);
      (void)Normalise(out.rest);
      return out;
    }
    out.taken.push_back(child);
    at = static_cast<size_t>(child);
  }
}

// A chain. The longest beginning that is accepted counts, so the decisions are made from its end.
template <typename Number, typename Accept>
Outcome<Number> Block(std::span<const Node<Number>> nodes, Accept&& accept) {
  std::vector<int> chain = {0};
  std::vector<Number> weight = {Number(1)};
  for (;;) {
    const Node<Number>& node = nodes[static_cast<size_t>(chain.back())];
    if (node.children.empty()) break;
    const int child = node.children[0];
    const auto token = static_cast<size_t>(nodes[static_cast<size_t>(child)].token);
    weight.push_back(AtMostOne(weight.back() * node.target[token] / node.draft[token]));
    chain.push_back(child);
  }
  const size_t length = chain.size() - 1;
  for (size_t taken = length;; --taken) {
    const Node<Number>& node = nodes[static_cast<size_t>(chain[taken])];
    Outcome<Number> out;
    out.rest = node.target;
    Number chance = weight[taken];
    if (taken < length) {
      out.rest = Above(node.target, node.draft, weight[taken]);
      const Number above = Sum(out.rest), all = above + Number(1) - weight[taken];
      chance = all > Number(0) ? above / all : Number(1);
    }
    if (taken > 0 && !Decide(chance, accept)) continue;
    if (taken < length && !Normalise(out.rest)) out.rest = node.target;
    out.taken.assign(chain.begin() + 1, chain.begin() + 1 + static_cast<std::ptrdiff_t>(taken));
    return out;
  }
}

// Siblings are drawn without replacement. What a rejected one leaves is the target of the next.
template <typename Number, typename Accept>
Outcome<Number> Recursive(std::span<const Node<Number>> nodes, Accept&& accept) {
  Outcome<Number> out;
  for (size_t at = 0;;) {
    const Node<Number>& node = nodes[at];
    Law<Number> target = node.target, draft = node.draft;
    int taken = -1;
    for (const int child : node.children) {
      const auto token = static_cast<size_t>(nodes[static_cast<size_t>(child)].token);
      SureOfGuess(token, draft);
      if (Decide(AtMostOne(target[token] / draft[token]), accept)) {
        taken = child;
        break;
      }
      target = Above(target, draft);
      (void)Normalise(target);
      draft[token] = Number(0);
      (void)Normalise(draft);
    }
    if (taken < 0) {
      out.rest = std::move(target);
      return out;
    }
    out.taken.push_back(taken);
    at = static_cast<size_t>(taken);
  }
}

// The chance that one of SpecTr's drafts is accepted, at the scale r.
template <typename Number>
Number SpectrBeta(const Law<Number>& target, const Law<Number>& draft, const Number& r) {
  Number beta(0);
  for (size_t v = 0; v < target.size(); ++v) beta = beta + std::min(draft[v], target[v] / r);
  return beta;
}

template <typename Number>
Number Power(Number base, int exponent) {
  Number out(1);
  for (; exponent > 0; --exponent) out = out * base;
  return out;
}

// The least scale at which SpecTr's rule keeps the law of the target, for k drafts.
inline double SpectrRoot(const Law<double>& target, const Law<double>& draft, int k) {
  const auto excess = [&](double r) {
    const double beta = SpectrBeta(target, draft, r);
    return 1 - Power(1 - beta, k) - r * beta;
  };
  double low = 1, high = std::max(1, k);
  if (excess(low) <= 0) return low;
  for (int i = 0; i < 64; ++i) {
    const double middle = (low + high) / 2;
    (excess(middle) > 0 ? low : high) = middle;
  }
  return high;
}

// Independent siblings; equal tokens are siblings of their own. `scale(node)`: at SpectrRoot or
// above it.
template <typename Number, typename Accept, typename Scale>
Outcome<Number> Spectr(std::span<const Node<Number>> nodes, Accept&& accept, Scale&& scale) {
  Outcome<Number> out;
  for (size_t at = 0;;) {
    const Node<Number>& node = nodes[at];
    out.rest = node.target;
    if (node.children.empty()) return out;
    const Number r = scale(static_cast<int>(at));
    int taken = -1;
    for (const int child : node.children) {
      const auto token = static_cast<size_t>(nodes[static_cast<size_t>(child)].token);
      if (!Decide(AtMostOne(node.target[token] / (r * node.draft[token])), accept)) continue;
      taken = child;
      break;
    }
    if (taken < 0) {
      const Number beta = SpectrBeta(node.target, node.draft, r);
      if (beta > Number(0)) {
        const auto k = static_cast<int>(node.children.size());
        const Number share = (Number(1) - Power(Number(1) - beta, k)) / beta;
        for (size_t v = 0; v < out.rest.size(); ++v) {
          const Number mass = out.rest[v] - std::min(node.draft[v], node.target[v] / r) * share;
          out.rest[v] = mass > Number(0) ? mass : Number(0);
        }
        if (!Normalise(out.rest)) out.rest = node.target;
      }
      return out;
    }
    out.taken.push_back(taken);
    at = static_cast<size_t>(taken);
  }
}

// Siblings are drawn without replacement. The tree is walked in depth: a node is offered when all
// of its children are rejected, with the chance that is left of it.
template <typename Number, typename Accept>
class Traversal {
 public:
  Traversal(std::span<const Node<Number>> nodes, Accept& accept) : nodes_(nodes), accept_(accept) {}
  Outcome<Number> Run() {
    Outcome<Number> out;
    // At the root the chance is 1 in the end, so something is taken.
    (void)Walk(0, Number(1), out);
    return out;
  }

 private:
  bool Walk(int at, Number chance, Outcome<Number>& out) {
    const Node<Number>& node = nodes_[static_cast<size_t>(at)];
    Law<Number> target = node.target, draft = node.draft;
    for (const int child : node.children) {
      const auto token = static_cast<size_t>(nodes_[static_cast<size_t>(child)].token);
      SureOfGuess(token, draft);
      out.taken.push_back(child);
      if (Walk(child, AtMostOne(chance * target[token] / draft[token]), out)) return true;
      out.taken.pop_back();
      Law<Number> above = Above(target, draft, chance);
      const Number mass = Sum(above), all = mass + Number(1) - chance;
      chance = all > Number(0) ? mass / all : Number(1);
      target = std::move(above);
      (void)Normalise(target);
      draft[token] = Number(0);
      (void)Normalise(draft);
    }
    if (!Decide(chance, accept_)) return false;
    out.rest = std::move(target);
    return true;
  }

  const std::span<const Node<Number>> nodes_;
  Accept& accept_;
};

template <typename Number, typename Accept>
Outcome<Number> TraverseTree(std::span<const Node<Number>> nodes, Accept&& accept) {
  return Traversal<Number, std::remove_reference_t<Accept>>(nodes, accept).Run();
}

}  // namespace pawl::verify

#endif  // PAWL_SRC_DECODE_DRAFT_VERIFY_RULES_H_
