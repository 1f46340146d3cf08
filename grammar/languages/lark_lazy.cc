// In llguidance a lazy rule ends a lexeme as soon as it matches, and with it every other lexeme
// that began at the same place:
//
//   start: call* text
//   call: head "=f>" NAME ">"
//   head[lazy]: /(.|\n)*/ "<call"
//   text: /(.|\n)*/
//
// allows any text, but once "<call" has come there is no way back into `text`. So a terminal that
// stands where a lazy rule may stand as well has no text in which that rule matches a beginning.
// Which lazy rules may stand at the place of a terminal follows from first and follow sets, as for
// LL parsers; they are computed here. Places inside of loops and behind what may be empty are not
// told apart by how they were reached.
#include "grammar/languages/lark_lazy.h"

#include <algorithm>

namespace pawl::lark {

LazyRules::LazyRules(const Tree& tree, const Scope& scope, bool stop_is_suffix) : tree_(tree) {
  for (const auto& [name, rule] : scope.rules) {
    bool lazy = rule.lazy && rule.stop == kNoNode;
    const NodeId end = stop_is_suffix && rule.stop != kNoNode ? rule.stop : rule.suffix;
    if (end != kNoNode) {
      const Node& suffix = tree.nodes[end];
      lazy |= suffix.kind != Node::Kind::kString || !suffix.text.empty();
    }
    if (!lazy || rule.max_tokens == 0u) continue;
    if (rules_.size() == kMost) {
      too_many_ = true;
      return;
    }
    rules_.push_back(&rule);
  }
  if (rules_.empty()) return;
  // Children stand before their parents, so a round over all nodes is bottom-up.
  facts_.resize(tree.nodes.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (NodeId id = 0; id < facts_.size(); ++id) facts_[id] = Compute(id);
    for (const auto& [name, rule] : scope.rules) {
      Facts facts = facts_[rule.body];
      if (const LazySet bit = BitOf(rule); bit != 0) {
        facts = {.first = bit, .again = 0, .empty = false};
      } else if (rule.stop != kNoNode || rule.suffix != kNoNode) {
        facts = {};
      }
      Facts& known = by_name_[name];
      changed |= facts != known;
      known = facts;
    }
  }
}

LazySet LazyRules::BitOf(const Definition& rule) const {
  const auto at = std::find(rules_.begin(), rules_.end(), &rule);
  return at == rules_.end() ? 0 : LazySet{1} << (at - rules_.begin());
}

LazyRules::Facts LazyRules::Compute(NodeId id) {
  const Node& node = tree_.nodes[id];
  const auto children = tree_.ChildrenOf(node);
  Facts facts;
  switch (node.kind) {
    case Node::Kind::kChoice:
      for (const NodeId child : children) {
        facts.first |= facts_[child].first;
        facts.again |= facts_[child].again;
        facts.empty |= facts_[child].empty;
      }
      return facts;
    case Node::Kind::kSequence:
      facts.empty = true;
      for (const NodeId child : children) {
        const Facts& part = facts_[child];
        if (facts.empty) facts.first |= part.first;
        facts.again = part.again | (part.empty ? facts.again | part.first : 0);
        facts.empty &= part.empty;
      }
      return facts;
    case Node::Kind::kIf:
      return facts_[children[0]];
    case Node::Kind::kRepeat:
      facts = facts_[children[0]];
      facts.empty |= node.min == 0;
      if (node.max > 1) facts.again |= facts.first;
      return facts;
    case Node::Kind::kString:
      facts.empty = node.text.empty();
      return facts;
    case Node::Kind::kName:
      if (const auto rule = by_name_.find(node.text); rule != by_name_.end()) return rule->second;
      return facts;
    default:
      return facts;
  }
}

}  // namespace pawl::lark
