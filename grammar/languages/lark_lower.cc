// Rules become rules, terminals become regexes, one for each place in a rule where one stands.
//
// %ignore. What is ignored may stand behind every terminal, except behind one that ends the whole
// text. So each rule exists in up to two versions: one in which every terminal is followed by
// ignored text, and one for the end of the text, in which the last terminal is not. In that one a
// loop that could go on ends with ignored text nonetheless, as in llguidance: where another
// terminal may follow, so may what stands before it. Rules with attributes are only made in the
// second version, and what is ignored follows their call, so that a capture does not hold it.
//
// Parameters. A rule with a parameter is a family of rules; a member is made when it is first
// called. Members that no call reaches do not exist, which is what keeps most such grammars small.
//
// Lazy rules. A terminal ends where a lazy rule that may stand in its place matches
// (lark_terminals.cc), so instances of a rule differ by the lazy rules around them as well.
//
// stop= and suffix=. See docs/lark.md; the text of a rule with a suffix is one lazy terminal, that
// of a rule with a stop is what stands before the stop's first match.
#include "grammar/languages/lark_lower.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "grammar/cfg/cfg_machine.h"
#include "src/base/json.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl::lark {
namespace {

constexpr uint64_t kMaxSteps = 1'000'000;  // nodes lowered, in addition to four for each byte
constexpr size_t kMaxValues = 100'000;     // of parameters; a rule takes about 500 bytes
constexpr size_t kMaxTokenSets = 10'000;
constexpr size_t kMaxBoxes = 16;
constexpr uint64_t kRegexWork = 30'000'000;
constexpr uint64_t kRegexWorkPerByte = 64;

// start: (call | other)* text
bool IsDispatch(const Tree& tree, const Scope& scope) {
  const auto start = scope.rules.find("start");
  if (start == scope.rules.end()) return false;
  const Node& body = tree.nodes[start->second.body];
  const auto children = tree.ChildrenOf(body);
  return body.kind == Node::Kind::kSequence && children.size() == 2 &&
         tree.nodes[children[0]].kind == Node::Kind::kRepeat &&
         tree.nodes[children[0]].max == kUnbounded &&
         tree.nodes[children[1]].kind == Node::Kind::kName;
}

}  // namespace

LarkLowering::LarkLowering(std::deque<Source> sources, const LanguageOptions& options)
    : sources_(std::move(sources)), options_(options) {
  uint64_t bytes = 0;
  for (const Source& source : sources_) bytes += source.text.size();
  max_steps_ = kMaxSteps + 4 * bytes;
  budget_.emplace(ir_.arena(), kRegexWork + kRegexWorkPerByte * bytes);
}

uint32_t LarkLowering::Fail(const ScopeState& scope, std::string message, size_t at,
                            ErrorCode code) {
  if (error_) return kFailed;
  std::string place = scope.source->is_json_schema ? std::string() : scope.source->map.Place(at);
  if (!scope.source->name.empty()) place = "@" + scope.source->name + " " + place;
  error_ = Error{code, std::move(message), std::move(place)};
  return kFailed;
}

bool LarkLowering::Exhausted(const ScopeState& scope, size_t at) {
  if (!ir_.arena().overflow() && !budget_->exhausted() && steps_ <= max_steps_) return false;
  Fail(scope,
       steps_ > max_steps_
           ? "the grammar is too large, counting each rule once for each value of its parameter"
           : "the regular expressions of this grammar are too large",
       at, ErrorCode::kLimit);
  return true;
}

Result<GrammarIr> LarkLowering::Run() {
  const uint32_t root = ScopeOf(sources_.front(), 0);
  if (root == kFailed) return *error_;
  const ExprId start = StartOf(root, 0, scopes_[root]);
  if (start == kFailed) return *error_;
  if (scopes_[root].scope != nullptr && scopes_[root].scope->allow_initial_skip) {
    const RuleId whole = ir_.AddRule("start.ignore");
    ir_.Define(whole, ir_.Sequence({scopes_[root].ignore, start}));
    ir_.SetRoot(whole);
  } else if (ir_.expr(start).kind == GrammarIr::Kind::kCall) {
    ir_.SetRoot(ir_.expr(start).index);
  } else {
    const RuleId whole = ir_.AddRule("start");
    ir_.Define(whole, start);
    ir_.SetRoot(whole);
  }
  return Finish();
}

