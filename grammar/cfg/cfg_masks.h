// Masks of context-free grammars (CfgMasks), and the classes of equal subtrees of the trie
// (SubtreeClasses) that make them cheap.
//
// CfgMasks: which tokens may follow a state of a CfgMachine.
//
// The mask of a state is the union of what its threads allow, and a thread allows the tokens that
// stay inside its lexeme (they depend on the lexeme alone) and those that leave it at a place where
// it may end and go on with what its continuation allows. The first half and the places are found
// by one walk over the vocabulary's trie and kept; the second half looks only at places where the
// next byte is one with which the continuation can begin.
#ifndef PAWL_GRAMMAR_CFG_CFG_MASKS_H_
#define PAWL_GRAMMAR_CFG_CFG_MASKS_H_

#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "grammar/cfg/automaton_masks.h"
#include "grammar/cfg/cfg_machine.h"
#include "grammar/masks/machine_masks.h"
#include "grammar/masks/token_trie.h"
#include "pawl/vocabulary.h"
#include "src/base/memory_size.h"

namespace pawl {

// SubtreeClasses: which nodes of a vocabulary's trie have the same byte and the same tokens below
// them, but for what came before. " foo(" and " bar(" end in one class, and what may follow a word
// is found for both at once. And of what bytes the tokens below a node consist: where an automaton
// stays in one state on all of them, that part of the trie need not be walked.
//
// Made once for a vocabulary (Vocabulary::Derived). Immutable.

class SubtreeClasses {
 public:
  explicit SubtreeClasses(const Vocabulary& vocabulary);

  // Nodes of one class have subtrees of the same size, byte for byte, with tokens at the same
  // nodes.
  uint32_t ClassOf(uint32_t node) const { return class_of_[node]; }
  uint32_t count() const { return count_; }
  // The classes of the bytes below the node (byte_class.h). Not malformed: below a node that ends a
  // character, all is UTF-8.
  uint64_t Below(uint32_t node) const { return below_[node]; }

  // Sets the bits of all tokens below the node, those that end at it not included.
  void SetBelow(uint32_t node, uint32_t* words) const {
    ranges_.SetBits(trie_.order(), trie_.FirstToken(node + 1),
                    trie_.FirstToken(trie_.nodes()[node].end), words);
  }

  // The children of a node with a large subtree: what begins with other bytes need not look there.
  static constexpr uint32_t kLarge = 200;  // nodes
  struct Child {
    uint32_t node;
    uint8_t byte;
  };
  struct Children {
    std::bitset<256> bytes;
    std::vector<Child> list;
  };
  // REQUIRES: more than kLarge nodes are below it.
  const Children& ChildrenOf(uint32_t node) const { return children_.at(node); }

 private:
  void FindClasses();
  void FindBytes();

  void FindRanges(int words);

  const TokenTrie& trie_;
  TokenRanges ranges_;
  std::vector<uint32_t> class_of_;
  uint32_t count_ = 0;
  std::vector<uint64_t> below_;
  std::unordered_map<uint32_t, Children> children_;
};

// Not thread-safe; asked about one vocabulary only.
class CfgMasks : public MachineMasks {
 public:
  CfgMasks(CfgMachine& machine, const Vocabulary& vocabulary);

  std::optional<MaskStrategy> Fill(Machine::Key state, uint32_t* words) override;
  // Finds beforehand what lexemes allow: at the start of each regex, then where most tokens take
  // it. `steps`: as GrammarOptions::prepare_steps.
  void Prepare(uint64_t steps);
  // Whether the mask of a crowded state takes no more steps than CfgLimits allows, counted as if
  // nothing had been found before.
  bool WithinLimit(CfgMachine::StateId state);
  uint64_t work() const { return work_; }  // nodes of the trie that walks over states looked at
  const Vocabulary& vocabulary() const { return vocabulary_; }
  size_t MemoryBytes() const override {
    return HeapBytes(inside_, threads_, fresh_, words_, touched_, group_of_class_, reached_,
                     all_below_, leaving_, group_of_node_, stack_, marked_states_, marked_conts_);
  }
  size_t bytes() const { return bytes_; }  // about that

 private:
  using StateId = CfgMachine::StateId;
  using Thread = CfgMachine::Thread;

