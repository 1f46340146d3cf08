// Vocabulary: the tokens of one tokenizer as byte strings.
//
//   pawl::VocabularyInit init;
//   init.tokens = {"{", "}", "\"a\"", ":", "1", ""};   // bytes of token 0, 1, ...
//   init.special = {5};                                // never matched as text
//   init.end_tokens = {5};                             // allowed where the grammar accepts
//   auto vocabulary = pawl::Vocabulary::Create(std::move(init));
//
// Thread safety: a Vocabulary is immutable, so any number of threads may use it.
#ifndef PAWL_VOCABULARY_H_
#define PAWL_VOCABULARY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl {

using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;

struct VocabularyTables;

struct VocabularyInit {
  // The bytes of each token; the index is the token id. A token may be a part of a code point.
  std::vector<std::string> tokens;
  std::vector<TokenId> special;  // control tokens, which no text of a grammar matches
  // Tokens that end the output. A mask allows them exactly where the text is complete.
  std::vector<TokenId> end_tokens;
};

class PAWL_EXPORT Vocabulary {
 public:
  // Errors: kInvalid for no tokens, or an id out of range; kLimit for more than 2^24 tokens, or a
  // token longer than 65,535 bytes.
  static Result<std::shared_ptr<const Vocabulary>> Create(VocabularyInit init);
  ~Vocabulary();
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  // The number of token ids V. A mask has mask_words() = ceil(V / 32) words.
  int size() const { return static_cast<int>(tokens_.size()); }
  int mask_words() const { return (size() + 31) / 32; }

  // The bytes of a token; for a special token its name.
  // REQUIRES: 0 <= id < size().
  std::string_view bytes(TokenId id) const { return tokens_[static_cast<size_t>(id)]; }
  bool is_special(TokenId id) const { return special_[static_cast<size_t>(id)] != 0; }
  bool is_end(TokenId id) const { return special_[static_cast<size_t>(id)] == 2; }
  std::span<const TokenId> end_tokens() const { return end_tokens_; }

  // The longest token that is a prefix of `bytes`, or kNoToken. O(length of this token).
  TokenId LongestPrefix(std::string_view bytes) const;
  // The fewest tokens that spell `bytes` exactly. Empty if no tokens spell them.
  std::vector<TokenId> FewestTokens(std::string_view bytes) const;

 private:
  friend struct VocabularyTables;
  Vocabulary();
  std::vector<std::string> tokens_;
  std::vector<uint8_t> special_;  // 0 text, 1 special, 2 special and end of output
  std::vector<TokenId> end_tokens_;
  std::unique_ptr<VocabularyTables> tables_;
};

// A piece of an output or of a completion: one token, or bytes that any tokens may spell.
struct OutputPiece {
  TokenId token = kNoToken;  // kNoToken: bytes
  std::string bytes = {};    // empty if there is a token
  friend bool operator==(const OutputPiece&, const OutputPiece&) = default;
};

}  // namespace pawl

#endif  // PAWL_VOCABULARY_H_
