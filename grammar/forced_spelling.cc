// The encoder's tokens are laid against the bytes; one that does not fit there (a special token,
// bytes of a normalizer) spoils all of them. Then the tail is cut: the trie knows whether some
// token begins with the bytes from a token's beginning to the end and is longer, and no tail beyond
// the longest token of the vocabulary has to be asked.
#include "grammar/forced_spelling.h"

#include "grammar/masks/token_trie.h"
#include "grammar/vocabulary_tables.h"

namespace pawl {
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