  // Words of a mask: those with tokens where they are few, all where they are many.
  struct TokenBits {
    struct Word {
      uint32_t index, bits;
    };
    std::vector<Word> some;
    std::vector<uint32_t> all;
    size_t MemoryBytes() const { return HeapBytes(some, all); }
  };
  // Of a thread, or of what may begin.
  struct Part {
    TokenBits tokens;
    uint64_t steps = 0;  // counted where its continuation is crowded; kTooMany: they were stopped
    size_t MemoryBytes() const { return tokens.MemoryBytes(); }
  };
  static constexpr uint64_t kTooMany = UINT64_MAX;
  // Nodes by their byte, and those of one byte by their SubtreeClasses class.
  struct Groups {
    struct Byte {
      uint8_t byte;
      uint32_t first;  // group
    };
    std::vector<uint32_t> nodes;
    std::vector<uint32_t> begin;  // of each group in `nodes`, and one more at the end
    std::vector<Byte> bytes;      // and one more at the end
    size_t MemoryBytes() const { return HeapBytes(nodes, begin, bytes); }
  };
  // What a lexeme allows below a node of the trie, whatever comes after it.
  struct Inside {
    TokenBits tokens;  // that end inside the lexeme
    // Nodes before whose byte the lexeme may end, but for those through which all tokens are there
    // already.
    Groups leaving;
    size_t MemoryBytes() const { return HeapBytes(tokens, leaving); }
  };
  struct InsideKey {
    uint32_t node, source;
    bool last;  // the lexeme has to end with the token
    Machine::Key key;
    friend bool operator==(const InsideKey&, const InsideKey&) = default;
  };
  struct KeyHash {
    size_t operator()(const InsideKey& k) const {
      uint64_t h =
          (uint64_t{k.node} << 32 | k.source << 1 | (k.last ? 1 : 0)) * 0x9E3779B97F4A7C15u;
      return static_cast<size_t>((h ^ k.key ^ (h >> 31)) * 0xD6E8FEB86659FD93u);
    }
  };

  const Part& PartOf(const Thread& thread);
  const Part& PartOfFresh(ContId fresh);
  // Between these two, steps are counted if the continuation is crowded.
  void BeginCount(ContId then);
  Part EndCount(std::vector<uint32_t> mask);
  void Spend(uint64_t steps);
  // The first time within a count: of the marks of states or of continuations.
  bool Mark(std::vector<uint32_t>& marks, uint32_t at);
  // As CfgMachine::StepState and Continuations::Expand. Beyond the limit dead, and nothing.
  StateId Step(StateId state, uint8_t byte);
  const Continuations::Expansion& Expand(ContId then);
  void FillBelow(uint32_t node, StateId state, uint32_t* words, int depth);
  void FillThread(uint32_t node, const Thread& thread, uint32_t* words, int depth);
  void FillGroup(std::span<const uint32_t> group, StateId state, uint32_t* words, int depth);
  void WalkState(uint32_t node, StateId state, uint32_t* words);
  // All tokens below the node may follow a state that is the one after it. false: perhaps not.
  bool TakesAll(uint32_t node, StateId state);
  const Inside& InsideOf(uint32_t node, const Thread& thread);
  // Sets the bits of what stays inside in words_. false: the watch stopped it.
  template <typename Steps, typename Watch>
  bool WalkLexeme(const Steps& steps, uint32_t node, const Thread& thread,
                  std::vector<uint32_t>& leaving, Watch& watch);
  Groups GroupsOf(const std::vector<uint32_t>& nodes);
  const Inside& Keep(const InsideKey& key, TokenBits tokens, Groups leaving);
  static TokenBits Pack(std::vector<uint32_t> words);  // of a whole mask
  TokenBits PackTouched();                             // of words_
  static void Or(const TokenBits& tokens, uint32_t* words);
  static size_t BytesOf(const TokenBits& tokens) {
    return tokens.some.size() * sizeof(TokenBits::Word) + tokens.all.size() * 4 + 64;
  }
  static size_t BytesOf(const Groups& groups) {
    return (groups.nodes.size() + groups.begin.size()) * 4 +
           groups.bytes.size() * sizeof(Groups::Byte);
  }

  CfgMachine& machine_;
  const Vocabulary& vocabulary_;
  const TokenTrie& trie_;
  AutomatonMasks automata_;
  std::unordered_map<InsideKey, std::unique_ptr<Inside>, KeyHash> inside_;
  std::map<std::tuple<uint32_t, bool, Machine::Key, ContId>, Part> threads_;  // whole masks
  std::unordered_map<ContId, Part> fresh_;
  size_t bytes_ = 0;
  const SubtreeClasses& classes_;
  std::bitset<256> begins_;  // bytes with which some lexeme begins
  // Scratch: fresh pages would cost more.
  std::vector<uint32_t> words_;                // of WalkLexeme, zero but during it
  std::vector<uint32_t> touched_;              // of WalkLexeme: words that are not zero any more,
  bool touched_many_ = false;                  // but for those of long ranges
  std::vector<uint32_t> group_of_class_;       // of GroupsOf, kNone but during it
  std::vector<uint32_t> reached_, all_below_;  // of FillGroup
  std::vector<uint32_t> leaving_;              // of InsideOf and Prepare
  std::vector<uint32_t> group_of_node_;        // of GroupsOf
  std::vector<StateId> stack_;
  // Counting, of one part.
  bool counts_ = false, over_ = false;
  uint64_t spent_ = 0;
  uint32_t count_ = 0;  // its number, in the marks
  std::vector<uint32_t> marked_states_, marked_conts_;
  uint64_t work_ = 0;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_CFG_MASKS_H_