// Defines every rule that is called.
Result<GrammarIr> LarkLowering::Finish() {
  while (!pending_.empty()) {
    const Instance instance = pending_.front();
    pending_.pop_front();
    if (!DefineRule(instance)) return *error_;
  }
  budget_.reset();
  return std::move(ir_);
}

uint32_t LarkLowering::ScopeOf(const Source& source, uint32_t scope) {
  const auto [known, fresh] =
      scope_ids_.try_emplace({&source, scope}, static_cast<uint32_t>(scopes_.size()));
  const uint32_t id = known->second;
  if (!fresh) return id;
  ScopeState& state = scopes_.emplace_back();
  state.source = &source;
  state.scope = source.is_json_schema ? nullptr : &source.tree.scopes[scope];
  if (!source.name.empty()) state.prefix = "@" + source.name + ".";
  if (scope > 0) state.prefix += "lark" + std::to_string(scope) + ".";
  if (state.scope != nullptr) {
    state.lazy.emplace(source.tree, *state.scope, xgrammar());
    state.dispatches = IsDispatch(source.tree, *state.scope);
    if (state.lazy->too_many()) {
      return Fail(state, "more than " + std::to_string(LazyRules::kMost) + " lazy rules",
                  state.scope->place, ErrorCode::kLimit);
    }
    if (state.lazy->any()) steps_ += source.tree.nodes.size();
    if (Exhausted(state, state.scope->place)) return kFailed;
  }
  if (state.scope == nullptr || state.scope->ignores.empty()) return id;
  std::vector<ReId> ignores;
  for (const NodeId node : state.scope->ignores) {
    const ReId ignore = LowerTerminal(id, node);
    if (ignore == kFailedRe) return kFailed;
    ignores.push_back(ignore);
  }
  RegexArena& arena = ir_.arena();
  const ReId any = arena.Or(ignores);
  state.ignore = ir_.Regex(state.scope->ignore_once ? arena.Optional(any) : arena.Star(any));
  return id;
}

// The whole text of a scope's grammar, as the last thing of it.
LarkLowering::ExprId LarkLowering::StartOf(uint32_t scope, size_t at, const ScopeState& caller) {
  const ScopeState& state = scopes_[scope];
  if (state.source->is_json_schema) return Json(state, state.source->text, 0);
  const auto start = state.scope->rules.find("start");
  if (start == state.scope->rules.end()) {
    return Fail(caller, "expected a rule 'start', found none", at);
  }
  if (start->second.parametric) {
    return Fail(state, "the rule 'start' has no parameter", start->second.place);
  }
  // XGrammar takes ignored text behind the last terminal as well.
  return CallOf(scope, start->second, 0, /*last=*/!xgrammar(), {});
}

// A rule with attributes does not hold what is ignored behind it.
LarkLowering::ExprId LarkLowering::CallOf(uint32_t scope, const Definition& rule,
                                          uint64_t parameter, bool last, Around around) {
  if (scopes_[scope].ignore == GrammarIr::kEmpty) last = true;
  const bool plain =
      !(rule.capture || rule.stop_capture || rule.max_tokens || rule.max_chars ||
        rule.temperature || rule.lazy || rule.stop != kNoNode || rule.suffix != kNoNode);
  const RuleId called = RuleOf(scope, rule, parameter, last || !plain, around);
  if (called == kFailed) return kFailed;
  return Followed(scope, ir_.Call(called), last || plain);
}

LarkLowering::RuleId LarkLowering::RuleOf(uint32_t scope, const Definition& definition,
                                          uint64_t parameter, bool last, Around around) {
  const ScopeState& state = scopes_[scope];
  const auto [known, fresh] = rules_.try_emplace({scope, &definition, parameter, last, around}, 0);
  if (!fresh) return known->second;
  std::string name = state.prefix + definition.name;
  if (definition.parametric) {
    if (++values_ > kMaxValues) {
      return Fail(state,
                  "rules with a parameter are called with more than " + std::to_string(kMaxValues) +
                      " values",
                  definition.place, ErrorCode::kLimit);
    }
    char digits[16];
    const auto end = std::to_chars(digits, digits + sizeof digits, parameter, 16).ptr;
    name += "::0x" + std::string(digits, end);
  }
  if (last && state.ignore != GrammarIr::kEmpty) name += ".end";
  if (around != Around()) name += "." + std::to_string(ir_.rule_count());
  known->second = ir_.AddRule(std::move(name), state.source->map.Place(definition.place));
  pending_.push_back({scope, &definition, parameter, last, around, known->second});
  return known->second;
}

