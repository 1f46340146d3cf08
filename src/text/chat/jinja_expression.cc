// Expressions are read by operator precedence with an explicit stack of what is open. The parser is
// always in one of two states: it wants a value, or it has one and wants an operator. Values and
// finished operators become instructions at once. "and", "or" and chains of comparisons become
// jumps when they are met. For "a if b else c" the code of a, which has been written already, is
// taken out again and put behind that of b; jumps are relative, so it may move.
//
// Precedence, loosest first, is Jinja's: if/else, or, and, not, comparisons and in, + and -, ~,
// * / // %, **, signs, filters and tests, then . [] ().
#include <charconv>
#include <cstdlib>

#include "src/base/json.h"
#include "src/text/chat/jinja_parser.h"

namespace pawl::jinja {
namespace {

// Instructions that conditions may move, so that reading takes linear time.
constexpr size_t kMaxMoved = 20'000'000;

enum Precedence { kOr = 1, kAnd, kNot, kCompare, kSum, kJoin, kProduct, kPower, kSign };

template <typename Table>
std::string NamesOf(const Table& table) {
  std::string names;
  for (const auto& entry : table) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

}  // namespace

void Parser::Push(Pending::Kind kind, int precedence, Op op) {
  Pending entry{};
  entry.kind = kind;
  entry.precedence = precedence;
  entry.op = op;
  entry.offset = Now().offset;
  entry.start = program_.code.size();
  pending_.push_back(std::move(entry));
}

bool Parser::Expression(bool tuple, bool condition, bool has_value) {
  pending_.clear();
  allow_tuple_ = tuple;
  allow_condition_ = condition;
  want_value_ = !has_value;
  postfix_ = false;
  Push(Pending::Kind::kTop);
  pending_.back().has_item = has_value;
  for (bool done = false; !done;) {
    if (!(want_value_ ? Operand() : Operator(done))) return false;
    // "1, 2," before the end of a tag.
    const bool ends = Now().kind == Token::Kind::kTagEnd || Now().kind == Token::Kind::kOutputEnd;
    if (want_value_ && ends && pending_.size() == 1 && pending_[0].comma) done = true;
  }
  const Pending& top = pending_.back();
  if (top.comma) Emit(Op::kTuple, top.count + (top.has_item ? 1 : 0));
  return true;
}

// ---- a value is wanted ----

bool Parser::Operand() {
  const Token token = Now();
  Pending& open = pending_.back();
  const bool call = open.kind == Pending::Kind::kCall || open.kind == Pending::Kind::kMethod ||
                    open.kind == Pending::Kind::kFilter || open.kind == Pending::Kind::kTest;
  if (token.kind == Token::Kind::kOperator) {
    if (token.text == "-" || token.text == "+") {
      if (open.kind == Pending::Kind::kTestOperand) return FailExpected("a value");
      Push(Pending::Kind::kSign, kSign, token.text == "-" ? Op::kNegate : Op::kPlus);
      Next();
      return true;
    }
    if (token.text == "(" || token.text == "[" || token.text == "{") {
      Push(token.text == "("   ? Pending::Kind::kGroup
           : token.text == "[" ? Pending::Kind::kList
                               : Pending::Kind::kDict);
      Next();
      return true;
    }
    if (call && (token.text == "*" || token.text == "**")) {
      return Fail(token, "arguments that are unpacked are not supported; expected a value",
                  ErrorCode::kUnsupported);
    }
    return CloseEmpty();
  }
  if (call && token.kind == Token::Kind::kName && Peek().Is("=")) {
    if (!open.name.empty()) return FailExpected("a value");
    open.name = token.text;
    Next();
    Next();
    return true;
  }
  if (token.IsName("not")) {
    const bool fits = open.kind == Pending::Kind::kAnd || open.kind == Pending::Kind::kOr ||
                      open.kind == Pending::Kind::kNot || open.precedence == 0;
    if (!fits || open.kind == Pending::Kind::kTestOperand) return FailExpected("a value");
    Push(Pending::Kind::kNot, kNot, Op::kNot);
    Next();
    return true;
  }
  if (!Literal()) return false;
  want_value_ = false;
  postfix_ = true;
  return true;
}

bool Parser::Literal() {
  const Token token = Now();
  switch (token.kind) {
    case Token::Kind::kString: {
      std::string text;
      for (; Now().kind == Token::Kind::kString; Next()) text += Now().text;
      Emit(Op::kString, String(std::move(text)));
      return true;
    }
    case Token::Kind::kInteger: {
      int64_t value = 0;
      const auto [end, error] =
          std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
      if (error != std::errc()) return Fail(token, "an integer beyond 64 bits", ErrorCode::kLimit);
      program_.integers.push_back(value);
      Emit(Op::kInteger, static_cast<int32_t>(program_.integers.size()) - 1);
      break;
    }
    case Token::Kind::kFloat:
      program_.floats.push_back(std::strtod(token.text.c_str(), nullptr));
      Emit(Op::kFloat, static_cast<int32_t>(program_.floats.size()) - 1);
      break;
    case Token::Kind::kName: {
      for (const char* word : {"and", "or", "in", "is", "if", "else", "elif"}) {
        if (token.text == word) return FailExpected("a value");
      }
      const auto constant = [&](Constant value) {
        Emit(Op::kConstant, static_cast<int32_t>(value));
      };
      if (token.text == "true" || token.text == "True") {
        constant(Constant::kTrue);
      } else if (token.text == "false" || token.text == "False") {
        constant(Constant::kFalse);
      } else if (token.text == "none" || token.text == "None") {
        constant(Constant::kNone);
      } else {
        Emit(Op::kName, Name(token.text));
      }
      break;
    }
    default:
      return FailExpected("a value");
  }
  Next();
  return true;
}

// A bracket that closes, or a colon, where a value could stand: an empty bracket, a comma before
// it, or a part of a slice that is left out.
bool Parser::CloseEmpty() {
  Pending& open = pending_.back();
  const Token& token = Now();
  const bool nothing = !open.has_item && open.name.empty() && !open.value;
  switch (open.kind) {
    case Pending::Kind::kItem:
      if (token.Is(":") || (token.Is("]") && open.count > 0)) {
        Emit(Op::kConstant, static_cast<int32_t>(Constant::kNone));
        open.has_item = true;
        return token.Is(":") ? Colon() : Close();
      }
      break;
    case Pending::Kind::kGroup:
      if (token.Is(")") && nothing) {
        open.comma = true;
        return Close();
      }
      break;
    case Pending::Kind::kCall:
    case Pending::Kind::kMethod:
    case Pending::Kind::kFilter:
    case Pending::Kind::kTest:
      if (token.Is(")") && nothing) return Close();
      break;
    case Pending::Kind::kList:
      if (token.Is("]") && nothing) return Close();
      break;
    case Pending::Kind::kDict:
      if (token.Is("}") && nothing) return Close();
      break;
    default:
      break;
  }
  return FailExpected("a value");
}

// ---- a value is there ----

bool Parser::Operator(bool& done) {
  const Token token = Now();
  const bool postfix = token.Is("(") || (postfix_ && (token.Is(".") || token.Is("[")));
  if (pending_.back().kind == Pending::Kind::kTestOperand) {
    if (postfix) return Postfix();
    const Pending test = std::move(pending_.back());
    pending_.pop_back();
    FinishTest(test);
    return true;
  }
  pending_.back().has_item = true;
  if (postfix) return Postfix();
  if (token.Is("|")) return Filter();
  if (token.kind == Token::Kind::kName) return NameOperator(done);
  struct BinaryOp {
    std::string_view text;
    Op op;
    int precedence;
  };
  static constexpr BinaryOp kBinary[] = {
      {"+", Op::kAdd, kSum},         {"-", Op::kSubtract, kSum},
      {"~", Op::kConcat, kJoin},     {"*", Op::kMultiply, kProduct},
      {"/", Op::kDivide, kProduct},  {"//", Op::kFloorDivide, kProduct},
      {"%", Op::kModulo, kProduct},  {"**", Op::kPower, kPower},
      {"==", Op::kEqual, kCompare},  {"!=", Op::kNotEqual, kCompare},
      {"<", Op::kLess, kCompare},    {"<=", Op::kLessEqual, kCompare},
      {">", Op::kGreater, kCompare}, {">=", Op::kGreaterEqual, kCompare}};
  if (token.kind == Token::Kind::kOperator) {
    for (const BinaryOp& binary : kBinary) {
      if (token.text != binary.text) continue;
      Next();
      const bool good = binary.precedence == kCompare ? Comparison(binary.op)
                                                      : Binary(binary.op, binary.precedence);
      pending_.back().offset = token.offset;
      return good;
    }
    if (token.text == ":") return Colon();
    if (token.text == ")" || token.text == "]" || token.text == "}") {
      FinishItem();
      if (pending_.size() > 1) return Close();
    }
    if (token.text == ",") {
      FinishItem();
      if (pending_.size() > 1 || allow_tuple_) return Comma();
    }
  }
  FinishItem();
  if (pending_.size() > 1) {
    static constexpr std::string_view kExpected = "an operator, ',' or the closing bracket";
    return FailExpected(kExpected);
  }
  done = true;
  return true;
}

bool Parser::NameOperator(bool& done) {
  const Token token = Now();
  if (token.text == "and" || token.text == "or") {
    const bool is_and = token.text == "and";
    Reduce(is_and ? kAnd : kOr);
    const size_t jump = Emit(is_and ? Op::kJumpIfFalseKeep : Op::kJumpIfTrueKeep);
    Push(is_and ? Pending::Kind::kAnd : Pending::Kind::kOr, is_and ? kAnd : kOr);
    pending_.back().jumps.push_back(jump);
    Next();
    want_value_ = true;
    return true;
  }
  if (token.text == "in") {
    Next();
    return Comparison(Op::kIn);
  }
  if (token.text == "not" && Peek().IsName("in")) {
    Next();
    Next();
    return Comparison(Op::kNotIn);
  }
  if (token.text == "is") return Test();
  if (token.text == "else") {
    Reduce(kOr);
    while (pending_.back().kind == Pending::Kind::kElse) {
      EndCondition(pending_.back());
      pending_.pop_back();
    }
    if (pending_.back().kind == Pending::Kind::kIf) return Otherwise();
  }
  if (token.text == "if") {
    bool allowed = allow_condition_;
    for (size_t i = 1; i < pending_.size() && !allowed; ++i) {
      allowed = pending_[i].precedence == 0;
    }
    if (allowed) return Conditional();
  }
  FinishItem();
  if (pending_.size() > 1) return FailExpected("an operator, ',' or the closing bracket");
  done = true;
  return true;
}

bool Parser::Binary(Op op, int precedence) {
  Reduce(precedence);
  Push(Pending::Kind::kBinary, precedence, op);
  want_value_ = true;
  return true;
}

bool Parser::Comparison(Op op) {
  Reduce(kCompare + 1);
  if (pending_.back().kind == Pending::Kind::kCompare) {
    Pending& chain = pending_.back();
    chain.jumps.push_back(Emit(Op::kChain, 0, static_cast<int32_t>(chain.op)));
    chain.op = op;
  } else {
    Push(Pending::Kind::kCompare, kCompare, op);
  }
  want_value_ = true;
  return true;
}

// "if" behind a value.
bool Parser::Conditional() {
  Reduce(kOr);
  if (pending_.back().kind == Pending::Kind::kIf) {
    EndCondition(pending_.back());
    pending_.pop_back();
  }
  const size_t start = pending_.back().start;
  moved_ += program_.code.size() - start;
  if (moved_ > kMaxMoved) {
    return Fail(Now(), "conditions are nested too deeply", ErrorCode::kLimit);
  }
  std::vector<Instruction> saved(program_.code.begin() + static_cast<ptrdiff_t>(start),
                                 program_.code.end());
  program_.code.resize(start);
  Push(Pending::Kind::kIf);
  pending_.back().saved = std::move(saved);
  Next();
  want_value_ = true;
  return true;
}

bool Parser::Otherwise() {
  Pending& entry = pending_.back();
  const size_t skip = Emit(Op::kJumpIfFalse);
  program_.code.insert(program_.code.end(), entry.saved.begin(), entry.saved.end());
  entry.saved.clear();
  entry.jumps = {Emit(Op::kJump)};
  Patch(skip);
  entry.kind = Pending::Kind::kElse;
  entry.start = program_.code.size();
  Next();
  want_value_ = true;
  return true;
}

void Parser::EndCondition(Pending& pending) {
  if (pending.kind == Pending::Kind::kIf) {
    const size_t skip = Emit(Op::kJumpIfFalse);
    program_.code.insert(program_.code.end(), pending.saved.begin(), pending.saved.end());
    pending.jumps = {Emit(Op::kJump)};
    Patch(skip);
    Emit(Op::kConstant, static_cast<int32_t>(Constant::kUndefined));
  }
  for (const size_t jump : pending.jumps) Patch(jump);
}

void Parser::Reduce(int precedence) {
  while (pending_.back().precedence >= precedence) {
    const Pending entry = std::move(pending_.back());
    pending_.pop_back();
    if (entry.op != Op::kEnd) {
      const size_t at = Emit(entry.op);
      program_.code[at].offset = static_cast<uint32_t>(entry.offset);
    }
    for (const size_t jump : entry.jumps) Patch(jump);
  }
  pending_.back().has_item = true;
}

// What stands before a comma, a bracket that closes, or the end is complete.
void Parser::FinishItem() {
  for (;;) {
    Reduce(kOr);
    const Pending::Kind kind = pending_.back().kind;
    if (kind != Pending::Kind::kIf && kind != Pending::Kind::kElse) break;
    EndCondition(pending_.back());
    pending_.pop_back();
  }
  pending_.back().has_item = true;
}

bool Parser::Postfix() {
  const Token token = Now();
  Next();
  if (token.Is("(")) {
    Push(Pending::Kind::kCall);
    pending_.back().offset = token.offset;
    want_value_ = true;
    return true;
  }
  if (token.Is("[")) {
    Push(Pending::Kind::kItem);
    pending_.back().offset = token.offset;
    want_value_ = true;
    return true;
  }
  const Token name = Now();
  if (name.kind == Token::Kind::kInteger) {
    if (!Literal()) return false;
    Emit(Op::kItem);
    return true;
  }
  if (name.kind != Token::Kind::kName) return FailExpected("a name after '.'");
  Next();
  if (Now().Is("(")) {
    Push(Pending::Kind::kMethod);
    pending_.back().number = Name(name.text);
    pending_.back().offset = name.offset;
    Next();
    want_value_ = true;
    return true;
  }
  const size_t at = Emit(Op::kAttribute, Name(name.text));
  program_.code[at].offset = static_cast<uint32_t>(name.offset);
  return true;
}

bool Parser::Filter() {
  Reduce(kSign);
  Next();
  const Token name = Now();
  if (name.kind != Token::Kind::kName) return FailExpected("the name of a filter after '|'");
  const int32_t number = FindFilter(name.text);
  if (number < 0) {
    return Fail(
        name, "there is no filter " + json::Quote(name.text) + "; there are " + NamesOf(Filters()),
        ErrorCode::kUnsupported);
  }
  Next();
  postfix_ = false;
  if (Now().Is("(")) {
    Push(Pending::Kind::kFilter);
    pending_.back().number = number;
    pending_.back().offset = name.offset;
    Next();
    want_value_ = true;
    return true;
  }
  const size_t at = Emit(Op::kFilter, Call({}), number);
  program_.code[at].offset = static_cast<uint32_t>(name.offset);
  return true;
}

bool Parser::Test() {
  Reduce(kSign);
  Next();
  const bool negated = TakeName("not");
  const Token name = Now();
  if (name.kind != Token::Kind::kName) return FailExpected("the name of a test after 'is'");
  const int32_t number = FindTest(name.text);
  if (number < 0) {
    return Fail(name,
                "there is no test " + json::Quote(name.text) + "; there are " + NamesOf(Tests()),
                ErrorCode::kUnsupported);
  }
  Next();
  Pending test{};
  test.offset = name.offset;
  test.number = number;
  test.negated = negated;
  test.start = program_.code.size();
  const Token& token = Now();
  bool operand = token.kind == Token::Kind::kString || token.kind == Token::Kind::kInteger ||
                 token.kind == Token::Kind::kFloat || token.Is("[") || token.Is("{");
  if (token.kind == Token::Kind::kName) {
    operand = true;
    for (const char* word : {"and", "or", "else", "if", "in", "not", "is", "recursive"}) {
      if (token.text == word) operand = false;
    }
    if (token.text == "is") return Fail(token, "tests cannot be chained; expected 'and' or 'or'");
  }
  if (token.Is("(")) {
    test.kind = Pending::Kind::kTest;
    Next();
  } else if (operand) {
    test.kind = Pending::Kind::kTestOperand;
    test.call.positional = 1;
  } else {
    FinishTest(test);
    return true;
  }
  pending_.push_back(std::move(test));
  want_value_ = true;
  return true;
}

void Parser::FinishTest(const Pending& test) {
  const size_t at = Emit(Op::kTest, Call(test.call), test.number);
  program_.code[at].offset = static_cast<uint32_t>(test.offset);
  if (test.negated) Emit(Op::kNot);
  want_value_ = false;
  postfix_ = false;
}

int32_t Parser::Call(CallShape shape) {
  program_.calls.push_back(std::move(shape));
  return static_cast<int32_t>(program_.calls.size()) - 1;
}

bool Parser::FinishArgument(Pending& call) {
  if (!call.has_item) return true;
  call.has_item = false;
  if (!call.name.empty()) {
    if (call.call.names.size() >= kMaxNames) {
      return Fail(Now(), "more than 256 arguments with names", ErrorCode::kLimit);
    }
    for (const std::string& name : call.call.names) {
      if (name == call.name)
        return Fail(Now(), "the argument " + json::Quote(name) + " is there twice");
    }
    call.call.names.push_back(std::exchange(call.name, ""));
    return true;
  }
  if (!call.call.names.empty()) {
    return Fail(Now(), "an argument without a name behind one that has one; expected name=value");
  }
  ++call.call.positional;
  return true;
}

bool Parser::Comma() {
  FinishItem();
  Pending& open = pending_.back();
  switch (open.kind) {
    case Pending::Kind::kTop:
    case Pending::Kind::kGroup:
    case Pending::Kind::kList:
      open.comma = true;
      ++open.count;
      break;
    case Pending::Kind::kDict:
      if (!open.value) return FailExpected("':'");
      open.value = false;
      ++open.count;
      break;
    case Pending::Kind::kItem:
      return Fail(Now(), "several indices are not supported; expected ']'",
                  ErrorCode::kUnsupported);
    default:
      if (!FinishArgument(open)) return false;
  }
  open.has_item = false;
  open.start = program_.code.size();
  Next();
  want_value_ = true;
  return true;
}

bool Parser::Colon() {
  FinishItem();
  Pending& open = pending_.back();
  if (open.kind == Pending::Kind::kDict && !open.value) {
    open.value = true;
  } else if (open.kind == Pending::Kind::kItem && open.count < 2) {
    ++open.count;
  } else {
    return FailExpected(pending_.size() > 1 ? "',' or the closing bracket" : "the end of the tag");
  }
  open.has_item = false;
  open.start = program_.code.size();
  Next();
  want_value_ = true;
  return true;
}

bool Parser::Close() {
  const bool empty = want_value_ && pending_.back().kind != Pending::Kind::kItem;
  if (!empty) FinishItem();
  Pending open = std::move(pending_.back());
  pending_.pop_back();
  if (pending_.empty()) {
    pending_.push_back(std::move(open));
    return FailExpected("the end of the tag");
  }
  const int32_t items = open.count + (empty ? 0 : 1);
  bool primary = true;
  Op op = Op::kEnd;
  int32_t a = 0, b = 0;
  switch (open.kind) {
    case Pending::Kind::kGroup:
      if (open.comma) op = Op::kTuple, a = items;
      break;
    case Pending::Kind::kList:
      op = Op::kList, a = items;
      break;
    case Pending::Kind::kDict:
      if (!empty && !open.value) return FailExpected("':'");
      op = Op::kDict, a = items;
      break;
    case Pending::Kind::kItem:
      op = open.count == 0 ? Op::kItem : Op::kSlice;
      if (open.count == 1) Emit(Op::kConstant, static_cast<int32_t>(Constant::kNone));
      break;
    default: {
      if (!empty && !FinishArgument(open)) return false;
      if (open.kind == Pending::Kind::kTest) {
        Next();
        FinishTest(open);
        return true;
      }
      a = Call(open.call);
      b = open.number;
      op = open.kind == Pending::Kind::kCall     ? Op::kCall
           : open.kind == Pending::Kind::kMethod ? Op::kMethod
                                                 : Op::kFilter;
      primary = open.kind != Pending::Kind::kFilter;
    }
  }
  if (op != Op::kEnd) {
    const size_t at = Emit(op, a, b);
    program_.code[at].offset = static_cast<uint32_t>(open.offset);
  }
  Next();
  want_value_ = false;
  // Behind a bracket of an attribute's value the postfixes go on; behind a filter they do not.
  postfix_ = primary;
  return true;
}

}  // namespace pawl::jinja
