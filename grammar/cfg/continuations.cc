// Expanding a continuation is the prediction and completion of an Earley parser at one place.
//
// The worklist holds (node, count, then). A call makes a slot for the routine, in which all callers
// at this place leave what comes after the call, and begins the routine once, with that slot as its
// `then`. A routine that ends goes on with the entries of its `then`, unless that is a slot of this
// place: then the routine had the empty text, which its callers know beforehand (Aycock and
// Horspool 2002).
//
// Afterwards the slots become continuations. A caller that ends right after the call leaves no
// entry but its own `then`, whose entries are taken over. Slots that refer to one another in a ring
// are a knot.
#include "grammar/cfg/continuations.h"

#include <algorithm>
#include <unordered_set>

namespace pawl {
namespace {

using Op = CfgProgram::Op;
using Entry = Continuations::Entry;

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

uint64_t HashOf(std::span<const Entry> entries) {
  uint64_t hash = entries.size();
  for (const Entry& entry : entries) {
    hash = Mix(hash, uint64_t{entry.node} << 32 | entry.count);
    hash = Mix(hash, entry.then);
  }
  return hash;
}

struct EntryHash {
  size_t operator()(const Entry& entry) const { return HashOf({&entry, 1}); }
};

void SortUnique(std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
}

}  // namespace

// One expansion. While it runs, a `then` with the bit kSlot is a slot of this place.
class Closure {
 public:
  Closure(Continuations& conts, const CfgProgram& program) : conts_(conts), program_(program) {}

  void Run(ContId id, Continuations::Expansion& out) {
    for (const Entry& entry : conts_.entries(id)) Push(entry);
    while (!work_.empty()) {
      const Entry entry = work_.back();
      work_.pop_back();
      Visit(entry, out);
    }
    Tie();
    Collect(terminals_, out.terminals);
    Collect(tokens_, out.tokens);
    for (const auto& begin : out.terminals)
      out.first_bytes |= program_.terminals[begin.what].first_bytes;
  }

 private:
  static constexpr uint32_t kSlot = 1u << 30;
  struct Slot {
    std::vector<Entry> entries;
    std::vector<uint32_t> same;  // `then`s whose entries are entries of this slot
    ContId id = Continuations::kNone;
  };

  void Push(const Entry& entry) {
    if (seen_.insert(entry).second) work_.push_back(entry);
  }

  // Leaves (node, count, then) in a list, or what `then` holds where the node ends its routine.
  void Leave(const Entry& entry, Slot& slot) {
    if (entry.node == CfgProgram::kReturnNode) {
      slot.same.push_back(entry.then);
    } else {
      slot.entries.push_back(entry);
    }
  }

  void Call(uint32_t routine, const Entry& after) {
    const auto [known, inserted] = slot_of_.emplace(routine, static_cast<uint32_t>(slots_.size()));
    if (inserted) slots_.emplace_back();
    Leave(after, slots_[known->second]);
    Push({program_.routines[routine].start, 0, kSlot | known->second});
  }

  void Visit(const Entry& entry, Continuations::Expansion& out) {
    const CfgProgram::Node& node = program_.nodes[entry.node];
    switch (node.op) {
      case Op::kReturn:
        if ((entry.then & kSlot) == 0) {
          for (const Entry& next : conts_.entries(entry.then)) Push(next);
        }
        break;
      case Op::kAccept:
        out.accepts = true;
        break;
      case Op::kTerminal:
        Leave({node.next, 0, entry.then}, terminals_[node.index]);
        break;
      case Op::kTokens:
        Leave({node.next, 0, entry.then}, tokens_[node.index]);
        break;
      case Op::kCall:
        Call(node.index, {node.next, 0, entry.then});
        if (program_.routines[node.index].nullable) Push({node.next, 0, entry.then});
        break;
      case Op::kMark:
        Push({node.next, 0, entry.then});
        break;
      case Op::kSplit:
        for (uint32_t i = 0; i < node.count; ++i)
          Push({program_.splits[node.index + i], 0, entry.then});
        break;
      case Op::kRepeat: {
        if (entry.count < node.max) {
          // Beyond the minimum an endless repetition need not count.
          const uint32_t rounds = node.max == GrammarIr::kUnbounded
                                      ? std::min(entry.count + 1, node.min)
                                      : entry.count + 1;
          if (rounds == node.max) {
            Call(node.index, {node.next, 0, entry.then});
          } else {
            Call(node.index, {entry.node, rounds, entry.then});
          }
        }
        if (entry.count >= node.min) Push({node.next, 0, entry.then});
        break;
      }
    }
  }