bool LarkLowering::DefineRule(const Instance& instance) {
  const Definition& rule = *instance.definition;
  const ScopeState& state = scopes_[instance.scope];
  const auto refuse = [&](std::string message, size_t at, ErrorCode code = ErrorCode::kInvalid) {
    Fail(state, std::move(message), at, code);
    return false;
  };
  const bool stops = rule.stop != kNoNode || rule.suffix != kNoNode || rule.lazy;
  if (rule.parametric && (stops || rule.max_tokens || rule.max_chars || rule.temperature)) {
    return refuse(
        "expected no lazy, stop, suffix, max_tokens, max_chars or temperature at a rule with a "
        "parameter",
        rule.attribute_place);
  }
  if (rule.stop_capture && rule.stop == kNoNode && rule.suffix == kNoNode)
    return refuse("expected stop or suffix next to stop_capture", rule.stop_capture_place);
  if (xgrammar() && EndOf(rule) != kNoNode) {
    const Node& end = state.source->tree.nodes[EndOf(rule)];
    if (end.kind == Node::Kind::kString && end.text.empty())
      return refuse("expected a marker that is not empty", end.place);
  }
  const auto use = stops ? std::nullopt : ParameterUse(*state.source, rule.body);
  if (!stops && rule.parametric != use.has_value()) {
    return refuse(rule.parametric
                      ? "the rule '" + rule.name + "' has a parameter, but does not use it"
                      : "the rule '" + rule.name + "' has no parameter, but uses one",
                  use.value_or(rule.place));
  }
  const ExprId body = Body(instance);
  if (body == kFailed || Exhausted(state, rule.place)) return false;
  ir_.Define(instance.rule, body);
  GrammarIr::Attributes attributes;
  attributes.capture = rule.capture;
  if (rule.max_tokens != 0u && !boxed_) attributes.max_tokens = rule.max_tokens;
  // A schema cannot end anywhere; a text that may end without its marker need not overrun.
  attributes.relaxed = (xgrammar() && !MayStayOpen(instance.scope, rule)) ||
                       (rule.max_tokens && ir_.expr(body).kind == GrammarIr::Kind::kAutomaton);
  attributes.temperature = rule.temperature;
  if (!SetMarker(instance, attributes)) return false;
  if (!attributes.max_tokens) attributes.relaxed = false;
  if (attributes != GrammarIr::Attributes()) ir_.SetAttributes(instance.rule, attributes);
  return true;
}

LarkLowering::ExprId LarkLowering::Body(const Instance& instance) {
  const Definition& rule = *instance.definition;
  const ScopeState& state = scopes_[instance.scope];
  if (rule.max_tokens == 0u) return GrammarIr::kEmpty;
  // A special token ends a text of anything by itself.
  if (xgrammar() && rule.lazy && HasToken(state, rule.body))
    return Lower(instance, rule.body, instance.last, instance.around);
  if (rule.stop != kNoNode || rule.suffix != kNoNode || rule.lazy) return Lazy(instance);
  const bool counts = rule.max_tokens && !boxed_;  // a machine of its own sees no tokens
  if (!counts && !rule.temperature && !rule.max_chars)
    return Lower(instance, rule.body, instance.last, instance.around);
  const Node& body = state.source->tree.nodes[rule.body];
  const bool nested = body.kind == Node::Kind::kLark || body.kind == Node::Kind::kGrammarRef;
  if (body.kind == Node::Kind::kJson || nested) {
    if (rule.max_chars) {
      return Fail(state, "max_chars is only supported where the rule is one terminal",
                  rule.attribute_place, ErrorCode::kUnsupported);
    }
    if (nested && counts) return Boxed(instance);
    return Lower(instance, rule.body, instance.last, instance.around);
  }
  if (body.kind == Node::Kind::kSpecialToken && !rule.temperature)
    return Lower(instance, rule.body, instance.last, instance.around);
  const size_t work = steps_;
  if (rule.max_chars) inline_rules_.push_back(&rule);
  ReId text = LowerTerminal(instance.scope, rule.body);
  inline_rules_.clear();
  if (text == kFailedRe && counts && !rule.max_chars && !rule.temperature &&
      error_->code == ErrorCode::kInvalid) {
    error_.reset();
    steps_ = work;
    return Boxed(instance);
  }
  if (text == kFailedRe) {
    error_->message += " (max_chars and temperature need a rule that is one terminal)";
    return kFailed;
  }
  if (rule.max_chars) text = Limited(text, *rule.max_chars);
  return ir_.Regex(Without(instance.scope, text, instance.around.others, /*lazy=*/false));
}

