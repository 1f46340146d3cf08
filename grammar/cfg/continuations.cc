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
#include <optional>
#include <utility>

#include "src/base/memory_size.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"

namespace pawl {
namespace {

using Op = CfgProgram::Op;
using Entry = Continuations::Entry;

uint64_t HashOf(std::span<const Entry> entries) {
  uint64_t hash = entries.size();
  for (const Entry& entry : entries) {
    hash = HashMix(hash, uint64_t{entry.node} << 32 | entry.count);
    hash = HashMix(hash, entry.then);
  }
  return hash;
}

// Entries that were seen in this run. Emptied in no time: what an older run left does not count.
class SeenEntries {
 public:
  void Clear() {
    ++run_;
    size_ = 0;
  }
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
    for (size_t i = HashOf({&entry, 1});; ++i) {
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

  void Run(ContId id, Continuations::Expansion& out) {
    for (const Entry& entry : conts_.entries(id)) Push(entry);
    while (!work_.empty()) {
      StopScope::Step();
      const Entry entry = work_.back();
      work_.pop_back();
      Visit(entry, out);
    }
    Tie();
    Collect(left_at_terminals_, out.terminals);
    Collect(left_at_tokens_, out.tokens);
    for (const auto& begin : out.terminals)
      out.first_bytes |= program_.terminals[begin.what].first_bytes;
    for (const uint32_t routine : routine_of_slot_) slot_of_[routine] = kNoSlot;
    routine_of_slot_.clear();
    left_.clear();
    seen_.Clear();
  }
  uint64_t work() const { return work_done_; }
  size_t MemoryBytes() const {
    return HeapBytes(openings_, work_, seen_, slot_of_, routine_of_slot_, left_, left_at_terminals_,
                     left_at_tokens_, left_of_slot_, flat_of_slot_, id_of_slot_, flat_, scratch_,
                     lists_, order_, low_, stack_, members_, place_in_knot_, path_);
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
      for (const Entry& next : conts_.entries(entry.then)) Push(next);
    }
  }

  // Calls done() with members_ for each strongly connected component of the slots (Tarjan 1972), a
  // component after those that it refers to. `next(slot, i)`: the i-th slot that a slot refers to;
  // kNoSlot: nothing there; kNoMore: nor beyond.
  static constexpr uint32_t kNoMore = UINT32_MAX - 1;
  template <typename Next, typename Done>
  void EachComponent(const Next& next_of, const Done& done) {
    const auto n = static_cast<uint32_t>(routine_of_slot_.size());
    constexpr uint32_t kNew = UINT32_MAX;
    order_.assign(n, kNew);
    low_.assign(n, 0);
    on_stack_.assign(n, false);
    uint32_t counter = 0;
    for (uint32_t root = 0; root < n; ++root) {
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
          ++work_done_;
          StopScope::Step();
          if (to == kNoSlot) continue;
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
        done();
      }
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
      if (i >= list.size()) return kNoMore;
      const Entry& entry = list[i].entry;
      const bool taken = entry.node == CfgProgram::kReturnNode && (entry.then & kSlot) != 0;
      return taken ? entry.then & ~kSlot : kNoSlot;
    };
    EachComponent(same, [&] {
      std::vector<Entry>& list = scratch_;
      list.clear();
      lists_.clear();
      for (const uint32_t member : members_) {
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
        SortUnique(list);
        range = {static_cast<uint32_t>(flat_.size()), static_cast<uint32_t>(list.size())};
        flat_.insert(flat_.end(), list.begin(), list.end());
      }
      work_done_ += members_.size() + list.size();
      for (const uint32_t member : members_) flat_of_slot_[member] = range;
    });
  }
  std::span<const Entry> flat(uint32_t slot) const {
    return std::span(flat_).subspan(flat_of_slot_[slot].begin, flat_of_slot_[slot].size);
  }

  // Makes continuations of all slots, of those that they refer to first.
  void Tie() {
    Flatten();
    id_of_slot_.assign(routine_of_slot_.size(), Continuations::kNone);
    const auto next = [&](uint32_t slot, size_t i) {
      const std::span<const Entry> entries = flat(slot);
      if (i >= entries.size()) return kNoMore;
      return entries[i].then & kSlot ? entries[i].then & ~kSlot : kNoSlot;
    };
    EachComponent(next, [&] { TieMembers(); });
  }

  void TieMembers() {
    const auto refers = [&](uint32_t slot) {
      return std::ranges::any_of(flat(slot),
                                 [&](const Entry& entry) { return entry.then == (kSlot | slot); });
    };
    if (members_.size() == 1 && !refers(members_[0])) {
      scratch_.clear();
      for (const Entry& entry : flat(members_[0]))
        scratch_.push_back({entry.node, entry.count, Tied(entry.then)});
      id_of_slot_[members_[0]] = conts_.Intern(scratch_);
      return;
    }
    // By what they hold without the others, so that equal knots look the same wherever they arise.
    std::sort(members_.begin(), members_.end(),
              [&](uint32_t a, uint32_t b) { return routine_of_slot_[a] < routine_of_slot_[b]; });
    place_in_knot_.assign(routine_of_slot_.size(), kNoSlot);
    for (uint32_t i = 0; i < members_.size(); ++i) place_in_knot_[members_[i]] = i;
    std::vector<std::vector<Entry>> lists;
    for (const uint32_t member : members_) {
      std::vector<Entry>& list = lists.emplace_back(flat(member).begin(), flat(member).end());
      for (Entry& entry : list) {
        const uint32_t place = entry.then & kSlot ? place_in_knot_[entry.then & ~kSlot] : kNoSlot;
        entry.then = place == kNoSlot ? Tied(entry.then) : Continuations::kMember | place;
      }
      SortUnique(list);
    }
    const ContId first = conts_.InternKnot(lists);
    for (uint32_t i = 0; i < members_.size(); ++i) id_of_slot_[members_[i]] = first + i;
  }

