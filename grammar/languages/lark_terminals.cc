// Terminals are regular expressions over each other: everything is put into one term, so names are
// resolved first. The order is found with a stack of its own, since a chain of names may be long.
#include <algorithm>
#include <charconv>
#include <set>

#include "grammar/languages/lark_lower.h"
#include "grammar/languages/rust_regex.h"
#include "grammar/languages/substring_regex.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl::lark {

// The names in a body, each with its place. false: error_ is set.
bool LarkLowering::CollectNames(const ScopeState& scope, NodeId id, std::vector<NodeId>& names) {
  std::vector<NodeId> todo = {id};
  while (!todo.empty()) {
    const NodeId at = todo.back();
    const Node& node = scope.source->tree.nodes[at];
    todo.pop_back();
    ++steps_;
    if (node.kind == Node::Kind::kName) {
      if (node.has_parameter) {
        Fail(scope, "rules with parameters cannot be used in terminals", node.place);
        return false;
      }
      if (!scope.scope->terminals.contains(node.text)) {
        const bool rule = scope.scope->rules.contains(node.text);
        Fail(scope,
             rule ? "the rule '" + node.text + "' cannot be used in a terminal"
                  : "the name '" + node.text + "' is not defined",
             node.place);
        return false;
      }
      names.push_back(at);
    }
    const auto children = scope.source->tree.ChildrenOf(node);
    todo.insert(todo.end(), children.rbegin(), children.rend());
  }
  return true;
}

ReId LarkLowering::Terminal(uint32_t scope, std::string_view name, size_t at) {
  ScopeState& state = scopes_[scope];
  struct Frame {
    const Definition* terminal;
    std::vector<NodeId> names;
    size_t next = 0;
  };
  std::vector<Frame> stack;
  std::set<std::string_view> open;
  const auto push = [&](std::string_view wanted) {
    const auto found = state.scope->terminals.find(wanted);
    Frame frame{&found->second, {}, 0};
    if (!CollectNames(state, frame.terminal->body, frame.names)) return false;
    open.insert(frame.terminal->name);
    stack.push_back(std::move(frame));
    return true;
  };
  if (const auto known = state.terminals.find(name); known != state.terminals.end()) {
    return known->second;
  }
  if (!push(name)) return kFailedRe;
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next < frame.names.size()) {
      const Node& node = state.source->tree.nodes[frame.names[frame.next++]];
      if (state.terminals.contains(node.text)) continue;
      if (open.contains(node.text)) {
        return Fail(state,
                    "the terminal '" + node.text +
                        "' uses itself; terminals cannot be recursive, rules can",
                    node.place);
      }
      if (!push(node.text)) return kFailedRe;
      continue;
    }
    const Definition& terminal = *frame.terminal;
    const ReId id = LowerTerminal(scope, terminal.body);
    if (id == kFailedRe || Exhausted(state, terminal.place)) return kFailedRe;
    state.terminals.emplace(terminal.name, id);
    open.erase(terminal.name);
    stack.pop_back();
  }
  if (Exhausted(state, at)) return kFailedRe;
  return state.terminals.at(name);
}

// Recursion is limited by the parser: brackets nest no deeper than its limit.
ReId LarkLowering::LowerTerminal(uint32_t scope, NodeId id) {
  const ScopeState& state = scopes_[scope];
  const Tree& tree = state.source->tree;
  const Node& node = tree.nodes[id];
  RegexArena& arena = ir_.arena();
  ++steps_;
  if (Exhausted(state, node.place)) return kFailedRe;
  std::vector<ReId> operands;
  const auto lower_children = [&] {
    for (const NodeId child : tree.ChildrenOf(node)) {
      operands.push_back(LowerTerminal(scope, child));
      if (operands.back() == kFailedRe) return false;
    }
    return true;
  };
  switch (node.kind) {
    case Node::Kind::kChoice:
      return lower_children() ? arena.Or(operands) : kFailedRe;
    case Node::Kind::kSequence:
      return lower_children() ? arena.Concat(operands) : kFailedRe;
    case Node::Kind::kAnd:
      return lower_children() ? arena.And(operands) : kFailedRe;
    case Node::Kind::kNot:
      return lower_children() ? arena.Not(operands[0]) : kFailedRe;
    case Node::Kind::kRepeat: {
      if (!lower_children()) return kFailedRe;
      std::optional<uint32_t> max;
      if (node.max != kUnbounded) max = node.max;
      return arena.Repeat(operands[0], node.min, max);
    }
    case Node::Kind::kIf:
      return Fail(state, "'%if' cannot be used in terminals", node.place);
    case Node::Kind::kName: {
      const auto rule = state.scope->rules.find(node.text);
      if (!inline_rules_.empty() && rule != state.scope->rules.end() && !node.has_parameter)
        return InlineRule(scope, rule->second, node);
      std::vector<NodeId> names;
      if (!CollectNames(state, id, names)) return kFailedRe;
      return Terminal(scope, node.text, node.place);
    }
    default:
      return TerminalLeaf(state, node);
  }
}

