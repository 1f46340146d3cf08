// From the tree of drafts to the nodes of rules.h, and from the outcome back to tokens.
//
// A plan begins at a node where the loop draws a token, and holds the nodes behind it. "block" and
// "traversal" decide about all of them at once; the other rules go node by node, so their plans
// have one level and need the law of one node. Where the loop takes what is forced, nothing is
// drawn, and the plan ends: the next node where it draws has a plan of its own. Laws list the
// tokens that have mass, so a plan is no larger than what the filters of the sampler leave.
//
// A token that comes behind rejected drafts ends the step, also where the tree has a node with it:
// what stands behind such a node was looked at when the drafts were rejected.
#include "src/decode/draft/verify/tree_rule.h"

#include <algorithm>
#include <utility>

#include "src/decode/draft/verify/rejection_noise.h"

namespace pawl {
namespace {

size_t PlaceOf(const std::vector<TokenId>& tokens, TokenId token) {
  return static_cast<size_t>(std::ranges::lower_bound(tokens, token) - tokens.begin());
}

// The draws behind a node that are in the tree; guesses without a law.
std::vector<int> DraftsBehind(const DraftTree& tree, int node) {
  std::vector<int> children;
  const DraftNode& at = tree.nodes[static_cast<size_t>(node)];
  if (at.law != nullptr) {
    for (int i = 0; i < at.kept; ++i) {
      children.push_back(tree.Child(node, at.law->drawn[static_cast<size_t>(i)]));
    }
    return children;
  }
  for (size_t i = static_cast<size_t>(node) + 1; i < tree.nodes.size(); ++i) {
    if (tree.nodes[i].parent == node) children.push_back(static_cast<int>(i));
  }
  return children;
}

}  // namespace

void TreeRule::Begin(const DraftTree& tree) {
  tree_ = &tree;
  planned_.clear();
  rest_at_ = -1;
  left_ = false;
}

Result<int> TreeRule::Add(int of_tree, bool whole, const Laws& laws) {
  const auto index = static_cast<int>(nodes_.size());
  nodes_.emplace_back();
  of_tree_.push_back(of_tree);
  tokens_.emplace_back();
  const bool root = index == 0;
  if (!root && !whole) return index;
  const std::vector<int> drafts = DraftsBehind(*tree_, of_tree);
  if (drafts.empty()) return index;
  std::vector<TokenMass> target;
  const Result<bool> draws = laws(of_tree, target);
  if (!draws.ok()) return draws.error();
  if (!*draws) return index;
  std::vector<TokenId> tokens;
  const DraftLaw* const law = tree_->nodes[static_cast<size_t>(of_tree)].law.get();
  for (const TokenMass& one : target) tokens.push_back(one.token);
  if (law != nullptr) {
    for (const TokenMass& one : law->masses) tokens.push_back(one.token);
  }
  for (const int draft : drafts) {
    tokens.push_back(tree_->nodes[static_cast<size_t>(draft)].token);
  }
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  Node node;
  node.target.assign(tokens.size(), 0);
  node.draft.assign(tokens.size(), 0);
  for (const TokenMass& one : target) node.target[PlaceOf(tokens, one.token)] = one.mass;
  if (law != nullptr) {
    for (const TokenMass& one : law->masses) node.draft[PlaceOf(tokens, one.token)] = one.mass;
  }
  std::vector<std::pair<int, int>> added;  // by draft
  for (const int draft : drafts) {
    const auto known =
        std::ranges::find_if(added, [&](const auto& one) { return one.first == draft; });
    if (known != added.end()) {
      node.children.push_back(known->second);
      continue;
    }
    const Result<int> child = Add(draft, whole, laws);
    if (!child.ok()) return child;
    const TokenId token = tree_->nodes[static_cast<size_t>(draft)].token;
    nodes_[static_cast<size_t>(*child)].token = static_cast<int>(PlaceOf(tokens, token));
    added.emplace_back(draft, *child);
    node.children.push_back(*child);
  }
  if (rules_.chain()) {
    verify::SureOfGuess(static_cast<size_t>(nodes_[static_cast<size_t>(node.children[0])].token),
                        node.draft);
  }
  node.token = nodes_[static_cast<size_t>(index)].token;
  nodes_[static_cast<size_t>(index)] = std::move(node);
  tokens_[static_cast<size_t>(index)] = std::move(tokens);
  return index;
}

verify::Outcome<double> TreeRule::Decide(size_t position, uint64_t& uniforms) const {
  const RejectionNoise noise{seed_, position, 0};
  const auto accept = [&](double chance) { return noise.Uniform(uniforms++) < chance; };
  const std::span<const Node> nodes = nodes_;
  switch (rules_.rule) {
    case VerifyRule::kBlock:
      return verify::Block<double>(nodes, accept);
    case VerifyRule::kRsd:
      return verify::Recursive<double>(nodes, accept);
    case VerifyRule::kSpectr:
      if (tree_->nodes[static_cast<size_t>(of_tree_[0])].law == nullptr) {
        return verify::Recursive<double>(nodes, accept);
      }
      return verify::Spectr<double>(nodes, accept, [&](int node) {
        const Node& at = nodes[static_cast<size_t>(node)];
        return verify::SpectrRoot(at.target, at.draft, static_cast<int>(at.children.size()));
      });
    case VerifyRule::kTraversal:
      return verify::TraverseTree<double>(nodes, accept);
    case VerifyRule::kToken:
    case VerifyRule::kCoupled:
      break;
  }
  return verify::Token<double>(nodes, accept);
}

Status TreeRule::Plan(int node, size_t position, const Laws& laws) {
  nodes_.clear();
  of_tree_.clear();
  tokens_.clear();
  const bool whole = rules_.rule == VerifyRule::kBlock || rules_.rule == VerifyRule::kTraversal;
  const Result<int> root = Add(node, whole, laws);
  if (!root.ok()) return root.error();
  if (nodes_[0].children.empty()) return {};
  uint64_t uniforms = 0;
  const verify::Outcome<double> out = Decide(position, uniforms);
  for (size_t i = out.taken.size(); i-- > 0;) {
    planned_.push_back(of_tree_[static_cast<size_t>(out.taken[i])]);
  }
  const auto last = static_cast<size_t>(out.taken.empty() ? 0 : out.taken.back());
  if (nodes_[last].children.empty()) return {};
  double point = RejectionNoise{seed_, position, 0}.Uniform(uniforms) * verify::Sum(out.rest);
  for (size_t v = 0; v < out.rest.size(); ++v) {
    if (!(out.rest[v] > 0)) continue;
    rest_ = tokens_[last][v];
    rest_at_ = of_tree_[last];
    if (point < out.rest[v]) break;
    point -= out.rest[v];
  }
  return {};
}

Result<TokenId> TreeRule::Next(int node, size_t position, const Laws& laws) {
  const auto plan_leads_here = [&] {
    if (planned_.empty()) return rest_at_ == node;
    return tree_->nodes[static_cast<size_t>(planned_.back())].parent == node;
  };
  if (!plan_leads_here()) {
    planned_.clear();
    rest_at_ = -1;
    if (Status status = Plan(node, position, laws); !status.ok()) return status.error();
  }
  if (planned_.empty()) {
    left_ = true;
    return rest_at_ == node ? rest_ : kNoToken;
  }
  const int next = planned_.back();
  planned_.pop_back();
  return tree_->nodes[static_cast<size_t>(next)].token;
}

}  // namespace pawl
