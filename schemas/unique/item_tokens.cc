// A value ends with a bracket, a quote, the last letter of a literal, or before what follows a
// number. A token without any of these cannot end one; the others get a trie of their own, far
// smaller than the vocabulary's.
#include "schemas/unique/item_tokens.h"

#include <string>

#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

bool EndsNumber(char c) { return std::string_view(" \t\r\n,]}").find(c) != std::string_view::npos; }

// A run of letters that may be the end of a literal.
bool EndsLiteral(std::string_view letters) {
  for (const std::string_view literal : {"true", "false", "null"}) {
    if (literal.ends_with(letters)) return true;
  }
  return false;
}

bool MayEndValue(std::string_view token) {
  int quotes = 0;
  size_t letters = 0;  // where the run of letters up to here begins
  for (size_t i = 0; i < token.size(); ++i) {
    const char c = token[i];
    if (c == ']' || c == '}' || (c == '"' && ++quotes > 1)) return true;
    if (i > 0 && IsDigit(token[i - 1]) && EndsNumber(c)) return true;
    if (IsLetter(c)) continue;
    if (i > letters && EndsLiteral(token.substr(letters, i - letters))) return true;
    letters = i + 1;
  }
  return token.size() > letters && EndsLiteral(token.substr(letters));
}

}  // namespace

ItemTokens::ItemTokens(const Vocabulary& vocabulary) {
  std::vector<std::string> texts;
  std::vector<TokenId> places;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.is_special(id) || !MayEndValue(vocabulary.bytes(id))) continue;
    places.push_back(static_cast<TokenId>(ids_.size()));
    ids_.push_back(id);
    texts.emplace_back(vocabulary.bytes(id));
  }
  trie_ = std::make_unique<TokenTrie>(texts, places);
}

bool ItemTokens::HoldsValue(std::string_view rest) {
  const size_t comma = rest.find(',');
  return comma != std::string_view::npos && MayEndValue(rest.substr(comma));
}

}  // namespace pawl::schema
