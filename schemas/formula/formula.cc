// Smart constructors keep formulas small: junctions are flattened, sorted and free of duplicates,
// constants vanish, kind sets merge, x with not-x decides. Everything is interned, so ids compare
// as values.
#include "schemas/formula/formula.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "schemas/limits.h"
#include "src/base/sorted.h"
#include "src/base/stop_scope.h"

namespace pawl::schema {
namespace {

// a ∪ b of sorted vectors.
std::vector<AtomId> Merge(const std::vector<AtomId>& a, const std::vector<AtomId>& b) {
  std::vector<AtomId> out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

bool Intersects(const std::vector<AtomId>& a, const std::vector<AtomId>& b) {
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) return true;
    a[i] < b[j] ? ++i : ++j;
  }
  return false;
}

}  // namespace

FormulaArena::FormulaArena() {
  Intern(Op::kFalse, 0, {});
  Intern(Op::kTrue, 0, {});
}

FormulaId FormulaArena::Intern(Op op, uint32_t value, std::vector<FormulaId> kids, Kind kind) {
  StopScope::Steps(kids.size() + 1);
  uint64_t hash = HashMix(static_cast<uint64_t>(op), value);
  for (const FormulaId kid : kids) hash = HashMix(hash, kid);
  const FormulaId known = index_.Find(hash, [&](FormulaId id) {
    const Node& node = nodes_[id];
    return node.op == op && node.value == value && node.kids == kids;
  });
  if (known != HashIndex::kNone) return known;
  const FormulaId id = static_cast<FormulaId>(nodes_.size());
  uint32_t size = 1;
  for (const FormulaId kid : kids) size = std::min(kMostParts, size + nodes_[kid].size);
  nodes_.push_back({op, kind, value, size, std::move(kids)});
  index_.Insert(hash, id);
  return id;
}

FormulaId FormulaArena::Kinds(KindSet kinds) {
  kinds &= kAllKinds;
  if (kinds == 0) return kFalseFormula;
  if (kinds == kAllKinds) return kTrueFormula;
  return Intern(Op::kKindSet, kinds, {});
}

FormulaId FormulaArena::Atom(AtomId atom, Kind kind) { return Intern(Op::kAtom, atom, {}, kind); }

FormulaId FormulaArena::NewReference() {
  const uint32_t index = static_cast<uint32_t>(targets_.size());
  targets_.push_back(kFalseFormula);
  references_.push_back(Intern(Op::kReference, index, {}));
  return references_.back();
}

void FormulaArena::Define(FormulaId reference, FormulaId target) {
  targets_[nodes_[reference].value] = target;
}

FormulaId FormulaArena::Junction(Op op, std::span<const FormulaId> kids) {
  const FormulaId absorbing = op == Op::kAnd ? kFalseFormula : kTrueFormula;
  const FormulaId neutral = op == Op::kAnd ? kTrueFormula : kFalseFormula;
  std::vector<FormulaId> flat;
  KindSet kinds = op == Op::kAnd ? kAllKinds : 0;
  // Nested junctions have most of their kids in common, so each is looked at once only.
  if (met_.size() < nodes_.size() + 1) met_.resize(nodes_.size() + nodes_.size() / 2 + 64, 0);
  ++round_;
  const auto meet = [this](FormulaId kid) { return std::exchange(met_[kid], round_) != round_; };
  const auto add = [&](FormulaId kid) {
    if (!meet(kid)) return;
    const Node& node = nodes_[kid];
    if (node.op == Op::kKindSet) {
      kinds = op == Op::kAnd ? kinds & static_cast<KindSet>(node.value)
                             : kinds | static_cast<KindSet>(node.value);
    } else if (kid != neutral) {
      flat.push_back(kid);
    }
  };
  StopScope::Steps(kids.size());
  for (const FormulaId kid : kids) {
    if (nodes_[kid].op != op) {
      add(kid);
    } else if (meet(kid)) {
      for (const FormulaId inner : nodes_[kid].kids) add(inner);
    }
  }
  const FormulaId kind_test = Kinds(kinds);
  if (kind_test != neutral) flat.push_back(kind_test);
  for (const FormulaId kid : flat) {
    if (kid == absorbing) return absorbing;
    if (nodes_[kid].op == Op::kNot && met_[nodes_[kid].kids[0]] == round_) return absorbing;
  }
  std::sort(flat.begin(), flat.end());
  if (flat.empty()) return neutral;
  if (flat.size() == 1) return flat[0];
  return Intern(op, 0, std::move(flat));
}

