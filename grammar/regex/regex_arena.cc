// Terms are kept hash-consed: building a term that exists gives its id, so that equality is
// comparing ids and a derivative automaton closes as soon as terms repeat. What makes the closure
// small is that the constructors simplify; this file has the leaves, concatenation and repetition,
// regex_simplify.cc the Boolean operators, regex_derive.cc the derivatives.
//
// Ideas: J. A. Brzozowski, "Derivatives of Regular Expressions", JACM 1964; S. Owens, J. Reppy, A.
// Turon, "Regular-expression derivatives re-examined", JFP 2009.
#include "grammar/regex/regex_arena.h"

#include <algorithm>

#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl {

namespace {

constexpr uint32_t kInf = RegexArena::kInfinite;

// Sums and products where kInf absorbs and too large becomes `ceiling`.
uint32_t AddCapped(uint32_t a, uint32_t b, uint32_t ceiling) {
  if (a == kInf || b == kInf) return kInf;
  return static_cast<uint32_t>(std::min<uint64_t>(uint64_t{a} + b, ceiling));
}
uint32_t MulCapped(uint32_t a, uint32_t b, uint32_t ceiling) {
  if (a == 0 || b == 0) return 0;
  if (a == kInf || b == kInf) return kInf;
  return static_cast<uint32_t>(std::min<uint64_t>(uint64_t{a} * b, ceiling));
}
// A lower bound may be cut at any number; an upper bound that is too large is no bound.
uint32_t AddMin(uint32_t a, uint32_t b) { return AddCapped(a, b, kInf - 1); }
uint32_t AddMax(uint32_t a, uint32_t b) { return AddCapped(a, b, kInf); }

CodepointSet ScalarValues() {
  const CodepointRange ranges[] = {{0, 0xD7FF}, {0xE000, kMaxCodepoint}};
  return CodepointSet::FromRanges(ranges);
}

}  // namespace

RegexArena::RegexArena(const RegexLimits& limits) : limits_(limits) {
  nodes_.push_back({Kind::kEmptySet, 0, 0, 0, 0, 0, kInf, 0});
  nodes_.push_back({Kind::kEpsilon, kNullable, 0, 0, 0, 0, 0, 0});
  // kAnything refers to kAnyChar, which follows it.
  sets_.push_back(ScalarValues());
  nodes_.push_back({Kind::kRepeat, kNullable, kAnyChar, 0, 0, kInf, 0, kInf});
  nodes_.push_back({Kind::kSet, 0, 0, 0, 0, 0, 1, 1});
  index_.Insert(HashOf(nodes_[kAnything], {}, nullptr), kAnything);
  index_.Insert(HashOf(nodes_[kAnyChar], {}, &sets_[0]), kAnyChar);
}

// Of a term whose list or set, when it has one, is given apart.
uint64_t RegexArena::HashOf(const Node& term, std::span<const ReId> list, const CodepointSet* set) {
  uint64_t hash = HashMix(static_cast<uint64_t>(term.kind), uint64_t{term.min} << 32 | term.max);
  if (set != nullptr) {
    for (const CodepointRange& r : set->ranges()) hash = HashMix(hash, uint64_t{r.lo} << 32 | r.hi);
  } else if (!list.empty()) {
    for (const ReId id : list) hash = HashMix(hash, id);
  } else {
    hash = HashMix(hash, uint64_t{term.a} << 32 | term.b);
  }
  return hash;
}

RegexArena::WorkBudget::WorkBudget(RegexArena& arena, uint64_t steps)
    : arena_(arena), outer_end_(arena.work_end_), outer_stopped_(arena.stopped_) {
  arena_.work_end_ = std::min(outer_end_, arena_.work_ + steps);
}

RegexArena::WorkBudget::~WorkBudget() {
  arena_.work_end_ = outer_end_;
  arena_.stopped_ = outer_stopped_ || arena_.work_ > outer_end_;
}

