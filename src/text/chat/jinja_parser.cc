// Statements: one pass over the tokens with a stack of the blocks that are open. A block remembers
// the jumps that lead to its end or its next branch, and they are filled in when that is reached.
//
//   {% if a %}A{% else %}B{% endif %}       a, jump-if-false 1, A, jump 2, 1: B, 2:
//   {% for x in s if c %}A{% else %}B       s, for-begin, 1: filter-next 2, store x, c,
//   filter-keep, jump 1,
//   {% endfor %}                            2: for-next 3, store x, A, for-continue 2, 3: for-else
//   4, B, 4:
//   {% macro m(p=d) %}A{% endmacro %}       macro, store m, jump 2, argument p 1, d, store p, 1: A,
//   return, 2:
#include "src/text/chat/jinja_parser.h"

#include "src/base/json.h"

namespace pawl::jinja {
namespace {

const char* BlockName(int kind) {
  static constexpr const char* kNames[] = {"if", "for", "set", "macro", "call", "generation"};
  return kNames[kind];
}

}  // namespace

bool Parser::Fail(const Token& token, std::string message, ErrorCode code) {
  if (!error_) error_ = Error{code, std::move(message), PlaceOf(program_.source, token.offset)};
  return false;
}
bool Parser::FailExpected(std::string_view what) {
  return Fail(Now(), "expected " + std::string(what) + ", found " + Describe(Now()));
}
bool Parser::TakeName(std::string_view name) {
  if (!Now().IsName(name)) return false;
  Next();
  return true;
}
bool Parser::TakeOperator(std::string_view op) {
  if (!Now().Is(op)) return false;
  Next();
  return true;
}
bool Parser::ExpectOperator(std::string_view op) {
  return TakeOperator(op) || FailExpected("'" + std::string(op) + "'");
}
bool Parser::ExpectTagEnd() {
  if (Now().kind != Token::Kind::kTagEnd) return FailExpected("'%}'");
  Next();
  return true;
}

size_t Parser::Emit(Op op, int32_t a, int32_t b) {
  program_.code.push_back({op, a, b, static_cast<uint32_t>(Now().offset)});
  return program_.code.size() - 1;
}
int32_t Parser::RelativeTo(size_t target) const {
  return static_cast<int32_t>(static_cast<int64_t>(target) -
                              static_cast<int64_t>(program_.code.size()));
}
void Parser::Patch(size_t at) {
  Instruction& jump = program_.code[at];
  const auto distance = static_cast<int32_t>(program_.code.size() - at);
  (jump.op == Op::kArgument ? jump.b : jump.a) = distance;
}
int32_t Parser::String(std::string text) {
  program_.strings.emplace_back(std::move(text));
  return static_cast<int32_t>(program_.strings.size()) - 1;
}
int32_t Parser::Name(std::string_view name) {
  if (const auto found = names_.find(name); found != names_.end()) return found->second;
  program_.names.emplace_back(name);
  const auto index = static_cast<int32_t>(program_.names.size()) - 1;
  names_.emplace(name, index);
  return index;
}

std::optional<Error> Parser::Run() {
  while (!error_ && Now().kind != Token::Kind::kEnd) {
    if (Now().kind == Token::Kind::kText) {
      Emit(Op::kText, String(Now().text));
      Next();
    } else if (Now().kind == Token::Kind::kOutputBegin) {
      Next();
      const size_t at = Now().offset;
      if (!Expression(true)) break;
      if (Now().kind != Token::Kind::kOutputEnd) {
        FailExpected("an operator or '}}'");
        break;
      }
      program_.code[Emit(Op::kOutput)].offset = static_cast<uint32_t>(at);
      Next();
    } else {
      Next();
      if (!Tag()) break;
    }
  }
  if (!error_ && !blocks_.empty()) {
    const std::string name = BlockName(static_cast<int>(blocks_.back().kind));
    Token open{Token::Kind::kName, "", blocks_.back().offset};
    Fail(open, "'" + name + "' is not closed; expected {% end" + name + " %}");
  }
  Emit(Op::kEnd);
  return error_;
}

bool Parser::Tag() {
  const Token tag = Now();
  if (tag.kind != Token::Kind::kName) return FailExpected("the name of a tag");
  Next();
  if (tag.text == "if") return Begin(Block::Kind::kIf, tag) && If();
  if (tag.text == "elif" || tag.text == "else") return Branch(tag);
  if (tag.text == "for") return Begin(Block::Kind::kFor, tag) && For();
  if (tag.text == "set") return Set();
  if (tag.text == "macro") return Begin(Block::Kind::kMacro, tag) && Macro();
  if (tag.text == "call") return Begin(Block::Kind::kCall, tag) && CallBlock();
  if (tag.text == "break" || tag.text == "continue") return Leave(tag);
  if (tag.text == "generation") {
    Emit(Op::kPushScope);
    return Begin(Block::Kind::kGeneration, tag) && ExpectTagEnd();
  }
  if (tag.text.starts_with("end")) return End(tag);
  return Fail(
      tag,
      "there is no tag " + json::Quote(tag.text) +
          "; expected if, elif, else, for, break, continue, set, macro, call, raw, generation or "
          "the end of one",
      ErrorCode::kUnsupported);
}

bool Parser::Begin(Block::Kind kind, const Token& token) {
  Block block{};
  block.kind = kind;
  block.offset = token.offset;
  blocks_.push_back(std::move(block));
  return true;
}

bool Parser::If() {
  if (!Expression(true)) return false;
  blocks_.back().next = Emit(Op::kJumpIfFalse);
  return ExpectTagEnd();
}

bool Parser::Branch(const Token& tag) {
  const bool in_if = !blocks_.empty() && blocks_.back().kind == Block::Kind::kIf;
  const bool in_for = !blocks_.empty() && blocks_.back().kind == Block::Kind::kFor;
  if ((!in_if && !(in_for && tag.text == "else")) || blocks_.back().in_else) {
    return Fail(
        tag, "'" + tag.text + "' without an open 'if'" + (tag.text == "else" ? " or 'for'" : ""));
  }
  Block& block = blocks_.back();
  if (in_for) {
    EndFor(block);
    block.ends = {Emit(Op::kForElse)};
    block.in_else = true;
    return ExpectTagEnd();
  }
  block.ends.push_back(Emit(Op::kJump));
  Patch(*block.next);
  block.next.reset();
  if (tag.text == "elif") return If();
  block.in_else = true;
  return ExpectTagEnd();
}

bool Parser::For() {
  std::vector<std::string> targets;
  if (!Targets(targets, false)) return false;
  if (!TakeName("in")) return FailExpected("'in'");
  if (!Expression(true, false)) return false;
  Emit(Op::kForBegin);
  if (TakeName("if")) {
    const size_t again = Emit(Op::kFilterNext);
    StoreTargets(targets);
    if (!Expression(false)) return false;
    Emit(Op::kFilterKeep);
    Emit(Op::kJump, RelativeTo(again));
    Patch(again);
  }
  if (Now().IsName("recursive")) {
    return Fail(Now(), "recursive loops are not supported; expected '%}'", ErrorCode::kUnsupported);
  }
  Block& block = blocks_.back();
  block.again = Emit(Op::kForNext);
  block.ends.push_back(block.again);
  StoreTargets(targets);
  return ExpectTagEnd();
}

// The end of the rounds.
void Parser::EndFor(Block& block) {
  Emit(Op::kForContinue, RelativeTo(block.again), 1);
  for (const size_t jump : block.ends) Patch(jump);
  block.ends.clear();
}

bool Parser::Leave(const Token& tag) {
  for (size_t i = blocks_.size(); i-- > 0;) {
    Block& block = blocks_[i];
    if (block.kind == Block::Kind::kIf) continue;
    if (block.kind != Block::Kind::kFor || block.in_else) break;
    if (tag.text == "break") {
      block.ends.push_back(Emit(Op::kForBreak));
    } else {
      Emit(Op::kForContinue, RelativeTo(block.again));
    }
    return ExpectTagEnd();
  }
  return Fail(tag, "'" + tag.text + "' outside of a loop's rounds");
}

bool Parser::Targets(std::vector<std::string>& targets, bool attributes) {
  const bool bracket = TakeOperator("(");
  for (;;) {
    if (Now().kind != Token::Kind::kName || Now().text == "in") {
      return FailExpected("the name of a variable");
    }
    std::string name = Now().text;
    for (const char* word : {"true", "false", "none", "True", "False", "None"}) {
      if (name == word) return FailExpected("the name of a variable");
    }
    Next();
    if (attributes && targets.empty() && TakeOperator(".")) {
      if (Now().kind != Token::Kind::kName) return FailExpected("the name of an attribute");
      name += "." + Now().text;
      Next();
    }
    targets.push_back(std::move(name));
    if (!TakeOperator(",")) break;
    if (Now().Is(")") || Now().Is("=") || Now().IsName("in")) {
      if (targets.size() == 1) {
        return Fail(Now(), "a tuple of one variable is not supported; expected another variable",
                    ErrorCode::kUnsupported);
      }
      break;
    }
  }
  for (const std::string& name : targets) {
    if (targets.size() > 1 && name.find('.') != std::string::npos) {
      return FailExpected("one attribute alone");
    }
  }
  return !bracket || ExpectOperator(")");
}

void Parser::StoreTargets(const std::vector<std::string>& targets) {
  if (targets.size() > 1) Emit(Op::kUnpack, static_cast<int32_t>(targets.size()));
  for (const std::string& target : targets) {
    if (const size_t dot = target.find('.'); dot != std::string::npos) {
      Emit(Op::kStoreAttribute, Name(target.substr(0, dot)), Name(target.substr(dot + 1)));
    } else {
      Emit(Op::kStore, Name(target));
    }
  }
}

bool Parser::Set() {
  const Token tag = tokens_[at_ - 1];
  std::vector<std::string> targets;
  if (!Targets(targets, true)) return false;
  if (TakeOperator("=")) {
    if (!Expression(true)) return false;
    StoreTargets(targets);
    return ExpectTagEnd();
  }
  if (targets.size() > 1) return FailExpected("'='");
  Begin(Block::Kind::kSet, tag);
  Block& block = blocks_.back();
  block.targets = std::move(targets);
  if (Now().Is("|")) {
    // They are applied at the end of the block, and read there.
    block.filters = at_;
    while (Now().kind != Token::Kind::kTagEnd) Next();
  } else if (Now().kind != Token::Kind::kTagEnd) {
    return FailExpected("'=', '|' or '%}'");
  }
  Emit(Op::kPushScope);
  Emit(Op::kPushBuffer);
  return ExpectTagEnd();
}

bool Parser::Parameters(MacroCode& macro, std::vector<std::pair<int32_t, size_t>>* defaults) {
  if (!ExpectOperator("(")) return false;
  while (!TakeOperator(")")) {
    if (!macro.parameters.empty() && !ExpectOperator(",")) return false;
    if (Now().kind != Token::Kind::kName) return FailExpected("the name of a parameter");
    for (const std::string& name : macro.parameters) {
      if (name == Now().text)
        return Fail(Now(), "the parameter " + json::Quote(name) + " is there twice");
    }
    if (macro.parameters.size() >= kMaxNames) {
      return Fail(Now(), "more than 256 parameters", ErrorCode::kLimit);
    }
    macro.parameters.push_back(Now().text);
    Next();
    if (Now().Is("=")) {
      if (defaults == nullptr) return FailExpected("',' or ')'");
      Next();
      defaults->emplace_back(static_cast<int32_t>(macro.parameters.size()) - 1, at_);
      for (int depth = 0;
           Now().kind == Token::Kind::kName || Now().kind == Token::Kind::kOperator ||
           Now().kind == Token::Kind::kString || Now().kind == Token::Kind::kInteger ||
           Now().kind == Token::Kind::kFloat;
           Next()) {
        if (depth == 0 && (Now().Is(",") || Now().Is(")"))) break;
        if (Now().Is("(") || Now().Is("[") || Now().Is("{")) ++depth;
        if (Now().Is(")") || Now().Is("]") || Now().Is("}")) --depth;
      }
    } else if (defaults != nullptr && !defaults->empty()) {
      return FailExpected("'=': parameters behind one with a default need one");
    }
  }
  return true;
}

bool Parser::Defaults(const MacroCode& macro,
                      const std::vector<std::pair<int32_t, size_t>>& defaults) {
  const size_t here = at_;
  for (const auto& [parameter, token] : defaults) {
    const size_t jump = Emit(Op::kArgument, parameter);
    at_ = token;
    if (!Expression(false)) return false;
    if (!Now().Is(",") && !Now().Is(")")) return FailExpected("',' or ')'");
    Emit(Op::kStore, Name(macro.parameters[static_cast<size_t>(parameter)]));
    Patch(jump);
  }
  at_ = here;
  return true;
}

bool Parser::Macro() {
  if (Now().kind != Token::Kind::kName) return FailExpected("the name of the macro");
  MacroCode macro;
  macro.name = Now().text;
  Next();
  std::vector<std::pair<int32_t, size_t>> defaults;
  if (!Parameters(macro, &defaults)) return false;
  const size_t index = program_.macros.size();
  program_.macros.push_back(macro);
  Emit(Op::kMacro, static_cast<int32_t>(index));
  Emit(Op::kStore, Name(macro.name));
  blocks_.back().ends.push_back(Emit(Op::kJump));
  program_.macros[index].entry = static_cast<int32_t>(program_.code.size());
  return Defaults(macro, defaults) && ExpectTagEnd();
}

// The body is a macro, "caller", that is pushed before the call.
bool Parser::CallBlock() {
  MacroCode macro;
  macro.name = "caller";
  if (Now().Is("(") && !Parameters(macro, nullptr)) return false;
  const size_t index = program_.macros.size();
  program_.macros.push_back(macro);
  Emit(Op::kMacro, static_cast<int32_t>(index));
  if (Now().kind != Token::Kind::kName || !Peek().Is("("))
    return FailExpected("the call of a macro");
  const size_t begin = at_ + 1;
  if (!Expression(false, false)) return false;
  int depth = 0;
  for (size_t i = begin; i < at_; ++i) {
    if (tokens_[i].Is("(") || tokens_[i].Is("[") || tokens_[i].Is("{")) ++depth;
    if (tokens_[i].Is(")") || tokens_[i].Is("]") || tokens_[i].Is("}")) --depth;
    if (depth == 0 && i + 1 < at_) return Fail(tokens_[i + 1], "expected '%}' behind the call");
  }
  program_.code.back().b = 1;
  Emit(Op::kOutput);
  blocks_.back().ends.push_back(Emit(Op::kJump));
  program_.macros[index].entry = static_cast<int32_t>(program_.code.size());
  return ExpectTagEnd();
}

bool Parser::End(const Token& tag) {
  if (blocks_.empty() || tag.text.substr(3) != BlockName(static_cast<int>(blocks_.back().kind))) {
    return Fail(
        tag,
        "'" + tag.text + "' does not fit; expected " +
            (blocks_.empty()
                 ? std::string("no end of a block here")
                 : "'end" + std::string(BlockName(static_cast<int>(blocks_.back().kind))) + "'"));
  }
  Block block = std::move(blocks_.back());
  blocks_.pop_back();
  switch (block.kind) {
    case Block::Kind::kIf:
      if (block.next) Patch(*block.next);
      break;
    case Block::Kind::kFor:
      if (!block.in_else) EndFor(block);
      break;
    case Block::Kind::kSet: {
      Emit(Op::kPopBuffer);
      Emit(Op::kPopScope);
      if (block.filters != 0) {
        const size_t here = at_;
        at_ = block.filters;
        if (!Expression(false, false, true)) return false;
        if (Now().kind != Token::Kind::kTagEnd) return FailExpected("'|' or '%}'");
        at_ = here;
      }
      StoreTargets(block.targets);
      break;
    }
    case Block::Kind::kMacro:
    case Block::Kind::kCall:
      Emit(Op::kReturn);
      break;
    case Block::Kind::kGeneration:
      Emit(Op::kPopScope);
      break;
  }
  for (const size_t jump : block.ends) Patch(jump);
  // {% endmacro name %} and the like are fine in Jinja for blocks only.
  return ExpectTagEnd();
}

Result<Program> ParseTemplate(std::string_view source) {
  Program program;
  program.source = NormalizedSource(source);
  Result<std::vector<Token>> tokens = Tokenize(program.source);
  if (!tokens.ok()) return tokens.error();
  Parser parser(program, *std::move(tokens));
  if (std::optional<Error> error = parser.Run()) return *error;
  return program;
}

}  // namespace pawl::jinja
