// LarkLowering: from the tree of lark_ast.h to the GrammarIr. Internal to grammar/languages.
#ifndef PAWL_GRAMMAR_LANGUAGES_LARK_LOWER_H_
#define PAWL_GRAMMAR_LANGUAGES_LARK_LOWER_H_

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/cfg/grammar_ir.h"
#include "grammar/languages/lark.h"
#include "grammar/languages/lark_ast.h"

namespace pawl::lark {

// What lazy rules do to the terminals next to them. Internal to grammar/languages.

// A set of lazy rules of one scope, by their bits.
using LazySet = uint64_t;

class LazyRules {
 public:
  static constexpr size_t kMost = 64;
  // What an expression of the grammar says about lazy rules.
  struct Facts {
    LazySet first = 0;  // those that may begin where it begins
    LazySet again = 0;  // those with which it may go on where it ends
    bool empty = false;
    friend bool operator==(const Facts&, const Facts&) = default;
  };

  // `tree` and `scope` must outlive it.
  // `stop_is_suffix`: a rule with a stop is lazy as well.
  LazyRules(const Tree& tree, const Scope& scope, bool stop_is_suffix);
  bool any() const { return !rules_.empty(); }
  bool too_many() const { return too_many_; }
  const std::vector<const Definition*>& rules() const { return rules_; }
  LazySet BitOf(const Definition& rule) const;
  const Facts& Of(NodeId node) const { return facts_[node]; }

 private:
  Facts Compute(NodeId id);

  const Tree& tree_;
  bool too_many_ = false;
  std::vector<const Definition*> rules_;
  std::unordered_map<std::string_view, Facts> by_name_;
  std::vector<Facts> facts_;  // by node
};

struct Source {
  std::string name;  // empty: the whole text's grammar
  std::string_view text;
  SourceMap map;
  Tree tree;
  bool is_json_schema = false;
};

class LarkLowering {
 public:
  using ExprId = GrammarIr::ExprId;
  using RuleId = GrammarIr::RuleId;

  LarkLowering(std::deque<Source> sources, const LanguageOptions& options);
  Result<GrammarIr> Run();
  // A rule of a source as a grammar of its own, without the rule's attributes.
  Result<GrammarIr> RunRule(const std::string& source, uint32_t scope, const std::string& rule);

 private:
  // A scope of a source, and what is known of it so far.
  struct ScopeState {
    const Source* source;
    const Scope* scope;
    std::string prefix;  // of its rules' names
    ExprId ignore = GrammarIr::kEmpty;
    std::map<std::string_view, ReId> terminals;
    std::unordered_map<NodeId, ExprId> leaves;  // of nodes that stand for one terminal
    std::optional<LazyRules> lazy;
    bool dispatches = false;  // start: calls* text
    std::map<const Definition*, ReId> lazy_texts;
    std::map<std::tuple<ReId, LazySet, bool>, ReId> restricted;
  };
  // Where an expression stands: the lazy rules that may stand there instead, and those that may
  // follow it.
  struct Around {
    LazySet others = 0, behind = 0;
    friend auto operator<=>(const Around&, const Around&) = default;
  };
  // A rule, with a value of its parameter, whether it is the last thing of its grammar, and where
  // it stands.
  struct Instance {
    uint32_t scope;
    const Definition* definition;
    uint64_t parameter;
    bool last;
    Around around;
    RuleId rule;
  };

  // Functions that answer kFailed have set error_.
  static constexpr ExprId kFailed = UINT32_MAX;
  static constexpr ReId kFailedRe = UINT32_MAX;
  uint32_t Fail(const ScopeState& scope, std::string message, size_t at,
                ErrorCode code = ErrorCode::kInvalid);
  bool Exhausted(const ScopeState& scope, size_t at);