// A rule that is a grammar, where its tokens are to be counted: a machine of its own, so that it is
// one terminal for what is around it.
LarkLowering::ExprId LarkLowering::Boxed(const Instance& instance) {
  const Definition& rule = *instance.definition;
  const ScopeState& state = scopes_[instance.scope];
  const auto [known, fresh] = boxes_.try_emplace({instance.scope, &rule}, kFailed);
  if (!fresh) return known->second;
  if (boxes_.size() > kMaxBoxes) {
    return Fail(
        state,
        "more than " + std::to_string(kMaxBoxes) + " rules with max_tokens that are no terminals",
        rule.attribute_place, ErrorCode::kLimit);
  }
  const auto scope = static_cast<uint32_t>(state.scope - state.source->tree.scopes.data());
  auto inside = LarkLowering(sources_, options_).RunRule(state.source->name, scope, rule.name);
  if (!inside.ok()) {
    error_ = inside.error();
    return kFailed;
  }
  const auto refuse = [&](std::string_view what) {
    return Fail(state, "max_tokens is not supported around " + std::string(what),
                rule.attribute_place, ErrorCode::kUnsupported);
  };
  if (inside->token_set_count() > 0) return refuse("special tokens");
  for (RuleId id = 0; id < inside->rule_count(); ++id) {
    if (inside->rule(id).attributes.captures()) return refuse("captures");
  }
  const auto vocabulary = Vocabulary::Create({.tokens = {"a"}, .special = {}, .end_tokens = {}});
  auto machine = CfgMachine::Create(*inside, **vocabulary);
  if (!machine.ok()) {
    return Fail(state, machine.error().message, rule.attribute_place, machine.error().code);
  }
  known->second = ir_.Terminal({*std::move(machine), ""});
  return known->second;
}

Result<GrammarIr> LarkLowering::RunRule(const std::string& source, uint32_t scope,
                                        const std::string& rule) {
  const auto from = std::ranges::find(sources_, source, &Source::name);
  const uint32_t id = ScopeOf(*from, scope);
  if (id == kFailed) return *error_;
  Definition plain = scopes_[id].scope->rules.find(rule)->second;
  plain.capture.reset();
  boxed_ = true;
  const RuleId root = RuleOf(id, plain, 0, /*last=*/true, {});
  ir_.SetRoot(root);
  return Finish();
}

// The texts that end at so many characters, or, where they cannot, as soon as they can after that.
ReId LarkLowering::Limited(ReId text, uint32_t max_chars) {
  RegexArena& arena = ir_.arena();
  const ReId full = arena.And(text, arena.Repeat(RegexArena::kAnyChar, max_chars, std::nullopt));
  const ReId more = arena.Repeat(RegexArena::kAnyChar, 1, std::nullopt);
  return arena.And(text, arena.Not(arena.Concat(full, more)));
}

bool LarkLowering::HasToken(const ScopeState& scope, NodeId node) const {
  const Node& body = scope.source->tree.nodes[node];
  if (body.kind == Node::Kind::kSpecialToken) return true;
  if (body.kind != Node::Kind::kSequence) return false;
  const auto children = scope.source->tree.ChildrenOf(body);
  return std::ranges::any_of(children, [&](NodeId child) {
    return scope.source->tree.nodes[child].kind == Node::Kind::kSpecialToken;
  });
}

// A pattern for any text, perhaps under a name.
bool LarkLowering::IsAnyText(uint32_t scope, NodeId node) {
  const Node& body = scopes_[scope].source->tree.nodes[node];
  if (body.kind != Node::Kind::kName && body.kind != Node::Kind::kRegex) return false;
  if (body.kind == Node::Kind::kName && !scopes_[scope].scope->terminals.contains(body.text))
    return false;
  const ReId text = LowerTerminal(scope, node);
  return text != kFailedRe && ir_.arena().Close(text) == RegexArena::kAnything;
}

