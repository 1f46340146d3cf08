// Recursive descent over the words. Recursion is only on brackets and nested grammars, whose depth
// is limited. Lark ends a rule at the end of its line unless the next line begins with '|'; inside
// of brackets ends of lines mean nothing here.
#include "grammar/languages/lark_parser.h"

#include <algorithm>

#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl::lark {

Failed LarkParser::Fail(std::string message, size_t at, ErrorCode code) {
  if (!error_) error_ = Error{code, std::move(message), map_.Place(at)};
  return {};
}

Failed LarkParser::Expected(std::string_view what) {
  return Fail("expected " + std::string(what) + ", found " + Describe(Peek(), text_), Peek().begin);
}

const Token& LarkParser::Peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

bool LarkParser::IsSign(std::string_view sign, size_t ahead) const {
  return Peek(ahead).word == Word::kSign && Text(Peek(ahead)) == sign;
}

bool LarkParser::IsKeyword(std::string_view keyword) const {
  return Is(Word::kKeyword) && Text(Peek()) == keyword;
}

bool LarkParser::Take(std::string_view sign) {
  if (!IsSign(sign)) return false;
  ++at_;
  return true;
}

bool LarkParser::Require(std::string_view sign) {
  if (Take(sign)) return true;
  return Expected("'" + std::string(sign) + "'");
}

void LarkParser::SkipNewlines() {
  while (Is(Word::kNewline)) ++at_;
}

NodeId LarkParser::Add(Node node) {
  tree_.nodes.push_back(std::move(node));
  return static_cast<NodeId>(tree_.nodes.size() - 1);
}

NodeId LarkParser::AddParent(Node::Kind kind, std::span<const NodeId> children, size_t place) {
  Node node;
  node.kind = kind;
  node.place = static_cast<uint32_t>(place);
  node.first_child = static_cast<uint32_t>(tree_.children.size());
  node.child_count = static_cast<uint32_t>(children.size());
  tree_.children.insert(tree_.children.end(), children.begin(), children.end());
  return Add(std::move(node));
}

Result<Tree> LarkParser::Run() {
  tree_.scopes.emplace_back();
  if (!Items(0, /*nested=*/false)) return *error_;
  return std::move(tree_);
}

bool LarkParser::Items(uint32_t scope, bool nested) {
  for (;;) {
    SkipNewlines();
    if (nested ? IsSign("}") : Is(Word::kEnd)) return true;
    if (!Item(scope)) return false;
    if (!Is(Word::kNewline) && !Is(Word::kEnd) && !(nested && IsSign("}")))
      return Expected("the end of the line");
  }
}

bool LarkParser::Item(uint32_t scope) {
  if (Is(Word::kRule) || Is(Word::kTerminal)) return RuleOrTerminal(scope, Is(Word::kTerminal));
  if (Is(Word::kKeyword)) return Statement(scope);
  return Expected("a rule, a terminal or a statement such as %ignore");
}

bool LarkParser::Define(uint32_t scope, Definition definition, bool terminal) {
  auto& names = terminal ? tree_.scopes[scope].terminals : tree_.scopes[scope].rules;
  const auto [it, fresh] = names.try_emplace(definition.name);
  if (!fresh) {
    return Fail((terminal ? "the terminal '" : "the rule '") + definition.name +
                    "' is already defined at " + map_.Place(it->second.place),
                definition.place);
  }
  it->second = std::move(definition);
  return true;
}

bool LarkParser::RuleOrTerminal(uint32_t scope, bool terminal) {
  Definition made;
  made.place = Peek().begin;
  std::string_view name = Text(Peek());
  name.remove_prefix(std::min(name.find_first_not_of("!?"), name.size()));
  made.name = name;
  ++at_;
  if (text_.substr(Peek().begin).starts_with("::="))
    return Fail("expected ':', found '::='", Peek().begin);
  if (!terminal && Take("::")) {
    if (!Require("_")) return false;
    made.parametric = true;
  }
  if (IsSign("{"))
    return Fail("templates are not supported", Peek().begin, ErrorCode::kUnsupported);
  if (IsSign(".")) {
    return Fail(terminal ? "priorities are not supported: a text is cut into terminals in every "
                           "way that fits"
                         : "priorities are not supported: every derivation counts",
                Peek().begin, ErrorCode::kUnsupported);
  }
  if (terminal && IsSign("[")) {
    return Fail("attributes are for rules; a rule whose body is a terminal takes them",
                Peek().begin);
  }
  if (IsSign("[") && !Attributes(made)) return false;
  if (!Require(":")) return false;
  const auto body = Expansions(/*inside=*/false);
  if (!body) return false;
  made.body = *body;
  return Define(scope, std::move(made), terminal);
}

