// Vocabulary: the tokens of one tokenizer as byte strings, with the trie that masks are computed
// on.
//
//   pawl::VocabularyInit init;
//   init.tokens = {"{", "}", "\"a\"", ":", "1", ""};   // bytes of token 0, 1, ...
//   init.special = {5};                                // never matched as text
//   init.end_tokens = {5};                             // allowed where the grammar accepts
//   auto vocabulary = pawl::Vocabulary::Create(std::move(init));
//
// Immutable after Create, so any number of threads may read it.
#ifndef PAWL_VOCABULARY_H_
#define PAWL_VOCABULARY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "pawl/export.h"
#include "pawl/result.h"

namespace pawl {

using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;

class TokenTrie;

struct VocabularyInit {
  std::vector<std::string>
      tokens;  // index = token id; bytes, not text: a token may hold part of a code point
  std::vector<TokenId> special;  // control tokens: a grammar's text never matches them
  std::vector<TokenId>
      end_tokens;  // end of output; a mask allows them exactly where the grammar accepts
};

class PAWL_EXPORT Vocabulary {
 public:
  // Errors: an id out of range, more than 2^24 tokens, a token longer than 65,535 bytes.
  static Result<std::shared_ptr<const Vocabulary>> Create(VocabularyInit init);
  ~Vocabulary();
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  // Number of token ids V; masks have ceil(V/32) words.
  int size() const { return static_cast<int>(tokens_.size()); }
  int mask_words() const { return (size() + 31) / 32; }

  // Bytes of a token; for special tokens their name as given, which text never matches.
  // REQUIRES: 0 <= id < size().
  std::string_view bytes(TokenId id) const { return tokens_[static_cast<size_t>(id)]; }
  bool is_special(TokenId id) const { return special_[static_cast<size_t>(id)] != 0; }
  bool is_end(TokenId id) const { return special_[static_cast<size_t>(id)] == 2; }
  std::span<const TokenId> end_tokens() const { return end_tokens_; }

  // The longest token that is a prefix of `bytes`, or kNoToken. O(length of the token).
  TokenId LongestPrefix(std::string_view bytes) const;
  // The fewest tokens that spell `bytes` exactly; empty when some byte cannot be spelled.
  std::vector<TokenId> FewestTokens(std::string_view bytes) const;

  const TokenTrie& trie() const { return *trie_; }

  // Tables that a front end derives from the tokens alone, made at the first call of each type T
  // (as T(vocabulary)) and kept as long as the vocabulary; T may ask for others. Thread-safe.
  template <typename T>
  const T& Derived() const {
    const std::shared_ptr<const void>& slot = DerivedSlot(
        typeid(T),
        [](const Vocabulary& v) -> std::shared_ptr<const void> { return std::make_shared<T>(v); });
    return *static_cast<const T*>(slot.get());
  }

 private:
  Vocabulary() = default;
  const std::shared_ptr<const void>& DerivedSlot(
      std::type_index type, std::shared_ptr<const void> (*make)(const Vocabulary&)) const;

  struct DerivedTables {
    std::recursive_mutex mutex;
    std::map<std::type_index, std::shared_ptr<const void>> tables;
  };
  std::unique_ptr<DerivedTables> derived_ = std::make_unique<DerivedTables>();
  std::vector<std::string> tokens_;
  std::vector<uint8_t> special_;  // 0 text, 1 special, 2 special and end of output
  std::vector<TokenId> end_tokens_;
  std::unique_ptr<TokenTrie> trie_;
};

}  // namespace pawl

#endif  // PAWL_VOCABULARY_H_