// XGrammar: any text up to a fixed string may as well go on to the end without it, but for the
// heads of calls in free text, `start: call* tail`.
bool LarkLowering::MayStayOpen(uint32_t scope, const Definition& rule) {
  if (!xgrammar()) return false;
  if (scopes_[scope].dispatches) return false;
  const Tree& tree = scopes_[scope].source->tree;
  const auto fixed = [&](NodeId id) {
    return tree.nodes[id].kind == Node::Kind::kString && !tree.nodes[id].ignore_case &&
           !tree.nodes[id].text.empty();
  };
  if (EndOf(rule) != kNoNode) return fixed(EndOf(rule)) && IsAnyText(scope, rule.body);
  const Node& body = tree.nodes[rule.body];
  const auto children = tree.ChildrenOf(body);
  return rule.lazy && body.kind == Node::Kind::kSequence && children.size() == 2 &&
         fixed(children[1]) && IsAnyText(scope, children[0]);
}

// What a capture of the rule leaves out.
bool LarkLowering::SetMarker(const Instance& instance, GrammarIr::Attributes& attributes) {
  const Definition& rule = *instance.definition;
  const NodeId end = rule.stop != kNoNode ? rule.stop : rule.suffix;
  if (end == kNoNode || rule.max_tokens == 0u) return true;
  const Node& node = scopes_[instance.scope].source->tree.nodes[end];
  if (node.kind == Node::Kind::kString && node.text.empty()) return true;
  const bool ahead = rule.stop != kNoNode && !xgrammar();
  const bool hidden = rule.stop != kNoNode && xgrammar();
  if (!hidden && !rule.stop_capture && (ahead || !rule.capture)) return true;
  const ReId text = LowerTerminal(instance.scope, rule.body);
  const ReId marker = LowerTerminal(instance.scope, end);
  if (text == kFailedRe || marker == kFailedRe) return false;
  attributes.marker = GrammarIr::Marker{text, marker, rule.stop_capture, hidden, ahead};
  return true;
}

LarkLowering::ExprId LarkLowering::Lazy(const Instance& instance) {
  const Definition& rule = *instance.definition;
  ScopeState& state = scopes_[instance.scope];
  const LazySet self = state.lazy->BitOf(rule);
  if (self != 0) {
    const ReId whole = LazyText(instance.scope, rule);
    if (whole == kFailedRe) return kFailed;
    const ExprId closed =
        ir_.Regex(Without(instance.scope, whole, instance.around.others & ~self, /*lazy=*/true),
                  /*lazy=*/true);
    if (!MayStayOpen(instance.scope, rule)) return closed;
    RegexArena& arena = ir_.arena();
    ReId open = arena.Not(arena.Concat(whole, ReId{RegexArena::kAnything}));
    if (rule.max_chars) open = Limited(open, *rule.max_chars);
    return ir_.Choice(
        {closed, ir_.Regex(Without(instance.scope, open, instance.around.others & ~self, false))});
  }
  ReId text = LowerTerminal(instance.scope, rule.body);
  if (text == kFailedRe) return kFailed;
  const NodeId end = rule.stop != kNoNode ? rule.stop : rule.suffix;
  const Node& end_node = state.source->tree.nodes[end];
  // The end of the output as the stop has nothing to add.
  if (end_node.kind != Node::Kind::kString || !end_node.text.empty()) {
    const ReId stop = LowerTerminal(instance.scope, end);
    if (stop == kFailedRe) return kFailed;
    RegexArena& arena = ir_.arena();
    const ReId stopped = arena.Concat({text, stop, ReId{RegexArena::kAnything}});
    text = arena.And(text, arena.Not(stopped));
  }
  return ir_.Regex(Without(instance.scope, text, instance.around.others, /*lazy=*/false));
}

// What a lazy rule matches, before laziness.
ReId LarkLowering::LazyText(uint32_t scope, const Definition& rule) {
  ScopeState& state = scopes_[scope];
  if (const auto known = state.lazy_texts.find(&rule); known != state.lazy_texts.end()) {
    return known->second;
  }
  ReId text = LowerTerminal(scope, rule.body);
  if (text == kFailedRe) return kFailedRe;
  RegexArena& arena = ir_.arena();
  const ReId body = text;
  if (EndOf(rule) != kNoNode) {
    const ReId suffix = LowerTerminal(scope, EndOf(rule));
    if (suffix == kFailedRe) return kFailedRe;
    text = arena.Concat(text, suffix);
  }
  // At the last character the rule ends without its marker, as soon as it may.
  if (rule.max_chars) {
    const ReId full =
        arena.And(body, arena.Repeat(RegexArena::kAnyChar, *rule.max_chars, std::nullopt));
    const ReId either[] = {text, full};
    text = arena.Or(either);
  }
  state.lazy_texts.emplace(&rule, text);
  return text;
}