FormulaId FormulaArena::And(std::span<const FormulaId> kids) { return Junction(Op::kAnd, kids); }
FormulaId FormulaArena::Or(std::span<const FormulaId> kids) { return Junction(Op::kOr, kids); }

FormulaId FormulaArena::Not(FormulaId f) {
  if (f <= kTrueFormula) return 1 - f;
  const Node& node = nodes_[f];
  if (node.op == Op::kNot) return node.kids[0];
  if (node.op == Op::kKindSet) return Kinds(static_cast<KindSet>(~node.value));
  return Intern(Op::kNot, 0, {f});
}

FormulaId FormulaArena::ExactlyOne(std::span<const FormulaId> kids) {
  std::vector<FormulaId> open;
  std::vector<FormulaId> impossible;  // kids that are in twice can never be the one
  bool one_is_true = false;
  std::vector<FormulaId> sorted(kids.begin(), kids.end());
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] == kFalseFormula) continue;
    if (sorted[i] == kTrueFormula) {
      if (one_is_true) return kFalseFormula;
      one_is_true = true;
    } else if (i + 1 < sorted.size() && sorted[i + 1] == sorted[i]) {
      impossible.push_back(Not(sorted[i]));
      while (i + 1 < sorted.size() && sorted[i + 1] == sorted[i]) ++i;
    } else {
      open.push_back(sorted[i]);
    }
  }
  FormulaId one;
  if (one_is_true) {
    for (FormulaId& kid : open) kid = Not(kid);
    one = And(open);
  } else if (open.empty()) {
    return kFalseFormula;
  } else if (open.size() == 1) {
    one = open[0];
  } else {
    one = Intern(Op::kExactlyOne, 0, std::move(open));
  }
  impossible.push_back(one);
  return And(impossible);
}

FormulaId FormulaArena::ForKind(FormulaId f, Kind kind) {
  if (f <= kTrueFormula) return f;
  const uint64_t key = (uint64_t{f} << 3) | kind;
  if (const auto it = for_kind_.find(key); it != for_kind_.end()) return it->second;
  const Node node = nodes_[f];  // a copy: nodes_ may grow below
  FormulaId out = f;
  switch (node.op) {
    case Op::kFalse:
    case Op::kTrue:
      break;
    case Op::kKindSet:
      out = (node.value >> kind) & 1 ? kTrueFormula : kFalseFormula;
      break;
    case Op::kAtom:
      out = node.kind == kind ? f : kTrueFormula;
      break;
    case Op::kReference:
      out = ForKind(targets_[node.value], kind);
      break;
    case Op::kNot:
      out = Not(ForKind(node.kids[0], kind));
      break;
    case Op::kAnd:
    case Op::kOr:
    case Op::kExactlyOne:
      out = Rebuilt(node, [&](FormulaId kid) { return ForKind(kid, kind); });
      break;
  }
  for_kind_.emplace(key, out);
  return out;
}

