// LarkParser: from words to the tree of lark_ast.h. Internal to grammar/languages.
#ifndef PAWL_GRAMMAR_LANGUAGES_LARK_PARSER_H_
#define PAWL_GRAMMAR_LANGUAGES_LARK_PARSER_H_

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/languages/lark_ast.h"
#include "src/base/json.h"

namespace pawl {

// Failed: what a reader's function answers once an error is noted, whatever it answers otherwise:
// false, or no value. Internal to grammar/languages.

struct Failed {
  // Exactly bool: so that it does not become an integer through one.
  template <std::same_as<bool> B>
  operator B() const {
    return false;
  }
  template <typename T>
  operator std::optional<T>() const {
    return std::nullopt;
  }
};

}  // namespace pawl

namespace pawl::lark {

class LarkParser {
 public:
  LarkParser(std::string_view text, const SourceMap& map, const ParseOptions& options,
             std::vector<Token> tokens)
      : text_(text), map_(map), options_(options), tokens_(std::move(tokens)) {}
  Result<Tree> Run();

 private:
  // Every function below answers false or nullopt when it has set error_.
  Failed Fail(std::string message, size_t at, ErrorCode code = ErrorCode::kInvalid);
  Failed Expected(std::string_view what);
  const Token& Peek(size_t ahead = 0) const;
  std::string_view Text(const Token& token) const {
    return text_.substr(token.begin, token.end - token.begin);
  }
  bool Is(Word word) const { return Peek().word == word; }
  bool IsSign(std::string_view sign, size_t ahead = 0) const;
  bool IsKeyword(std::string_view keyword) const;
  bool Take(std::string_view sign);
  bool Require(std::string_view sign);
  void SkipNewlines();

  // lark_parser.cc
  bool Items(uint32_t scope, bool nested);
  bool Item(uint32_t scope);
  bool RuleOrTerminal(uint32_t scope, bool terminal);
  bool Attributes(Definition& rule);
  bool Attribute(Definition& rule);
  bool Define(uint32_t scope, Definition definition, bool terminal);
  bool Statement(uint32_t scope);
  bool Import(uint32_t scope);
  bool ImportCommon(uint32_t scope, const Token& what, std::string_view name,
                    std::string_view alias);
  bool Options(uint32_t scope);
  std::optional<NodeId> Expansions(bool inside);
  std::optional<NodeId> Alternative(bool inside);
  std::optional<NodeId> Expansion(bool inside);
  std::optional<NodeId> Expression();
  std::optional<NodeId> Repeated(NodeId atom);
  std::optional<NodeId> Atom();
  std::optional<NodeId> Value();
  std::optional<NodeId> String();
  std::optional<NodeId> Lark();

  // lark_parameters.cc
  std::optional<std::string> Decoded(const Token& token, bool& ignore_case);
  std::optional<std::string> PlainString();
  std::optional<int64_t> Integer(std::string_view what, int64_t min, int64_t max);
  std::optional<uint64_t> Unsigned64();
  std::optional<double> Real();
  std::optional<std::string> CaptureName();
  std::optional<BitRange> Bits();
  std::optional<uint32_t> Parameter();
  std::optional<uint32_t> ParseCondition(int depth);
  std::optional<json::Value> Json(const Token& token);

  NodeId Add(Node node);
  NodeId AddParent(Node::Kind kind, std::span<const NodeId> children, size_t place);

  std::string_view text_;
  const SourceMap& map_;
  const ParseOptions& options_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;  // brackets and nested grammars around the cursor
  Tree tree_;
  std::optional<Error> error_;
};

}  // namespace pawl::lark

#endif  // PAWL_GRAMMAR_LANGUAGES_LARK_PARSER_H_
