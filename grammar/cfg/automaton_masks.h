// AutomatonMasks: the tokens that may follow inside a lexeme that has a machine of its own (a JSON
// Schema, free text), where that machine knows them faster than a walk finds them.
//
// The machine itself says which tokens stay inside the lexeme. A token leaves it only between a
// byte with which the lexeme can end and one with which its continuation can begin; the trie's
// nodes with such a pair of bytes are few and found in an index, so only they are followed.
#ifndef PAWL_GRAMMAR_CFG_AUTOMATON_MASKS_H_
#define PAWL_GRAMMAR_CFG_AUTOMATON_MASKS_H_

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/machine.h"
#include "grammar/masks/token_trie.h"
#include "pawl/vocabulary.h"

namespace pawl {

// The nodes of a vocabulary's trie by the byte of their parent and their own.
class BytePairs {
 public:
  explicit BytePairs(const Vocabulary& vocabulary);
  std::span<const uint32_t> Of(uint8_t first, uint8_t second) const {
    const size_t pair = static_cast<size_t>(first) << 8 | second;
    return std::span<const uint32_t>(nodes_).subspan(begin_[pair], begin_[pair + 1] - begin_[pair]);
  }

 private:
  std::vector<uint32_t> begin_, nodes_;
};

// Not thread-safe; asked about one vocabulary only.
class AutomatonMasks {
 public:
  explicit AutomatonMasks(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  // Sets the bits of the tokens that stay inside the lexeme and gives the nodes before whose byte
  // (one of `first`) it may end. nullopt, and nothing is set, where walking is no slower.
  std::optional<std::vector<uint32_t>> Fill(Machine& machine, Machine::Key key,
                                            const std::bitset<256>& first, uint32_t* words);

 private:
  const Vocabulary& vocabulary_;
  const BytePairs* pairs_ = nullptr;
  std::unordered_map<Machine*, std::bitset<256>> last_bytes_;
  std::vector<uint32_t> scratch_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_AUTOMATON_MASKS_H_
