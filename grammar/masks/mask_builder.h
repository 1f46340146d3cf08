// The mask of a state, for any machine: MaskBuilder, and LexemeMasks for machines without masks of
// their own.
//
// MaskBuilder: the mask of a state, by the machine's own way where it has one (machine_masks.h),
// else by a walk over the vocabulary's trie (LexemeMasks).
#ifndef PAWL_GRAMMAR_MASKS_MASK_BUILDER_H_
#define PAWL_GRAMMAR_MASKS_MASK_BUILDER_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "grammar/machine.h"
#include "grammar/masks/machine_masks.h"
#include "grammar/masks/token_trie.h"
#include "grammar/vocabulary_tables.h"
#include "pawl/vocabulary.h"

namespace pawl {

// LexemeMasks: mask(state) = inside(lexeme state) ∪ crossing(state), for any machine.
//
// One walk over the trie finds, for a lexeme state, the tokens that stay inside the lexeme and the
// places where a token leaves it. Both depend on the lexeme state alone, so they are kept; what
// remains for a new frame are the subtrees behind the crossing places (for a JSON string: the few
// hundred tokens with a closing quote), walked with full steps. Where every byte leaves the lexeme
// (structure, the start of a value) the first half is empty and the second is the whole walk, which
// is narrow there.

// Not thread-safe.
class LexemeMasks {
 public:
  LexemeMasks(Machine& machine, const Vocabulary& vocabulary);

  // Sets the bits of the tokens that may follow; `known(node, state)`: the caller has set those
  // below the node, `state` being the one after it. REQUIRES: the words are zero.
  template <typename Known>
  void Fill(Machine::Key state, uint32_t* words, const Known& known);
  void Fill(Machine::Key state, uint32_t* words) {
    Fill(state, words, [](uint32_t, Machine::Key) { return false; });
  }
  // Sets the bits of the tokens at and below a node that fit, `entered` being the live state after
  // it.
  template <typename Known>
  void FillFrom(uint32_t node, Machine::Key entered, uint32_t* words, const Known& known);

  // Of what is kept between masks.
  size_t bytes() const { return inside_bytes_; }

 private:
  // The half of a mask that depends on the lexeme state alone.
  struct Inside {
    std::vector<uint32_t> words;  // tokens that end inside the lexeme
    struct Crossing {
      uint32_t node;    // trie node whose byte leaves the lexeme
      uint32_t lexeme;  // the lexeme state before that byte
    };
    std::vector<Crossing> crossings;
  };
  const Inside& InsideOf(uint32_t lexeme);
  // The frame after the bytes above a node.
  uint32_t Tracked(uint32_t frame, uint32_t node);

  Machine& machine_;
  const Vocabulary& vocabulary_;
  std::unordered_map<uint32_t, std::unique_ptr<Inside>> inside_;
  size_t inside_bytes_ = 0;
  std::vector<Machine::Key> stack_;  // scratch
  std::vector<uint32_t> lexeme_stack_;
};

template <typename Known>
void LexemeMasks::FillFrom(uint32_t node, Machine::Key entered, uint32_t* words,
                           const Known& known) {
  const TokenTrie& trie = TrieOf(vocabulary_);
  trie.SetBits(trie.nodes()[node], words);
  if (known(node, entered)) return;
  Walk(trie, node, entered, stack_, [&](Machine::Key before, uint32_t i) {
    const Machine::Key after = machine_.Step(before, trie.nodes()[i].byte);
    if (after == Machine::kDead) return Machine::kDead;
    trie.SetBits(trie.nodes()[i], words);
    return known(i, after) ? Machine::kDead : after;
  });
}

template <typename Known>
void LexemeMasks::Fill(Machine::Key state, uint32_t* words, const Known& known) {
  const Inside& inside = InsideOf(Machine::LexemeOf(state));
  std::copy(inside.words.begin(), inside.words.end(), words);
  const auto nodes = TrieOf(vocabulary_).nodes();
  const uint32_t frame = Machine::FrameOf(state);
  const bool tracks_text = machine_.TracksText(frame);
  // Many tokens leave the same lexeme by the same byte (white space before a bracket).
  std::array<Machine::Key, 256> left;
  std::bitset<256> asked;
  uint32_t asked_lexeme = Machine::kDeadLexeme;
  for (const auto& [node, lexeme] : inside.crossings) {
    const uint8_t byte = nodes[node].byte;
    Machine::Key entered;
    if (tracks_text && nodes[node].depth > 1) {
      entered = machine_.StepFrame(Machine::MakeKey(Tracked(frame, node), lexeme), byte);
    } else {
      if (lexeme != asked_lexeme) {
        asked.reset();
        asked_lexeme = lexeme;
      }
      if (!asked[byte]) {
        asked[byte] = true;
        left[byte] = machine_.StepFrame(Machine::MakeKey(frame, lexeme), byte);
      }
      entered = left[byte];
    }
    if (entered != Machine::kDead) FillFrom(node, entered, words, known);
  }
}

// Not thread-safe.
class MaskBuilder {
 public:
  MaskBuilder(Machine& machine, const Vocabulary& vocabulary)
      : machine_(machine), vocabulary_(vocabulary), lexemes_(machine, vocabulary) {}

  // Words of the mask of `state`, end-of-output tokens included when it accepts. Not memoised.
  std::vector<uint32_t> Build(Machine::Key state);
  // The same into `words`, and the strategy. REQUIRES: as many as a mask has, all zero.
  MaskStrategy Build(Machine::Key state, std::vector<uint32_t>& words);
  // Of what is kept between masks.
  size_t bytes() const { return lexemes_.bytes(); }

 private:
  Machine& machine_;
  const Vocabulary& vocabulary_;
  LexemeMasks lexemes_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MASKS_MASK_BUILDER_H_
