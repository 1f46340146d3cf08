// Masks that users make for constraints of their own.
//
// A list of texts is followed through the trie of the vocabulary, so its cost is that of the texts.
#include <algorithm>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/constraint.h"

namespace pawl {
namespace {

std::vector<uint32_t> NoTokens(const Vocabulary& vocabulary) {
  return std::vector<uint32_t>(static_cast<size_t>(vocabulary.mask_words()), 0);
}

}  // namespace

std::shared_ptr<const Mask> MaskOfTokens(const Vocabulary& vocabulary,
                                         std::span<const TokenId> tokens) {
  std::vector<uint32_t> words = NoTokens(vocabulary);
  for (const TokenId t : tokens) {
    if (t < 0 || t >= vocabulary.size()) continue;
    words[static_cast<size_t>(t) >> 5] |= uint32_t{1} << (t & 31);
  }
  return std::make_shared<Mask>(0, std::move(words));
}

std::shared_ptr<const Mask> MaskWhere(
    const Vocabulary& vocabulary,
    const std::function<bool(TokenId token, std::string_view bytes)>& fits) {
  std::vector<uint32_t> words = NoTokens(vocabulary);
  for (TokenId t = 0; t < vocabulary.size(); ++t) {
    if (vocabulary.is_special(t) || vocabulary.bytes(t).empty()) continue;
    if (fits(t, vocabulary.bytes(t))) words[static_cast<size_t>(t) >> 5] |= uint32_t{1} << (t & 31);
  }
  return std::make_shared<Mask>(0, std::move(words));
}

std::shared_ptr<const Mask> MaskOfTexts(const Vocabulary& vocabulary,
                                        std::span<const std::string> texts) {
  std::vector<uint32_t> words = NoTokens(vocabulary);
  const TokenTrie& trie = TrieOf(vocabulary);
  for (const std::string& text : texts) {
    uint32_t node = TokenTrie::kRoot;
    for (const char byte : text) {
      node = trie.Child(node, static_cast<uint8_t>(byte));
      if (node == TokenTrie::kNone) break;
      trie.SetBits(trie.nodes()[node], words.data());
    }
  }
  return std::make_shared<Mask>(0, std::move(words));
}

}  // namespace pawl
