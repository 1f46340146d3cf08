// Expanding a continuation is the prediction and completion of an Earley parser at one place.
//
// The worklist holds (node, count, then). A call makes a slot for the routine, in which all callers
// at this place leave what comes after the call, and begins the routine once, with that slot as its
// `then`. A routine that ends goes on with the entries of its `then`, unless that is a slot of this
// place: then the routine had the empty text, which its callers know beforehand (Aycock and
// Horspool 2002). What a node begins with within its own routine is the same at every place and
// found once (Opening).
//
// Afterwards the slots become continuations. A caller that ends right after the call leaves no
// entry but its own `then`, whose entries are taken over. Slots that refer to one another in a ring
// are a knot.
#include "grammar/cfg/continuations.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "grammar/cfg/knots.h"
#include "src/base/memory_size.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"

namespace pawl {

uint64_t HashOfEntries(std::span<const ContinuationEntry> entries) {
  uint64_t hash = entries.size();
  for (const ContinuationEntry& entry : entries) {
    hash = HashMix(hash, uint64_t{entry.node} << 32 | entry.count);
    hash = HashMix(hash, entry.then);
  }
  return hash;
}

namespace {

using Op = CfgProgram::Op;
using Entry = Continuations::Entry;

// Such lists are mostly a few sorted ones, one behind the other: those are merged.
void SortRuns(std::vector<Entry>& list) {
  constexpr size_t kMostRuns = 16;
  std::array<size_t, kMostRuns + 1> ends;
  size_t runs = 0;
  for (size_t i = 1; i <= list.size() && runs <= kMostRuns; ++i) {
    if (i == list.size() || list[i] < list[i - 1]) ends[runs++ % ends.size()] = i;
  }
  if (runs > kMostRuns) return SortUnique(list);
  while (runs > 1) {
    size_t begin = 0, merged = 0;
    for (size_t i = 0; i < runs; i += 2) {
      const size_t end = ends[std::min(i + 1, runs - 1)];
      const auto at = [&](size_t place) {
        return list.begin() + static_cast<std::ptrdiff_t>(place);
      };
      std::inplace_merge(at(begin), at(ends[i]), at(end));
      ends[merged++] = begin = end;
    }
    runs = merged;
  }
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// Entries that were seen in this run. Emptied in no time: what an older run left does not count.
class SeenEntries {
 public:
  void Clear() {
    ++run_;
    size_ = 0;
  }
  size_t size() const { return size_; }
  // false: it was there.
  bool Add(const Entry& entry) {
    if (2 * (size_ + 1) > places_.size()) Grow();
    return Put(entry);
  }

  size_t MemoryBytes() const { return HeapBytes(places_); }

 private:
  struct Place {
    uint64_t run = 0;
    Entry entry{};
  };
  bool Put(const Entry& entry) {
    for (size_t i = HashOfEntries({&entry, 1});; ++i) {
      Place& place = places_[i & (places_.size() - 1)];
      if (place.run != run_) {
        place = {run_, entry};
        ++size_;
        return true;
      }
      if (place.entry == entry) return false;
    }
  }
  void Grow() {
    std::vector<Place> old(std::max<size_t>(64, 2 * places_.size()));
    old.swap(places_);
    size_ = 0;
    for (const Place& place : old) {
      if (place.run == run_) Put(place.entry);
    }
  }

  std::vector<Place> places_;
  uint64_t run_ = 1;
  size_t size_ = 0;
};

}  // namespace

// One expansion after the other. While one runs, a `then` with the bit kSlot is a slot of its
// place.
class Closure {
 public:
  Closure(Continuations& conts, const CfgProgram& program)
      : conts_(conts),
        program_(program),
        openings_(program.nodes.size()),
        slot_of_(program.routines.size(), kNoSlot) {}

