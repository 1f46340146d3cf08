// Reversal goes through a term from its operands up: every operator says the same backwards, but a
// concatenation turns its factors round. A concatenation is taken as a whole list, since reversing
// it pair by pair would build every prefix of it anew.
#include <algorithm>

#include "grammar/regex/regex_arena.h"

namespace pawl {

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