// The id of `candidate`, whose list or set is given as for HashOf.
ReId RegexArena::Intern(const Node& candidate, std::span<const ReId> list,
                        const CodepointSet* set) {
  ++work_;
  StopScope::Step();
  if (Stopped()) return kNothing;
  const uint64_t hash = HashOf(candidate, list, set);
  const ReId known = index_.Find(hash, [&](ReId id) {
    const Node& n = nodes_[id];
    if (n.kind != candidate.kind || n.min != candidate.min || n.max != candidate.max) return false;
    if (set != nullptr) return sets_[n.a] == *set;
    return !list.empty() ? std::ranges::equal(operands(id), list)
                         : n.a == candidate.a && n.b == candidate.b;
  });
  if (known != HashIndex::kNone) return known;
  if (nodes_.size() >= limits_.max_terms) {
    overflow_ = true;
    return kNothing;
  }
  Node added = candidate;
  if (set != nullptr) {
    added.a = static_cast<uint32_t>(sets_.size());
    sets_.push_back(*set);
  } else if (!list.empty()) {
    added.a = static_cast<uint32_t>(lists_.size());
    added.b = static_cast<uint32_t>(list.size());
    lists_.insert(lists_.end(), list.begin(), list.end());
  }
  const ReId id = static_cast<ReId>(nodes_.size());
  nodes_.push_back(added);
  index_.Insert(hash, id);
  return id;
}

ReId RegexArena::Set(const CodepointSet& set) {
  const CodepointSet scalars = set.Intersect(sets_[0]);
  if (scalars.empty()) return kNothing;
  return Intern({Kind::kSet, 0, 0, 0, 0, 0, 1, 1}, {}, &scalars);
}

ReId RegexArena::Char(char32_t codepoint) {
  const auto [entry, added] = chars_.try_emplace(codepoint, ReId{kNothing});
  if (added) entry->second = Set(CodepointSet::Of(codepoint));
  const ReId id = entry->second;
  if (stopped_) chars_.erase(entry);
  return id;
}

bool RegexArena::IsSearch(ReId id, bool then_anything) const {
  if (kind(id) == Kind::kOr) {
    const auto alternatives = operands(id);
    return std::any_of(alternatives.begin(), alternatives.end(),
                       [&](ReId each) { return IsSearch(each, then_anything); });
  }
  const auto skips = [&](ReId factor) {
    const Node& n = node(factor);
    return n.kind == Kind::kRepeat && n.a == kAnyChar && n.max == kInf;
  };
  if (MayBeEmpty(id) || !skips(Head(id))) return false;
  if (!then_anything) return true;
  ReId last = id;
  while (kind(last) == Kind::kConcat) last = node(last).b;
  return skips(last);
}

bool RegexArena::BeginsWithLoop(ReId id) const {
  if (kind(id) == Kind::kOr) {
    const auto alternatives = operands(id);
    return std::any_of(alternatives.begin(), alternatives.end(),
                       [&](ReId each) { return BeginsWithLoop(each); });
  }
  const Node& head = node(Head(id));
  return head.kind == Kind::kRepeat && head.max == kInf && kind(head.a) == Kind::kSet;
}

ReId RegexArena::Literal(std::u32string_view text) {
  ReId id = kEpsilon;
  for (size_t i = text.size(); i-- > 0;) id = Concat(Char(text[i]), id);
  return id;
}

ReId RegexArena::Concat(std::span<const ReId> parts) {
  ReId id = kEpsilon;
  for (size_t i = parts.size(); i-- > 0;) id = Concat(parts[i], id);
  return id;
}

// Right-associates: (a b) c becomes a (b c).
ReId RegexArena::Concat(ReId left, ReId right) {
  if (left == kNothing || right == kNothing) return kNothing;
  if (kind(left) != Kind::kConcat) return ConcatOne(left, right);
  std::vector<ReId> factors;
  while (kind(left) == Kind::kConcat) {
    factors.push_back(node(left).a);
    left = node(left).b;
  }
  ReId id = ConcatOne(left, right);
  for (size_t i = factors.size(); i-- > 0;) id = ConcatOne(factors[i], id);
  return id;
}