bool LarkParser::Attributes(Definition& rule) {
  rule.attribute_place = Peek().begin;
  ++at_;
  SkipNewlines();
  while (!IsSign("]")) {
    if (!Attribute(rule)) return false;
    SkipNewlines();
    if (!Take(",")) break;
    SkipNewlines();
  }
  return Require("]");
}

bool LarkParser::Attribute(Definition& rule) {
  if (!Is(Word::kRule)) return Expected("an attribute");
  const Token key_token = Peek();
  const std::string_view key = Text(key_token);
  ++at_;
  const bool again =
      (key == "lazy" && rule.lazy) || (key == "capture" && rule.capture) ||
      (key == "stop_capture" && rule.stop_capture) || (key == "max_tokens" && rule.max_tokens) ||
      (key == "max_chars" && rule.max_chars) || (key == "temperature" && rule.temperature);
  if (again)
    return Fail("the attribute '" + std::string(key) + "' stands here twice", key_token.begin);
  if (key == "lazy") {
    rule.lazy = true;
    return true;
  }
  if (key == "capture") {
    rule.capture = rule.name;
    if (!Take("=")) return true;
    rule.capture = CaptureName();
    return rule.capture.has_value();
  }
  const auto known = {"stop", "suffix", "stop_capture", "max_tokens", "max_chars", "temperature"};
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    return Fail(
        "expected one of capture lazy stop suffix stop_capture max_tokens max_chars temperature, "
        "found '" +
            std::string(key) + "'",
        key_token.begin);
  }
  if (!Require("=")) return false;
  if (key == "max_tokens") {
    const auto value = Integer("a number of tokens", options_.as_xgrammar ? 1 : 0, INT32_MAX);
    if (value) rule.max_tokens = static_cast<uint32_t>(*value);
  } else if (key == "max_chars") {
    const auto value = Integer("a number of characters", 0, INT32_MAX);
    if (value) rule.max_chars = static_cast<uint32_t>(*value);
  } else if (key == "temperature") {
    rule.temperature = Real();
  } else if (key == "stop_capture") {
    rule.stop_capture_place = key_token.begin;
    rule.stop_capture = CaptureName();
  } else {
    if (rule.stop != kNoNode || rule.suffix != kNoNode)
      return Fail("expected one 'stop' or 'suffix', found another", key_token.begin);
    const auto value = Value();
    if (value) (key == "stop" ? rule.stop : rule.suffix) = *value;
  }
  return !error_.has_value();
}

// XGrammar's names of captures are words.
std::optional<std::string> LarkParser::CaptureName() {
  const size_t place = Peek().begin;
  std::optional<std::string> name = PlainString();
  if (!name) return name;
  if (name->empty()) return Fail("expected a name for the capture", place);
  constexpr std::string_view kWord =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  if (options_.as_xgrammar && name->find_first_not_of(kWord) != std::string::npos)
    return Fail("expected a name of letters, digits, '_', '-' and '.'", place);
  return name;
}

bool LarkParser::Statement(uint32_t scope) {
  const Token keyword = Peek();
  const std::string_view name = Text(keyword);
  ++at_;
  if (name == "%ignore") {
    const auto body = Expansions(/*inside=*/false);
    if (!body) return false;
    tree_.scopes[scope].ignores.push_back(*body);
    return true;
  }
  if (name == "%import") return Import(scope);
  if (name == "%llguidance" || name == "%grammar_options") return Options(scope);
  if (name == "%override" || name == "%declare") {
    return Fail("'" + std::string(name) + "' is not supported", keyword.begin,
                ErrorCode::kUnsupported);
  }
  --at_;
  return Expected("a rule, a terminal or one of %ignore %import %llguidance");
}

