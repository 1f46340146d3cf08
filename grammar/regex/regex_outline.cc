// An outline is a term with a larger language and a small automaton. A search that has nothing to
// find there has nothing to find in the language itself (an over-approximation, as in P. Cousot and
// R. Cousot, "Abstract Interpretation", POPL 1977).
//
// What makes automata large is counted and related parts:
//  - r{m,n} with a large n becomes r{m,}, so that how much is left of n is no longer told apart;
//  - a conjunction with such a bound on the length alone loses the bound;
//  - of a conjunction that relates long alternatives to each other (the hours of a leap second to
//    those of its offset) each operand only says where digits and where letters stand.
// The wide term is that. The kernel tells what is surely there: it leaves out such a conjunction
// altogether, and counts no more than the wide term does. A text of so few characters that no
// counter that was left out can have run out is in the language itself.
//
// The outline of what is left of a term after some characters is mostly what is left of the term's
// outline, so the outlines of all states of an automaton are few.
#include <algorithm>
#include <array>

#include "grammar/regex/regex_arena.h"

namespace pawl {
namespace {

// Counters below this are kept; conjunctions are kept whose operands have no more leaves than that,
// multiplied.
constexpr uint32_t kKeptCount = 10, kKeptLeaves = 1000, kManyLeaves = 1'000'000;
// Terms nested deeper are no longer looked at: they become kAnything.
constexpr int kOutlineDepth = 200;

}  // namespace

// About how many positions an automaton of the term has; kManyLeaves stands for more.
uint32_t RegexArena::Leaves(ReId id, int depth) {
  ++work_;
  if (depth > kOutlineDepth) return kManyLeaves;
  if (const auto known = leaves_.find(id); known != leaves_.end()) return known->second;
  uint64_t leaves = 0;
  const auto add = [&](ReId kid) { leaves += Leaves(kid, depth + 1); };
  switch (kind(id)) {
    case Kind::kEmptySet:
    case Kind::kEpsilon:
      return 0;
    case Kind::kSet:
      return 1;
    case Kind::kConcat:
      for (const ReId factor : Factors(id)) add(factor);
      break;
    case Kind::kRepeat:
      add(node(id).a);
      if (node(id).max != kInfinite) leaves *= node(id).max;
      break;
    case Kind::kAnd: {
      uint64_t product = 1;
      for (const ReId operand : operands(id))
        product = std::min<uint64_t>(product * Leaves(operand, depth + 1), kManyLeaves);
      leaves = product;
      break;
    }
    case Kind::kOr:
      for (const ReId operand : operands(id)) add(operand);
      break;
    case Kind::kNot:
    case Kind::kLook:
    case Kind::kScope:
      add(node(id).a);
      break;
  }
  const auto result = static_cast<uint32_t>(std::min<uint64_t>(leaves, kManyLeaves));
  leaves_.emplace(id, result);
  return result;
}

RegexArena::Outline RegexArena::OutlineOf(ReId id) { return OutlineAt(id, false, 0); }

RegexArena::Outline RegexArena::OutlineAt(ReId id, bool coarse, int depth) {
  ++work_;
  const Outline same{id, id, kInfinite}, nothing_known{kAnything, kNothing, kInfinite};
  if (depth > kOutlineDepth || IsOpen(id)) return nothing_known;
  if (id == kAnything || id == kAnyChar) return same;
  std::unordered_map<ReId, Outline>& known = outlines_[coarse ? 1 : 0];
  if (const auto found = known.find(id); found != known.end()) return found->second;
  Outline result = same;
  std::vector<ReId> wide, kernels;
  const auto add = [&](ReId kid) {
    const Outline of = OutlineAt(kid, coarse, depth + 1);
    wide.push_back(of.wide);
    kernels.push_back(of.kernel);
    if (of.kernel != kNothing) result.length = std::min(result.length, of.length);
  };
  switch (kind(id)) {
    case Kind::kEmptySet:
    case Kind::kEpsilon:
    case Kind::kLook:
      break;
    case Kind::kSet:
      if (coarse) result.wide = CoarseSet(id);
      break;
    case Kind::kConcat:
      for (const ReId factor : Factors(id)) add(factor);
      result.wide = Concat(wide);
      result.kernel = Concat(kernels);
      break;
    case Kind::kOr:
      for (const ReId part : Alternatives(id)) add(part);
      result.wide = Or(wide);
      result.kernel = Or(kernels);
      break;
    case Kind::kRepeat: {
      const Node n = node(id);
      add(n.a);
      const bool counts = n.max != kInfinite && n.max != n.min && n.max >= kKeptCount;
      result.wide = MakeRepeat(wide[0], n.min, counts ? kInfinite : n.max);
      result.kernel = MakeRepeat(kernels[0], n.min, counts ? kInfinite : n.max);
      if (counts) result.length = std::min(result.length, MinLength(kernels[0]) > 0 ? n.max : 0);
      break;
    }
    case Kind::kAnd:
      result = OutlineOfAnd(id, coarse, depth);
      break;
    case Kind::kNot:
    case Kind::kScope: {
      // What is around a larger language is smaller.
      const Outline inner = OutlineAt(node(id).a, coarse, depth + 1);
      if (inner.wide != node(id).a || inner.kernel != node(id).a || inner.length != kInfinite)
        result = nothing_known;
      break;
    }
  }
  outlines_[coarse ? 1 : 0].insert_or_assign(id, result);
  return result;
}

RegexArena::Outline RegexArena::OutlineOfAnd(ReId id, bool coarse, int depth) {
  Outline result{kAnything, kAnything, kInfinite};
  std::vector<ReId> wide, kernels;
  uint64_t leaves = 1;
  for (const ReId operand : std::vector<ReId>(operands(id).begin(), operands(id).end())) {
    const Outline of = OutlineAt(operand, coarse, depth + 1);
    kernels.push_back(of.kernel);
    result.length = std::min(result.length, of.length);
    if (of.wide == kAnything) continue;
    wide.push_back(of.wide);
    leaves = std::min<uint64_t>(leaves * Leaves(of.wide, 0), kManyLeaves);
  }
  if (wide.size() > 1 && leaves > kKeptLeaves) {
    for (ReId& part : wide) part = OutlineAt(part, true, depth + 1).wide;
    kernels = {kNothing};
  }
  result.wide = wide.empty() ? ReId{kAnything} : And(wide);
  result.kernel = And(kernels);
  return result;
}

// With all digits where there is one, and all letters where there is one.
ReId RegexArena::CoarseSet(ReId id) {
  static constexpr std::array<std::array<CodepointRange, 2>, 2> kAlike = {
      {{{{'0', '9'}, {'0', '9'}}}, {{{'A', 'Z'}, {'a', 'z'}}}}};
  const std::span<const CodepointRange> given = sets_[node(id).a].ranges();
  std::vector<CodepointRange> ranges(given.begin(), given.end());
  for (const auto& alike : kAlike) {
    const bool meets = std::ranges::any_of(alike, [&](const CodepointRange& one) {
      return std::ranges::any_of(
          given, [&](const CodepointRange& r) { return r.lo <= one.hi && one.lo <= r.hi; });
    });
    if (meets) ranges.insert(ranges.end(), alike.begin(), alike.end());
  }
  return Set(CodepointSet::FromRanges(ranges));
}

}  // namespace pawl