// `head` is no concatenation.
ReId RegexArena::ConcatOne(ReId head, ReId tail) {
  for (;;) {
    if (head == kNothing || tail == kNothing) return kNothing;
    if (head == kEpsilon) return tail;
    if (tail == kEpsilon) return head;
    const Node h = node(head);
    const ReId second = Head(tail);
    const Node s = node(second);
    // Sigma* swallows what may be empty next to it: Sigma* r K = Sigma* K when r is nullable.
    if (tail == kAnything && (h.flags & kOpen) == 0) {
      if (h.flags & kNullable) return kAnything;
      if (h.kind == Kind::kRepeat && h.max != h.min) {
        head = MakeRepeat(h.a, h.min, h.min);
        continue;
      }
    }
    if (head == kAnything && (s.flags & kOpen) == 0) {
      if (s.flags & kNullable) {
        tail = Tail(tail);
        continue;
      }
      if (s.kind == Kind::kRepeat && s.max != s.min) {
        tail = Concat(MakeRepeat(s.a, s.min, s.min), Tail(tail));
        continue;
      }
    }
    // r{a,b} r{c,d} = r{a+c,b+d}
    const bool head_repeats = h.kind == Kind::kRepeat;
    const bool second_repeats = s.kind == Kind::kRepeat;
    const ReId head_body = head_repeats ? h.a : head;
    const ReId second_body = second_repeats ? s.a : second;
    if ((head_repeats || second_repeats) && head_body == second_body) {
      const uint64_t min = uint64_t{head_repeats ? h.min : 1} + (second_repeats ? s.min : 1);
      const uint32_t head_max = head_repeats ? h.max : 1;
      const uint32_t second_max = second_repeats ? s.max : 1;
      const bool infinite = head_max == kInf || second_max == kInf;
      const uint64_t max = infinite ? kInf : uint64_t{head_max} + second_max;
      if (min < kInf && (infinite || max < kInf)) {
        tail = Tail(tail);
        head = MakeRepeat(head_body, static_cast<uint32_t>(min), static_cast<uint32_t>(max));
        if (kind(head) == Kind::kConcat) return Concat(head, tail);
        continue;
      }
    }
    if (h.kind == Kind::kLook && s.kind == Kind::kLook) {
      head = Look(And(h.a, s.a));
      tail = Tail(tail);
      continue;
    }
    return MakeConcat(head, tail);
  }
}

ReId RegexArena::MakeConcat(ReId head, ReId tail) {
  const Node& h = node(head);
  const Node& t = node(tail);
  const uint8_t flags = static_cast<uint8_t>(
      (h.flags & t.flags & kNullable) | ((h.flags | t.flags) & (kBoolean | kOpen | kDoubtful)));
  return Intern({Kind::kConcat, flags, head, tail, 0, 0, AddMin(h.min_length, t.min_length),
                 AddMax(h.max_length, t.max_length)},
                {}, nullptr);
}

ReId RegexArena::Repeat(ReId id, uint32_t min, std::optional<uint32_t> max) {
  if (max && *max < min) return kNothing;
  return MakeRepeat(id, min, max ? *max : kInf);
}

ReId RegexArena::MakeRepeat(ReId id, uint32_t min, uint32_t max) {
  if (max == 0) return kEpsilon;
  if (id == kNothing) return min == 0 ? kEpsilon : kNothing;
  if (id == kEpsilon) return kEpsilon;
  if (min == 1 && max == 1) return id;
  const bool open = IsOpen(id);
  if (!open && Nullable(id)) {
    if (max == 1) return id;
    min = 0;
  }
  if (open && min == 0) {
    id = NonEmpty(id, 0);  // see regex_derive.cc
    if (id == kNothing) return kEpsilon;
  }
  if (kind(id) == Kind::kRepeat) {
    // (r{a,b}){c,d} = r{ac,bd} when the ranges [ka,kb], k = c..d, leave no gap.
    const Node inner = node(id);
    const bool no_gap = min == max ? true
                        : min == 0 ? inner.min <= 1
                                   : inner.max == kInf || uint64_t{min} * inner.max + 1 >=
                                                              (uint64_t{min} + 1) * inner.min;
    const uint64_t new_min = uint64_t{inner.min} * min;
    const bool infinite = inner.max == kInf || max == kInf;
    const uint64_t new_max = infinite ? kInf : uint64_t{inner.max} * max;
    if (no_gap && new_min < kInf && (infinite || new_max < kInf)) {
      return MakeRepeat(inner.a, static_cast<uint32_t>(new_min), static_cast<uint32_t>(new_max));
    }
  }
  if (min == 0 && max == kInf && !open) {
    // Inside a star, x{0 or 1,n} may as well be x, and a product of nullable factors their union.
    if (kind(id) == Kind::kOr) {
      std::vector<ReId> alternatives = Alternatives(id);
      bool changed = false;
      for (ReId& alternative : alternatives) {
        if (kind(alternative) == Kind::kRepeat && node(alternative).min <= 1) {
          alternative = node(alternative).a;
          changed = true;
        }
      }
      if (changed) return MakeRepeat(Or(alternatives), 0, kInf);
    }
    if (kind(id) == Kind::kConcat && Nullable(id)) return MakeRepeat(Or(Factors(id)), 0, kInf);
  }
  const Node& n = node(id);
  const uint8_t flags = static_cast<uint8_t>((n.flags & (kBoolean | kOpen)) |
                                             (min == 0 || (n.flags & kNullable) ? kNullable : 0) |
                                             (min == 0 ? 0 : n.flags & kDoubtful));
  return Intern({Kind::kRepeat, flags, id, 0, min, max, MulCapped(n.min_length, min, kInf - 1),
                 MulCapped(n.max_length, max, kInf)},
                {}, nullptr);
}