  // false: it takes more than `most` steps, and `out` is of no use.
  bool Run(ContId id, uint64_t most, Continuations::Expansion& out) {
    for (const Entry& entry : conts_.entries(id)) Push(entry);
    bool whole = true;
    while (!work_.empty() && whole) {
      const Entry entry = work_.back();
      work_.pop_back();
      Visit(entry, out);
      StopScope::Step();
      whole = seen_.size() + left_.size() + taken_over_ <= most;
    }
    out.steps = seen_.size() + left_.size() + taken_over_ + left_at_terminals_.size() +
                left_at_tokens_.size();
    work_done_ += out.steps;
    if (whole) {
      Flatten();
      out.steps += flat_.size();
      whole = out.steps <= most;
    }
    if (whole) {
      Tie();
      out.steps += Collect(left_at_terminals_, out.terminals);
      out.steps += Collect(left_at_tokens_, out.tokens);
      whole = out.steps <= most;
      for (const auto& begin : out.terminals)
        out.first_bytes |= program_.terminals[begin.what].first_bytes;
    }
    for (const uint32_t routine : routine_of_slot_) slot_of_[routine] = kNoSlot;
    routine_of_slot_.clear();
    work_.clear();
    left_.clear();
    left_at_terminals_.clear();
    left_at_tokens_.clear();
    seen_.Clear();
    taken_over_ = 0;
    return whole;
  }
  uint64_t work() const { return work_done_; }
  // About what MemoryBytes says, in a few loads: openings are most of it.
  size_t GrowthHint() const {
    return opening_bytes_ + (left_.size() + left_at_terminals_.size()) * sizeof(Left);
  }
  size_t MemoryBytes() const {
    return HeapBytes(openings_, work_, seen_, slot_of_, routine_of_slot_, left_, left_at_terminals_,
                     left_at_tokens_, left_of_slot_, flat_of_slot_, id_of_slot_, flat_, scratch_,
                     lists_, place_in_knot_, knot_, tied_, components_);
  }

 private:
  static constexpr uint32_t kSlot = 1u << 30;
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  // What a node leads to within its routine, by moves that take no text.
  struct Opening {
    struct Take {
      uint32_t what, next;
    };
    struct Call {
      uint32_t routine, node, count;  // what comes after it
    };
    std::vector<Take> terminals, tokens;
    std::vector<Call> calls;
    bool returns = false, accepts = false;
    size_t MemoryBytes() const { return HeapBytes(terminals, tokens, calls); }
  };
  // What comes after a slot's routine, or after a terminal or token set. Where the node ends its
  // routine, what `then` holds.
  struct Left {
    uint32_t what;
    Entry entry;
    friend auto operator<=>(const Left&, const Left&) = default;
  };
  struct Range {
    uint32_t begin, size;
  };

  void Push(const Entry& entry) {
    if (seen_.Add(entry)) work_.push_back(entry);
  }

  const Opening& OpeningOf(uint32_t node) {
    if (openings_[node] == nullptr) {
      openings_[node] = std::make_unique<Opening>();
      MakeOpening(node, *openings_[node]);
      opening_bytes_ += openings_[node]->MemoryBytes();
    }
    return *openings_[node];
  }

  void MakeOpening(uint32_t from, Opening& out) {
    std::vector<uint32_t> work = {from};
    SeenEntries seen;
    seen.Add({from, 0, 0});
    const auto push = [&](uint32_t node) {
      if (seen.Add({node, 0, 0})) work.push_back(node);
    };
    while (!work.empty()) {
      StopScope::Step();
      const uint32_t at = work.back();
      work.pop_back();
      const CfgProgram::Node& node = program_.nodes[at];
      switch (node.op) {
        case Op::kReturn:
          out.returns = true;
          break;
        case Op::kAccept:
          out.accepts = true;
          break;
        case Op::kTerminal:
          out.terminals.push_back({node.index, node.next});
          break;
        case Op::kTokens:
          out.tokens.push_back({node.index, node.next});
          break;
        case Op::kCall:
          out.calls.push_back({node.index, node.next, 0});
          if (program_.routines[node.index].nullable) push(node.next);
          break;
        case Op::kMark:
          push(node.next);
          break;
        case Op::kSplit:
          for (uint32_t i = 0; i < node.count; ++i) push(program_.splits[node.index + i]);
          break;
        case Op::kRepeat:
          if (const auto call = Round(at, 0)) out.calls.push_back(*call);
          if (node.min == 0) push(node.next);
          break;
      }
    }
  }

