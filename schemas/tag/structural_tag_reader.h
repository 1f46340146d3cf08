// StructuralTagReader: the formats of a structural tag, each as an expression of the GrammarIr.
// Inside of schemas/tag/structural_tag*.cc only.
#ifndef PAWL_SCHEMAS_TAG_STRUCTURAL_TAG_READER_H_
#define PAWL_SCHEMAS_TAG_STRUCTURAL_TAG_READER_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schemas/tag/structural_tag.h"
#include "src/base/json.h"

namespace pawl {

namespace structural_tag {

inline Error Wrong(std::string message, const std::string& at) {
  return Error{ErrorCode::kInvalid, std::move(message), at};
}
// The beginning of a text, for messages.
inline std::string Shown(std::string_view text) { return json::Quote(text.substr(0, 60)); }

}  // namespace structural_tag

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
  using Pointer = const std::string&;
  using Value = json::Value;

  Result<ExprId> Format(const Value& value, Pointer at, const Around& around, int depth);
  Result<ExprId> JsonSchema(const Value& schema, Pointer at, const JsonSchemaOptions& options);
  Result<ExprId> ReadJsonSchema(const std::string& type, const Value& value, Pointer at);
  Result<ExprId> ReadGrammar(const Value& value, Pointer at);
  Result<ExprId> ReadRegex(const Value& value, Pointer at);
  Result<ExprId> ReadAnyText(const Value& value, Pointer at, const Around& around);
  Result<ExprId> ReadAnyTokens(const std::string& type, const Value& value, Pointer at,
                               const Around& around);
  Result<ExprId> ReadElements(const std::string& type, const Value& value, Pointer at,
                              const Around& around, int depth);
  Result<ExprId> ReadRepeat(const std::string& type, const Value& value, Pointer at,
                            const Around& around, int depth);
  Result<ExprId> ReadTriggered(const Value& value, Pointer at, const Around& around, int depth);
  Result<ExprId> ReadDispatch(const Value& value, Pointer at, bool by_tokens, int depth);
  Result<ExprId> ReadTokenTriggered(const Value& value, Pointer at, const Around& around,
                                    int depth);
  Result<ExprId> ReadSeparated(const Value& value, Pointer at, int depth);
  Result<ExprId> ReadLegacy(const Value& document);
  Result<Tag> ReadTag(const Value& value, Pointer at, int depth);
  // The fields that formats of several tags share: "tags", "at_least_one", "stop_after_first".
  struct TagList {
    std::vector<Tag> tags;
    std::vector<std::pair<const Value*, std::string>> begins;  // as they are written, with places
    bool at_least_one = false;
    bool loop = true;  // not only the first one
  };
  Result<TagList> ReadTagList(const Value& value, Pointer at, int depth);

  // Free text and tags in turn. `triggers` with the place of each.
  Result<ExprId> Dispatch(const std::vector<std::pair<std::string, std::string>>& triggers,
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
  Status CheckFields(const Value& value, Pointer at,
                     const std::vector<std::string_view>& known) const;
  // The field, nullptr where it is missing or null.
  static const Value* Find(const Value& value, std::string_view key);
  Result<std::string> StringField(const Value& value, Pointer at, std::string_view key) const;
  Result<bool> BoolField(const Value& value, Pointer at, std::string_view key,
                         bool otherwise) const;
  Result<std::optional<uint32_t>> CountField(const Value& value, Pointer at,
                                             std::string_view key) const;
  Result<const Value*> ArrayField(const Value& value, Pointer at, std::string_view key) const;
  // Strings that are not empty, each with its place.
  Result<std::vector<std::pair<std::string, std::string>>> Strings(const Value& value, Pointer at,
                                                                   std::string_view key,
                                                                   bool required) const;
  Result<std::vector<TokenId>> Tokens(const Value& value, Pointer at, std::string_view key,
                                      bool required);
  Result<TokenId> Token(const Value& value, Pointer at);
  Result<TokenId> TokenField(const Value& value, Pointer at);
  Result<ExprId> ContentField(const Value& value, Pointer at, const Around& around, int depth);

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

}  // namespace pawl

#endif  // PAWL_SCHEMAS_TAG_STRUCTURAL_TAG_READER_H_
