// The fields of a structural tag's objects that json_reader.h does not know: tokens, counts, and
// strings that free text stops at.
#include "schemas/limits.h"
#include "schemas/tag/structural_tag_reader.h"

namespace pawl {

std::optional<uint32_t> StructuralTagReader::Count(const JsonReader& in) {
  int64_t count = 0;
  if (!in.Read(count, 0, INT32_MAX)) return std::nullopt;
  return static_cast<uint32_t>(count);
}

JsonReader StructuralTagReader::FullArray(const JsonReader& in) {
  JsonReader array = in.Array();
  if (array.size() == 0) in.Fail("must be an array that is not empty");
  return array;
}

std::vector<std::pair<std::string, JsonReader>> StructuralTagReader::Strings(const JsonReader& in) {
  std::vector<std::pair<std::string, JsonReader>> strings;
  size_t bytes = 0;
  for (const JsonReader item : in.OptionalArray().items()) {
    if (!item.IsString() || item.String().empty()) item.Fail("must be a string that is not empty");
    bytes += item.String().size();
    if (bytes > limits::kStopBytes) item.Fail("more than 1 MiB of strings", ErrorCode::kLimit);
    if (in.ok()) strings.emplace_back(item.String(), item);
  }
  return strings;
}

TokenId StructuralTagReader::Token(const JsonReader& in) {
  const Vocabulary& vocabulary = context_.vocabulary;
  if (in.Is(json::Type::kNumber)) {
    const int64_t id = in.Whole();
    if (id >= 0 && id < vocabulary.size()) return static_cast<TokenId>(id);
    in.Fail("token " + in.value()->text + " is not among the " + std::to_string(vocabulary.size()) +
            " of the vocabulary");
    return 0;
  }
  if (!in.IsString()) {
    in.Fail("must be a token's id or its text");
    return 0;
  }
  if (!has_names_) {
    has_names_ = true;
    for (const bool special : {false, true}) {
      for (TokenId id = vocabulary.size() - 1; id >= 0; --id) {
        if (vocabulary.is_special(id) == special)
          token_names_[std::string(vocabulary.bytes(id))] = id;
      }
    }
  }
  const auto known = token_names_.find(in.String());
  if (known != token_names_.end()) return known->second;
  in.Fail("the vocabulary has no token " + json::Shown(*in.value()));
  return 0;
}

std::vector<TokenId> StructuralTagReader::Tokens(const JsonReader& in) {
  std::vector<TokenId> tokens;
  for (const JsonReader item : in.OptionalArray().items()) tokens.push_back(Token(item));
  return tokens;
}

}  // namespace pawl
