// Comparing. Look(a, b) takes "a is in b" for true while it compares the entries, so continuations
// that refer to themselves are compared in finite time (coinduction). What turns out false under
// such assumptions is false for good; what turns out true is true once the first question is, and
// what was assumed below a pair that turns out false is forgotten. Most pairs need no look: a
// continuation is in none with a longer shortest text, nor in one that lacks one of its nodes.
//
// Tying. Entries that are in others are left out, which may cut the knot into components. Of each,
// equal members become one (partition refinement, as Hopcroft's minimization of automata does it
// for functions), in an order that depends on their entries alone. Then a known knot is equal in
// one of two cases. The new knot does not refer to it: then both have the same entries, which a
// hash finds. Or the new knot does: then it is among the knots of the `then`s, and the members are
// compared. No third case exists: what refers to no equal continuation has only entries that the
// equal one has too.
//
// When everything stored has been compared so, no two stored continuations are equal, so the
// entries of a continuation do not depend on what was asked before. kMostPairs bounds a comparison
// that takes too long; its answer is then "not in", which costs memory but no text.
#include "grammar/cfg/knots.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/base/sorted.h"
#include "src/base/stop_scope.h"

namespace pawl {
namespace {

constexpr uint32_t kMostPairs = 4096;  // of one question
constexpr int kMostDepth = 500;        // of pairs that are compared because of one another
// Entries of one node that are compared with one another.
constexpr size_t kMostOfNode = 32;
constexpr size_t kMostKnown = size_t{1} << 20;  // answers kept; forgotten beyond that

uint64_t PairOf(ContId a, ContId b) { return uint64_t{a} << 32 | b; }

bool SameNode(const Continuations::Entry& a, const Continuations::Entry& b) {
  return a.node == b.node && a.count == b.count;
}

}  // namespace

std::span<const Knots::Entry> Knots::EntriesOf(ContId id) const {
  if ((id & kMember) == 0) return conts_.entries(id);
  return (*members_)[id & ~kMember];
}

Knots::Facts Knots::FactsOf(ContId id) const {
  if ((id & kMember) != 0) return facts_[id & ~kMember];
  return {conts_.conts_[id].shortest, conts_.conts_[id].nodes};
}

void Knots::BeginMembers(const Lists& members) {
  members_ = &members;
  facts_.clear();
  found_.clear();
}

void Knots::FindFacts() {
  if (!facts_.empty()) return;
  for (const std::vector<Entry>& list : *members_)
    facts_.push_back({CfgProgram::kInfinite, Continuations::NodesOf(list)});
  // A shortest way out passes each member at most once.
  for (size_t round = 0; round < members_->size(); ++round) {
    bool changed = false;
    for (size_t i = 0; i < members_->size(); ++i) {
      for (const Entry& entry : (*members_)[i]) {
        StopScope::Step();
        const CfgProgram::Cost length = conts_.WayOut(entry, FactsOf(entry.then).shortest);
        if (length >= facts_[i].shortest) continue;
        facts_[i].shortest = length;
        changed = true;
      }
    }
    if (!changed) return;
  }
}

void Knots::Keep(const Found& found, std::span<const ContId> ids) {
  const auto stored = [&](ContId id) { return id & kMember ? ids[id & ~kMember] : id; };
  for (const auto& [pair, is_in] : found) {
    const ContId a = stored(static_cast<ContId>(pair >> 32)), b = stored(static_cast<ContId>(pair));
    if (a != b && !Known(PairOf(a, b))) Remember(PairOf(a, b), is_in);
  }
}

std::optional<bool> Knots::Known(uint64_t pair) const {
  if (((pair | pair >> 32) & kMember) != 0) {
    const auto found = found_.find(pair);
    return found == found_.end() ? std::nullopt : std::optional(found->second);
  }
  const uint8_t* const known = known_.Find(pair);
  return known == nullptr ? std::nullopt : std::optional(*known != 0);
}

void Knots::Remember(uint64_t pair, bool is_in) {
  if (((pair | pair >> 32) & kMember) != 0) {
    found_[pair] = is_in;
  } else {
    if (known_.size() >= kMostKnown) known_.Clear();
    known_.Insert(pair, is_in ? 1 : 0);
  }
}

bool Knots::IsIn(ContId a, ContId b) {
  compared_ = 0;
  gave_up_ = false;
  const bool is_in = Look(a, b, 0);
  if (gave_up_ && !is_in && !Known(PairOf(a, b))) Remember(PairOf(a, b), false);
  for (const uint64_t pair : trail_) Remember(pair, true);  // empty where the answer is no
  trail_.clear();
  assumed_.clear();
  return is_in;
}

bool Knots::Look(ContId a, ContId b, int depth) {
  ++work_;
  StopScope::Step();
  if (a == b || a == Continuations::kNone) return true;
  if (b == Continuations::kNone) return false;
  const Facts of_a = FactsOf(a), of_b = FactsOf(b);
  if (of_b.shortest > of_a.shortest || (of_a.nodes & ~of_b.nodes) != 0) return false;
  const uint64_t pair = PairOf(a, b);
  if (const std::optional<bool> known = Known(pair)) return *known;
  if (assumed_.contains(pair)) return true;
  // What is in a continuation (as is assumed) is in all that this one is in.
  if (!trail_.empty() && static_cast<ContId>(trail_.back() >> 32) == a &&
      Known(PairOf(static_cast<ContId>(trail_.back()), b)).value_or(false)) {
    return true;
  }
  if (++compared_ > kMostPairs || depth >= kMostDepth) {
    gave_up_ = true;
    return false;
  }
  const size_t mark = trail_.size();
  trail_.push_back(pair);
  assumed_.emplace(pair, true);
  const std::span<const Entry> others = EntriesOf(b);
  auto run = others.begin();
  bool is_in = true;
  for (const Entry& entry : EntriesOf(a)) {
    run = std::lower_bound(run, others.end(), Entry{entry.node, entry.count, 0});
    const auto same = std::lower_bound(run, others.end(), entry);
    if (same != others.end() && *same == entry) continue;
    is_in = false;
    for (auto other = run; !is_in && other != others.end() && SameNode(*other, entry); ++other)
      is_in = Look(entry.then, other->then, depth + 1);
    if (!is_in) break;
  }
  if (is_in) return true;
  for (size_t i = mark; i < trail_.size(); ++i) assumed_.erase(trail_[i]);
  trail_.resize(mark);
  if (!gave_up_) Remember(pair, false);
  return false;
}

void Knots::Prune(std::vector<Entry>& list) {
  for (size_t i = 0; i < list.size();) {
    size_t end = i + 1;
    while (end < list.size() && SameNode(list[end], list[i])) ++end;
    if (end - i > 1 && end - i <= kMostOfNode) {
      if (members_ != nullptr) FindFacts();
      // The youngest first, so that of two that are equal the older one stays.
      for (size_t at = end; at-- > i;) {
        const auto begin = list.begin() + static_cast<std::ptrdiff_t>(i);
        const bool needless =
            std::any_of(begin, begin + static_cast<std::ptrdiff_t>(end - i), [&](const Entry& by) {
              return by.then != list[at].then && IsIn(list[at].then, by.then);
            });
        if (!needless) continue;
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
        --end;
      }
    }
    i = end;
  }
}

void Knots::Tie(Lists& members, std::vector<ContId>& ids) {
  ids.assign(members.size(), Continuations::kNone);
  BeginMembers(members);
  bool cut = false;
  for (std::vector<Entry>& list : members) {
    const size_t before = list.size();
    Prune(list);
    cut |= list.size() != before;
  }
  members_ = nullptr;
  const Found found = std::exchange(found_, {});
  if (!cut) {
    std::vector<uint32_t> all(members.size());
    std::iota(all.begin(), all.end(), 0u);
    TieComponent(members, all, ids);
  } else {
    const auto next = [&](uint32_t member, size_t i) {
      const std::vector<Entry>& list = members[member];
      if (i >= list.size()) return Components::kNoMore;
      return list[i].then & kMember ? list[i].then & ~kMember : Components::kNothing;
    };
    components_.Each(static_cast<uint32_t>(members.size()), next,
                     [&](std::span<const uint32_t> part) { TieComponent(members, part, ids); });
  }
  Keep(found, ids);
}

void Knots::TieComponent(const Lists& members, std::span<const uint32_t> component,
                         std::vector<ContId>& ids) {
  std::vector<uint32_t> place(members.size(), UINT32_MAX);
  for (uint32_t i = 0; i < component.size(); ++i) place[component[i]] = i;
  bool refers = component.size() > 1;
  Lists lists;
  for (const uint32_t member : component) {
    std::vector<Entry>& list = lists.emplace_back(members[member]);
    for (Entry& entry : list) {
      if ((entry.then & kMember) == 0) continue;
      const uint32_t to = entry.then & ~kMember;
      refers |= to == member;
      entry.then = place[to] == UINT32_MAX ? ids[to] : kMember | place[to];
    }
    SortUnique(list);
  }
  if (!refers) {
    ids[component[0]] = conts_.Intern(lists[0]);
    return;
  }
  const std::vector<uint32_t> number = Minimize(lists);
  uint64_t hash = lists.size();
  for (const std::vector<Entry>& list : lists) hash = HashMix(hash, HashOfEntries(list));
  const uint32_t known = first_.Find(hash, [&](uint32_t knot) {
    if (knots_[knot].size != lists.size()) return false;
    for (ContId i = 0; i < lists.size(); ++i) {
      const auto same = [&](const Entry& stored, const Entry& entry) {
        return SameNode(stored, entry) &&
               stored.then == (entry.then & kMember ? knots_[knot].first + (entry.then & ~kMember)
                                                    : entry.then);
      };
      if (!std::ranges::equal(conts_.entries(knots_[knot].first + i), lists[i], same)) return false;
    }
    return true;
  });
  std::vector<ContId> of_number(lists.size());
  if (known != HashIndex::kNone) {
    std::iota(of_number.begin(), of_number.end(), knots_[known].first);
  } else {
    BeginMembers(lists);
    if (!FindAmongReferred(lists, of_number))
      std::iota(of_number.begin(), of_number.end(), Store(lists, hash));
    members_ = nullptr;
    Keep(std::exchange(found_, {}), of_number);
  }
  for (size_t i = 0; i < component.size(); ++i) ids[component[i]] = of_number[number[i]];
}

std::vector<uint32_t> Knots::Minimize(Lists& lists) {
  std::vector<uint32_t> number(lists.size(), 0), order(lists.size());
  if (lists.size() == 1) return number;
  std::iota(order.begin(), order.end(), 0u);
  Lists numbered;
  const auto renumber = [&] {
    numbered = lists;
    for (std::vector<Entry>& list : numbered) {
      for (Entry& entry : list) {
        if (entry.then & kMember) entry.then = kMember | number[entry.then & ~kMember];
      }
      SortUnique(list);
      work_ += list.size();
      StopScope::Steps(list.size());
    }
  };
  for (uint32_t count = 1, before = 0; count != before;) {
    before = count;
    renumber();
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return numbered[a] < numbered[b]; });
    count = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && numbered[order[i - 1]] != numbered[order[i]]) ++count;
      number[order[i]] = count;
    }
    ++count;
  }
  renumber();
  Lists distinct(number[order.back()] + 1u);
  for (size_t i = 0; i < lists.size(); ++i) distinct[number[i]] = numbered[i];
  lists = std::move(distinct);
  return number;
}

