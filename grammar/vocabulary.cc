// A vocabulary is checked once and immutable afterwards: ids in range, lengths that the trie can
// hold, special tokens and end tokens marked. Special tokens have no bytes for a text to match.
#include "pawl/vocabulary.h"

#include <algorithm>
#include <limits>

#include "grammar/masks/token_trie.h"
#include "grammar/vocabulary_tables.h"
#include "src/base/stop_scope.h"

namespace pawl {

Vocabulary::Vocabulary() = default;
Vocabulary::~Vocabulary() = default;

Result<std::shared_ptr<const Vocabulary>> Vocabulary::Create(VocabularyInit init) {
  constexpr size_t kMaxTokens = size_t{1} << 24;
  if (init.tokens.empty())
    return Error{ErrorCode::kInvalid, "a vocabulary needs at least one token", ""};
  if (init.tokens.size() > kMaxTokens) {
    return Error{ErrorCode::kLimit, "more than 2^24 tokens: " + std::to_string(init.tokens.size()),
                 ""};
  }
  for (size_t i = 0; i < init.tokens.size(); ++i) {
    if (init.tokens[i].size() > std::numeric_limits<uint16_t>::max()) {
      return Error{ErrorCode::kLimit, "a token is longer than 65535 bytes",
                   "token " + std::to_string(i)};
    }
  }
  std::shared_ptr<Vocabulary> vocabulary(new Vocabulary());
  vocabulary->special_.assign(init.tokens.size(), 0);
  const auto mark = [&](const std::vector<TokenId>& ids, uint8_t value, const char* what,
                        const char* place) -> Status {
    for (const TokenId id : ids) {
      if (id < 0 || static_cast<size_t>(id) >= init.tokens.size()) {
        return Error{ErrorCode::kInvalid,
                     std::string(what) + " token id " + std::to_string(id) + " is outside 0.." +
                         std::to_string(init.tokens.size() - 1),
                     place};
      }
      vocabulary->special_[static_cast<size_t>(id)] = value;
    }
    return {};
  };
  if (Status s = mark(init.special, 1, "special", "special"); !s.ok()) return s.error();
  if (Status s = mark(init.end_tokens, 2, "end-of-output", "end_tokens"); !s.ok()) return s.error();
  vocabulary->tokens_ = std::move(init.tokens);
  vocabulary->end_tokens_ = std::move(init.end_tokens);
  std::sort(vocabulary->end_tokens_.begin(), vocabulary->end_tokens_.end());
  vocabulary->end_tokens_.erase(
      std::unique(vocabulary->end_tokens_.begin(), vocabulary->end_tokens_.end()),
      vocabulary->end_tokens_.end());

  std::vector<TokenId> text;
  for (int id = 0; id < vocabulary->size(); ++id) {
    if (!vocabulary->is_special(id)) text.push_back(id);
  }
  vocabulary->tables_ = std::make_unique<VocabularyTables>(vocabulary->tokens_, text);
  return std::shared_ptr<const Vocabulary>(std::move(vocabulary));
}

TokenId Vocabulary::LongestPrefix(std::string_view bytes) const {
  TokenId best = kNoToken;
  uint32_t node = TokenTrie::kRoot;
  for (const char c : bytes) {
    node = tables_->trie.Child(node, static_cast<uint8_t>(c));
    if (node == TokenTrie::kNone) break;
    if (tables_->trie.nodes()[node].token != kNoToken) best = tables_->trie.nodes()[node].token;
  }
  return best;
}

FewestFromEnd::FewestFromEnd(const Vocabulary& vocabulary, std::string bytes)
    : vocabulary_(vocabulary), bytes_(std::move(bytes)), first_(bytes_.size(), kNoToken) {
  // Shortest path from the end: fewest[i] tokens spell bytes[i..].
  constexpr int kImpossible = std::numeric_limits<int>::max();
  const TokenTrie& trie = TrieOf(vocabulary);
  std::vector<int> fewest(bytes_.size() + 1, kImpossible);
  fewest[bytes_.size()] = 0;
  for (size_t i = bytes_.size(); i-- > 0;) {
    StopScope::Step();
    uint32_t node = TokenTrie::kRoot;
    for (size_t j = i; j < bytes_.size(); ++j) {
      node = trie.Child(node, static_cast<uint8_t>(bytes_[j]));
      if (node == TokenTrie::kNone) break;
      const TokenId token = trie.nodes()[node].token;
      if (token != kNoToken && fewest[j + 1] != kImpossible && fewest[j + 1] + 1 < fewest[i]) {
        fewest[i] = fewest[j + 1] + 1;
        first_[i] = token;
      }
    }
  }
}

std::optional<std::vector<TokenId>> FewestFromEnd::Of(std::string_view ending) const {
  if (!std::string_view(bytes_).ends_with(ending)) return std::nullopt;
  std::vector<TokenId> out;
  for (size_t i = bytes_.size() - ending.size(); i < bytes_.size();) {
    if (first_[i] == kNoToken) return std::nullopt;
    out.push_back(first_[i]);
    i += vocabulary_.bytes(first_[i]).size();
  }
  return out;
}

std::vector<TokenId> Vocabulary::FewestTokens(std::string_view bytes) const {
  return FewestFromEnd(*this, std::string(bytes)).Of(bytes).value_or(std::vector<TokenId>());
}

// Forced text: the encoder's tokens are laid against the bytes; one that does not fit there (a
// special token, bytes of a normalizer) spoils all of them. Then the tail is cut: the trie knows
// whether some token begins with the bytes from a token's beginning to the end and is longer, and
// no tail beyond the longest token of the vocabulary has to be asked.

namespace {

// Whether a token of the vocabulary begins with `bytes` and is longer.
bool Extendable(const TokenTrie& trie, std::string_view bytes) {
  uint32_t node = TokenTrie::kRoot;
  for (const char c : bytes) {
    node = trie.Child(node, static_cast<uint8_t>(c));
    if (node == TokenTrie::kNone) return false;
  }
  return trie.nodes()[node].end > node + 1;
}

}  // namespace

std::vector<TokenId> SpellForced(const Vocabulary& vocabulary, const Encoder& encode,
                                 std::string_view forced) {
  std::vector<TokenId> tokens = encode(forced);
  std::vector<size_t> ends;  // of each token, in `forced`
  size_t at = 0;
  for (const TokenId token : tokens) {
    if (token < 0 || token >= vocabulary.size() || vocabulary.is_special(token)) return {};
    const std::string_view bytes = vocabulary.bytes(token);
    if (bytes.empty() || forced.substr(at, bytes.size()) != bytes) return {};
    ends.push_back(at += bytes.size());
  }
  if (at != forced.size()) return {};
  // The longest tail that a longer token begins with; tails beyond the longest token have none.
  const TokenTrie& trie = TrieOf(vocabulary);
  size_t keep = tokens.size();
  for (size_t i = tokens.size(); i-- > 0;) {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    if (forced.size() - begin > static_cast<size_t>(trie.max_depth())) break;
    if (Extendable(trie, forced.substr(begin))) keep = i;
  }
  tokens.resize(keep);
  return tokens;
}

}  // namespace pawl