ReId RegexArena::Import(const RegexArena& other, ReId root) {
  constexpr ReId kUnknown = UINT32_MAX;
  std::vector<ReId> done(other.nodes_.size(), kUnknown);
  done[kNothing] = kNothing;
  done[kEpsilon] = kEpsilon;
  std::vector<ReId> open = {root}, kids;
  while (!open.empty()) {
    const ReId id = open.back();
    if (done[id] != kUnknown) {
      open.pop_back();
      continue;
    }
    const Node& n = other.node(id);
    kids.clear();
    if (n.kind == Kind::kOr || n.kind == Kind::kAnd) {
      const auto list = other.operands(id);
      kids.assign(list.begin(), list.end());
    } else if (n.kind == Kind::kConcat) {
      kids = {n.a, n.b};
    } else if (n.kind != Kind::kSet) {
      kids = {n.a};
    }
    const size_t before = open.size();
    for (const ReId kid : kids) {
      if (done[kid] == kUnknown) open.push_back(kid);
    }
    if (open.size() > before) continue;
    open.pop_back();
    for (ReId& kid : kids) kid = done[kid];
    ReId made = kNothing;
    switch (n.kind) {
      case Kind::kEmptySet:
      case Kind::kEpsilon:
        break;  // both are known from the beginning
      case Kind::kSet:
        made = Set(other.sets_[n.a]);
        break;
      case Kind::kConcat:
        made = MakeConcat(kids[0], kids[1]);
        break;
      case Kind::kRepeat:
        made = MakeRepeat(kids[0], n.min, n.max);
        break;
      case Kind::kOr:
      case Kind::kAnd:
        std::sort(kids.begin(), kids.end());
        made = MakeList(n.kind, kids);
        break;
      case Kind::kNot:
      case Kind::kLook:
      case Kind::kScope:
        made = MakeUnary(n.kind, kids[0]);
        break;
    }
    done[id] = made;
  }
  return done[root];
}

ReId RegexArena::MakeUnary(Kind unary, ReId id) {
  const Node& n = node(id);
  uint8_t flags = kBoolean | kDoubtful;
  uint32_t min_length = 0;
  uint32_t max_length = kInf;
  if (unary == Kind::kNot) {
    if (!(n.flags & kNullable)) flags |= kNullable;
  } else if (unary == Kind::kLook) {
    flags |= static_cast<uint8_t>(kOpen | (n.flags & kNullable));
    max_length = 0;
  } else {  // kScope
    flags |= n.flags & kNullable;
    min_length = n.min_length;
    max_length = n.max_length;
  }
  return Intern({unary, flags, id, 0, 0, 0, min_length, max_length}, {}, nullptr);
}

ReId RegexArena::MakeList(Kind list_kind, std::span<const ReId> list) {
  Node made{list_kind, 0, 0, 0, 0, 0, 0, 0};
  bool any_nullable = false, all_nullable = true, all_doubtful = true;
  uint32_t least_min = kInf, most_min = 0, least_max = kInf, most_max = 0;
  for (const ReId id : list) {
    const Node& n = node(id);
    made.flags |= n.flags & (kBoolean | kOpen);
    all_doubtful &= (n.flags & kDoubtful) != 0;
    const bool nullable = (n.flags & kNullable) != 0;
    any_nullable |= nullable;
    all_nullable &= nullable;
    least_min = std::min(least_min, n.min_length);
    most_min = std::max(most_min, n.min_length);
    least_max = std::min(least_max, n.max_length);
    most_max = std::max(most_max, n.max_length);
  }
  if (list_kind == Kind::kOr) {
    if (any_nullable) made.flags |= kNullable;
    if (all_doubtful) made.flags |= kDoubtful;
    made.min_length = least_min;
    made.max_length = most_max;
  } else {
    if (most_min > least_max) return kNothing;
    made.flags |= kBoolean | kDoubtful;
    if (all_nullable) made.flags |= kNullable;
    made.min_length = most_min;
    made.max_length = least_max;
  }
  work_ += list.size();
  return Intern(made, list, nullptr);
}