// %import common.NAME, %import common.NAME -> OTHER, %import common (NAME, NAME)
bool LarkParser::Import(uint32_t scope) {
  const bool common = Is(Word::kRule) && Text(Peek()) == "common";
  if (!common || (!IsSign(".", 1) && !IsSign("(", 1))) {
    return Fail("expected 'common.NAME' or 'common (NAME, ...)', found " + Describe(Peek(), text_) +
                    "; other imports are not supported",
                Peek().begin, ErrorCode::kUnsupported);
  }
  ++at_;
  if (Take(".")) {
    if (!Is(Word::kTerminal)) return Expected("the name of a terminal");
    const Token what = Peek();
    std::string_view alias = Text(what);
    ++at_;
    if (Take("->")) {
      if (!Is(Word::kTerminal)) return Expected("a name in capital letters");
      alias = Text(Peek());
      ++at_;
    }
    return ImportCommon(scope, what, Text(what), alias);
  }
  ++at_;
  do {
    SkipNewlines();
    if (!Is(Word::kTerminal)) return Expected("the name of a terminal");
    const Token what = Peek();
    ++at_;
    if (!ImportCommon(scope, what, Text(what), Text(what))) return false;
    SkipNewlines();
  } while (Take(","));
  return Require(")");
}

bool LarkParser::ImportCommon(uint32_t scope, const Token& what, std::string_view name,
                              std::string_view alias) {
  const std::string_view pattern = CommonTerminal(name);
  if (pattern.empty()) {
    return Fail("expected one of common's terminals (" + CommonTerminalNames() + "), found '" +
                    std::string(name.substr(0, 80)) + "'",
                what.begin);
  }
  Node node;
  node.kind = Node::Kind::kRegex;
  node.place = what.begin;
  node.text = pattern;
  Definition terminal;
  terminal.name = alias;
  terminal.place = what.begin;
  terminal.body = Add(std::move(node));
  return Define(scope, std::move(terminal), /*terminal=*/true);
}

bool LarkParser::Options(uint32_t scope) {
  const Token token = Peek();
  ++at_;
  const auto value = Json(token);
  if (!value) return false;
  if (value->type != json::Type::kObject)
    return Fail("expected an object after %llguidance", token.begin);
  for (const json::Member& member : value->members) {
    if (!member.second.is_bool())
      return Fail("expected true or false for \"" + member.first + "\"", token.begin);
    const bool on = member.second.type == json::Type::kTrue;
    if (member.first == "ignore_once") {
      tree_.scopes[scope].ignore_once = on;
    } else if (member.first == "allow_initial_skip") {
      tree_.scopes[scope].allow_initial_skip = on;
    } else if (member.first == "no_forcing") {
      // Says how forced text becomes tokens; a grammar does not decide that here.
    } else if (!on && member.first == "allow_invalid_utf8") {
    } else {
      const bool known = member.first == "allow_invalid_utf8";
      return Fail(known ? "the option \"" + member.first + "\" is not supported"
                        : "there is no option \"" + member.first.substr(0, 80) + "\"",
                  token.begin, known ? ErrorCode::kUnsupported : ErrorCode::kInvalid);
    }
  }
  return true;
}

std::optional<NodeId> LarkParser::Expansions(bool inside) {
  const size_t place = Peek().begin;
  if (depth_ > options_.max_nesting) {
    return Fail("brackets nest deeper than " + std::to_string(options_.max_nesting), place,
                ErrorCode::kLimit);
  }
  std::vector<NodeId> alternatives;
  for (;;) {
    const auto alternative = Alternative(inside);
    if (!alternative) return std::nullopt;
    alternatives.push_back(*alternative);
    if (Take("|")) continue;
    if (!IsSign("|", 1) || !Is(Word::kNewline)) break;
    at_ += 2;
  }
  if (alternatives.size() == 1) return alternatives[0];
  return AddParent(Node::Kind::kChoice, alternatives, place);
}

