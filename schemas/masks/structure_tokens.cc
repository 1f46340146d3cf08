#include "schemas/masks/structure_tokens.h"

#include <algorithm>
#include <string_view>

#include "grammar/masks/token_trie.h"

namespace pawl::schema {

StructureTokens::StructureTokens(const Vocabulary& vocabulary) {
  constexpr std::string_view kSpace = " \t\n\r";
  const TokenTrie& trie = vocabulary.trie();
  const auto nodes = trie.nodes();
  for (uint32_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    if (kSpace.find(static_cast<char>(node.byte)) == std::string_view::npos) {
      places_[node.byte].push_back({i, node.depth - 1u});
      i = node.end;
      continue;
    }
    for (TokenId token = node.token; token != kNoToken; token = trie.NextSame(token))
      spaces_.emplace_back(node.depth, token);
    ++i;
  }
  std::sort(spaces_.begin(), spaces_.end());
}

void StructureTokens::SetSpaces(uint64_t most, std::span<uint32_t> words) const {
  for (const auto& [length, token] : spaces_) {
    if (length > most) break;
    words[static_cast<size_t>(token) >> 5] |= 1u << (token & 31);
  }
}

}  // namespace pawl::schema
