// Knots of continuations, and the strongly connected components of a graph (Components) that find
// them.
//
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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/cfg/continuations.h"
#include "grammar/hash_index.h"
#include "src/base/memory_size.h"

namespace pawl {

// Components: the strongly connected components of a graph, each after those that it refers to
// (Tarjan 1972), without recursion.

// Not thread-safe; what is allocated stays for the next call.
class Components {
 public:
  // Answers of `next_of`.
  static constexpr uint32_t kNothing = UINT32_MAX;     // no node in this place
  static constexpr uint32_t kNoMore = UINT32_MAX - 1;  // nor in any place behind it

  // Calls done(members) for each component of the nodes 0 to count - 1. `next_of(node, i)`: the
  // i-th node that a node refers to. Returns the number of references that were followed.
  template <typename Next, typename Done>
  uint64_t Each(uint32_t count, const Next& next_of, const Done& done) {
    uint64_t steps = 0;
    constexpr uint32_t kNew = UINT32_MAX;
    order_.assign(count, kNew);
    low_.assign(count, 0);
    on_stack_.assign(count, false);
    uint32_t counter = 0;
    for (uint32_t root = 0; root < count; ++root) {
      if (order_[root] != kNew) continue;
      path_.emplace_back(root, 0);
      while (!path_.empty()) {
        auto& [at, next] = path_.back();
        if (next == 0) {
          order_[at] = low_[at] = counter++;
          stack_.push_back(at);
          on_stack_[at] = true;
        }
        bool down = false;
        for (uint32_t to; (to = next_of(at, next)) != kNoMore;) {
          ++next;
          ++steps;
          if (to == kNothing) continue;
          if (order_[to] == kNew) {
            path_.emplace_back(to, 0);  // invalidates the references
            down = true;
            break;
          }
          if (on_stack_[to]) low_[at] = std::min(low_[at], order_[to]);
        }
        if (down) continue;
        const uint32_t last = at;
        path_.pop_back();
        if (!path_.empty()) {
          uint32_t& above = low_[path_.back().first];
          above = std::min(above, low_[last]);
        }
        if (low_[last] != order_[last]) continue;
        members_.clear();
        do {
          members_.push_back(stack_.back());
          on_stack_[stack_.back()] = false;
          stack_.pop_back();
        } while (members_.back() != last);
        done(std::span<const uint32_t>(members_));
      }
    }
    return steps;
  }

  size_t MemoryBytes() const { return HeapBytes(order_, low_, stack_, members_, on_stack_, path_); }

 private:
  std::vector<uint32_t> order_, low_, stack_, members_;
  std::vector<bool> on_stack_;
  std::vector<std::pair<uint32_t, size_t>> path_;  // node, next reference to look at
};

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