std::optional<FormulaArena::BadReference> FormulaArena::FindBadReference(int max_steps) const {
  // The longest path from each formula to the end of a last reference, found depth first without
  // recursion: what is too deep for ForKind would be too deep here.
  constexpr int kUnknown = -2, kOnPath = -1;
  std::vector<int> longest(nodes_.size(), kUnknown);
  struct Visit {
    FormulaId formula;
    size_t next;
  };
  std::vector<Visit> path;
  for (const FormulaId reference : references_) {
    if (longest[reference] == kUnknown) path.push_back({reference, 0});
    while (!path.empty()) {
      const auto [f, next] = path.back();
      const Node& node = nodes_[f];
      const bool follows = node.op == Op::kReference;
      longest[f] = kOnPath;
      if (next < node.kids.size() + (follows ? 1 : 0)) {
        ++path.back().next;
        const FormulaId to = next < node.kids.size() ? node.kids[next] : targets_[node.value];
        if (longest[to] == kOnPath) {
          // The references of the circle, in order; it has one, or `to` would be its own part.
          size_t at = path.size();
          while (path[at - 1].formula != to) --at;
          std::vector<FormulaId> circle;
          for (--at; at < path.size(); ++at) {
            if (nodes_[path[at].formula].op == Op::kReference) circle.push_back(path[at].formula);
          }
          return BadReference{circle.front(), true, circle.back()};
        }
        if (longest[to] == kUnknown) path.push_back({to, 0});
        continue;
      }
      int steps = 0;  // what comes after the last reference is no deeper than the schema's text
      for (const FormulaId kid : node.kids) {
        if (longest[kid] > 0) steps = std::max(steps, longest[kid] + 1);
      }
      if (follows) steps = longest[targets_[node.value]] + 1;
      longest[f] = steps;
      path.pop_back();
    }
  }
  for (const FormulaId reference : references_) {
    if (longest[reference] - 1 > max_steps) return BadReference{reference, false, reference};
  }
  return std::nullopt;
}

// Kept for what was asked alone: those of all parts of deep formulas would be many times as much.
const std::vector<AtomId>& FormulaArena::Atoms(FormulaId f) {
  if (const auto it = atoms_.find(f); it != atoms_.end()) return it->second;
  std::vector<AtomId> out;
  std::vector<FormulaId> open = {f};
  std::unordered_set<FormulaId> seen;
  const bool shared = nodes_[f].size > limits::kSharedParts;
  while (!open.empty()) {
    const Node& node = nodes_[open.back()];
    open.pop_back();
    StopScope::Steps(node.kids.size() + 1);
    if (node.op == Op::kAtom) out.push_back(node.value);
    for (const FormulaId kid : node.kids) {
      if (nodes_[kid].op == Op::kAtom) {
        if (!shared || seen.insert(kid).second) out.push_back(nodes_[kid].value);
      } else if (const auto it = atoms_.find(kid); it != atoms_.end()) {
        out.insert(out.end(), it->second.begin(), it->second.end());
      } else if (!shared || seen.insert(kid).second) {
        open.push_back(kid);
      }
    }
  }
  SortUnique(out);
  return atoms_.emplace(f, std::move(out)).first->second;
}

std::vector<AtomId> FormulaArena::Atoms(FormulaId f, std::span<const FormulaId> more) {
  std::vector<AtomId> out = Atoms(f);
  for (const FormulaId other : more) {
    const std::vector<AtomId>& atoms = Atoms(other);
    out.insert(out.end(), atoms.begin(), atoms.end());
  }
  if (!more.empty()) SortUnique(out);
  return out;
}

FormulaId FormulaArena::Assign(FormulaId f, std::span<const std::pair<AtomId, bool>> values) {
  if (f <= kTrueFormula || values.empty()) return f;
  if (nodes_[f].size <= limits::kSharedParts) return Assign(f, values, nullptr);
  std::unordered_map<FormulaId, FormulaId> known;
  return Assign(f, values, &known);
}

FormulaId FormulaArena::Assign(FormulaId f, std::span<const std::pair<AtomId, bool>> values,
                               std::unordered_map<FormulaId, FormulaId>* known) {
  if (f <= kTrueFormula) return f;
  if (known != nullptr) {
    if (const auto it = known->find(f); it != known->end()) return it->second;
  }
  const Node node = nodes_[f];
  FormulaId out = f;
  switch (node.op) {
    case Op::kAtom: {
      const auto it = std::lower_bound(values.begin(), values.end(), std::pair(node.value, false));
      if (it == values.end() || it->first != node.value) return f;
      return it->second ? kTrueFormula : kFalseFormula;
    }
    case Op::kNot:
      out = Not(Assign(node.kids[0], values, known));
      break;
    case Op::kAnd:
    case Op::kOr:
    case Op::kExactlyOne:
      out = Rebuilt(node, [&](FormulaId kid) { return Assign(kid, values, known); });
      break;
    default:
      break;
  }
  if (known != nullptr) {
    known->emplace(f, out);
    assigned_ += node.kids.size() + 1;
  }
  return out;
}

