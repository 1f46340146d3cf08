// Walk: one pass over a trie of tokens, in step with an automaton. Every mask comes from it.
//
//   Walk(trie, TokenTrie::kRoot, start, stack, [&](State before, uint32_t node) {
//     const State after = automaton.Step(before, trie.nodes()[node].byte);
//     if (Leaves(after)) exits.push_back(node);         // where a token leaves the lexeme
//     if (IsDead(after) || Leaves(after)) return State{};
//     trie.SetBits(trie.nodes()[node], words);          // the tokens that stay inside
//     return after;
//   });
//
// What the automaton is, is the stepper's business: a machine's keys or its lexemes alone, the
// states of a grammar, the texts behind a string's quote. It is asked about each node whose parent
// it went into, in the trie's order, and answers the state after it; State{} goes past all that is
// below, because nothing fits, because it is an exit, or because all of it is known already.
#ifndef PAWL_GRAMMAR_MASKS_WALK_H_
#define PAWL_GRAMMAR_MASKS_WALK_H_

#include <cstdint>
#include <vector>

#include "grammar/masks/token_trie.h"
#include "src/base/stop_scope.h"

namespace pawl {

// Scratch of walks: one state for each depth.
template <typename State>
std::vector<State> WalkStack(const TokenTrie& trie) {
  return std::vector<State>(static_cast<size_t>(trie.max_depth()) + 1);
}

// The nodes begin ... end - 1, whole subtrees; `stack` has the state before `begin` at its depth.
template <typename State, typename Stepper>
void WalkSpan(const TokenTrie& trie, uint32_t begin, uint32_t end, std::vector<State>& stack,
              Stepper&& step) {
  const auto nodes = trie.nodes();
  for (uint32_t i = begin, visits = 0; i < end;) {
    if ((++visits & 0xFF) == 0) StopScope::Check();
    const uint16_t depth = nodes[i].depth;
    const State after = step(stack[depth - 1u], i);
    if (after == State{}) {
      i = nodes[i].end;
    } else {
      stack[depth] = after;
      ++i;
    }
  }
}

// All that is below `node` (TokenTrie::kRoot: all tokens), `at` being the state after it.
template <typename State, typename Stepper>
void Walk(const TokenTrie& trie, uint32_t node, State at, std::vector<State>& stack,
          Stepper&& step) {
  const bool root = node == TokenTrie::kRoot;
  stack[root ? 0 : trie.nodes()[node].depth] = at;
  WalkSpan(trie, root ? 0 : node + 1, root ? trie.size() : trie.nodes()[node].end, stack, step);
}

}  // namespace pawl

#endif  // PAWL_GRAMMAR_MASKS_WALK_H_