// The texts in which none of the rules has matched; in XGrammar's Lark only where free text is
// searched for calls. Another lazy rule may match at the same time.
ReId LarkLowering::Without(uint32_t scope, ReId text, LazySet others, bool lazy) {
  ScopeState& state = scopes_[scope];
  if (others == 0 || text == kFailedRe || (xgrammar() && !state.dispatches)) return text;
  if (const auto known = state.restricted.find({text, others, lazy});
      known != state.restricted.end()) {
    return known->second;
  }
  RegexArena& arena = ir_.arena();
  std::vector<ReId> matched;
  const auto& rules = state.lazy->rules();
  for (size_t i = 0; i < rules.size(); ++i) {
    if ((others >> i & 1) == 0) continue;
    const ReId one = LazyText(scope, *rules[i]);
    if (one == kFailedRe) return kFailedRe;
    matched.push_back(one);
  }
  const ReId more =
      lazy ? arena.Repeat(RegexArena::kAnyChar, 1, std::nullopt) : ReId{RegexArena::kAnything};
  const ReId without = arena.And(text, arena.Not(arena.Concat(arena.Or(matched), more)));
  state.restricted.emplace(std::tuple{text, others, lazy}, without);
  return without;
}

// Recursion is limited by the parser: brackets nest no deeper than its limit.
LarkLowering::ExprId LarkLowering::Lower(const Instance& in, NodeId id, bool last, Around around) {
  StopScope::Step();
  const ScopeState& state = scopes_[in.scope];
  const Node& node = state.source->tree.nodes[id];
  ++steps_;
  if (Exhausted(state, node.place)) return kFailed;
  switch (node.kind) {
    case Node::Kind::kChoice:
      return LowerChoice(in, node, last, around);
    case Node::Kind::kSequence:
      return LowerSequence(in, node, last, around);
    case Node::Kind::kRepeat:
      return LowerRepeat(in, node, last, around);
    case Node::Kind::kAnd:
      return Fail(state,
                  "'&' is for terminals; expected it in the definition of a name in capital "
                  "letters",
                  node.place);
    case Node::Kind::kIf:
      if (!state.source->tree.Holds(node.index, in.parameter)) return GrammarIr::kNever;
      return Lower(in, state.source->tree.ChildrenOf(node)[0], last, around);
    case Node::Kind::kName:
      return LowerName(in, node, id, last, around);
    case Node::Kind::kString:
      if (node.text.empty()) return GrammarIr::kEmpty;
      [[fallthrough]];
    default:
      return LeafAt(in.scope, id, last, around.others);
  }
}

LarkLowering::ExprId LarkLowering::LowerChoice(const Instance& in, const Node& node, bool last,
                                               Around around) {
  std::vector<ExprId> alternatives;
  std::unordered_set<ExprId> seen;
  const auto children = scopes_[in.scope].source->tree.ChildrenOf(node);
  const LazyRules& lazy = *scopes_[in.scope].lazy;
  // How many alternatives may begin with each lazy rule: those of the others may stand with each.
  LazySet some = 0, several = 0;
  int empty = 0;
  if (lazy.any()) {
    for (const NodeId child : children) {
      several |= some & lazy.Of(child).first;
      some |= lazy.Of(child).first;
      empty += lazy.Of(child).empty ? 1 : 0;
    }
  }
  for (const NodeId child : children) {
    Around inside = around;
    if (lazy.any()) {
      inside.others |= several | (some & ~lazy.Of(child).first);
      if (empty > (lazy.Of(child).empty ? 1 : 0)) inside.others |= around.behind;
    }
    const ExprId alternative = Lower(in, child, last, inside);
    if (alternative == kFailed) return kFailed;
    if (seen.insert(alternative).second) alternatives.push_back(alternative);
  }
  return ir_.Choice(alternatives);
}

LarkLowering::ExprId LarkLowering::LowerSequence(const Instance& in, const Node& node, bool last,
                                                 Around around) {
  const Tree& tree = scopes_[in.scope].source->tree;
  const auto children = tree.ChildrenOf(node);
  size_t end = children.size();  // behind it stands nothing with text
  while (end > 0 && tree.nodes[children[end - 1]].kind == Node::Kind::kString &&
         tree.nodes[children[end - 1]].text.empty()) {
    --end;
  }
  const LazyRules& lazy = *scopes_[in.scope].lazy;
  std::vector<Around> at(end, around);
  if (lazy.any()) {
    for (size_t i = end; i-- > 1;) {
      const LazyRules::Facts& part = lazy.Of(children[i]);
      at[i - 1].behind = part.first | (part.empty ? at[i].behind : 0);
    }
    for (size_t i = 1; i < end; ++i) {
      const LazyRules::Facts& before = lazy.Of(children[i - 1]);
      at[i].others = before.again | (before.empty ? before.first | at[i - 1].others : 0);
    }
  }
  std::vector<ExprId> parts;
  for (size_t i = 0; i < end; ++i) {
    parts.push_back(Lower(in, children[i], last && i + 1 == end, at[i]));
    if (parts.back() == kFailed) return kFailed;
  }
  return ir_.Sequence(parts);
}

