// The fields of a structural tag's objects: each is read with its type, and what is unknown,
// missing or of another type is an error at its place.
#include <algorithm>
#include <charconv>

#include "schemas/limits.h"
#include "schemas/tag/structural_tag_reader.h"

namespace pawl {
using structural_tag::Shown;
using structural_tag::Wrong;

const json::Value* StructuralTagReader::Find(const Value& value, std::string_view key) {
  const Value* found = value.Find(key);
  return found == nullptr || found->type == json::Type::kNull ? nullptr : found;
}

Status StructuralTagReader::CheckFields(const Value& value, Pointer at,
                                        const std::vector<std::string_view>& known) const {
  for (const json::Member& member : value.members) {
    if (std::ranges::find(known, member.first) == known.end())
      return Error{ErrorCode::kUnsupported, "this field is not known here",
                   json::PointerJoin(at, member.first)};
  }
  return {};
}

Result<std::string> StructuralTagReader::StringField(const Value& value, Pointer at,
                                                     std::string_view key) const {
  const Value* field = Find(value, key);
  if (field == nullptr) return Wrong("\"" + std::string(key) + "\" is missing", at);
  if (field->type != json::Type::kString)
    return Wrong("must be a string", json::PointerJoin(at, key));
  return field->text;
}

Result<bool> StructuralTagReader::BoolField(const Value& value, Pointer at, std::string_view key,
                                            bool otherwise) const {
  const Value* field = Find(value, key);
  if (field == nullptr) return otherwise;
  if (!field->is_bool()) return Wrong("must be true or false", json::PointerJoin(at, key));
  return field->type == json::Type::kTrue;
}

Result<std::optional<uint32_t>> StructuralTagReader::CountField(const Value& value, Pointer at,
                                                                std::string_view key) const {
  const Value* field = Find(value, key);
  if (field == nullptr) return std::optional<uint32_t>();
  uint32_t number = 0;
  const char* end = field->text.data() + field->text.size();
  if (field->type == json::Type::kNumber) {
    const auto [stop, error] = std::from_chars(field->text.data(), end, number);
    if (error == std::errc() && stop == end && number <= INT32_MAX) return std::optional(number);
  }
  return Wrong("must be a whole number from 0 to 2147483647", json::PointerJoin(at, key));
}

Result<const json::Value*> StructuralTagReader::ArrayField(const Value& value, Pointer at,
                                                           std::string_view key) const {
  const Value* field = Find(value, key);
  if (field == nullptr) return Wrong("\"" + std::string(key) + "\" is missing", at);
  if (field->type != json::Type::kArray || field->items.empty())
    return Wrong("must be an array that is not empty", json::PointerJoin(at, key));
  return field;
}

Result<std::vector<std::pair<std::string, std::string>>> StructuralTagReader::Strings(
    const Value& value, Pointer at, std::string_view key, bool required) const {
  std::vector<std::pair<std::string, std::string>> strings;
  if (!required) {
    const Value* field = Find(value, key);
    if (field == nullptr || (field->type == json::Type::kArray && field->items.empty()))
      return strings;
  }
  auto array = ArrayField(value, at, key);
  if (!array.ok()) return array.error();
  const std::string place = json::PointerJoin(at, key);
  size_t bytes = 0;
  for (size_t i = 0; i < (*array)->items.size(); ++i) {
    const Value& item = (*array)->items[i];
    const std::string item_place = json::PointerJoin(place, std::to_string(i));
    if (item.type != json::Type::kString || item.text.empty())
      return Wrong("must be a string that is not empty", item_place);
    bytes += item.text.size();
    if (bytes > limits::kStopBytes)
      return Error{ErrorCode::kLimit, "more than 1 MiB of strings", item_place};
    strings.emplace_back(item.text, item_place);
  }
  return strings;
}

Result<TokenId> StructuralTagReader::Token(const Value& value, Pointer at) {
  const Vocabulary& vocabulary = context_.vocabulary;
  if (value.type == json::Type::kNumber) {
    TokenId id = -1;
    const char* end = value.text.data() + value.text.size();
    const auto [stop, error] = std::from_chars(value.text.data(), end, id);
    if (error != std::errc() || stop != end) return Wrong("must be an integer", at);
    if (id < 0 || id >= vocabulary.size()) {
      return Wrong("token " + value.text + " is not among the " +
                       std::to_string(vocabulary.size()) + " of the vocabulary",
                   at);
    }
    return id;
  }
  if (value.type != json::Type::kString) return Wrong("must be a token's id or its text", at);
  if (!has_names_) {
    has_names_ = true;
    for (const bool special : {false, true}) {
      for (TokenId id = vocabulary.size() - 1; id >= 0; --id) {
        if (vocabulary.is_special(id) == special)
          token_names_[std::string(vocabulary.bytes(id))] = id;
      }
    }
  }
  const auto known = token_names_.find(value.text);
  if (known == token_names_.end())
    return Wrong("the vocabulary has no token " + Shown(value.text), at);
  return known->second;
}

Result<TokenId> StructuralTagReader::TokenField(const Value& value, Pointer at) {
  const Value* token = Find(value, "token");
  if (token == nullptr) return Wrong("\"token\" is missing", at);
  return Token(*token, json::PointerJoin(at, "token"));
}

Result<StructuralTagReader::ExprId> StructuralTagReader::ContentField(const Value& value,
                                                                      Pointer at,
                                                                      const Around& around,
                                                                      int depth) {
  const Value* content = Find(value, "content");
  if (content == nullptr) return Wrong("\"content\" is missing", at);
  return Format(*content, json::PointerJoin(at, "content"), around, depth + 1);
}

Result<std::vector<TokenId>> StructuralTagReader::Tokens(const Value& value, Pointer at,
                                                         std::string_view key, bool required) {
  std::vector<TokenId> tokens;
  const Value* field = Find(value, key);
  if (!required && field == nullptr) return tokens;
  if (field == nullptr) return Wrong("\"" + std::string(key) + "\" is missing", at);
  const std::string place = json::PointerJoin(at, key);
  if (field->type != json::Type::kArray || (required && field->items.empty()))
    return Wrong(required ? "must be an array that is not empty" : "must be an array", place);
  for (size_t i = 0; i < field->items.size(); ++i) {
    auto token = Token(field->items[i], json::PointerJoin(place, std::to_string(i)));
    if (!token.ok()) return token.error();
    tokens.push_back(*token);
  }
  return tokens;
}

}  // namespace pawl