std::vector<const CodepointSet*> RegexArena::Sets(ReId id) const {
  std::vector<const CodepointSet*> found;
  std::vector<ReId> pending{id};
  std::unordered_set<ReId> seen{id};
  const auto visit = [&](ReId next) {
    if (seen.insert(next).second) pending.push_back(next);
  };
  while (!pending.empty()) {
    const ReId at = pending.back();
    pending.pop_back();
    const Node& n = node(at);
    switch (n.kind) {
      case Kind::kEmptySet:
      case Kind::kEpsilon:
        break;
      case Kind::kSet:
        found.push_back(&sets_[n.a]);
        break;
      case Kind::kConcat:
        visit(n.a);
        visit(n.b);
        break;
      case Kind::kRepeat:
      case Kind::kNot:
      case Kind::kLook:
      case Kind::kScope:
        visit(n.a);
        break;
      case Kind::kOr:
      case Kind::kAnd:
        for (const ReId operand : operands(at)) visit(operand);
        break;
    }
  }
  return found;
}

RegexArena::View RegexArena::Inspect(ReId id) const {
  View view;
  const Node& n = node(id);
  switch (n.kind) {
    case Kind::kEmptySet:
      break;
    case Kind::kEpsilon:
      view.op = View::Op::kEmpty;
      break;
    case Kind::kSet:
      view.op = View::Op::kSet;
      view.set = &sets_[n.a];
      break;
    case Kind::kConcat:
      view.op = View::Op::kConcat;
      for (ReId rest = id; rest != kEpsilon; rest = Tail(rest)) view.operands.push_back(Head(rest));
      break;
    case Kind::kRepeat:
      view.op = View::Op::kRepeat;
      view.operands.push_back(n.a);
      view.min = n.min;
      view.max = n.max;
      break;
    case Kind::kOr:
      view.op = View::Op::kOr;
      view.operands.assign(operands(id).begin(), operands(id).end());
      break;
    case Kind::kAnd:
    case Kind::kNot:
    case Kind::kLook:
    case Kind::kScope:
      view.op = View::Op::kBoolean;
      break;
  }
  return view;
}

// Reversal goes through a term from its operands up: every operator says the same backwards, but a
// concatenation turns its factors round. A concatenation is taken as a whole list, since reversing
// it pair by pair would build every prefix of it anew.

std::optional<ReId> RegexArena::Reverse(ReId root) {
  reversed_.emplace(kNothing, kNothing);
  reversed_.emplace(kEpsilon, kEpsilon);
  std::vector<ReId> open = {root}, kids;
  while (!open.empty() && !overflow_) {
    const ReId id = open.back();
    if (reversed_.contains(id)) {
      open.pop_back();
      continue;
    }
    kids.clear();
    switch (kind(id)) {
      case Kind::kEmptySet:
      case Kind::kEpsilon:
      case Kind::kSet:
        break;
      case Kind::kOr:
      case Kind::kAnd:
        kids.assign(operands(id).begin(), operands(id).end());
        break;
      case Kind::kConcat: {
        ReId rest = id;
        for (; kind(rest) == Kind::kConcat; rest = node(rest).b) kids.push_back(node(rest).a);
        kids.push_back(rest);
        break;
      }
      case Kind::kRepeat:
      case Kind::kNot:
        kids = {node(id).a};
        break;
      case Kind::kLook:
      case Kind::kScope:
        return std::nullopt;
    }
    const size_t before = open.size();
    for (const ReId kid : kids) {
      if (!reversed_.contains(kid)) open.push_back(kid);
    }
    if (open.size() > before) continue;
    open.pop_back();
    for (ReId& kid : kids) kid = reversed_.at(kid);
    ReId made = id;
    switch (kind(id)) {
      case Kind::kOr:
        made = Or(kids);
        break;
      case Kind::kAnd:
        made = And(kids);
        break;
      case Kind::kConcat:
        std::reverse(kids.begin(), kids.end());
        made = Concat(kids);
        break;
      case Kind::kRepeat: {
        const uint32_t max = node(id).max;
        made = Repeat(kids[0], node(id).min,
                      max == kInfinite ? std::nullopt : std::optional<uint32_t>(max));
        break;
      }
      case Kind::kNot:
        made = Not(kids[0]);
        break;
      default:
        break;
    }
    reversed_[id] = made;
    reversed_.emplace(made, id);
  }
  const auto found = reversed_.find(root);
  return found == reversed_.end() ? ReId{kNothing} : found->second;
}

}  // namespace pawl
