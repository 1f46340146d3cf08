// ItemTokens: the tokens of a vocabulary in which a JSON value may end, whatever the schema.
//
// Where items have to be unique, the byte that ends an item may be refused for what the item is.
// Only these tokens can hold such a byte, unless they end a string that was begun before them.
#ifndef PAWL_SCHEMAS_UNIQUE_ITEM_TOKENS_H_
#define PAWL_SCHEMAS_UNIQUE_ITEM_TOKENS_H_

#include <memory>
#include <string_view>
#include <vector>

#include "grammar/masks/token_trie.h"
#include "pawl/vocabulary.h"

namespace pawl::schema {

// Immutable; get it as TableOf<ItemTokens>(vocabulary).
class ItemTokens {
 public:
  explicit ItemTokens(const Vocabulary& vocabulary);

  // Their trie; its tokens are places in ids().
  const TokenTrie& trie() const { return *trie_; }
  const std::vector<TokenId>& ids() const { return ids_; }
  // Whether a whole value may end in `rest` that has also begun there.
  static bool HoldsValue(std::string_view rest);

 private:
  std::vector<TokenId> ids_;
  std::unique_ptr<TokenTrie> trie_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_UNIQUE_ITEM_TOKENS_H_