bool Knots::FindAmongReferred(const Lists& lists, std::vector<ContId>& ids) {
  std::vector<uint32_t> referred;
  for (const std::vector<Entry>& list : lists) {
    for (const Entry& entry : list) {
      const uint32_t knot =
          entry.then & kMember ? Continuations::kNoKnot : conts_.conts_[entry.then].knot;
      if (knot != Continuations::kNoKnot) referred.push_back(knot);
    }
  }
  SortUnique(referred);
  if (referred.empty()) return false;
  FindFacts();
  const auto find = [&](uint32_t member, const Knot& knot) {
    for (ContId id = knot.first; id < knot.first + knot.size; ++id) {
      ++work_;
      if (facts_[member].shortest == conts_.conts_[id].shortest &&
          facts_[member].nodes == conts_.conts_[id].nodes && Equal(kMember | member, id)) {
        return id;
      }
    }
    return Continuations::kNone;
  };
  for (const uint32_t knot : referred) {
    ids[0] = find(0, knots_[knot]);
    if (ids[0] == Continuations::kNone) continue;
    uint32_t found = 1;
    while (found < lists.size() &&
           (ids[found] = find(found, knots_[knot])) != Continuations::kNone) {
      ++found;
    }
    if (found == lists.size()) return true;
  }
  return false;
}

ContId Knots::Store(const Lists& lists, uint64_t hash) {
  FindFacts();
  const auto first = static_cast<ContId>(conts_.conts_.size());
  const auto knot = static_cast<uint32_t>(knots_.size());
  bool crowded = false;
  for (size_t i = 0; i < lists.size(); ++i) {
    std::vector<Entry> entries = lists[i];
    for (Entry& entry : entries) {
      if (entry.then & kMember) entry.then = first + (entry.then & ~kMember);
    }
    const ContId id = conts_.Append(entries);
    conts_.index_.Insert(HashOfEntries(entries), id);
    Continuations::Cont& cont = conts_.conts_[id];
    cont.shortest = facts_[i].shortest;
    cont.knot = knot;
    crowded |= conts_.IsCrowded(entries, first);
  }
  for (ContId id = first; id < first + lists.size(); ++id) {
    conts_.conts_[id].crowded = crowded;
    conts_.FindBest(id);
  }
  knots_.push_back({first, static_cast<uint32_t>(lists.size())});
  first_.Insert(hash, knot);
  return first;
}

}  // namespace pawl
