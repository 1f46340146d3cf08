// Derivatives of open terms: what a lookbehind keeps of a text that may be followed by anything.
//
// A closed term knows the whole rest of the text, so Look(r) K is a conjunction (regex_derive.cc).
// In the body of a lookbehind the rest is not known: it ends where the lookbehind stands, and what
// its lookaheads ask reaches beyond. There a lookahead stays a condition that the characters work
// off wherever it stands,
//   d_c (Look(r) K)  =  Look(d_c r) d_c K,
// and what is left of the conditions at the end of a body is a language of what follows.
#include <vector>

#include "grammar/regex/regex_arena.h"

namespace pawl {
namespace {}  // namespace

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
