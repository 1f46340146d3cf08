// The syntax tree of a Lark grammar, in flat arrays. Internal to grammar/languages.
#ifndef PAWL_GRAMMAR_LANGUAGES_LARK_AST_H_
#define PAWL_GRAMMAR_LANGUAGES_LARK_AST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl::lark {

// The words of a Lark grammar. Internal to grammar/languages.

enum class Word : uint8_t {
  kRule,      // a lower-case name; ! and ? in front of it are part of it
  kTerminal,  // an upper-case name
  kString,    // "..." with its flag
  kRegex,     // /.../ with its flags
  kNumber,
  kSpecialToken,  // <...>
  kGrammarRef,    // @name
  kKeyword,       // %name
  kJson,          // the JSON behind %json, %regex, %llguidance
  kSign,          // : :: = , . .. -> ( ) { } [ ] ~ | & _ + * ?
  kNewline,       // one or more
  kEnd
};

struct Token {
  Word word = Word::kEnd;
  uint32_t begin = 0, end = 0;  // bytes of the text
};

// From bytes to "line:column". Columns count code points; both start at 1.
class SourceMap {
 public:
  explicit SourceMap(std::string_view text);
  std::string Place(size_t at) const;

 private:
  size_t CodepointsBefore(size_t at) const;

  std::string_view text_;
  std::vector<size_t> lines_;   // where each begins
  std::vector<size_t> counts_;  // code points before every so many bytes
};

// The whole text, with a kEnd behind it. Errors have the place "line:column".
Result<std::vector<Token>> Tokenize(std::string_view text, const SourceMap& map);

// "'->'", "the name 'foo'", "the end of the line": for messages.
std::string Describe(const Token& token, std::string_view text);

// Bits [lo, hi) of a rule's parameter.
struct BitRange {
  uint8_t lo = 0, hi = 64;
  uint64_t mask() const { return hi - lo == 64 ? ~uint64_t{0} : (uint64_t{1} << (hi - lo)) - 1; }
  uint64_t Of(uint64_t value) const { return value >> lo & mask(); }
};

// The parameter with which a rule is called, from that of the rule that calls it.
struct ParameterExpr {
  enum class Kind : uint8_t { kConstant, kSelf, kIncrement, kDecrement, kAnd, kOr };
  Kind kind = Kind::kConstant;
  BitRange bits;
  uint64_t value = 0;
  uint64_t Of(uint64_t self) const;
};

// When an alternative is there. Operands of kAnd, kOr, kNot stand before it.
struct Condition {
  enum class Kind : uint8_t { kTrue, kNe, kEq, kLt, kLe, kGt, kGe, kAnd, kOr, kNot };
  Kind kind = Kind::kTrue;
  bool count = false;  // of the number of bits that are set
  BitRange bits;
  uint64_t value = 0;
  uint32_t a = 0, b = 0;
};

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = UINT32_MAX;
inline constexpr uint32_t kUnbounded = UINT32_MAX;

struct Node {
  enum class Kind : uint8_t {
    kChoice,        // children
    kSequence,      // children
    kAnd,           // children
    kIf,            // child 0, conditions[index]
    kRepeat,        // child 0, min..max
    kNot,           // child 0
    kName,          // text; has_parameter: parameters[index]
    kString,        // text: what it means; ignore_case
    kRange,         // text: two characters
    kRegex,         // text: pattern; flags
    kSpecialToken,  // text, with < and >
    kGrammarRef,    // text, without @
    kJson,          // text
    kRegexExt,      // text: JSON
    kLark,          // scopes[index]
  };
  Kind kind = Kind::kSequence;
  bool ignore_case = false;
  bool has_parameter = false;
  uint32_t place = 0;  // byte of the text
  uint32_t index = 0;
  uint32_t first_child = 0, child_count = 0;  // in Tree::children
  uint32_t min = 0, max = 0;
  std::string text;
  std::string flags;
};

struct Definition {
  std::string name;
  uint32_t place = 0;
  NodeId body = kNoNode;
  // Rules only.
  bool parametric = false;
  bool lazy = false;
  NodeId stop = kNoNode, suffix = kNoNode;
  std::optional<std::string> capture, stop_capture;
  uint32_t stop_capture_place = 0;
  std::optional<uint32_t> max_tokens, max_chars;
  std::optional<double> temperature;
  uint32_t attribute_place = 0;
};

// A grammar with names of its own: the whole text, or a %lark { ... }.
struct Scope {
  uint32_t place = 0;
  std::map<std::string, Definition, std::less<>> rules, terminals;
  std::vector<NodeId> ignores;
  bool ignore_once = false;
  bool allow_initial_skip = false;
};

struct Tree {
  std::vector<Node> nodes;
  std::vector<NodeId> children;
  std::vector<ParameterExpr> parameters;
  std::vector<Condition> conditions;
  std::vector<Scope> scopes;  // 0: the whole text

  std::span<const NodeId> ChildrenOf(const Node& node) const {
    return std::span<const NodeId>(children).subspan(node.first_child, node.child_count);
  }
  bool Holds(uint32_t condition, uint64_t parameter) const;
};

struct ParseOptions {
  int max_nesting = 250;
  bool as_xgrammar = false;
};

// Errors have the place "line:column".
Result<Tree> Parse(std::string_view text, const SourceMap& map, const ParseOptions& options);

// The pattern of a terminal of `%import common`, empty when there is none of that name; and their
// names.
std::string_view CommonTerminal(std::string_view name);
std::string CommonTerminalNames();

}  // namespace pawl::lark

#endif  // PAWL_GRAMMAR_LANGUAGES_LARK_AST_H_
