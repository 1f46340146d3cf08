// Continuations: what may come after a point in a text, as interned immutable values.
//
// A continuation is a set of entries (node, count, then): "go on at the node; where its routine
// ends, with the continuation `then`". It is the set of items of an Earley parser at one place of
// the text with the items' origins put into values (Earley 1970; the shared stacks of Tomita 1985):
// equal sets are one value, whatever the text before, so all that is found out about one is found
// once.
//
// What a left-recursive rule leaves behind refers to itself; such a knot of continuations is
// interned as a whole. A call at the very end of a routine leaves nothing behind but what was there
// (as Leo 1991 has it for right recursion), so a right-recursive list does not grow.
//
// Thread safety: none.
#ifndef PAWL_GRAMMAR_CFG_CONTINUATIONS_H_
#define PAWL_GRAMMAR_CFG_CONTINUATIONS_H_

#include <bitset>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/cfg/program.h"
#include "grammar/hash_index.h"
#include "src/base/memory_size.h"

namespace pawl {

using ContId = uint32_t;
class Closure;

class Continuations {
 public:
  static constexpr ContId kNone = 0;  // no entries: nothing may come, not even the end

  struct Entry {
    uint32_t node;
    uint32_t count;  // rounds done, of a kRepeat node
    ContId then;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
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
    size_t MemoryBytes() const { return HeapBytes(terminals, tokens); }
  };

  explicit Continuations(const CfgProgram& program);
  ~Continuations();

  // The whole program, from its root.
  ContId Start() const { return start_; }
  ContId Union(ContId a, ContId b);
  const Expansion& Expand(ContId id);
  std::span<const Entry> entries(ContId id) const {
    return std::span<const Entry>(entries_).subspan(conts_[id].begin, conts_[id].size);
  }
  // To the end of the text; CfgProgram::kInfinite where bytes alone do not get there.
  CfgProgram::Cost Shortest(ContId id) const { return conts_[id].shortest; }
  CfgProgram::Cost Shortest(const Entry& entry) const;
  size_t size() const { return conts_.size(); }
  // Steps that tying up the calls of places took so far, to count in tests.
  uint64_t work() const;
  size_t MemoryBytes() const;
  size_t GrowthHint() const {
    return conts_.size() * (sizeof(Cont) + 32) + entries_.size() * sizeof(Entry) + expanded_bytes_;
  }

 private:
  struct Cont {
    uint32_t begin, size;
    CfgProgram::Cost shortest;
  };
  friend class Closure;

  ContId Intern(std::vector<Entry>& entries);  // sorts; no entry refers to itself
  // The members of a knot: entries refer to member i as kMember | i. Ids are first + i.
  ContId InternKnot(std::vector<std::vector<Entry>>& members);
  ContId Append(std::span<const Entry> entries);

  static constexpr uint32_t kMember = 1u << 31;

  const CfgProgram& program_;
  std::vector<Cont> conts_;
  std::vector<Entry> entries_;
  HashIndex index_;
  std::unordered_multimap<uint64_t, std::pair<ContId, std::vector<std::vector<Entry>>>> knots_;
  std::vector<std::unique_ptr<Expansion>> expansions_;
  std::unique_ptr<Closure> closure_;
  size_t expanded_bytes_ = 0;  // of expansions_, about
  std::vector<Entry> union_;   // scratch
  ContId start_ = kNone;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_CONTINUATIONS_H_
