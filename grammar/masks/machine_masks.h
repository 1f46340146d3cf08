// MachineMasks: a machine's own way to its masks over one vocabulary, for machines that know a
// faster one than walking the vocabulary's trie byte by byte (Machine::Masks).
#ifndef PAWL_GRAMMAR_MASKS_MACHINE_MASKS_H_
#define PAWL_GRAMMAR_MASKS_MACHINE_MASKS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "grammar/machine.h"
#include "grammar/masks/mask_strategy.h"

namespace pawl {

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
