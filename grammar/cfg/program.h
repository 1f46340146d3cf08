// CfgProgram: a GrammarIr as a graph of points that a text moves through, with what is regular made
// into terminals.
//
// A routine (a rule, or the body of a counted repetition) is a graph of nodes; a node says what may
// come at this point and where it goes on. Routines call each other; what is left to do after a
// call is the business of the code that runs the program (continuations.h).
//
// Only what can lead to the end of a text is in it: alternatives without any text are left out.
#ifndef PAWL_GRAMMAR_CFG_PROGRAM_H_
#define PAWL_GRAMMAR_CFG_PROGRAM_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <vector>

#include "grammar/cfg/grammar_ir.h"
#include "grammar/machine.h"
#include "grammar/regex/regex_machine.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/memory_size.h"

namespace pawl {

struct CfgProgram {
  enum class Op : uint8_t {
    kReturn,    // the routine ends
    kAccept,    // the text may end
    kTerminal,  // index: terminal; at least one byte
    kTokens,    // index: token set; one token
    kCall,      // index: routine
    kSplit,     // any of the `count` nodes at splits[index]
    kRepeat,    // calls routine `index` until it ran min to max times; the entry counts
    kMark       // nothing: rule `index` begins (count 0) or ends (count 1) here
  };
  // How much a text costs: its bytes first, then the calls on the path to it, so that what
  // follows the cheapest path gets to its end.
  using Cost = uint64_t;
  static constexpr Cost kByteCost = Cost{1} << 24;
  static constexpr Cost kTokenCost = kByteCost << 18;  // a token taken by number: rather bytes
  static constexpr Cost kInfinite = Cost{1} << 60;     // no text within reason
  struct Node {
    Op op = Op::kReturn;
    uint32_t index = 0;
    uint32_t count = 0;
    uint32_t min = 0, max = 0;
    uint32_t next = 0;
    Cost shortest = kInfinite;  // to the end of the routine (count 0)
  };
  // Where a node comes from: it leads through `expr` of the IR to the node `next`.
  struct Origin {
    GrammarIr::ExprId expr = GrammarIr::kNever;  // kNever: no expression begins here
    uint32_t next = 0;
    bool loop = false;  // through the operand of the repetition `expr`, any number of times
  };
  struct Routine {
    uint32_t start = 0;
    bool nullable = false;  // has the empty text
    Cost shortest = kInfinite;
  };
  // A lexeme: where a machine starts. All regexes share one machine.
  struct Terminal {
    uint32_t source = 0;      // machines[source]
    bool lazy = false;        // ends where it first matches
    uint32_t max_tokens = 0;  // 0: no limit
    bool relaxed = false;     // where it may not end at the limit, it ends where it first may
    Machine::Key start = Machine::kDead;
    Cost shortest = kInfinite;
    std::array<Machine::Key, 256> first{};  // the key after the first byte
    std::bitset<256> first_bytes{};
  };
  struct Tokens {
    std::vector<std::pair<TokenId, TokenId>> ranges;  // sorted, apart; none: no token at all
    TokenId any = kNoToken;  // one of them, for completions; kNoToken: there is none
    bool Has(TokenId token) const;
    size_t MemoryBytes() const { return HeapBytes(ranges); }
  };

  static constexpr uint32_t kReturnNode = 0;
  static constexpr uint32_t kAcceptNode = 1;

  std::vector<Node> nodes;
  std::vector<Origin> origins;  // by node
  std::vector<uint32_t> rules;  // by node, of the IR: whose text it is a part of; or kNoRule
  std::vector<uint32_t> splits;
  std::vector<Routine> routines;
  uint32_t root = 0;  // routine
  std::vector<Terminal> terminals;
  std::vector<Tokens> token_sets;
  std::vector<std::shared_ptr<Machine>> machines;
  bool counts_tokens = false;  // some terminal has a limit
  bool names_ends = false;     // some token set has a token that ends the output
  // By node: the temperature that the rule asks for to which it belongs, negative for none. Empty
  // where no rule asks. Such a rule ends in a mark, so that what follows it tells it is inside.
  std::vector<float> temperatures;

  // The machines aside.
  size_t MemoryBytes() const {
    return HeapBytes(nodes, origins, rules, splits, routines, terminals, token_sets, temperatures);
  }
};

// What a program is made for.
enum class CfgUse : uint8_t {
  kMasks,    // what is regular becomes one terminal, as far as that is small
  kCaptures  // terminals are those of the grammar; alternatives stand in its order, one more round
             // of a loop before its end; marks where a rule with a capture begins and ends
};

// Errors: kUnsatisfiable when the root has no text at all, which may be for want of a token,
// kInvalid for a token name that the vocabulary does not know or an id beyond it (place: the token
// set's), kLimit.
Result<CfgProgram> CompileCfg(GrammarIr& ir, const Vocabulary& vocabulary,
                              CfgUse use = CfgUse::kMasks);

// Whether the root has a text at all, as far as that is known without a vocabulary: any set of
// tokens may have one, and so may an automaton whose machine is not there. Errors: kUnsatisfiable.
// REQUIRES: the grammar has a root.
Status CheckCfg(GrammarIr& ir);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_PROGRAM_H_
