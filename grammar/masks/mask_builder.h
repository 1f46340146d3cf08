// MaskBuilder: computes mask(state) = inside(lexeme state) ∪ crossing(state) over the token trie.
#ifndef PAWL_GRAMMAR_MASK_BUILDER_H_
#define PAWL_GRAMMAR_MASK_BUILDER_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "grammar/machine.h"
#include "grammar/masks/token_trie.h"
#include "pawl/mask.h"
#include "pawl/vocabulary.h"

namespace pawl {

// Takes the machine through the nodes begin ... end - 1 of a trie in their order, past the subtrees
// that do not fit or of which `leaves(state, node)` says so, `state` being the one before the node.
// `reached(node, state)`: the state after it is live; answers the node to go on with. `stack`: one
// state for each depth, that before `begin` given.
template <typename Leaves, typename Reached>
void StepThrough(Machine& machine, const TokenTrie& trie, uint32_t begin, uint32_t end,
                 std::vector<Machine::Key>& stack, const Leaves& leaves, const Reached& reached) {
  const auto nodes = trie.nodes();
  for (uint32_t i = begin; i < end;) {
    const TokenTrie::Node& node = nodes[i];
    const Machine::Key before = stack[node.depth - 1u];
    const Machine::Key after = leaves(before, i) ? Machine::kDead : machine.Step(before, node.byte);
    if (after == Machine::kDead) {
      i = node.end;
      continue;
    }
    stack[node.depth] = after;
    i = reached(i, after);
  }
}

// Sets the bits of the tokens at and below `node` of the vocabulary's trie that fit, `entered`
// being the live state after the node. Where `leaves(state, node)` says so, the node below `state`
// is left alone with all that is below it. `stack`: scratch for one state for each depth.
template <typename Leaves>
void WalkBelow(Machine& machine, const Vocabulary& vocabulary, uint32_t begin, Machine::Key entered,
               uint32_t* words, std::vector<Machine::Key>& stack, const Leaves& leaves) {
  const TokenTrie& trie = vocabulary.trie();
  const auto nodes = trie.nodes();
  const auto fill = [&](uint32_t i, Machine::Key state) {
    const uint8_t byte = nodes[i].byte;
    return (byte == '"' || (byte >= '0' && byte <= '9')) && nodes[i].end > i + 1 &&
           machine.FillBelow(state, vocabulary, i, false, words);
  };
  trie.SetBits(nodes[begin], words);
  if (fill(begin, entered)) return;
  stack[nodes[begin].depth] = entered;
  StepThrough(machine, trie, begin + 1, nodes[begin].end, stack, leaves,
              [&](uint32_t i, Machine::Key state) {
                trie.SetBits(nodes[i], words);
                return fill(i, state) ? nodes[i].end : i + 1;
              });
}

class MaskBuilder {
 public:
  MaskBuilder(Machine& machine, const Vocabulary& vocabulary);

  // Words of the mask of `state`, end-of-output tokens included when it accepts. Not memoised.
  std::vector<uint32_t> Build(Machine::Key state);
  // The same into `words`. REQUIRES: as many as a mask has, all zero.
  void Build(Machine::Key state, std::vector<uint32_t>& words);
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
  void WalkTrie(Machine::Key state, std::vector<uint32_t>& words);

  Machine& machine_;
  const Vocabulary& vocabulary_;
  std::unordered_map<uint32_t, std::unique_ptr<Inside>> inside_;
  size_t inside_bytes_ = 0;
  std::vector<Machine::Key> stack_;  // scratch: state at each depth
  std::vector<uint32_t> lexeme_stack_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MASK_BUILDER_H_