  // One more round of a repetition, where it may have one.
  std::optional<Opening::Call> Round(uint32_t repeat, uint32_t done) {
    const CfgProgram::Node& node = program_.nodes[repeat];
    if (done >= node.max) return std::nullopt;
    // Beyond the minimum an endless repetition need not count.
    const uint32_t rounds =
        node.max == GrammarIr::kUnbounded ? std::min(done + 1, node.min) : done + 1;
    if (rounds == node.max) return Opening::Call{node.index, node.next, 0};
    return Opening::Call{node.index, repeat, rounds};
  }

  void Call(const Opening::Call& call, uint32_t then) {
    uint32_t& slot = slot_of_[call.routine];
    const bool begins = slot == kNoSlot;
    if (begins) {
      slot = static_cast<uint32_t>(routine_of_slot_.size());
      routine_of_slot_.push_back(call.routine);
      work_.push_back({program_.routines[call.routine].start, 0, kSlot | slot});
    }
    left_.push_back({slot, {call.node, call.count, then}});
  }

  void Visit(const Entry& entry, Continuations::Expansion& out) {
    uint32_t node = entry.node;
    if (entry.count > 0) {  // a repetition that has begun
      if (const auto call = Round(node, entry.count)) Call(*call, entry.then);
      if (entry.count < program_.nodes[node].min) return;
      node = program_.nodes[node].next;
    }
    const Opening& opening = OpeningOf(node);
    for (const auto& [what, next] : opening.terminals)
      left_at_terminals_.push_back({what, {next, 0, entry.then}});
    for (const auto& [what, next] : opening.tokens)
      left_at_tokens_.push_back({what, {next, 0, entry.then}});
    for (const Opening::Call& call : opening.calls) Call(call, entry.then);
    out.accepts |= opening.accepts;
    if (opening.returns && (entry.then & kSlot) == 0) {
      const std::span<const Entry> more = conts_.entries(entry.then);
      for (const Entry& next : more) Push(next);
      taken_over_ += more.size();
      StopScope::Steps(more.size());
    }
  }

  // The entries of all slots, those of the `then`s that they share included. Slots that hold the
  // same share one list: in a chain of rules each of which may be the next one alone, all do.
  void Flatten() {
    std::sort(left_.begin(), left_.end());
    const auto n = static_cast<uint32_t>(routine_of_slot_.size());
    left_of_slot_.assign(n, {0, 0});
    for (uint32_t i = 0; i < left_.size(); ++i) {
      Range& range = left_of_slot_[left_[i].what];
      if (range.size++ == 0) range.begin = i;
    }
    flat_.clear();
    flat_of_slot_.assign(n, {0, 0});
    const auto left_of = [&](uint32_t slot) {
      const Range range = left_of_slot_[slot];
      return std::span(left_).subspan(range.begin, range.size);
    };
    const auto same = [&](uint32_t slot, size_t i) {
      const auto list = left_of(slot);
      if (i >= list.size()) return Components::kNoMore;
      const Entry& entry = list[i].entry;
      const bool taken = entry.node == CfgProgram::kReturnNode && (entry.then & kSlot) != 0;
      return taken ? entry.then & ~kSlot : Components::kNothing;
    };
    work_done_ += components_.Each(n, same, [&](std::span<const uint32_t> members) {
      std::vector<Entry>& list = scratch_;
      list.clear();
      lists_.clear();
      for (const uint32_t member : members) {
        for (const Left& left : left_of(member)) {
          if (left.entry.node != CfgProgram::kReturnNode) {
            list.push_back(left.entry);
          } else if ((left.entry.then & kSlot) == 0) {
            const auto more = conts_.entries(left.entry.then);
            list.insert(list.end(), more.begin(), more.end());
          } else if (const Range other = flat_of_slot_[left.entry.then & ~kSlot]; other.size > 0) {
            lists_.emplace_back(other.begin, other.size);  // none yet of this component's own
          }
        }
      }
      SortUnique(lists_);
      Range range;
      if (list.empty() && lists_.size() == 1) {
        range = {lists_[0].first, lists_[0].second};
      } else {
        for (const auto& [begin, size] : lists_) {
          const auto more = std::span(flat_).subspan(begin, size);
          list.insert(list.end(), more.begin(), more.end());
        }
        SortRuns(list);
        range = {static_cast<uint32_t>(flat_.size()), static_cast<uint32_t>(list.size())};
        flat_.insert(flat_.end(), list.begin(), list.end());
      }
      work_done_ += members.size() + list.size();
      StopScope::Steps(members.size() + list.size());
      for (const uint32_t member : members) flat_of_slot_[member] = range;
    });
  }
  std::span<const Entry> flat(uint32_t slot) const {
    return std::span(flat_).subspan(flat_of_slot_[slot].begin, flat_of_slot_[slot].size);
  }

