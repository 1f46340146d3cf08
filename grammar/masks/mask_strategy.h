// MaskStrategy: by which way a mask was found, for profiles (`pawl maskbench --profile`).
#ifndef PAWL_GRAMMAR_MASKS_MASK_STRATEGY_H_
#define PAWL_GRAMMAR_MASKS_MASK_STRATEGY_H_

#include <cstddef>
#include <cstdint>

namespace pawl {

enum class MaskStrategy : uint8_t {
  kKnown,         // the state was asked before
  kTrieWalk,      // the vocabulary's trie against the machine, byte by byte
  kStructure,     // around values: the tokens with a byte of structure
  kValue,         // shared by all places that want the same value
  kKeys,          // the names that may come
  kFreeString,    // what any string allows
  kNarrowString,  // a restricted string, byte by byte
  kWideString,    // a restricted string, by classes of characters
  kUniqueItems,   // the twin's mask, less the items that are there
};
inline constexpr size_t kMaskStrategies = 9;
inline constexpr const char* kMaskStrategyNames[kMaskStrategies] = {
    "known state", "trie walk",     "structure",   "value",       "keys",
    "free string", "narrow string", "wide string", "unique items"};

// How many masks a grammar has made, and by which way the last one.
struct MasksMade {
  uint64_t count = 0;
  MaskStrategy last = MaskStrategy::kKnown;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MASKS_MASK_STRATEGY_H_