std::vector<AtomId> FormulaArena::MustAtoms(FormulaId f) const {
  std::vector<AtomId> out;
  const Node& node = nodes_[f];
  if (node.op == Op::kAtom) out.push_back(node.value);
  if (node.op == Op::kAnd) {
    for (const FormulaId kid : node.kids) {
      if (nodes_[kid].op == Op::kAtom) out.push_back(nodes_[kid].value);
    }
    std::sort(out.begin(), out.end());
  }
  return out;
}

bool FormulaArena::IsConjunction(FormulaId f) const {
  const Node& node = nodes_[f];
  if (node.op == Op::kTrue || node.op == Op::kAtom) return true;
  return node.op == Op::kAnd && std::all_of(node.kids.begin(), node.kids.end(), [&](FormulaId kid) {
           return nodes_[kid].op == Op::kAtom;
         });
}

std::vector<Cube> FormulaArena::Cubes(FormulaId f, size_t limit, bool& complete) const {
  complete = true;
  DnfMemory memory;
  return Dnf(f, true, limit, complete, memory);
}

// The kids of an ExactlyOne are asked for with either sign again and again: nested, that doubles
// with each level unless what was found is kept.
std::vector<Cube> FormulaArena::Dnf(FormulaId f, bool positive, size_t limit, bool& complete,
                                    DnfMemory& memory) const {
  StopScope::Step();
  const Op op = nodes_[f].op;
  if (op == Op::kFalse || op == Op::kTrue || op == Op::kAtom)
    return DnfOf(f, positive, limit, complete, memory);
  const uint64_t key = uint64_t{f} << 1 | (positive ? 1 : 0);
  if (const auto it = memory.known.find(key); it != memory.known.end()) {
    complete = complete && it->second.complete;
    return it->second.cubes;
  }
  bool all = true;
  std::vector<Cube> cubes = DnfOf(f, positive, limit, all, memory);
  complete = complete && all;
  memory.known.emplace(key, KnownCubes{cubes, all});
  return cubes;
}

std::vector<Cube> FormulaArena::DnfOf(FormulaId f, bool positive, size_t limit, bool& complete,
                                      DnfMemory& memory) const {
  const Node& node = nodes_[f];
  std::vector<Cube> out;
  const auto append = [&](std::vector<Cube> more) {
    for (Cube& cube : more) {
      if (out.size() >= limit) {
        complete = false;
        return;
      }
      out.push_back(std::move(cube));
    }
  };
  const auto conjoin = [&](const std::vector<Cube>& left, FormulaId kid, bool sign) {
    return Product(left, Dnf(kid, sign, limit, complete, memory), limit, complete, memory);
  };
  switch (node.op) {
    case Op::kFalse:
    case Op::kTrue:
      if ((node.op == Op::kTrue) == positive) out.emplace_back();
      break;
    case Op::kAtom:
      out.emplace_back();
      (positive ? out.back().positive : out.back().negative).push_back(node.value);
      break;
    case Op::kNot:
      return Dnf(node.kids[0], !positive, limit, complete, memory);
    case Op::kAnd:
    case Op::kOr:
      if ((node.op == Op::kOr) == positive) {
        for (const FormulaId kid : node.kids) append(Dnf(kid, positive, limit, complete, memory));
      } else {
        out = ConjunctionOf(node.kids, positive, limit, complete, memory);
      }
      break;
    case Op::kExactlyOne:
      if (positive) {
        for (size_t i = 0; i < node.kids.size(); ++i) {
          std::vector<Cube> cubes(1);
          for (size_t j = 0; j < node.kids.size(); ++j)
            cubes = conjoin(cubes, node.kids[j], i == j);
          append(std::move(cubes));
        }
      } else {
        // None, or two of them.
        std::vector<Cube> none(1);
        for (const FormulaId kid : node.kids) none = conjoin(none, kid, false);
        append(std::move(none));
        for (size_t i = 0; i < node.kids.size(); ++i) {
          for (size_t j = i + 1; j < node.kids.size(); ++j) {
            append(conjoin(conjoin(std::vector<Cube>(1), node.kids[i], true), node.kids[j], true));
          }
        }
      }
      break;
    case Op::kKindSet:
    case Op::kReference:
      complete = false;
      break;
  }
  return out;
}

