// What masks need of a vocabulary beside its tokens: the trie of their bytes, and tables that front
// ends derive from the tokens alone.
#ifndef PAWL_GRAMMAR_VOCABULARY_TABLES_H_
#define PAWL_GRAMMAR_VOCABULARY_TABLES_H_

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <typeindex>

#include "grammar/masks/token_trie.h"
#include "pawl/vocabulary.h"

namespace pawl {

struct VocabularyTables {
  VocabularyTables(std::span<const std::string> tokens, std::span<const TokenId> text)
      : trie(tokens, text) {}
  static VocabularyTables& Of(const Vocabulary& vocabulary) { return *vocabulary.tables_; }

  const TokenTrie trie;
  std::recursive_mutex mutex;
  std::map<std::type_index, std::shared_ptr<const void>> derived;  // with the mutex
};

inline const TokenTrie& TrieOf(const Vocabulary& vocabulary) {
  return VocabularyTables::Of(vocabulary).trie;
}

// Made at the first call for each type T, as T(vocabulary), and kept as long as the vocabulary; T
// may ask for others. Thread-safe: making one under the lock is fine, since it happens once and
// everyone who waits needs it.
template <typename T>
const T& TableOf(const Vocabulary& vocabulary) {
  VocabularyTables& tables = VocabularyTables::Of(vocabulary);
  const std::lock_guard lock(tables.mutex);
  std::shared_ptr<const void>& slot = tables.derived[typeid(T)];
  if (slot == nullptr) slot = std::make_shared<const T>(vocabulary);
  return *static_cast<const T*>(slot.get());
}

}  // namespace pawl

#endif  // PAWL_GRAMMAR_VOCABULARY_TABLES_H_
