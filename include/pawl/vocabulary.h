// Vocabulary: the tokens of one tokenizer as byte strings.
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
  // Index: token id. Bytes, not text: a token may hold a part of a code point.
  std::vector<std::string> tokens;
  std::vector<TokenId> special;  // control tokens: a grammar's text never matches them
  // The end of output; a mask allows them exactly where the grammar accepts.
  std::vector<TokenId> end_tokens;
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

 private:
  friend struct VocabularyTables;
  Vocabulary();
  std::vector<std::string> tokens_;
  std::vector<uint8_t> special_;  // 0 text, 1 special, 2 special and end of output
  std::vector<TokenId> end_tokens_;
  std::unique_ptr<VocabularyTables> tables_;
};

// OutputPiece: a piece of an output, or of what completes one.

// A token taken as a whole; or bytes, for which no token is known or which any tokens may spell.
struct OutputPiece {
  TokenId token = kNoToken;  // kNoToken: bytes
  std::string bytes = {};    // where there is no token
  friend bool operator==(const OutputPiece&, const OutputPiece&) = default;
};

}  // namespace pawl

#endif  // PAWL_VOCABULARY_H_