std::optional<NodeId> LarkParser::Alternative(bool inside) {
  const size_t place = Peek().begin;
  std::vector<NodeId> operands;
  do {
    const auto operand = Expansion(inside);
    if (!operand) return std::nullopt;
    operands.push_back(*operand);
  } while (Take("&"));
  NodeId node = operands.size() == 1 ? operands[0] : AddParent(Node::Kind::kAnd, operands, place);
  if (Take("->")) {
    if (!Is(Word::kRule)) return Expected("a name in small letters after '->'");
    ++at_;
  }
  if (!IsKeyword("%if")) return node;
  const size_t condition_place = Peek().begin;
  ++at_;
  const auto condition = ParseCondition(0);
  if (!condition) return std::nullopt;
  if (inside) SkipNewlines();
  node = AddParent(Node::Kind::kIf, {{node}}, condition_place);
  tree_.nodes[node].index = *condition;
  return node;
}

std::optional<NodeId> LarkParser::Expansion(bool inside) {
  const size_t place = Peek().begin;
  std::vector<NodeId> parts;
  for (;;) {
    if (inside) SkipNewlines();
    if (Is(Word::kNewline) || Is(Word::kEnd) || IsSign("|") || IsSign("->") || IsSign("}") ||
        IsSign(")") || IsSign("]") || IsSign("&") || IsKeyword("%if")) {
      break;
    }
    const auto part = Expression();
    if (!part) return std::nullopt;
    parts.push_back(*part);
  }
  if (parts.size() == 1) return parts[0];
  return AddParent(Node::Kind::kSequence, parts, place);
}

std::optional<NodeId> LarkParser::Expression() {
  const auto atom = Atom();
  return atom ? Repeated(*atom) : atom;
}

// One of ? * + ~n ~n..m {n} {n,} {,m} {n,m}, or nothing.
std::optional<NodeId> LarkParser::Repeated(NodeId atom) {
  const size_t place = Peek().begin;
  int64_t min = 0, max = INT32_MAX;
  if (Take("?")) {
    max = 1;
  } else if (Take("*")) {
  } else if (Take("+")) {
    min = 1;
  } else if (IsSign("~") && Peek(1).word == Word::kNumber) {
    ++at_;
    const auto low = Integer("a count", 0, INT32_MAX);
    if (!low) return std::nullopt;
    const auto high = Take("..") ? Integer("a count", 0, INT32_MAX) : low;
    if (!high) return std::nullopt;
    min = *low;
    max = *high;
  } else if (Take("{")) {
    if (!IsSign(",")) {
      const auto low = Integer("a count", 0, INT32_MAX);
      if (!low) return std::nullopt;
      min = max = *low;
    }
    if (Take(",")) {
      max = INT32_MAX;
      if (!IsSign("}")) {
        const auto high = Integer("a count", 0, INT32_MAX);
        if (!high) return std::nullopt;
        max = *high;
      }
    }
    if (!Require("}")) return std::nullopt;
    if (max == 0 && !options_.as_xgrammar) return Fail("expected a largest count above 0", place);
  } else {
    return atom;
  }
  if (max < min) return Fail("expected a largest count that is not below the smallest", place);
  const NodeId node = AddParent(Node::Kind::kRepeat, {{atom}}, place);
  tree_.nodes[node].min = static_cast<uint32_t>(min);
  tree_.nodes[node].max = max == INT32_MAX ? kUnbounded : static_cast<uint32_t>(max);
  return node;
}

std::optional<NodeId> LarkParser::Atom() {
  StopScope::Step();
  const size_t place = Peek().begin;
  const bool negated = Take("~");
  std::optional<NodeId> node;
  if (IsSign("(") || IsSign("[")) {
    const bool optional = IsSign("[");
    ++at_;
    ++depth_;
    node = Expansions(/*inside=*/true);
    if (!node) return std::nullopt;
    --depth_;
    const std::string close = optional ? "]" : ")";
    if (!Take(close))
      return Expected("'" + close + "' to close the bracket at " + map_.Place(place));
    if (optional) {
      node = AddParent(Node::Kind::kRepeat, {{*node}}, place);
      tree_.nodes[*node].max = 1;
    }
  } else {
    node = Value();
  }
  if (!node || !negated) return node;
  return AddParent(Node::Kind::kNot, {{*node}}, place);
}

