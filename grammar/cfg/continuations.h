// What may come after a point in a text (Continuations), and the limits of the work on it
// (CfgLimits).
//
// Continuations: what may come after a point in a text, as interned immutable values.
//
// A continuation is a set of entries (node, count, then): "go on at the node; where its routine
// ends, with the continuation `then`". It is the set of items of an Earley parser at one place of
// the text with the items' origins put into values (Earley 1970; the shared stacks of Tomita 1985):
// equal sets are one value, whatever the text before, so all that is found out about one is found
// once.
//
// What a left-recursive rule leaves behind refers to itself; such a knot of continuations is
// interned as a whole, unless it accepts the same as one that was found at another place of the
// text (knots.h). A call at the very end of a routine leaves nothing behind but what was there (as
// Leo 1991 has it for right recursion), so a right-recursive list does not grow.
//
// In an unambiguous part of a grammar each node has one entry. Where a text has many readings,
// a node has an entry for each reading that matters; continuations that lead to many of those
// are *crowded*, and code that looks at what they allow has to count steps (CfgLimits).
//
// Thread safety: none.
#ifndef PAWL_GRAMMAR_CFG_CONTINUATIONS_H_
#define PAWL_GRAMMAR_CFG_CONTINUATIONS_H_

#include <bitset>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/cfg/program.h"
#include "grammar/hash_index.h"
#include "src/base/memory_size.h"

namespace pawl {

// CfgLimits: how much work a grammar may make, in counted steps, and what happens beyond that.
//
// A step is an entry of a continuation that is looked at or made, or a thread of a state that is
// made. The counts depend on the grammar and the text alone, not on what was found before or how
// fast the machine is: the same output is always cut at the same place, if at all.

struct CfgLimits {
  // For the mask of one state of which `crowded` below holds. Beyond it only the shortest
  // completion may follow the state (CfgMachine::AtToken), so that an output is closed there and
  // says why (Generation::notes). At 30 ns a step that is about a twentieth of a second, at 16
  // bytes an entry 32 MB.
  uint64_t mask_steps = 2'000'000;
  // A continuation is crowded when it, or one behind it, has more than so many entries beyond one
  // for each node. States without such continuations have no limit: their masks take what the
  // masks of a grammar of that size take, and a step of the text does not count them.
  size_t crowd = 64;
};

using ContId = uint32_t;
class Closure;
class Knots;

struct ContinuationEntry {
  uint32_t node;
  uint32_t count;  // rounds done, of a kRepeat node
  ContId then;
  friend auto operator<=>(const ContinuationEntry&, const ContinuationEntry&) = default;
};
uint64_t HashOfEntries(std::span<const ContinuationEntry> entries);

class Continuations {
 public:
  static constexpr ContId kNone = 0;  // no entries: nothing may come, not even the end

  using Entry = ContinuationEntry;
  // What a continuation begins with.
  struct Expansion {
    struct Begin {
      uint32_t what;  // terminal or token set
      ContId then;
      friend auto operator<=>(const Begin&, const Begin&) = default;
    };
    std::vector<Begin> terminals, tokens;  // sorted, each `what` once
    std::bitset<256> first_bytes;
    bool accepts = false;  // the text may end
    uint64_t steps = 0;    // that finding this takes, whatever was found before
    size_t MemoryBytes() const { return HeapBytes(terminals, tokens); }
  };

  explicit Continuations(const CfgProgram& program, const CfgLimits& limits = {});
  ~Continuations();

  // The whole program, from its root.
  ContId Start() const { return start_; }
  ContId Union(ContId a, ContId b);
  // Of any number; `ids` is of no use afterwards.
  ContId UnionOf(std::vector<ContId>& ids);
  const Expansion& Expand(ContId id);
  // The same where that takes at most so many steps; nullptr otherwise.
  const Expansion* ExpandWithin(ContId id, uint64_t steps);
  std::span<const Entry> entries(ContId id) const {
    return std::span<const Entry>(entries_).subspan(conts_[id].begin, conts_[id].size);
  }
  // To the end of the text; CfgProgram::kInfinite where bytes alone do not get there.
  CfgProgram::Cost Shortest(ContId id) const { return conts_[id].shortest; }
  CfgProgram::Cost Shortest(const Entry& entry) const {
    return WayOut(entry, conts_[entry.then].shortest);
  }
  // Of the entries, the one with which the shortest text begins. REQUIRES: there are some.
  const Entry& Best(ContId id) const { return entries_[conts_[id].begin + conts_[id].best]; }
  // It, or some continuation behind it, has more than CfgLimits::crowd entries beyond one for each
  // node.
  bool Crowded(ContId id) const { return conts_[id].crowded; }
  // Of the entries, the node that has the most.
  uint32_t CrowdedNode(ContId id) const;
  size_t size() const { return conts_.size(); }
  // Steps of all expansions and comparisons so far, to count in tests.
  uint64_t work() const;
  size_t MemoryBytes() const;
  size_t GrowthHint() const;

 private:
  static constexpr uint32_t kNoKnot = UINT32_MAX;
  struct Cont {
    uint32_t begin, size;
    CfgProgram::Cost shortest = CfgProgram::kInfinite;
    uint64_t nodes = 0;       // a bit for each node, 64 bits for all
    uint32_t best = 0;        // entry
    uint32_t knot = kNoKnot;  // that it is a member of
    bool crowded = false;
  };
  friend class Closure;
  friend class Knots;

  // Sorts; no entry refers to the continuation itself.
  ContId Intern(std::vector<Entry>& entries);
  ContId Append(std::span<const Entry> entries);
  void FindBest(ContId id);
  // With the `then`s below `known`.
  bool IsCrowded(std::span<const Entry> entries, ContId known) const;
  static uint64_t NodesOf(std::span<const Entry> entries);
  CfgProgram::Cost WayOut(const Entry& entry, CfgProgram::Cost behind) const;
  bool ExpandTo(ContId id, uint64_t steps);

  const CfgProgram& program_;
  const CfgLimits limits_;
  std::vector<Cont> conts_;
  std::vector<Entry> entries_;
  HashIndex index_;
  std::unique_ptr<Knots> knots_;
  std::vector<std::unique_ptr<Expansion>> expansions_;
  std::unique_ptr<Closure> closure_;
  size_t expanded_bytes_ = 0;  // of expansions_, about
  std::vector<Entry> union_;   // scratch
  ContId start_ = kNone;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_CONTINUATIONS_H_
