// The Boolean operators of RegexArena and their simplifications.
//
// Or is a sorted set of alternatives (associative, commutative, idempotent: what Brzozowski needs
// for a finite closure) and beyond that
//   - character sets are united,                          [ab] | [cd]          = [a-d]
//   - negations meet in one,                              !x | !y              = !(x & y)
//   - counters over one body and rest are joined,         r{1,3}K | r{2,9}K    = r{1,9}K
//   - common first factors are pulled out,                x y | x z            = x (y | z)
//   - equal rests after a character are joined,           a K | b K            = [ab] K
//   - a rest is dropped next to a nullable factor of it,   r* K | K             = r* K
//   - the empty string becomes an option,                 "" | r               = r{0,1}
// Pulling out first factors turns a long list of literals into a trie, whose derivative looks only
// at the branch of the character. And is likewise a set; its negations meet in one Not of an Or.
#include <algorithm>
#include <unordered_map>

#include "grammar/regex/regex_arena.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"

namespace pawl {
namespace {

// Prefixes longer than this stay apart; bounds the recursion.
constexpr int kMaxFactorDepth = 200;
// Alternatives that pulling out prefixes may look at in one Or: two unions with much in common
// below their first factors would otherwise be multiplied out.
constexpr size_t kFactorFuel = 4000;
constexpr size_t kFactorFuelEach = 64;

uint64_t PairKey(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

}  // namespace

ReId RegexArena::Or(ReId a, ReId b) {
  const ReId both[] = {a, b};
  return Or(both);
}

ReId RegexArena::And(ReId a, ReId b) {
  const ReId both[] = {a, b};
  return And(both);
}

ReId RegexArena::Or(std::span<const ReId> alternatives) {
  if (alternatives.size() == 1) return alternatives[0];
  const bool outermost = !in_or_;
  if (outermost) {
    in_or_ = true;
    factor_fuel_ = static_cast<int64_t>(kFactorFuel + kFactorFuelEach * alternatives.size());
  }
  const ReId id = OrOfDistinct(std::vector<ReId>(alternatives.begin(), alternatives.end()), 0);
  if (outermost) in_or_ = false;
  return id;
}

ReId RegexArena::OrOfDistinct(std::vector<ReId> pending, int depth) {
  work_ += pending.size();
  StopScope::Steps(pending.size());
  if (Stopped()) return kNothing;
  // Flatten, take out the empty string, unite sets, gather negations.
  std::vector<ReId> alternatives, negated, sets;
  bool epsilon = false;
  while (!pending.empty()) {
    const ReId id = pending.back();
    pending.pop_back();
    const Node& n = node(id);
    switch (n.kind) {
      case Kind::kEmptySet:
        break;
      case Kind::kEpsilon:
        epsilon = true;
        break;
      case Kind::kSet:
        sets.push_back(id);
        break;
      case Kind::kNot:
        negated.push_back(n.a);
        break;
      case Kind::kOr: {
        const auto list = operands(id);
        pending.insert(pending.end(), list.begin(), list.end());
        break;
      }
      case Kind::kRepeat:
        if (id == kAnything) return kAnything;
        if (n.min == 0 && n.max == 1) {
          epsilon = true;
          pending.push_back(n.a);
        } else {
          alternatives.push_back(id);
        }
        break;
      default:
        alternatives.push_back(id);
    }
  }
  SortUnique(sets);
  if (sets.size() == 1) {
    alternatives.push_back(sets[0]);
  } else if (!sets.empty()) {
    std::vector<CodepointRange> ranges;
    for (const ReId set : sets) {
      const auto part = sets_[node(set).a].ranges();
      ranges.insert(ranges.end(), part.begin(), part.end());
    }
    alternatives.push_back(Set(CodepointSet::FromRanges(ranges)));
  }
  SortUnique(alternatives);
  if (!negated.empty()) {
    SortUnique(negated);
    for (const ReId id : negated) {
      if (id == kEpsilon && epsilon) return kAnything;
      if (std::binary_search(alternatives.begin(), alternatives.end(), id)) return kAnything;
    }
    const ReId joined = negated.size() == 1 ? negated[0] : And(negated);
    if (joined == kNothing) return kAnything;
    const ReId negation = Not(joined);
    if (negation == kAnything) return kAnything;
    if (Nullable(negation)) epsilon = false;
    alternatives.push_back(negation);
    SortUnique(alternatives);
  }
  // A merge may make a term that merges again, e.g. a set that equals another head.
  for (int round = 0; round < 4 && alternatives.size() + epsilon > 1; ++round) {
    if (epsilon) alternatives.push_back(kEpsilon);
    bool changed = MergeRepeats(alternatives);
    changed = FactorPrefixes(alternatives, depth) || changed;
    changed = MergeHeads(alternatives) || changed;
    SortUnique(alternatives);
    const auto at = std::lower_bound(alternatives.begin(), alternatives.end(), ReId{kEpsilon});
    epsilon = at != alternatives.end() && *at == kEpsilon;
    if (epsilon) alternatives.erase(at);
    if (std::binary_search(alternatives.begin(), alternatives.end(), ReId{kAnything})) {
      return kAnything;
    }
    if (!changed) break;
    if (std::any_of(alternatives.begin(), alternatives.end(), [&](ReId id) {
          return kind(id) == Kind::kOr || id == kNothing ||
                 (kind(id) == Kind::kRepeat && node(id).min == 0 && node(id).max == 1);
        })) {
      if (epsilon) alternatives.push_back(kEpsilon);
      return depth < kMaxFactorDepth ? OrOfDistinct(std::move(alternatives), depth + 1)
                                     : MakeList(Kind::kOr, alternatives);
    }
  }
  DropSubsumed(alternatives);
  if (alternatives.empty()) return epsilon ? kEpsilon : kNothing;
  const ReId id = alternatives.size() == 1 ? alternatives[0] : MakeList(Kind::kOr, alternatives);
  return epsilon ? MakeRepeat(id, 0, 1) : id;
}

// r{a,b} K | r{c,d} K = r{min(a,c),max(b,d)} K when the ranges overlap or touch; r K counts as
// r{1,1} K and K as r{0,0} K.
bool RegexArena::MergeRepeats(std::vector<ReId>& alternatives) {
  struct Range {
    uint32_t min, max;
    ReId id;
  };
  std::unordered_map<uint64_t, std::vector<Range>> groups;  // (body, rest) -> counters
  std::vector<uint64_t> order;
  for (const ReId id : alternatives) {
    const ReId head = Head(id);
    if (kind(head) != Kind::kRepeat) continue;
    const uint64_t key = PairKey(node(head).a, Tail(id));
    auto& group = groups[key];
    if (group.empty()) order.push_back(key);
    group.push_back({node(head).min, node(head).max, id});
  }
  if (groups.empty()) return false;
  std::unordered_map<ReId, std::vector<uint64_t>> by_rest;
  for (const uint64_t key : order) by_rest[static_cast<ReId>(key)].push_back(key);
  for (const ReId id : alternatives) {
    const auto once = groups.find(PairKey(Head(id), Tail(id)));
    if (once != groups.end()) once->second.push_back({1, 1, id});
    const auto never = by_rest.find(id);
    if (never == by_rest.end()) continue;
    for (const uint64_t key : never->second) groups[key].push_back({0, 0, id});
  }
  bool changed = false;
  std::unordered_set<ReId> gone;
  std::vector<ReId> added;
  for (const uint64_t key : order) {
    auto& group = groups[key];
    std::erase_if(group, [&](const Range& range) { return gone.count(range.id) != 0; });
    if (group.size() < 2) continue;
    std::sort(group.begin(), group.end(), [](const Range& a, const Range& b) {
      return a.min != b.min ? a.min < b.min : a.max < b.max;
    });
    for (size_t i = 0; i < group.size();) {
      uint32_t max = group[i].max;
      size_t j = i + 1;
      while (j < group.size() && (max == kInfinite || group[j].min <= max + 1)) {
        max = std::max(max, group[j++].max);
      }
      if (j > i + 1) {
        const ReId merged = Concat(MakeRepeat(static_cast<ReId>(key >> 32), group[i].min, max),
                                   static_cast<ReId>(key));
        for (size_t k = i; k < j; ++k) gone.insert(group[k].id);
        gone.erase(merged);
        added.push_back(merged);
        changed = true;
      }
      i = j;
    }
  }
  if (!changed) return false;
  std::erase_if(alternatives, [&](ReId id) { return gone.count(id) != 0; });
  alternatives.insert(alternatives.end(), added.begin(), added.end());
  SortUnique(alternatives);
  return true;
}

bool RegexArena::FactorPrefixes(std::vector<ReId>& alternatives, int depth) {
  if (depth >= kMaxFactorDepth || factor_fuel_ <= 0) return false;
  factor_fuel_ -= static_cast<int64_t>(alternatives.size());
  std::vector<std::pair<ReId, ReId>> by_head;  // (head, alternative)
  by_head.reserve(alternatives.size());
  for (const ReId id : alternatives) by_head.emplace_back(Head(id), id);
  std::sort(by_head.begin(), by_head.end());
  std::vector<ReId> factored;
  bool changed = false;
  for (size_t i = 0; i < by_head.size();) {
    size_t j = i + 1;
    while (j < by_head.size() && by_head[j].first == by_head[i].first) ++j;
    if (j == i + 1) {
      factored.push_back(by_head[i].second);
    } else {
      std::vector<ReId> rests;
      for (size_t k = i; k < j; ++k) rests.push_back(Tail(by_head[k].second));
      factored.push_back(Concat(by_head[i].first, OrOfDistinct(std::move(rests), depth + 1)));
      changed = true;
    }
    i = j;
  }
  if (changed) alternatives = std::move(factored);
  return changed;
}

bool RegexArena::MergeHeads(std::vector<ReId>& alternatives) {
  std::vector<std::pair<ReId, ReId>> by_rest;  // (rest, alternative) of those that start with a set
  for (const ReId id : alternatives) {
    if (kind(Head(id)) == Kind::kSet) by_rest.emplace_back(Tail(id), id);
  }
  if (by_rest.size() < 2) return false;
  std::sort(by_rest.begin(), by_rest.end());
  bool changed = false;
  std::vector<ReId> merged;
  for (size_t i = 0; i < by_rest.size();) {
    size_t j = i + 1;
    while (j < by_rest.size() && by_rest[j].first == by_rest[i].first) ++j;
    if (j == i + 1) {
      merged.push_back(by_rest[i].second);
    } else {
      std::vector<CodepointRange> ranges;
      for (size_t k = i; k < j; ++k) {
        const auto part = sets_[node(Head(by_rest[k].second)).a].ranges();
        ranges.insert(ranges.end(), part.begin(), part.end());
      }
      merged.push_back(Concat(Set(CodepointSet::FromRanges(ranges)), by_rest[i].first));
      changed = true;
    }
    i = j;
  }
  if (!changed) return false;
  std::erase_if(alternatives, [&](ReId id) { return kind(Head(id)) == Kind::kSet; });
  alternatives.insert(alternatives.end(), merged.begin(), merged.end());
  return true;
}

// Drops K next to x1 x2 .. K with nullable x's. Input sorted, stays sorted.
void RegexArena::DropSubsumed(std::vector<ReId>& alternatives) {
  if (alternatives.size() < 2) return;
  std::vector<ReId> dropped;
  // Of a chain of optional parts each beginning may be an alternative: of long chains what follows
  // a part is looked at once, not from each of them.
  constexpr size_t kFewSteps = 64;
  size_t steps = 0;
  std::unordered_set<ReId> seen;
  for (const ReId id : alternatives) {
    ReId rest = id;
    while (kind(rest) == Kind::kConcat && Nullable(node(rest).a) && !IsOpen(node(rest).a)) {
      StopScope::Step();
      rest = node(rest).b;
      if (++steps > kFewSteps && !seen.insert(rest).second) break;
      if (std::binary_search(alternatives.begin(), alternatives.end(), rest))
        dropped.push_back(rest);
    }
  }
  if (dropped.empty()) return;
  std::sort(dropped.begin(), dropped.end());
  std::erase_if(alternatives,
                [&](ReId id) { return std::binary_search(dropped.begin(), dropped.end(), id); });
}

ReId RegexArena::And(std::span<const ReId> given) {
  work_ += given.size();
  StopScope::Steps(given.size());
  std::vector<ReId> pending, operands_left, negated;
  for (const ReId id : given) pending.push_back(Close(id));
  bool epsilon = false;
  while (!pending.empty()) {
    const ReId id = pending.back();
    pending.pop_back();
    switch (kind(id)) {
      case Kind::kEmptySet:
        return kNothing;
      case Kind::kEpsilon:
        epsilon = true;
        break;
      case Kind::kNot:
        negated.push_back(node(id).a);
        break;
      case Kind::kAnd: {
        const auto list = operands(id);
        pending.insert(pending.end(), list.begin(), list.end());
        break;
      }
      default:
        if (id != kAnything) operands_left.push_back(id);
    }
  }
  if (epsilon) {
    const bool all =
        std::all_of(operands_left.begin(), operands_left.end(),
                    [&](ReId id) { return Nullable(id); }) &&
        std::none_of(negated.begin(), negated.end(), [&](ReId id) { return Nullable(id); });
    return all ? kEpsilon : kNothing;
  }
  SortUnique(operands_left);
  if (!negated.empty()) {
    const ReId joined = Or(negated);
    if (joined == kAnything) return kNothing;
    for (const ReId id : operands_left) {
      if (id == joined) return kNothing;
      if (kind(joined) == Kind::kOr) {
        const auto list = operands(joined);
        if (std::binary_search(list.begin(), list.end(), id)) return kNothing;
      }
    }
    // Not of a negation is its operand, which may be a conjunction again.
    const ReId negation = Not(joined);
    if (kind(negation) != Kind::kNot) {
      if (operands_left.empty()) return negation;
      operands_left.push_back(negation);
      return And(operands_left);
    }
    operands_left.push_back(negation);
    SortUnique(operands_left);
  }
  if (AndRepeatedSets(operands_left) == kNothing) return kNothing;
  if (operands_left.empty()) return kAnything;
  if (operands_left.size() == 1) return operands_left[0];
  return MakeList(Kind::kAnd, operands_left);
}

// [a-z]{1,9} & [m-~]{3,} = [m-z]{3,9}; and a bound on the length that the others keep anyway is
// dropped. kNothing when the conjunction is empty, another id when it may not be.
ReId RegexArena::AndRepeatedSets(std::vector<ReId>& list) {
  bool found = false;
  size_t count = 0;
  uint32_t min = 0, max = kInfinite;
  ReId body = kAnyChar;
  std::vector<ReId> others;
  for (const ReId id : list) {
    const Node& n = node(id);
    const ReId set = n.kind == Kind::kRepeat ? n.a : id;
    if (kind(set) != Kind::kSet) {
      others.push_back(id);
      continue;
    }
    ++count;
    min = std::max(min, n.min_length);
    max = std::min(max, n.max_length);
    body = found ? Set(sets_[node(body).a].Intersect(sets_[node(set).a])) : set;
    found = true;
    if (body == kNothing) {
      // No character left: only the empty string can be in all of them.
      if (min > 0) return kNothing;
      max = 0;
      body = kAnyChar;
    }
  }
  if (!found) return kAnything;
  if (min > max) return kNothing;
  if (body == kAnyChar) {
    uint32_t least = 0, most = kInfinite;
    for (const ReId id : others) {
      least = std::max(least, MinLength(id));
      most = std::min(most, MaxLength(id));
    }
    if (least > max || most < min) return kNothing;
    if (!others.empty() && min <= least && most <= max) {
      list = std::move(others);
      return kAnything;
    }
  }
  if (count < 2) return kAnything;
  const ReId joined = MakeRepeat(body, min, max);
  if (joined == kNothing) return kNothing;
  if (joined == kEpsilon) {
    for (const ReId id : others) {
      if (!Nullable(id)) return kNothing;
    }
    list = {kEpsilon};
    return kAnything;
  }
  if (joined != kAnything) others.push_back(joined);
  list = std::move(others);
  SortUnique(list);
  return kAnything;
}

ReId RegexArena::Not(ReId id) {
  id = Close(id);
  if (id == kNothing) return kAnything;
  if (id == kAnything) return kNothing;
  if (kind(id) == Kind::kNot) return node(id).a;
  return MakeUnary(Kind::kNot, id);
}

}  // namespace pawl
