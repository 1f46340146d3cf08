// TreeRule: a rule of rejection over the tree of one output, as the output goes along it.
//
//   TreeRule rule(rules, seed);
//   rule.Begin(tree);                                         // a call has answered
//   Result<TokenId> next = rule.Next(node, position, laws);   // the token behind the node
//   if (rule.left()) ...                                      // the step ends with this token
//
// kNoToken: the node has no drafts, so the token is drawn as always.
#ifndef PAWL_SRC_DECODE_DRAFT_VERIFY_TREE_RULE_H_
#define PAWL_SRC_DECODE_DRAFT_VERIFY_TREE_RULE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "pawl/result.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/draft/verify/draft_rules.h"
#include "src/decode/draft/verify/rules.h"
#include "src/decode/sampler.h"

namespace pawl {

// One thread at a time.
class TreeRule {
 public:
  // The law of the model behind a node. False: what comes there is forced, so nothing is drawn.
  using Laws = std::function<Result<bool>(int node, std::vector<TokenMass>& law)>;

  TreeRule(const DraftRules& rules, uint64_t seed) : rules_(rules), seed_(seed) {}
  void Begin(const DraftTree& tree);
  // `position`: of the token in the output.
  Result<TokenId> Next(int node, size_t position, const Laws& laws);
  bool left() const { return left_; }

 private:
  using Node = verify::Node<double>;
  // The plan's node for a node of the tree, and those behind it. `whole`: all of them.
  Result<int> Add(int of_tree, bool whole, const Laws& laws);
  Status Plan(int node, size_t position, const Laws& laws);
  verify::Outcome<double> Decide(size_t position, uint64_t& uniforms) const;

  const DraftRules rules_;
  const uint64_t seed_;
  const DraftTree* tree_ = nullptr;
  std::vector<int> planned_;  // nodes that are taken, the last one first
  int rest_at_ = -1;          // the node behind which rest_ comes; -1: none
  TokenId rest_ = kNoToken;
  bool left_ = false;
  // Of the last plan: its nodes, where they are in the tree, the tokens of their laws.
  std::vector<Node> nodes_;
  std::vector<int> of_tree_;
  std::vector<std::vector<TokenId>> tokens_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_VERIFY_TREE_RULE_H_
