// Knots: what makes continuations that accept the same texts one object.
//
// Continuations are compared node by node. One is *in* another when each of its entries (node,
// count, then) has an entry of the other with the same node and count whose `then` it is in: what
// the first allows, the second allows by the same nodes. For continuations that refer to themselves
// that is the greatest such relation. Two things follow:
//
// - An entry is left out of a continuation that has a second one of the same node and count which
//   it is in. No text is lost, nor any rule around it (temperatures).
// - A knot, continuations that refer to one another in a ring, is stored only when no known
//   continuation is equal to one of its members (each in the other). Otherwise the known ones stand
//   in its place, although they were found at another place of the text.
//
// Thread safety: none.
#ifndef PAWL_GRAMMAR_CFG_KNOTS_H_
#define PAWL_GRAMMAR_CFG_KNOTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/cfg/components.h"
#include "grammar/cfg/continuations.h"
#include "grammar/flat_map.h"
#include "grammar/hash_index.h"

namespace pawl {

class Knots {
 public:
  using Entry = Continuations::Entry;
  using Lists = std::vector<std::vector<Entry>>;
  // In a `then`: a member of the knot that is being tied.
  static constexpr uint32_t kMember = 1u << 31;

  explicit Knots(Continuations& conts) : conts_(conts) {}

  // Leaves out the entries that are in others. REQUIRES: sorted.
  void Prune(std::vector<Entry>& list);
  // The continuations of the members, whose entries refer to member i as kMember | i.
  void Tie(Lists& members, std::vector<ContId>& ids);

  // Pairs of entries that were compared so far.
  uint64_t work() const { return work_; }
  size_t GrowthHint() const { return known_.size() * 32; }
  size_t MemoryBytes() const { return HeapBytes(known_, knots_, first_, components_); }

 private:
  // Of a continuation that is not stored yet.
  struct Facts {
    CfgProgram::Cost shortest;
    uint64_t nodes;
  };
  struct Knot {
    ContId first;
    uint32_t size;
  };
  // What was found about pairs of which one at least is not stored: the key of a pair, the answer.
  using Found = std::unordered_map<uint64_t, bool>;

  std::span<const Entry> EntriesOf(ContId id) const;
  Facts FactsOf(ContId id) const;
  void BeginMembers(const Lists& members);
  void FindFacts();
  // Remembers what was found about members by the continuations that they have become.
  void Keep(const Found& found, std::span<const ContId> ids);

  bool IsIn(ContId a, ContId b);
  bool Equal(ContId a, ContId b) { return IsIn(a, b) && IsIn(b, a); }
  bool Look(ContId a, ContId b, int depth);
  std::optional<bool> Known(uint64_t pair) const;
  void Remember(uint64_t pair, bool is_in);

  void TieComponent(const Lists& members, std::span<const uint32_t> component,
                    std::vector<ContId>& ids);
  // Numbers equal members alike, in an order that is the same whenever the same knot arises, and
  // makes `lists` one for each number.
  std::vector<uint32_t> Minimize(Lists& lists);
  bool FindAmongReferred(const Lists& lists, std::vector<ContId>& ids);
  ContId Store(const Lists& lists, uint64_t hash);

  Continuations& conts_;
  std::vector<Knot> knots_;
  HashIndex first_;                 // knots by what they hold
  FlatMap<uint8_t> known_;          // pairs of stored continuations
  const Lists* members_ = nullptr;  // not stored yet
  std::vector<Facts> facts_;        // of those
  Found found_;
  // Of one call of IsIn: pairs that are taken for true as long as nothing speaks against them.
  std::unordered_map<uint64_t, bool> assumed_;
  std::vector<uint64_t> trail_;
  uint32_t compared_ = 0;
  bool gave_up_ = false;
  uint64_t work_ = 0;
  Components components_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_KNOTS_H_
