// The tokens of a chat template (jinja_lexer.cc), and the parser that turns them into instructions:
// statements in jinja_parser.cc, expressions in jinja_expression.cc. Internal to src/text/chat:
// callers see ParseTemplate (jinja_program.h).
#ifndef PAWL_SRC_TEXT_CHAT_JINJA_PARSER_H_
#define PAWL_SRC_TEXT_CHAT_JINJA_PARSER_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "src/text/chat/jinja_program.h"

namespace pawl::jinja {

struct Token {
  enum class Kind {
    kText,         // outside of tags
    kOutputBegin,  // {{
    kOutputEnd,    // }}
    kTagBegin,     // {%
    kTagEnd,       // %}
    kName,
    kString,  // `text` is unescaped
    kInteger,
    kFloat,
    kOperator,  // `text` is the operator
    kEnd,       // of the template
  };
  Kind kind;
  std::string text;
  size_t offset;  // into the normalized source

  bool Is(std::string_view op) const { return kind == Kind::kOperator && text == op; }
  bool IsName(std::string_view name) const { return kind == Kind::kName && text == name; }
};

// Line ends become \n, and the last of them is left out, as transformers has it.
std::string NormalizedSource(std::string_view source);

// "line:column" of a byte, both from 1, columns in code points.
std::string PlaceOf(std::string_view source, size_t offset);

// The tokens of a normalized source, kEnd last. Errors: kInvalid with the place.
Result<std::vector<Token>> Tokenize(std::string_view source);

// How messages call a token: "'%}'", "a name", ...
std::string Describe(const Token& token);

class Parser {
 public:
  Parser(Program& program, std::vector<Token> tokens)
      : program_(program), tokens_(std::move(tokens)) {}

  // The first error, or none: then the program is complete.
  std::optional<Error> Run();

 private:
  // What is open in an expression: an operator that lacks its right side, or a bracket.
  struct Pending {
    enum class Kind {
      kBinary,
      kCompare,
      kAnd,
      kOr,
      kNot,
      kSign,  // operators
      kIf,
      kElse,  // of "a if b else c"
      kTop,
      kGroup,
      kList,
      kDict,
      kItem,
      kCall,
      kMethod,
      kFilter,
      kTest,         // brackets
      kTestOperand,  // of a test without brackets
    };
    Kind kind;
    size_t offset = 0;
    size_t start = 0;    // of the code of what is being read inside
    int precedence = 0;  // of operators
    Op op = Op::kEnd;
    int32_t number = 0;     // filter, test, name
    bool negated = false;   // a test
    bool comma = false;     // a bracket had one
    bool value = false;     // a dictionary: behind the colon
    bool has_item = false;  // something stands before the next comma or bracket
    int32_t count = 0;      // items so far; parts of a slice
    std::string name;       // of the argument that is being read
    CallShape call;
    std::vector<size_t> jumps;       // to the end
    std::vector<Instruction> saved;  // kIf: the code of what it decides about
  };
  struct Block {
    enum class Kind { kIf, kFor, kSet, kMacro, kCall, kGeneration };
    Kind kind;
    size_t offset = 0;
    std::vector<size_t> ends;    // jumps to the end
    std::optional<size_t> next;  // the jump to the next branch
    bool in_else = false;
    size_t again = 0;                  // kFor: the instruction of the next round
    std::vector<std::string> targets;  // kSet
    size_t filters = 0;                // kSet: the token of its filters; 0: none
  };

  // Tokens.
  const Token& Now() const { return tokens_[at_]; }
  const Token& Peek() const { return tokens_[at_ + (at_ + 1 < tokens_.size() ? 1 : 0)]; }
  void Next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool TakeName(std::string_view name);
  bool TakeOperator(std::string_view op);
  bool Fail(const Token& token, std::string message, ErrorCode code = ErrorCode::kInvalid);
  bool FailExpected(std::string_view what);
  bool ExpectOperator(std::string_view op);
  bool ExpectTagEnd();

  // Code.
  size_t Emit(Op op, int32_t a = 0, int32_t b = 0);
  // The jump at `at` leads here.
  void Patch(size_t at);
  int32_t RelativeTo(size_t target) const;
  int32_t String(std::string text);
  int32_t Name(std::string_view name);

  // Statements; false after an error.
  bool Tag();
  bool Begin(Block::Kind kind, const Token& token);
  bool If();
  bool Branch(const Token& tag);
  bool For();
  bool Set();
  bool Macro();
  bool CallBlock();
  bool Leave(const Token& tag);
  bool End(const Token& tag);
  void EndFor(Block& block);
  // Names on the left of "=" and "in"; a dot makes "namespace.attribute".
  bool Targets(std::vector<std::string>& targets, bool attributes);
  void StoreTargets(const std::vector<std::string>& targets);
  bool Parameters(MacroCode& macro, std::vector<std::pair<int32_t, size_t>>* defaults);
  bool Defaults(const MacroCode& macro, const std::vector<std::pair<int32_t, size_t>>& defaults);

  // Expressions. `tuple`: commas make one; `condition`: "a if b" belongs to it; `has_value`:
  // filters of a value that is on the stack already.
  bool Expression(bool tuple, bool condition = true, bool has_value = false);
  bool Operand();
  bool Literal();
  bool CloseEmpty();
  bool Operator(bool& done);
  bool NameOperator(bool& done);
  bool Postfix();
  bool Filter();
  bool Test();
  bool Comma();
  bool Close();
  bool Colon();
  bool Binary(Op op, int precedence);
  bool Comparison(Op op);
  bool Conditional();
  bool Otherwise();
  void Push(Pending::Kind kind, int precedence = 0, Op op = Op::kEnd);
  void Reduce(int precedence);
  void FinishItem();
  void FinishTest(const Pending& test);
  bool FinishArgument(Pending& call);
  void EndCondition(Pending& pending);
  int32_t Call(CallShape shape);

  Program& program_;
  std::vector<Token> tokens_;
  std::map<std::string, int32_t, std::less<>> names_;  // indices into the program's
  size_t at_ = 0;
  size_t moved_ = 0;  // instructions
  std::optional<Error> error_;
  std::vector<Block> blocks_;

  // Of the expression that is being read.
  std::vector<Pending> pending_;
  bool want_value_ = true;
  bool postfix_ = false;                    // ".", "[" may follow
  static constexpr size_t kMaxNames = 256;  // of parameters, and of arguments
  bool allow_tuple_ = false, allow_condition_ = true;
};

}  // namespace pawl::jinja

#endif  // PAWL_SRC_TEXT_CHAT_JINJA_PARSER_H_