  // Makes continuations of all slots, of those that they refer to first.
  void Tie() {
    id_of_slot_.assign(routine_of_slot_.size(), Continuations::kNone);
    const auto next = [&](uint32_t slot, size_t i) {
      const std::span<const Entry> entries = flat(slot);
      if (i >= entries.size()) return Components::kNoMore;
      return entries[i].then & kSlot ? entries[i].then & ~kSlot : Components::kNothing;
    };
    work_done_ += components_.Each(static_cast<uint32_t>(routine_of_slot_.size()), next,
                                   [&](std::span<const uint32_t> members) {
                                     TieMembers({members.begin(), members.end()});
                                   });
  }

  void TieMembers(std::span<const uint32_t> members) {
    const auto refers = [&](uint32_t slot) {
      return std::ranges::any_of(flat(slot),
                                 [&](const Entry& entry) { return entry.then == (kSlot | slot); });
    };
    if (members.size() == 1 && !refers(members[0])) {
      scratch_.clear();
      for (const Entry& entry : flat(members[0]))
        scratch_.push_back({entry.node, entry.count, Tied(entry.then)});
      id_of_slot_[members[0]] = conts_.Intern(scratch_);
      return;
    }
    place_in_knot_.assign(routine_of_slot_.size(), kNoSlot);
    for (uint32_t i = 0; i < members.size(); ++i) place_in_knot_[members[i]] = i;
    knot_.clear();
    for (const uint32_t member : members) {
      std::vector<Entry>& list = knot_.emplace_back(flat(member).begin(), flat(member).end());
      for (Entry& entry : list) {
        const uint32_t place = entry.then & kSlot ? place_in_knot_[entry.then & ~kSlot] : kNoSlot;
        entry.then = place == kNoSlot ? Tied(entry.then) : Knots::kMember | place;
      }
      SortUnique(list);
      StopScope::Steps(list.size());
    }
    conts_.knots_->Tie(knot_, tied_);
    for (uint32_t i = 0; i < members.size(); ++i) id_of_slot_[members[i]] = tied_[i];
  }

  ContId Tied(uint32_t then) const { return then & kSlot ? id_of_slot_[then & ~kSlot] : then; }