LarkLowering::ExprId LarkLowering::LowerRepeat(const Instance& in, const Node& node, bool last,
                                               Around around) {
  const NodeId child = scopes_[in.scope].source->tree.ChildrenOf(node)[0];
  const bool ends = last && scopes_[in.scope].ignore != GrammarIr::kEmpty;
  if (const LazyRules& lazy = *scopes_[in.scope].lazy; lazy.any()) {
    const LazyRules::Facts& round = lazy.Of(child);
    if (node.min < node.max) around.others |= around.behind;
    if (node.max > 1) {
      around.others |= round.again;
      around.behind |= round.first;
    }
  }
  if (!ends || node.max == kUnbounded) {
    // A loop without end can always go on, so its last round is like the others.
    const ExprId round = Lower(in, child, last && !ends, around);
    if (round == kFailed) return kFailed;
    return ir_.Repeat(round, node.min, node.max == kUnbounded ? GrammarIr::kUnbounded : node.max);
  }
  if (node.max == 0) return GrammarIr::kEmpty;
  const ExprId final_round = Lower(in, child, /*last=*/true, around);
  if (final_round == kFailed) return kFailed;
  if (node.max == 1) return ir_.Repeat(final_round, node.min, 1);
  const ExprId round = Lower(in, child, /*last=*/false, around);
  if (round == kFailed) return kFailed;
  const ExprId all = ir_.Sequence({ir_.Repeat(round, node.max - 1, node.max - 1), final_round});
  if (node.min == node.max) return all;
  return ir_.Choice({ir_.Repeat(round, node.min, node.max - 1), all});
}

LarkLowering::ExprId LarkLowering::LowerName(const Instance& in, const Node& node, NodeId id,
                                             bool last, Around around) {
  const ScopeState& state = scopes_[in.scope];
  const auto found = state.scope->rules.find(node.text);
  if (found == state.scope->rules.end()) {
    if (node.has_parameter || !state.scope->terminals.contains(node.text)) {
      return Fail(state, "the name '" + node.text + "' is not defined", node.place);
    }
    return LeafAt(in.scope, id, last, around.others);
  }
  const Definition& rule = found->second;
  if (rule.parametric != node.has_parameter) {
    return Fail(state,
                rule.parametric
                    ? "expected a parameter, as in '" + rule.name + "::0': this rule has one"
                    : "the rule '" + rule.name + "' has no parameter",
                node.place);
  }
  const uint64_t parameter =
      rule.parametric ? state.source->tree.parameters[node.index].Of(in.parameter) : 0;
  return CallOf(in.scope, rule, parameter, last, around);
}

// A terminal where the lazy rules `others` may stand as well.
LarkLowering::ExprId LarkLowering::LeafAt(uint32_t scope, NodeId id, bool last, LazySet others) {
  ExprId leaf = LowerLeaf(scope, id);
  if (leaf == kFailed) return kFailed;
  if (others != 0 && ir_.expr(leaf).kind == GrammarIr::Kind::kRegex) {
    const ReId text = Without(scope, ir_.expr(leaf).index, others, /*lazy=*/false);
    if (text == kFailedRe) return kFailed;
    leaf = ir_.Regex(text);
  }
  return Followed(scope, leaf, last);
}

// What is ignored may stand behind a terminal.
LarkLowering::ExprId LarkLowering::Followed(uint32_t scope, ExprId expr, bool last) {
  return last ? expr : ir_.Sequence({expr, scopes_[scope].ignore});
}

