// One pass over the trie: below white space the walk goes on, at any other byte the node is written
// down under that byte and its subtree is passed by. Tokens of white space alone are kept by
// length.
#include "schemas/masks/structure_tokens.h"

#include <algorithm>
#include <string_view>

#include "grammar/vocabulary_tables.h"

namespace pawl::schema {

StructureTokens::StructureTokens(const Vocabulary& vocabulary) {
  constexpr std::string_view kSpace = " \t\n\r";
  const TokenTrie& trie = TrieOf(vocabulary);
  const auto nodes = trie.nodes();
  for (uint32_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    if (kSpace.find(static_cast<char>(node.byte)) == std::string_view::npos) {
      places_[node.byte].push_back({i, node.depth - 1u});
      i = node.end;
      continue;
    }
    trie.ForTokens(node, [&](TokenId token) { spaces_.emplace_back(node.depth, token); });
    ++i;
  }
  quotes_before_.reserve(nodes.size() + 1);
  ends_.reserve(nodes.size());
  uint32_t quotes = 0;
  for (const TokenTrie::Node& node : nodes) {
    quotes_before_.push_back(quotes);
    ends_.push_back(node.end);
    quotes += node.byte == '"' ? 1 : 0;
  }
  quotes_before_.push_back(quotes);
  std::sort(spaces_.begin(), spaces_.end());
}

void StructureTokens::SetSpaces(uint64_t most, std::span<uint32_t> words) const {
  for (const auto& [length, token] : spaces_) {
    if (length > most) break;
    words[static_cast<size_t>(token) >> 5] |= 1u << (token & 31);
  }
}

}  // namespace pawl::schema