  // All entries of a slot, those of the `then`s that it shares included.
  std::vector<Entry> Flat(const Slot& slot) {
    std::vector<Entry> entries = slot.entries;
    std::vector<uint32_t> same = slot.same;
    std::unordered_set<uint32_t> seen(same.begin(), same.end());
    for (size_t i = 0; i < same.size(); ++i) {
      if ((same[i] & kSlot) == 0) {
        const auto more = conts_.entries(same[i]);
        entries.insert(entries.end(), more.begin(), more.end());
        continue;
      }
      const Slot& other = slots_[same[i] & ~kSlot];
      entries.insert(entries.end(), other.entries.begin(), other.entries.end());
      for (const uint32_t then : other.same) {
        if (seen.insert(then).second) same.push_back(then);
      }
    }
    SortUnique(entries);
    return entries;
  }

  // Makes continuations of all slots: Tarjan's strongly connected components (1972), which come out
  // with those that they refer to before them.
  void Tie() {
    const auto n = static_cast<uint32_t>(slots_.size());
    std::vector<std::vector<Entry>> flat(n);
    for (uint32_t i = 0; i < n; ++i) flat[i] = Flat(slots_[i]);
    for (uint32_t i = 0; i < n; ++i) slots_[i].entries = std::move(flat[i]);
    constexpr uint32_t kNew = UINT32_MAX;
    std::vector<uint32_t> order(n, kNew), low(n, 0), stack;
    std::vector<bool> on_stack(n);
    std::vector<std::pair<uint32_t, size_t>> path;  // slot, next entry to look at
    uint32_t counter = 0;
    for (uint32_t root = 0; root < n; ++root) {
      if (order[root] != kNew) continue;
      path.emplace_back(root, 0);
      while (!path.empty()) {
        auto& [at, next] = path.back();
        if (next == 0) {
          order[at] = low[at] = counter++;
          stack.push_back(at);
          on_stack[at] = true;
        }
        const std::vector<Entry>& entries = slots_[at].entries;
        bool down = false;
        while (next < entries.size()) {
          const uint32_t then = entries[next++].then;
          if ((then & kSlot) == 0) continue;
          const uint32_t to = then & ~kSlot;
          if (order[to] == kNew) {
            path.emplace_back(to, 0);  // invalidates the references
            down = true;
            break;
          }
          if (on_stack[to]) low[at] = std::min(low[at], order[to]);
        }
        if (down) continue;
        const uint32_t done = at;
        path.pop_back();
        if (!path.empty()) low[path.back().first] = std::min(low[path.back().first], low[done]);
        if (low[done] != order[done]) continue;
        std::vector<uint32_t> members;
        while (true) {
          members.push_back(stack.back());
          on_stack[stack.back()] = false;
          stack.pop_back();
          if (members.back() == done) break;
        }
        TieMembers(members);
      }
    }
  }