// A rule as a part of a terminal, with what its own attributes leave of it.
ReId LarkLowering::InlineRule(uint32_t scope, const Definition& rule, const Node& node) {
  const ScopeState& state = scopes_[scope];
  if (std::ranges::find(inline_rules_, &rule) != inline_rules_.end() || rule.capture ||
      rule.stop_capture || rule.lazy || rule.stop != kNoNode || rule.suffix != kNoNode ||
      rule.max_tokens || rule.temperature) {
    return Fail(state, "the rule '" + rule.name + "' cannot be used in a terminal", node.place);
  }
  inline_rules_.push_back(&rule);
  const ReId text = LowerTerminal(scope, rule.body);
  inline_rules_.pop_back();
  if (text == kFailedRe || !rule.max_chars) return text;
  return Limited(text, *rule.max_chars);
}

ReId LarkLowering::TerminalLeaf(const ScopeState& scope, const Node& node) {
  RegexArena& arena = ir_.arena();
  switch (node.kind) {
    case Node::Kind::kString: {
      const std::u32string text = DecodeCodepoints(node.text);
      if (!node.ignore_case) return arena.Literal(text);
      std::vector<ReId> letters;
      for (const char32_t c : text) {
        const auto [known, fresh] = folded_.try_emplace(c);
        if (fresh) {
          known->second = arena.Set(CodepointSet::Of(c).CaseClosure());
          steps_ += 100;
        }
        letters.push_back(known->second);
      }
      return arena.Concat(letters);
    }
    case Node::Kind::kRange: {
      const std::u32string ends = DecodeCodepoints(node.text);
      return arena.Set(CodepointSet::Of(ends[0], ends[1]));
    }
    case Node::Kind::kRegex: {
      const size_t bad = node.flags.find_first_not_of("imsux");
      if (bad != std::string::npos) {
        return Fail(scope,
                    std::string("the flag '") + node.flags[bad] +
                        "' is not supported in regular expressions (i m s u x are)",
                    node.place, ErrorCode::kUnsupported);
      }
      const Result<ReId> id = ParseRustRegex(arena, node.text, node.flags);
      if (id.ok()) return *id;
      size_t at = 0;
      const std::string& place = id.error().place;
      constexpr std::string_view kByte = "byte ";
      if (place.starts_with(kByte)) {
        std::from_chars(place.data() + kByte.size(), place.data() + place.size(), at);
      }
      // The pattern stands behind a '/', but one of `%import common` stands elsewhere.
      const bool here = scope.source->text.substr(node.place).starts_with('/');
      return Fail(scope, "in this regular expression: " + id.error().message,
                  node.place + (here ? 1 + at : 0), id.error().code);
    }
    case Node::Kind::kRegexExt:
      return RegexExt(scope, node);
    case Node::Kind::kSpecialToken:
      return Fail(scope, "special tokens cannot be used in terminals", node.place);
    case Node::Kind::kJson:
      return Fail(scope, "%json cannot be used in terminals", node.place);
    case Node::Kind::kLark:
      return Fail(scope, "%lark cannot be used in terminals", node.place);
    default:
      return Fail(scope, "other grammars ('@" + node.text + "') cannot be used in terminals",
                  node.place);
  }
}

// %regex { "substring_words": "..." } and the like.
ReId LarkLowering::RegexExt(const ScopeState& scope, const Node& node) {
  const Result<json::Value> value = json::Parse(node.text);  // the parser has checked it
  constexpr std::string_view kExpected =
      "expected one of \"substring_chunks\", \"substring_words\", \"substring_chars\" in %regex";
  if (!value.ok() || value->type != json::Type::kObject || value->members.size() != 1) {
    return Fail(scope, std::string(kExpected), node.place);
  }
  const auto& [key, argument] = value->members[0];
  std::vector<std::u32string> chunks;
  if (key == "substring_chunks") {
    bool strings = argument.type == json::Type::kArray;
    for (const json::Value& item : argument.items) {
      strings &= item.type == json::Type::kString;
      chunks.push_back(DecodeCodepoints(item.text));
    }
    if (!strings) {
      return Fail(scope, "expected a list of strings as \"substring_chunks\"", node.place);
    }
  } else if (key == "substring_words" || key == "substring_chars") {
    if (argument.type != json::Type::kString) {
      return Fail(scope, "expected a string as \"" + key + "\"", node.place);
    }
    chunks = key == "substring_words" ? ChunkWords(argument.text) : ChunkCharacters(argument.text);
  } else {
    return Fail(scope, std::string(kExpected) + ", found \"" + key.substr(0, 80) + "\"",
                node.place);
  }
  if (chunks.size() > kMaxSubstringChunks) {
    return Fail(scope, "more than " + std::to_string(kMaxSubstringChunks) + " parts of a text",
                node.place);
  }
  return SubstringRegex(ir_.arena(), chunks);
}

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
