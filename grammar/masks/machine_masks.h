// A machine's own masks (MachineMasks), and the names of the strategies for profiles
// (MaskStrategy).
//
// MachineMasks: a machine's own way to its masks over one vocabulary, for machines that know a
// faster one than walking the vocabulary's trie byte by byte (Machine::Masks).
#ifndef PAWL_GRAMMAR_MASKS_MACHINE_MASKS_H_
#define PAWL_GRAMMAR_MASKS_MACHINE_MASKS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "grammar/machine.h"

namespace pawl {

// MaskStrategy: by which way a mask was found, for profiles (`pawl maskbench --profile`).

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

// Bound to one machine and one vocabulary. Not thread-safe.
class MachineMasks {
 public:
  virtual ~MachineMasks() = default;

  // Sets the bits of all tokens whose bytes may follow and says by which way they were found.
  // nullopt: nothing was set, walking is no slower here. REQUIRES: the words are zero.
  virtual std::optional<MaskStrategy> Fill(Machine::Key state, uint32_t* words) = 0;
  // As Machine's.
  virtual size_t MemoryBytes() const { return 0; }
  virtual size_t GrowthHint() const { return 0; }
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MASKS_MACHINE_MASKS_H_