  void TieMembers(std::vector<uint32_t>& members) {
    // By what they hold without the others, so that equal knots look the same wherever they arise.
    std::sort(members.begin(), members.end(),
              [&](uint32_t a, uint32_t b) { return routine(a) < routine(b); });
    std::unordered_map<uint32_t, uint32_t> place;
    for (uint32_t i = 0; i < members.size(); ++i) place.emplace(members[i], i);
    bool knot = false;
    std::vector<std::vector<Entry>> lists;
    for (const uint32_t member : members) {
      std::vector<Entry> list = slots_[member].entries;
      for (Entry& entry : list) {
        if ((entry.then & kSlot) == 0) continue;
        const uint32_t to = entry.then & ~kSlot;
        if (const auto inside = place.find(to); inside != place.end()) {
          entry.then = Continuations::kMember | inside->second;
          knot = true;
        } else {
          entry.then = slots_[to].id;
        }
      }
      SortUnique(list);
      lists.push_back(std::move(list));
    }
    if (!knot) {
      slots_[members[0]].id = conts_.Intern(lists[0]);
      return;
    }
    const ContId first = conts_.InternKnot(lists);
    for (uint32_t i = 0; i < members.size(); ++i) slots_[members[i]].id = first + i;
  }

  uint32_t routine(uint32_t slot) {
    if (routine_of_slot_.empty()) {
      routine_of_slot_.resize(slots_.size());
      for (const auto& [routine, at] : slot_of_) routine_of_slot_[at] = routine;
    }
    return routine_of_slot_[slot];
  }

  void Collect(std::unordered_map<uint32_t, Slot>& from,
               std::vector<Continuations::Expansion::Begin>& out) {
    for (auto& [what, left] : from) {
      std::vector<Entry> entries;
      for (Entry entry : left.entries) {
        if (entry.then & kSlot) entry.then = slots_[entry.then & ~kSlot].id;
        entries.push_back(entry);
      }
      for (const uint32_t then : left.same) {
        const auto more = conts_.entries(then & kSlot ? slots_[then & ~kSlot].id : then);
        entries.insert(entries.end(), more.begin(), more.end());
      }
      out.push_back({what, conts_.Intern(entries)});
    }
    std::sort(out.begin(), out.end());
  }

  Continuations& conts_;
  const CfgProgram& program_;
  std::vector<Entry> work_;
  std::unordered_set<Entry, EntryHash> seen_;
  std::unordered_map<uint32_t, uint32_t> slot_of_;  // by routine
  std::vector<uint32_t> routine_of_slot_;
  std::vector<Slot> slots_;
  std::unordered_map<uint32_t, Slot> terminals_, tokens_;
};

Continuations::Continuations(const CfgProgram& program) : program_(program) {
  conts_.push_back({0, 0, CfgProgram::kInfinite});
  std::vector<Entry> accept = {{CfgProgram::kAcceptNode, 0, kNone}};
  const ContId end = Intern(accept);
  // The root may stand anywhere in the grammar, so it is called, not entered.
  std::vector<Entry> begin = {{program.routines[program.root].start, 0, end}};
  start_ = Intern(begin);
}

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
  const auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (std::ranges::equal(entries(it->second), list)) return it->second;
  }
  const ContId id = Append(list);
  index_.emplace(hash, id);
  for (const Entry& entry : list)
    conts_[id].shortest = std::min(conts_[id].shortest, Shortest(entry));
  return id;
}

ContId Continuations::InternKnot(std::vector<std::vector<Entry>>& members) {
  uint64_t hash = members.size();
  for (const auto& list : members) hash = Mix(hash, HashOf(list));
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
    index_.emplace(HashOf(entries), Append(entries));
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
  std::vector<Entry> both(entries(a).begin(), entries(a).end());
  both.insert(both.end(), entries(b).begin(), entries(b).end());
  return Intern(both);
}

const Continuations::Expansion& Continuations::Expand(ContId id) {
  if (expansions_.size() <= id) expansions_.resize(id + 1);
  if (expansions_[id] == nullptr) {
    auto expansion = std::make_unique<Expansion>();
    Closure(*this, program_).Run(id, *expansion);
    if (expansions_.size() <= id) expansions_.resize(id + 1);
    expansions_[id] = std::move(expansion);
  }
  return *expansions_[id];
}

}  // namespace pawl
