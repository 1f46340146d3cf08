// Derivatives, and lookahead.
//
// The derivative of a product follows its spine in a loop, so long texts cost no stack: the parts
// that a character can start in are the first factor and, as long as factors are nullable, the ones
// behind it. An Or that comes out of a first factor is distributed over the rest (V. Antimirov,
// "Partial derivatives of regular expressions and finite automaton constructions", TCS 1996), which
// lets equal parts meet.
//
// Lookahead. Look(r) constrains the whole rest of the text, so with a known rest K it is a
// conjunction: Look(r) K = r & K. CloseWith applies that from right to left through products and
// alternatives. Only a loop whose body looks ahead has no finite form of that kind; it stays, with
// its rest, as a Scope term
//   scope(b{m,n} K)  =  b scope(b{m-1,n-1} K)  (| K if m = 0),
// unrolled one step when it is derived. When b can be empty that unrolling meets the same scope
// again before a character is read; the least fixed point then adds nothing, so it counts as
// kNothing there.
#include <string>
#include <vector>

#include "grammar/regex/regex_arena.h"
#include "src/base/stop_scope.h"

namespace pawl {

namespace {

// Derivatives remembered at a time. States of an automaton keep what they were asked, so this helps
// parts that stand in several terms; a longer memory only grows while somebody waits for a mask.
constexpr size_t kMaxRemembered = size_t{1} << 15;

}  // namespace

ReId RegexArena::Look(ReId rest) {
  rest = Close(rest);
  if (rest == kNothing) return kNothing;
  if (rest == kAnything) return kEpsilon;
  return MakeUnary(Kind::kLook, rest);
}

// Deep terms end the operation like an exhausted budget; without a budget the arena is no good any
// more.
bool RegexArena::TooDeep(int depth) {
  if (depth <= limits_.max_depth) return false;
  (work_end_ == std::numeric_limits<uint64_t>::max() ? overflow_ : stopped_) = true;
  return true;
}

ReId RegexArena::Close(ReId id, ReId rest) {
  return rest == kEpsilon && !IsOpen(id) ? id : CloseWith(id, rest, 0);
}

// The closed term for `id` followed by `rest`, where `rest` is closed and reaches to the end.
ReId RegexArena::CloseWith(ReId id, ReId rest, int depth) {
  ++work_;
  StopScope::Step();
  if (Stopped()) return kNothing;
  if (!IsOpen(id)) return Concat(id, rest);
  if (TooDeep(depth)) return kNothing;
  if (kind(id) == Kind::kLook) return And(node(id).a, rest);
  // Terms share parts: without memory the same part would be closed once for each way to it.
  const uint64_t key = uint64_t{id} << 32 | rest;
  if (const ReId* known = closed_.Find(key)) return *known;
  const ReId closed = CloseOpen(id, rest, depth);
  if (stopped_) return kNothing;
  if (closed_.size() >= kMaxRemembered) closed_.Clear();
  closed_.Insert(key, closed);
  return closed;
}

ReId RegexArena::CloseOpen(ReId id, ReId rest, int depth) {
  switch (kind(id)) {
    case Kind::kConcat: {
      const std::vector<ReId> factors = Factors(id);
      for (size_t i = factors.size(); i-- > 0;) rest = CloseWith(factors[i], rest, depth + 1);
      return rest;
    }
    case Kind::kOr:
      return OrOfEach(id, [&](ReId part) { return CloseWith(part, rest, depth + 1); });
    case Kind::kRepeat: {
      const Node n = node(id);
      if (n.max == 1) return Or(rest, CloseWith(n.a, rest, depth + 1));
      return MakeUnary(Kind::kScope, Concat(id, rest));
    }
    default:
      return Concat(id, rest);  // closed kinds
  }
}

ReId RegexArena::Derive(ReId id, char32_t codepoint) {
  if (codepoint >= 0xD800 && codepoint <= 0xDFFF) return kNothing;
  derive_failed_ = false;
  const WorkBudget budget(*this, limits_.max_derive_work);
  const ReId result = DeriveAt(Close(id), codepoint, 0);
  derive_failed_ = derive_failed_ || stopped_;
  return derive_failed_ ? ReId{kNothing} : result;
}

ReId RegexArena::DeriveAt(ReId id, char32_t codepoint, int depth) {
  ++work_;
  StopScope::Step();
  switch (kind(id)) {
    case Kind::kEmptySet:
    case Kind::kEpsilon:
    case Kind::kLook:
      return kNothing;
    case Kind::kSet:
      return sets_[node(id).a].Contains(codepoint) ? kEpsilon : kNothing;
    default:
      break;
  }
  if (id == kAnything) return kAnything;
  // Asking whether this is remembered would take longer.
  if (const Node& n = node(id); n.kind == Kind::kConcat && kind(n.a) == Kind::kSet)
    return sets_[node(n.a).a].Contains(codepoint) ? n.b : ReId{kNothing};
  if (depth > limits_.max_depth || Stopped()) derive_failed_ = true;
  if (derive_failed_) return kNothing;
  const uint64_t key = uint64_t{id} << 32 | codepoint;
  if (const ReId* known = derivatives_.Find(key)) return *known;
  ReId result = kNothing;
  switch (kind(id)) {
    case Kind::kConcat: {
      std::vector<ReId> parts;
      ReId at = id;
      for (; kind(at) == Kind::kConcat; at = node(at).b) {
        const Node n = node(at);
        const ReId first = DeriveAt(n.a, codepoint, depth + 1);
        if (kind(first) == Kind::kOr) {
          for (const ReId part : Alternatives(first)) parts.push_back(Concat(part, n.b));
        } else if (first != kNothing) {
          parts.push_back(Concat(first, n.b));
        }
        if (!Nullable(n.a)) break;
      }
      if (kind(at) != Kind::kConcat) parts.push_back(DeriveAt(at, codepoint, depth + 1));
      result = parts.size() == 1 ? parts[0] : Or(parts);
      break;
    }
    case Kind::kRepeat: {
      const Node n = node(id);
      const ReId first = DeriveAt(n.a, codepoint, depth + 1);
      if (first == kNothing) break;
      const ReId again = OnceLess(n);
      result = kind(first) == Kind::kOr
                   ? OrOfEach(first, [&](ReId part) { return Concat(part, again); })
                   : Concat(first, again);
      break;
    }
    case Kind::kOr:
    case Kind::kAnd: {
      const bool is_or = kind(id) == Kind::kOr;
      const std::vector<ReId> given(operands(id).begin(), operands(id).end());
      std::vector<ReId> parts;
      parts.reserve(given.size());
      for (const ReId operand : given) {
        const ReId part = DeriveAt(operand, codepoint, depth + 1);
        if (part == kNothing) {
          if (is_or) continue;
          parts.clear();
          break;
        }
        parts.push_back(part);
      }
      if (!parts.empty()) result = is_or ? Or(parts) : And(parts);
      break;
    }
    case Kind::kNot:
      result = Not(DeriveAt(node(id).a, codepoint, depth + 1));
      break;
    case Kind::kScope: {
      const ReId loop = Head(node(id).a);
      const ReId rest = Tail(node(id).a);
      const Node n = node(loop);
      const ReId step = CloseWith(n.a, CloseWith(OnceLess(n), rest, depth + 1), depth + 1);
      result = DeriveAt(step, codepoint, depth + 1);
      if (n.min == 0) result = Or(result, DeriveAt(rest, codepoint, depth + 1));
      break;
    }
    default:
      break;
  }
  if (!derive_failed_ && !stopped_) {
    if (derivatives_.size() >= kMaxRemembered) derivatives_.Clear();
    derivatives_.Insert(key, result);
  }
  return result;
}

// What `id` matches without reading a character: an open term of conditions, kEpsilon or kNothing.
ReId RegexArena::EmptyPart(ReId id, int depth) {
  if (!IsOpen(id)) return Nullable(id) ? kEpsilon : kNothing;
  ++work_;
  if (Stopped() || TooDeep(depth)) return kNothing;
  const auto known = empty_parts_.find(id);
  if (known != empty_parts_.end()) return known->second;
  ReId result = id;
  switch (kind(id)) {
    case Kind::kConcat: {
      std::vector<ReId> parts = Factors(id);
      for (ReId& part : parts) part = EmptyPart(part, depth + 1);
      result = Concat(parts);
      break;
    }
    case Kind::kOr:
      result = OrOfEach(id, [&](ReId part) { return EmptyPart(part, depth + 1); });
      break;
    case Kind::kRepeat:
      result = node(id).min == 0 ? ReId{kEpsilon} : EmptyPart(node(id).a, depth + 1);
      break;
    default:
      break;  // kLook
  }
  if (!stopped_) empty_parts_.emplace(id, result);
  return result;
}

// What `id` matches by reading at least one character. Depth: that of the term, and the least count
// of a repetition that looks ahead.
ReId RegexArena::NonEmpty(ReId id, int depth) {
  if (EmptyPart(id, depth + 1) == kNothing) return id;
  ++work_;
  if (Stopped() || TooDeep(depth)) return kNothing;
  const auto known = non_empty_.find(id);
  if (known != non_empty_.end()) return known->second;
  ReId result = kNothing;
  switch (kind(id)) {
    case Kind::kConcat: {
      std::vector<ReId> spine;
      ReId at = id;
      for (; kind(at) == Kind::kConcat; at = node(at).b) spine.push_back(at);
      result = NonEmpty(at, depth + 1);
      for (size_t i = spine.size(); i-- > 0;) {
        const ReId head = node(spine[i]).a;
        const ReId tail = node(spine[i]).b;
        result =
            Or(Concat(NonEmpty(head, depth + 1), tail), Concat(EmptyPart(head, depth + 1), result));
      }
      break;
    }
    case Kind::kOr:
      result = OrOfEach(id, [&](ReId part) { return NonEmpty(part, depth + 1); });
      break;
    case Kind::kRepeat: {
      const Node n = node(id);
      const uint32_t fewer = n.max == kInfinite ? kInfinite : n.max - 1;
      if (n.min <= 1) {
        result = Concat(NonEmpty(n.a, depth + 1), MakeRepeat(n.a, 0, fewer));
      } else {
        const ReId again = MakeRepeat(n.a, n.min - 1, fewer);
        result = Or(Concat(NonEmpty(n.a, depth + 1), again),
                    Concat(EmptyPart(n.a, depth + 1), NonEmpty(again, depth + 1)));
      }
      break;
    }
    case Kind::kAnd:
    case Kind::kNot:
    case Kind::kScope:
      result = And(id, MakeRepeat(kAnyChar, 1, kInfinite));
      break;
    default:
      break;
  }
  if (!stopped_) non_empty_.emplace(id, result);
  return result;
}

// Without And, Not and lookahead the lower bounds of lengths are exact: every part can be chosen
// for itself, so of a choice the shortest alternative is taken, and a repetition as often as it
// must be.
std::optional<std::u32string> RegexArena::ShortestText(ReId id, size_t most) const {
  if (id == kNothing || HasBoolean(id) || IsOpen(id) || MinLength(id) > most) return std::nullopt;
  // What is best to read, and the lowest of those: a letter or digit, else something that prints.
  const auto character = [](const CodepointSet& set) -> std::optional<char32_t> {
    const auto first = [&](char32_t lo, char32_t hi) -> std::optional<char32_t> {
      for (const CodepointRange& range : set.ranges()) {
        const char32_t c = std::max(range.lo, lo);
        if (c <= std::min(range.hi, hi)) return c;
      }
      return std::nullopt;
    };
    for (const auto& [lo, hi] : {std::pair<char32_t, char32_t>{'0', '9'},
                                 {'A', 'Z'},
                                 {'a', 'z'},
                                 {'!', '~'},
                                 {0, 0xD7FF},
                                 {0xE000, 0x10FFFF}}) {
      if (const auto c = first(lo, hi)) return c;
    }
    return std::nullopt;
  };
  std::u32string text;
  std::vector<std::pair<ReId, uint32_t>> open = {{id, 1}};  // what is still to be written how often
  while (!open.empty()) {
    StopScope::Step();
    auto& [at, times] = open.back();
    const Node& n = nodes_[at];
    const uint32_t count = times;
    if (count == 0 || n.min_length == 0) {
      open.pop_back();
      continue;
    }
    --times;
    switch (n.kind) {
      case Kind::kSet: {
        const auto c = character(sets_[n.a]);
        if (!c) return std::nullopt;
        text.append(count, *c);
        open.pop_back();
        break;
      }
      case Kind::kConcat:
        open.emplace_back(n.b, 1);
        open.emplace_back(n.a, 1);
        break;
      case Kind::kRepeat:
        open.emplace_back(n.a, n.min);
        break;
      case Kind::kOr:
        open.emplace_back(*std::ranges::min_element(operands(at), {},
                                                    [this](ReId kid) { return MinLength(kid); }),
                          1);
        break;
      default:
        return std::nullopt;
    }
  }
  return text;
}

std::string RegexArena::ToString(ReId id, size_t limit) const {
  // An explicit stack of terms and texts still to write.
  struct Item {
    ReId id;
    const char* text;
  };
  std::string out;
  std::vector<Item> pending{{id, nullptr}};
  while (!pending.empty() && out.size() < limit) {
    const Item item = pending.back();
    pending.pop_back();
    if (item.text != nullptr) {
      out += item.text;
      continue;
    }
    const Node& n = node(item.id);
    switch (n.kind) {
      case Kind::kEmptySet:
        out += "{}";
        break;
      case Kind::kEpsilon:
        out += "\"\"";
        break;
      case Kind::kSet: {
        if (item.id == kAnyChar) {
          out += ".";
          break;
        }
        out += '[';
        for (const CodepointRange& r : sets_[n.a].ranges()) {
          for (const char32_t c : {r.lo, r.hi}) {
            if (c > ' ' && c < 0x7F && c != '\\' && c != ']') {
              out += static_cast<char>(c);
            } else {
              out += "\\u{";
              out += std::to_string(static_cast<uint32_t>(c));
              out += '}';
            }
            if (r.lo == r.hi) break;
            if (c == r.lo) out += '-';
          }
          if (out.size() > limit) break;
        }
        out += ']';
        break;
      }
      case Kind::kConcat:
        pending.push_back({n.b, nullptr});
        pending.push_back({n.a, nullptr});
        break;
      case Kind::kRepeat: {
        // The counter stands before its body: the stack then holds constant texts only.
        out += '{';
        out += std::to_string(n.min);
        out += ',';
        if (n.max != kInfinite) out += std::to_string(n.max);
        out += "}(";
        pending.push_back({0, ")"});
        pending.push_back({n.a, nullptr});
        break;
      }
      case Kind::kOr:
      case Kind::kAnd: {
        const auto list = operands(item.id);
        out += "(";
        pending.push_back({0, ")"});
        for (size_t i = list.size(); i-- > 0;) {
          pending.push_back({list[i], nullptr});
          if (i > 0) pending.push_back({0, n.kind == Kind::kOr ? "|" : "&"});
        }
        break;
      }
      case Kind::kNot:
      case Kind::kLook:
      case Kind::kScope:
        out += n.kind == Kind::kNot ? "!(" : n.kind == Kind::kLook ? "look(" : "scope(";
        pending.push_back({0, ")"});
        pending.push_back({n.a, nullptr});
        break;
    }
  }
  if (!pending.empty()) out += "...";
  return out;
}

// Derivatives of open terms: what a lookbehind keeps of a text that may be followed by anything.
//
// A closed term knows the whole rest of the text, so Look(r) K is a conjunction.
// In the body of a lookbehind the rest is not known: it ends where the lookbehind stands, and what
// its lookaheads ask reaches beyond. There a lookahead stays a condition that the characters work
// off wherever it stands,
//   d_c (Look(r) K)  =  Look(d_c r) d_c K,
// and what is left of the conditions at the end of a body is a language of what follows.

ReId RegexArena::DeriveOpen(ReId id, char32_t codepoint) {
  if (codepoint >= 0xD800 && codepoint <= 0xDFFF) return kNothing;
  derive_failed_ = false;
  const WorkBudget budget(*this, limits_.max_derive_work);
  const ReId result = DeriveOpenAt(id, codepoint, 0);
  derive_failed_ = derive_failed_ || stopped_;
  return derive_failed_ ? ReId{kNothing} : result;
}

ReId RegexArena::RestAfter(ReId id) { return Close(EmptyPart(id, 0), kAnything); }

ReId RegexArena::DeriveOpenAt(ReId id, char32_t codepoint, int depth) {
  if (!IsOpen(id)) return DeriveAt(id, codepoint, depth);
  ++work_;
  if (Stopped() || TooDeep(depth)) return kNothing;
  switch (kind(id)) {
    case Kind::kConcat: {
      std::vector<ReId> parts;
      ReId conditions = kEpsilon;  // of the factors that are passed by without a character
      ReId at = id;
      for (; kind(at) == Kind::kConcat && conditions != kNothing; at = node(at).b) {
        const Node n = node(at);
        parts.push_back(Concat({conditions, DeriveOpenAt(n.a, codepoint, depth + 1), n.b}));
        conditions = Concat(conditions, DeriveConditions(EmptyPart(n.a, depth + 1), codepoint));
      }
      if (conditions != kNothing)
        parts.push_back(Concat(conditions, DeriveOpenAt(at, codepoint, depth + 1)));
      return Or(parts);
    }
    case Kind::kOr:
      return OrOfEach(id, [&](ReId part) { return DeriveOpenAt(part, codepoint, depth + 1); });
    case Kind::kRepeat: {
      const Node n = node(id);
      const uint32_t fewer = n.max == kInfinite ? kInfinite : n.max - 1;
      const ReId first = DeriveOpenAt(n.a, codepoint, depth + 1);
      // One iteration that reads something; of those before it, which read nothing, only a least
      // count demands any.
      if (n.min <= 1) return Concat(first, MakeRepeat(n.a, 0, fewer));
      const ReId again = MakeRepeat(n.a, n.min - 1, fewer);
      const ReId empty = DeriveConditions(EmptyPart(n.a, depth + 1), codepoint);
      const ReId later =
          empty == kNothing ? ReId{kNothing} : DeriveOpenAt(again, codepoint, depth + 1);
      return Or(Concat(first, again), Concat(empty, later));
    }
    default:
      return kNothing;  // kLook reads nothing
  }
}

// `id` is what EmptyPart answers: conditions on the rest of the text; the same ones after a
// character of that rest.
ReId RegexArena::DeriveConditions(ReId id, char32_t codepoint) {
  if (!IsOpen(id)) return id;
  switch (kind(id)) {
    case Kind::kLook:
      return Look(DeriveAt(node(id).a, codepoint, 0));
    case Kind::kConcat:
      return Concat(DeriveConditions(node(id).a, codepoint),
                    DeriveConditions(node(id).b, codepoint));
    case Kind::kOr:
      return OrOfEach(id, [&](ReId part) { return DeriveConditions(part, codepoint); });
    default:  // a repetition: without its least count it demands nothing
      return node(id).min == 0 ? ReId{kEpsilon} : DeriveConditions(node(id).a, codepoint);
  }
}

}  // namespace pawl