  ContId Tied(uint32_t then) const { return then & kSlot ? id_of_slot_[then & ~kSlot] : then; }

  void Collect(std::vector<Left>& from, std::vector<Continuations::Expansion::Begin>& out) {
    std::sort(from.begin(), from.end());
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
      out.push_back({what, conts_.Intern(scratch_)});
    }
    from.clear();
  }

  Continuations& conts_;
  const CfgProgram& program_;
  std::vector<std::unique_ptr<Opening>> openings_;  // by node
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
  std::vector<uint32_t> order_, low_, stack_, members_, place_in_knot_;
  std::vector<bool> on_stack_;
  uint64_t work_done_ = 0;
  std::vector<std::pair<uint32_t, size_t>> path_;  // slot, next entry to look at
};

uint64_t Continuations::work() const { return closure_->work(); }

size_t Continuations::MemoryBytes() const {
  return HeapBytes(conts_, entries_, index_, knots_, expansions_, closure_, union_);
}

Continuations::Continuations(const CfgProgram& program)
    : program_(program), closure_(std::make_unique<Closure>(*this, program)) {
  conts_.push_back({0, 0, CfgProgram::kInfinite});
  std::vector<Entry> accept = {{CfgProgram::kAcceptNode, 0, kNone}};
  const ContId end = Intern(accept);
  // The root may stand anywhere in the grammar, so it is called, not entered.
  std::vector<Entry> begin = {{program.routines[program.root].start, 0, end}};
  start_ = Intern(begin);
}

Continuations::~Continuations() = default;

CfgProgram::Cost Continuations::Shortest(const Entry& entry) const {
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
  return std::min(CfgProgram::kInfinite,
                  here + 1 + conts_[entry.then].shortest);  // a way out costs
}

ContId Continuations::Append(std::span<const Entry> entries) {
  conts_.push_back({static_cast<uint32_t>(entries_.size()), static_cast<uint32_t>(entries.size()),
                    CfgProgram::kInfinite});
  entries_.insert(entries_.end(), entries.begin(), entries.end());
  return static_cast<ContId>(conts_.size() - 1);
}

ContId Continuations::Intern(std::vector<Entry>& list) {
  SortUnique(list);
  if (list.empty()) return kNone;
  const uint64_t hash = HashOf(list);
  const ContId known =
      index_.Find(hash, [&](ContId id) { return std::ranges::equal(entries(id), list); });
  if (known != HashIndex::kNone) return known;
  const ContId id = Append(list);
  index_.Insert(hash, id);
  for (const Entry& entry : list)
    conts_[id].shortest = std::min(conts_[id].shortest, Shortest(entry));
  return id;
}

ContId Continuations::InternKnot(std::vector<std::vector<Entry>>& members) {
  uint64_t hash = members.size();
  for (const auto& list : members) hash = HashMix(hash, HashOf(list));
  const auto [begin, end] = knots_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second.second == members) return it->second.first;
  }
  const auto first = static_cast<ContId>(conts_.size());
  for (const auto& list : members) {
    std::vector<Entry> entries = list;
    for (Entry& entry : entries) {
      if (entry.then & kMember) entry.then = first + (entry.then & ~kMember);
    }
    std::sort(entries.begin(), entries.end());
    index_.Insert(HashOf(entries), Append(entries));
  }
  // A shortest way out passes each member at most once.
  for (size_t round = 0; round < members.size(); ++round) {
    bool changed = false;
    for (ContId id = first; id < first + members.size(); ++id) {
      for (const Entry& entry : entries(id)) {
        const CfgProgram::Cost length = Shortest(entry);
        if (length < conts_[id].shortest) {
          conts_[id].shortest = length;
          changed = true;
        }
      }
    }
    if (!changed) break;
  }
  knots_.emplace(hash, std::pair(first, std::move(members)));
  return first;
}

ContId Continuations::Union(ContId a, ContId b) {
  if (a == b || b == kNone) return a;
  if (a == kNone) return b;
  union_.assign(entries(a).begin(), entries(a).end());
  union_.insert(union_.end(), entries(b).begin(), entries(b).end());
  return Intern(union_);
}

const Continuations::Expansion& Continuations::Expand(ContId id) {
  if (expansions_.size() <= id)
    expansions_.resize(std::max<size_t>(id + 1, 2 * expansions_.size()));
  if (expansions_[id] == nullptr) {
    auto expansion = std::make_unique<Expansion>();
    closure_->Run(id, *expansion);
    expanded_bytes_ += sizeof(Expansion) + 32 + expansion->MemoryBytes();
    expansions_[id] = std::move(expansion);
  }
  return *expansions_[id];
}

}  // namespace pawl
