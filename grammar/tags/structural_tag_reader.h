// StructuralTagReader: the formats of a structural tag, each as an expression of the GrammarIr.
// Inside of grammar/tags/structural_tag*.cc only.
#ifndef PAWL_GRAMMAR_TAGS_STRUCTURAL_TAG_READER_H_
#define PAWL_GRAMMAR_TAGS_STRUCTURAL_TAG_READER_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/tags/formats/argument_style.h"
#include "grammar/tags/structural_tag.h"
#include "src/base/json_reader.h"

namespace pawl {

// Refused: more bytes of stop texts; references, unions and parameters in one another; properties
// in any order, which are 2^n rules.
inline constexpr size_t kMostStopBytes = size_t{1} << 20;
inline constexpr int kDeepestXml = 64;
inline constexpr size_t kMostInAnyOrder = 10;

class StructuralTagReader {
 public:
  using ExprId = GrammarIr::ExprId;

  explicit StructuralTagReader(const StructuralTagContext& context) : context_(context) {}

  Result<GrammarIr> Read(std::string_view text);

 private:
  friend class XmlStyleReader;

  // How the innermost tag around a format ends: free text inside of it stops there.
  struct Around {
    std::vector<std::string> ends = {};  // not empty
    std::vector<TokenId> end_tokens = {};
  };
  // A tag apart from where it stands.
  struct Tag {
    std::u32string begin;  // of tags that begin with a text
    TokenId begin_token = kNoToken;
    ExprId rest = GrammarIr::kEmpty;  // content and end
  };
  struct Text {
    std::vector<std::string> stops = {};
    std::optional<uint32_t> max_chars = {};
    std::optional<uint32_t> max_tokens = {};
  };
  // What follows gives kNever, or something else of no use, after an error.
  ExprId ReadDocument(const JsonReader& in);
  ExprId Format(const JsonReader& in, const Around& around, int depth);
  ExprId ReadJsonSchema(const std::string& type, const JsonReader& in);
  ExprId ReadGrammar(const JsonReader& in);
  ExprId ReadRegex(const JsonReader& in);
  ExprId ReadAnyText(const JsonReader& in, const Around& around);
  ExprId ReadAnyTokens(const std::string& type, const JsonReader& in, const Around& around);
  ExprId ReadElements(const std::string& type, const JsonReader& in, const Around& around,
                      int depth);
  ExprId ReadRepeat(const std::string& type, const JsonReader& in, const Around& around, int depth);
  ExprId ReadTriggered(const JsonReader& in, const Around& around, int depth);
  ExprId ReadDispatch(const JsonReader& in, bool by_tokens, int depth);
  ExprId ReadTokenTriggered(const JsonReader& in, const Around& around, int depth);
  ExprId ReadSeparated(const JsonReader& in, int depth);
  ExprId ReadLegacy(const JsonReader& in);
  Tag ReadTag(const JsonReader& in, int depth);
  TokenId ReadToken(const JsonReader& in);  // {"type": "token", "token": ...}
  // The fields that formats of several tags share: "tags", "at_least_one", "stop_after_first".
  struct TagList {
    std::vector<Tag> tags;
    std::vector<JsonReader> begins;  // as they are written
    bool at_least_one = false;
    bool loop = true;  // not only the first one
  };
  TagList ReadTagList(const JsonReader& in, int depth);
  Result<ExprId> JsonSchema(const json::Value& schema, const std::string& at,
                            const JsonSchemaOptions& options);

  // Free text and tags in turn. `triggers` with where each of them is written.
  ExprId Dispatch(const std::vector<std::pair<std::string, JsonReader>>& triggers,
                  const std::vector<Tag>& tags, const std::vector<std::string>& excludes,
                  const Around& around, bool at_least_one, bool loop);
  ExprId TokenDispatch(const std::vector<TokenId>& triggers, const std::vector<Tag>& tags,
                       std::vector<TokenId> excludes, bool at_least_one, bool loop);
  ExprId FreeTextOf(const Text& text, const std::string& before = "");
  // The text; where it has names of special tokens, those tokens fit as well as their names.
  // `as_token`: the first of them is taken as a token; kNever when there is none.
  ExprId TextOf(std::string_view text, bool as_token = false);
  ExprId TagOf(const Tag& tag);
  // One of the tags; what their beginnings share is read once.
  ExprId OneOf(const std::vector<Tag>& tags);
  ExprId TokensOf(const std::vector<TokenId>& tokens, bool complement);