// One terminal, special token, schema or nested grammar.
LarkLowering::ExprId LarkLowering::LowerLeaf(uint32_t scope, NodeId id) {
  ScopeState& state = scopes_[scope];
  if (const auto known = state.leaves.find(id); known != state.leaves.end()) return known->second;
  const Node& node = state.source->tree.nodes[id];
  ExprId leaf = kFailed;
  switch (node.kind) {
    case Node::Kind::kSpecialToken: {
      // The same tokens are one expression; an error names where they stand first.
      if (const auto known = tokens_.find(node.text); known != tokens_.end()) return known->second;
      if (tokens_.size() == kMaxTokenSets) {
        return Fail(state,
                    "more than " + std::to_string(kMaxTokenSets) + " different special tokens",
                    node.place, ErrorCode::kLimit);
      }
      leaf = SpecialToken(state, node);
      tokens_.emplace(node.text, leaf);
      break;
    }
    case Node::Kind::kJson:
      leaf = Json(state, node.text, node.place);
      break;
    case Node::Kind::kGrammarRef:
      leaf = GrammarRef(state, node);
      break;
    case Node::Kind::kLark: {
      const uint32_t nested = ScopeOf(*state.source, node.index);
      if (nested != kFailed) leaf = StartOf(nested, node.place, state);
      break;
    }
    default: {
      const ReId text = LowerTerminal(scope, id);
      if (text != kFailedRe) leaf = ir_.Regex(text);
    }
  }
  if (leaf != kFailed) state.leaves.emplace(id, leaf);
  return leaf;
}

LarkLowering::ExprId LarkLowering::GrammarRef(const ScopeState& scope, const Node& node) {
  for (const Source& source : sources_) {
    if (source.name.empty() || source.name != node.text) continue;
    const uint32_t id = ScopeOf(source, 0);
    return id == kFailed ? kFailed : StartOf(id, node.place, scope);
  }
  return Fail(scope, "there is no grammar of the name '" + node.text + "'", node.place);
}

LarkLowering::ExprId LarkLowering::Json(const ScopeState& scope, std::string_view text, size_t at) {
  if (!options_.json_schema) {
    return Fail(scope, "JSON Schemas are not supported here", at, ErrorCode::kUnsupported);
  }
  Result<GrammarIr::Automaton> automaton = options_.json_schema(text);
  if (!automaton.ok()) {
    return Fail(scope, "in this JSON Schema: " + automaton.error().ToString(), at,
                automaton.error().code);
  }
  return ir_.Terminal(std::move(*automaton));
}

// <name>, <[1,5-10]>, <[^1,5-10]>, <[*]>
LarkLowering::ExprId LarkLowering::SpecialToken(const ScopeState& scope, const Node& node) {
  TokenSet set;
  set.place = scope.source->map.Place(node.place);
  std::string_view list = node.text;
  if (!list.starts_with("<[") || !list.ends_with("]>") || list.size() < 4) {
    set.names.push_back(node.text);
    return ir_.Tokens(std::move(set));
  }
  list = list.substr(2, list.size() - 4);
  if (list == "*") {
    set.complement = true;
    return ir_.Tokens(std::move(set));
  }
  if (list.starts_with('^')) {
    set.complement = true;
    list.remove_prefix(1);
  }
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view range = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (range.empty()) continue;
    TokenId first = 0, last = 0;
    const char* const end = range.data() + range.size();
    std::from_chars_result read = std::from_chars(range.data(), end, first);
    last = first;
    if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc() || read.ptr != end || first < 0 || last < first) {
      return Fail(scope,
                  "expected a token's id or a range such as 5-10, found '" +
                      std::string(range.substr(0, 80)) + "'",
                  node.place);
    }
    set.ranges.emplace_back(first, last);
  }
  if (set.ranges.empty()) return Fail(scope, "expected ids of tokens, found none", node.place);
  return ir_.Tokens(std::move(set));
}

std::optional<size_t> LarkLowering::ParameterUse(const Source& source, NodeId id) const {
  std::optional<size_t> first;
  std::vector<NodeId> todo = {id};
  while (!todo.empty()) {
    const Node& node = source.tree.nodes[todo.back()];
    todo.pop_back();
    const bool decides = node.kind == Node::Kind::kIf &&
                         source.tree.conditions[node.index].kind != Condition::Kind::kTrue;
    const bool passes = node.kind == Node::Kind::kName && node.has_parameter &&
                        source.tree.parameters[node.index].kind != ParameterExpr::Kind::kConstant;
    if (decides || passes) first = std::min(first.value_or(node.place), size_t{node.place});
    const auto children = source.tree.ChildrenOf(node);
    todo.insert(todo.end(), children.begin(), children.end());
  }
  return first;
}

}  // namespace pawl::lark