  // lark_lower.cc
  Result<GrammarIr> Finish();
  uint32_t ScopeOf(const Source& source, uint32_t scope);  // kFailed
  bool xgrammar() const { return options_.lark_as_xgrammar; }
  // What ends a rule and is part of its text.
  NodeId EndOf(const Definition& rule) const {
    return xgrammar() && rule.stop != kNoNode ? rule.stop : rule.suffix;
  }
  ExprId CallOf(uint32_t scope, const Definition& rule, uint64_t parameter, bool last,
                Around around);
  RuleId RuleOf(uint32_t scope, const Definition& definition, uint64_t parameter, bool last,
                Around around);
  ExprId StartOf(uint32_t scope, size_t at, const ScopeState& caller);
  bool DefineRule(const Instance& instance);
  ExprId Body(const Instance& instance);
  ExprId Lazy(const Instance& instance);
  ExprId Boxed(const Instance& instance);
  bool SetMarker(const Instance& instance, GrammarIr::Attributes& attributes);
  ReId Limited(ReId text, uint32_t max_chars);
  bool HasToken(const ScopeState& scope, NodeId node) const;
  bool IsAnyText(uint32_t scope, NodeId node);
  bool MayStayOpen(uint32_t scope, const Definition& rule);
  ExprId Lower(const Instance& in, NodeId node, bool last, Around around);
  ExprId LowerChoice(const Instance& in, const Node& node, bool last, Around around);
  ExprId LowerSequence(const Instance& in, const Node& node, bool last, Around around);
  ExprId LowerRepeat(const Instance& in, const Node& node, bool last, Around around);
  ExprId LowerName(const Instance& in, const Node& node, NodeId id, bool last, Around around);
  ExprId LeafAt(uint32_t scope, NodeId id, bool last, LazySet others);
  ReId LazyText(uint32_t scope, const Definition& rule);
  ReId Without(uint32_t scope, ReId text, LazySet others, bool lazy);
  ExprId LowerLeaf(uint32_t scope, NodeId id);
  ExprId SpecialToken(const ScopeState& scope, const Node& node);
  ExprId Json(const ScopeState& scope, std::string_view text, size_t at);
  ExprId GrammarRef(const ScopeState& scope, const Node& node);
  ExprId Followed(uint32_t scope, ExprId expr, bool last);
  // The first place in the source that the parameter decides about.
  std::optional<size_t> ParameterUse(const Source& source, NodeId id) const;

  // lark_terminals.cc
  ReId Terminal(uint32_t scope, std::string_view name, size_t at);
  ReId InlineRule(uint32_t scope, const Definition& rule, const Node& node);
  ReId LowerTerminal(uint32_t scope, NodeId id);
  ReId TerminalLeaf(const ScopeState& scope, const Node& node);
  ReId RegexExt(const ScopeState& scope, const Node& node);
  bool CollectNames(const ScopeState& scope, NodeId id, std::vector<NodeId>& names);

  std::deque<Source> sources_;
  const LanguageOptions& options_;
  GrammarIr ir_;
  std::optional<RegexArena::WorkBudget> budget_;
  std::deque<ScopeState> scopes_;
  std::map<std::pair<const Source*, uint32_t>, uint32_t> scope_ids_;
  std::map<std::tuple<uint32_t, const Definition*, uint64_t, bool, Around>, RuleId> rules_;
  std::unordered_map<std::string_view, ExprId> tokens_;  // special tokens, as they are written
  std::deque<Instance> pending_;
  std::unordered_map<char32_t, ReId> folded_;  // characters without regard to case
  bool boxed_ = false;                         // see Boxed()
  std::map<std::pair<uint32_t, const Definition*>, ExprId> boxes_;
  // Rules that stand in a terminal, since max_chars makes one of the rule around them.
  std::vector<const Definition*> inline_rules_;
  uint64_t steps_ = 0, max_steps_ = 0;
  size_t values_ = 0;  // of parameters, with which rules are called
  std::optional<Error> error_;
};

}  // namespace pawl::lark

#endif  // PAWL_GRAMMAR_LANGUAGES_LARK_LOWER_H_