  // Fields.
  static std::optional<uint32_t> Count(const JsonReader& in);
  // An array that is not empty.
  static JsonReader FullArray(const JsonReader& in);
  // Strings that are not empty, each with where it is written.
  static std::vector<std::pair<std::string, JsonReader>> Strings(const JsonReader& in);
  std::vector<TokenId> Tokens(const JsonReader& in);
  TokenId Token(const JsonReader& in);

  const StructuralTagContext& context_;
  GrammarIr ir_;
  std::map<std::string, ExprId> free_texts_;
  std::unordered_map<std::string, ExprId> schemas_;
  bool has_names_ = false;
  std::unordered_map<std::string, TokenId> token_names_;                  // of all tokens
  std::map<char, std::vector<std::pair<std::string, TokenId>>> special_;  // longest first
};

// One place of an error: the pointer, and in a text there.
Error ErrorInside(Error error, const std::string& pointer);

// XmlStyleReader: the properties of an object as parameters of some model family's style, each
// between marks of its own instead of as JSON. Inside of grammar/tags/structural_tag*.cc only.

class XmlStyleReader {
 public:
  XmlStyleReader(StructuralTagReader& reader, const json::Value& schema, const std::string& place,
                 const ArgumentStyle& style, const JsonSchemaOptions& options)
      : reader_(reader), root_(schema), place_(place), style_(style), options_(options) {}

  Result<GrammarIr::ExprId> Read() { return Object(root_, place_, 0); }

 private:
  using ExprId = GrammarIr::ExprId;
  // How a value is written, and the mark that says which it is.
  struct Form {
    std::string mark;
    ExprId value;
  };
  struct Property {
    ExprId expr;
    bool required;
  };

  Result<ExprId> Object(const json::Value& schema, const std::string& at, int depth);
  Result<ExprId> List(const json::Value& schema, const std::string& at, int depth);
  Result<std::vector<Form>> Forms(const json::Value& schema, const std::string& at, int depth);
  Result<std::vector<Form>> FormsOfTypes(const json::Value& schema, const std::string& at,
                                         int depth);
  Result<std::vector<Form>> FormsOfValues(const std::vector<const json::Value*>& values,
                                          const json::Value& schema, const std::string& at);
  // A string as it is written, up to `stop`.
  Result<ExprId> Raw(const json::Value& schema, const std::string& at, std::string_view stop);
  // A string of the schema with what the style puts around it.
  Result<ExprId> String(const json::Value& schema, const std::string& at, bool any);
  Result<ExprId> Json(const json::Value& schema, const std::string& at,
                      const std::vector<std::string>& types);
  // The parameter of a key (an expression) with one of the forms; kEmpty: an item of a list.
  ExprId Parameter(ExprId key, const std::vector<Form>& forms);
  ExprId InOrder(const std::vector<Property>& properties, ExprId other);
  ExprId InAnyOrder(const std::vector<Property>& properties, ExprId other);
  // Of the styles that write commas: properties in order, items of a list, any value at all.
  ExprId Joined(const std::vector<Property>& properties, ExprId other);
  ExprId JoinedItems(ExprId item, uint32_t least, std::optional<uint32_t> most);
  ExprId AnyGemmaValue();
  ExprId Separator();
  bool joins() const {
    return style_.marks == ArgumentStyle::Marks::kGemma ||
           style_.marks == ArgumentStyle::Marks::kPython;
  }
  // Why a key cannot be written in this style; empty: it can.
  std::string WrongKey(std::string_view key) const;
  std::optional<ExprId> StringLiteral(const std::string& text);
  // What a chain of references leads to, with its place.
  Result<std::pair<const json::Value*, std::string>> Resolve(const json::Value& schema,
                                                             const std::string& at);
  Status OnlyKeywords(const json::Value& schema, const std::string& at,
                      std::initializer_list<std::string_view> known) const;
  ExprId Spaces();
  // With white space around it, where the style allows that.
  ExprId Padded(ExprId value);
  std::string MarkOf(std::string_view type) const;

  StructuralTagReader& reader_;
  const json::Value& root_;
  const std::string place_;
  const ArgumentStyle style_;
  const JsonSchemaOptions options_;
  ExprId any_gemma_ = GrammarIr::kNever;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_TAGS_STRUCTURAL_TAG_READER_H_
