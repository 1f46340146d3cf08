// The one maker of small vocabularies for tests, and lists of tokens to give to it.
//
//   VocabularyOf({"a", "b"})                             // 0 "a", 1 "b", 2 "<end>"
//   VocabularyOf(AllBytes({"ab"}), {"<tool>"})           // 256 bytes, "ab", "<tool>", "<end>"
//   VocabularyOf({"a", "</s>", "b"}, {}, {"</s>"})       // another end, where the test wants it
#ifndef PAWL_TESTS_SUPPORT_VOCABULARIES_H_
#define PAWL_TESTS_SUPPORT_VOCABULARIES_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "pawl/vocabulary.h"

namespace pawl {

// A vocabulary of these tokens. No text matches the `special` ones, and `ends` end the output. Both
// are names; those that are not among the tokens come last, special ones first.
inline std::shared_ptr<const Vocabulary> VocabularyOf(std::vector<std::string> tokens,
                                                      const std::vector<std::string>& special = {},
                                                      const std::vector<std::string>& ends = {
                                                          "<end>"}) {
  VocabularyInit init;
  init.tokens = std::move(tokens);
  const auto id_of = [&](const std::string& name) {
    const auto at = std::ranges::find(init.tokens, name);
    const auto id = static_cast<TokenId>(at - init.tokens.begin());
    if (at == init.tokens.end()) init.tokens.push_back(name);
    return id;
  };
  for (const std::string& name : special) init.special.push_back(id_of(name));
  for (const std::string& name : ends) init.end_tokens.push_back(id_of(name));
  return *Vocabulary::Create(std::move(init));
}

inline std::vector<std::string> Joined(std::vector<std::string> tokens,
                                       const std::vector<std::string>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

// The characters from `first` to `last`, then `more`.
inline std::vector<std::string> Letters(char first, char last,
                                        const std::vector<std::string>& more = {}) {
  std::vector<std::string> tokens;
  for (int c = first; c <= last; ++c) tokens.emplace_back(1, static_cast<char>(c));
  return Joined(std::move(tokens), more);
}

// Each byte, then `more`: any text can be written.
inline std::vector<std::string> AllBytes(const std::vector<std::string>& more = {}) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  return Joined(std::move(tokens), more);
}

// The smallest vocabulary that can write anything.
inline std::shared_ptr<const Vocabulary> Bytes() { return VocabularyOf(AllBytes()); }

// Each byte, pieces of JSON and of tags, and `count` random words of two to four characters.
inline std::vector<std::string> JsonTokens(int count) {
  std::vector<std::string> tokens =
      AllBytes({"\":", "\",\"", "{\"", "\"}", "\":[", "],\"", "true", "null", "<call", "=f>",
                "</call>", "2025-", "T00:", "@", "name"});
  std::mt19937 random(3);
  for (int i = 0; i < count; ++i) {
    std::string token;
    for (size_t n = 2 + random() % 3; n > 0; --n)
      token.push_back(
          static_cast<char>(random() % 4 == 0 ? '0' + random() % 10 : 'a' + random() % 26));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace pawl

#endif  // PAWL_TESTS_SUPPORT_VOCABULARIES_H_