std::optional<NodeId> LarkParser::Value() {
  const Token token = Peek();
  const std::string_view written = Text(token);
  Node node;
  node.place = token.begin;
  switch (token.word) {
    case Word::kString:
      return String();
    case Word::kRegex: {
      const size_t end = written.rfind('/');
      node.kind = Node::Kind::kRegex;
      node.text = written.substr(1, end - 1);
      node.flags = written.substr(end + 1);
      break;
    }
    case Word::kGrammarRef:
      node.kind = Node::Kind::kGrammarRef;
      node.text = written.substr(1);
      break;
    case Word::kSpecialToken:
      node.kind = Node::Kind::kSpecialToken;
      node.text = written;
      break;
    case Word::kKeyword:
      if (written == "%lark") return Lark();
      if (written != "%json" && written != "%regex") return Expected("a value");
      ++at_;
      node.kind = written == "%json" ? Node::Kind::kJson : Node::Kind::kRegexExt;
      if (!Json(Peek())) return std::nullopt;
      node.place = Peek().begin;
      node.text = Text(Peek());
      break;
    case Word::kRule:
    case Word::kTerminal:
      node.kind = Node::Kind::kName;
      node.text = written;
      if (IsSign("{", 1) && !IsSign(",", 2) && Peek(2).word != Word::kNumber)
        return Fail("templates are not supported", Peek(1).begin, ErrorCode::kUnsupported);
      if (IsSign("::", 1)) {
        at_ += 2;
        const auto parameter = Parameter();
        if (!parameter) return std::nullopt;
        node.has_parameter = true;
        node.index = *parameter;
        return Add(std::move(node));
      }
      break;
    default:
      return Expected("a name, a string, a regular expression or another value");
  }
  ++at_;
  return Add(std::move(node));
}

// A string, or a range "a".."z".
std::optional<NodeId> LarkParser::String() {
  const Token token = Peek();
  Node node;
  node.place = token.begin;
  auto text = Decoded(token, node.ignore_case);
  if (!text) return std::nullopt;
  ++at_;
  node.kind = Node::Kind::kString;
  node.text = std::move(*text);
  if (!IsSign("..")) return Add(std::move(node));
  ++at_;
  if (!Is(Word::kString)) return Expected("a string after '..'");
  bool ignore_case = false;
  const auto last = Decoded(Peek(), ignore_case);
  if (!last) return std::nullopt;
  if (node.ignore_case || ignore_case) return Fail("expected no flag in a range", token.begin);
  node.kind = Node::Kind::kRange;
  const auto is_one = [](std::string_view s) {
    return !s.empty() && DecodeUtf8(s).length == static_cast<int>(s.size());
  };
  if (!is_one(node.text)) return Fail("expected one character as the range's start", token.begin);
  if (!is_one(*last)) return Fail("expected one character as the range's end", Peek().begin);
  if (DecodeUtf8(node.text).codepoint > DecodeUtf8(*last).codepoint)
    return Fail("expected a range whose end is not before its start", token.begin);
  node.text += *last;
  ++at_;
  return Add(std::move(node));
}

std::optional<NodeId> LarkParser::Lark() {
  Node node;
  node.place = Peek().begin;
  node.kind = Node::Kind::kLark;
  ++at_;
  if (!Require("{")) return std::nullopt;
  ++depth_;
  node.index = static_cast<uint32_t>(tree_.scopes.size());
  tree_.scopes.emplace_back();
  tree_.scopes.back().place = node.place;
  if (!Items(node.index, /*nested=*/true)) return std::nullopt;
  --depth_;
  ++at_;  // the '}'
  return Add(std::move(node));
}

Result<Tree> Parse(std::string_view text, const SourceMap& map, const ParseOptions& options) {
  Result<std::vector<Token>> tokens = Tokenize(text, map);
  if (!tokens.ok()) return tokens.error();
  return LarkParser(text, map, options, std::move(*tokens)).Run();
}

}  // namespace pawl::lark