std::vector<Cube> FormulaArena::Product(const std::vector<Cube>& left,
                                        const std::vector<Cube>& right, size_t limit,
                                        bool& complete, DnfMemory& memory) {
  std::vector<Cube> product;
  for (const Cube& a : left) {
    for (const Cube& b : right) {
      if ((memory.work += a.positive.size() + a.negative.size() + 8) > limits::kProductSteps) {
        complete = false;
        return {};
      }
      Cube cube{Merge(a.positive, b.positive), Merge(a.negative, b.negative)};
      if (Intersects(cube.positive, cube.negative)) continue;
      if (product.size() >= limit) {
        complete = false;
        return product;
      }
      product.push_back(std::move(cube));
    }
  }
  return product;
}

// Literals first: what they rule out leaves many a disjunction with one alternative, which is a
// literal again, or with one that is there already.
std::vector<Cube> FormulaArena::ConjunctionOf(const std::vector<FormulaId>& kids, bool positive,
                                              size_t limit, bool& complete,
                                              DnfMemory& memory) const {
  std::unordered_map<AtomId, bool> fixed;
  bool possible = true, changed = true;
  const auto fix = [&](const Cube& cube) {
    for (const AtomId atom : cube.positive) possible &= fixed.try_emplace(atom, true).first->second;
    for (const AtomId atom : cube.negative)
      possible &= !fixed.try_emplace(atom, false).first->second;
    changed = true;
  };
  std::vector<std::vector<Cube>> open;
  for (const FormulaId kid : kids) {
    std::vector<Cube> cubes = Dnf(kid, positive, limit, complete, memory);
    if (cubes.size() == 1) {
      fix(cubes[0]);
    } else {
      open.push_back(std::move(cubes));
    }
  }
  for (int round = 0; possible && changed && round < limits::kUnitRounds; ++round) {
    changed = false;
    std::erase_if(open, [&](std::vector<Cube>& cubes) {
      const auto stands = [&](AtomId atom, bool value) {
        const auto it = fixed.find(atom);
        return it == fixed.end() ? -1 : it->second == value ? 1 : 0;
      };
      bool holds = false;
      std::erase_if(cubes, [&](const Cube& cube) {
        bool clashes = false, implied = true;
        const auto look = [&](const std::vector<AtomId>& atoms, bool value) {
          for (const AtomId atom : atoms) {
            clashes = clashes || stands(atom, value) == 0;
            implied = implied && stands(atom, value) == 1;
          }
        };
        look(cube.positive, true);
        look(cube.negative, false);
        holds = holds || implied;
        return clashes;
      });
      if (cubes.empty()) possible = false;
      if (!holds && cubes.size() == 1) fix(cubes[0]);
      return holds || cubes.size() <= 1;
    });
  }
  if (!possible) return {};
  std::vector<Cube> out(1);
  for (const auto& [atom, value] : fixed)
    (value ? out[0].positive : out[0].negative).push_back(atom);
  std::ranges::sort(out[0].positive);
  std::ranges::sort(out[0].negative);
  for (const std::vector<Cube>& cubes : open) out = Product(out, cubes, limit, complete, memory);
  return out;
}

}  // namespace pawl::schema
