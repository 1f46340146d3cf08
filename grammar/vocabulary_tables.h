// What a vocabulary knows besides its tokens: the trie of their bytes, tables that front ends
// derive from the tokens alone, and how a tokenizer writes a forced text.
#ifndef PAWL_GRAMMAR_VOCABULARY_TABLES_H_
#define PAWL_GRAMMAR_VOCABULARY_TABLES_H_

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "grammar/masks/token_trie.h"
#include "pawl/matcher.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/sync.h"

namespace pawl {

struct VocabularyTables {
  VocabularyTables(std::span<const std::string> tokens, std::span<const TokenId> text)
      : trie(tokens, text) {}
  static VocabularyTables& Of(const Vocabulary& vocabulary) { return *vocabulary.tables_; }

  const TokenTrie trie;
  RecursiveMutex mutex;
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

// The fewest tokens that spell a text, and every ending of it.
class FewestFromEnd {
 public:
  FewestFromEnd(const Vocabulary& vocabulary, std::string bytes);
  // nothing: no tokens spell it, or the text does not end so.
  std::optional<std::vector<TokenId>> Of(std::string_view ending) const;
  size_t MemoryBytes() const { return bytes_.size() + first_.size() * sizeof(TokenId); }

 private:
  const Vocabulary& vocabulary_;
  const std::string bytes_;
  std::vector<TokenId> first_;  // by place; kNoToken: none leads to the end
};

// Forced spelling: in which tokens a run of bytes that the constraint dictates is written.
//
//   const auto tokens = pawl::SpellForced(vocabulary, encode, state.forced());
//
// A key such as "customer" is forced as text, but "c" "ustomer" spells it as well as "customer"
// does, and a model that has to go on from an unusual spelling goes on worse. So the run is encoded
// as the model's training text was. Bytes at its end are left out where a longer token could
// still swallow them together with what follows: there the model has a choice.

// Tokens that spell a prefix of `forced` (perhaps all of it, perhaps nothing): no token of the
// vocabulary begins with the bytes of its last tokens and goes on. Empty when the encoding is not
// made of exactly these bytes, as with tokenizers that put a space before every text.
PAWL_EXPORT std::vector<TokenId> SpellForced(const Vocabulary& vocabulary, const Encoder& encode,
                                             std::string_view forced);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_VOCABULARY_TABLES_H_