  uint64_t Collect(std::vector<Left>& from, std::vector<Continuations::Expansion::Begin>& out) {
    std::sort(from.begin(), from.end());
    uint64_t steps = 0;
    for (size_t i = 0; i < from.size();) {
      const uint32_t what = from[i].what;
      scratch_.clear();
      for (; i < from.size() && from[i].what == what; ++i) {
        const Entry& entry = from[i].entry;
        if (entry.node != CfgProgram::kReturnNode) {
          scratch_.push_back({entry.node, entry.count, Tied(entry.then)});
        } else {
          const auto more = conts_.entries(Tied(entry.then));
          scratch_.insert(scratch_.end(), more.begin(), more.end());
        }
      }
      steps += scratch_.size();
      StopScope::Steps(scratch_.size());
      out.push_back({what, conts_.Intern(scratch_)});
    }
    from.clear();
    work_done_ += steps;
    return steps;
  }

  Continuations& conts_;
  const CfgProgram& program_;
  std::vector<std::unique_ptr<Opening>> openings_;  // by node
  size_t opening_bytes_ = 0;
  // Of the expansion that runs; what is allocated stays.
  std::vector<Entry> work_;
  SeenEntries seen_;
  std::vector<uint32_t> slot_of_;          // by routine
  std::vector<uint32_t> routine_of_slot_;  // by slot, as what follows
  std::vector<Left> left_, left_at_terminals_, left_at_tokens_;
  std::vector<Range> left_of_slot_, flat_of_slot_;
  std::vector<ContId> id_of_slot_;
  std::vector<Entry> flat_, scratch_;
  std::vector<std::pair<uint32_t, uint32_t>> lists_;  // of Flatten: ranges of flat_
  std::vector<uint32_t> place_in_knot_;
  Knots::Lists knot_;  // of TieMembers
  std::vector<ContId> tied_;
  Components components_;
  uint64_t taken_over_ = 0;  // entries of the `then`s of routines that ended
  uint64_t work_done_ = 0;
};

uint64_t Continuations::work() const { return closure_->work() + knots_->work(); }

size_t Continuations::MemoryBytes() const {
  return HeapBytes(conts_, entries_, index_, knots_, expansions_, closure_, union_);
}

size_t Continuations::GrowthHint() const {
  return conts_.size() * (sizeof(Cont) + 24) + entries_.size() * sizeof(Entry) + expanded_bytes_ +
         knots_->GrowthHint() + closure_->GrowthHint();
}

Continuations::Continuations(const CfgProgram& program, const CfgLimits& limits)
    : program_(program),
      limits_(limits),
      knots_(std::make_unique<Knots>(*this)),
      closure_(std::make_unique<Closure>(*this, program)) {
  conts_.push_back({0, 0});
  std::vector<Entry> accept = {{CfgProgram::kAcceptNode, 0, kNone}};
  const ContId end = Intern(accept);
  // The root may stand anywhere in the grammar, so it is called, not entered.
  std::vector<Entry> begin = {{program.routines[program.root].start, 0, end}};
  start_ = Intern(begin);
}

Continuations::~Continuations() = default;

// `behind`: what the shortest text of entry.then costs.
CfgProgram::Cost Continuations::WayOut(const Entry& entry, CfgProgram::Cost behind) const {
  if (entry.node == CfgProgram::kAcceptNode) return 0;
  const CfgProgram::Node& node = program_.nodes[entry.node];
  CfgProgram::Cost here = node.shortest;
  if (node.op == Op::kRepeat && entry.count > 0) {
    const uint64_t left = node.min > entry.count ? node.min - entry.count : 0;
    const CfgProgram::Cost round = program_.routines[node.index].shortest;
    here = left != 0 && round > CfgProgram::kInfinite / left
               ? CfgProgram::kInfinite
               : left * round + program_.nodes[node.next].shortest;
  }
  return std::min(CfgProgram::kInfinite, here + 1 + behind);  // a way out costs
}

ContId Continuations::Append(std::span<const Entry> entries) {
  conts_.push_back({static_cast<uint32_t>(entries_.size()), static_cast<uint32_t>(entries.size())});
  conts_.back().nodes = NodesOf(entries);
  entries_.insert(entries_.end(), entries.begin(), entries.end());
  return static_cast<ContId>(conts_.size() - 1);
}

uint64_t Continuations::NodesOf(std::span<const Entry> entries) {
  uint64_t nodes = 0;
  for (const Entry& entry : entries) {
    const uint64_t hash = (uint64_t{entry.count} << 32 | entry.node) * 0x9E3779B97F4A7C15u;
    nodes |= uint64_t{1} << (hash >> 58);
  }
  return nodes;
}

void Continuations::FindBest(ContId id) {
  Cont& cont = conts_[id];
  CfgProgram::Cost least = CfgProgram::kInfinite;
  for (uint32_t i = 0; i < cont.size; ++i) {
    const CfgProgram::Cost length = Shortest(entries_[cont.begin + i]);
    if (length >= least) continue;
    least = length;
    cont.best = i;
  }
}

bool Continuations::IsCrowded(std::span<const Entry> entries, ContId known) const {
  size_t nodes = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (entry.then < known && conts_[entry.then].crowded) return true;
    if (i == 0 || entries[i - 1].node != entry.node || entries[i - 1].count != entry.count) ++nodes;
  }
  return entries.size() - nodes > limits_.crowd;
}

uint32_t Continuations::CrowdedNode(ContId id) const {
  uint32_t node = CfgProgram::kReturnNode;
  size_t most = 0, of_node = 0;
  const std::span<const Entry> all = entries(id);
  for (size_t i = 0; i < all.size(); ++i) {
    of_node = i > 0 && all[i - 1].node == all[i].node ? of_node + 1 : 1;
    if (of_node <= most) continue;
    most = of_node;
    node = all[i].node;
  }
  return node;
}

ContId Continuations::Intern(std::vector<Entry>& list) {
  SortRuns(list);
  if (list.empty()) return kNone;
  knots_->Prune(list);
  const uint64_t hash = HashOfEntries(list);
  const ContId known =
      index_.Find(hash, [&](ContId id) { return std::ranges::equal(entries(id), list); });
  if (known != HashIndex::kNone) return known;
  const ContId id = Append(list);
  index_.Insert(hash, id);
  for (const Entry& entry : list)
    conts_[id].shortest = std::min(conts_[id].shortest, Shortest(entry));
  FindBest(id);
  conts_[id].crowded = IsCrowded(list, id);
  return id;
}

ContId Continuations::Union(ContId a, ContId b) {
  if (a == b || b == kNone) return a;
  if (a == kNone) return b;
  union_.assign(entries(a).begin(), entries(a).end());
  union_.insert(union_.end(), entries(b).begin(), entries(b).end());
  return Intern(union_);
}

// Two at a time: one after the other, each would be copied once for all that come after it.
ContId Continuations::UnionOf(std::vector<ContId>& ids) {
  SortUnique(ids);
  if (ids.empty()) return kNone;
  while (ids.size() > 1) {
    size_t kept = 0;
    for (size_t i = 0; i < ids.size(); i += 2)
      ids[kept++] = i + 1 < ids.size() ? Union(ids[i], ids[i + 1]) : ids[i];
    ids.resize(kept);
  }
  return ids[0];
}

bool Continuations::ExpandTo(ContId id, uint64_t steps) {
  if (expansions_.size() <= id)
    expansions_.resize(std::max<size_t>(id + 1, 2 * expansions_.size()));
  if (expansions_[id] != nullptr) return expansions_[id]->steps <= steps;
  auto expansion = std::make_unique<Expansion>();
  if (!closure_->Run(id, steps, *expansion)) return false;
  expanded_bytes_ += sizeof(Expansion) + 32 + expansion->MemoryBytes();
  expansions_[id] = std::move(expansion);
  return true;
}

const Continuations::Expansion& Continuations::Expand(ContId id) {
  ExpandTo(id, UINT64_MAX);
  return *expansions_[id];
}

const Continuations::Expansion* Continuations::ExpandWithin(ContId id, uint64_t steps) {
  return ExpandTo(id, steps) ? expansions_[id].get() : nullptr;
}

}  // namespace pawl
